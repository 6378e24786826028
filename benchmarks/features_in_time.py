"""Features in time: particles of infinite width beside a wide network.

    python benchmarks/features_in_time.py

One training of 20 examples in 10 dimensions, richness 1, 50 steps. The rival is what a person
without Sobol points would run: wide networks, averaged over seeds until the standard error of the
last training error is that of the particles. Its time is that of one network times the number of
networks that this takes, from the scatter of 16; its bias of finite width is not counted. All rows
come from one run on one machine; read the ratios.
"""

import jax
import numpy as np
from rich.console import Console
from rich.table import Table
from timing import best_of

from orderparam.systems.features_in_time import (
    FeatureDescent,
    particle_dynamics,
    trained_features,
)

WIDTH = 2048
DRAWN = np.random.default_rng(0).standard_normal((22, 10))
LABELS = np.sin(2 * DRAWN[:, 0])
SYSTEM = FeatureDescent(
    DRAWN[:20], LABELS[:20], DRAWN[20:], LABELS[20:], 1.0, 0.05, WIDTH, "erf_scaled", steps=50
)


def main() -> None:
    theory = particle_dynamics(SYSTEM)
    seconds = best_of(lambda: particle_dynamics(SYSTEM))
    keys = jax.random.split(jax.random.key(0), 16)
    ends = [float(trained_features(SYSTEM, key).train_error[-1]) for key in keys]
    one = best_of(lambda: trained_features(SYSTEM, keys[0]))
    wanted = float(theory.train_error_uncertainty[-1])
    networks = max(1.0, np.var(ends, ddof=1) / wanted**2)
    bias = np.mean(ends) / float(theory.train_error[-1]) - 1
    table = Table("work", "seconds", "over the first")
    share = wanted / float(theory.train_error[-1])
    table.add_row(f"particles (standard error {share:.1%})", f"{seconds:.3f}", "1")
    name = f"{networks:.0f} networks of {WIDTH} units (bias {bias:+.1%})"
    table.add_row(name, f"{networks * one:.3f}", f"{networks * one / seconds:.2g}")
    Console().print(table)


if __name__ == "__main__":
    main()
