"""Tables drawn from laws, with as many rows as are asked for.

A law is drawn at random: 4 to 30 inputs, independent or correlated, Gaussian or with heavy tails; a
target that is a sum of a linear part, products of two inputs, a wave and a step, of random weights;
and noise with 2 to 60 % of the variance, which depends on an input in every second law. In every
third law the target is made two classes.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

ROWS, LAWS = 25_000, 24


def tables(side: str, laws: int = LAWS) -> dict[str, Callable[[], tuple[pd.DataFrame, str]]]:
    """The first laws of a side, "kept apart" or "tuning"."""
    return {f"law {side} {k}": partial(drawn, side, k) for k in range(laws)}


def drawn(side: str, number: int) -> tuple[pd.DataFrame, str]:
    random = np.random.default_rng([len(side), number])
    columns = int(random.integers(4, 31))
    inputs = random.normal(size=(ROWS, columns))
    if number % 4 > 1:
        inputs = inputs @ (random.normal(size=(columns, columns)) + 2 * np.eye(columns))
        inputs /= inputs.std(axis=0)
    if number % 4 == 3:
        inputs *= np.sqrt(4 / random.chisquare(4, size=(ROWS, 1)))
    weights = random.dirichlet(np.ones(4))
    first, second = random.permutation(columns)[:2]
    parts = (
        inputs @ (random.normal(size=columns) * np.arange(1, columns + 1) ** -1.0),
        np.sum(inputs[:, :-1:2] * inputs[:, 1::2][:, : inputs[:, :-1:2].shape[1]], axis=1),
        np.sin(random.uniform(1, 4) * inputs[:, first]),
        np.where(inputs[:, second] > random.normal(), 1.0, -1.0),
    )
    signal = sum(w * (one - one.mean()) / one.std() for w, one in zip(weights, parts))
    share = random.uniform(0.02, 0.6)
    noise = random.normal(size=ROWS)
    if number % 2:
        noise *= np.exp(0.5 * np.clip(inputs[:, first], -3, 3))
    noise *= signal.std() / noise.std() * np.sqrt(share / (1 - share))
    frame = pd.DataFrame(inputs, columns=[f"x{i}" for i in range(columns)])
    target = signal + noise
    frame["y"] = (
        np.where(target > np.median(target), "class a", "class b") if number % 3 == 2 else target
    )
    return frame, "y"
