"""The error as a function of the numbers P of examples and N of features: its exponents, the best
ridge, and the best split of N + P.

The smaller of P and N decides how many modes are resolved: the threshold is nu ~ min(P, N)^-a, and
the error falls as a power of that number. The larger number enters through fluctuations: the error
differs from its limit by a term of order one over the larger number. These are the two
resolution-limited and the two variance-limited regimes of Bahri, Dyer, Kaplan, Lee, Sharma (2024).
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
_INFINITE = 1e15  # a number of features that stands for infinitely many

Scalar = Float[Array, ""] | float


class LimitExponents(NamedTuple):
    """Limiting exponents without label noise and with a vanishing ridge.

    Fields:
        data: the error falls as P^-data for N >> P.
        width: the error falls as N^-width for P >> N.
        together: the error falls as N^-together along P ~ N at the best ridge.
        variance: the error minus its limit falls as the larger of N and P to minus this power.
    """

    data: float
    width: float
    together: float
    variance: float


def limit_exponents(spectral_decay: float, target_decay: float) -> LimitExponents:
    """Exponents min(b - 1, 2a), min(b - 1, a), min(b - 1, a) and 1 of a scale-free problem.

    The features span a random subspace. The target that they cannot represent, sum y^2 nu/(lambda +
    nu), saturates at nu ~ N^-a, while the bias of regression on examples is sum y^2 nu^2/(lambda +
    nu)^2 and saturates at nu^2. (Bahri et al. 2024 have one exponent for both, which holds for b -
    1 < a.)

    Args:
        spectral_decay: a > 1, eigenvalues fall as k^-a.
        target_decay: b > 1, target powers fall as k^-b.

    Raises:
        ValueError: unless both decays are above 1.

    Source: Bahri, Dyer, Kaplan, Lee, Sharma (2024); the exponents for b - 1 > a are derived here.

    >>> limit_exponents(1.5, 3.0)
    LimitExponents(data=2.0, width=1.5, together=1.5, variance=1.0)
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
    """Test error of ridge regression on random features, its slopes and its distance from both
    limits.

    Fields:
        test_error: E (f - f*)^2, the sum of bias and variance over training sets, features and
            noise (no factor 1/2, without label noise).
        bias: part of the error that is not due to label noise.
        variance: part of the error due to label noise.
        data_exponent: local exponent -d ln test_error / d ln P at the given ridge.
        width_exponent: local exponent -d ln test_error / d ln N at the given ridge.
        above_infinite_width: test_error minus the error for infinite N at the same ridge.
        above_infinite_data: test_error minus the error for infinite P, which depends neither on the
            ridge nor on the noise.
        residual: residual of the equation for the threshold.
        converged: whether it was solved and all derivatives are finite.
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
    r"""Test error of random features for P examples and N features, with its local exponents.

    With $T(\nu) = \sum_k \lambda_k / (\lambda_k + \nu)$ the number of modes learned, the threshold
    $\nu$ solves

    $$ \frac{(P - T)(N - T)\, \nu}{N} = \text{ridge} , \qquad T = T(\nu) < \min(P, N) . $$

    With $q = \sum_k \lambda_k^2 / (\lambda_k + \nu)^2$, $\tau = \sum_k \lambda_k / (\lambda_k +
    \nu)^2$ and $\Upsilon = T^2 / (PN) + (1 - T/N)^2 q / (P (1 - q/N))$, the test error is the sum
    of

    $$ \text{bias} = \frac{\nu^2}{1 - \Upsilon} \Big[ \sum_k \frac{y_k^2}{(\lambda_k + \nu)^2}
       + \frac{\tau}{N - q} \sum_k \frac{y_k^2 \lambda_k}{(\lambda_k + \nu)^2} \Big] , \qquad
       \text{variance} = \frac{\sigma^2\, \Upsilon}{1 - \Upsilon} $$

    with $\sigma^2$ = `noise`, $P$ = `n_train` and $N$ = `width`.

    Accuracy: the deterministic equivalent is computed to 1e-8; its own relative error falls with P
    and N.

    Source: Defilippis, Loureiro, Misiakiewicz (2024); regimes of Bahri, Dyer, Kaplan, Lee, Sharma
    (2024).

    >>> from orderparam.systems.scaling_laws import ScaleFreeFeatures
    >>> law = joint_law(ScaleFreeFeatures(200, 80, ridge=0.1))
    >>> round(float(law.test_error), 6), round(float(law.width_exponent), 4)
    (0.045537, 0.5488)
    """
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
    """Power of that part of the target which N features cannot represent: sum y^2 nu/(lambda + nu),
    where sum lambda/(lambda + nu) = N.
    """
    solved = effective_ridge(spectrum, width, 0.0)
    return spectrum.target_power @ (1 - solved.learnability) + spectrum.tail_power


class JointOptimum(Result):
    """Ridge with the lowest test error.

    Fields:
        ridge: the best ridge; 0 where the error falls as the ridge vanishes.
        test_error: E (f - f*)^2 at that ridge (no factor 1/2, without label noise).
        residual: |d ln test_error / d ln nu|, with nu the threshold that belongs to the ridge.
        converged: whether the residual is small and the minimum lies inside the scanned range.
    """

    ridge: Float[Array, ""]
    test_error: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def optimal_ridge(system: ScaleFree) -> JointOptimum:
    r"""Ridge with the lowest test error of `joint_law`; the ridge of the system is not used.

    The error is an explicit function of the threshold $\nu$. It is minimised over $\nu$, and the
    ridge follows,

    $$ \text{ridge} = \frac{(P - T)(N - T)\, \nu}{N} , \qquad
       T = \sum_k \frac{\lambda_k}{\lambda_k + \nu} . $$

    A scan over $\ln \nu$, which starts at $T = \min(P, N)$ where the ridge vanishes, is followed by
    a search for the root of the derivative.

    Source: Defilippis, Loureiro, Misiakiewicz (2024) for the error; the minimisation over the
    threshold is derived here.

    >>> from orderparam.systems.scaling_laws import ScaleFreeFeatures
    >>> best = optimal_ridge(ScaleFreeFeatures(200, 80, noise=0.1))
    >>> round(float(best.ridge), 4), round(float(best.test_error), 5)
    (0.1321, 0.06191)
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
    """Split of N + P numbers into features and examples with the lowest test error.

    Fields:
        data_share: P/(N + P).
        ridge: best ridge for this split.
        test_error: E (f - f*)^2 for this split (no factor 1/2, without label noise).
        residual: largest entry of the gradient of ln test_error with respect to logit(data_share)
            and ln nu.
        converged: whether the minimum was found.
    """

    data_share: Float[Array, ""]
    ridge: Float[Array, ""]
    test_error: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def best_split(system: ParameterBudget) -> BestSplit:
    r"""Split of N + P into features and examples, and ridge, with the lowest test error of
    `joint_law`.

    The error is explicit in the share $P/(N + P)$ and in the threshold $\nu$ of `optimal_ridge`.
    It is minimised over both together, by a scan and Newton steps. The share and the ridge of the
    system are not used.

    Source: Maloney, Roberts, Sully (2022) for the question; Defilippis, Loureiro, Misiakiewicz
    (2024) for the error.

    >>> best = best_split(ParameterBudget(1000.0))
    >>> round(float(best.data_share), 4), round(float(best.test_error), 6)
    (0.5, 0.00984)
    """
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
    return BestSplit(
        data_share=share,
        ridge=ridge,
        test_error=bias + variance,
        residual=found.residual,
        converged=found.converged,
    )
