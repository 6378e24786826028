"""Scaling laws: points a second of every solver beside the same equations in SciPy, one by one, and
steps of SGD beside NumPy.

    python benchmarks/scaling_laws.py

Both columns come from one run on one machine; read the ratios. SciPy solves by brentq (the joint
law, 2000 modes), bounded minimisation over the ridge, iteration of the recursion (the risk of SGD
for drawn features), and L-BFGS (laws of training runs).
"""

import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import brentq, minimize, minimize_scalar
from timing import best_of

import orderparam as op
from orderparam.analysis.scaling_law import scaling_law
from orderparam.systems.scaling_laws import (
    ComputeBudget,
    PowerLawFeatures,
    ScaleFreeFeatures,
    ScheduledSGD,
    compute_optimal,
    deterministic_risk,
    drawn_features,
    joint_law,
    one_pass_sgd,
    optimal_ridge,
    scheduled_mean,
)

POINTS, ONE_BY_ONE = 2000, 20
K = np.arange(1.0, 2001)
EIGENVALUES, POWER = K**-2.0, K**-2.5
WIDTH, INPUTS, HORIZON = 100, 400, 10_000


def scipy_error(n: float, p: float, ridge: float) -> float:
    """The joint law without noise."""

    def learned(nu: float) -> float:
        return float(np.sum(EIGENVALUES / (EIGENVALUES + nu)))

    def excess(log_nu: float) -> float:
        nu = np.exp(log_nu)
        total = learned(nu)
        root = np.sqrt((1 - n / p) ** 2 + 4 * ridge / (p * nu))
        return 1 + n / p - root - 2 * total / p

    nu = np.exp(brentq(excess, -40, 5, xtol=1e-12))
    inverse, total = 1 / (EIGENVALUES + nu), learned(nu)
    df, trace = np.sum((EIGENVALUES * inverse) ** 2), np.sum(EIGENVALUES * inverse**2)
    ratio = 1 - total / p
    upsilon = total**2 / (n * p) + ratio**2 * df / (n * (1 - df / p))
    mixed = nu**2 * trace / (p - df) * np.sum(POWER * EIGENVALUES * inverse**2)
    return float((np.sum(POWER * (nu * inverse) ** 2) + mixed) / (1 - upsilon))


def scipy_best(n: float, p: float) -> float:
    return float(
        minimize_scalar(
            lambda u: scipy_error(n, p, np.exp(u)), bounds=(-12, 2), method="bounded"
        ).fun
    )


def numpy_recursion(rng: np.random.Generator) -> float:
    """The mean risk over samples of one draw of the features, step by step."""
    j = np.arange(1.0, INPUTS + 1)
    spread, target = j**-1.0, j**-0.3
    scaled = spread[:, None] * rng.normal(size=(INPUTS, WIDTH)) / np.sqrt(WIDTH)
    s, vectors = np.linalg.eigh(scaled.T @ scaled)
    best = vectors.T @ (scaled.T @ (spread * target)) / s
    c, rest, rate = best**2, float(np.sum((spread * target) ** 2) - s @ best**2), 0.3
    for _ in range(HORIZON):
        risk = rest + s @ c
        c = (1 - 2 * rate * s + 2 * rate**2 * s**2) * c + rate**2 * s * risk
    return rest + float(s @ c)


def numpy_sgd(rng: np.random.Generator) -> np.ndarray:
    j = np.arange(1.0, INPUTS + 1)
    features, target = rng.normal(size=(INPUTS, WIDTH)) / np.sqrt(WIDTH), j**-0.3
    weights = np.zeros(WIDTH)
    for _ in range(HORIZON):
        x = rng.normal(size=INPUTS) / j
        phi = x @ features
        weights -= 0.3 * (phi @ weights - x @ target) * phi
    return weights


