"""Exponents of a pool's spectrum and target, the learning exponent that follows from them, and the
learning curve of the full spectrum.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.kernels.effective_ridge import effective_ridge
from orderparam.solve.straight_line import straight_line
from orderparam.systems.scaling_laws.scale_free.model import ScaleFreeData

# ------------------------------------------------------------------------------------------------
# The exponent of a spectrum that is estimated from n examples.
#
# The small eigenvalues of a covariance or kernel matrix of n examples are not those of the
# population. For Gaussian features whose population eigenvalues are k^-a for k = 1, 2, ... to
# infinity, the Marchenko-Pastur equation is z = -s + (I/n) s^(1 - 1/a) with I = (pi/a)/sin(pi/a),
# and is solved by a curve: with s = r e^(i t), 0 < t < pi, c = 1 - 1/a,
#
#     r = [(I/n) sin(c t)/sin t]^a,    sample eigenvalue r sin(t/a)/sin(c t),
#     its rank k/n = 1 - [t - (a - 1) sin t sin(t/a)/sin(c t)]/pi.
#
# Their ratio to k^-a depends on k/n alone and is near one up to k ~ n/5 (derived here). Eigenvalues
# are divided by this ratio before any exponent is fitted. Errors of exponents come from
# half-samples of the examples, because neighbouring eigenvalues are not independent and the
# residuals of a fit do not determine its error.
#
# A target of power j^(-1 - b) on the population's modes has, on those of the sample, the
# power  (1/pi) |Im sum_j j^(-1-b) / (s + j^-a)| dx = r^(b/a - 1) sin(u t)/sin(u pi) dx / a, u = 1 -
# b/a,  between the eigenvalues x and x + dx (from the same resolvent, for 0 < b < 2 a; for larger b
# the first modes leak into all others). The power beyond rank k is therefore less than sum_(j >= k)
# j^(-1-b), by 6 % at k = n/20 and by 12 % at n/10, which would bias the exponent b of a
# straight-line fit.

Spectral = Float[np.ndarray, "mode"]

# values of t, dense towards pi, where k is small
_CURVE = np.pi - np.geomspace(np.pi * (1 - 1e-9), 1e-9, 2000)
_PER_OCTAVE = 6  # number of ranks that a fit uses
_OCTAVES = 1.0  # half width of the running window for local slopes
_SHORTEST = 2.0  # shortest window of a power law, in octaves
_EXPONENTS = 1 + np.geomspace(0.05, 7, 40)  # range of exponents for which the ratio is tabulated
_ROUNDS = 12
# range of exponents of a target's tail: smallest, largest, and largest in units of the spectrum's
_FLATTEST, _STEEPEST, _BELOW_TWICE = 0.01, 20.0, 1.999


def _sample_curve(exponent: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The relative rank k/n, log r, and the logarithm of the sample eigenvalue along t, in units of
    n^-exponent."""
    a, t = exponent, _CURVE
    inner = np.sin((1 - 1 / a) * t)
    rank = np.maximum(1 - (t - (a - 1) * np.sin(t) * np.sin(t / a) / inner) / np.pi, 1e-12)
    integral = np.pi / a / np.sin(np.pi / a)
    log_radius = a * np.log(integral * inner / np.sin(t))
    return rank, log_radius, log_radius + np.log(np.sin(t / a) / inner)


def sample_ratio(share: Float[np.ndarray, "mode"], exponent: float) -> Float[np.ndarray, "mode"]:
    """Ratio of sample to population eigenvalue at rank k = share n, 0 < share <= 1, for a spectrum
    k^-exponent with exponent > 1.
    """
    rank, _, log_value = _sample_curve(exponent)
    order = np.argsort(rank)
    log_ratio = log_value + exponent * np.log(rank)
    return np.exp(np.interp(np.log(share), np.log(rank[order]), log_ratio[order]))


