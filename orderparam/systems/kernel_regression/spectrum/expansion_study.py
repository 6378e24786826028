"""The figure of the expansion in v/T, the posterior variance over the ridge."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from orderparam.comparison import Comparison, Curve, study
from orderparam.networks.fully_connected import fully_connected
from orderparam.plotting import Freehand, Panel
from orderparam.plotting.style import COLOURS, GREY, MARKERS
from orderparam.running.estimate import estimate
from orderparam.systems.kernel_regression.spectrum.equivalent_kernel import (
    equivalent_kernel,
    equivalent_kernel_corrected,
)
from orderparam.systems.kernel_regression.spectrum.experiment import mean_sphere_errors
from orderparam.systems.kernel_regression.spectrum.model import SphereRegression
from orderparam.systems.kernel_regression.spectrum.theory import self_consistent

_FIXED = "first correction"


def draw_orders(axes: Any, comparison: Comparison) -> None:
    """Draw the relative deviation of each theory from the measurement against v/T, with powers 1
    and 2 for the eye."""
    (measured,) = comparison.experiments().values()
    mean, error = estimate(measured, "test_error")
    at = {"temperature": mean["temperature"]}
    theories = comparison.theories()
    (zeroth,) = (data for name, data in theories.items() if "equivalent" in name)
    ratio = zeroth["fluctuation_ratio"].sel(at).values
    for number, data in enumerate(theories.values()):
        deviation = abs(data["test_error"].sel(at).values / mean.values - 1)
        axes.errorbar(
            ratio,
            deviation,
            (error / mean).values,
            color=COLOURS[number],
            fmt=MARKERS[number],
            markerfacecolor="white",
        )
        if number < 2:
            steepest = np.argmin(ratio)
            power = number + 1
            guide = deviation[steepest] * (ratio / ratio[steepest]) ** power
            axes.plot(ratio, guide, ":", color=GREY, linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="$v/T$", ylabel="|theory / measured − 1|")


@study(
    "equivalent-kernel-orders",
    title="The equivalent kernel errs in proportion to v/T, its first correction in proportion to the square",
    source="Cohen, Malka, Ringel 2021; the fixed number of examples is derived here",
    panels=[
        Panel("temperature", "test_error", log="x"),
        Freehand(draw_orders),
    ],
    caption=r"""
        Kernel of an {activation} network with one hidden layer, {n_train} inputs uniform on the sphere in {input_dim}
        dimensions, a linear target with a cubic part of power {cubic_power}. $T$: ridge; $v$: posterior variance of the
        equivalent kernel. Marks on the left: means of {training_sets} training sets in each of {seeds} runs. A Poisson number
        of examples is what the literature averages over.
    """,
    seconds=(60, 1200),
    observables=("test_error", "train_error"),
    gallery={"training_sets": 2500, "seeds": 16},
    full={"training_sets": 25_000, "seeds": 16},
)
def equivalent_kernel_orders(
    activation: str = "erf",
    input_dim: int = 10,
    n_train: int = 60,
    cubic_power: float = 0.2,
    temperatures: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0),
    training_sets: int = 200,
    seeds: int = 8,
) -> Iterator[Curve]:
    system = SphereRegression.from_architecture(
        fully_connected(1, None, activation),
        input_dim,
        np.array([0, 1 - cubic_power, 0, cubic_power]),
        n_train,
        temperatures[0],
        max_degree=9,
    )
    line = np.geomspace(min(temperatures) / 2, 2 * max(temperatures), 40)
    grid = {"temperature": np.unique(np.append(line, temperatures))}
    fixed = partial(equivalent_kernel_corrected, examples="fixed")
    yield Curve("equivalent kernel", equivalent_kernel, system, grid)
    yield Curve(_FIXED, fixed, system, grid)
    yield Curve(f"{_FIXED}, Poisson number", equivalent_kernel_corrected, system, grid)
    yield Curve("self-consistent", self_consistent, system, grid)
    measured = partial(mean_sphere_errors, training_sets=training_sets)
    yield Curve("measured", measured, system, {"temperature": temperatures}, seeds)
