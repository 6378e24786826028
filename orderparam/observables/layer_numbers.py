"""The numbers of one representation: similarity to the start, alignment with the targets,
dimension."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from orderparam.observables.dimension import dimension
from orderparam.observables.groups import over_groups
from orderparam.observables.observable import Observed, difference
from orderparam.observables.similarity import alignment, checked, similarity


def numbers_of_layer(
    array: np.ndarray,
    before: np.ndarray | None,
    y: np.ndarray | None,
    codes: np.ndarray | None,
    draws: int,
    seed: int,
) -> list[Observed]:
    """The numbers of one representation. codes: the groups of examples, if any. A number that these
    arrays do not allow is NaN, and its note has the reason."""

    def measured(number: Any, *arrays: np.ndarray, null: bool = False, **words: Any) -> Observed:
        if codes is None:
            return number(*arrays, **words, **({"draws": draws, "seed": seed} if null else {}))
        return over_groups(partial(number, **words), arrays, codes, draws if null else 0, seed)

    faults: dict[str, str] = {}
    for name, one in (("the start", before), ("the layer", array), ("the target", y)):
        try:
            if one is not None:
                checked(name, one)
        except ValueError as error:
            faults[name] = str(error)
    found: list[Observed] = []

    def put(name: str, number: Callable[[], Observed], *needed: str) -> Observed:
        faulty = [faults[part] for part in ("the layer", *needed) if part in faults]
        try:
            one = Observed("", np.nan, note=faulty[0]) if faulty else number()
        except ValueError as error:  # without one group a layer may be the same for all others
            one = Observed("", np.nan, note=str(error))
        one = replace(one, name=name)
        found.append(one)
        return one

    similar, aligned = partial(similarity, draws=0), partial(alignment, draws=0)
    if before is not None:
        put("similarity to start", lambda: measured(similar, before, array, null=True), "the start")
    if y is not None:
        as_it_is = partial(measured, aligned, estimand="examples")
        now = put("alignment", lambda: as_it_is(array, y, null=True), "the target")
        put("alignment of the wide network", lambda: measured(aligned, array, y), "the target")
        if before is not None:
            both = "the start", "the target"
            early = put("alignment at the start", lambda: as_it_is(before, y), *both)
            put("gain of alignment", lambda: difference("gain", now, early), *both)
    put("dimension", lambda: measured(dimension, array))
    return found