def tail_ratio(
    share: Float[np.ndarray, "mode"], exponent: float, target: float
) -> Float[np.ndarray, "mode"]:
    """Ratio of the target's power beyond rank k = share n of the sample to that beyond rank k of
    the population, where the power of mode j is j^(-1 - target), 0 < target < 2 exponent.
    """
    rank, log_radius, log_value = _sample_curve(exponent)
    shift, values = 1 - target / exponent, np.exp(log_value)
    wave = np.sin(shift * _CURVE) / np.sin(shift * np.pi) if abs(shift) > 1e-9 else _CURVE / np.pi
    density = wave * np.exp(-shift * log_radius) * target / exponent
    beyond = np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(values))
    order = np.argsort(rank[1:])
    log_ratio = np.log(beyond) + target * np.log(rank[1:])
    return np.exp(np.interp(np.log(share), np.log(rank[1:][order]), log_ratio[order]))


def ranks(first: float, last: float) -> np.ndarray:
    """Whole numbers from first to last, spaced as evenly as possible in their logarithm."""
    count = max(2, round(_PER_OCTAVE * np.log2(last / first)) + 1)
    return np.unique(np.round(np.geomspace(first, last, count)).astype(int))


def local_exponents(log_rank: np.ndarray, log_value: np.ndarray) -> np.ndarray:
    """Local exponents -d log value / d log rank at every rank, each from a straight line fitted to
    all points at most one octave away.
    """
    slopes = np.empty(len(log_rank))
    for i, centre in enumerate(log_rank):
        near = np.abs(log_rank - centre) <= _OCTAVES * np.log(2)
        slopes[i] = -straight_line(log_rank[near], log_value[near]).slope
    return slopes


def corrected(rank: np.ndarray, values: np.ndarray, examples: int | None) -> np.ndarray:
    """Population eigenvalues at given ranks, from the eigenvalues of a sample.

    The values are divided by `sample_ratio` at the local exponent. This exponent is the slope of a
    parabola that is fitted to the logarithms of the result, because slopes between neighbours would
    be unstable. `examples` is n, or None if there are fewer features than examples, so that no
    correction is needed.
    """
    if examples is None:
        return values
    table = np.stack([sample_ratio(rank / examples, a) for a in _EXPONENTS])
    found = values
    for _ in range(_ROUNDS):
        exponents = -np.polyval(
            np.polyder(np.polyfit(np.log(rank), np.log(found), 2)), np.log(rank)
        )
        found = values / [np.interp(a, _EXPONENTS, ratios) for a, ratios in zip(exponents, table.T)]
    return found


@dataclass(frozen=True)
class PowerLaw:
    """A power law value = amplitude rank^-exponent inside a window of ranks.

    Fields:
        exponent: the exponent.
        amplitude: the amplitude.
        window: first and last rank.
        deviation: root mean square of ln value minus the law, inside the window.
    """

    exponent: float
    amplitude: float
    window: tuple[int, int]
    deviation: float


def fitted(rank: np.ndarray, values: np.ndarray, window: tuple[int, int]) -> PowerLaw:
    """Power law by least squares in the logarithms, inside the window."""
    inside = (rank >= window[0]) & (rank <= window[1])
    x, y = np.log(rank[inside]), np.log(values[inside])
    line = straight_line(x, y)
    return PowerLaw(
        -line.slope, float(np.exp(line.constant)), window, float(np.sqrt(line.chi_squared / len(x)))
    )


def widest(rank: np.ndarray, values: np.ndarray, tolerance: float) -> PowerLaw:
    """Power law in the widest window in which its deviation is below `tolerance`.

    A window spans at least two octaves. If no window satisfies the tolerance, the law with the
    smallest deviation is returned.
    """
    pairs = [(int(a), int(b)) for a in rank for b in rank if b >= a * 2**_SHORTEST]
    laws = [fitted(rank, values, pair) for pair in pairs]
    good = [law for law in laws if law.deviation < tolerance]
    if good:
        return max(good, key=lambda law: (law.window[1] / law.window[0], -law.deviation))
    return min(laws, key=lambda law: law.deviation)


@dataclass(frozen=True)
class Shapes:
    """Root mean square deviations of ln value from three fitted shapes, over all ranks.

    Fields:
        power: A k^-a.
        cutoff: A k^-a e^(-k/c).
        lognormal: quantiles of a log-normal law of `modes` members.
    """

    power: float
    cutoff: float
    lognormal: float


