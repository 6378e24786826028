"""Studies of random features."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.colors import LogNorm

from orderparam.analysis.phases.study import diagram_curve
from orderparam.comparison import Comparison, Curve, between, study
from orderparam.losses import RealLabels, SignLabels
from orderparam.plotting import Freehand, Panel, curve, horizontal, vertical
from orderparam.plotting.measured import mean_and_error
from orderparam.systems.random_features.experiment import (
    Features,
    learn,
    learn_at_optimal_ridge,
)
from orderparam.systems.random_features.model import RandomFeatures
from orderparam.systems.random_features.theory import asymptotics, optimal_ridge

KINDS: dict[str, Features] = {"real features": "real", "Gaussian features": "gaussian"}
WIDTH = "features $p$"


@study(
    "random-features-double-descent",
    title=(
        "Double descent: the test error of random features peaks where they are as many as the "
        "examples; the optimal ridge removes the peak"
    ),
    source="Mei, Montanari 2019 (arXiv:1908.05355); Gerace et al. 2020 (arXiv:2002.09339)",
    panels=lambda p: [
        Panel(
            "width",
            "test_error",
            by="ridge",
            log="xy",
            xlabel=WIDTH,
            reference=[vertical(p["n_train"], "$p = n$")],
        ),
        Panel(
            "width",
            "cross_validation",
            by="ridge",
            log="xy",
            xlabel=WIDTH,
            where={"label": ("theory", "real features")},
        ),
        Panel(
            "width",
            "effective_dimension",
            by="ridge",
            log="x",
            xlabel=WIDTH,
            reference=[
                horizontal(p["n_train"], "$n$"),
                curve(lambda width: np.minimum(width, p["n_train"])),
            ],
        ),
    ],
    caption=r"""
        $p$ random features {activation}$(Wx)$, $d$ = {input_dim}, $n$ = {n_train} examples, $y =
        \theta\cdot x$ plus noise of variance {noise}, square loss, ridge added to the summed loss.
        The optimal ridge is that of the smallest test error in theory, at each $p$. Squares:
        Gaussian features of the same covariances; they cover the circles. Middle: cross-validated
        error (GCV), the train error over $(1 - $effective parameters$/n)^2$, from the training set
        alone. Dotted: $p = n$, and the numbers $n$ and $p$ themselves.
    """,
    seconds=(80, 1500),
    observables=("test_error", "train_error", "effective_dimension", "cross_validation"),
    explained=(
        "The theory is the limit of large sizes; the effective parameters fluctuate so little"
        " that differences of order 1/d, which the figure does not show, lie beyond their "
        "errors."
    ),
    gallery={"seeds": 24},
    full={
        "input_dim": 1000,
        "n_train": 1500,
        "widths": (300, 600, 900, 1200, 1350, 1500, 1650, 2250, 3000, 7500),
        "seeds": 20,
    },
)
def random_features_double_descent(
    input_dim: int = 200,
    n_train: int = 300,
    widths: tuple[int, ...] = (60, 120, 180, 240, 300, 375, 600, 1200),
    ridge: float = 1e-4,
    noise: float = 0.1,
    activation: str = "erf",
    seeds: int = 12,
) -> Iterator[Curve]:
    system = RandomFeatures(
        input_dim,
        min(widths),
        n_train=n_train,
        ridge=ridge,
        activation=activation,
        labels=RealLabels(noise=noise),
    )
    for choice, theory, experiment in (
        (f"ridge {ridge:g}", asymptotics, learn),
        ("optimal ridge", optimal_ridge, learn_at_optimal_ridge),
    ):
        facets = {"ridge": choice}
        yield Curve("theory", theory, system, {"width": between(widths)}, facets=facets)
        for label, features in KINDS.items():
            run = partial(experiment, features=features)
            yield Curve(label, run, system, {"width": widths}, seeds, facets=facets)


@study(
    "gaussian-equivalence",
    title="Random features learn like Gaussian ones: square, logistic and hinge loss",
    source="Goldt et al. 2020; Hu, Lu 2020; Gerace et al. 2020 (arXiv:2002.09339);"
    " Loureiro, Gerbelot et al. 2021 (arXiv:2102.08127)",
    panels=[
        Panel(
            "n_train",
            "test_error",
            by="activation",
            log="x",
            where={"loss": "square loss"},
            title="square loss",
        ),
        Panel(
            "n_train",
            "classification_error",
            facet="loss",
            by="activation",
            log="x",
            where={"loss": ("logistic loss", "hinge loss")},
        ),
    ],
    caption=(
        r"$d$ = {input_dim}, $p$ = {width}. Square loss: $y = \theta\cdot x$ plus noise of "
        r"variance {noise}, ridge {ridge}; logistic and hinge: $y = \mathrm{{sign}}\,\theta\cdot "
        r"x$, ridge {ridge} and {hinge_ridge} (added to the summed loss). The panels share their "
        r"draws, so that fluctuations are common."
    ),
    seconds=(90, 3000),
    observables=("test_error", "classification_error", "train_loss", "effective_dimension"),
    explained=(
        "The theory is the limit of large sizes; the effective parameters, which are compared"
        " but not drawn, fluctuate so little that terms of order 1/d are visible in them."
    ),
    gallery={"seeds": 20},
    full={
        "input_dim": 600,
        "width": 900,
        "n_train": (200, 450, 900, 1350, 1800, 2700),
        "seeds": 16,
        "test_points": 4000,
    },
)
def gaussian_equivalence(
    input_dim: int = 150,
    width: int = 225,
    n_train: tuple[int, ...] = (75, 225, 600),
    activations: tuple[str, ...] = ("erf", "relu", "sign"),
    ridge: float = 0.01,
    hinge_ridge: float = 0.1,
    noise: float = 0.1,
    seeds: int = 10,
    test_points: int = 2000,
) -> Iterator[Curve]:
    problems = {
        "square loss": (RealLabels(noise=noise), "square", ridge),
        "logistic loss": (SignLabels(), "logistic", ridge),
        "hinge loss": (SignLabels(), "hinge", hinge_ridge),
    }
    for name, (labels, loss, penalty) in problems.items():
        for activation in activations:
            system = RandomFeatures(
                input_dim,
                width,
                n_train=min(n_train),
                ridge=penalty,
                activation=activation,
                labels=labels,
                loss=loss,
            )
            facets = {"activation": activation, "loss": name}
            yield Curve(
                "theory", asymptotics, system, {"n_train": between(n_train, 25)}, facets=facets
            )
            for label, features in KINDS.items():
                run = partial(learn, features=features, test_points=test_points)
                yield Curve(label, run, system, {"n_train": n_train}, seeds, facets=facets)


# ------------------------------------------------------------------------------------------------
# The two phases of regression on random features without a ridge: whether the examples can be
# interpolated or not.


def draw_descent(axes: Any, comparison: Comparison) -> None:
    """Draw the test error of the theory over the plane in colour, measured errors in circles, and
    the line where the train error vanishes.
    """
    (plane,) = comparison.theories(part="plane").values()
    (found,) = comparison.theories(part="interpolation").values()
    highest = 30 * float(plane["test_error"].min())
    look = {"norm": LogNorm(float(plane["test_error"].min()), highest), "cmap": "cividis"}
    shown = axes.pcolormesh(
        plane["n_train"], plane["width"], plane["test_error"].T, shading="gouraud", **look
    )
    axes.figure.colorbar(shown, ax=axes, label="test error", extend="max")
    order = np.argsort(found["boundary_x"].values)
    axes.plot(found["boundary_x"][order], found["boundary_y"][order], color="white", linestyle="--")
    for data in comparison.experiments().values():
        mean, _ = mean_and_error(data["test_error"])
        n_train = np.full(len(mean), data.attrs["facets"]["examples"])
        axes.scatter(n_train, data["width"], c=mean, edgecolors="black", zorder=3, **look)
    axes.set(xscale="log", yscale="log", xlabel="training examples $n$", ylabel=WIDTH)
    axes.set(xlim=plane["n_train"].values[[0, -1]], ylim=plane["width"].values[[0, -1]])


def _per_example(data: xr.Dataset) -> xr.DataArray:
    return data["width"] / data.attrs["facets"]["examples"]


@study(
    "double-descent-plane",
    title=(
        "Double descent in the plane of examples and features: the error peaks at the "
        "interpolation threshold"
    ),
    source="Mei, Montanari 2022; d'Ascoli, Sagun, Biroli 2020",
    seconds=(40, 900),
    observables=("test_error", "train_error"),
    explained=(
        "The theory is the limit of large sizes. Beyond p = n the train error is no more than the "
        "ridge leaves, 1e-6, and terms of order 1/d show: at n = 3 d and p = 4 n it is 37(8) % "
        "above the theory with 50 inputs and 14(2) % with 100, where the test error is 2.9(9) % "
        "above it, and at p = 2 n the train error is 12(3) % above with 100. With 50 examples and "
        "100 inputs errors near p = n scatter most: the test error at p = 0.9 n is 19(10) % and "
        "the train error at p = 1.1 n 40(18) % above the theory, about two standard errors; at p = "
        "n/2 the train error is 9(3) % below it."
    ),
    gallery={"input_dim": 100, "resolution": 48, "seeds": 64},
    full={"input_dim": 200, "resolution": 64, "seeds": 100},
    columns=3,
    panels=lambda p: [
        Freehand(draw_descent),
        *[
            Panel(
                ("features per example $p/n$", _per_example),
                observable,
                by="examples",
                log=log,
                where={"part": "cut"},
                reference=[vertical(1.0, "$p = n$")],
            )
            for observable, log in (("test_error", "xy"), ("train_error", "x"))
        ],
    ],
    caption=(
        "Random features, $d$ = {input_dim} inputs, linear teacher with noise of variance "
        "{noise}, ridge {ridge:g}. Left: test error of the theory, with measurements inside the "
        "circles; above the dashed line the train error vanishes without a ridge."
    ),
)
def double_descent_plane(
    resolution: int = 24,
    input_dim: int = 50,
    ridge: float = 1e-4,
    noise: float = 0.1,
    examples_per_input: tuple[float, ...] = (0.5, 3.0),
    features_per_example: tuple[float, ...] = (0.25, 0.5, 0.9, 1.1, 2.0, 4.0),
    seeds: int = 12,
) -> Iterator[Curve]:
    system = RandomFeatures(
        input_dim, input_dim, n_train=input_dim, ridge=ridge, labels=RealLabels(noise=noise)
    )
    n_train = (0.2 * input_dim, 10.0 * input_dim)
    width = (0.1 * input_dim, 20.0 * input_dim)
    plane = {"n_train": between(n_train, resolution), "width": between(width, resolution)}
    yield Curve("theory", asymptotics, system, plane, facets={"part": "plane"})
    yield diagram_curve(
        asymptotics,
        system.with_(ridge=1e-14),
        {"n_train": (*n_train, "log"), "width": (*width, "log")},
        order="train_error",
        resolution=16,
        accuracy=1e-5,
        label="where the train error vanishes",
        facets={"part": "interpolation"},
    )
    for ratio in examples_per_input:
        count = round(ratio * input_dim)
        one, facets = system.with_(n_train=count), {"part": "cut", "examples": count}
        widths = [round(share * count) for share in features_per_example]
        yield Curve("theory", asymptotics, one, {"width": between(widths, 200)}, facets=facets)
        yield Curve("networks", learn, one, {"width": widths}, seeds, facets=facets)
