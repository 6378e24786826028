"""Extrapolation of a learning curve: the self-consistent theory with a power law and a floor of the
target that are inferred from the measured points.

The largest modes of a kernel on M data points are those of the population; the small ones are not,
because M points cannot tell small modes apart. Kernels on real data have spectra and targets that
decay as powers of the mode number (Spigler, Geiger and Wyart 2020; Bahri et al. 2024). The
eigenvalues are continued by the power law that keeps the trace. Of the target, the power beyond the
first modes is A k^-b, above a floor s2 that no mode explains; a short curve hardly determines how b
and s2 share the measured error, so all values are kept, each weighted by how well it explains the
measured decline. The error of the theory itself is modelled as a random walk in log n, whose size
follows from the measured part of the curve. This is derived for this package and not in the cited
papers.

The numbers below were chosen on the tuning tables of `benchmarks/forecast_calibration.py`, which
are different from the tables that it reports.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from orderparam.core.late import logsumexp

RESOLVED = 1 / 2  # share of the pool's modes whose eigenvalues are kept
HEAD = 1 / 40  # share of the modes whose individual powers are taken from the pool
# number of modes of the continuation, and of levels and values of kappa in its table
MODES, PER_DECADE, THRESHOLDS = 1e9, 24, 400
EARLIEST = 1 / 12  # share of the examples below which measured sizes are left out
# prior size of the theory's error per factor e in n; the noise of a measured point is a third of it
WALK = 0.05
FREEDOM = 4.0  # degrees of freedom of that prior
SLOPE = 0.25  # further error of the forecast, as a share of the predicted change of the log error
EXPONENTS = np.geomspace(0.05, 12, 26)
# values of the floor, as shares of the last measured error
FLOORS = np.array([0, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.96])
NO_FLOOR = 4.0  # prior weight of a floor of zero, relative to each other value

Modes = Float[np.ndarray, "mode"]
Sizes = Float[np.ndarray, "size"]


class Tabulated:
    """The self-consistent theory of a continued spectrum at a ridge on a grid of thresholds kappa,
    for all sizes and targets.

    With kappa given everything is explicit: L_k = lambda_k/(lambda_k + kappa), P = T/kappa + sum m
    L, 1 - gamma = [T/kappa + sum m L (1 - L)]/P, and the error against noisy labels is [sum (1 -
    L)^2 Y + s2]/(1 - gamma) (`orderparam.kernels.effective_ridge` solves the same equation for
    kappa). Between grid points logarithms are interpolated.

    eigenvalues: of K/M on a pool of M examples, in decreasing order. capacity: alpha of lambda_k ~
    k^-alpha beyond the resolved modes; inf when there are no others.
    """

    def __init__(self, eigenvalues: Modes, examples: int, temperature: float):
        positive = eigenvalues[eigenvalues > 1e-14 * eigenvalues[0]]
        resolved = min(max(4, int(RESOLVED * examples)), len(positive))
        left = float(positive[resolved:].sum())
        self.capacity, ridge = np.inf, temperature
        values, counts = positive, np.ones(len(positive))
        if left > 1e-10 * positive.sum():
            last = np.exp(np.mean(np.log(positive[max(resolved - 3, 0) : resolved + 3])))
            self.capacity = 1 + resolved * last / left
            edges = np.geomspace(resolved, MODES, int(PER_DECADE * np.log10(MODES / resolved)) + 2)
            # exact over each level: the trace is kept
            traces = left * -np.diff((edges / resolved) ** (1 - self.capacity))
            values = np.concatenate([positive[:resolved], traces / np.diff(edges)])
            counts = np.concatenate([np.ones(resolved), np.diff(edges)])
            ridge = temperature + left * (edges[-1] / resolved) ** (1 - self.capacity)
        self.upper = np.cumsum(counts)
        self.lower = self.upper - counts
        thresholds = values[0] * np.exp(np.linspace(2, -50, THRESHOLDS))
        learned = values / (values + thresholds[:, None])
        sizes = ridge / thresholds + learned @ counts
        # where a finite spectrum is exhausted P no longer grows
        kept = np.append(True, np.diff(sizes) > 1e-9 * sizes[1:])
        learned, sizes, thresholds = learned[kept], sizes[kept], thresholds[kept]
        rest = (ridge / thresholds + (learned * (1 - learned)) @ counts) / sizes
        self._log_sizes = np.log(sizes)
        self.unlearned = (1 - learned) ** 2 / rest[:, None]
        self.enlarged = 1 / rest
        self.dimension = learned @ counts

    def at(
        self, n_train: Sizes, values: Float[np.ndarray, "*row threshold"]
    ) -> Float[np.ndarray, "*row size"]:
        """Interpolates tabulated positive values at training-set sizes."""
        logs = np.log(np.maximum(values, 1e-300))
        flat = logs.reshape(-1, logs.shape[-1])
        rows = [np.interp(np.log(n_train), self._log_sizes, row) for row in flat]
        return np.exp(np.array(rows)).reshape(*logs.shape[:-1], len(n_train))


@dataclass(frozen=True)
class Extrapolated:
    """The result of `extrapolate`.

    log_change: (size,) posterior mean of log E(n) - log E(last measured size), and spread: its
    standard deviation, that of the shape of the forecast only, without the scatter of the pool.
    floor: posterior mean of s2 as a share of the last measured error, its 2.5 and 97.5 % points,
    and the posterior probability that there is none. source: exponential of the posterior mean of
    log b. dimension: (size,) number of learned modes.
    """

    log_change: Float[np.ndarray, "size"]
    spread: Float[np.ndarray, "size"]
    dimension: Float[np.ndarray, "size"]
    floor: float
    floor_interval: tuple[float, float]
    without_floor: float
    source: float
    capacity: float
    misfit: float


def extrapolate(
    eigenvalues: Modes,
    power: Modes,
    temperature: float,
    n_train: Float[np.ndarray, "measured"],
    error: Float[np.ndarray, "measured"],
    sizes: Sizes,
    examples: int | None = None,
) -> Extrapolated:
    """The learning curve at `sizes`, relative to the last measured error.

        E(P) = [sum_{k <= head} (1 - L_k)^2 Y_k + A sum_{k > head} (1 - L_k)^2 (k^-b)' + s2] / (1 -
        gamma)

    with Y_k the target's power on the first modes minus its share of the noise, and A such that the
    curve passes through the last measured point. Every b of EXPONENTS and every share of the floor
    of FLOORS is weighted by Student's likelihood of its deviations from the other measured points
    (a random walk in log n of unknown size).

    eigenvalues, power: of K/M and of the target on its eigenvectors (summing to the mean square of
    the target), in decreasing order of the eigenvalues. n_train, error: held-out errors against
    noisy labels in increasing order of n_train; the curve passes through the last one. examples: M,
    where it is not the number of modes; measured sizes may be larger. For a kernel with fewer
    modes, all of which are resolved, there is nothing to weigh: the power of each mode is taken
    from the pool, and the rest is floor.
    """
    examples = examples or len(eigenvalues)
    theory = Tabulated(eigenvalues, examples, temperature)
    used = (n_train >= EARLIEST * max(examples, n_train[-1])) & (n_train >= 6)
    used[-2:] = True
    n_train, error = n_train[used], error[used]
    last, count = len(n_train) - 1, len(n_train)
    everywhere = np.append(n_train, sizes)
    shares, exponents = FLOORS, EXPONENTS
    finite = bool(np.isinf(theory.capacity))
    if finite:
        at_last_and_end = _resolved(
            theory, power, examples, error[last], np.array([n_train[last], 1e12]), 0
        )
        shares, exponents = np.exp(at_last_and_end[0, :, 1]) / error[last], np.array([np.inf])
    curves = (_resolved if finite else _curves)(
        theory, power, examples, error[last], everywhere, last
    )
    weights, misfit = weighed(curves, shares, n_train, error)
    change, spread = _ahead(
        curves[..., count:] - np.log(error[last]), weights, misfit, n_train, sizes
    )
    floors = weights.sum(axis=1)
    low, high = np.interp([0.025, 0.975], np.cumsum(floors), shares)
    return Extrapolated(
        change,
        spread,
        theory.at(sizes, theory.dimension),
        float(floors @ shares),
        (float(low), float(high)),
        0.0 if finite else float(floors[0]),
        float(np.exp(weights.sum(axis=0) @ np.log(exponents))),
        float(theory.capacity),
        float(misfit.min()),
    )


def weighed(
    curves: np.ndarray,
    shares: np.ndarray,
    n_train: Float[np.ndarray, "measured"],
    error: Float[np.ndarray, "measured"],
) -> tuple[np.ndarray, np.ndarray]:
    """The posterior weight (floor, exponent) of every curve, and its misfit to the measured
    points."""
    last = len(n_train) - 1
    deviations = curves[..., :last] - np.log(error[:last])
    before = np.log(n_train[last] / n_train[:last])
    covariance = WALK**2 * np.minimum.outer(before, before) + (WALK * 0.4) ** 2 * (np.eye(last) + 1)
    misfit = np.einsum("fbi,ij,fbj->fb", deviations, np.linalg.inv(covariance), deviations)
    prior = np.log(np.where(shares == 0, NO_FLOOR, 1.0))[:, None]
    likelihood = prior - 0.5 * (FREEDOM + last) * np.log1p(misfit / FREEDOM)
    return np.exp(likelihood - logsumexp(likelihood)), misfit


def _ahead(
    ahead: np.ndarray,
    weights: np.ndarray,
    misfit: np.ndarray,
    n_train: Float[np.ndarray, "measured"],
    sizes: Sizes,
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the change of the log error at sizes."""
    change = np.einsum("fb,fbs->s", weights, ahead)
    shape = np.einsum("fb,fbs->s", weights, (ahead - change) ** 2)
    walk = WALK**2 * float(np.sum(weights * (FREEDOM + misfit))) / (FREEDOM + len(n_train) - 1)
    distance = np.abs(np.log(sizes / n_train[-1]))
    return change, np.sqrt(shape + walk * distance + (SLOPE * change) ** 2)


