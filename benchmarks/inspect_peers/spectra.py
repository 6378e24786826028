"""Spectra of weights: outliers and power laws of Gaussian matrices (there are none), of matrices
with one strong direction, and of a population with a power law of known exponent."""

import numpy as np

from inspect_peers.contest import Answer, Contest, Package
from orderparam.observables import power_law_tail, weight_spectrum

COLUMNS = 128
EXPONENT = 2.5  # of the density of the population's eigenvalues


def _gaussian(aspect: int, directions: int = 0):
    def draw(seed: int) -> tuple[np.ndarray]:
        rng = np.random.default_rng(seed)
        n = aspect * COLUMNS
        u, v = (
            np.linalg.qr(rng.normal(size=(size, 5)))[0][:, :directions] for size in (n, COLUMNS)
        )
        return (rng.normal(size=(n, COLUMNS)) + 3 * n**0.5 * u @ v.T,)

    return draw


def _pareto(seed: int) -> tuple[np.ndarray]:
    """W = Z Lambda^(1/2) with eigenvalues Lambda drawn from a power law."""
    rng = np.random.default_rng(seed)
    spread = rng.random(COLUMNS) ** (-1 / (EXPONENT - 1))
    return (rng.normal(size=(4 * COLUMNS, COLUMNS)) * spread**0.5,)


def _our_outliers(w: np.ndarray) -> Answer:
    found = len(weight_spectrum(w).outliers)
    return Answer(float(found), alarm=found > 0)


def _our_tail(w: np.ndarray) -> Answer:
    found = power_law_tail(weight_spectrum(w)).exponent
    return Answer(found.value, found.low, found.high, bool(np.isfinite(found.value)))


def _powerlaw(w: np.ndarray) -> Answer:
    """With its comparison with the lognormal distribution; sigma is its standard error."""
    import powerlaw

    fitted = powerlaw.Fit(np.linalg.svd(w, compute_uv=False) ** 2)
    ratio, p = fitted.distribution_compare("power_law", "lognormal")
    if ratio < 0 and p < 0.05:
        return Answer(np.nan, alarm=False)
    alpha, sigma = float(fitted.power_law.alpha), float(fitted.power_law.sigma)
    return Answer(alpha, alpha - 1.96 * sigma, alpha + 1.96 * sigma, 2 < alpha < 6)


def _layer(w: np.ndarray):
    import torch

    layer = torch.nn.Linear(*w.shape, bias=False)
    layer.weight.data = torch.as_tensor(w.T.copy(), dtype=torch.float32)
    return torch.nn.Sequential(layer)


def _weightwatcher_tail(w: np.ndarray) -> Answer:
    """alpha, unless a warning comes with it; between 2 and 6 it is read as a trained layer."""
    import weightwatcher

    found = weightwatcher.WeightWatcher(model=_layer(w)).analyze()
    alpha = float(found.alpha[0]) if not found.warning[0] else np.nan
    return Answer(alpha, alarm=2 < alpha < 6)


def _weightwatcher_outliers(w: np.ndarray) -> Answer:
    """num_spikes, the eigenvalues beyond the law of Marchenko and Pastur that it fits."""
    import weightwatcher

    found = weightwatcher.WeightWatcher(model=_layer(w)).analyze(mp_fit=True)
    count = float(found.num_spikes[0])
    return Answer(count, alarm=count > 0)


WATCHER = "weightwatcher"
OUTLIERS = (
    Package(_our_outliers, "orderparam", "weight_spectrum"),
    Package(_weightwatcher_outliers, WATCHER, "num_spikes", ("torch", WATCHER)),
)
TAILS = (
    Package(_our_tail, "orderparam", "power_law_tail"),
    Package(_powerlaw, "powerlaw", "against lognormal", ("powerlaw",)),
    Package(_weightwatcher_tail, WATCHER, "alpha", ("torch", WATCHER)),
)


def contests() -> list[Contest]:
    return [
        *(
            Contest(
                "outliers", f"Gaussian matrix, aspect {aspect}", _gaussian(aspect),
                lambda w: 0.0, OUTLIERS, nothing=True,
            )
            for aspect in (1, 4)
        ),
        Contest("outliers", "with two directions, aspect "
                "4", _gaussian(4, 2), lambda w: 2.0, OUTLIERS),
        *(
            Contest(
                "power law", f"Gaussian matrix, aspect {aspect}", _gaussian(aspect),
                lambda w: np.nan, TAILS, nothing=True,
            )
            for aspect in (1, 4)
        ),
        Contest(
            "power law", "with one direction, aspect 4", _gaussian(4, 1), lambda w: np.nan, TAILS,
            nothing=True,
        ),
        Contest(
            "power law", "population of exponent 2.5", _pareto, lambda w: EXPONENT, TAILS,
            repeats=20,
        ),
    ]  # fmt: skip
