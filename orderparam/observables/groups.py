"""Intervals and p-values over groups of examples that depend on one another: the tokens of a text,
the frames of a film, the patients of a hospital."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from orderparam.observables.observable import Null, Observed, clocked, jackknifed

FEWEST, MOST = 8, 60  # groups; more are put together at random
DRAWS = 199  # permutations of groups
REPEATED = 0.01  # share of examples that repeat another one, above which there is a warning


def warn_of_repeats(layers: Iterable[np.ndarray]) -> None:
    """Warns where more than 1 % of the rows repeat another one, in every array: they are not
    independent, and intervals over examples are then too narrow."""
    kinds, n = [], 0
    for rows in layers:
        n = len(rows)
        kinds.append(len({row.tobytes() for row in np.ascontiguousarray(rows)}))
    repeats = n - max(kinds, default=n)
    if repeats > REPEATED * n:
        warnings.warn(
            f"{repeats} of {n} examples repeat another one, but intervals assume independent ones: "
            "leave repeats out, or name what belongs together with groups (--groups)",
            stacklevel=3,
        )


def group_codes(groups: np.ndarray, examples: int, seed: int = 0) -> np.ndarray:
    """The number of the group of each example; of more than 60 groups, some are put together.

    Raises `ValueError` for labels that are not one for each example, and fewer than 8 groups.
    """
    labels = np.asarray(groups)
    if labels.shape != (examples,):
        raise ValueError(f"groups have shape {labels.shape}: must be one label for each example")
    kinds, codes = np.unique(labels, return_inverse=True)
    if len(kinds) < FEWEST:
        raise ValueError(f"there are {len(kinds)} groups: must be at least {FEWEST}")
    if len(kinds) <= MOST:
        return codes
    return (np.random.default_rng(seed).permutation(len(kinds)) % MOST)[codes]


def over_groups(
    measure: Callable[..., Observed],
    arrays: Sequence[np.ndarray],
    codes: np.ndarray,
    draws: int = 0,
    seed: int = 0,
) -> Observed:
    """A number whose independent units are groups of examples instead of examples.

    Args:
        measure: The observable of these arrays, with a row for each example.
        arrays: Of all examples.
        codes: The number of the group of each example (`group_codes`).
        draws: Permutations of whole groups of the last array for the p-value, 0 for none; only
            where all groups have the same number of examples.
        seed: Of the permutations.

    Returns:
        An `Observed`: its interval is the jackknife over groups and over whatever other units the
        number has, and the bias of order 1 / groups by pairs of one group is subtracted.

    Source: Quenouille 1956 (jackknife).
    """
    with clocked() as seconds:
        whole = measure(*arrays)
        kinds = np.unique(codes)
        left = [measure(*(one[codes != kind] for one in arrays)).plain for kind in kinds]
        others = {kind: each for kind, each in whole.without.items() if kind != "examples"}
        found = jackknifed(
            whole.name, whole.plain, {**others, "groups": np.array(left)},
            estimand=whole.estimand, source=whole.source,
        )  # fmt: skip
        note, p_value, null = f"over {len(kinds)} groups of examples", np.nan, None
        sizes = np.bincount(codes)
        if draws and np.ptp(sizes[kinds]) == 0:
            order = np.argsort(codes, kind="stable")
            rows = order.reshape(len(kinds), -1)
            first, last = [one[order] for one in arrays[:-1]], arrays[-1]
            rng = np.random.default_rng(seed)
            moved = (rng.permutation(rows).reshape(-1) for _ in range(min(draws, DRAWS)))
            drawn = np.array([measure(*first, last[each]).plain for each in moved])
            null = Null("groups permuted", drawn)
            p_value = null.p_value(whole.plain)
        elif draws:
            note += "; no p-value, which needs groups of one size"
    return replace(found, null=null, p_value=p_value, note=note, seconds=seconds[0])
