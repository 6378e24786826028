"""Writes docs/howto/width.csv and width-sizes.csv: real runs of three-layer networks on digits at
several widths, in standard parametrisation and in muP, with gradient descent and with Adam.

    python docs/howto/width.py [--folder FOLDER]      # cases that the tables have are kept

200 digits, odd against even, 60 steps on all of them. muP is mean-field scaling with learning rate
N for gradient descent; for Adam it is a read-out of variance 1 / N^2 and learning rates 1, 1 / N,
1 / N of the three layers. width.csv has the losses; width-sizes.csv has root mean squares over
units and examples of each layer's values at the start, and of their change in the first step at
the smallest rate.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
from sklearn.datasets import load_digits

from orderparam.networks import fully_connected

STEPS, EXAMPLES = 60, 200
WIDE, MANY = (64, 128, 256, 512, 1024), 8  # widths and seeds of the sizes, which cost one step


class Case(NamedTuple):
    """An optimiser and a parametrisation; the learning rates are factors of 2."""

    optimiser: str
    parametrisation: str
    widths: tuple[int, ...]
    seeds: int
    least: float
    rates: int


CASES = (
    Case("sgd", "standard", (32, 64, 128, 256, 512), 4, 2.0**-12, 13),
    Case("sgd", "muP", (32, 64, 128, 256, 512), 4, 2.0**-6, 13),
    Case("adam", "standard", (32, 64, 128, 256), 3, 2.0**-10, 10),
    Case("adam", "muP", (32, 64, 128, 256), 3, 2.0**-6, 9),
)


def digits() -> tuple[jax.Array, jax.Array]:
    x, y = load_digits(return_X_y=True)
    x = (x - x.mean()) / x.std() / 8
    return jnp.asarray(x[:EXAMPLES]), jnp.asarray(1.0 - 2.0 * (y[:EXAMPLES] % 2))


def layers(network, x: jax.Array) -> list[jax.Array]:
    """Values of the three layers before their nonlinearity, and of the output."""
    parts = network.architecture.layers.layers
    weights = network.weights
    if network.architecture.scaling != "standard":
        weights = network.architecture._physical(weights)
    found = []
    for part, own in zip(parts, weights):
        x = part(own, x)
        if hasattr(part, "width"):
            found.append(x)
    found[-1] = found[-1] / jnp.sqrt(network.architecture.chi)
    return found


def rates_of_layers(case: Case, width: int) -> tuple[float, float, float]:
    if case.parametrisation == "standard":
        return 1.0, 1.0, 1.0
    return (width,) * 3 if case.optimiser == "sgd" else (1.0, 1 / width, 1 / width)


def runs(case: Case, width: int, sizes: bool) -> pd.DataFrame:
    """Losses of all learning rates and seeds at one width, or sizes at the smallest rate."""
    x, y = digits()
    mup_sgd, mup_adam = (
        (case.optimiser, case.parametrisation) == (name, "muP") for name in ("sgd", "adam")
    )
    architecture = fully_connected(
        2,
        width,
        "tanh",
        readout_variance=1 / width if mup_adam else 1.0,
        scaling="mean_field" if mup_sgd else "standard",
    )
    start = architecture.network(jax.random.key(0), x.shape[1])
    factors = jax.tree.unflatten(jax.tree.structure(start.weights), rates_of_layers(case, width))
    moves = optax.sgd(1.0) if case.optimiser == "sgd" else optax.adam(1.0)

    def loss(weights):
        return jnp.mean((start.with_weights(weights)(x)[:, 0] - y) ** 2) / 2

    def one(key, rate):
        first = architecture.network(key, x.shape[1]).weights

        def step(state, _):
            weights, moments = state
            change, moments = moves.update(jax.grad(loss)(weights), moments)
            moved = jax.tree.map(lambda w, c, f: w + rate * f * c, weights, change, factors)
            return (moved, moments), None

        begun = first, moves.init(first)
        if not sizes:
            (last, _), _ = jax.lax.scan(step, begun, length=STEPS)
            return {"loss": loss(last)}
        (after, _), _ = step(begun, None)
        before = layers(start.with_weights(first), x)
        changed = [b - a for a, b in zip(before, layers(start.with_weights(after), x))]
        return {
            f"{name}_{layer}": jnp.sqrt(jnp.mean(value**2))
            for name, values in (("h", before), ("d", changed))
            for layer, value in zip(("input", "hidden", "output"), values)
        }

    seeds = MANY if sizes else case.seeds
    keys = jax.random.split(jax.random.key(width), seeds)
    program = jax.jit(jax.vmap(one, in_axes=(0, None)))
    parts = []
    for rate in case.least * 2.0 ** np.arange(1 if sizes else case.rates):
        named = {"optimiser": case.optimiser, "parametrisation": case.parametrisation}
        named |= {"width": width, "learning_rate": rate, "seed": np.arange(seeds)}
        found = {name: np.asarray(values) for name, values in program(keys, rate).items()}
        parts.append(pd.DataFrame(named | found))
    return pd.concat(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent)
    folder = parser.parse_args().folder
    for name, sizes in (("width.csv", False), ("width-sizes.csv", True)):
        file = folder / name
        table = pd.read_csv(file) if file.exists() else pd.DataFrame({"optimiser": []})
        for case in CASES:
            done = table[table["optimiser"] == case.optimiser]
            if len(done) and (done["parametrisation"] == case.parametrisation).any():
                continue
            widths = WIDE if sizes else case.widths
            new = pd.concat([runs(case, width, sizes) for width in widths])
            if not sizes:
                new.loc[~(new["loss"] < 10), "loss"] = np.nan  # it diverged
            table = pd.concat([table, new], ignore_index=True)
            table.to_csv(file, index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
