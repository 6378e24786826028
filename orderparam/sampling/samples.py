"""The result of sampling a posterior: recorded observables, their averages, and all diagnostics of
the chains."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from orderparam.sampling.estimate import Estimate, estimate


class Samples(eqx.Module):
    """Recorded Markov chains. Prints as a table of `value ± error [R-hat 1.00, ESS 812]`.

    observables:        what `observe` returned at each draw, every array with leading axes (chain,
                        draw).
    estimates:          the same pytree with an `Estimate` in place of each array.
    averages:           mean over the draws of each chain of what `average` returned, every array
                        with the leading axis (chain).
    log_density:        -U at each draw.
    virial:             (u . grad U)/(number of parameters) at each draw. Its equilibrium average is
                        1 whatever U is. In an unadjusted Langevin run it is
                        1 + (dt/2) <|grad U|^2>/(number of parameters), for a quadratic U the mean
                        inflation of the variances over modes (derived for this package, not in the
                        cited papers).
    acceptance_rate:    mean acceptance probability of each chain after warm-up (1 for Langevin).
    step_size:          step size of each chain after warm-up, in units of `scale`.
    variance_inflation: the discretisation error of a Langevin run: 1/(1 - dt A/2) with A the
        largest curvature where the chain ended. For quadratic U the exact factor for the stiffest
        mode, and a bound for all others. Infinite when the step size is unstable there; 1 for the
        exact methods.
    position:           last positions, leading axis (chain), from which the run can go on.
    converged:          the log density, and every observable that is not constant, has R-hat < 1.05
                        and at least 100 effective samples; and the step size is stable.
    method:             "hmc", "mala", "nuts" or "langevin".
    """

    observables: PyTree
    estimates: PyTree
    averages: PyTree
    log_density: Float[Array, "chain draw"]
    virial: Float[Array, "chain draw"]
    acceptance_rate: Float[Array, "chain"]
    step_size: Float[Array, "chain"]
    variance_inflation: Float[Array, "chain"]
    position: PyTree
    converged: Bool[Array, ""]
    method: str = eqx.field(static=True)

    @property
    def mean(self) -> PyTree:
        """Average of each observable over chains and draws."""
        return self._of_each("mean")

    @property
    def standard_error(self) -> PyTree:
        """Monte Carlo standard error of each mean."""
        return self._of_each("standard_error")

    @property
    def r_hat(self) -> PyTree:
        """Rank-normalised split R-hat of each observable."""
        return self._of_each("r_hat")

    @property
    def effective_samples(self) -> PyTree:
        """Bulk effective sample size of each observable."""
        return self._of_each("effective_samples")

    def _of_each(self, field: str) -> PyTree:
        return jax.tree.map(
            lambda found: getattr(found, field), self.estimates, is_leaf=_is_estimate
        )

    def __repr__(self) -> str:
        if isinstance(self.converged, jax.core.Tracer) or np.ndim(self.converged) != 0:
            return f"Samples({self.method}, batched over {np.shape(self.converged)})"
        chains, draws = self.log_density.shape
        head = [
            f"{chains} chains x {draws} draws",
            f"{self.method}, acceptance {float(self.acceptance_rate.mean()):.2f}",
            f"step {float(self.step_size.mean()):.3g}",
            "converged" if self.converged else "NOT converged",
        ]
        if self.method == "langevin":
            head.append(
                f"variances inflated by up to {float(self.variance_inflation.max()) - 1:.1%}"
            )
        built_in = estimate(jnp.stack([self.log_density, self.virial], axis=-1))
        rows = {
            name: jax.tree.map(lambda x, i=i: x[i], built_in)
            for i, name in enumerate(("log density", "virial"))
        }
        for path, found in jax.tree_util.tree_leaves_with_path(
            self.estimates, is_leaf=_is_estimate
        ):
            rows[jax.tree_util.keystr(path, simple=True, separator=".") or "observable"] = found
        width = max(len(name) for name in rows)
        return "\n".join(
            [", ".join(head), *(f"  {name:<{width}}  {found}" for name, found in rows.items())]
        )


def _is_estimate(node: object) -> bool:
    return isinstance(node, Estimate)
