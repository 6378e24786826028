"""Study of scale-free data: spectra and targets of real images, and exponents of learning
curves.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, Literal

import numpy as np

from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand, Panel
from orderparam.plotting.measured import power_law
from orderparam.plotting.style import COLOURS, GREY, ink
from orderparam.solve.straight_line import straight_line
from orderparam.systems.scaling_laws.scale_free.experiment import gaussian_clone, learned_pool
from orderparam.systems.scaling_laws.scale_free.model import ScaleFreeData
from orderparam.systems.scaling_laws.scale_free.theory import scale_free_fit, spectral_curve

_MARKS = {"full spectrum": "+", "real data": "o", "Gaussian clone": "s"}
_CURVES = {
    "full spectrum": "theory, full spectrum",
    "real data": "measured errors",
    "Gaussian clone": "errors of Gaussian clones",
}


def draw_law(name: str, axes: Any, comparison: Comparison) -> None:
    """Draw eigenvalues or tails of the target, and the fitted power law over the ranks to which it
    was fitted."""
    for number, fit in enumerate(comparison.theories(part="spectrum").values()):
        one = fit.squeeze()
        rank, values = one["rank"].values, one[name].values
        axes.plot(rank, values, ".", color=COLOURS[number], label=one.attrs["facets"]["data"])
        if name == "target_tail":
            power, inside = (
                -float(one["target_exponent"]),
                rank <= comparison.parameters["pool"] / 10,
            )
        else:
            power = -float(one["spectral_exponent"])
            inside = (rank >= float(one["first"])) & (rank <= float(one["last"]))
        x, y = rank[inside], values[inside]
        if len(x) > 1:
            height = np.exp(np.mean(np.log(y) - power * np.log(x)))
            label = None if number else "fitted power law"
            axes.plot(x, height * x**power, color=GREY, zorder=1, label=label)
    words = "target's power from here on" if name == "target_tail" else r"eigenvalue $\lambda_k$"
    axes.set(xscale="log", yscale="log", xlabel="rank $k$", ylabel=words)


def draw_exponents(axes: Any, comparison: Comparison) -> None:
    """Draw one row for each data set: the exponent that the power laws predict, and those of the
    three learning curves.
    """
    from matplotlib.lines import Line2D

    rows: list[str] = []
    for fit in comparison.theories(part="spectrum").values():
        name = fit.attrs["facets"]["data"]
        place, colour = len(rows), COLOURS[len(rows)]
        rows.append(name)
        error = 1.96 * float(fit["learning_exponent_error"])
        axes.errorbar(
            float(fit["learning_exponent"]),
            place + 0.3,
            xerr=error,
            fmt="D",
            color=colour,
            markersize=4,
        )
        for lower, data in enumerate(comparison.curves(part="error", data=name).values()):
            x = np.asarray(data["n_train"].values, float)
            pool = comparison.parameters["pool"]
            # the error on those examples of a pool that are not in the training set
            outside = pool / (pool - data["n_train"])
            y = data["test_error"] if "test_error" in data else data["population_error"] * outside
            if "seed" in y.dims:
                slope, error = power_law(x, y)
            else:
                slope, error = straight_line(np.log(x), np.log(y.values)).slope, 0.0
            marker = _MARKS[data.attrs["label"]]
            axes.errorbar(
                -slope,
                place + 0.1 - 0.2 * lower,
                xerr=error,
                fmt=marker,
                color=colour,
                mfc="white",
                markersize=5,
            )
    look: dict[str, Any] = {"color": ink(), "linestyle": "none", "markersize": 5}
    handles = [
        Line2D([], [], marker="D", label="fitted power laws", **look),
        *(
            Line2D([], [], marker=mark, markerfacecolor="white", label=_CURVES[label], **look)
            for label, mark in _MARKS.items()
        ),
    ]
    axes.legend(handles=handles, loc="upper right", title="exponent of")
    axes.set(
        xlabel="exponent of the error",
        yticks=range(len(rows)),
        yticklabels=rows,
        ylim=(-0.7, len(rows) + 0.6),
    )


@study(
    "scale-free-data",
    title=(
        "The full spectrum predicts learning curves of images within a fifth; power laws fitted to "
        "it give their exponent roughly"
    ),
    source="Bahri et al. 2024 (arXiv:2102.06701); Spigler, Geiger, Wyart 2020; Caponnetto, De Vito "
    "2007",
    panels=[
        Freehand(partial(draw_law, "population_eigenvalue")),
        Freehand(partial(draw_law, "target_tail")),
        Panel("n_train", "test_error", by="data", where={"part": "error"}, log="xy"),
        Freehand(draw_exponents),
    ],
    caption=(
        "{pool} images, even against odd classes, kernel of one wide {kernel} layer. Eigenvalues "
        "are corrected for the size of the pool. Top: data (dots), and power laws (grey) over the "
        "ranks to which they are fitted. Last panel, with 95 % intervals: exponent that these "
        "power laws predict, and exponents of three learning curves: theory of the full spectrum, "
        "measured, and measured on Gaussian data with the same spectrum and target (clones)."
    ),
    observables=("test_error", "population_error"),
    seconds=(60, 900),
    gallery={"data": ("digits", "mnist"), "sizes": (15, 30, 60, 120, 240, 480), "seeds": 24},
    full={"pool": 4000, "sizes": (20, 40, 80, 160, 320, 640), "seeds": 16},
    columns=2,
    explained=(
        "Real images are not Gaussian: from 60 digits on the measured error is 9 to 20 % above the "
        "prediction from the spectrum, and 6 to 10 % from 240 images of MNIST on. Gaussian clones "
        "with the same spectrum and target have 0 of 12 points beyond three standard errors."
    ),
)
def scale_free_data(
    data: tuple[str, ...] = ("digits", "mnist", "cifar10"),
    kernel: Literal["linear", "erf", "relu"] = "relu",
    pool: int = 1200,
    sizes: tuple[int, ...] = (15, 30, 60, 120),
    seeds: int = 8,
) -> Iterator[Curve]:
    fine = {"n_train": tuple(np.geomspace(min(sizes), max(sizes), 13).tolist())}
    for name in data:
        system, facets = (
            ScaleFreeData.of(name, pool, kernel=kernel),
            {"part": "error", "data": name},
        )
        yield Curve(
            "power laws", scale_free_fit, system, {}, facets={"part": "spectrum", "data": name}
        )
        yield Curve("full spectrum", spectral_curve, system, fine, facets=facets)
        yield Curve("real data", learned_pool, system, {"n_train": sizes}, seeds, facets=facets)
        yield Curve(
            "Gaussian clone", gaussian_clone, system, {"n_train": sizes}, seeds, facets=facets
        )
