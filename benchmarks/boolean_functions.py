"""Boolean functions: orthants at Sobol points beside SciPy's, and beside trained networks.

    python benchmarks/boolean_functions.py

The label posterior of three bits: sixteen orthants in eight dimensions. The rival is
`scipy.stats.multivariate_normal.cdf`, Genz's method, at its default
accuracy. One group of 250 networks of 64 units is what a person without a theory would train. All
rows come from one run on one machine; read the ratios.
"""

import jax
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import multivariate_normal
from timing import best_of

from orderparam.gaussian.orthants import patterns
from orderparam.systems.boolean_functions import label_posterior, trained_functions
from orderparam.systems.boolean_functions.studies import three_bits

SYSTEM = three_bits(64)
INPUTS = np.concatenate([np.asarray(SYSTEM.inputs), np.asarray(SYSTEM.test_inputs)])
KERNEL = np.asarray(SYSTEM.architecture.kernel(INPUTS).nngp)


def in_scipy() -> np.ndarray:
    found = []
    for pattern in patterns(4):
        signs = np.concatenate([np.asarray(SYSTEM.labels), pattern])
        turned = signs[:, None] * KERNEL * signs
        law = multivariate_normal(np.zeros(8), turned, allow_singular=True)
        found.append(law.cdf(np.zeros(8), rng=np.random.default_rng(0)))
    return np.array(found) / np.sum(found)


def main() -> None:
    ours = best_of(lambda: label_posterior(SYSTEM))
    rival = best_of(in_scipy)
    deviation = np.max(np.abs(in_scipy() - np.asarray(label_posterior(SYSTEM).probability)))
    networks = best_of(lambda: trained_functions(SYSTEM, jax.random.key(0)))
    table = Table("work", "seconds", "over the first")
    table.add_row("label posterior, 16 functions", f"{ours:.3f}", "1")
    table.add_row(f"SciPy (deviation {deviation:.0e})", f"{rival:.3f}", f"{rival / ours:.2g}")
    table.add_row("250 networks, trained", f"{networks:.3f}", f"{networks / ours:.2g}")
    Console().print(table)


if __name__ == "__main__":
    main()
