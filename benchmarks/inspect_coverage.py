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
from collections.abc import Callable

import numpy as np

from orderparam.observables import (
    Observed,
    alignment,
    calibration,
    dimension,
    excess_kurtosis,
    power_law_tail,
    similarity,
    weight_spectrum,
)

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


TRUE = float(DECAY @ ROLLED / (DECAY @ DECAY))
DIMENSION = float(DECAY.sum() ** 2 / (DECAY @ DECAY))
INTERVALS = {
    "similarity, n = 200, p = 50": (TRUE, _similar(200, 50)),
    "similarity, n = 200, p = 200": (TRUE, _similar(200, 200)),
    "similarity, n = 1000, p = 50": (TRUE, _similar(1000, 50)),
    "similarity of the network as it is, n = 200": (TRUE, _network_as_it_is),
    "alignment, n = 200, p = 100": (float(DECAY[1] / np.sqrt(DECAY @ DECAY)), _aligned),
    "dimension, n = 200, p = 100": (DIMENSION, _wide),
    "dimension of the network as it is, n = 200": (DIMENSION, _dimension),
    "kurtosis, n = 300": (0.0, _kurtosis),
    "calibration, perfect": (0.0, _calibrated),
    "calibration, 0.15 too sure": (0.15**2, _overconfident),
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
    repeats = parser.parse_args().repeats
    for name, (truth, draw) in INTERVALS.items():
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
        share = np.mean([alarm(np.random.default_rng(seed)) for seed in range(repeats)])
        print(f"{name}: {share:.3f} ({np.sqrt(share * (1 - share) / repeats):.3f})", flush=True)


if __name__ == "__main__":
    main()
