"""Public packages that compute the same, each in an environment of its own, beside this one.

    python benchmarks/public [WORD ...] [--keep FOLDER]
        # peers with a word in their name; environments stay in FOLDER and are used again

Every peer is installed by pip into a new environment in a temporary folder, and does its works in
a process on one thread; this package does the same works after it. Ratio is the peer's processor
time over ours, both after a first call. The deviation is the largest difference of both answers in
units of the largest entry of ours; of random numbers it is chance. Peers that do not install or do
not run are named, with the error that they leave. A sweep of clusters by peapods has a sweep of
single spins in it, and thrml is measured from a random start.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ONE_THREAD = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "RAYON_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "JAX_PLATFORMS": "cpu",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
os.environ |= ONE_THREAD

import json  # noqa: E402

import numpy as np  # noqa: E402
from answer import seconds_of  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402
from works import Work, inputs, works  # noqa: E402

import orderparam as op  # noqa: E402

HERE = Path(__file__).parent
LIMIT = 3600  # seconds of an installation or of a peer's works

# Requirements of each peer, and the script that answers for it. None: nothing is compared yet, but
# the installation and the import are tried. Versions are bounded where a peer needs it.
PEERS: dict[str, tuple[list[str], str | None]] = {
    "neural-tangents": (
        ["neural-tangents==0.6.5", "jax==0.4.30", "jaxlib==0.4.30", "numpy<2", "scipy<1.13"],
        "by_neural_tangents.py",
    ),
    "scikit-learn": (["scikit-learn"], "by_scikit_learn.py"),
    "thrml": (["thrml"], "by_thrml.py"),
    "peapods": (["peapods"], "by_peapods.py"),
    "tinygp": (["tinygp"], None),
    "gpytorch": (["gpytorch"], None),
    "deepbays": (["deepbays"], None),
    "netket": (["netket"], None),
    "matfree": (["matfree"], None),
    "fssa": (["fssa"], None),
    "tramp": (["tramp @ git+https://github.com/sphinxteam/tramp"], None),
}


class Failed(Exception):
    """Why a peer gives no answer."""


def _reason(text: str) -> str:
    """The last line of what a program left that tells an error, of the most telling kind."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no message"]
    for mark in ("fatal:", "Error:", "ERROR:", "rror:", ""):
        found = [line for line in lines if mark in line and not line.startswith("note:")]
        if found:
            return found[-1][:160]
    return lines[-1][:160]


def _run(command: list[str | Path], what: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired as late:
        raise Failed(f"{what} took more than {LIMIT} s") from late
    if done.returncode:
        raise Failed(f"{what} fails: {_reason(done.stderr or done.stdout)}")


def environment(name: str, folder: Path) -> Path:
    """The interpreter of an environment that has a peer."""
    place = folder / name
    python = place / "bin" / "python"
    if not (place / "installed").exists():
        _run([sys.executable, "-m", "venv", place], "the environment")
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, *PEERS[name][0]], "the installation")
        (place / "installed").touch()
    return python


def answered(name: str, python: Path, given: dict[str, np.ndarray]) -> dict:
    """The peer's version, its answers and its seconds."""
    script = PEERS[name][1]
    if script is None:
        _run([python, "-c", f"import {name}"], "the import")
        raise Failed("it installs and can be imported; nothing is compared yet")
    with tempfile.TemporaryDirectory() as exchange:
        np.savez(Path(exchange) / "inputs.npz", **given)
        _run([python, HERE / script, exchange], "its script")
        seconds = json.loads((Path(exchange) / "seconds.json").read_text())
        values = {work: np.load(Path(exchange) / f"{work}.npy") for work in seconds}
        return {
            "version": (Path(exchange) / "version").read_text(),
            "seconds": seconds,
            "values": values,
        }


def _deviation(ours: np.ndarray, theirs: np.ndarray, work: Work) -> str:
    if ours.shape != theirs.shape:
        return f"shapes {ours.shape}, {theirs.shape}"
    apart = np.max(np.abs(ours - theirs)) / np.max(np.abs(ours))
    return f"{apart:.0e}{' (random)' if work.random else ''}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    given = inputs()
    ours = works(given)
    table = Table(title=f"orderparam {op.__version__}: processor time of one core")
    for column in ("work", "peer", "ours, ms", "theirs, ms", "ratio", "deviation"):
        table.add_column(column, justify="left" if column in ("work", "peer") else "right")
    without = []
    with tempfile.TemporaryDirectory() as temporary:
        for name in PEERS:
            if asked.words and not any(word in name for word in asked.words):
                continue
            print(f"{name} ...", flush=True)
            try:
                python = environment(name, (asked.keep or Path(temporary)).resolve())
                found = answered(name, python, given)
            except Failed as reason:
                without.append(f"{name}: {reason}")
                continue
            for key, theirs in found["seconds"].items():
                work = ours[key]
                own = seconds_of(work.run) / work.units
                table.add_row(
                    work.words,
                    f"{name} {found['version']}",
                    f"{1e3 * own:.3g}",
                    f"{1e3 * theirs:.3g}",
                    f"{theirs / own:.1f}",
                    _deviation(work.run(), found["values"][key], work),
                )
    console = Console(width=150)
    console.print(table)
    for line in without:
        print(line)


if __name__ == "__main__":
    main()
