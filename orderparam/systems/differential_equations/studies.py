"""The named figures of differential equations."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from orderparam.comparison import Comparison, Curve, between, study
from orderparam.networks.fully_connected import fully_connected
from orderparam.plotting import Freehand, Panel
from orderparam.plotting.extrapolation import draw_ratios
from orderparam.running.estimate import estimate
from orderparam.systems.differential_equations.experiment import (
    solved_at_points,
    trained_equation_network,
)
from orderparam.systems.differential_equations.model import (
    EquationNetwork,
    EquationRegression,
    Operator,
)
from orderparam.systems.differential_equations.theory import (
    equation_learning_curve,
    equation_on_grid,
    wide_equation_network,
)

DESIGNS = {"random": "random points", "grid": "equidistant points", "gaussian": "Gaussian modes"}
ERRORS = (("equation_error", "error of the equation"), ("solution_error", "error of the solution"))


@study(
    "equation-learning-curve",
    title=(
        "At equidistant points, and in theory at random ones, the error of the solution falls"
        " by one power of the number of points faster than that of the equation"
    ),
    source="derived here; Raissi, Perdikaris, Karniadakis 2017 (arXiv:1701.02440) for the method",
    panels=[
        *(
            Panel(
                "n_points",
                name,
                by="points",
                where={"points": ("random points", "equidistant points")},
                log="xy",
                xlabel="number of points $n$",
                ylabel=label,
                fit="n",
            )
            for name, label in ERRORS
        ),
        *(
            Panel(
                "n_points",
                name,
                by="points",
                log="x",
                ratio_to="theory",
                xlabel="number of points $n$",
                ylabel=f"{label} / theory",
            )
            for name, label in ERRORS
        ),
    ],
    columns=2,
    caption=r"""
        $L u = u - u'' = f$ on a circle; f is known at n points, without noise, and there is no
        ridge. The prior of u is Gaussian with eigenvalues $\propto (1 + k)^{{-7}}$, and the true
        solution has the same power at frequency k; {frequencies} frequencies. Errors are mean
        squares over the circle of $L u - f$ and of u minus the true solution. The theory has the
        exponents 2 for the equation and 3 for the solution at large n. It takes modes as Gaussian
        at random points, and is exact at equidistant ones. Below: the ratio to the theory; in the
        control "Gaussian modes" the values of all modes at all points are independent Gaussian
        numbers.
    """,
    seconds=(40, 200),
    observables=("equation_error", "solution_error"),
    explained=(
        "Waves at random points of a line are not Gaussian numbers: gaps between neighbours "
        "are sometimes large, and the errors without a ridge exceed the theory, so that the "
        "measured exponents at random points, 1.36(14) and 2.15(22), differ by 0.79(26)."
        " The control with Gaussian modes agrees with the theory."
    ),
    gallery={"frequencies": 768, "n_points": (8, 16, 32, 64, 128), "seeds": 224},
    full={"frequencies": 4096, "n_points": (8, 16, 32, 64, 128, 256, 512), "seeds": 256},
)
def equation_learning_curves(
    frequencies: int = 256,
    n_points: tuple[int, ...] = (8, 16, 32),
    seeds: int = 32,
) -> Iterator[Curve]:
    spectrum = (1.0 + np.arange(frequencies)) ** -7
    system = EquationRegression(spectrum, spectrum / spectrum.sum(), n_points[0])
    line = {"n_points": sorted({round(n) for n in between(n_points, 30)})}
    for design, name in DESIGNS.items():
        facets = {"points": name}
        theory = equation_on_grid if design == "grid" else equation_learning_curve
        yield Curve("theory", theory, system, line, facets=facets)
        measured = partial(solved_at_points, points=design)
        over = {"n_points": n_points}
        yield Curve("drawn", measured, system, over, seeds, facets=facets, batch_seeds=True)


def draw_widths(axes: Any, comparison: Comparison, name: str, label: str) -> None:
    """Draws the ratio of an error to that of the kernel against 1/N, for every number of points."""
    (kernel,) = comparison.theories().values()
    runs = [data for data in comparison.experiments().values() if data.sizes["width"] > 1]
    (networks,) = runs
    mean, error = estimate(networks, name)
    sizes = networks["width"].values
    ratios = {}
    for n in networks["n_points"].values:
        exact = float(kernel[name].sel(n_points=n))
        one = mean.sel(n_points=n).values / exact, error.sel(n_points=n).values / exact
        ratios[f"n = {n:g}"] = (sizes, *one)
    draw_ratios(axes, ratios, f"{label} / kernel")


@study(
    "physics-informed-network",
    title=(
        "As their width grows, errors of networks trained on an equation approach those of the "
        "operator kernel to 3 % with up to 8 points; with 12 and 16 points their linear limits lie "
        "3 to 24 % above"
    ),
    source="Raissi, Perdikaris, Karniadakis 2019; Wang, Yu, Perdikaris 2022 (arXiv:2007.14527); "
    "errors derived here",
    panels=[
        *(
            Panel(
                "n_points",
                name,
                by="width",
                log="y",
                xlabel="number of points $n$",
                ylabel=label,
            )
            for name, label in ERRORS
        ),
        *(Freehand(partial(draw_widths, name=name, label=label)) for name, label in ERRORS),
    ],
    columns=2,
    caption=r"""
        $L u = u + u'/2 - u''/10 = f$ on a circle; the true solution has frequencies 1 to 5; f is
        known at n equidistant points, which cannot tell these frequencies apart if there are fewer
        than 11. All weights of networks with one hidden layer of erf units (weight variance 6, bias
        variance 1) and N units in each of two antisymmetric copies are trained on the residual to
        the minimum of the loss, ridge {ridge}. Above: colours are widths. Line: infinite width,
        from the tangent kernel with the operator applied to both arguments, exact for these points.
        Below: colours are numbers of points; ratios to infinite width, with linear fits in $1/N$
        and their limits (diamonds).
    """,
    seconds=(90, 400),
    observables=("equation_error", "solution_error"),
    explained="The narrower a network is, the more its kernel differs from the mean kernel and "
    "changes in training. The linear fits in 1/N end at 1.001(4), 1.028(14), "
    "1.033(17) and 1.12(4) times the kernel's error of the equation with 4, 8, 12 "
    "and 16 points, and at 1.003(6), 1.03(2), 1.09(3) and 1.24(6) times its error of "
    "the solution. At 16 points the excess still bends downwards at 1024 units, "
    "where it is 15(3) and 29(5) %.",
    gallery={"widths": (128, 256, 512, 1024), "seeds": 128, "n_points": (4, 8, 12, 16)},
    full={
        "widths": (64, 128, 256, 512, 1024, 2048),
        "seeds": 64,
        "n_points": (4, 6, 8, 10, 12, 16),
    },
)
def physics_informed_network(
    n_points: tuple[int, ...] = (4, 8, 12),
    widths: tuple[int, ...] = (64, 128, 256),
    ridge: float = 0.05,
    seeds: int = 16,
) -> Iterator[Curve]:
    size, phase = np.array([0, 0.4, 0.3, 0.25, 0.2, 0.15]), np.array([0, 1.0, 2.5, 4.0, 0.5, 3.0])
    network = fully_connected(
        1,
        None,
        "erf_scaled",
        weight_variance=6.0,
        bias_variance=(1.0, 0.0),
        readout_variance=1.0,
    )
    system = EquationNetwork(
        size * np.cos(phase),
        size * np.sin(phase),
        n_points[0],
        network,
        Operator(1.0, 0.5, 0.1),
        ridge,
    )
    whole = {"n_points": range(min(n_points) - 1, max(n_points) + 3)}
    yield Curve("operator kernel", wide_equation_network, system, whole)
    over = {"n_points": n_points, "width": widths}
    yield Curve("network", trained_equation_network, system, over, seeds, batch_seeds=True)
