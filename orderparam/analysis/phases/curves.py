"""Crossings of neighbouring edges as curves, cut where the kind of the transition changes."""

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orderparam.analysis.phases.crossings import Crossings


@dataclass(frozen=True, eq=False)
class Chain:
    """Consecutive crossings along a boundary, and their kinds; a closed chain ends where it
    begins."""

    members: np.ndarray
    kinds: np.ndarray
    closed: bool

    def pieces(self) -> list[tuple[str, np.ndarray]]:
        """The pieces of a chain with one kind."""
        cuts = [0, *(np.flatnonzero(self.kinds[1:] != self.kinds[:-1]) + 1), len(self.members)]
        return [
            (str(self.kinds[start]), self.members[start:stop])
            for start, stop in itertools.pairwise(cuts)
        ]


def chains(
    crossed: Sequence[tuple[tuple[int, int, int], int]], found: Crossings, resolution: int
) -> list[Chain]:
    """Chains of neighbouring crossings. crossed: edge and view of each crossing. Two crossings of
    one square that separate the same phases are neighbours; of four, those nearest to each
    other."""
    beside: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for number, ((i, j, axis), view) in enumerate(crossed):
        for square in ((i, j), (i, j - 1) if axis == 0 else (i - 1, j)):
            if 0 <= square[0] < resolution and 0 <= square[1] < resolution:
                beside[(*square, view)].append(number)
    neighbours: dict[int, list[int]] = defaultdict(list)
    for members in beside.values():
        pairs = [(a, b) for k, a in enumerate(members) for b in members[k + 1 :]]
        different = {pair: (found.phases[pair[0]] != found.phases[pair[1]]).any() for pair in pairs}
        pairs.sort(
            key=lambda pair: (
                different[pair],
                np.linalg.norm(found.place[pair[0]] - found.place[pair[1]]),
            )
        )
        taken: set[int] = set()
        for a, b in pairs:
            if not taken & {a, b}:
                taken |= {a, b}
                neighbours[a].append(b)
                neighbours[b].append(a)
    left = set(range(len(crossed)))
    made = []
    # open chains begin at one of their ends
    for start in sorted(left, key=lambda number: (len(neighbours[number]), number)):
        if start not in left:
            continue
        members, here = [], start
        while here in left:
            left.remove(here)
            members.append(here)
            here = next((n for n in neighbours[here] if n in left), here)
        closed = len(members) > 2 and start in neighbours[members[-1]]
        made.append(
            Chain(np.array(members), _smoothed(found.kind[members], found.doubt[members]), closed)
        )
    return made


def _smoothed(kinds: np.ndarray, doubt: np.ndarray) -> np.ndarray:
    """Gives a single crossing the kind of its neighbours where both of these agree and are less
    doubtful."""
    smooth = kinds.copy()
    for k in range(1, len(kinds) - 1):
        if kinds[k - 1] == kinds[k + 1] != kinds[k] and doubt[k] >= max(doubt[k - 1], doubt[k + 1]):
            smooth[k] = kinds[k - 1]
    return smooth
