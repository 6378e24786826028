"""Every registered theory on the example systems of its tests: the first call, which compiles, and
those with other numbers.

    python benchmarks/every_theory.py
    python benchmarks/every_theory.py one_step multi_index        (these topics alone)

`programs` counts what was compiled by the first call, and again by the others (0: nothing is,
whatever the numbers). Times are processor seconds. The compilation cache on disk is off, so that the
first call is that of a machine which has never run it; a second run with ORDERPARAM_CACHE=FOLDER
shows what the first call costs where it has. The worst first calls stand at the end.
"""

import importlib
import os
import statistics
import sys
import time
import warnings
from pathlib import Path

os.environ.setdefault("ORDERPARAM_CACHE", "off")
TOPICS = Path(__file__).parents[1] / "tests" / "every_theory"
sys.path.insert(0, str(TOPICS))

import jax  # noqa: E402
from checks import compiled, numbers, of_topic  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

CALLS = 5


def measured(theory, system, options):
    """Processor seconds of the first call and of the fastest other, and the programs that were compiled
    in both."""

    def call(at):
        started, before = time.process_time(), compiled["programs"]
        jax.block_until_ready(theory(at, **options))
        return time.process_time() - started, compiled["programs"] - before

    first, programs = call(system)
    changed = [
        (name, value) for name, value, declaration in numbers(system) if not declaration.integer
    ][:1]
    others = [
        call(system.with_(**{name: value * (1 + 1e-3 * k) for name, value in changed}))
        for k in range(CALLS)
    ]
    return first, min(seconds for seconds, _ in others), programs, sum(again for _, again in others)


def main() -> None:
    warnings.simplefilter("ignore")  # of examples at the edge of what their theory is good for
    table = Table("theory", "system", "first call, s", "others, ms", "programs", "again")
    topics = sys.argv[1:] or sorted(
        path.stem.removeprefix("test_") for path in TOPICS.glob("test_*.py")
    )
    firsts = {}
    for topic in topics:
        examples = importlib.import_module(f"test_{topic}")
        for theory in of_topic(topic):
            options = getattr(examples, "OPTIONS", {}).get(theory.fn.__name__, {})
            for system in (
                system for system in examples.SYSTEMS if isinstance(system, theory.systems)
            ):
                try:
                    first, other, programs, again = measured(theory, system, options)
                except ValueError:  # refused: another example is for it
                    continue
                firsts[theory.name] = (first, programs)
                name = theory.name if theory.traced else f"{theory.name} (host)"
                table.add_row(
                    name,
                    type(system).__name__,
                    f"{first:.2f}",
                    f"{1e3 * other:.2f}",
                    str(programs),
                    str(again),
                )
                break
    console = Console(width=120)
    console.print(table)
    worst = sorted(firsts.items(), key=lambda item: -item[1][0])[:8]
    median = statistics.median(first for first, _ in firsts.values())
    console.print(f"first calls of {len(firsts)} theories: median {median:.2f} s; worst")
    for name, (first, programs) in worst:
        console.print(f"  {first:5.1f} s, {programs:3d} programs: {name}")


if __name__ == "__main__":
    main()
