"""Kernel adaptation: the non-Gaussian weights against scipy on the same equations, Gaussian weights on data, and the sampler.

    python benchmarks/kernel_adaptation.py
"""

import time
from collections.abc import Callable
from statistics import median

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import minimize
from scipy.special import logsumexp

import orderparam as op
from orderparam.systems.kernel_adaptation import (
    TwoLayerNetwork,
    adapted_weights,
    draw_network,
    gaussian_weights_on_data,
    hermite_target,
    sampled_network,
)

SYSTEM = TwoLayerNetwork(20, 100, 400, 0.2, hermite_target({1: 1.0, 3: -0.3}), 0.015, 0.5, modes=(1, 3))


def straightforward(system: TwoLayerNetwork) -> np.ndarray:
    """f_1, f_3 by BFGS on the same convex function, on a fixed grid in rho and log q_perp."""
    d, v, s, n = (float(x) for x in (system.input_dim, system.weight_variance, system.readout_variance, system.width))
    rho = np.linspace(-4, 4, 1501)[:, None]
    width = np.sqrt(2 / (d - 1))
    log_q = np.arange(np.log(v) - 8 * width - 3, np.log(v) + 8 * width + 0.5, 0.3 * width)
    q = np.exp(log_q)
    log_weight = -d * rho**2 / (2 * v) + (d - 1) / 2 * log_q - d * q / (2 * v)
    log_weight -= logsumexp(log_weight)
    t = rho / np.sqrt(1 + 2 * (rho**2 + q))
    m = np.stack([2 / np.sqrt(np.pi) * t, -4 / np.sqrt(np.pi) / np.sqrt(6) * t**3])
    y, lam = np.asarray(system.coefficients((1, 3))), float(system.ridge)

    def dual(u: np.ndarray) -> tuple[float, np.ndarray]:
        tau = u / lam
        log_p = log_weight + s / (2 * n) * np.tensordot(tau, m, 1) ** 2
        log_z = logsumexp(log_p)
        output = s * np.tensordot(m, np.exp(log_p - log_z) * np.tensordot(tau, m, 1), 2)
        return float(-tau @ y + lam / 2 * tau @ tau + n * log_z), (output - y + u) / lam

    return y - minimize(dual, np.zeros(2), jac=True, method="BFGS", options={"gtol": 1e-6}).x


def timed(function: Callable[[], object], repetitions: int = 3) -> tuple[float, float]:
    """Seconds of the first call, and the median of the following ones."""
    seconds = []
    for _ in range(repetitions + 1):
        start = time.perf_counter()
        jax.block_until_ready(function())
        seconds.append(time.perf_counter() - start)
    return seconds[0], median(seconds[1:])


def main() -> None:
    table = Table(title="Kernel adaptation")
    for column in ("what", "first call", "then", "remark"):
        table.add_column(column)
    first, then = timed(lambda: adapted_weights(SYSTEM).output)
    table.add_row("adapted weights, one point", f"{first:.3g} s", f"{then:.3g} s", "d = 20, N = 100, n = 400")
    found = straightforward(SYSTEM)
    first, then = timed(lambda: straightforward(SYSTEM))
    gap = float(np.max(np.abs(found - np.asarray(adapted_weights(SYSTEM).output))))
    table.add_row("the same in numpy and scipy", f"{first:.3g} s", f"{then:.3g} s", f"BFGS; differs by {gap:.0e}")
    many = jax.jit(jax.vmap(lambda n: adapted_weights(SYSTEM.with_(n_train=n))))
    grid = jnp.geomspace(30, 1e4, 100)
    first, then = timed(lambda: many(grid), 1)
    reached = int(jnp.sum(many(grid).converged))
    table.add_row("adapted weights, 100 points vmapped", f"{first:.3g} s", f"{then:.3g} s", f"n = 30 .. 1e4, {reached} converged")
    wide = TwoLayerNetwork(50, 1000, 500, 0.1, hermite_target({1: 1.0, 3: -0.1}), 0.1, 0.5)
    data = draw_network(wide, jax.random.key(0), 500)
    first, then = timed(lambda: gaussian_weights_on_data(data).mean, 1)
    table.add_row("Gaussian weights on data", f"{first:.3g} s", f"{then:.3g} s", "n = 500, d = 50, full covariance")
    runs = []
    first, then = timed(lambda: runs.append(sampled_network(SYSTEM, jax.random.key(0))) or runs[-1].output, 1)
    rate = float(runs[-1].effective_samples) / then
    table.add_row("network posterior, 2 x 240 moves", f"{first:.3g} s", f"{then:.3g} s", f"{rate:.3g} effective samples/s")
    Console(width=140).print(f"orderparam {op.__version__}, jax {jax.__version__}, {jax.devices()[0].device_kind}")
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
