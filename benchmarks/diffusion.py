"""Diffusion models: the weight of the own example, beside drawn examples and trajectories; and the
losses of a score on random features, beside drawn features.

    python benchmarks/diffusion.py

The exact mean weight at 500 stored examples in 20 dimensions. The rival is what a person without
the theory would do: draw examples and noise and average until the standard error is 1e-3. All rows
come from one run on one machine; read the ratios.
"""

from functools import partial

import jax
import numpy as np
from rich.console import Console
from rich.table import Table
from timing import best_of

from orderparam.systems.diffusion import (
    FeatureScore,
    StoredGaussians,
    drawn_score,
    drawn_weights,
    own_weight,
    returned_trajectories,
    score_losses,
)

SYSTEM = StoredGaussians(20, 500, 0.385186)
SCORE = FeatureScore(2.0, 8.0, 0.1, training_time=10.0, input_dim=40)
RUNS, ERROR = 16, 1e-3


def main() -> None:
    exact = float(own_weight(SYSTEM).own_weight)
    ours = best_of(lambda: own_weight(SYSTEM))
    table = Table("work", "value", f"seconds for {ERROR:g}", "over the first")
    table.add_row("exact", f"{exact:.6f}", f"{ours:.4f}", "1")
    for name, experiment in (
        ("drawn weights", drawn_weights),
        ("trajectories going back", returned_trajectories),
    ):
        values = [float(experiment(SYSTEM, jax.random.key(i)).own_weight) for i in range(RUNS)]
        needed = max(1.0, np.var(values, ddof=1) / ERROR**2)
        seconds = needed * best_of(partial(experiment, SYSTEM, jax.random.key(0)))
        table.add_row(name, f"{np.mean(values):.4f}", f"{seconds:.2g}", f"{seconds / ours:.2g}")
    exact = float(score_losses(SCORE).test_loss)
    ours = best_of(lambda: score_losses(SCORE))
    table.add_row("test loss of a score on features", f"{exact:.6f}", f"{ours:.4f}", "1")
    values = [float(drawn_score(SCORE, jax.random.key(i)).test_loss) for i in range(RUNS)]
    needed = max(1.0, np.var(values, ddof=1) / ERROR**2)
    seconds = needed * best_of(lambda: drawn_score(SCORE, jax.random.key(0)))
    name = "drawn features, 40 dimensions"
    table.add_row(name, f"{np.mean(values):.4f}", f"{seconds:.2g}", f"{seconds / ours:.2g}")
    Console().print(table)


if __name__ == "__main__":
    main()