def scipy_law(loss: np.ndarray, n: np.ndarray, d: np.ndarray) -> float:
    """The additive law by Huber's likelihood from twelve starts, gradients by differences."""

    def cost(unknowns: np.ndarray) -> float:
        a, b, e, alpha, beta = unknowns
        off = np.logaddexp(np.logaddexp(a - alpha * np.log(n), b - beta * np.log(d)), e) - np.log(
            loss
        )
        size = np.abs(off)
        return float(np.sum(np.where(size < 1e-3, off**2 / 2, 1e-3 * (size - 5e-4))))

    starts = [(a, b, 0.5, alpha, 0.3) for a in (5, 10, 15) for b in (5, 15) for alpha in (0.2, 0.5)]
    return min(
        float(minimize(cost, start, method="L-BFGS-B", options={"ftol": 1e-15}).fun)
        for start in starts
    )


def scheduled(features: PowerLawFeatures) -> float:
    return best_of(
        lambda: scheduled_mean(ScheduledSGD(features, schedule="cosine"), jax.random.key(0))
    )


def main() -> None:
    table = Table(title=f"orderparam {op.__version__}: per second")
    for column in ("what", "ours", "plain", "ratio"):
        table.add_column(column, justify="right")

    def row(name: str, ours: float, plain: float | None) -> None:
        compared = ("–", "–") if plain is None else (f"{plain:.3g}", f"{ours / plain:.3g}")
        table.add_row(name, f"{ours:.3g}", *compared)

    rng = np.random.default_rng(0)
    sizes = jnp.asarray(rng.uniform(50, 1000, (POINTS, 2)))
    few = np.asarray(sizes)[:ONE_BY_ONE]
    decays = {"spectral_decay": 2.0, "target_decay": 2.5, "modes": 2000.0}
    law = jax.jit(
        jax.vmap(
            lambda size: (
                joint_law(ScaleFreeFeatures(size[0], size[1], ridge=0.01, **decays)).test_error
            )
        )
    )
    best = jax.jit(
        jax.vmap(
            lambda size: optimal_ridge(ScaleFreeFeatures(size[0], size[1], **decays)).test_error
        )
    )
    np.testing.assert_allclose(
        law(sizes[:3]), [scipy_error(*size, 0.01) for size in few[:3]], rtol=1e-8
    )
    np.testing.assert_allclose(best(sizes[:3]), [scipy_best(*size) for size in few[:3]], rtol=1e-6)
    row(
        "joint law, points",
        POINTS / best_of(lambda: law(sizes)),
        ONE_BY_ONE / best_of(lambda: [scipy_error(*s, 0.01) for s in few]),
    )
    row(
        "best ridge, points",
        POINTS / best_of(lambda: best(sizes)),
        5 / best_of(lambda: [scipy_best(*s) for s in few[:5]]),
    )
    budgets = jnp.geomspace(1e5, 1e9, 20)
    optimum = jax.jit(jax.vmap(lambda f: compute_optimal(ComputeBudget(f)).risk))
    row("compute-optimal widths", 20 / best_of(lambda: optimum(budgets)), None)

    features = PowerLawFeatures(1.0, 0.3, INPUTS, width=WIDTH, learning_rate=0.3, horizon=HORIZON)
    recursion = 1 / best_of(lambda: numpy_recursion(np.random.default_rng(0)))
    row(
        f"risk at 25 of {HORIZON} steps, no draw",
        1 / best_of(lambda: deterministic_risk(features)),
        recursion,
    )
    row(
        "the same of one draw, closed form",
        1 / best_of(lambda: drawn_features(features, jax.random.key(0))),
        recursion,
    )
    row("the same of one draw, cosine schedule", 1 / scheduled(features), recursion)
    sgd = best_of(partial(one_pass_sgd, features, jax.random.key(0)))
    row(
        "steps of SGD",
        HORIZON / sgd,
        HORIZON / best_of(lambda: numpy_sgd(np.random.default_rng(0))),
    )

    n, d = 10 ** rng.uniform(7.5, 10.2, 100), 10 ** rng.uniform(9.3, 11.7, 100)
    loss = (1.69 + 406.4 * n**-0.34 + 410.7 * d**-0.28) * np.exp(rng.normal(0, 0.005, 100))
    begin = time.perf_counter()
    scaling_law(loss, n, d, form="additive", bootstrap=40)
    ours = 41 / (time.perf_counter() - begin)
    row(
        "laws of 100 runs (40 of them bootstraps)", ours, 1 / best_of(lambda: scipy_law(loss, n, d))
    )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
