"""Studies of random features whose width and ridge are powers of the number of examples."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from orderparam.comparison import Comparison, Curve, between, study
from orderparam.kernels import Spectrum
from orderparam.kernels.spectra import power_law, zonal_multiplicities
from orderparam.plotting import Freehand, Panel, horizontal, vertical
from orderparam.plotting.style import COLOURS, GREY
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

_INFINITE = 1e15  # a width that stands for kernel regression


def draw_plane(axes: Any, comparison: Comparison) -> None:
    """Draw the local exponent over the plane (l, q), with the line on which bias and variance fall
    with the same exponent, and the line above which the variance does not depend on the width.
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
    """The converged local exponents in the plane, and the predicted exponents of bias and
    variance."""
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


@study(
    "random-features-scaling",
    title=(
        "In theory the error of random features falls fastest where bias and variance fall "
        "alike; at fixed ridge the measured error follows the theory"
    ),
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
    caption=r"""
        Eigenvalues $k^{{-\alpha}}$ and target power $k^{{-1-2r\alpha}}$, $\alpha$ = {capacity}, $r$
        = {source}; $n$ examples, $p$ features. Left and middle, theory alone: deterministic
        equivalent, label noise 1, $n = 10^{log10_examples:g}$. Left: local exponent of the excess
        risk; white line: bias and variance have the same predicted exponent; white dashed: $q =
        \min(l/\alpha, 1)$; white squares: the solver did not converge. Middle: local exponents of
        bias and variance at all points of the left panel against those of the formulas; grey:
        equal. Right: {modes} modes, ridge {ridge} added to the summed loss, label noise {noise};
        Gaussian features and data.
    """,
    seconds=(40, 1200),
    observables=("excess_risk", "effective_dimension"),
    explained=(
        "The effective parameters, which hardly fluctuate, lie 0.1 % in the median and up to 0.5 "
        "% below the deterministic equivalent of large sizes."
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
    title=(
        "Measured errors of random features follow the theory into the first stair; that they"
        " fall degree by degree beyond it is theory"
    ),
    source="Mei, Misiakiewicz, Montanari 2022; Hu, Lu, Misiakiewicz 2024 (arXiv:2403.08160)",
    panels=lambda p: [
        Panel(
            "n_train",
            "excess_risk",
            by="width",
            log="xy",
            where={"label": ("theory", "measured"), "width": p["widths"]},
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
            where={
                "label": ("growing dimension", "measured stair"),
                "input_dim": (p["stair_dim"], max(p["larger_dims"])),
            },
            text={"growing dimension": "theory", "measured stair": "measured"},
            title=r"staircase",
            ylim=(0, None),
            reference=[horizontal(plateau) for plateau in np.cumsum(p["degree_power"][::-1])[::-1]],
        ),
    ],
    caption=r"""
        $p$ features {activation}$(Wx${bias:+g}$)$ on the sphere, target $f_*$ with power
        {degree_power} in the degrees 0, 1, 2, ..., no noise, ridge {ridge} added to the summed
        loss. Lines: deterministic equivalent; marks: computed features and drawn inputs. Left,
        dotted: the number of modes $B_k$ of degree $k$. Right, dashed lines: theory; squares:
        measured at $d$ = {stair_dim} with {stair_width} features, as in its theory; the larger
        dimension has infinitely many features. Dotted: the target power that remains when all lower
        degrees are learned.
    """,
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
