"""Studies of random features."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.colors import LogNorm

from orderparam.analysis.phases.study import diagram_curve
from orderparam.comparison import Comparison, Curve, between, study
from orderparam.kernels import Spectrum
from orderparam.kernels.spectra import power_law, zonal_multiplicities
from orderparam.losses import RealLabels, SignLabels
from orderparam.plotting import Freehand, Panel, curve, horizontal, vertical
from orderparam.plotting.measured import mean_and_error
from orderparam.plotting.style import COLOURS, GREY
from orderparam.systems.random_features.classes import (
    class_asymptotics,
    image_classes,
    learn_classes,
)
from orderparam.systems.random_features.experiment import (
    Features,
    learn,
    learn_at_optimal_ridge,
    learn_pool,
)
from orderparam.systems.random_features.model import RandomFeatures
from orderparam.systems.random_features.pool import image_features
from orderparam.systems.random_features.spectral import (
    ScalingPath,
    SpectralFeatures,
    SphereFeatures,
    deterministic_equivalent,
    learn_on_sphere,
    local_exponents,
    polynomial_regime,
    scaling_exponents,
    spectral_learning,
)
from orderparam.systems.random_features.theory import asymptotics, optimal_ridge

# ------------------------------------------------------------------------------------------------
# Panels that are drawn by functions of their own: the plane of exponents of width and ridge.


def draw_plane(axes: Any, comparison: Comparison) -> None:
    """Draw the local exponent over (l, q), with the line on which bias and variance fall with the
    same exponent and the line above which the width suffices.
    """
    data, predicted = _exponents(comparison)
    ridge, width = data["ridge_exponent"].values, data["width_exponent"].values
    shown = axes.pcolormesh(
        ridge, width, data["risk_exponent"].values.T, cmap="viridis", shading="gouraud"
    )
    axes.figure.colorbar(shown, ax=axes, label=r"$-d\ln(\mathrm{excess\ risk})/d\ln n$")
    axes.contour(
        ridge,
        width,
        (predicted["bias"] - predicted["variance"]).T,
        levels=[0.0],
        colors="white",
        linewidths=1.2,
    )
    axes.plot(
        ridge,
        np.minimum(ridge / comparison.parameters["capacity"], 1),
        color="white",
        linestyle="--",
        linewidth=1.0,
    )
    axes.set(xlim=(ridge.min(), ridge.max()), ylim=(width.min(), width.max()))
    axes.set(xlabel=r"$l$: mean-loss ridge $n^{-l}$", ylabel=r"$q$: width $p = n^q$")


def draw_exponents(axes: Any, comparison: Comparison) -> None:
    """Draw the local exponents of bias and variance against the predicted ones."""
    data, predicted = _exponents(comparison)
    for number, (name, values) in enumerate(predicted.items()):
        found = data[f"{name}_exponent"].values
        axes.plot(
            values.ravel(), found.ravel(), ".", color=COLOURS[-1 - number], markersize=3, label=name
        )
    ends = [0, max(values.max() for values in predicted.values())]
    axes.plot(ends, ends, color=GREY, linewidth=0.8)
    axes.set_xlabel("predicted exponent")
    axes.set_ylabel(f"local exponent at $n = 10^{{{comparison.parameters['log10_examples']:g}}}$")


def _exponents(comparison: Comparison) -> tuple[Any, dict[str, np.ndarray]]:
    """The converged local exponents, and the predicted ones of bias and variance in the plane."""
    data = comparison.datasets["local exponents"]
    p, ridge, width = (
        comparison.parameters,
        data["ridge_exponent"].values,
        data["width_exponent"].values,
    )
    at = [[scaling_exponents(p["capacity"], p["source"], l, q) for q in width] for l in ridge]
    return data.where(data["status"] == 1), {
        name: np.array([[getattr(point, name) for point in row] for row in at])
        for name in ("bias", "variance")
    }


_INFINITE = 1e15  # a width that stands for kernel regression
KINDS: dict[str, Features] = {"real features": "real", "Gaussian features": "gaussian"}
WIDTH = "features $p$"


@study(
    "random-features-double-descent",
    title="Double descent in the number of random features, and the ridge that removes it",
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
    caption=(
        r"Random features {activation}$(Wx)$, $d$ = {input_dim}, $n$ = {n_train}, $y = \theta\cdot "
        r"x$ plus noise of variance {noise}, square loss, ridge added to the summed loss. "
        r"Gaussian: features of the same covariances. Cross-validated (GCV): train error over $(1 "
        r"- $effective parameters$/n)^2$, from the training set alone. Dotted: $n$ and $p$."
    ),
    seconds=(80, 1500),
    observables=("test_error", "train_error", "effective_dimension", "cross_validation"),
    explained=(
        "The theory is the limit of large sizes; the effective parameters fluctuate so little "
        "that terms of order 1/d are visible."
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
        "The theory is the limit of large sizes; the effective parameters fluctuate so little "
        "that terms of order 1/d are visible."
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


@study(
    "random-features-real-data",
    title="Test errors on images lie up to 7 % above the theory of covariances, which Gaussian clones obey",
    source="Loureiro, Gerbelot et al. 2021 (arXiv:2102.08127)",
    panels=lambda p: [
        Panel(
            "n_train",
            y,
            facet="ridge",
            log=log,
            ylim=limits,
            reference=[vertical(p["width"], "$n = p$" if y == "test_error" else "")],
        )
        for y, log, limits in (
            ("test_error", "x", None),
            ("cross_validation", "x", None),
            ("train_error", "xy", (None, 0.4)),
        )
    ],
    caption=r"""
        {width} random features {activation}$(Wx)$ of {dataset}, {task} ($y=\pm 1$). Theory: the covariance of the
        features over all images and their correlation with $y$, without what the finite number of images adds by
        chance, and without a fit. Images: random training sets, error on the images outside of them. Gaussian clone:
        Gaussian features and targets, drawn anew for each run, with the same sample covariances. Cross-validated (GCV):
        from the training set alone. Images come in near-copies, which the theory does not contain: their
        cross-validated error is up to 29 % too small.
    """,
    seconds=(40, 900),
    observables=("test_error", "train_error", "cross_validation", "effective_dimension"),
    explained=(
        "Images come in near-copies, which a Gaussian theory does not contain: held-out errors are "
        "up to 7 % above it at ridge 0.001 and 5 % at 0.1, training and cross-validated errors up to "
        "17 and 29 % below it. Gaussian features with the same sample covariances agree with it: 2 of "
        "their 40 points lie beyond three standard errors, both of the effective dimension, by 0.3 %."
    ),
    gallery={"ridges": (0.001, 0.1), "seeds": 16},
    full={"dataset": "mnist", "n_train": (60, 180, 300, 450, 900, 1800), "seeds": 20},
)
def random_features_real_data(
    dataset: str = "digits",
    task: str = "even-odd",
    activation: str = "erf",
    width: int = 300,
    ridges: tuple[float, ...] = (0.001, 0.01, 0.1),
    n_train: tuple[int, ...] = (40, 100, 200, 300, 450),
    seeds: int = 20,
) -> Iterator[Curve]:
    split = "test" if dataset == "mnist" else None
    for ridge in ridges:
        pool = image_features(dataset, task, activation, width, ridge=ridge, split=split)
        facets = {"ridge": ridge}
        yield Curve("theory", asymptotics, pool, {"n_train": between(n_train)}, facets=facets)
        for label, features in (("images", "real"), ("Gaussian clone", "gaussian")):
            run = partial(learn_pool, features=features)
            yield Curve(label, run, pool, {"n_train": n_train}, seeds, facets=facets)


@study(
    "random-features-real-classes",
    title="Wrong signs on real classes lie up to 26 % above the theory of Gaussian classes, which clones obey",
    source="Mignacco, Krzakala, Lu, Urbani, Zdeborová 2020 (arXiv:2002.11544); Loureiro, Sicuro et al. 2021 (arXiv:2106.03791)",
    panels=lambda p: [
        Panel(
            "n_train",
            y,
            facet="loss",
            by="width",
            log="x",
            text={width: f"$p$ = {width}" for width in p["widths"]},
        )
        for y in ("classification_error", "effective_dimension")
    ],
    caption=(
        r"Random features {activation}$(Wx)$ of {dataset}, {task} ($y=\pm 1$), ridge {ridge} added "
        r"to the sum of losses. Theory: each class is Gaussian about its mean with the covariance "
        r"within classes, both measured over all images, without what their finite number adds by "
        r"chance, and without a fit. Images: random training sets, error on the images outside of "
        r"them. Gaussian clone: Gaussian classes, drawn anew for each run, with the same sample "
        r"means and covariances."
    ),
    seconds=(60, 900),
    observables=("classification_error", "train_loss", "effective_dimension"),
    explained=(
        "Real classes are not Gaussian: 5 to 26 % more wrong signs are measured than predicted, the "
        "more the larger n. Gaussian classes with the same sample means and covariances agree: 0 of "
        "their 24 points lie beyond three standard errors, wrong signs differ by at most 6 %."
    ),
    gallery={"widths": (150,), "seeds": 16},
    full={"dataset": "mnist", "n_train": (50, 100, 200, 400, 800, 1600), "seeds": 10},
)
def random_features_real_classes(
    dataset: str = "digits",
    task: str = "even-odd",
    activation: str = "erf",
    widths: tuple[int, ...] = (100, 300),
    n_train: tuple[int, ...] = (50, 100, 200, 400),
    ridge: float = 0.1,
    seeds: int = 6,
) -> Iterator[Curve]:
    for loss in ("logistic", "hinge"):
        for width in widths:
            pool = image_features(dataset, task, activation, width, min(n_train), ridge, loss=loss)
            facets = {"loss": f"{loss} loss", "width": width}
            yield Curve(
                "theory", asymptotics, pool, {"n_train": between(n_train, 12)}, facets=facets
            )
            for label, features in (("images", "real"), ("Gaussian clone", "gaussian")):
                run = partial(learn_pool, features=features)
                yield Curve(label, run, pool, {"n_train": n_train}, seeds, facets=facets)


@study(
    "random-features-many-classes",
    title="Ten classes at once: the squared error is predicted within 3 %, the classification error within 15 %",
    source="Wei, Hu, Steinhardt 2022 (arXiv:2203.06176); share of wrong classes derived here",
    panels=lambda p: [
        Panel(
            "n_train",
            y,
            by="width",
            log="xy",
            ylabel="share of wrong classes" if y == "classification_error" else "",
            text={w: f"$p$ = {w}" for w in p["widths"]},
        )
        for y in ("test_error", "classification_error", "effective_dimension")
    ],
    caption=(
        r"Least squares on random features {activation}$(Wx)$ of {dataset}, one output for each "
        r"class, the largest wins; $p$ features, ridge {ridge} added to the summed loss. Test "
        r"error: summed over the outputs, 1 for predicting the shares of the classes. Matched fit: "
        r"one fit to all images with the effective ridge of $n$ of them, without the image itself, "
        r"with the scatter between training sets added. Gaussian features: from their covariance "
        r"and correlation alone. Measured: {seeds} random training sets, error on the other images."
    ),
    seconds=(40, 600),
    observables=("test_error", "classification_error", "effective_dimension"),
    explained=(
        "At few examples 4 to 14 % more wrong classes are measured than predicted: the mean output "
        "of each image and its variance agree, but the scatter between training sets has heavier "
        "tails than the Gaussian of the theory. The effective parameters lie up to 1.5 % below it."
    ),
    full={"dataset": "mnist", "n_train": (50, 150, 500, 1500, 5000), "seeds": 20},
)
def random_features_many_classes(
    dataset: str = "digits",
    activation: str = "erf",
    widths: tuple[int, ...] = (100, 400),
    n_train: tuple[int, ...] = (40, 80, 160, 320, 640),
    ridge: float = 0.1,
    seeds: int = 32,
) -> Iterator[Curve]:
    split = "test" if dataset == "mnist" else None
    for width in widths:
        pool = image_classes(dataset, activation, width, min(n_train), ridge, split)
        facets, grid = {"width": width}, {"n_train": between(n_train, 12)}
        yield Curve("matched fit", class_asymptotics, pool, grid, facets=facets)
        yield Curve("Gaussian features", asymptotics, pool, grid, facets=facets)
        yield Curve("measured", learn_classes, pool, {"n_train": n_train}, seeds, facets=facets)


@study(
    "random-features-scaling",
    title="The error of random features when width and ridge are powers of the number of examples",
    source="Defilippis, Loureiro, Misiakiewicz 2024 (arXiv:2405.15699)",
    panels=lambda p: [
        Freehand(draw_plane, "local exponent"),
        Freehand(draw_exponents, "its bias and variance"),
        Panel(
            "n_train",
            "excess_risk",
            by="width",
            log="xy",
            text={width: f"$p$ = {width}" for width in p["widths"]},
        ),
    ],
    caption=(
        r"Eigenvalues $k^{{-\alpha}}$ and target power $k^{{-1-2r\alpha}}$, $\alpha$ = {capacity}, "
        r"$r$ = {source}. Left and middle: deterministic equivalent, label noise 1, $n = "
        r"10^{log10_examples:g}$; white: predicted line on which bias and variance fall with the same exponent; "
        r"white dashed: $q = \min(l/\alpha, 1)$. Right: {modes} modes, ridge {ridge} added to the "
        r"summed loss, noise {noise}; Gaussian features and data."
    ),
    seconds=(40, 1200),
    observables=("excess_risk", "effective_dimension"),
    explained=(
        "The effective parameters, which hardly fluctuate, lie 0.1 % below the deterministic "
        "equivalent of large sizes."
    ),
    gallery={"seeds": 24},
    full={
        "modes": 20_000,
        "n_train": (100, 300, 1000, 3000),
        "widths": (200, 1000, 5000),
        "points": 60,
    },
)
def random_features_scaling(
    capacity: float = 1.5,
    source: float = 0.4,
    log10_examples: float = 9.0,
    points: int = 25,
    modes: int = 1500,
    n_train: tuple[int, ...] = (50, 100, 200, 400),
    widths: tuple[int, ...] = (50, 200, 400),
    ridge: float = 0.01,
    noise: float = 0.1,
    seeds: int = 12,
) -> Iterator[Curve]:
    path = ScalingPath(power_law(capacity, source, 1e15), 1.0, 1.0, log10_examples)
    plane = {
        "ridge_exponent": list(np.linspace(0.1, 2 * capacity, points)),
        "width_exponent": list(np.linspace(0.1, 1.6, points)),
    }
    yield Curve("local exponents", local_exponents, path, plane)
    spectrum = power_law(capacity, source, modes, infinite=False)
    k = np.arange(1.0, modes + 1)
    single = Spectrum(k**-capacity, k ** (-1 - 2 * source * capacity))
    for width in widths:
        theory, drawn = (
            SpectralFeatures(which, min(n_train), width, ridge, noise)
            for which in (spectrum, single)
        )
        grid, facets = {"n_train": between(n_train)}, {"width": width}
        yield Curve("theory", deterministic_equivalent, theory, grid, facets=facets)
        yield Curve(
            "measured", spectral_learning, drawn, {"n_train": n_train}, seeds, facets=facets
        )


@study(
    "polynomial-staircase",
    title="Random features learn a target degree by degree when n and p are powers of the dimension",
    source="Mei, Misiakiewicz, Montanari 2022; Hu, Lu, Misiakiewicz 2024 (arXiv:2403.08160)",
    panels=lambda p: [
        Panel(
            "n_train",
            "excess_risk",
            by="width",
            log="xy",
            where={"label": ("theory", "measured")},
            title=f"$d$ = {p['input_dim']}",
            text={width: f"$p$ = {width:g}" for width in p["widths"]} | {math.inf: r"$p\to\infty$"},
            reference=[
                vertical(count, f"$B_{degree}$")
                for degree, count in enumerate(
                    zonal_multiplicities(p["input_dim"], len(p["degree_power"]) - 1)[1:], 1
                )
            ],
        ),
        Panel(
            (
                r"$\ln n/\ln d$",
                lambda data: np.log(data["n_train"]) / np.log(data.attrs["facets"]["input_dim"]),
            ),
            "excess_risk",
            by="input_dim",
            where={"label": ("growing dimension", "measured stair")},
            title=r"$p\to\infty$",
            ylim=(0, None),
            reference=[horizontal(plateau) for plateau in np.cumsum(p["degree_power"][::-1])[::-1]],
        ),
    ],
    caption=(
        "Features {activation}$(Wx${bias:+g}$)$ on the sphere, target with power {degree_power} "
        "in the degrees 0, 1, 2, ..., no noise, ridge {ridge} added to the summed loss. Theory: "
        "deterministic equivalent; measured: computed features and drawn inputs. Dotted: left, "
        "the number of modes $B_k$ of degree $k$; right, the target power that remains when all "
        "lower degrees are learned. The staircase is measured at $d$ = {stair_dim} with "
        "{stair_width} features, as in its theory."
    ),
    seconds=(60, 1500),
    observables=("excess_risk", "effective_dimension"),
    full={
        "input_dim": 30,
        "widths": (300, 3000),
        "n_train": (15, 30, 100, 300, 1000, 3000, 10_000),
        "seeds": 20,
    },
)
def polynomial_staircase(
    input_dim: int = 20,
    widths: tuple[int, ...] = (100, 800),
    n_train: tuple[int, ...] = (10, 20, 50, 100, 200, 400, 800, 1600, 3200),
    larger_dims: tuple[int, ...] = (20, 10_000),
    stair_dim: int = 100,
    stair_width: int = 4000,
    stair_n: tuple[int, ...] = (10, 30, 100, 300, 1000, 2000),
    degree_power: tuple[float, ...] = (0.0, 0.36, 0.36, 0.28),
    ridge: float = 0.1,
    activation: str = "relu",
    bias: float = -0.5,
    seeds: int = 8,
) -> Iterator[Curve]:
    for width in (*widths, math.inf):
        system = SphereFeatures(
            input_dim, min(width, _INFINITE), min(n_train), ridge, degree_power, activation, bias
        )
        grid, facets = {"n_train": between(n_train, 80)}, {"input_dim": input_dim, "width": width}
        yield Curve("theory", polynomial_regime, system, grid, facets=facets)
        if width < math.inf:
            yield Curve(
                "measured", learn_on_sphere, system, {"n_train": n_train}, seeds, facets=facets
            )
    for dimension, width in (
        *((dimension, math.inf) for dimension in larger_dims),
        (stair_dim, stair_width),
    ):
        system = SphereFeatures(
            dimension, min(width, _INFINITE), 1.0, ridge, degree_power, activation, bias
        )
        highest = 3.6 if width == math.inf else math.log(max(stair_n)) / math.log(dimension)
        grid = {"n_train": list(float(dimension) ** np.linspace(0.3, highest, 80))}
        facets = {"input_dim": dimension, "width": width}
        yield Curve("growing dimension", polynomial_regime, system, grid, facets=facets)
    yield Curve(
        "measured stair", learn_on_sphere, system, {"n_train": stair_n}, seeds, facets=facets
    )


# ------------------------------------------------------------------------------------------------
# The phases of ridgeless regression on random features: whether the examples can be interpolated.


def draw_descent(axes: Any, comparison: Comparison) -> None:
    """Draw the test error over the plane in colour, measurements inside circles, and the line where
    the train error vanishes.
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
        "above the theory with 50 inputs and 14(2) % with 100."
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
