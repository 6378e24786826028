"""How far measured spins are from what they should be, in standard errors over several seeds."""

import jax
import numpy as np

MOMENTS = (
    "energy",
    "heat_capacity",
    "absolute_magnetisation",
    "squared_magnetisation",
    "susceptibility",
    "binder",
)
SEEDS = range(4)


def deviations(run, exact, names):
    """Of the mean of several seeds, in standard errors."""
    runs = [run(jax.random.key(seed)) for seed in SEEDS]
    found = {}
    for name in names:
        error = np.sqrt(sum(float(getattr(r, f"{name}_error")) ** 2 for r in runs)) / len(runs)
        found[name] = (
            np.mean([float(getattr(r, name)) for r in runs]) - float(getattr(exact, name))
        ) / error
    return found
