"""The named figures of training on re-used data."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand, Panel
from orderparam.plotting.measured import dots
from orderparam.plotting.style import COLOURS
from orderparam.systems.reused_data.experiment import trained_committee, trained_student
from orderparam.systems.reused_data.model import ReusedCommittee, ReusedData
from orderparam.systems.reused_data.theory import (
    closed_dynamics,
    committee_dynamics,
    sampled_dynamics,
)


def _marked(data: xr.Dataset, values: xr.DataArray) -> xr.DataArray:
    """Values along the steps: all steps of a theory, for a line; about twelve of a measurement, for
    marks."""
    if "seed" not in data.dims:
        return values
    last = data.sizes["time"] - 1
    return values.isel(time=np.unique(np.geomspace(1, last, 12).round().astype(int)))


def _along(data: xr.Dataset, name: str) -> xr.DataArray:
    return _marked(data, data[name])


_STEP = (
    "step",
    lambda data: _marked(data, xr.DataArray(np.arange(data.sizes["time"]), dims=["time"])),
)
_ERROR = ("test error", partial(_along, name="test_error"))


def draw_overlaps(student: int, axes: Any, comparison: Comparison) -> None:
    """Draw the overlaps of one student with both teachers: the theory with two of its standard
    errors as a band, and the measurements."""
    (theory,), (runs,) = comparison.theories().values(), comparison.experiments().values()
    steps = np.arange(theory.sizes["time"])
    marked = _marked(runs, xr.DataArray(steps, dims=["time"])).values
    for teacher, colour in enumerate(COLOURS[:2]):
        one = {"student": student, "teacher": teacher}
        line, error = (
            theory[name].isel(one).values.ravel() for name in ("overlap", "overlap_uncertainty")
        )
        axes.plot(steps, line, color=colour, label=f"teacher {teacher + 1}")
        axes.fill_between(
            steps, line - 2 * error, line + 2 * error, color=colour, alpha=0.25, linewidth=0
        )
        dots(axes, marked, _along(runs, "overlap").isel(one), 0, colour=colour, filled=True)
    axes.set(xlabel="step", ylabel="overlap", ylim=(-0.15, 0.75))


# training: batch fraction, momentum, temperature
_TRAINING = {
    "full batch": (1.0, 0.0, 0.0),
    "a fifth in each step": (0.2, 0.0, 0.0),
    "momentum and Langevin noise": (1.0, 0.3, 0.3),
}
# task: learning rate, ridge, noise
_TASKS = {
    "regression": (0.15, 0.1, 0.1),
    "logistic": (0.4, 0.1, 0.0),
    "hinge": (0.2, 0.2, 0.0),
}


@study(
    "sgd-reused-data",
    title="Dynamical mean-field theory follows every step on re-used data",
    source="Mignacco, Krzakala, Urbani, Zdeborova 2020 (arXiv:2006.06098); closed and sampled "
    "forms derived here",
    panels=[
        Panel(_STEP, _ERROR, facet="task", by="training", log="xy", share_y=False),
        Panel(
            _STEP,
            _ERROR,
            facet="task",
            by="training",
            log="x",
            ratio_to="theory",
            ylabel="test error / theory",
        ),
    ],
    caption=r"""
        There is one set of $n$ = {sample_ratio} $d$ examples with $d$ = {input_dim}, and a step
        uses all of them or a random fifth. The test error is the mean squared error for regression
        (labels with noise 0.1), and the share of wrong signs for logistic and hinge loss (rounded
        over 0.5). Lines are the theory of $d \to \infty$, in closed form for regression. For the
        other losses they are averages over {samples} sampled examples in each of {runs} runs; their
        standard errors are not drawn but enter the comparison. Marks: students trained on drawn
        examples.
    """,
    seconds=(90, 600),
    observables=("test_error", "overlap", "train_loss"),
    gallery={"input_dim": 1000},
    full={"input_dim": 4000, "samples": 4000, "runs": 16, "seeds": 32},
)
def sgd_reused_data(
    sample_ratio: float = 3.0,
    steps: int = 40,
    input_dim: int = 500,
    samples: int = 1000,
    runs: int = 8,
    seeds: int = 16,
) -> Iterator[Curve]:
    for task, (rate, ridge, noise) in _TASKS.items():
        for training, (fraction, momentum, temperature) in _TRAINING.items():
            system = ReusedData(
                sample_ratio,
                rate,
                noise,
                ridge,
                fraction,
                momentum,
                temperature,
                input_dim=input_dim,
                task=task,
                steps=steps,
            )
            facets = {"task": task, "training": training}
            sampled = partial(sampled_dynamics, samples=samples, runs=runs)
            theory = closed_dynamics if task == "regression" else sampled
            yield Curve("theory", theory, system, {}, facets=facets)
            yield Curve("drawn data", trained_student, system, {}, seeds, facets=facets)


@study(
    "batch-size-noise",
    title="After the same number of steps smaller batches leave a higher error, and the more so at "
    "larger learning rates",
    source="Mignacco, Urbani 2022 (arXiv:2112.10852); closed theory derived here",
    panels=[
        Panel(
            "batch_fraction",
            ("test error after the last step", lambda data: data["test_error"].isel(time=-1)),
            by="learning_rate",
            log="xy",
            xlabel="share $b$ of the examples in a step",
        )
    ],
    caption=r"""
        Linear regression on $n$ = {sample_ratio} $d$ examples with label noise {noise} and ridge
        {weight_decay}; $d$ = {input_dim}. Shown is the test error after {steps} steps at three
        learning rates $\eta$ of the summed loss (colours). Every step draws its batch from these
        examples anew. Lines: closed form for $d\to\infty$. Marks: students trained on drawn
        examples.
    """,
    seconds=(60, 600),
    observables=("test_error",),
    gallery={"seeds": 24},
    full={"input_dim": 4000, "seeds": 32},
)
def batch_size_noise(
    sample_ratio: float = 2.0,
    noise: float = 0.1,
    weight_decay: float = 0.1,
    learning_rates: tuple[float, ...] = (0.02, 0.05, 0.1),
    fractions: tuple[float, ...] = (0.1, 0.15, 0.25, 0.5, 1.0),
    steps: int = 60,
    input_dim: int = 400,
    seeds: int = 16,
) -> Iterator[Curve]:
    system = ReusedData(
        sample_ratio, learning_rates[0], noise, weight_decay, input_dim=input_dim, steps=steps
    )
    grid = np.geomspace(0.9 * min(fractions), 1.0, 40)
    rates = {"learning_rate": learning_rates}
    yield Curve("theory", closed_dynamics, system, {"batch_fraction": grid, **rates})
    measured = {"batch_fraction": fractions, **rates}
    yield Curve("drawn data", trained_student, system, measured, seeds)


@study(
    "committee-reused-data",
    title=(
        "On re-used data the overlaps of a committee with its teachers grow as in the theory,"
        " within the sampling errors of both"
    ),
    source="Derived here; Celentano, Cheng, Montanari 2021 (arXiv:2112.07572) for the equations",
    panels=[
        Freehand(partial(draw_overlaps, student), f"student {student + 1}") for student in (0, 1)
    ],
    columns=2,
    caption=r"""
        The student has two erf units; the target is the sum of two teacher units plus {product}
        times the product of their fields. Every step uses the same $n$ = {sample_ratio} $d$
        examples; $d$ = {input_dim}, and the learning rate on the summed loss is {learning_rate}.
        Overlap: scalar product of the weights of a student and a teacher unit (colours) over $d$.
        Lines: theory for $d\to\infty$, itself sampled: the mean of {runs} runs of {samples}
        examples; bands: two standard errors of that mean. Values at different steps are correlated.
        Marks: {seeds} committees, with bars that are smaller than the marks.
    """,
    seconds=(90, 600),
    observables=("overlap", "self_overlap", "test_error"),
    gallery={"input_dim": 1000, "samples": 4000},
    full={"input_dim": 4000, "samples": 8000, "runs": 16, "seeds": 32},
)
def committee_reused_data(
    sample_ratio: float = 4.0,
    learning_rate: float = 0.2,
    product: float = 0.5,
    steps: int = 30,
    input_dim: int = 500,
    samples: int = 1000,
    runs: int = 8,
    seeds: int = 16,
) -> Iterator[Curve]:
    start = np.array([[0.2, -0.1], [0.0, 0.15]])
    system = ReusedCommittee(
        sample_ratio,
        start,
        0.5 * np.eye(2),
        learning_rate,
        product,
        input_dim=input_dim,
        steps=steps,
    )
    yield Curve("theory", partial(committee_dynamics, samples=samples, runs=runs), system, {})
    yield Curve("drawn data", trained_committee, system, {}, seeds)


@study(
    "phase-retrieval-in-time",
    title="Phase retrieval by gradient descent follows the theory of re-used data at every step, "
    "with and without momentum",
    source="Mignacco, Urbani, Zdeborova 2021 (arXiv:2103.04902); sampled theory derived here",
    panels=[
        Panel(
            _STEP,
            (label, partial(_along, name=name)),
            facet="training",
            by="sample_ratio",
            log=log,
        )
        for name, label, log in (("overlap", "overlap", "x"), ("train_loss", "training loss", "xy"))
    ],
    columns=2,
    caption=r"""
        The labels are $y = h^{{*2}}$ and the loss is $(h^2 - y)^2/(4(1 + y))$. All $n = \alpha d$
        examples ($\alpha$ in colours) are used in every step, $d$ = {input_dim}, and the learning
        rate on the summed loss is {learning_rate}, without and with momentum {momentum}. The
        student starts with the overlap {teacher_overlap} with the teacher and norm 1. Lines: theory
        for $d\to\infty$, averaged over {samples} sampled examples in each of {runs} runs; its
        standard errors are not drawn but enter the comparison. Marks: students on drawn examples.
        $h$, $h^*$: outputs of student and teacher.
    """,
    seconds=(90, 600),
    observables=("overlap", "self_overlap", "train_loss"),
    gallery={"input_dim": 1000, "samples": 4000, "seeds": 24},
    full={"input_dim": 4000, "samples": 8000, "runs": 16, "seeds": 32},
)
def phase_retrieval_in_time(
    sample_ratios: tuple[float, ...] = (2.0, 4.0, 8.0),
    learning_rate: float = 0.05,
    momentum: float = 0.5,
    teacher_overlap: float = 0.3,
    steps: int = 60,
    input_dim: int = 500,
    samples: int = 1000,
    runs: int = 8,
    seeds: int = 16,
) -> Iterator[Curve]:
    for training, beta in (("gradient descent", 0.0), (f"momentum {momentum:g}", momentum)):
        system = ReusedData(
            sample_ratios[0],
            learning_rate,
            momentum=beta,
            teacher_overlap=teacher_overlap,
            input_dim=input_dim,
            task="phase retrieval",
            steps=steps,
        )
        over, facets = {"sample_ratio": sample_ratios}, {"training": training}
        theory = partial(sampled_dynamics, samples=samples, runs=runs)
        yield Curve("theory", theory, system, over, facets=facets)
        yield Curve("drawn data", trained_student, system, over, seeds, facets=facets)
