"""The exponent of the best learning rate of standard networks with Adam against the number of steps.

    python benchmarks/width_best_rate_in_time.py

The runs are those of docs/howto/width.py: three-layer tanh networks on 200 digits, odd against even.
The first step changes the output by rate x N^(3/2), so that the best rate of one step falls as N^(-3/2).
For each number of steps the best rate of every width is the minimum of a parabola through the logarithm
of the mean loss at three rates around the smallest; errors of the exponent are those of a straight line
through the widths.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

from orderparam.networks import fully_connected
from orderparam.solve.straight_line import straight_line

EXAMPLES = 200
TIMES = (1, 2, 4, 8, 16, 32, 60)
RATES = 2.0 ** np.arange(-19, -3)


def losses(width: int, seeds: int) -> np.ndarray:
    """Mean losses (rates, times)."""
    x, y = load_digits(return_X_y=True)
    x = jnp.asarray((x - x.mean()) / x.std() / 8)[:EXAMPLES]
    y = jnp.asarray(1.0 - 2.0 * (y % 2))[:EXAMPLES]
    network = fully_connected(2, width, "tanh", readout_variance=1.0, scaling="standard")
    like = network.network(jax.random.key(0), x.shape[1])

    def loss(weights):
        return jnp.mean((like.with_weights(weights)(x)[:, 0] - y) ** 2) / 2

    @jax.jit
    def run(key, rate):
        start = network.network(key, x.shape[1]).weights
        moves = optax.adam(rate)

        def step(state, _):
            weights, moments = state
            change, moments = moves.update(jax.grad(loss)(weights), moments)
            weights = optax.apply_updates(weights, change)
            return (weights, moments), loss(weights)

        return jax.lax.scan(step, (start, moves.init(start)), length=max(TIMES))[1]

    keys = jax.random.split(jax.random.key(width), seeds)
    at = np.array(TIMES) - 1
    return np.array(
        [np.mean([np.asarray(run(key, rate))[at] for key in keys], axis=0) for rate in RATES]
    )


def best(values: np.ndarray) -> float:
    """log2 of the best rate."""
    place = int(np.clip(np.argmin(values), 1, len(values) - 2))
    curve = np.polyfit([-1, 0, 1], np.log(values[place - 1 : place + 2]), 2)
    return float(np.log2(RATES[place]) - curve[1] / (2 * curve[0]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--widths", type=int, nargs="+", default=[32, 64, 128, 256])
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    tables = []
    for width in options.widths:
        tables.append(losses(width, options.seeds))
        print(width, "done", flush=True)
    for place, time in enumerate(TIMES):
        rates = np.array([best(table[:, place]) for table in tables])
        line = straight_line(np.log2(options.widths), rates)
        error = line.error * (line.chi_squared / line.freedom) ** 0.5
        print(
            f"{time} steps: log2 of best rates {rates.round(2)}, exponent {line.slope:.2f} "
            f"({error:.2f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
