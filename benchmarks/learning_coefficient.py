"""The sampler of `op.observables.learning_coefficient` against exact running coefficients.

    python benchmarks/learning_coefficient.py [--runs 6]

For each case of reduced-rank regression: lambda(t) of many runs of 12 ensembles, as deviations from
the exact value in units of the standard error of each run (rms; Student with 11 degrees of freedom
has 1.10), and the coefficient's mean, scatter and how often its interval held the closed form. All
ensembles are drawn at once.
"""

import argparse
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from orderparam.observables.learning_coefficient import TIMES, _exchange, _plateau
from orderparam.observables.reduced_rank import aoyagi_watanabe, running_coefficient

CASES = ((5, 3, 5), (5, 4, 5), (4, 3, 8), (5, 1, 5))
ENSEMBLES, DRAWS, BURN_IN, FIRST = 12, 600, 300, 2


def sampled(sizes: tuple[int, int, int], runs: int) -> np.ndarray:
    """u of each run, ensemble and t."""
    inputs, hidden, outputs = sizes

    def above(w: jax.Array) -> jax.Array:
        b, a = w[: outputs * hidden], w[outputs * hidden :]
        return jnp.sum((b.reshape(outputs, hidden) @ a.reshape(hidden, inputs)) ** 2) / 2

    size, t = hidden * (inputs + outputs), jnp.asarray(TIMES)
    run = jax.jit(partial(_exchange, above, size, ENSEMBLES * runs, BURN_IN, DRAWS))
    energy, _ = run(t, jax.random.key(0))
    return np.asarray(t * energy.mean(axis=0)).reshape(runs, ENSEMBLES, len(TIMES))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=6)
    runs = parser.parse_args().runs
    times = np.array(TIMES)
    for sizes in CASES:
        start = time.perf_counter()
        u = sampled(sizes, runs)
        exact = np.array([running_coefficient(*sizes, t) for t in TIMES])
        z = (u.mean(axis=1) - exact) / (u.std(axis=1, ddof=1) / ENSEMBLES**0.5)
        limit, multiplicity = aoyagi_watanabe(*sizes)
        laws = [_plateau(times[FIRST:], one[:, FIRST:], 0)[0] for one in u]
        ends = np.array([law.quantiles((0.025, 0.5, 0.975)) for law in laws])
        held = np.mean((ends[:, 0] <= limit) & (limit <= ends[:, 2]))
        print(
            f"{sizes}: limit {limit:g}, multiplicity {multiplicity}; rms z {np.mean(z**2) ** 0.5:.2f}; "
            f"coefficient {ends[:, 1].mean():.3f}, scatter {ends[:, 1].std():.3f}, held {held:.2f}; "
            f"{time.perf_counter() - start:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
