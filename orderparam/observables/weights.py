r"""The singular values of a layer's weights: the bulk that noise explains, and the outliers, which
are counted.

Singular values are in units of $\sigma\sqrt n$, where $\sigma^2$ is the variance of the bulk,
$\sum_{i>k} s_i^2/((n-k)(p-k))$ for k outliers, n rows and $p \le n$ columns. The largest singular
values are tested one after the other against noise: against the exact distribution for a Gaussian
matrix of that size where the entries look Gaussian, and otherwise against matrices of the same
entries in random order.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import linalg, stats

from orderparam.observables import spiked
from orderparam.observables.observable import Null, Observed, clocked

FALSE_ALARMS = 0.01
MOST = 100  # largest number of outliers that are counted
_KURTOSIS = 1.0  # excess kurtosis of the entries above which they are not taken for Gaussian
_CHECKS = 19  # number of permutations that have to agree with the Gaussian distribution
SOURCE = "Marchenko and Pastur 1967; Benaych-Georges and Nadakuditi 2012; exact law derived here"


@dataclass(frozen=True)
class Outlier:
    """A direction of the weights beyond noise.

    value: its singular value, with p-value. strength: theta of the rank-one spike that produces it.
    long_overlap, short_overlap: squared overlaps of the singular vectors with the spike, as
    predicted from theta. shift_overlap: measured overlap of both vectors with the k leading ones of
    the change since the start; NaN without a start.
    """

    value: Observed
    strength: Observed
    long_overlap: float
    short_overlap: float
    shift_overlap: tuple[float, float]


@dataclass(frozen=True)
class WeightSpectrum:
    """The result of `weight_spectrum`.

    singular_values: of W/(sigma sqrt n), the largest first. noise: sigma. edge: the edge of the
    Marchenko-Pastur bulk. outliers: the largest first. least_strength: the theta that is found with
    probability 1/2. null: the null distribution of the outliers. shift: |W - W_0|/|W_0|.
    stable_rank: |W|_F^2 / |W|^2. initial: the spectrum of the weights at the start; change: that of
    the difference; None without a start.
    """

    rows: int
    columns: int
    singular_values: Float[np.ndarray, "value"]
    noise: float
    edge: float
    outliers: tuple[Outlier, ...]
    least_strength: float
    null: str
    shift: float
    stable_rank: Observed
    initial: "WeightSpectrum | None"
    change: "WeightSpectrum | None"


def weight_spectrum(
    weights: Float[np.ndarray, "out in"],
    initial: Float[np.ndarray, "out in"] | None = None,
    *,
    false_alarms: float = FALSE_ALARMS,
    seed: int = 0,
) -> WeightSpectrum:
    """The singular values of a weight matrix, with the outliers that noise does not explain.

    Args:
        weights: (out, in); a convolution's (out, in, height, width) counts as (out, in height
            width).
        initial: The same weights before training: outliers in their spectrum and in that of the
            change are counted too.
        false_alarms: Probability of an outlier where there is none.
        seed: Seed of random numbers.

    Raises:
        ValueError: for fewer than two rows or columns, entries that are not finite, weights that
            are all equal, and other shapes of `initial`.

    Accuracy: false alarms at 1 % occurred in 0.5 to 0.7 (+- 0.4) % of 400 Gaussian matrices, and in
        1.3 +- 0.6 % with entries of Student's law with 4 degrees of freedom
        (`benchmarks/inspect_coverage.py`). Intervals of
        theta are exact for Gaussian noise. Cost: n p^2 operations, and 100 times as many for each
        outlier where entries are put in random order.

    Theory: one step of gradient descent leaves one outlier, for a target with one linear direction;
        a lazy network leaves none.

    Source: Marchenko and Pastur 1967; Benaych-Georges and Nadakuditi 2012 (overlaps); exact law
        derived here, after Dumitriu and Edelman 2002.

    >>> rng = np.random.default_rng(0)
    >>> noise = rng.normal(size=(80, 40))
    >>> len(op.observables.weight_spectrum(noise).outliers)
    0
    >>> spike = 3 * np.outer(np.ones(80), np.ones(40)) / 40**0.5
    >>> len(op.observables.weight_spectrum(noise + spike).outliers)
    1
    """
    w = _matrix("weights", weights)
    if initial is None:
        return _spectrum(w, None, false_alarms, seed)
    start = _matrix("initial", initial)
    if np.shape(initial) != np.shape(weights):
        raise ValueError(
            f"initial has shape {np.shape(initial)} and weights {np.shape(weights)}: must be equal"
        )
    return _spectrum(w, start, false_alarms, seed)


def _matrix(name: str, weights: np.ndarray) -> Float[np.ndarray, "long short"]:
    w = np.asarray(weights)
    if w.ndim < 2 or w.dtype.kind not in "biuf":
        raise ValueError(f"{name}: must be a matrix of real numbers, not {w.dtype} {w.shape}")
    w = w.reshape(len(w), -1).astype(np.float64)
    if min(w.shape) < 2:
        raise ValueError(f"{name} has shape {w.shape}: must have at least two rows and columns")
    if not np.isfinite(w).all():
        raise ValueError(f"{name} holds entries that are not finite")
    if np.ptp(w) == 0:
        raise ValueError(f"{name}: all entries are equal")
    return w if w.shape[0] >= w.shape[1] else w.T


def _spectrum(
    w: np.ndarray, start: np.ndarray | None, false_alarms: float, seed: int
) -> WeightSpectrum:
    rng = np.random.default_rng(seed)
    n, p = w.shape
    with clocked() as seconds:
        u, s, v = np.linalg.svd(w, full_matrices=False)
        gaussian = _looks_gaussian(w, rng)
        p_values = _count(w, (u, s, v), gaussian, false_alarms, rng)
    k = len(p_values)
    bulk = float(np.sqrt(np.sum(s[k:] ** 2) / ((n - k) * (p - k))))
    noise = max(bulk, 1e-12 * s[0] / np.sqrt(n))  # no bulk: the change has low rank
    values = s / (noise * np.sqrt(n))
    null = "a Gaussian matrix of this size" if gaussian else "the same entries in random order"
    change = None if start is None else _change(w, start, false_alarms, seed)
    moved = None if start is None else np.linalg.svd(w - start, full_matrices=False)
    found = []
    for i, p_value in enumerate(p_values):
        measured = Observed(
            "singular value", float(values[i]), p_value=p_value, estimand="entries",
            source=SOURCE, seconds=seconds[0],
        )  # fmt: skip
        strength = _strength(values[i], n - i, p - i, rng)
        aspect = (p - i) / (n - i)
        shift = (np.nan, np.nan)
        if moved is not None:
            shift = (
                float(np.sum((u[:, i] @ moved[0][:, :k]) ** 2)),
                float(np.sum((v[i] @ moved[2][:k].T) ** 2)),
            )
        found.append(Outlier(measured, strength, *spiked.overlaps(strength.value, aspect), shift))
    relative = np.nan if start is None else float(np.linalg.norm(w - start) / np.linalg.norm(start))
    return WeightSpectrum(
        n, p, values, noise, spiked.edge(p / n), tuple(found), _least(n, p, false_alarms, rng),
        null, relative, _stable_rank(s, n, p, rng),
        None if start is None else _spectrum(start, None, false_alarms, seed), change,
    )  # fmt: skip


def _change(
    w: np.ndarray, start: np.ndarray, false_alarms: float, seed: int
) -> WeightSpectrum | None:
    return (
        None
        if np.ptp(w - start) <= 1e-12 * np.abs(w).max()
        else _spectrum(w - start, None, false_alarms, seed)
    )


def _looks_gaussian(w: np.ndarray, rng: np.random.Generator) -> bool:
    """True if the entries have no heavy tails, and if matrices of the entries in random order
    exceed the edge as often as a Gaussian matrix does: of 19 draws at most 4 beyond its 95 % point
    (probability 0.998)."""
    if abs(stats.kurtosis(w, axis=None)) > _KURTOSIS:
        return False
    n, p = w.shape
    noise = np.sqrt(np.mean((w - w.mean()) ** 2))
    tops = [_top(rng.permutation(w.ravel()).reshape(n, p) - w.mean()) for _ in range(_CHECKS)]
    p_values = spiked.probability(np.array(tops) / (noise * np.sqrt(n)), n, p, rng, 399)
    return bool(np.sum(p_values <= 0.05) <= 4)


def _top(w: np.ndarray) -> float:
    """The largest singular value of a matrix with more rows than columns."""
    last = w.shape[1] - 1
    square = linalg.eigh(w.T @ w, eigvals_only=True, subset_by_index=[last, last])[0]
    return float(np.sqrt(max(square, 0.0)))


def _count(
    w: np.ndarray,
    parts: tuple[np.ndarray, np.ndarray, np.ndarray],
    gaussian: bool,
    false_alarms: float,
    rng: np.random.Generator,
) -> list[float]:
    """The p-values of the outliers, each tested after those before it were subtracted."""
    (n, p), (u, s, v), found = w.shape, parts, []
    for k in range(min(MOST, p - 1)):
        noise = np.sqrt(np.sum(s[k:] ** 2) / ((n - k) * (p - k)))
        if noise <= 1e-12 * s[0]:
            break
        if gaussian:
            value = s[k] / (noise * np.sqrt(n - k))
            p_value = float(spiked.probability(value, n - k, p - k, rng, int(20 / false_alarms)))
        else:
            p_value = _permuted(w - (u[:, :k] * s[:k]) @ v[:k], s[k], k, int(1 / false_alarms), rng)
        if p_value > false_alarms:
            break
        found.append(p_value)
    return found


def _permuted(rest: np.ndarray, top: float, k: int, draws: int, rng: np.random.Generator) -> float:
    """The p-value of the residual's top among matrices of its entries in random order, with n - k
    rows and p - k columns and the same sum of squares."""
    n, p = rest.shape
    scale = np.sqrt(n * p / ((n - k) * (p - k)))
    entries = rest.ravel()
    drawn = [
        _top(scale * rng.permutation(entries)[: (n - k) * (p - k)].reshape(n - k, p - k))
        for _ in range(draws)
    ]
    return Null("entries in random order", np.array(drawn)).p_value(top)


def _strength(value: float, rows: int, columns: int, rng: np.random.Generator) -> Observed:
    """The strength theta of a direction with this singular value; the interval holds the thetas
    under which the value is within 95 %."""
    drawn = spiked.strengths(value, rows, columns, rng)
    low, middle, high = np.quantile(drawn, [0.025, 0.5, 0.975])
    return Observed(
        "strength", float(middle), float(low), float(high), estimand="entries", source=SOURCE
    )


def _least(rows: int, columns: int, false_alarms: float, rng: np.random.Generator) -> float:
    """The strength at which the singular value exceeds the critical one in half of the cases."""
    values = spiked.edge(columns / rows) * np.geomspace(0.9, 1.6, 60)
    found = spiked.probability(values, rows, columns, rng, int(4 / false_alarms))
    critical = values[np.argmax(found <= false_alarms)]
    return float(np.median(spiked.strengths(critical, rows, columns, rng, 400)))


def _stable_rank(s: np.ndarray, rows: int, columns: int, rng: np.random.Generator) -> Observed:
    """The stable rank |W|_F^2 / |W|^2. Its null distribution is that of Gaussian noise; structure
    makes it smaller."""
    values = float(np.sum(s**2) / s[0] ** 2)
    shape = (rows, columns)
    draws = 19 if rows * columns**2 < 1e8 else 0
    noise = np.array([rows * columns / _top(rng.normal(size=shape)) ** 2 for _ in range(draws)])
    null = Null("a Gaussian matrix of this size", -noise) if draws else None
    p_value = null.p_value(-values) if null else np.nan
    return Observed(
        "stable rank", values, p_value=p_value, null=null, estimand="entries", source=SOURCE
    )
