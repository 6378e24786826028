"""How often the intervals of the observables hold the truth, and how often noise is taken for
something, on networks of which both are known.

    python benchmarks/inspect_coverage.py --repeats 400

Linear features x = z W with inputs z of covariance 1 and weights of variance 1/k, 1/(k + 1) .. have
similarity, alignment and dimension in closed form. "similarity of independent ones" counts p-values
below 0.05. Matrices with the noise of a Gaussian, of Student's law with 4 degrees of freedom and
with 1 to 5 directions count false outliers at 1 % and false power laws. Errors are those of the
share.
"""

import argparse
import os
from collections.abc import Callable
from functools import cache

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # small matrices: threads only wait for one another

import jax
import jax.numpy as jnp
import numpy as np

from orderparam.observables import (
    Observed,
    alignment,
    calibration,
    difference,
    difficulty,
    dimension,
    excess_kurtosis,
    feature_drift,
    kernel_drift,
    lazy_to_rich,
    learnability,
    overlap,
    power_law_tail,
    seed_overlap,
    similarity,
    tangent_kernel,
    weight_spectrum,
)

FRESH = 10_000
DECAY = 1 / np.arange(1, 31.0)
ROLLED = np.roll(DECAY, 1)


def _features(rng: np.random.Generator, z: np.ndarray, variances: np.ndarray, p: int) -> np.ndarray:
    return z @ (np.sqrt(variances)[:, None] * rng.normal(size=(len(variances), p)))


def _similar(n: int, p: int) -> Callable[[np.random.Generator], Observed]:
    def draw(rng: np.random.Generator) -> Observed:
        z = rng.normal(size=(n, 30))
        x, y = (_features(rng, z, variances, p) for variances in (DECAY, ROLLED))
        return similarity(x, y, estimand="neurons", draws=0)

    return draw


def _one_kernel(rng: np.random.Generator) -> Observed:
    """Two layers of relu features of one kernel."""
    z = rng.normal(size=(256, 20))
    x, y = (np.maximum(z @ rng.normal(size=(20, 64)), 0) for _ in range(2))
    return similarity(x, y, estimand="neurons", draws=0)


def _aligned(rng: np.random.Generator) -> Observed:
    z = rng.normal(size=(200, 30))
    return alignment(_features(rng, z, DECAY, 100), z[:, 1], draws=0)


def _wide(rng: np.random.Generator) -> Observed:
    z = rng.normal(size=(200, 30))
    return dimension(_features(rng, z, DECAY, 100), estimand="neurons")


def _dimension(rng: np.random.Generator) -> Observed:
    return dimension(rng.normal(size=(200, 30)) * np.sqrt(DECAY))


def _network_as_it_is(rng: np.random.Generator) -> Observed:
    z = rng.normal(size=(200, 30))
    return similarity(z * np.sqrt(DECAY), z * np.sqrt(ROLLED), draws=0)


def _kurtosis(rng: np.random.Generator) -> Observed:
    return excess_kurtosis(rng.normal(size=(300, 20)))


def _calibrated(rng: np.random.Generator) -> Observed:
    stated = rng.uniform(0.5, 1, 600)
    return calibration(stated, rng.random(600) < stated, seed=int(rng.integers(2**31))).measured


def _overconfident(rng: np.random.Generator) -> Observed:
    stated = rng.uniform(0.6, 0.9, 600)
    right = rng.random(600) < stated - 0.15
    return calibration(stated, right, seed=int(rng.integers(2**31))).measured


def _learned(which: int) -> Callable[[np.random.Generator], Observed]:
    """0: of the whole target x1 + (x2^2 - 1) / sqrt 2; 1 and 2: of its two modes."""

    def draw(rng: np.random.Generator) -> Observed:
        x = rng.normal(size=(300, 3))
        modes = np.column_stack([x[:, 0], (x[:, 1] ** 2 - 1) / 2**0.5])
        outputs = modes @ [0.8, 0.3] + 0.5 * np.sin(3 * x[:, 2])
        found = learnability(outputs, modes.sum(axis=1), modes if which else None)
        return found[max(which - 1, 0)]

    return draw


def _strength(theta: float) -> Callable[[np.random.Generator], Observed]:
    def draw(rng: np.random.Generator) -> Observed:
        n, p = 160, 80
        u, v = (
            vector / np.linalg.norm(vector) for vector in (rng.normal(size=n), rng.normal(size=p))
        )
        w = rng.normal(size=(n, p)) + theta * np.sqrt(n) * np.outer(u, v)
        outliers = weight_spectrum(w, seed=int(rng.integers(2**31))).outliers
        return outliers[0].strength if outliers else Observed("strength", np.nan)

    return draw


