"""The figure of the expansion in v/T, the posterior variance over the ridge."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import PRNGKeyArray

from orderparam.comparison import Comparison, Curve, study
from orderparam.networks.fully_connected import fully_connected
from orderparam.plotting import Freehand, Panel
from orderparam.plotting.style import COLOURS, GREY, MARKERS
from orderparam.running.estimate import estimate
from orderparam.systems.kernel_regression.learning_curve import LearningCurve
from orderparam.systems.kernel_regression.spectrum.equivalent_kernel import (
    equivalent_kernel,
    equivalent_kernel_corrected,
)
from orderparam.systems.kernel_regression.spectrum.experiment import (
    MeanSphereErrors,
    mean_sphere_errors,
)
from orderparam.systems.kernel_regression.spectrum.model import SphereRegression
from orderparam.systems.kernel_regression.spectrum.theory import self_consistent

_CORRECTED = "first correction"


def predicted(
    system: SphereRegression, *, theory: Callable[[SphereRegression], LearningCurve]
) -> LearningCurve:
    """The learning curve of a theory with a ridge in proportion to the number of examples."""
    return theory(_in_proportion(system))


def measured(
    system: SphereRegression, key: PRNGKeyArray, *, training_sets: int
) -> MeanSphereErrors:
    """The measured learning curve with a ridge in proportion to the number of examples."""
    return mean_sphere_errors(_in_proportion(system), key, training_sets=training_sets)


def _in_proportion(system: SphereRegression) -> SphereRegression:
    """The system with a ridge that is proportional to the number n of examples. Then v/T falls as
    1/n, and the learnability of every mode does not depend on n."""
    return system.with_(temperature=system.temperature * system.n_train)


def draw_orders(axes: Any, comparison: Comparison) -> None:
    """Draw the relative deviation of the measurement from each theory against v/T, beside a line in
    proportion to v/T."""
    (runs,) = comparison.experiments().values()
    mean, error = estimate(runs, "test_error")
    at = {"n_train": mean["n_train"]}
    theories = list(comparison.theories().values())
    dimension = theories[0]["effective_dimension"].sel(at)
    ratio = (dimension / dimension["n_train"]).values  # v/T of the equivalent kernel
    for number, data in enumerate(theories):
        theory = data["test_error"].sel(at).values
        deviation = abs(mean.values / theory - 1)
        look = {"color": COLOURS[number], "fmt": MARKERS[number], "markerfacecolor": "white"}
        axes.errorbar(ratio, deviation, error.values / theory, **look)
        if number == 0:
            axes.plot(ratio, deviation[-1] * ratio / ratio[-1], ":", color=GREY)
    axes.set(xscale="log", yscale="log", xlabel="$v/T$", ylabel="|measured / theory − 1|")
    axes.set_ylim(1e-4, None)


@study(
    "equivalent-kernel-orders",
    title="The equivalent kernel errs in proportion to v/T; its first correction is right within "
    "half a per cent",
    source="Cohen, Malka, Ringel 2021; the fixed number of examples is derived here",
    panels=[
        Panel("n_train", "test_error", log="x"),
        Freehand(draw_orders),
    ],
    caption=r"""
        Kernel of an {activation} network with one hidden layer, inputs uniform on the sphere in
        {input_dim} dimensions, a linear target with a cubic part of power {cubic_power}, ridge $T$
        = {ridge} $n$, so that the posterior variance $v$ of the equivalent kernel does not depend
        on $n$; $L_k$: share of mode $k$ that it learns, $Y_k$: power of the target in it. Marks on
        the left: means of {training_sets} training sets in each of {seeds} runs. Dotted: in
        proportion to $v/T$. The literature, and the self-consistent theory, average over a Poisson
        number of examples, whose error lies higher by $(3/n) \sum_k L_k^2 (1-L_k)^2 Y_k$.
    """,
    explained=(
        "Second order: with exactly n examples the first correction lies 0.5(2), 0.4(1), 0.1(1) "
        "and 0.1(1) % below the measurement with 20, 40, 80 and 160 examples. With a Poisson "
        "number it lies 1.0(2), 0.4(1), 0.3(1) and 0.15(6) % above, the self-consistent theory "
        "1.0(2), 0.6(1), 0.4(1) and 0.17(6) %."
    ),
    seconds=(60, 1800),
    observables=("test_error",),
    gallery={"n_train": (20, 40, 80, 160), "training_sets": 2500, "seeds": 16},
    full={"n_train": (20, 40, 80, 160, 320), "training_sets": 10_000, "seeds": 16},
)
def equivalent_kernel_orders(
    activation: str = "erf",
    input_dim: int = 10,
    cubic_power: float = 0.2,
    ridge: float = 0.04,
    n_train: tuple[int, ...] = (20, 40, 80),
    training_sets: int = 200,
    seeds: int = 8,
) -> Iterator[Curve]:
    system = SphereRegression.from_architecture(
        fully_connected(1, None, activation),
        input_dim,
        np.array([0, 1 - cubic_power, 0, cubic_power]),
        n_train[0],
        ridge,
        max_degree=9,
    )
    line = np.geomspace(min(n_train) / 2, 2 * max(n_train), 40)
    grid = {"n_train": np.unique(np.append(line, n_train))}
    theories: dict[str, Callable[..., LearningCurve]] = {
        "equivalent kernel": equivalent_kernel,
        _CORRECTED: partial(equivalent_kernel_corrected, examples="fixed"),
        f"{_CORRECTED}, Poisson number": equivalent_kernel_corrected,
        "self-consistent": self_consistent,
    }
    for label, theory in theories.items():
        yield Curve(label, partial(predicted, theory=theory), system, grid)
    runs = partial(measured, training_sets=training_sets)
    yield Curve("measured", runs, system, {"n_train": n_train}, seeds)
