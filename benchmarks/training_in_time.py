"""Learning in time: the averaged error along gradient flow, beside NumPy and beside drawn data.

    python benchmarks/training_in_time.py

One curve is 64 times of 1,000 power-law modes and 750 examples. The rival in NumPy sums the same
contour and solves the same equations, all times and nodes in one array; the drawn training set is
what a person without a theory would simulate. All rows come from one run on one machine; read the
ratios.
"""

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table
from timing import best_of

from orderparam.kernels.spectrum import Spectrum
from orderparam.solve.contour import NODES, WEIGHTS
from orderparam.systems.training_in_time import (
    FeatureTraining,
    drawn_flow,
    gradient_flow_error,
    stopping_time,
)

MODES, EXAMPLES, NOISE = 1000, 750, 0.2
TIMES = np.geomspace(0.1, 1e4, 64)
SIGMA = np.arange(1, MODES + 1) ** -1.2
POWER = np.arange(1, MODES + 1) ** -1.8
SYSTEM = FeatureTraining(Spectrum(SIGMA, POWER), EXAMPLES, 1.0, NOISE)


def thresholds(ridge: np.ndarray) -> np.ndarray:
    """kappa at complex ridges of any shape, by Newton's steps along the ray from a large ridge."""
    far = 1e3 * (SIGMA.max() + SIGMA.sum() / EXAMPLES) / np.abs(ridge)
    kappa = ridge * far + SIGMA.sum() / EXAMPLES
    for share in (*np.repeat(np.linspace(1, 0, 30), 2), *np.zeros(5)):
        shares = SIGMA / (SIGMA + kappa[..., None])
        value = kappa * (1 - shares.sum(-1) / EXAMPLES) - ridge * far**share
        kappa = kappa - value / (1 - (shares**2).sum(-1) / EXAMPLES)
    return kappa


def in_numpy() -> np.ndarray:
    z, w, t = NODES, WEIGHTS, TIMES[:, None]
    kappa, other = thresholds(z / t), thresholds(z / (2 * t))
    left = kappa[..., None] / (SIGMA + kappa[..., None])
    shared = 1 - (1 - left) @ np.swapaxes(1 - left, 1, 2) / EXAMPLES
    # the nodes are the upper half of a symmetric contour, with doubled weights
    mirrored = 1 - (1 - left) @ np.swapaxes(1 - left.conj(), 1, 2) / EXAMPLES
    pairs = (left * POWER) @ np.swapaxes(left, 1, 2) / shared
    others = (left * POWER) @ np.swapaxes(left.conj(), 1, 2) / mirrored
    target = w / z
    inner = pairs @ target + others @ target.conj()
    bias = (target * inner).sum(-1).real / 2

    def traced(kappa: np.ndarray) -> np.ndarray:
        sums = (SIGMA * kappa[..., None] / (SIGMA + kappa[..., None])).sum(-1)
        return (w / z**2 * sums).sum(-1).real

    return bias + NOISE / EXAMPLES * 2 * TIMES * (traced(kappa) - traced(other))


def main() -> None:
    curve = jax.jit(jax.vmap(lambda time: gradient_flow_error(SYSTEM.with_(time=time)).test_error))
    times = jnp.asarray(TIMES)
    ours, rival = best_of(lambda: curve(times)), best_of(in_numpy)
    deviation = np.max(np.abs(in_numpy() / np.asarray(curve(times)) - 1))
    one = best_of(lambda: drawn_flow(SYSTEM, jax.random.key(0)))
    best = best_of(lambda: stopping_time(SYSTEM))
    table = Table("work", "seconds", "over the first")
    table.add_row("averaged error, 64 times", f"{ours:.3f}", "1")
    table.add_row(
        f"NumPy, all at once (deviation {deviation:.0e})", f"{rival:.3f}", f"{rival / ours:.2g}"
    )
    table.add_row("one drawn training set, one time", f"{one:.3f}", f"{one / ours:.2g}")
    table.add_row("best time and best ridge", f"{best:.3f}", f"{best / ours:.2g}")
    Console().print(table)


if __name__ == "__main__":
    main()
