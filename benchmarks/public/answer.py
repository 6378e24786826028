"""How a script of `benchmarks/public` answers: it runs in the environment of its peer, which has
NumPy but not this package.

FOLDER/inputs.npz holds the inputs of all works. The answer to each work goes to FOLDER/WORK.npy,
processor seconds to FOLDER/seconds.json, and the version of the peer to FOLDER/version.
"""

import importlib.metadata
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROUNDS, LEAST = 3, 0.05
Prepared = Callable[[dict[str, np.ndarray]], Callable[[], object]]


def seconds_of(run: Callable[[], object]) -> float:
    """Least processor seconds of a call in a few rounds, after a first call that may compile."""
    run()
    rounds = []
    for _ in range(ROUNDS):
        calls, start = 0, time.process_time()
        while time.process_time() - start < LEAST:
            run()
            calls += 1
        rounds.append((time.process_time() - start) / calls)
    return min(rounds)


def answer(peer: str, works: dict[str, Prepared], units: dict[str, int] | None = None) -> None:
    """Answers all works; each is a function of the inputs that returns what is timed, a function
    that returns one array. Seconds are for each unit of a work, where units are given: sweeps of a
    lattice."""
    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1])
    inputs = dict(np.load(folder / "inputs.npz"))
    seconds = {}
    for name, prepared in works.items():
        run = prepared(inputs)
        np.save(folder / f"{name}.npy", np.asarray(run(), float))
        seconds[name] = seconds_of(run) / (units or {}).get(name, 1)
    (folder / "seconds.json").write_text(json.dumps(seconds))
    (folder / "version").write_text(importlib.metadata.version(peer))