def shapes(rank: np.ndarray, values: np.ndarray, modes: int) -> Shapes:
    """Deviations from the three shapes, which have two, three and two fitted parameters."""
    y, one, log_rank = np.log(values), np.ones(len(rank)), np.log(rank)

    def deviation(columns: list[np.ndarray], bounds: tuple[list[float], list[float]]) -> float:
        fit = scipy.optimize.lsq_linear(np.stack(columns, axis=1), y, bounds)
        return float(np.sqrt(2 * fit.cost / len(y)))

    free, falling = [-np.inf, np.inf], [-np.inf, 0.0]
    quantile = scipy.special.ndtri(1 - (rank - 0.5) / modes)
    return Shapes(
        deviation([one, log_rank], ([free[0], falling[0]], [free[1], falling[1]])),
        deviation([one, log_rank, rank / rank[-1]], ([-np.inf] * 3, [np.inf, 0.0, 0.0])),
        deviation([one, quantile], ([-np.inf, 0.0], [np.inf, np.inf])),
    )


_FIRST = 2  # smallest rank of a fit
_SHARE = 4  # the last rank is M / 4, so that it is below half of a half-sample
# The last rank of target powers is M / 10, because the small modes of a pool carry a different
# share of the target from those of the population.
_TARGET_SHARE = 10
_RESOLVED = 1e-12  # fraction of the largest eigenvalue


class ScaleFreeFit(Result):
    """Eigenvalues and target tails of a pool at some ranks, and the exponents fitted to them.

    The error of an exponent is the root mean square of its differences from the values on
    half-samples of the pool. These values differ by chance, and also because the correction for the
    size of the sample is not exact.

    Fields:
        rank: ranks at which laws are fitted.
        eigenvalue: eigenvalues of K/M.
        population_eigenvalue: eigenvalues corrected for the size of the pool.
        local_exponent: local exponent of the corrected eigenvalues.
        target_tail: power of the target on all modes from each rank on.
        spectral_exponent: a of k^-a, in the widest window where ln lambda deviates by less than the
            tolerance.
        spectral_exponent_error: its error.
        target_exponent: b of target powers k^(-1 - b), from their sums beyond each rank up to M/10;
            at most 2a.
        target_exponent_error: its error.
        learning_exponent: min(b, 2a), exponent of the test error without ridge and noise.
        learning_exponent_error: its error.
        first: first rank of the window of spectral_exponent.
        last: last rank of that window.
        power_law: whether there is a window in which the deviation is below the tolerance;
            otherwise the best window of two octaves is used.
        power_deviation: root mean square deviation of ln lambda over all ranks from A k^-a.
        cutoff_deviation: root mean square deviation of ln lambda from A k^-a e^(-k/c).
        lognormal_deviation: root mean square deviation of ln lambda from the quantiles of a
            log-normal law.
    """

    rank: Float[Array, "rank"]
    eigenvalue: Float[Array, "rank"]
    population_eigenvalue: Float[Array, "rank"]
    local_exponent: Float[Array, "rank"]
    target_tail: Float[Array, "rank"]
    spectral_exponent: Float[Array, ""]
    spectral_exponent_error: Float[Array, ""]
    target_exponent: Float[Array, ""]
    target_exponent_error: Float[Array, ""]
    learning_exponent: Float[Array, ""]
    learning_exponent_error: Float[Array, ""]
    first: Float[Array, ""]
    last: Float[Array, ""]
    power_law: Bool[Array, ""]
    power_deviation: Float[Array, ""]
    cutoff_deviation: Float[Array, ""]
    lognormal_deviation: Float[Array, ""]


def _large_enough(system: ScaleFreeData, **_: object) -> None:
    if len(system.gram) < 100:
        raise ValueError(
            f"ScaleFreeData.gram has {len(system.gram)} examples: a spectrum's exponent needs at "
            "least 100"
        )


