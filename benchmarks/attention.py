"""Attention as an index model: state evolution as one integral, beside NumPy and message passing.

    python benchmarks/attention.py

One curve is 256 sample ratios for two tokens. The rival in NumPy iterates state evolution on a
product rule of Gauss-Laguerre and Gauss-Hermite nodes, as scripts do. All rows come from one run on
one machine; read the ratios.
"""

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import roots_hermitenorm
from timing import best_of

from orderparam.systems.attention import SeenSequence, recovered_vector, sequence_passing

SYSTEM = SeenSequence(0.3, 2, input_dim=1000)
RATIOS = np.linspace(0.2, 0.48, 256)


def in_numpy() -> np.ndarray:
    """Overlaps by 400 iterations of E|g|^2, L = 2."""
    squares, shares = np.polynomial.laguerre.laggauss(32)  # |omega|^2/2 over q
    z, weights = roots_hermitenorm(32)
    weights = weights / weights.sum()
    q = np.full_like(RATIOS, 1e-3)[:, None, None]
    for _ in range(400):
        left = 1 - q
        length = np.sqrt(2 * q * squares[:, None])
        along = length + np.sqrt(left) * z
        bias = np.tanh(along * length / left)
        power = ((along * bias - length) ** 2 + left * bias**2) / left**2
        total = RATIOS * np.einsum("a,b,rab->r", shares, weights, power)
        q = (total / (1 + total))[:, None, None]
    return q[:, 0, 0]


def main() -> None:
    curve = jax.jit(jax.vmap(lambda a: recovered_vector(SYSTEM.with_(sample_ratio=a)).overlap))
    ratios = jnp.asarray(RATIOS)
    ours, rival = best_of(lambda: curve(ratios)), best_of(in_numpy)
    deviation = np.max(np.abs(in_numpy() - np.asarray(curve(ratios))))
    one = best_of(lambda: sequence_passing(SYSTEM, jax.random.key(0)))
    table = Table("work", "seconds", "over the first")
    table.add_row("overlaps at 256 sample ratios", f"{ours:.4f}", "1")
    table.add_row(
        f"NumPy, 400 iterations (deviation {deviation:.0e})", f"{rival:.3f}", f"{rival / ours:.2g}"
    )
    table.add_row("message passing, d = 1000, once", f"{one:.3f}", f"{one / ours:.2g}")
    Console().print(table)


if __name__ == "__main__":
    main()
