"""Gives the records in docs/gallery the state of this checkout's code, after a change that leaves
all numbers equal.

    python docs/carry_records.py BEFORE

BEFORE is a checkout of the commit before the change. A record that was up to date there keeps its
measurements and takes the new state; others are left alone. This is for changes that are known to
leave numbers equal but for rounding, as two versions of a library do: a function that moves or is
renamed, a sum in another order. The commit says how that is known.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from _site.state import source_state  # noqa: E402

from orderparam.comparison import studies  # noqa: E402


def states() -> dict[str, str]:
    """The state of every study of the package that Python finds first."""
    return {
        name: source_state(study.build.__module__, study.build.__name__)
        for name, study in studies().items()
        if study.build.__module__.startswith("orderparam.")
    }


def states_of(checkout: Path) -> dict[str, str]:
    """The states of the studies of another checkout, found by a process of its own."""
    found = subprocess.run(
        [sys.executable, __file__, "--states"],
        env=os.environ | {"PYTHONPATH": str(checkout)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return dict(json.loads(found.stdout))


def carry(gallery: Path, before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Write the new states into the records that were up to date before; the names of these."""
    carried = []
    for name, state in after.items():
        path = gallery / f"{name}.json"
        old = f' "state": "{before.get(name)}"'
        if before.get(name) == state or not path.is_file() or old not in path.read_text():
            continue
        path.write_text(path.read_text().replace(old, f' "state": "{state}"'))
        carried.append(name)
    return carried


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("before", type=Path, nargs="?", help="checkout before the change")
    parser.add_argument("--states", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.states:
        print(json.dumps(states()))
        return
    if arguments.before is None or not (arguments.before / "orderparam").is_dir():
        parser.error(f"{arguments.before} is not a checkout of this package")
    for name in carry(HERE / "gallery", states_of(arguments.before), states()):
        print(name)


if __name__ == "__main__":
    main()
