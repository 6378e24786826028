"""The named figure of stored pictures: recall of damaged digits."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand
from orderparam.plotting.measured import dots
from orderparam.systems.associative_memory.images.experiment import one_picture, restored
from orderparam.systems.associative_memory.images.model import StoredImages

# ------------------------------------------------------------------------------------------------
# The panel of pictures, drawn by a function of its own.


def draw_pictures(axes: Any, comparison: Comparison) -> None:
    """Draw one row for each rule: a stored picture, its damaged copy, and the retrieved picture.

    A pixel of value +1 is black.
    """
    rows, names = [], []
    for data in comparison.experiments(part="pictures").values():
        for name in ("stored", "damaged", "retrieved"):
            flat = data[name].isel(seed=0).values.ravel()
            side = int(np.sqrt(flat.size))
            rows.append(np.pad(flat[: side**2].reshape(side, side), 1, constant_values=-1))
        names.append(data.attrs["facets"]["rule"])
    side = len(rows[0])
    image = np.block([rows[3 * i : 3 * i + 3] for i in range(len(names))])
    axes.imshow(image, cmap="binary", vmin=-1, vmax=1, interpolation="nearest", aspect="auto")
    axes.set_xticks([side / 2 + side * i for i in range(3)], ["stored", "damaged", "retrieved"])
    axes.set_yticks([side / 2 + side * i for i in range(len(names))], names)
    axes.tick_params(length=0)


def draw_restored(over: str, axes: Any, comparison: Comparison) -> None:
    """Draw the fraction of pictures that are restored exactly against the field `over`.

    The marks of different rules are shifted sideways, so that they do not cover one another.
    """
    for number, data in enumerate(comparison.experiments(part=over).values()):
        x, aside = data[over], (number - 2) / 2
        at = x * 1.06**aside if over == "count" else x + 0.008 * aside
        label = data.attrs["facets"]["rule"]
        dots(axes, at, data["exact"], number, label, linestyle="-", linewidth=0.6)
    axes.set(
        xlabel={"count": "stored pictures", "damage": "damaged pixels"}[over],
        ylabel="restored exactly",
        xscale="log" if over == "count" else "linear",
        ylim=(-0.04, 1.04),
    )


RULES = ("Hebb", "pseudo-inverse", "degree 3", "degree 10", "attention")


@study(
    "stored-images",
    title=(
        "Attention and an energy of degree 10 restore damaged digits where Hebb's rule and degree "
        "3 fail"
    ),
    source="Hopfield 1982; Personnaz, Guyon, Dreyfus 1985; Krotov, Hopfield 2016; Ramsauer et al. "
    "2020",
    seconds=(45, 1800),
    observables=("overlap", "recognised", "exact"),
    gallery={
        "counts": (2, 5, 8, 12, 20, 40, 80, 160, 320),
        "damages": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7),
        "seeds": 24,
    },
    full={
        "data": "mnist",
        "pictures": 2000,
        "counts": (5, 20, 100, 400, 1500),
        "picture_count": 100,
        "seeds": 8,
    },
    columns=3,
    panels=[
        Freehand(draw_pictures),
        Freehand(partial(draw_restored, "count")),
        Freehand(partial(draw_restored, "damage")),
    ],
    caption=r"""
        {data} in black and white. A fraction of the pixels (left and middle: {damage}) is replaced
        by random signs. Left: one of {picture_count} stored pictures. Middle, right: fraction of
        the pictures that are restored without a wrong pixel; on the right {picture_count} pictures
        are stored. Degree $n$: energy $-\sum_\mu (\xi^\mu\cdot s)^n$ of a state $s$, with the
        stored pictures $\xi^\mu$. Attention: all pixels are updated at once, to the mean of the
        pictures weighted by the softmax of the overlaps $\xi^\mu\cdot s$. Marks: means of {seeds}
        runs of {trials} damaged pictures, shifted sideways so that none hides another; bars:
        standard errors. There is no theory line, because theories of such memories assume random
        patterns.
    """,
)
def stored_images(
    data: str = "digits",
    pictures: int = 500,
    counts: tuple[int, ...] = (5, 20, 80),
    damages: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7),
    damage: float = 0.3,
    picture_count: int = 20,
    trials: int = 50,
    seeds: int = 4,
) -> Iterator[Curve]:
    system = StoredImages.of(data, pictures, count=picture_count, damage=damage)
    for rule in RULES:
        run = partial(restored, rule=rule, trials=trials)
        yield Curve(
            "restored",
            partial(one_picture, rule=rule),
            system,
            {},
            seeds,
            facets={"part": "pictures", "rule": rule},
        )
        yield Curve(
            "restored",
            run,
            system,
            {"count": counts},
            seeds,
            facets={"part": "count", "rule": rule},
        )
        yield Curve(
            "restored",
            run,
            system,
            {"damage": damages},
            seeds,
            facets={"part": "damage", "rule": rule},
        )
