"""Heat-bath sweeps of the square lattice by thrml."""

import importlib.util
from pathlib import Path

import numpy as np
from answer import answer

place = Path(__file__).parents[1] / "peers" / "thrml_spins.py"
lattice = importlib.util.module_from_spec(
    spec := importlib.util.spec_from_file_location("l", place)
)
spec.loader.exec_module(lattice)


def sweeps(inputs):  # type: ignore[no-untyped-def]
    run = lattice.heat_bath(64, 16, 200, 10, float(inputs["temperature"]))
    return lambda: np.mean(np.asarray(run()))


answer("thrml", {"local-updates": sweeps}, {"local-updates": 16 * 200})
