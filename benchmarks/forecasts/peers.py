"""What people do instead of a forecast: nothing, and parametric curves.

The forms are those that win in the learning-curve database LCDB (Mohr, Viering, Loog, van Rijn
2022): a power law with an offset, POW4, MMF4 and WBL4, once fitted in logarithms from several
starts and once as LCDB does it, to the errors themselves by the method of Levenberg and Marquardt
from random starts. "no change" is the last point of scikit-learn's `learning_curve`, which ends at
the data.
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import least_squares

Form = Callable[[np.ndarray, np.ndarray], np.ndarray]

FORMS: dict[str, tuple[Form, int]] = {
    "power law": (lambda p, n: p[0] * n ** -p[1] + p[2], 3),
    "POW4": (lambda p, n: p[0] * (n + p[3]) ** -p[1] + p[2], 4),
    "MMF4": (lambda p, n: (p[0] * p[1] + p[2] * n ** p[3]) / (p[1] + n ** p[3]), 4),
    "WBL4": (lambda p, n: p[2] + p[0] * np.exp(-p[1] * n ** p[3]), 4),
}
STARTS = 8
MOST = 1e3  # predicted errors are limited to a thousand variances


def fitted(n_train: np.ndarray, error: np.ndarray, sizes: np.ndarray) -> dict[str, list[float]]:
    """Every form's error at sizes beyond the measured ones: positive parameters, fitted in
    logarithms, and "LCDB ..." as there, where what is not positive is set to a thousandth of the
    last error."""
    found = {"no change": [float(error[-1])] * len(sizes)}
    for name, (form, _) in FORMS.items():
        starts = [_start(name, exponent, n_train, error) for exponent in (0.3, 1.0, 2.0)]
        found[name] = _in_logarithms(form, starts, n_train, error, sizes)
        found[f"LCDB {name}"] = _as_lcdb(name, n_train, error, sizes)
    return found


def _start(name: str, exponent: float, n_train: np.ndarray, error: np.ndarray) -> tuple[float, ...]:
    first, last, scale = error[0], error[-1], n_train[0] ** exponent
    return {
        "power law": (first * scale, exponent, last / 2),
        "POW4": (first * scale, exponent, last / 2, 1.0),
        "MMF4": (1.5 * first, scale, last / 2, exponent),
        "WBL4": (first, n_train[-1] ** -exponent, last / 2, exponent),
    }[name]


def _in_logarithms(
    form: Form,
    starts: list[tuple[float, ...]],
    n_train: np.ndarray,
    error: np.ndarray,
    sizes: np.ndarray,
) -> list[float]:
    fits = []
    for start in starts:
        fit = least_squares(
            lambda logs: np.log(np.maximum(form(np.exp(logs), n_train), 1e-300) / error),
            np.log(np.maximum(start, 1e-20)),
            bounds=(-60, 40),
            max_nfev=150,
        )
        fits.append((fit.cost, form(np.exp(fit.x), sizes)))
    return np.clip(min(fits, key=lambda one: one[0])[1], 1e-12, MOST).tolist()


def _as_lcdb(name: str, n_train: np.ndarray, error: np.ndarray, sizes: np.ndarray) -> list[float]:
    form, count = FORMS[name]
    random, fits = np.random.default_rng(0), []
    for _ in range(STARTS):
        start = random.normal(size=count)
        with np.errstate(all="ignore"):
            try:
                fit = least_squares(
                    lambda p: np.nan_to_num(
                        form(p, n_train) - error, nan=1e6, posinf=1e6, neginf=-1e6
                    ),
                    start,
                    method="lm" if len(n_train) >= count else "trf",
                    max_nfev=400,
                )
                ahead = form(fit.x, sizes)
            except ValueError:
                continue
        if np.isfinite(ahead).all():
            fits.append((fit.cost, ahead))
    if not fits:
        return [float(error[-1])] * len(sizes)
    best = min(fits, key=lambda one: one[0])[1]
    return np.clip(best, error[-1] / 1000, MOST).tolist()
