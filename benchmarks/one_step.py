"""One giant gradient step: points per second beside the straightforward NumPy way, and how far the
two agree.

    python benchmarks/one_step.py

Ridge regression after the step, a grid of batch sizes in one vmapped call; the reference iterates
the same equations plainly for one batch size at a time, with Gauss-Legendre nodes on each side of
the spike's zero and Gauss-Hermite averages of the features. Then one first layer of a trained
network (p = 600): one eigendecomposition, and every further ridge. All columns come from one run on
one machine; read the ratios.
"""

import time
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import erf
from scipy.stats import norm

from orderparam.losses import SignLabels
from orderparam.systems.one_step import (
    OneStep,
    TrainedLayer,
    first_layer,
    given_layer,
    one_step_asymptotics,
    train_first_layer,
)

SYSTEM = OneStep(2.0, 1.0, 1.0, 3.0, ridge=0.1, activation="tanh", labels=SignLabels())
BATCHES = np.geomspace(0.5, 64.0, 256)
REPEATS = 3


def with_numpy(
    gamma: float,
    spike: float,
    bulk: float,
    alpha: float = 2.0,
    beta: float = 1.0,
    ridge: float = 0.1,
) -> float:
    """Test error for tanh features and labels that are signs."""
    x, w = np.polynomial.legendre.leggauss(150)
    k = np.concatenate([4.5 * (x - 1), 4.5 * (x + 1)])
    weight = np.concatenate([w, w]) * 4.5 * norm.pdf(k)
    z, density = np.polynomial.hermite_e.hermegauss(150)
    density = density / density.sum()
    features = np.tanh(bulk * z + spike * k[:, None])
    mu0, mu1 = features @ density, features @ (density * z)
    rest = features**2 @ density - mu0**2 - mu1**2
    u = gamma * k / np.sqrt(1 - gamma**2)
    label, slope = erf(u / np.sqrt(2)), 2 * norm.pdf(u)
    v1 = v2 = 1.0
    m = zeta = psi = 0.0
    q1 = q2 = 0.5
    for _ in range(1000):
        shrink = 1 / (1 + mu1**2 * v1 + rest * v2)
        a, b = weight * shrink * alpha / beta, weight * shrink**2 * alpha / beta
        stiff, flat = a @ mu1**2, ridge + a @ rest
        m = (a @ (mu0 * (label - zeta * k * mu1))) / (a @ mu0**2)
        error = label - m * mu0 - zeta * k * mu1
        pull, push = a @ (k * mu1 * error), a @ (mu1 * slope)
        squared = 1 - label**2 + error**2 - 2 * psi * mu1 * slope + mu1**2 * q1 + rest * q2
        h1 = b @ (mu1**2 * squared) + beta * push**2
        h2 = b @ (rest * squared) + beta * pull**2
        edge = flat + stiff * (1 - beta)
        root = np.sqrt(edge**2 + 4 * beta * flat * stiff)
        inverse = 2 / (edge + root) if edge > 0 else (root - edge) / (2 * beta * flat * stiff)
        grown = 1 + beta * stiff * inverse
        linear, linear2 = inverse / grown, inverse / grown / root
        inverse2, square2 = (
            inverse * grown / root,
            linear2 * (1 + beta - 2 * beta * stiff * inverse / grown),
        )
        powers = (h1 * square2 + h2 * linear2, h1 * linear2 + h2 * inverse2)
        new = (linear, inverse, beta * pull * inverse, beta * push * linear, *powers)
        moved = max(abs(x - y) for x, y in zip(new, (v1, v2, zeta, psi, q1, q2)))
        v1, v2, zeta, psi, q1, q2 = new
        if moved < 1e-12:
            break
    return float(weight @ squared)


def best_of(run: Callable[[], object]) -> float:
    """Shortest of a few times, after a first call that compiles."""
    run()
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main() -> None:
    system = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), SYSTEM)
    batch = eqx.filter_jit(
        jax.vmap(lambda ratio: one_step_asymptotics(system.with_(batch_ratio=ratio)).test_error)
    )
    ours = best_of(lambda: jax.block_until_ready(batch(jnp.asarray(BATCHES)))) / len(BATCHES)
    values = np.asarray(batch(jnp.asarray(BATCHES)))
    chosen = range(0, len(BATCHES), 16)
    layers = [first_layer(SYSTEM.with_(batch_ratio=BATCHES[i])) for i in chosen]
    numbers = [(float(l.spike_overlap), float(l.spikes[0]), float(l.bulk_norms[0])) for l in layers]
    reference = np.array([with_numpy(*three) for three in numbers])
    theirs = best_of(lambda: [with_numpy(*three) for three in numbers]) / len(numbers)
    deviation = np.max(np.abs(values[list(chosen)] - reference))

    table = Table(
        "ridge after one step", "s / point", "points / s", "times", "largest deviation of the error"
    )
    table.add_row("NumPy, plain iteration", f"{theirs:.3g}", f"{1 / theirs:,.0f}", "1", "")
    speed = f"{theirs / ours:,.1f}"
    table.add_row(
        f"orderparam, vmapped over {len(BATCHES)}",
        f"{ours:.3g}",
        f"{1 / ours:,.0f}",
        speed,
        f"{deviation:.1e}",
    )
    Console(width=120).print(table)

    drawn = train_first_layer(SYSTEM.with_(input_dim=600, batch_ratio=2.0), jax.random.key(0))

    def prepare() -> TrainedLayer:
        return TrainedLayer.from_weights(
            drawn.weights, drawn.spike, drawn.teacher, 1200, 0.1, "tanh", SignLabels()
        )

    known = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), prepare())
    ridges = jnp.geomspace(1e-2, 10.0, 64)
    curve = eqx.filter_jit(jax.vmap(lambda ridge: given_layer(known.with_(ridge=ridge)).test_error))
    table = Table("a given first layer, p = 600", "s")
    table.add_row("eigendecomposition, once", f"{best_of(prepare):.3g}")
    table.add_row(
        "each further ridge or n",
        f"{best_of(lambda: jax.block_until_ready(curve(ridges))) / len(ridges):.3g}",
    )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
