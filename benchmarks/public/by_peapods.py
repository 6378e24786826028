"""Metropolis and Swendsen-Wang updates of the square lattice by peapods, in Rust."""

import numpy as np
from answer import answer
from peapods import Ising


def sweeps(count, **how):  # type: ignore[no-untyped-def]
    def prepared(inputs):  # type: ignore[no-untyped-def]
        def run() -> float:
            lattice = Ising((64, 64), temperatures=np.array([float(inputs["temperature"])]))
            lattice.sample(count, sequential=True, **how)
            return -float(np.asarray(lattice.energies_avg).ravel()[0])

        return run

    return prepared


answer(
    "peapods",
    {"local-updates": sweeps(4000), "cluster-updates": sweeps(1000, cluster_update_interval=1)},
    {"local-updates": 4000, "cluster-updates": 1000},
)
