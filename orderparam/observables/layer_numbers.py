"""The numbers of one representation: similarity to the start, alignment with the targets, dimension."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from orderparam.observables.dimension import dimension
from orderparam.observables.groups import over_groups
from orderparam.observables.observable import Observed, difference
from orderparam.observables.similarity import alignment, similarity


def numbers_of_layer(
    array: np.ndarray,
    before: np.ndarray | None,
    y: np.ndarray | None,
    codes: np.ndarray | None,
    draws: int,
    seed: int,
) -> list[Observed]:
    """The numbers of one representation. codes: the groups of examples, if any."""

    def measured(number: Any, *arrays: np.ndarray, null: bool = False, **words: Any) -> Observed:
        if codes is None:
            return number(*arrays, **words, **({"draws": draws, "seed": seed} if null else {}))
        return over_groups(partial(number, **words), arrays, codes, draws if null else 0, seed)

    similar, aligned = partial(similarity, draws=0), partial(alignment, draws=0)
    found = []
    try:
        if before is not None:
            close = measured(similar, before, array, null=True)
            found.append(replace(close, name="similarity to start"))
        if y is not None:
            now = measured(aligned, array, y, null=True, estimand="examples")
            found.append(now)
            wide = measured(aligned, array, y)
            found.append(replace(wide, name="alignment of the wide network"))
            if before is not None:
                early = measured(aligned, before, y, estimand="examples")
                found.append(replace(early, name="alignment at the start"))
                found.append(difference("gain of alignment", now, early))
        found.append(measured(dimension, array))
    except ValueError as error:
        found.append(Observed("dimension", np.nan, note=str(error)))
    return found
