"""The joint law of the error in examples P and features N, its exponents, its best ridge and its
best split of parameters.

Whichever of P and N is smaller decides how many modes are resolved: the threshold is nu ~ min(P,
N)^-a, and the error falls as a power of that number. The other one enters through fluctuations: the
error differs from its limit by something proportional to 1/P or 1/N. These are the two
resolution-limited and the two variance-limited regimes of Bahri, Dyer, Kaplan, Lee, Sharma 2024
(arXiv:2102.06701).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.kernels.effective_ridge import effective_ridge
from orderparam.kernels.feature_equivalent import (
    FeatureEquivalent,
    errors_at_threshold,
    feature_equivalent,
)
from orderparam.kernels.spectrum import Spectrum
from orderparam.solve.minimum import differentiated, newton_minimum
from orderparam.solve.root import decreasing_root
from orderparam.systems.scaling_laws.joint.model import ParameterBudget, ScaleFree

_SCAN = 64
_SPLITS = 25
_INFINITE = 1e15  # features that are as good as infinitely many

Scalar = Float[Array, ""] | float


class LimitExponents(NamedTuple):
    """Without label noise and with a vanishing ridge: error ~ P^-data for N >> P, ~ N^-width for P
    >> N, ~ N^-together along P ~ N at the best ridge. |error - its limit| ~ 1/N and 1/P, exponent
    `variance`."""

    data: float
    width: float
    together: float
    variance: float


def limit_exponents(spectral_decay: float, target_decay: float) -> LimitExponents:
    """min(b - 1, 2a), min(b - 1, a), min(b - 1, a), 1.

    Features are a random subspace: what they cannot represent is sum y^2 nu/(lambda + nu), which
    saturates at nu ~ N^-a, where the bias of regression on examples is sum y^2 nu^2/(lambda +
    nu)^2. (Bahri et al. 2024 have one exponent for both, that of b - 1 below a.) Raises
    `ValueError` unless both decays are above 1.
    """
    if not (spectral_decay > 1 and target_decay > 1):
        raise ValueError(
            f"spectral_decay = {spectral_decay}, target_decay = {target_decay}: must be > 1"
        )
    a, b = spectral_decay, target_decay
    return LimitExponents(min(b - 1, 2 * a), min(b - 1, a), min(b - 1, a), 1.0)


def _sizes(system: ScaleFree) -> tuple[Scalar, Scalar]:
    n_train, width = system.sizes
    return jnp.asarray(n_train), jnp.minimum(width, _INFINITE)


class JointLaw(Result):
    """test_error: E (f - f*)^2 = bias + variance over training sets, features and noise, without
    1/2 and without label noise.

    data_exponent, width_exponent: -d ln test_error / d ln P and / d ln N at this ridge.
    above_infinite_width: test_error less that with N infinite at the same ridge;
    above_infinite_data: less that with P infinite, where neither ridge nor noise matters.
    """

    test_error: Float[Array, ""]
    bias: Float[Array, ""]
    variance: Float[Array, ""]
    data_exponent: Float[Array, ""]
    width_exponent: Float[Array, ""]
    above_infinite_width: Float[Array, ""]
    above_infinite_data: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def joint_law(system: ScaleFree) -> JointLaw:
    """`orderparam.kernels.feature_equivalent` of the power laws, and its derivatives."""
    spectrum, (n_train, width) = system.spectrum, _sizes(system)
    sizes = jnp.log(jnp.stack([n_train, width]))

    def log_error(sizes: Float[Array, "2"]) -> tuple[Float[Array, ""], FeatureEquivalent]:
        found = feature_equivalent(
            spectrum, jnp.exp(sizes[0]), jnp.exp(sizes[1]), system.ridge, system.noise
        )
        return jnp.log(found.bias + found.variance), found

    slopes, found = jax.jacrev(log_error, has_aux=True)(sizes)
    error = found.bias + found.variance
    wide = feature_equivalent(spectrum, n_train, _INFINITE, system.ridge, system.noise)
    many = unrepresented(spectrum, width)
    return JointLaw(
        test_error=error,
        bias=found.bias,
        variance=found.variance,
        data_exponent=-slopes[0],
        width_exponent=-slopes[1],
        above_infinite_width=error - wide.bias - wide.variance,
        above_infinite_data=error - many,
        residual=jnp.maximum(found.residual, wide.residual),
        converged=found.converged & wide.converged & jnp.all(jnp.isfinite(slopes)),
    )


def unrepresented(spectrum: Spectrum, width: Scalar) -> Float[Array, ""]:
    """sum y^2 nu/(lambda + nu) with sum lambda/(lambda + nu) = N: what no weights of N features can
    fit.
    """
    solved = effective_ridge(spectrum, width, 0.0)
    return spectrum.target_power @ (1 - solved.learnability) + spectrum.tail_power


class JointOptimum(Result):
    """ridge: with the lowest test_error, 0 where that falls with every ridge down to none.
    residual: |d test_error / d ln nu| over test_error, nu the threshold that belongs to the ridge.
    converged: that is small and inside the scanned range."""

    ridge: Float[Array, ""]
    test_error: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def optimal_ridge(system: ScaleFree) -> JointOptimum:
    """min over the ridge of `joint_law`; the ridge of the system is not used.

    The error is explicit in the threshold nu, and ridge = (P - T)(N - T) nu/N with T = sum
    lambda/(lambda + nu): a scan over ln nu from T = min(P, N), where there is no ridge, then the
    root of the derivative.
    """
    spectrum, noise, (n_train, width) = system.spectrum, system.noise, _sizes(system)
    ridgeless = effective_ridge(spectrum, jnp.minimum(n_train, width), 0.0)
    args = spectrum, n_train, width, noise

    def log_error(log_threshold: Float[Array, ""], args: tuple) -> Float[Array, ""]:
        spectrum, n_train, width, noise = args
        bias, variance, _ = errors_at_threshold(
            spectrum, n_train, width, jnp.exp(log_threshold), noise
        )
        return jnp.log(bias + variance)

    def downhill(log_threshold: Float[Array, ""], args: tuple) -> Float[Array, ""]:
        return -jax.grad(log_error)(log_threshold, args)

    none = jnp.log(ridgeless.threshold)
    grid = jax.lax.stop_gradient(
        none + jnp.linspace(1e-6, 1.0, _SCAN) * jnp.maximum(jnp.log(1e3) - none, 1.0)
    )
    best = jnp.argmin(jax.lax.map(lambda u: log_error(u, args), grid))
    at_zero = (best == 0) & (downhill(grid[0], args) <= 0)
    root = decreasing_root(
        downhill, grid[jnp.maximum(best - 1, 0)], grid[jnp.minimum(best + 1, _SCAN - 1)], args
    )
    nu = jnp.exp(jnp.where(at_zero, grid[0], root.value))
    bias, variance, total = errors_at_threshold(spectrum, n_train, width, nu, noise)
    ridge = (n_train - total) * (1 - total / width) * nu
    return JointOptimum(
        ridge=jnp.where(at_zero, 0.0, ridge),
        test_error=bias + variance,
        residual=jnp.where(at_zero, 0.0, root.residual),
        converged=ridgeless.converged & (at_zero | (root.converged & (best < _SCAN - 1))),
    )


class BestSplit(Result):
    """data_share: P/(N + P) of the lowest test_error, with the ridge that belongs to it. residual:
    largest entry of the gradient of ln test_error over logit data_share and ln nu."""

    data_share: Float[Array, ""]
    ridge: Float[Array, ""]
    test_error: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def best_split(system: ParameterBudget) -> BestSplit:
    """min over the share and the threshold nu, both at once, in which the error is explicit: a
    scan, then Newton steps. The share and the ridge of the system are not used."""
    spectrum = system.spectrum

    def log_error(unknowns: Float[Array, "2"]) -> Float[Array, ""]:
        share, nu = jax.nn.sigmoid(unknowns[0]), jnp.exp(unknowns[1])
        sizes = share * system.total, (1 - share) * system.total
        bias, variance, learned = errors_at_threshold(spectrum, *sizes, nu, system.noise)
        return jnp.where(learned < jnp.minimum(*sizes), jnp.log(bias + variance), jnp.nan)

    fewest = jnp.log(effective_ridge(spectrum, system.total / 2, 0.0).threshold)
    grid = jnp.stack(
        jnp.meshgrid(jnp.linspace(-4.0, 4.0, _SPLITS), jnp.linspace(0.0, 1.0, _SPLITS)), axis=-1
    ).reshape(-1, 2)
    grid = jax.lax.stop_gradient(grid.at[:, 1].set(fewest + grid[:, 1] * (jnp.log(10.0) - fewest)))
    values = jax.lax.map(log_error, grid, batch_size=64)
    found = newton_minimum(differentiated(log_error), grid[jnp.nanargmin(values)])
    share, nu = jax.nn.sigmoid(found.value[0]), jnp.exp(found.value[1])
    n_train, width = share * system.total, (1 - share) * system.total
    bias, variance, learned = errors_at_threshold(spectrum, n_train, width, nu, system.noise)
    ridge = (n_train - learned) * (1 - learned / width) * nu
    return BestSplit(share, ridge, bias + variance, found.residual, found.converged)
