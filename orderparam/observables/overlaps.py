"""The overlap of two trainings, whatever the order of their hidden units."""

from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from orderparam.core.late import linear_sum_assignment
from orderparam.observables.observable import Null, Observed, clocked, jackknifed

SPLITS = 4
DRAWS = 99
SOURCE = "Tatro et al. 2020; Ainsworth et al. 2023 (matching); cross-fitting derived here"


class Overlap(NamedTuple):
    """measured: the mean cosine of matched units. agreement: the share of units that both halves
    of the coordinates match alike; below 0.95 the overlap is a lower bound."""

    measured: Observed
    agreement: float


def overlap(
    first: Float[np.ndarray, "unit weight"],
    second: Float[np.ndarray, "unit weight"],
    *,
    signs: bool = False,
    seed: int = 0,
) -> Overlap:
    """The mean cosine of the hidden units of two networks, matched to one another.

    The matching that makes the overlap largest finds a positive overlap in independent networks
    too. So units are matched on one half of the coordinates and compared on the other half, then
    the other way round, for 4 random halves.

    Args:
        first, second: Weights of the units (units, coordinates): incoming weights, with outgoing
            weights appended where they matter; or activations (units, examples). Only directions
            count, so that relu units may be rescaled.
        signs: A unit and its negative count as one (odd activations).
        seed: Seed of the halves and of the null distribution.

    Returns:
        An `Overlap`. Null hypothesis: the coordinates of the second network are in random order.
            The interval is that of the mean over units, for the given matching.

    Raises:
        ValueError: for shapes that differ, and fewer than two units or four coordinates.

    Accuracy: unbiased for independent networks; too low where half of the coordinates cannot find
        the partners, which `agreement` shows.

    Theory: the order parameter q between two replicas: 0 for independent ones, 1 where all
        trainings end at one network up to symmetry.

    Source: Tatro et al. 2020; Ainsworth et al. 2023 (matching); cross-fitting derived here.

    >>> w = np.random.default_rng(0).normal(size=(12, 200))
    >>> round(float(op.observables.overlap(w, w[::-1]).measured.value), 6)
    1.0
    """
    a, b = (np.asarray(one, np.float64) for one in (first, second))
    if a.shape != b.shape or a.ndim != 2 or a.shape[0] < 2 or a.shape[1] < 4:
        raise ValueError(
            f"units of shapes {a.shape} and {b.shape}: must be equal, (units, coordinates), "
            "at least (2, 4)"
        )
    rng = np.random.default_rng(seed)
    with clocked() as seconds:
        halves = [rng.permutation(a.shape[1]) for _ in range(SPLITS)]
        cosines, agreement = _matched(a, b, halves, signs)
        drawn = [
            _matched(a, b[:, rng.permutation(b.shape[1])], halves[:1], signs)[0].mean()
            for _ in range(DRAWS)
        ]
        k = len(cosines)
        without = {"units": (cosines.sum() - cosines) / (k - 1)}
        measured = jackknifed(
            "overlap", float(cosines.mean()), without, estimand="units", source=SOURCE
        )
        null = Null("coordinates in another order", np.array(drawn))
    note = "" if agreement >= 0.95 else f"a lower bound: halves agree on {agreement:.0%} of units"
    measured = replace(
        measured, null=null, p_value=null.p_value(measured.value), seconds=seconds[0], note=note
    )
    return Overlap(measured, agreement)


def seed_overlap(
    networks: list[Float[np.ndarray, "unit weight"]], *, signs: bool = False, seed: int = 0
) -> Observed:
    """The mean overlap of all pairs of three or more trainings; its interval is the jackknife over
    trainings, not over pairs. Args, Raises and Source are those of `overlap`.

    >>> rng = np.random.default_rng(0)
    >>> w = [rng.normal(size=(8, 300)) for _ in range(3)]
    >>> found = op.observables.seed_overlap(w)
    >>> bool(abs(found.value) < 0.1)
    True
    """
    count = len(networks)
    if count < 3:
        raise ValueError(f"{count} trainings: there must be at least three")
    rng, pairs = np.random.default_rng(seed), {}
    halves = [rng.permutation(networks[0].shape[1]) for _ in range(SPLITS)]
    for i, j in combinations(range(count), 2):
        pairs[i, j] = _matched(networks[i], networks[j], halves, signs)[0].mean()
    left = [np.mean([q for pair, q in pairs.items() if i not in pair]) for i in range(count)]
    return jackknifed(
        "overlap", float(np.mean(list(pairs.values()))), {"seeds": np.array(left)},
        estimand="seeds", source=SOURCE,
    )  # fmt: skip


def _matched(
    a: np.ndarray, b: np.ndarray, halves: list[np.ndarray], signs: bool
) -> tuple[Float[np.ndarray, "unit"], float]:
    """The mean over halves of the cosine of each unit with its partner, and the share of units
    whose partners agree."""
    found, agree = np.zeros(len(a)), 0.0
    for order in halves:
        parts = np.array_split(order, 2)
        tables = [_cosines(a[:, part], b[:, part]) for part in parts]
        matches = [
            linear_sum_assignment(-np.abs(table) if signs else -table)[1] for table in tables
        ]
        units = np.arange(len(a))
        for match, table, other in zip(matches, tables, reversed(tables)):
            sign = np.sign(table[units, match]) if signs else 1.0
            found += sign * other[units, match] / (2 * len(halves))
        agree += float(np.mean(matches[0] == matches[1])) / len(halves)
    return found, agree


def _cosines(a: np.ndarray, b: np.ndarray) -> Float[np.ndarray, "unit unit"]:
    def unit(w: np.ndarray) -> np.ndarray:
        return w / np.maximum(np.linalg.norm(w, axis=1, keepdims=True), 1e-300)

    return unit(a) @ unit(b).T
