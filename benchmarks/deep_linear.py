"""Deep linear networks in time: closed forms beside integrated moments and trained networks.

    python benchmarks/deep_linear.py

One training of a network of 8 inputs, 8 outputs and 8 hidden units from a balanced start, 40
records. The rival in SciPy integrates the layers with DOP853 at a tolerance of 1e-9, as a person
without the closed form would. All rows come from one run on one machine; read the ratios.
"""

import jax
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.integrate import solve_ivp
from timing import best_of

from orderparam.systems.deep_linear import (
    LinearNetwork,
    balanced_flow,
    moment_flow,
    trained_linear_network,
)

SIZE, DURATION = 8, 5.0
DRAWN = np.random.default_rng(0).standard_normal((2, SIZE, SIZE))
LEFT, VALUES, RIGHT = np.linalg.svd(DRAWN[0] / SIZE**0.5)
TURN = np.linalg.qr(DRAWN[1])[0]
FIRST, READOUT = (LEFT * VALUES) @ RIGHT, (TURN * VALUES) @ LEFT.T
TARGET = np.diag(np.linspace(0.5, 2.0, SIZE))
SYSTEM = LinearNetwork(TARGET, FIRST, READOUT, DURATION)


def in_scipy() -> np.ndarray:
    def field(_: float, flat: np.ndarray) -> np.ndarray:
        first, readout = flat.reshape(2, SIZE, SIZE)
        error = TARGET - readout @ first
        return np.stack([readout.T @ error, error @ first.T]).ravel()

    start = np.stack([FIRST, READOUT]).ravel()
    times = DURATION * np.arange(1, 41) / 40
    options = {"method": "DOP853", "t_eval": times, "rtol": 1e-9, "atol": 1e-12}
    layers = solve_ivp(field, (0.0, DURATION), start, **options).y.T.reshape(40, 2, SIZE, SIZE)
    return layers[:, 1] @ layers[:, 0]


def main() -> None:
    exact = np.asarray(balanced_flow(SYSTEM).product)
    deviation = np.max(np.abs(in_scipy() - exact))
    rows = {
        "closed form": best_of(lambda: balanced_flow(SYSTEM)),
        "moments, integrated": best_of(lambda: moment_flow(SYSTEM)),
        f"SciPy (deviation {deviation:.0e})": best_of(in_scipy),
        "network on data": best_of(lambda: trained_linear_network(SYSTEM, jax.random.key(0))),
    }
    table = Table("work", "seconds", "over the first")
    for name, seconds in rows.items():
        table.add_row(name, f"{seconds:.4f}", f"{seconds / rows['closed form']:.2g}")
    Console().print(table)


if __name__ == "__main__":
    main()
