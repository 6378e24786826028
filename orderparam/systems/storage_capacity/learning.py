"""Perceptron learning with a margin: the number of corrections that it makes, and the bound on this
number from the proof of convergence."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from orderparam.core.needs import at_least
from orderparam.core.result import Result, with_errors
from orderparam.core.verb import experiment, theory
from orderparam.solve.root import decreasing_root
from orderparam.systems.storage_capacity.experiment import (
    CONVEX,
    drawn_patterns,
    fraction,
    mean,
    some_patterns,
)
from orderparam.systems.storage_capacity.model import SphericalPatterns
from orderparam.systems.storage_capacity.theory import UNBIASED, Number, largest_margin


class CorrectionsBound(Result):
    """Bound on the number of corrections of perceptron learning.

    Fields:
        corrections: largest possible number of corrections per input before all patterns are
            stored.
        valid: whether the margin is smaller than the largest margin, so that learning ends, and the
            load is below 2.
        residual: residual of the equation.
        converged: whether it was solved.
    """

    corrections: Float[Array, ""]
    valid: Bool[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class LearnedPatterns(Result):
    """Outcome of perceptron learning on random samples.

    Fields:
        success_fraction, success_fraction_error: share of samples stored within the allowed sweeps,
            and its standard error.
        sweeps, sweeps_error: mean number of sweeps that these samples needed, and its standard
            error.
        corrections, corrections_error: mean number of their corrections per input, and its standard
            error.
    """

    success_fraction: Float[Array, ""]
    success_fraction_error: Float[Array, ""]
    sweeps: Float[Array, ""]
    sweeps_error: Float[Array, ""]
    corrections: Float[Array, ""]
    corrections_error: Float[Array, ""]


@theory(needs=UNBIASED | {"margin": at_least(0, why="the proof needs it")})
def corrections_bound(system: SphericalPatterns) -> CorrectionsBound:
    r"""Upper bound on the number of corrections that perceptron learning makes until all patterns
    are stored.

    Each correction adds $y x$ to J, so that the overlap of J with the best couplings grows by at
    least the largest stability K = `largest_margin`, while $|J|^2$ grows by at most $2 \kappa |J| +
    N$, where $\kappa$ = `margin` and $|x|^2 = N$. With $\rho = |J|/N$ after $\mu N$ corrections

    $$ K \mu \le \rho(\mu), \qquad \frac{d\rho}{d\mu} = \kappa + \frac{1}{2 \rho}, \qquad
        \rho(0) = 0 $$

    so that $\mu$ is at most the solution of

    $$ \Big( 1 - \frac{\kappa}{K} \Big) t = \ln(1 + t), \qquad t = 2 \kappa K \mu $$

    which is $1/K^2$ at $\kappa = 0$ (Novikoff) and diverges as $\kappa \to K$.

    Raises:
        ValueError: for a bias or a negative margin.

    Accuracy: 1e-9. The bound holds for every sample with the K of that sample; here K is the limit
    of many inputs.

    Source: Gardner (1988), appendix, for the proof that learning ends; Novikoff (1962) without a
    margin; the integral is derived here.

    >>> found = corrections_bound(SphericalPatterns(load=1.0))
    >>> round(float(found.corrections * largest_margin(SphericalPatterns(load=1.0)).margin ** 2), 9)
    1.0
    """
    best = largest_margin(system)
    ratio = jnp.asarray(system.margin) / best.margin
    valid = best.valid & (ratio < 1)
    ratio = jnp.where(valid, ratio, 0.5)

    def equation(log_bound: Number, ratio: Number) -> Number:
        # log_bound is ln(K^2 mu)
        return -log_bound - jnp.log(_excess(2 * ratio * jnp.exp(log_bound)))

    root = decreasing_root(equation, jnp.zeros(()) - 1e-3, 3 - 2 * jnp.log1p(-ratio), ratio)
    return CorrectionsBound(
        corrections=jnp.exp(root.value) / best.margin**2,
        valid=valid,
        residual=root.residual,
        converged=root.converged & best.converged,
    )


def _excess(t: Number) -> Number:
    """2 (t - ln(1 + t))/t^2, which falls from 1 at t = 0."""
    small = t < 1e-2
    series = 1 - t * (2 / 3 - t * (1 / 2 - t * (2 / 5 - t * (1 / 3 - t * (2 / 7 - t / 4)))))
    safe = jnp.where(small, 1.0, t)
    return jnp.where(small, series, 2 * (safe - jnp.log1p(safe)) / safe**2)


@experiment(check=some_patterns, needs=CONVEX)
def perceptron_learning(
    system: SphericalPatterns, key: PRNGKeyArray, *, samples: int = 50, max_sweeps: int = 1000
) -> LearnedPatterns:
    r"""Share of samples that perceptron learning stores, and the number of its corrections.

    The patterns are presented in turn until all are stored. If the stability of a pattern does not
    exceed the margin $\kappa$, $y^\mu J \cdot x^\mu \le \kappa |J|$, the pattern is added to the
    couplings, $J \leftarrow J + y^\mu x^\mu$. The couplings start at zero.

    Args:
        samples: number of independent samples in one run.
        max_sweeps: number of sweeps through all patterns after which a sample counts as not stored.

    Raises:
        ValueError: for a negative margin, or less than one pattern.

    Source: Rosenblatt (1962); Gardner (1988), appendix, with a margin.

    >>> import jax
    >>> system = SphericalPatterns(load=1.0, input_dim=10)
    >>> float(perceptron_learning(system, jax.random.key(0), samples=10).success_fraction)
    1.0
    """
    patterns = jnp.asarray(np.stack(list(drawn_patterns(system, key, samples))))
    swept, corrected = map(np.asarray, _learnt(patterns, jnp.asarray(system.margin), max_sweeps))
    stored = swept <= max_sweeps
    per_input = corrected / patterns.shape[-1]
    return LearnedPatterns(
        **with_errors(
            success_fraction=fraction(stored),
            sweeps=mean(np.where(stored, swept, np.nan)),
            corrections=mean(np.where(stored, per_input, np.nan)),
        )
    )


@partial(jax.jit, static_argnames=("max_sweeps",))
def _learnt(
    patterns: Float[Array, "sample p n"], margin: Number, max_sweeps: int
) -> tuple[Int[Array, "sample"], Int[Array, "sample"]]:
    """Number of sweeps until all patterns of a sample are stored (max_sweeps + 1 if they are not),
    and number of corrections."""

    def missed(w: Array, patterns: Array) -> Array:
        return patterns @ w <= margin * jnp.linalg.norm(w)

    def learn(patterns: Array) -> tuple[Array, Array]:
        def one(state: tuple[Array, Array], pattern: Array) -> tuple[tuple[Array, Array], None]:
            w, corrected = state
            wrong = missed(w, pattern)
            return (w + jnp.where(wrong, pattern, 0.0), corrected + wrong), None

        def sweep(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            w, swept, corrected = state
            w, corrected = jax.lax.scan(one, (w, corrected), patterns)[0]
            return w, swept + 1, corrected

        def unfinished(state: tuple[Array, Array, Array]) -> Array:
            w, swept, _ = state
            return jnp.any(missed(w, patterns)) & (swept <= max_sweeps)

        start = jnp.zeros(patterns.shape[1]), jnp.asarray(0), jnp.asarray(0)
        return jax.lax.while_loop(unfinished, sweep, start)[1:]

    return jax.vmap(learn)(patterns)
