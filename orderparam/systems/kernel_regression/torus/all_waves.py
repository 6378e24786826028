"""Regression on random points of a torus with all waves of the kernel, and exact averages over the
target and its noise."""

import math
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import squareform

from orderparam.core.needs import at_least
from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.kernels.spectra import torus
from orderparam.systems.kernel_regression.torus.model import TorusRegression

# With p = s + d/2 the kernel of all waves is a mixture of products of theta functions,
#
#     sum_k (1 + |k|^2)^-p cos k.x = (1/Gamma(p)) int_0^inf dt t^(p-1) e^-t prod_j theta(x_j, t),
#     theta(x, t) = sum_k e^(-t k^2) cos k x = sqrt(pi/t) sum_m e^(-(x - 2 pi m)^2 / 4t),
#
# so that no wave is left out and the cost does not grow with the number of waves. The integral is a
# sum over equidistant values of ln t. Inputs are drawn from the points of a fine grid on the torus,
# so that values of theta are taken from a table.

_GRID = 8192  # grid points of each coordinate
_STEP = 0.4  # distance of two nodes in ln t
_LEFT_OUT = 1e-8  # share of the integral below the first and above the last t
_LACKING = 1e-3  # share of the power that the waves of a system may lack
_MOST = 2**27  # coordinates of the differences of all pairs of points; a gigabyte, held four times


class AveragedError(Result):
    """The error of regression on one set of inputs.

    Fields:
        test_error: mean of (f(x) - y(x))^2 over test inputs, targets and label noise, with targets
            y(x) without noise.
        converged: whether the test error is finite.
    """

    test_error: Float[Array, ""]
    converged: Bool[Array, ""]


def _fits(system: TorusRegression, *, tests: int = 256) -> None:
    """Raise `ValueError` if the pairs of points do not fit into memory."""
    count, dim = float(system.n_train), float(system.input_dim)
    most = math.floor(math.sqrt(tests**2 + 2 * _MOST / dim) - tests)
    if count > most:
        raise ValueError(
            f"n_train = {count:g}: must be at most {most} with {dim:g} inputs and tests = {tests}, "
            "because all pairs of points are held in memory"
        )


@experiment(check=_fits, needs={"tests": at_least(1)})
def all_waves_regression(
    system: TorusRegression, key: PRNGKeyArray, *, tests: int = 256
) -> AveragedError:
    r"""Error of regression with all waves of the kernel on n_train random points of a torus,
    averaged exactly over targets and label noise.

    $$ E (f(x) - y(x))^2 = C(x, x) - 2\, a \cdot C(X, x) + a \cdot (C(X, X) + \sigma^2)\, a, \qquad
       a = (K(X, X) + T)^{-1} K(X, x) $$

    with K the kernel, C the covariance of the target, X the training inputs, $\sigma^2$ the `noise`
    and T the `temperature`. The `cut` of the system is not applied.

    Args:
        tests: number of test inputs. Default 256.

    Raises:
        ValueError: for `tests` that is not a positive integer, an n_train that is not an integer,
            more pairs of points than fit into memory (some 16,000 points of one input, 5,500 of
            eight), or a system whose `spectrum` does not belong to its dimensions, or lacks more
            than 0.1 % of the power because of its `cut`.

    Accuracy: the kernel to 2e-6.

    Cost: O(n_train^2 input_dim) values of theta functions.

    Source: derived here.

    >>> import jax
    >>> space = TorusRegression.from_smoothness(5, 2.0, 2.0, 64, 0.1, 0.1, cut=30)
    >>> bool(all_waves_regression(space, jax.random.key(0)).test_error < 0.5)
    True
    """
    count, dim = system.size("n_train"), system.size("input_dim")
    relevant = system.size("target_dim")
    kernel_power, target_power = _powers(system)
    for power, first, size in (
        (kernel_power, system.spectrum.eigenvalues[0], dim),
        (target_power, system.spectrum.target_power[0], relevant),
    ):
        if float(first) * _mixture(power, size).total > 1 + _LACKING:
            raise ValueError(
                f"TorusRegression.cut = {float(system.cut):g}: leaves out more than {_LACKING:g} "
                "of the power; take a larger cut"
            )
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    train, new = (rng.integers(_GRID, size=(number, dim)) for number in (count, tests))

    def covariances(inputs: int, power: float) -> tuple[np.ndarray, np.ndarray]:
        """Covariances among the training points, and between training and test points."""
        x, other = train[:, :inputs], new[:, :inputs]
        first, second = np.triu_indices(count, 1)
        pairs = squareform(wave_kernel(x[first] - x[second], power))
        return pairs + np.eye(count), wave_kernel(x[:, None] - other, power)

    among, across = target_among, target_across = covariances(dim, kernel_power)
    if (relevant, target_power) != (dim, kernel_power):
        target_among, target_across = covariances(relevant, target_power)
    weights = cho_solve(cho_factor(among + float(system.temperature) * np.eye(count)), across)
    spread = target_among @ weights + float(system.noise) * weights
    error = 1.0 + np.mean(np.sum(weights * (spread - 2 * target_across), axis=0))
    return AveragedError(test_error=jnp.asarray(error), converged=jnp.isfinite(error))


