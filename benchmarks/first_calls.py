"""First calls: every registered theory on the example systems of its tests, and every sampler. The
first call compiles, those with other numbers should not.

    python benchmarks/first_calls.py
    python benchmarks/first_calls.py one_step multi_index         (these topics alone)
    python benchmarks/first_calls.py --keep calls.jsonl           (goes on where it was interrupted)
    python benchmarks/first_calls.py --fresh 30                   (30 of them, in new processes)

`programs` counts what the first call compiled, and `again` what the others did (0: nothing is
compiled again, whatever the numbers). Times are processor seconds; each topic begins with nothing
compiled. The compilation cache on disk is off, so that the first call is that of a machine which
has never run it; with ORDERPARAM_CACHE=FOLDER a second run shows what it costs where it has.

--fresh makes each call in a process of its own that finds nothing on disk, and in a second one that
finds what the first has left. It takes as many as are asked for, at even distances in the list of
names.
"""

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ.setdefault("ORDERPARAM_CACHE", "off")
# JAX comes first here, and nothing would be read from disk: see docs/howto/speed.md
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
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
SAMPLERS, METHODS = "samplers", ("hmc", "mala", "nuts", "langevin")
COLUMNS = ("theory", "system", "first call, s", "others, ms", "programs", "again")
KEPT = "from disk, s"


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

    for method in METHODS:

        def call(index, method=method):
            start = jnp.full((4, 3), 1e-3 * index)
            drawn = op.sampling.sample(
                density, start, jax.random.key(index), method=method, samples=100, warmup=50
            )
            return drawn.log_density

        name = f"sampling.{method}"
        if name not in done:
            yield {"name": name, "shown": name, "system": "Gaussian"} | measured(call)


def names(topic: str) -> list[str]:
    """What the rows of a topic are called."""
    if topic == SAMPLERS:
        return [f"sampling.{method}" for method in METHODS]
    return [theory.name for theory in of_topic(topic)]


def chosen(topics: list[str], count: int) -> list[tuple[str, str]]:
    """So many pairs of a topic and a name, at even distances; all of them where there are fewer."""
    every = [(topic, name) for topic in topics for name in names(topic)]
    count = min(count, len(every))
    return [every[k * len(every) // count] for k in range(count)]


def fresh(topic: str, name: str) -> dict | None:
    """The row of one call in a process that finds nothing on disk; `kept` is the first call of the
    next process. None where no example is for this theory."""
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        for number in range(2):
            found = Path(cache) / f"{number}.jsonl"
            subprocess.run(
                [sys.executable, __file__, topic, "--only", name, "--keep", found],
                env=os.environ | {"ORDERPARAM_CACHE": f"{cache}/programs"},
                stdout=subprocess.DEVNULL,
                check=True,
            )
            if not found.exists():
                return None
            rows.append(json.loads(found.read_text()))
    return rows[0] | {"kept": rows[1]["first"]}


def main() -> None:
    warnings.simplefilter("ignore")  # of examples at the edge of what their theory is good for
    parser = argparse.ArgumentParser()
    parser.add_argument("topics", nargs="*")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--fresh", type=int)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    given = parser.parse_args()
    every = sorted(path.stem.removeprefix("test_") for path in TOPICS.glob("test_*.py"))
    topics = given.topics or [SAMPLERS, *every]
    kept = given.keep.read_text() if given.keep and given.keep.exists() else ""
    rows = {row["name"]: row for row in map(json.loads, kept.splitlines())}

    def keep(row: dict | None) -> None:
        if row is None:
            return
        rows[row["name"]] = row
        if given.keep:
            with given.keep.open("a") as file:
                file.write(json.dumps(row) + "\n")

    if given.fresh:
        for topic, name in chosen(topics, given.fresh):
            if name not in rows:
                keep(fresh(topic, name))
        shown(list(rows.values()))
        return
    for topic in topics:
        jax.clear_caches()
        done = set(rows) if given.only is None else set(names(topic)) - {given.only}
        for row in of_samplers(done) if topic == SAMPLERS else of_theories(topic, done):
            keep(row)
    shown(list(rows.values()))


def shown(rows: list[dict]) -> None:
    """Prints a table of all rows, and which are the worst."""
    disk = any("kept" in row for row in rows)
    table = Table(*COLUMNS, *([KEPT] if disk else []))
    for row in sorted(rows, key=lambda row: row["name"]):
        table.add_row(
            row["shown"],
            row["system"],
            f"{row['first']:.2f}",
            f"{1e3 * row['other']:.2f}",
            str(row["programs"]),
            str(row["again"]),
            *([f"{row['kept']:.2f}"] if "kept" in row else []),
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
        f"{many} compile more than five programs, {again} again at other numbers"
    )
    from_disk = [row["kept"] for row in rows if "kept" in row]
    if from_disk:
        console.print(
            f"from disk: median {statistics.median(from_disk):.2f} s, worst {max(from_disk):.2f} s"
        )
    console.print("worst")
    for row in sorted(rows, key=lambda row: -row["first"])[:WORST]:
        console.print(f"  {row['first']:5.1f} s, {row['programs']:3d} programs: {row['name']}")


if __name__ == "__main__":
    main()
