"""What sets the best learning rate of standard networks with Adam: its exponent in the width
against the number of steps, for each layer and each pair of layers trained alone, and without
saturation of the units.

    python benchmarks/width_best_rate_in_time.py [--widths 32 64 128 256] [--seeds 3]

The runs are those of docs/howto/width.py: three-layer networks on 200 digits, odd against even. The
first step changes the output by rate x N^(1/2), N^(3/2), N where the input, hidden or output layer
is trained alone. Linear units are the control: they do not saturate, and learn the part of the
targets that is linear in the inputs, so that the smallest loss is 0 for them too. For each number
of steps the best rate of every width is the minimum of a parabola through the logarithm of the mean
loss at three rates around the smallest; errors of the exponent are those of a straight line through
the widths.
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
RATES = 2.0 ** np.arange(-17, 0)
LAYERS = {  # which parts are trained: layers, and nonlinearities between them
    "all": (1, 1, 1, 1, 1),
    "input": (1, 0, 0, 0, 0),
    "hidden": (0, 0, 1, 0, 0),
    "output": (0, 0, 0, 0, 1),
    "input+hidden": (1, 0, 1, 0, 0),
    "hidden+output": (0, 0, 1, 0, 1),
    "input+output": (1, 0, 0, 0, 1),
}


def examples(activation: str) -> tuple[jax.Array, jax.Array]:
    """Inputs and targets, of which a linear network learns the linear part."""
    x, y = load_digits(return_X_y=True)
    x = ((x - x.mean()) / x.std() / 8)[:EXAMPLES]
    y = 1.0 - 2.0 * (y % 2)[:EXAMPLES]
    if activation == "linear":
        y = x @ np.linalg.lstsq(x, y, rcond=None)[0]
    return jnp.asarray(x), jnp.asarray(y)


def losses(width: int, seeds: int, activation: str, trained: str) -> np.ndarray:
    """Mean losses (rates, times)."""
    x, y = examples(activation)
    network = fully_connected(2, width, activation, readout_variance=1.0, scaling="standard")
    like = network.network(jax.random.key(0), x.shape[1])

    def loss(weights):
        return jnp.mean((like.with_weights(weights)(x)[:, 0] - y) ** 2) / 2

    moving = LAYERS[trained]

    @jax.jit
    def run(key, rate):
        start = network.network(key, x.shape[1]).weights
        moves = optax.adam(rate)

        def step(state, _):
            weights, moments = state
            change, moments = moves.update(jax.grad(loss)(weights), moments)
            kept = [jax.tree.map(lambda w, s=s: s * w, one) for s, one in zip(moving, change)]
            weights = optax.apply_updates(weights, tuple(kept))
            return (weights, moments), loss(weights)

        return jax.lax.scan(step, (start, moves.init(start)), length=max(TIMES))[1]

    keys = jax.random.split(jax.random.key(width), seeds)
    at = np.array(TIMES) - 1
    return np.array(
        [np.mean([np.asarray(run(key, rate))[at] for key in keys], axis=0) for rate in RATES]
    )


def best(values: np.ndarray) -> float:
    """log2 of the best rate."""
    values = np.nan_to_num(values, nan=1e300, posinf=1e300)
    place = int(np.argmin(values))
    if not 0 < place < len(values) - 1:
        return np.nan  # at the end of the grid
    curve = np.polyfit([-1, 0, 1], np.log(values[place - 1 : place + 2]), 2)
    return float(np.log2(RATES[place]) - curve[1] / (2 * curve[0]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--widths", type=int, nargs="+", default=[32, 64, 128, 256])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--activations", nargs="+", default=["tanh", "linear"])
    parser.add_argument("--layers", nargs="+", choices=LAYERS, default=list(LAYERS))
    asked = parser.parse_args()
    for activation in asked.activations:
        for trained in asked.layers:
            tables = [losses(width, asked.seeds, activation, trained) for width in asked.widths]
            for place, time in enumerate(TIMES):
                rates = np.array([best(table[:, place]) for table in tables])
                line = straight_line(np.log2(asked.widths), rates)
                error = line.error * (line.chi_squared / line.freedom) ** 0.5
                least = [float(table[:, place].min()) for table in tables]
                print(
                    f"{activation}, {trained}, {time} steps: exponent {line.slope:.2f} "
                    f"({error:.2f}), log2 of best rates {rates.round(2)}, losses "
                    f"{np.array(least).round(5)}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
