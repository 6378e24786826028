"""The package's main compiled programs on an accelerator beside the processor, in both precisions.

    python benchmarks/accelerator.py [--small] [--check] [--out FILE] [--limit SECONDS] [WORD ...]

The accelerator is the device that JAX chooses; with JAX_PLATFORMS=cpu it is the processor itself.
Times are those of warm calls, the shortest of a few. A ratio is the processor's time over the
accelerator's, in the same precision. The deviation is the largest difference of the answers in
float32 from those in float64, in units of the largest entry. Shares are of a large matrix product
and of a large copy, both measured in the same run; operations that are not counted are left out.

--check compares the accelerator's answers with the processor's, in float64, and exits with 1 where
they differ by more than the documented accuracy. --device-only leaves the processor's calls out,
for a machine whose processor is busy. --small takes small sizes. No program is begun
after --limit seconds (default 140), of which compilation takes most: what is left out is named, and
all programs need about 600. Words choose the programs in whose name one of them occurs.
"""

import argparse
import json
import math
import os
import time
from pathlib import Path

START = time.perf_counter()

import jax  # noqa: E402
import numpy as np  # noqa: E402
from accelerated.places import Run, deviation, peaks  # noqa: E402
from accelerated.programs import PROGRAMS, Program  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import orderparam as op  # noqa: E402

BITS = (64, 32)
SHARES = (0.6, 1.0)  # of the time, until when calls in each precision may begin


def seconds_since_start() -> float:
    return time.perf_counter() - START


def runs_of(program: Program, devices: list[jax.Device], small: bool) -> dict[str, Run]:
    """Name of the place -> run: accelerator and processor, each in the precisions that exist."""
    return {
        f"{place}{bits}": Run(program, device, bits, small)
        for place, device in zip(("device", "cpu"), devices)
        for bits in BITS
        if bits == 64 or program.single
    }


def summary(runs: dict[str, Run], limits: dict[str, dict[str, float]]) -> dict[str, object]:
    """The numbers of one program, for the table and the file."""
    found: dict[str, object] = {}
    for place, run in runs.items():
        found |= {f"{place} ms": 1e3 * run.warm, f"{place} first s": run.first}
        if run.error:
            found[f"{place} error"] = run.error
        if place in limits and run.work is not None:
            flops, size = run.work.flops, run.work.words * run.bits / 8
            if flops:
                found[f"{place} share of product"] = (
                    flops / run.warm / limits[place]["flops highest"]
                )
            if size:
                found[f"{place} share of copy"] = size / run.warm / limits[place]["bytes"]
    for bits in BITS:
        if f"cpu{bits}" in runs:
            found[f"ratio{bits}"] = runs[f"cpu{bits}"].warm / runs[f"device{bits}"].warm
    own = runs["device64"]
    for name, other in (("from float64", "device32"), ("from processor", "cpu64")):
        if other in runs and not own.error and not runs[other].error:
            found[f"deviation {name}"] = deviation(runs[other].answer, own.answer)
    return found


def table_of(rows: dict[str, dict[str, object]], title: str, small: bool) -> Table:
    columns = {
        "ms, f64": "device64 ms",
        "ms, f32": "device32 ms",
        "cpu ms, f64": "cpu64 ms",
        "ratio, f64": "ratio64",
        "ratio, f32": "ratio32",
        "f32 - f64": "deviation from float64",
        "device - cpu": "deviation from processor",
        "of product, f64": "device64 share of product",
        "f32": "device32 share of product",
        "of copy, f64": "device64 share of copy",
        "first s": "device64 first s",
    }
    table = Table(title=title)
    table.add_column("program")
    for column in columns:
        table.add_column(column, justify="right")
    sizes = {program.name: "" if small else f", {program.size}" for program in PROGRAMS}
    for name, row in rows.items():
        numbers = [row.get(key) for key in columns.values()]
        table.add_row(
            name + sizes[name], *("" if x is None or x != x else f"{x:.2g}" for x in numbers)
        )
    return table


def complaints(name: str, program: Program, runs: dict[str, Run]) -> list[str]:
    """What is wrong with the accelerator's answers."""
    failed = [f"{name}, {place}: {run.error}" for place, run in runs.items() if run.error]
    if failed:
        return failed
    wrong = []
    if "cpu64" in runs:
        apart = deviation(runs["device64"].answer, runs["cpu64"].answer)
        if not apart <= program.accuracy:
            wrong.append(
                f"{name}: differs from the processor by {apart:.1e}, allowed is "
                f"{program.accuracy:.0e}"
            )
    for place, run in runs.items():
        if not np.all(np.isfinite(run.answer)):
            wrong.append(f"{name}, {place}: not a finite number")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--device-only", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--limit", type=float, default=140.0)
    asked = parser.parse_args()
    devices = [jax.devices()[0], jax.devices("cpu")[-1]]
    chosen = [
        program
        for program in PROGRAMS
        if not asked.words or any(word in program.name for word in asked.words)
    ]
    runs = {program.name: runs_of(program, devices, asked.small) for program in chosen}
    if devices[0] == devices[1]:
        print("There is no accelerator: the processor's own times, and nothing to compare with.")
    if asked.device_only or devices[0] == devices[1]:
        del devices[1]
        for places in runs.values():
            for place in ("cpu64", "cpu32"):
                places.pop(place, None)
    limits: dict[str, dict[str, float]] = {}
    rows: dict[str, dict[str, object]] = {}
    for bits, share in zip(BITS, SHARES):
        limits[f"device{bits}"] = peaks(devices[0], bits, asked.small)
        for places in runs.values():
            for run in (run for run in places.values() if run.bits == bits):
                if seconds_since_start() < share * asked.limit:
                    run.call_first()
                    run.time_warm()
                else:
                    run.error = "left out: no time"
            rows = {name: summary(places, limits) for name, places in runs.items()}
            if asked.out:
                report = {
                    "device": devices[0].device_kind,
                    "processor cores": os.cpu_count(),
                    "jax": jax.__version__,
                    "orderparam": op.__version__,
                    "small": asked.small,
                    "peaks": limits,
                    "programs": rows,
                }
                asked.out.write_text(json.dumps(_without_nan(report), indent=1) + "\n")
        jax.clear_caches()  # constants that were traced in float64 must not meet float32
    console = Console(width=190)
    title = f"orderparam {op.__version__}, jax {jax.__version__}, {devices[0].device_kind}"
    console.print(table_of(rows, title, asked.small))
    for place, numbers in limits.items():
        console.print(place, {name: f"{value:.3g}" for name, value in numbers.items()})
    wrong = [
        line for program in chosen for line in complaints(program.name, program, runs[program.name])
    ]
    for line in wrong:
        print(line)
    print(f"{seconds_since_start():.0f} s in all", flush=True)
    return 1 if asked.check and wrong else 0


def _without_nan(value: object) -> object:
    if isinstance(value, dict):
        return {name: _without_nan(part) for name, part in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


if __name__ == "__main__":
    raise SystemExit(main())
