"""How many random draws of each theory, with any of its options, were right, and on which code.

`tests/drawn.txt` holds a line for each example that a theory was drawn around:

    1a2b3c4d 30/30 topic.theory System

a hash of the theory's code and of the example (`state.py`; the folders that it leaves out are left
out here), how many draws were right from the first one on, of how many, the theory, the example.
"""

import os
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

DRAWN = Path(__file__).parents[2] / "tests" / "drawn.txt"


class Draws(NamedTuple):
    """Draws around one example that were right, from the first one on."""

    state: str
    right: int
    of: int


def known() -> dict[str, Draws]:
    """The draws of each example, by the names of its theory and of itself."""
    drawn = {}
    for line in DRAWN.read_text(encoding="utf-8").splitlines() if DRAWN.is_file() else []:
        state, numbers, name = line.split(" ", 2)
        right, _, of = numbers.partition("/")
        drawn[name] = Draws(state, int(right), int(of))
    return drawn


def remember(name: str, draws: Draws) -> None:
    """Write the line of an example."""
    drawn = known() | {name: draws}
    aside = DRAWN.with_suffix(f".{os.getpid()}")
    aside.write_text(
        "".join(
            f"{one.state} {one.right}/{one.of} {name}\n" for name, one in sorted(drawn.items())
        ),
        encoding="utf-8",
    )
    aside.replace(DRAWN)  # a run that is killed meanwhile loses nothing


def in_words(theories: int) -> str:
    """What the file says, for a page: of how many theories all draws were right, and of how many a
    part."""
    of_theory: dict[str, list[Draws]] = defaultdict(list)
    for name, draws in known().items():
        of_theory[name.split(" ", 1)[0]].append(draws)
    whole = [all(one.right == one.of for one in draws) for draws in of_theory.values()]
    right = [sum(one.right for one in draws) for draws in of_theory.values()]
    part = [number for number, all_right in zip(right, whole, strict=True) if not all_right]
    span = " to ".join(str(number) for number in sorted({min(part), max(part)})) if part else ""
    more = f", {span} for {len(part)} more" if part else ""
    return f"all for {sum(whole)} of the {theories} theories{more} ({sum(right):,} draws)"
