"""The figures of generalisation: bounds, worst-case, typical and measured errors, and minima that
do not generalise.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand, Panel, horizontal
from orderparam.plotting.measured import dots
from orderparam.plotting.style import COLOURS
from orderparam.systems.generalisation.experiment import (
    sampled_students,
    trained_student,
    worst_student,
)
from orderparam.systems.generalisation.image_experiment import (
    ARMS,
    bad_minima,
    trained_network,
)
from orderparam.systems.generalisation.model import ImageClassifier, PerceptronLearning
from orderparam.systems.generalisation.theory import (
    counting_bound,
    typical,
    uniform_bound,
    worst_consistent,
)

# ------------------------------------------------------------------------------------------------
# The perceptron: bounds, the worst case, and the typical case.

_RUNS = {
    "Bayes": sampled_students,
    "Gibbs": sampled_students,
    "largest margin": trained_student,
    "Hebb": trained_student,
}


@study(
    "worst-case-typical-case",
    title=(
        "Where typical perceptrons without training error err on 5 to 8 % of new inputs, at 8 "
        "examples per input, bounds on the worst case exceed the error of guessing"
    ),
    source="Vapnik 1998; Blumer et al. 1989; Cover 1965; Györgyi 1990; Opper, Kinzel, Kleinz, Nehl "
    "1990; Opper, Haussler 1991",
    seconds=(60, 3600),
    observables=("error",),
    gallery={"seeds": 16},
    full={
        "data_sets": 16,
        "steps": 40_000,
        "seeds": 16,
        "data": "mnist",
        "examples": 10_000,
        "width": 512,
    },
    columns=2,
    panels=[
        Panel(
            "sample_ratio",
            "error",
            by="student",
            where={"part": "perceptron"},
            log="xy",
            ylim=(0.006, 20),
            reference=[horizontal(0.5)],
            title="perceptron",
            text={
                "any: bound by growth function": "bound by growth function",
                "any: bound by dimension": "bound by dimension",
                "bound": "",
            },
            beside={
                "any: bound by growth function": 1.6,
                "any: bound by dimension": 0.75,
                "worst": 7.0,
                "Hebb": 20.0,
            },
        ),
        Panel(
            "n_train",
            "error",
            where={"part": "network"},
            log="xy",
            ylim=(0.006, 20),
            reference=[horizontal(0.9, "guessing")],
            title="network",
            text={"counting bound": "order of magnitude of a bound"},
            beside={"counting bound": 100.0},
        ),
    ],
    caption=r"""
        Left: a perceptron in $d$ = {input_dim} dimensions with $n = \alpha d$ examples, {data_sets}
        data sets in a run; all students except Hebb's have no training error. Bounds (dashed) hold
        for any student with probability $1 - \delta$ = 0.95: $\frac{{2}}{{n}}\log_2\frac{{2
        G(2n)}}{{\delta}}$ with the number $G(m)$ of ways to label $m$ points (growth function), and
        $\sqrt{{[d(\ln(2n/d) + 1) + \ln(4/\delta)]/n}}$ (dimension). Dotted: error of guessing;
        above some 19 (dimension) and 29 (growth function) examples per input, where nothing was
        measured, bounds are smaller. Right: a network with two hidden layers of {width} units that
        plain SGD trains on {data} until no training example is wrong; dash-dotted: square root of
        the number of weights per example.
    """,
    explained=(
        "The theory holds for many dimensions. In 50 dimensions the worst student that the search "
        "finds has an error up to 6 % below the theory; the search may also miss the worst student."
    ),
)
def worst_case_typical_case(
    input_dim: int = 50,
    ratios: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 8.0),
    worst_ratios: tuple[float, ...] = (0.5, 1.0, 1.5, 3.0, 6.0),
    data_sets: int = 4,
    steps: int = 6000,
    seeds: int = 4,
    data: str = "digits",
    examples: int = 1797,
    width: int = 64,
    n_train: tuple[int, ...] = (50, 200, 1000),
) -> Iterator[Curve]:
    system = PerceptronLearning(1.0, input_dim)
    fine = {"sample_ratio": tuple(np.geomspace(0.2, 50, 97).tolist())}
    for form in ("growth function", "dimension"):
        facets = {"part": "perceptron", "student": f"any: bound by {form}"}
        yield Curve(
            "bound", partial(uniform_bound, form=form), system, fine, facets=facets, baseline=True
        )
    for learner, run in _RUNS.items():
        facets = {"part": "perceptron", "student": learner}
        options: dict[str, Any] = {"steps": steps} if run is sampled_students else {}
        measured = partial(run, learner=learner, data_sets=data_sets, **options)
        yield Curve("theory", partial(typical, learner=learner), system, fine, facets=facets)
        yield Curve("learned", measured, system, {"sample_ratio": ratios}, seeds, facets=facets)
    facets = {"part": "perceptron", "student": "worst"}
    worst = partial(worst_student, data_sets=data_sets)
    yield Curve("theory", worst_consistent, system, fine, facets=facets)
    yield Curve("learned", worst, system, {"sample_ratio": worst_ratios}, seeds, facets=facets)
    network, over = ImageClassifier.of(data, examples, width=width), {"n_train": n_train}
    yield Curve(
        "counting bound", counting_bound, network, over, facets={"part": "network"}, baseline=True
    )
    yield Curve("SGD", trained_network, network, over, seeds, facets={"part": "network"})


# ------------------------------------------------------------------------------------------------
# The panels of bad minima, drawn by functions of their own: the four ways of training.


def draw_arms(observable: str, label: str) -> Callable[[Any, Comparison], None]:
    """Make a function that draws one observable for each way of training.

    It draws every run as a small point, and the mean of the runs with its error. The legend names
    the ways of training.
    """

    def draw(axes: Any, comparison: Comparison) -> None:
        (data,) = comparison.experiments().values()
        for arm, name in enumerate(ARMS):
            runs = data[observable].isel(arm=arm)
            axes.plot(
                np.full(runs.size, arm + 0.2),
                runs.values.ravel(),
                ".",
                color=COLOURS[arm],
                alpha=0.5,
            )
            dots(axes, [arm], runs, arm, name, filled=True)
        axes.set(ylabel=label, xlim=(-0.5, len(ARMS) - 0.5), xticks=[])
        axes.set_ylim(0 if np.any(data[observable] > 0) else -0.01, None)

    return draw


# ------------------------------------------------------------------------------------------------
# Bad global minima: they exist, SGD reaches them, and regularisation avoids them.


@study(
    "bad-global-minima",
    title="From an adversarial start SGD fits all examples but makes 3.6 times as many test errors "
    "as from a random one",
    source="Liu, Papailiopoulos, Achlioptas 2019",
    seconds=(60, 3600),
    observables=("error", "weight_norm"),
    gallery={"seeds": 20},
    full={"data": "mnist", "examples": 12_000, "n_train": 2000, "width": 512, "seeds": 5},
    columns=2,
    panels=[
        Freehand(draw_arms("error", "test error")),
        Freehand(draw_arms("train_error", "training error")),
        Freehand(draw_arms("weight_norm", "norm of the weights")),
        Freehand(draw_arms("distance", "distance from the start")),
    ],
    caption=r"""
        Networks with two hidden layers of {width} units on {data}, {n_train} training examples;
        every way of training ends without a training error. Dots: the {seeds} runs; large marks:
        their mean. Norm and distance are those of all weights; the distance is from the random
        start. Adversarial start: SGD has first fitted random labels of damaged copies of the
        examples. Regularised: with momentum and weight decay.
    """,
)
def bad_global_minima(
    data: str = "digits", examples: int = 1797, n_train: int = 500, width: int = 64, seeds: int = 5
) -> Iterator[Curve]:
    system = ImageClassifier.of(data, examples, n_train=n_train, width=width)
    yield Curve("SGD", bad_minima, system, {}, seeds)