def _resolved(
    theory: Tabulated, power: Modes, examples: int, anchor: float, sizes: Sizes, last: int
) -> np.ndarray:
    """Log errors (1, 1, size) for finitely many modes, all resolved: their powers are known, and
    the rest of the last measured error is floor."""
    enlarged = theory.at(sizes, theory.enlarged)
    resolved = np.maximum(power[: len(theory.upper)] - anchor / enlarged[last] / examples, 0.0)
    bias = theory.at(sizes, theory.unlearned @ resolved)
    curve = bias + max(anchor - bias[last], 0.0) * enlarged / enlarged[last]
    return np.log(curve * anchor / curve[last])[None, None]


def _curves(
    theory: Tabulated, power: Modes, examples: int, anchor: float, sizes: Sizes, last: int
) -> np.ndarray:
    """Log errors (floor, exponent, size) of every hypothesis. Where floor and first modes together
    exceed the last measured error, the curve is scaled down to it and fits badly."""
    head = min(max(4, int(HEAD * examples)), len(theory.upper) - 1)
    powers = (
        np.maximum(theory.lower, head) ** -EXPONENTS[:, None]
        - np.maximum(theory.upper, head) ** -EXPONENTS[:, None]
    )
    enlarged = theory.at(sizes, theory.enlarged)
    tail = theory.at(sizes, (theory.unlearned @ powers.T).T)
    noise = FLOORS * anchor / enlarged[last]
    resolved = np.maximum(power[:head] - noise[:, None] / examples, 0.0)
    base = theory.at(sizes, (theory.unlearned[:, :head] @ resolved.T).T) + noise[:, None] * enlarged
    rest = anchor - base[:, last]
    fitted = base[:, None, :] + rest[:, None, None] * (tail / tail[:, last : last + 1])[None]
    scaled = (base * (anchor / base[:, last : last + 1]))[:, None, :]
    return np.log(np.where(rest[:, None, None] > 0, np.maximum(fitted, 1e-300), scaled))
