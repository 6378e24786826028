"""Experiments: networks of finite width, sampled from their posterior by noisy training and by
Hamiltonian Monte Carlo, which has no discretisation error.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.networks.architecture import Architecture, of_width
from orderparam.sampling import sample
from orderparam.systems.kernel_regression.training.model import FunctionPosterior, NetworkTraining
from orderparam.systems.kernel_regression.training.theory import largest_curvature


class SampledPosterior(FunctionPosterior):
    """Posterior of the network's output at the test points, from sampled networks.

    Fields:
        r_hat: largest potential scale reduction over test points.
        effective_samples: smallest effective sample size over test points.
        step_size: step size of the integrator.
        inflation: upper bound on the factor by which the Langevin step inflates variances, 1/(1 -
            dt A/2) with A the largest curvature at the end of the chains; 1 for exact methods.
    """

    r_hat: Float[Array, ""]
    effective_samples: Float[Array, ""]
    step_size: Float[Array, ""]
    inflation: Float[Array, ""]


@experiment
def langevin(
    system: NetworkTraining,
    key: PRNGKeyArray,
    *,
    chains: int = 4,
    draws: int = 180,
    thin: int = 60,
    warmup: int = 2400,
) -> SampledPosterior:
    r"""Posterior of a finite network's output at the test points, sampled by noisy training:
    Langevin steps without rejection.

    $$ u \leftarrow u - dt\, \nabla U + \sqrt{2\, dt}\, \xi, \qquad U = L/T + |u|^2/2 $$

    Here L is the loss, T the `temperature`, $\xi$ standard normal, and u the weights in units of
    their prior standard deviation. In these units the equation of `NetworkTraining` has this form,
    with time in units of $1/\gamma$. The step is dt = `curvature_step` / A with A the
    `largest_curvature`. Chains start from independent draws of the prior. The slowest directions,
    which only the prior constrains, decorrelate in 1/dt steps.

    Args:
        chains: number of independent chains, at least 2 for `r_hat`. Default 4.
        draws: recorded draws of each chain. Default 180.
        thin: number of steps between two records; a fraction of 1/dt suffices. Default 60.
        warmup: number of steps before the first record; it should be several times 1/dt. Default
            2400.

    Accuracy: the finite step inflates the variance of a mode of curvature $A_i$ by the factor $1/(1
    - dt A_i/2)$; this is exact if the features do not move. `inflation` is an upper bound.

    Cost: chains * (warmup + draws * thin) gradients of the loss.

    Source: Naveh et al. (2021); Ringel et al. (2025).

    >>> import jax
    >>> import numpy as np
    >>> from orderparam.networks import fully_connected
    >>> network = fully_connected(1, None, "relu")
    >>> training = NetworkTraining(
    ...     np.eye(2), [1.0, -1.0], np.eye(2), network, 0.5, width=4
    ... )
    >>> found = langevin(training, jax.random.key(0), chains=2, draws=10, thin=1, warmup=20)
    >>> found.mean.shape, bool(found.inflation > 1)
    ((2,), True)
    """
    step = float(system.curvature_step / largest_curvature(system))
    return _sampled(
        system,
        key,
        method="langevin",
        chains=chains,
        samples=draws,
        step_size=step,
        thin=thin,
        warmup=warmup,
    )


@experiment
def hamiltonian(
    system: NetworkTraining, key: PRNGKeyArray, *, chains: int = 4, draws: int = 400
) -> SampledPosterior:
    """Posterior of a finite network's output at the test points, sampled by Hamiltonian Monte Carlo
    on all weights.

    The density is that of `langevin`, $e^{-L/T}$ times the prior, without discretisation error.

    Args:
        chains: number of independent chains, at least 2 for `r_hat`. Default 4.
        draws: recorded draws of each chain, after 200 steps of warm-up. Default 400.

    Cost: 12 gradients of the loss for each draw and step of warm-up.

    Source: Neal (1996); Naveh et al. (2021).

    >>> import jax
    >>> import numpy as np
    >>> from orderparam.networks import fully_connected
    >>> network = fully_connected(1, None, "relu")
    >>> training = NetworkTraining(
    ...     np.eye(2), [1.0, -1.0], np.eye(2), network, 0.5, width=4
    ... )
    >>> hamiltonian(training, jax.random.key(0), chains=2, draws=10).mean.shape
    (2,)
    """
    return _sampled(
        system, key, method="hmc", chains=chains, samples=draws, warmup=200, leapfrog_steps=12
    )


def _sampled(system: NetworkTraining, key: PRNGKeyArray, **options: Any) -> SampledPosterior:
    architecture = of_width(system.architecture, system.size("width"))
    problem = _Problem(
        architecture, system.inputs, system.targets, system.test_inputs, system.temperature
    )
    drawn = sample(
        jax.tree_util.Partial(_Problem.log_density, problem),
        lambda chain_key: architecture.draw(chain_key, system.inputs.shape[1]),
        key,
        observe=jax.tree_util.Partial(_Problem.outputs, problem),
        **options,
    )
    values = drawn.observables["test"].reshape(-1, system.test_inputs.shape[0])
    # The posterior of the output over all draws of all chains together.
    covariance = jnp.cov(values, rowvar=False, ddof=1)
    return SampledPosterior(
        mean=jnp.mean(values, axis=0),
        variance=jnp.diagonal(covariance),
        covariance=covariance,
        r_hat=jnp.max(drawn.r_hat["test"]),
        effective_samples=jnp.min(drawn.effective_samples["test"]),
        step_size=jnp.mean(drawn.step_size),
        inflation=jnp.max(drawn.variance_inflation),
        converged=drawn.converged,
    )


class _Problem(eqx.Module):
    """The posterior of all weights, in units of their prior standard deviation."""

    architecture: Architecture
    inputs: Float[Array, "train input"]
    targets: Float[Array, "train"]
    test_inputs: Float[Array, "test input"]
    temperature: Float[Array, ""] | float

    def log_density(self, whitened: Any) -> Float[Array, ""]:
        loss = 0.5 * jnp.sum(
            (self.architecture.apply(whitened, self.inputs)[:, 0] - self.targets) ** 2
        )
        return -loss / self.temperature - 0.5 * sum(
            jnp.sum(leaf**2) for leaf in jax.tree.leaves(whitened)
        )

    def outputs(self, whitened: Any) -> dict[str, Float[Array, "test"]]:
        return {"test": self.architecture.apply(whitened, self.test_inputs)[:, 0]}
