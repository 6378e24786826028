"""How often the errors of `op.collapse` contain the true critical point and exponents.

    python benchmarks/collapse_coverage.py [FITS]

Exact magnetisations and Binder ratios of Curie-Weiss magnets of N spins, where u = (T - 1) N^(1/2),
<|m|> = N^(-1/4) F(u) and corrections fall as N^(-1/2), with Gaussian noise added. Each fit sees
other noise, other temperatures and other sizes. FITS: number of fits of each kind, 24 by default.
"""

import sys
import time
import warnings

import numpy as np
import xarray as xr
from scipy.special import gammaln, logsumexp

import orderparam as op

TRUE = {"critical": 1.0, "inverse_nu": 0.5, "power": -0.25}


def exact(size: int, temperatures: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean of |m| and the ratio 1 - <m^4> / (3 <m^2>^2) of N spins of energy -N m^2 / 2."""
    up = np.arange(size + 1)
    m = 2 * up / size - 1
    entropy = gammaln(size + 1) - gammaln(up + 1) - gammaln(size - up + 1)
    log_weights = entropy + size * m**2 / (2 * temperatures[:, None])
    weights = np.exp(log_weights - logsumexp(log_weights, axis=1, keepdims=True))
    second, fourth = weights @ m**2, weights @ m**4
    return weights @ np.abs(m), 1 - fourth / (3 * second**2)


def drawn(kind: str, seed: int) -> xr.Dataset:
    """Measurements of one magnet: five sizes and eleven temperatures."""
    rng = np.random.default_rng(seed)
    sizes = np.unique(np.geomspace(rng.uniform(60, 120), rng.uniform(1500, 4000), 5).astype(int))
    reach = rng.uniform(0.6, 1.2) / np.sqrt(sizes[-1])  # largest |u|
    temperatures = 1 + rng.uniform(-0.3, 0.3) * reach + reach * np.linspace(-1, 1, 11)
    noise = 10 ** rng.uniform(-3.7, -2.5)
    values = np.array([exact(n, temperatures)[kind == "binder"] for n in sizes])
    errors = noise * values
    columns = {
        kind: (("N", "T"), values + errors * rng.standard_normal(values.shape)),
        f"{kind}_error": (("N", "T"), errors),
    }
    return xr.Dataset(columns, {"N": sizes, "T": temperatures})


def main() -> None:
    fits = int(sys.argv[1]) if len(sys.argv) > 1 else 24
    for kind, power, omega in (
        ("magnetisation", None, "search"),
        ("magnetisation", None, 0.5),
        ("binder", 0.0, "search"),
        ("binder", 0.0, 0.5),
        ("magnetisation", None, None),
    ):
        inside: dict[str, list[float]] = {name: [] for name in TRUE}
        left_out, seconds = 0, time.perf_counter()
        for seed in range(fits):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = op.collapse(
                    drawn(kind, seed), "T", kind, "N", power=power, omega=omega, bootstrap=50
                )
            left_out += not found.accepted
            for name, true in TRUE.items():
                error = getattr(found, f"{name}_error")
                if 0 < error < np.inf:
                    inside[name].append((getattr(found, name) - true) / error)
        seconds = (time.perf_counter() - seconds) / fits
        words = f"{kind}, omega {omega}: {left_out} of {fits} not accepted, {seconds:.1f} s a fit"
        print(words, flush=True)
        for name, z in inside.items():
            if z:
                within = np.mean(np.abs(z) <= 1.96)
                print(
                    f"    {name:10s} {within:6.1%} of {len(z)} within 1.96 errors, rms z "
                    f"{np.sqrt(np.mean(np.square(z))):.2f}"
                )


if __name__ == "__main__":
    main()
