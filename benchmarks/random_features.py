"""State evolution of fixed features: points per second beside the straightforward NumPy / SciPy
way, and how far the two agree.

    python benchmarks/random_features.py
    GCM_PROJECT=/path/to/GCMProject python benchmarks/random_features.py
        # a checkout of IdePHICS/GCMProject

Logistic regression on p = 300 explicit features (the Gaussian covariate model), a grid of penalties
in one vmapped call; the reference iterates the same equations with adaptive quadrature and a scalar
minimisation at every node, as published scripts do. Ridge on random features: a grid of sample
sizes. All columns come from one run on one machine, in CPU seconds of all threads; read the ratios.
"""

import os
import sys
import time
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm

from orderparam.losses import RealLabels, SignLabels
from orderparam.systems.random_features import (
    ExplicitSpectrum,
    GaussianFeatures,
    RandomFeatures,
    asymptotics,
)

FEATURES, LOAD, TOLERANCE = 300, 2.0, 1e-7
RIDGES = np.geomspace(1e-2, 1.0, 64)
K = np.arange(1.0, FEATURES + 1)
OMEGA, SIGNAL = 1 / K, K**-2.5 / np.sum(K**-2.5)
RHO = 1.2 * np.sum(SIGNAL / OMEGA)
RIDGE_POINTS, BLOCK = 102_400, 1024  # `sweep` works in such blocks; larger ones leave the cache
REPEATS = 3
PEER = os.environ.get("GCM_PROJECT")


def proximal_slope(w: float, variance: float) -> float:
    """g(+1, w) of the logistic loss by a bracketing root finder."""
    return float(
        expit(-brentq(lambda t: t - w - variance * expit(-t), w, w + variance, xtol=1e-12))
    )


def with_quad(ridge: float) -> float:
    """Classification error."""
    v, q, m = 1.0, 0.5, 0.1
    for _ in range(1000):
        rest = np.sqrt(RHO - m**2 / q)

        def terms(
            z: float, v: float = v, q: float = q, m: float = m, rest: float = rest
        ) -> tuple[float, float, float]:
            g = proximal_slope(np.sqrt(q) * z, v)
            centre = m / np.sqrt(q) * z / rest
            bend = g * (1 - g) / (1 + v * g * (1 - g))
            likely, change = norm.cdf(centre), norm.pdf(centre) / rest
            return tuple(
                2 * norm.pdf(z) * part for part in (likely * bend, likely * g**2, change * g)
            )

        stiffness, power, pull = (
            LOAD * quad(lambda z, i=i: terms(z)[i], -8, 8, epsabs=1e-9)[0] for i in range(3)
        )
        inverse = 1 / (ridge + stiffness * OMEGA)
        new_v = np.mean(OMEGA * inverse)
        new_q = power * np.mean((OMEGA * inverse) ** 2) + pull**2 * np.sum(
            SIGNAL * OMEGA * inverse**2
        )
        new_m = pull * np.sum(SIGNAL * inverse)
        moved = abs(new_v - v) + abs(new_q - q) + abs(new_m - m)
        v, q, m = new_v, new_q, new_m
        if moved < TOLERANCE:
            break
    return float(np.arccos(m / np.sqrt(RHO * q)) / np.pi)


def with_peer(ridge: float) -> float:
    """Classification error by the published code of Loureiro et al. 2021, at its tolerance
    TOLERANCE."""
    from state_evolution.algorithms.state_evolution import StateEvolution
    from state_evolution.data_models.custom import CustomSpectra
    from state_evolution.models.logistic_regression import LogisticRegression

    data = CustomSpectra(rho=RHO, spec_Omega=OMEGA, diagonal_term=FEATURES * SIGNAL, gamma=1.0)
    model = LogisticRegression(sample_complexity=LOAD, regularisation=ridge, data_model=data)
    solved = StateEvolution(model=model, tolerance=TOLERANCE)
    solved.iterate()
    return float(solved.test_error)


def best_of(run: Callable[[], object]) -> float:
    """Shortest of a few times, after a first call that compiles."""
    run()
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        run()
        seconds.append(time.process_time() - start)
    return min(seconds)


def main() -> None:
    system = GaussianFeatures(
        ExplicitSpectrum(OMEGA, SIGNAL),
        RHO,
        n_train=LOAD * FEATURES,
        ridge=0.1,
        labels=SignLabels(),
        loss="logistic",
    )

    def error(ridge: jax.Array) -> jax.Array:
        return asymptotics(system.with_(ridge=ridge)).classification_error

    batch = eqx.filter_jit(jax.vmap(error))
    ours = best_of(lambda: jax.block_until_ready(batch(jnp.asarray(RIDGES)))) / len(RIDGES)
    values = np.asarray(batch(jnp.asarray(RIDGES)))
    chosen = [0, len(RIDGES) // 2, len(RIDGES) - 1]
    ways = {"NumPy and SciPy quad": with_quad}
    if PEER:
        sys.path.insert(0, PEER)
        ways["GCMProject"] = with_peer
    table = Table(
        "logistic, p = 300", "CPU s / point", "of orderparam", "largest deviation of the error"
    )
    for name, way in ways.items():
        start = time.process_time()
        reference = [way(RIDGES[i]) for i in chosen]
        theirs = (time.process_time() - start) / len(chosen)
        deviation = max(abs(values[i] - value) for i, value in zip(chosen, reference))
        table.add_row(name, f"{theirs:.3g}", f"{theirs / ours:,.0f} times", f"{deviation:.1e}")
    table.add_row(f"orderparam, vmapped over {len(RIDGES)}", f"{ours:.3g}", "1", "")
    Console(width=120).print(table)

    labels = RealLabels(noise=0.1)
    ridge = jax.tree.map(
        jnp.asarray,
        RandomFeatures(200.0, 400.0, n_train=300.0, ridge=0.01, activation="erf", labels=labels),
    )
    curve = eqx.filter_jit(
        lambda sizes: jax.lax.map(
            lambda n: asymptotics(ridge.with_(n_train=n)).test_error, sizes, batch_size=BLOCK
        )
    )
    sizes = jnp.geomspace(10.0, 1e4, RIDGE_POINTS)
    seconds = best_of(lambda: jax.block_until_ready(curve(sizes)))
    table = Table("random-feature ridge, closed form", "points / CPU s")
    table.add_row(
        f"orderparam, {RIDGE_POINTS:,} in blocks of {BLOCK}", f"{RIDGE_POINTS / seconds:,.0f}"
    )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
