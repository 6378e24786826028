"""Kernel matrices by neural-tangents, for `kernel_matrices.py`, which runs this file with the
interpreter that has it.

    python neural_tangents.py FOLDER

FOLDER/cases.json lists the cases and FOLDER/<name>.npy the inputs of each; seconds and the last
kernel matrix come back as FOLDER/times.json and FOLDER/<name>.out.npy.
"""

import json
import sys
import time
from pathlib import Path

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)

# This file carries the name of the library, which must not find it in its own place.
sys.path = [
    place for place in sys.path if Path(place or ".").resolve() != Path(__file__).resolve().parent
]
from neural_tangents import stax  # noqa: E402


def kernel(case: dict) -> object:
    phi = {"erf": stax.Erf, "relu": stax.Relu}[case["activation"]]
    scale = {"W_std": case["weight_variance"] ** 0.5, "b_std": case["bias_variance"] ** 0.5}
    layers = []
    for _ in range(case["depth"]):
        window = (case["window"],) * 2
        layers += [
            stax.Conv(1, window, padding="SAME", **scale)
            if case["grid"]
            else stax.Dense(1, **scale),
            phi(),
        ]
    if case["grid"]:
        layers.append(
            stax.GlobalAvgPool() if case["readout"] == "global_average" else stax.Flatten()
        )
    names = ("nngp", "ntk") if case["ntk"] else ("nngp",)
    function = stax.serial(*layers, stax.Dense(1, **scale))[2]
    return jax.jit(lambda x: tuple(getattr(function(x, None, names), name) for name in names))


def main() -> None:
    folder = Path(sys.argv[1])
    times = {}
    for case in json.loads((folder / "cases.json").read_text()):
        x, run = np.load(folder / f"{case['name']}.npy"), kernel(case)
        np.save(folder / f"{case['name']}.out.npy", np.asarray(jax.block_until_ready(run(x))[-1]))
        seconds = []
        for _ in range(case["repetitions"]):
            start = time.perf_counter()
            jax.block_until_ready(run(x))
            seconds.append(time.perf_counter() - start)
        times[case["name"]] = float(np.median(seconds))
    (folder / "times.json").write_text(json.dumps(times))


if __name__ == "__main__":
    main()