def wave_kernel(
    differences: Int[np.ndarray, "*pair input"], power: float
) -> Float[np.ndarray, "*pair"]:
    """Sum over all waves k of (1 + |k|^2)^-power cos k.x, divided by its value at x = 0.

    Args:
        differences: integers j, for x = 2 pi j / 8192.
        power: larger than half the number of inputs.
    """
    mixture = _mixture(power, differences.shape[-1])
    steps = np.ascontiguousarray(np.moveaxis(differences % _GRID, -1, 0), np.int32)
    found = np.zeros(differences.shape[:-1])
    for share, theta in zip(mixture.shares, mixture.thetas, strict=True):
        product = np.full(found.shape, share / mixture.total, np.float32)
        for step in steps:
            product *= theta[step]
        found += product
    return found


class _Mixture(NamedTuple):
    """theta(x, t) at the points of the grid for each time of a mixture, the shares of the times,
    and the value of the mixture at x = 0."""

    shares: Float[np.ndarray, "time"]
    thetas: Float[np.ndarray, "time grid"]
    total: float


@cache  # many training sets share a kernel
def _mixture(power: float, dim: int) -> _Mixture:
    log_time = np.arange(-40.0, 6.0, _STEP)
    time = np.exp(log_time)
    shares = _STEP * np.exp(power * log_time - time - math.lgamma(power))
    thetas = np.array([_theta(each) for each in time])
    values = shares * thetas[:, 0] ** dim
    below, above = np.cumsum(values), np.cumsum(values[::-1])[::-1]
    kept = np.minimum(below, above) > _LEFT_OUT * values.sum()
    return _Mixture(shares[kept], thetas[kept].astype(np.float32), float(values[kept].sum()))


def _theta(time: float) -> Float[np.ndarray, "grid"]:
    x = 2 * np.pi * np.arange(_GRID) / _GRID
    if time > 1.0:
        k = np.arange(1, 7)[:, None]
        return 1.0 + 2.0 * np.sum(np.exp(-time * k**2) * np.cos(k * x), axis=0)
    images = x - 2 * np.pi * np.arange(-2, 4)[:, None]
    return math.sqrt(np.pi / time) * np.sum(np.exp(-(images**2) / (4 * time)), axis=0)


def _powers(system: TorusRegression) -> tuple[float, float]:
    """The exponents of the kernel and of the target, from the first two levels of the spectrum."""
    dim, relevant = system.size("input_dim"), system.size("target_dim")
    spectrum = system.spectrum
    # level 0 is k = 0, and of |k|^2 = 1 there are two waves for each input
    kernel = -math.log2(float(spectrum.eigenvalues[1] / spectrum.eigenvalues[0]))
    on_target = spectrum.target_power[1] / spectrum.target_power[0] / (2 * relevant)
    target = -math.log2(float(on_target))
    if kernel > dim / 2 and target > relevant / 2:
        smoothness, target_smoothness = kernel - dim / 2, target - relevant / 2
        own = torus(dim, smoothness, target_smoothness, float(system.cut), relevant)
        if all(
            a.shape == b.shape and np.allclose(a, b)
            for a, b in zip(
                (own.eigenvalues, own.target_power, own.multiplicities),
                (spectrum.eigenvalues, spectrum.target_power, spectrum.multiplicities),
                strict=True,
            )
        ):
            return kernel, target
    raise ValueError(
        f"spectrum does not belong to a torus with input_dim = {dim}, target_dim = {relevant} and "
        f"cut = {float(system.cut):g}: build the system with from_smoothness"
    )
