"""The house style of all figures, and how they are written to disk."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from cycler import cycler

from orderparam.core.paths import whole_file

# Okabe and Ito's palette: told apart by colour-blind readers and in print, on white and on black.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31")
MARKERS = ("o", "s", "D", "^", "v", "P")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
GREY = "0.55"  # colours of guides and baselines, on white and on black
COLUMN, PAGE = 3.4, 7.0  # inches: one column of a journal, and its page

_STYLE: dict[Any, Any] = {
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.labelsize": 9,
    "axes.titlesize": 9,
    "errorbar.capsize": 2,
    "figure.constrained_layout.use": True,
    "figure.dpi": 110,
    "font.size": 9,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "legend.handlelength": 1.8,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "mathtext.fontset": "cm",
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
    # widths of text are the same at every resolution, because lines are broken by them
    "text.hinting": "none",
    "xtick.direction": "in",
    "xtick.labelsize": 8,
    "ytick.direction": "in",
    "ytick.labelsize": 8,
}
_DARK: dict[Any, Any] = {
    "axes.facecolor": "#16181d",
    "figure.facecolor": "#16181d",
    **{
        name: "0.9"
        for name in (
            "axes.edgecolor",
            "axes.labelcolor",
            "text.color",
            "xtick.color",
            "ytick.color",
        )
    },
}


@contextmanager
def house_style(dark: bool = False) -> Iterator[None]:
    """A context in which figures have the look of this package; nothing outside changes."""
    with mpl.rc_context({**_STYLE, **(_DARK if dark else {})}):
        yield


def ink() -> str:
    """The colour of text and of measurements: black, or nearly white on a dark background."""
    return mpl.rcParams["text.color"]


def paper() -> str:
    """The colour of the background, which fills open marks."""
    return mpl.rcParams["axes.facecolor"]


def save(figure: Any, stem: str | Path) -> list[Path]:
    """Writes `stem.png` and `stem.pdf`, each completely or not at all, and closes the figure."""
    import matplotlib.pyplot as plt

    # it warns of the dates inside old fonts
    logging.getLogger("fontTools").setLevel(logging.ERROR)
    stem, written = Path(stem), []
    with house_style():
        for ending in ("png", "pdf"):
            target = stem.with_name(f"{stem.name}.{ending}")
            with whole_file(target) as aside:
                figure.savefig(aside, format=ending)
            # widths of text do not depend on the format, so that the layout is found once; without
            # any engine the figure is not drawn a second time to find it
            with mpl.rc_context({"figure.constrained_layout.use": False}):
                figure.set_layout_engine(None)
            written.append(target)
    plt.close(figure)
    return written