@theory(traced=False, check=_large_enough)
def scale_free_fit(
    system: ScaleFreeData, *, tolerance: float = 0.05, half_samples: int = 16
) -> ScaleFreeFit:
    r"""Exponents of a pool's spectrum and target, and the learning exponent min(b, 2a).

    Where the kernel has more modes than the pool has examples, eigenvalues are first corrected for
    the size $n$ of the pool. For population eigenvalues $k^{-a}$ and Gaussian features the sample
    eigenvalue of rank $k$ is, with $c = 1 - 1/a$, $I = (\pi/a) / \sin(\pi/a)$ and $0 < t < \pi$,

    $$ \frac{\sin(t/a)}{\sin ct} \Big[ \frac In \frac{\sin ct}{\sin t} \Big]^a , \qquad
       \frac kn = 1 - \frac1\pi \Big[ t - (a - 1) \frac{\sin t\, \sin(t/a)}{\sin ct} \Big] . $$

    The power of the target beyond each rank, for target powers $k^{-1-b}$, is multiplied by a
    factor that follows from the same resolvent (`tail_ratio`) and is part of the fit of b.

    Args:
        tolerance: largest root mean square deviation of ln lambda from a power law inside its
            window; 0.05 by default.
        half_samples: number of half-samples of the pool that give the errors; 16 by default. The
            same pool always gets the same half-samples.

    Raises:
        ValueError: for a pool of fewer than 100 examples.

    Cost: `half_samples` + 1 eigendecompositions, O(M^3) each.

    Source: the corrections are derived here, from the equation of Silverstein, Bai (1995);
    exponents as in Bahri, Dyer, Kaplan, Lee, Sharma (2024) and Spigler, Geiger, Wyart (2020).

    >>> gram = jnp.diag(200 * jnp.arange(1.0, 201.0) ** -1.5)
    >>> targets = jnp.sqrt(200 * jnp.arange(1.0, 201.0) ** -2.0)
    >>> found = scale_free_fit(ScaleFreeData(gram, targets), half_samples=2)
    >>> found.rank.shape, bool(found.power_law)
    ((23,), True)
    """
    gram, targets = np.asarray(system.gram), np.asarray(system.targets)
    pool = len(gram)
    values = _modes(gram, targets)[0]
    modes = int(np.sum(values > _RESOLVED * values[0]))
    finite = modes < pool - 1  # centring may have removed one mode
    rank = ranks(_FIRST, min(pool // _SHARE, modes - 1))

    def laws(gram: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        values, power = _modes(gram, targets)
        beyond = np.cumsum(power[::-1])[::-1]
        return (
            values[rank - 1],
            corrected(rank, values[rank - 1], None if finite else len(gram)),
            beyond[rank - 1],
        )

    raw, population, beyond = laws(gram, targets)
    law = widest(rank, population, tolerance)
    few = rank[rank <= pool // _TARGET_SHARE]
    within = few[few >= min(law.window[0], few[0 if len(few) < 8 else -8])]

    def of_target(beyond: np.ndarray, exponent: float, examples: int) -> float:
        sums = beyond[np.isin(rank, within)]
        return tail_exponent(within, sums, exponent, None if finite else examples)

    rng, drawn = np.random.default_rng(0), []
    for _ in range(half_samples):
        half = rng.choice(pool, pool // 2, replace=False)
        _, again, rest = laws(gram[np.ix_(half, half)], targets[half])
        exponent = fitted(rank, again, law.window).exponent
        drawn.append([exponent, of_target(rest, exponent, len(half))])
    target = of_target(beyond, law.exponent, pool)
    exponents = np.array([law.exponent, target, min(target, 2 * law.exponent)])
    halves = np.array([[a, b, min(b, 2 * a)] for a, b in drawn])
    error = np.sqrt(np.mean((halves - exponents) ** 2, axis=0))
    fits = shapes(rank, population, modes)
    return ScaleFreeFit(
        rank=jnp.asarray(rank.astype(float)),
        eigenvalue=jnp.asarray(raw),
        population_eigenvalue=jnp.asarray(population),
        local_exponent=jnp.asarray(local_exponents(np.log(rank), np.log(population))),
        target_tail=jnp.asarray(beyond),
        spectral_exponent=jnp.asarray(exponents[0]),
        spectral_exponent_error=jnp.asarray(error[0]),
        target_exponent=jnp.asarray(exponents[1]),
        target_exponent_error=jnp.asarray(error[1]),
        learning_exponent=jnp.asarray(exponents[2]),
        learning_exponent_error=jnp.asarray(error[2]),
        first=jnp.asarray(float(law.window[0])),
        last=jnp.asarray(float(law.window[1])),
        power_law=jnp.asarray(law.deviation < tolerance),
        power_deviation=jnp.asarray(fits.power),
        cutoff_deviation=jnp.asarray(fits.cutoff),
        lognormal_deviation=jnp.asarray(fits.lognormal),
    )


def tail_exponent(
    rank: np.ndarray, sums: np.ndarray, exponent: float, examples: int | None
) -> float:
    """Exponent b of the sums beyond each rank, where the power of mode j is A j^(-1-b).

    The logarithms are fitted by least squares. The sum over the modes is in closed form (Hurwitz's
    zeta function) and is multiplied by `tail_ratio`. `examples`: n, or None if there are fewer
    features than examples, so that no correction is needed. For a tail that falls faster than 2
    `exponent`, where the ratio is not known, the result is 2 `exponent`; for larger b the learning
    exponent does not depend on b.
    """

    exponent = float(np.clip(exponent, _EXPONENTS[0], _EXPONENTS[-1]))

    def scatter(b: float) -> float:
        expected = np.log(scipy.special.zeta(1 + b, rank))
        if examples is not None:
            expected = expected + np.log(tail_ratio(rank / examples, exponent, b))
        return float(np.var(np.log(sums) - expected))

    most = _STEEPEST if examples is None else min(_STEEPEST, _BELOW_TWICE * exponent)
    return float(
        scipy.optimize.minimize_scalar(scatter, bounds=(_FLATTEST, most), method="bounded").x
    )


def _modes(gram: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of gram/M in decreasing order, and the target's power on each."""
    values, vectors = np.linalg.eigh(gram / len(gram))
    return values[::-1], ((vectors.T @ targets) ** 2 / len(gram))[::-1]


class SpectralLearningCurve(Result):
    """Errors of kernel regression on a pool, predicted from its full spectrum (mean squares, no
    factor 1/2).

    Fields:
        test_error: error over the examples of the pool that are not learned.
        population_error: error over the whole pool.
        effective_dimension: sum lambda/(lambda + kappa).
        residual: residual of the equation for kappa.
        converged: whether it was solved.
    """

    test_error: Float[Array, ""]
    population_error: Float[Array, ""]
    effective_dimension: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def spectral_curve(system: ScaleFreeData) -> SpectralLearningCurve:
    r"""Learning curve of kernel regression from all eigenvalues and target powers of the pool.

    No power law is fitted to the spectrum. The threshold $\kappa$ solves $P = \text{ridge}/\kappa +
    \sum_k L_k$ with $L_k = \lambda_k / (\lambda_k + \kappa)$, and

    $$ \text{population\_error} = \frac{\sum_k y_k^2 (1 - L_k)^2}{1 - \sum_k L_k^2 / P} , \qquad
       \text{test\_error} = \frac{\text{population\_error}}{1 - P/M} , $$

    because $P$ of the $M$ examples are in the training set and have no error (without a ridge
    exactly none).

    Accuracy: the theory assumes that the modes of the pool are Gaussian features; on real images
    errors are a few per cent.

    Source: Bordelon, Canatar, Pehlevan (2020); Canatar, Bordelon, Pehlevan (2021).

    >>> gram = jnp.diag(200 * jnp.arange(1.0, 201.0) ** -1.5)
    >>> targets = jnp.sqrt(200 * jnp.arange(1.0, 201.0) ** -2.0)
    >>> curve = spectral_curve(ScaleFreeData(gram, targets, n_train=50))
    >>> round(float(curve.population_error), 5)
    0.04122
    """
    spectrum = system.spectrum
    solved = effective_ridge(spectrum, system.n_train, system.ridge)
    error = spectrum.target_power @ (1 - solved.learnability) ** 2 / solved.complement
    rest = 1 - system.n_train / len(system.gram)
    return SpectralLearningCurve(
        test_error=error / rest,
        population_error=error,
        effective_dimension=jnp.sum(solved.learnability),
        residual=solved.residual,
        converged=solved.converged,
    )