def _moved(
    rng: np.random.Generator, n: int, grown: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Linear features before and after some, by default the first three, have grown."""
    x = rng.normal(size=(n, 30)) * np.sqrt(DECAY)
    return x, x * np.sqrt(GROWN if grown is None else grown)


def _drift(which: int) -> Callable[[np.random.Generator], Observed]:
    def draw(rng: np.random.Generator) -> Observed:
        return kernel_drift(*(one @ one.T for one in _moved(rng, 150)), draws=0)[which]

    return draw


def _drift_of_later(rng: np.random.Generator) -> Observed:
    return kernel_drift(*(one @ one.T for one in _moved(rng, 150, LATER)), draws=0).norm


def _sketched(which: int) -> Callable[[np.random.Generator], Observed]:
    def draw(rng: np.random.Generator) -> Observed:
        v = rng.normal(size=(30, 64))
        features = [(one @ v)[:, :, None] for one in _moved(rng, 150)]
        return feature_drift(*features, draws=0)[which]

    return draw


def _gain(rng: np.random.Generator) -> Observed:
    before, after = _moved(rng, 150)
    y = before[:, 0]
    early, late = (alignment(one, y, estimand="examples", draws=0) for one in (before, after))
    return difference("gain", late, early)


def _units(rng: np.random.Generator, cosine: float, count: int) -> list[np.ndarray]:
    """Units of some trainings, of which any two have this cosine, in other orders."""
    common = rng.normal(size=(64, 200))
    return [
        rng.permutation(cosine**0.5 * common + (1 - cosine) ** 0.5 * rng.normal(size=(64, 200)))
        for _ in range(count)
    ]


def _overlap(cosine: float) -> Callable[[np.random.Generator], Observed]:
    def draw(rng: np.random.Generator) -> Observed:
        return overlap(*_units(rng, cosine, 2), seed=int(rng.integers(2**31))).measured

    return draw


def _seeds(rng: np.random.Generator, count: int = 5) -> Observed:
    """Trainings that have one fixed part in common, as trainings on one data set do."""
    common = np.random.default_rng(0).normal(size=(64, 200))
    trained = [
        rng.permutation(0.6**0.5 * common + 0.4**0.5 * rng.normal(size=common.shape))
        for _ in range(count)
    ]
    return seed_overlap(trained, seed=int(rng.integers(2**31)))


def _of_many_seeds() -> float:
    return _seeds(np.random.default_rng(2**32), 50).value


def _left_out(rng: np.random.Generator) -> Observed:
    """The read-out of 20 features that explain all but noise of variance 0.25."""
    x = rng.normal(size=(200, 20))
    y = x @ np.ones(20) / 20**0.5 + 0.5 * rng.normal(size=200)
    return difficulty(x, y, seed=int(rng.integers(2**31))).measured


@cache
def _trained() -> tuple:
    """A network of 32 tanh units that learned 60 examples of x1 x2, and its lazy-to-rich number on
    10000 fresh ones."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4))
    y = x[:, 0] * x[:, 1]
    start = jnp.asarray(rng.normal(size=(32, 4))), jnp.asarray(rng.normal(size=32))

    def network(theta: tuple, x: np.ndarray) -> jax.Array:
        w, a = theta
        return jnp.tanh(x @ w.T / 2) @ a / 32**0.5

    def error(theta: tuple) -> jax.Array:
        return jnp.mean((network(theta, x) - y) ** 2)

    theta = start
    slope = jax.jit(jax.value_and_grad(error))
    value, steps = np.inf, 0
    while value > 0.1 and steps < 20_000:
        value, gradient = slope(theta)
        theta, steps = jax.tree.map(lambda w, g: w - 0.1 * g, theta, gradient), steps + 1
    fresh = rng.normal(size=(FRESH, 4))
    across = tangent_kernel(network, start, fresh, x)
    given = tangent_kernel(network, start, x), network(start, x), network(theta, x), y
    before, after = (np.asarray(network(one, fresh)) for one in (start, theta))
    return before, after, across, given


def _number(rows: np.ndarray) -> Observed:
    before, after, across, given = _trained()
    return lazy_to_rich(before[rows], after[rows], across[rows], *given)


def _of_all_fresh() -> float:
    return _number(np.arange(FRESH)).value


def _lazy(rng: np.random.Generator) -> Observed:
    return _number(rng.permutation(FRESH)[:200])


GROWN = np.where(np.arange(30) < 3, 2.0, 1.0)
LATER = np.where((np.arange(30) >= 2) & (np.arange(30) < 10), 2.0, 1.0)
_KERNELS = DECAY, GROWN * DECAY  # eigenvalues before and after
TRUE = float(DECAY @ ROLLED / (DECAY @ DECAY))
DIMENSION = float(DECAY.sum() ** 2 / (DECAY @ DECAY))
NORM = float(np.linalg.norm(_KERNELS[1] - DECAY) / np.linalg.norm(DECAY))
NORM_OF_LATER = float(np.linalg.norm((LATER - 1) * DECAY) / np.linalg.norm(DECAY))
SHAPE = 1 - float(DECAY @ _KERNELS[1] / np.prod([np.linalg.norm(one) for one in _KERNELS]))
GAIN = float(np.diff([one[0] / np.linalg.norm(one) for one in _KERNELS])[0])
INTERVALS = {
    "similarity, n = 200, p = 50": (TRUE, _similar(200, 50)),
    "similarity, n = 200, p = 200": (TRUE, _similar(200, 200)),
    "similarity, n = 1000, p = 50": (TRUE, _similar(1000, 50)),
    "similarity of two layers of one kernel, n = 256, p = 64": (1.0, _one_kernel),
    "similarity of the network as it is, n = 200": (TRUE, _network_as_it_is),
    "alignment, n = 200, p = 100": (float(DECAY[1] / np.sqrt(DECAY @ DECAY)), _aligned),
    "dimension, n = 200, p = 100": (DIMENSION, _wide),
    "dimension of the network as it is, n = 200": (DIMENSION, _dimension),
    "kurtosis, n = 300": (0.0, _kurtosis),
    "calibration, perfect": (0.0, _calibrated),
    "calibration, 0.15 too sure": (0.15**2, _overconfident),
    "learnability of the target, n = 300": (0.55, _learned(0)),
    "learnability of a mode, n = 300": (0.8, _learned(1)),
    "learnability of a weak mode, n = 300": (0.3, _learned(2)),
    "strength 1.2 of a direction, 160 x 80": (1.2, _strength(1.2)),
    "strength 2 of a direction, 160 x 80": (2.0, _strength(2.0)),
    "lazy-to-rich number, n = 200": (_of_all_fresh, _lazy),
    "kernel drift, n = 150": (NORM, _drift(0)),
    "kernel drift of later directions, n = 150": (NORM_OF_LATER, _drift_of_later),
    "kernel drift in shape, n = 150": (SHAPE, _drift(1)),
    "kernel drift, n = 150, 64 directions": (NORM, _sketched(0)),
    "kernel drift in shape, n = 150, 64 directions": (SHAPE, _sketched(1)),
    "gain of alignment, n = 150": (GAIN, _gain),
    "overlap of two trainings, 64 units": (0.6, _overlap(0.6)),
    "overlap of five trainings, 64 units": (_of_many_seeds, _seeds),
    # least squares of 20 + 1 numbers on 199 examples
    "read-out left out, n = 200": (0.25 * (1 + 1 / 199) * (1 + 20 / (199 - 22)), _left_out),
}


def _independent(rng: np.random.Generator) -> bool:
    x, y = rng.normal(size=(60, 10)), rng.normal(size=(60, 20)) ** 2
    return similarity(x, y, draws=199).p_value <= 0.05


def _noise(n: int, p: int, freedom: float = np.inf) -> Callable[[np.random.Generator], bool]:
    def draw(rng: np.random.Generator) -> bool:
        w = rng.normal(size=(n, p)) if np.isinf(freedom) else rng.standard_t(freedom, size=(n, p))
        return len(weight_spectrum(w, seed=int(rng.integers(2**31))).outliers) > 0

    return draw


def _tail(aspect: int, spikes: int) -> Callable[[np.random.Generator], bool]:
    def draw(rng: np.random.Generator) -> bool:
        n, p = 64 * aspect, 64
        u, v = (np.linalg.qr(rng.normal(size=(size, 5)))[0][:, :spikes] for size in (n, p))
        w = rng.normal(size=(n, p)) + 3 * np.sqrt(n) * u @ v.T
        spectrum = weight_spectrum(w, seed=int(rng.integers(2**31)))
        return bool(np.isfinite(power_law_tail(spectrum).exponent.value))

    return draw


ALARMS = {
    "similarity of independent ones at 5 %": _independent,
    "outliers at 1 %, 64 x 64": _noise(64, 64),
    "outliers at 1 %, 256 x 64": _noise(256, 64),
    "outliers at 1 %, Student 4, 64 x 32": _noise(64, 32, 4.0),
    "power laws, aspect 1, no direction": _tail(1, 0),
    "power laws, aspect 4, one direction": _tail(4, 1),
    "power laws, aspect 1, five directions": _tail(1, 5),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--only", default="", help="a part of the name")
    asked = parser.parse_args()
    repeats, only = asked.repeats, asked.only
    for name, (known_truth, draw) in INTERVALS.items():
        if only not in name:
            continue
        truth = known_truth() if callable(known_truth) else known_truth
        found = [draw(np.random.default_rng(seed)) for seed in range(repeats)]
        known = [one for one in found if np.isfinite(one.value)]
        held = sum(one.low <= truth <= one.high for one in known) / len(known)
        mean = np.mean([one.value for one in known])
        spread = np.std([one.value for one in known]) / len(known) ** 0.5
        print(
            f"{name}: held {held:.3f} ({np.sqrt(held * (1 - held) / len(known)):.3f}), "
            f"mean {mean:.4f} ({spread:.4f}), truth {truth:.4f}, not determined "
            f"{repeats - len(known)}",
            flush=True,
        )
    for name, alarm in ALARMS.items():
        if only not in name:
            continue
        share = np.mean([alarm(np.random.default_rng(seed)) for seed in range(repeats)])
        print(f"{name}: {share:.3f} ({np.sqrt(share * (1 - share) / repeats):.3f})", flush=True)


if __name__ == "__main__":
    main()
