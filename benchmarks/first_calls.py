"""First calls: every registered theory on the example systems of its tests, and every sampler. The
first call compiles, those with other numbers should not.

    python benchmarks/first_calls.py
    python benchmarks/first_calls.py one_step multi_index         (these topics alone)
    python benchmarks/first_calls.py --keep calls.jsonl           (goes on where it was interrupted)

`programs` counts what the first call compiled, and `again` what the others did (0: nothing is
compiled again, whatever the numbers). Times are processor seconds; each topic begins with nothing
compiled. The compilation cache on disk is off, so that the first call is that of a machine which
has never run it; with ORDERPARAM_CACHE=FOLDER a second run shows what it costs where it has.
"""

import argparse
import importlib
import json
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ.setdefault("ORDERPARAM_CACHE", "off")
TOPICS = Path(__file__).parents[1] / "tests" / "every_theory"
sys.path[:0] = [str(TOPICS), str(TOPICS.parent)]

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from checks import compiled, numbers, of_topic  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import orderparam as op  # noqa: E402

CALLS = 5
WORST = 10
SAMPLERS = "samplers"
COLUMNS = ("theory", "system", "first call, s", "others, ms", "programs", "again")


def measured(call: Callable[[int], object]) -> dict:
    """Processor seconds of the first call and of the fastest other, and the programs compiled in
    both.

    Args:
        call: does the work with the numbers of the given index; 0 are the first.
    """

    def counted(index: int) -> tuple[float, int]:
        started, before = time.process_time(), compiled["programs"]
        jax.block_until_ready(call(index))
        return time.process_time() - started, compiled["programs"] - before

    first, programs = counted(0)
    others = [counted(1 + k) for k in range(CALLS)]
    return {
        "first": first,
        "other": min(seconds for seconds, _ in others),
        "programs": programs,
        "again": sum(more for _, more in others),
    }


def of_theories(topic: str, done: set[str]) -> Iterator[dict]:
    """A row for each theory of the topic that is not done."""
    examples = importlib.import_module(f"test_{topic}")
    for theory in of_topic(topic):
        if theory.name in done:
            continue
        options = getattr(examples, "OPTIONS", {}).get(theory.fn.__name__, {})
        for system in examples.SYSTEMS:
            if not isinstance(system, theory.systems):
                continue
            changed = [
                (name, value)
                for name, value, declaration in numbers(system)
                if not declaration.integer
            ][:1]

            def call(index, theory=theory, system=system, options=options, changed=changed):
                other = {name: value * (1 - 1e-3 * index) for name, value in changed}
                return theory(system.with_(**other), **options)

            try:
                row = measured(call)
            except ValueError:  # refused: another example is for it
                continue
            host = "" if theory.traced else " (host)"
            yield (
                {"name": theory.name, "shown": theory.name + host}
                | row
                | {"system": type(system).__name__}
            )
            break


def of_samplers(done: set[str]) -> Iterator[dict]:
    """A row for each method of sampling, on four chains in three dimensions."""

    def density(u):
        return -jnp.sum(u**2) / 2

    for method in ("hmc", "mala", "nuts", "langevin"):

        def call(index, method=method):
            start = jnp.full((4, 3), 1e-3 * index)
            drawn = op.sampling.sample(
                density, start, jax.random.key(index), method=method, samples=100, warmup=50
            )
            return drawn.log_density

        name = f"sampling.{method}"
        if name not in done:
            yield {"name": name, "shown": name, "system": "Gaussian"} | measured(call)


def main() -> None:
    warnings.simplefilter("ignore")  # of examples at the edge of what their theory is good for
    parser = argparse.ArgumentParser()
    parser.add_argument("topics", nargs="*")
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    every = sorted(path.stem.removeprefix("test_") for path in TOPICS.glob("test_*.py"))
    kept = given.keep.read_text() if given.keep and given.keep.exists() else ""
    rows = {row["name"]: row for row in map(json.loads, kept.splitlines())}
    for topic in given.topics or [SAMPLERS, *every]:
        jax.clear_caches()
        done = set(rows)
        for row in of_samplers(done) if topic == SAMPLERS else of_theories(topic, done):
            rows[row["name"]] = row
            if given.keep:
                with given.keep.open("a") as file:
                    file.write(json.dumps(row) + "\n")
    shown(list(rows.values()))


def shown(rows: list[dict]) -> None:
    """Prints a table of all rows, and which are the worst."""
    table = Table(*COLUMNS)
    for row in sorted(rows, key=lambda row: row["name"]):
        table.add_row(
            row["shown"],
            row["system"],
            f"{row['first']:.2f}",
            f"{1e3 * row['other']:.2f}",
            str(row["programs"]),
            str(row["again"]),
        )
    console = Console(width=120)
    console.print(table)
    if not rows:
        return
    median = statistics.median(row["first"] for row in rows)
    many = sum(row["programs"] > 5 for row in rows)
    again = sum(row["again"] > 0 for row in rows)
    console.print(
        f"first calls of {len(rows)} theories and samplers: median {median:.2f} s; "
        f"{many} compile more than five programs, {again} again at other numbers; worst"
    )
    for row in sorted(rows, key=lambda row: -row["first"])[:WORST]:
        console.print(f"  {row['first']:5.1f} s, {row['programs']:3d} programs: {row['name']}")


if __name__ == "__main__":
    main()
