"""The named figures of in-context learning."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from orderparam.comparison import Comparison, Curve, between, study
from orderparam.plotting import Freehand, Panel, curve
from orderparam.plotting.style import ink
from orderparam.systems.in_context.experiment import (
    extrapolated_regression,
    quadratic_regression,
    task_posterior,
    trained_attention,
)
from orderparam.systems.in_context.model import LinearAttention, StructuredTasks
from orderparam.systems.in_context.theory import context_ridge, linear_attention

SOURCE = "Lu, Letey, Zavatone-Veth, Maiti, Pehlevan 2025 (arXiv:2405.11751)"
EXTRAPOLATED = "trained, extrapolated in $1/d$"
LAYER = "whole layer trained"


@study(
    "in-context-transition",
    title="With few training tasks linear attention is far better on them than on fresh tasks; "
    "with many, about as good on both",
    source=f"{SOURCE}; Raventos, Paul, Chen, Ganguli 2023 (arXiv:2306.15063); any ridge derived "
    "here",
    panels=[
        Panel(
            "task_ratio",
            name,
            by="learner",
            log="xy",
            xlabel=r"training tasks over dimension $k/d$",
            ylabel=label,
            ylim=(0.08, 2.0),  # the same in both
            beside={
                "linear attention": 3.0,
                r"linear attention, $n = \infty$": (3.0, "below"),
                "Bayes, Gaussian tasks": 1.0,
                "Bayes, the $k$ tasks": 1.2,
            },
        )
        for name, label in (
            ("icl_error", "error on fresh tasks"),
            ("idg_error", "error on the training tasks"),
        )
    ],
    columns=2,
    caption=r"""
        Linear regression in context: $l$ = {context_ratio} $d$ examples with label noise $\rho$ =
        {noise}; predicting 0 has the error $1 + \rho$. Linear attention is trained on $n$ =
        {sample_ratio} $d^2$ sequences with ridge $\lambda$ = {ridge}, and, in the theory only, on
        infinitely many sequences without a ridge. Marks of linear attention: the limit $a$ of fits
        $a + b/d$ to trainings at $d$ = {input_dim} and at 3/4 and 1/2 of it. Bayes estimates: with
        a Gaussian prior (line, fresh tasks only), and with the $k$ training tasks as prior
        (squares, $d$ = {posterior_dim}), which is wrong for fresh tasks, so that the error may be
        larger than that of predicting 0.
    """,
    seconds=(120, 900),
    observables=("icl_error", "idg_error"),
    gallery={"seeds": 32},
    full={"input_dim": 48, "posterior_dim": 40, "seeds": 64},
)
def in_context_transition(
    context_ratio: float = 4.0,
    sample_ratio: float = 4.0,
    noise: float = 0.1,
    ridge: float = 0.1,
    task_ratios: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0, 4.0, 8.0),
    input_dim: int = 24,
    posterior_dim: int = 20,
    seeds: int = 16,
) -> Iterator[Curve]:
    system = LinearAttention(
        context_ratio, task_ratios[0], sample_ratio, noise, ridge, input_dim=input_dim
    )
    line = {"task_ratio": between((min(task_ratios) / 4, *task_ratios, 2 * max(task_ratios)))}
    measured = {"task_ratio": task_ratios}
    layer = {"learner": "linear attention"}
    yield Curve("theory", linear_attention, system, line, facets=layer)
    yield Curve(
        EXTRAPOLATED,
        extrapolated_regression,
        system,
        measured,
        seeds,
        batch_seeds=True,
        facets=layer,
    )
    endless = system.with_(sample_ratio=np.inf, ridge=0.0)
    facets = {"learner": r"linear attention, $n = \infty$"}
    yield Curve("theory", linear_attention, endless, line, facets=facets)
    facets = {"learner": "Bayes, Gaussian tasks"}
    yield Curve("theory", context_ridge, system, line, facets=facets)
    yield Curve(
        "drawn contexts",
        task_posterior,
        system.with_(input_dim=posterior_dim),
        measured,
        seeds,
        batch_seeds=True,
        facets={"learner": "Bayes, the $k$ tasks"},
    )


@study(
    "in-context-memorisation",
    title="The longer the contexts, the more sharply memorisation of tasks ends at as many tasks "
    "as dimensions",
    source=f"{SOURCE}, the transition; any ridge derived here",
    panels=[
        Panel(
            "task_ratio",
            name,
            by="contexts",
            log=log,
            xlabel=r"training tasks over dimension $k/d$",
            ylabel=label,
            reference=[curve(limit, "")],
        )
        for name, log, label, limit in (
            ("icl_error", "xy", "error on fresh tasks", lambda k: 0.1 + np.maximum(1 - k, 0)),
            ("task_gap", "x", "fresh minus training tasks", lambda k: np.maximum(1 - k, 0)),
        )
    ],
    columns=2,
    caption=r"""
        Linear attention trained on $n$ = {sample_ratio} $d^2$ sequences with label noise $\rho$ =
        0.1 and ridge {ridge}, for contexts of $l$ examples (colours). Right: error on fresh tasks
        minus that on the training tasks. Dotted: the limit of many examples and sequences, $\rho +
        \max(1 - k/d, 0)$ and $\max(1 - k/d, 0)$, with a transition at $k = d$. Marks: the limit $a$
        of fits $a + b/d$ to trainings at $d$ = {input_dim} and at 3/4 and 1/2 of it.
    """,
    seconds=(60, 600),
    observables=("icl_error", "task_gap"),
    gallery={"seeds": 24},
    full={"input_dim": 32, "seeds": 64},
)
def in_context_memorisation(
    context_ratios: tuple[float, ...] = (4.0, 32.0, 1000.0),
    task_ratios: tuple[float, ...] = (0.5, 0.75, 1.0, 1.25, 2.0, 4.0),
    sample_ratio: float = 16.0,
    ridge: float = 0.01,
    input_dim: int = 16,
    seeds: int = 16,
) -> Iterator[Curve]:
    line, marks = {"task_ratio": between((0.25, *task_ratios))}, {"task_ratio": task_ratios}
    for context in context_ratios:
        system = LinearAttention(
            context, task_ratios[0], sample_ratio, 0.1, ridge, input_dim=input_dim
        )
        facets = {"contexts": f"$l$ = {context:g} $d$"}
        yield Curve("theory", linear_attention, system, line, facets=facets)
        yield Curve(
            EXTRAPOLATED,
            extrapolated_regression,
            system,
            marks,
            seeds,
            batch_seeds=True,
            facets=facets,
        )


@study(
    "in-context-length",
    title="A layer trained on short contexts has a larger error in long test contexts",
    source=f"derived here; the layer of {SOURCE}",
    panels=[
        Panel(
            "test_context_ratio",
            "icl_error",
            by="learner",
            log="xy",
            xlabel=r"examples in a test context over dimension $l'/d$",
            ylabel="error on fresh tasks",
        ),
    ],
    caption=r"""
        Linear attention trained with $l$ examples in a context ($k$ = {task_ratio} $d$ tasks, $n$ =
        {sample_ratio} $d^2$ sequences, ridge $\lambda$ = {ridge}, label noise $\rho$ = {noise}) and
        tested with $l'$ examples. Marks: the limit $a$ of fits $a + b/d$ to trainings at $d$ =
        {input_dim} and at 3/4 and 1/2 of it. Bayes: ridge regression in the test context. The lines
        cross at $l'/d$ of about 1.2; in shorter test contexts the layer trained on short contexts
        is the better one.
    """,
    seconds=(120, 900),
    observables=("icl_error", "idg_error"),
    gallery={"seeds": 32},
    full={"input_dim": 48, "seeds": 64},
)
def in_context_length(
    context_ratios: tuple[float, ...] = (1.0, 4.0),
    test_context_ratios: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 16.0, 64.0),
    task_ratio: float = 4.0,
    sample_ratio: float = 4.0,
    noise: float = 0.1,
    ridge: float = 0.1,
    input_dim: int = 24,
    seeds: int = 16,
) -> Iterator[Curve]:
    line = {"test_context_ratio": between(test_context_ratios)}
    for ratio in context_ratios:
        system = LinearAttention(
            ratio, task_ratio, sample_ratio, noise, ridge, ratio, input_dim=input_dim
        )
        facets = {"learner": f"trained at $l/d$ = {ratio:g}"}
        yield Curve("theory", linear_attention, system, line, facets=facets)
        yield Curve(
            EXTRAPOLATED,
            extrapolated_regression,
            system,
            {"test_context_ratio": test_context_ratios},
            seeds,
            batch_seeds=True,
            facets=facets,
        )
    yield Curve("theory", context_ridge, system, line, facets={"learner": "Bayes"})


def draw_fits(axes: Any, comparison: Comparison) -> None:
    """Draws the errors against 1/d, the fits a + b/d (+ c/d^2) through them, and the theory at 1/d
    = 0."""
    for data in comparison.theories().values():
        level = float(np.ravel(data["icl_error"])[0])
        axes.axhline(level, color=ink(), label="theory, infinite dimension")
    for number, data in enumerate(comparison.experiments().values()):
        inverse = 1 / np.asarray(data["input_dim"], float)
        runs = np.asarray(data["icl_error"].transpose("input_dim", "seed"))
        mean, error = runs.mean(axis=1), runs.std(axis=1, ddof=1) / np.sqrt(runs.shape[1])
        powers = 3 if data.attrs["label"] == LAYER else 2
        look: dict[str, Any] = {"color": f"C{number}"}
        if not np.all(error > 0) or len(inverse) < powers:  # a single run has no error for a fit
            axes.plot(inverse, mean, "o", label=data.attrs["label"], **look)
            continue
        solve = np.linalg.pinv(np.vander(inverse, powers, increasing=True) / error[:, None]) / error
        at = np.linspace(0, inverse.max(), 60)
        axes.plot(at, np.vander(at, powers, increasing=True) @ (solve @ mean), "--", **look)
        axes.errorbar(inverse, mean, error, fmt="o", label=data.attrs["label"], **look)
        spread = np.sqrt(np.sum((solve[0] * error) ** 2))
        beside = -0.02 * (number + 1) * inverse.max()  # where neither limit hides the other
        axes.errorbar(beside, solve[0] @ mean, spread, fmt="s", fillstyle="none", **look)
    axes.set(xlabel=r"$1/d$", ylabel="error on fresh tasks")


@study(
    "in-context-size",
    title="As the dimension grows, regression on quadratic features and a fully trained layer "
    "approach the theory",
    source=f"derived here; the layer of {SOURCE}",
    panels=[Freehand(draw_fits)],
    caption=r"""
        $l$ = {context_ratio} $d$ examples in a context, $k$ = {task_ratio} $d$ tasks, $n$ =
        {sample_ratio} $d^2$ sequences, label noise $\rho$ = {noise}, ridge $\lambda$ = {ridge}.
        Full marks: means and standard errors. Dashed: least squares of $a + b/d$ for the regression
        and of $a + b/d + c/d^2$ for the layer whose values are trained too (its lower of two
        minima). Open squares: the limits $a$ at $1/d = 0$, which depend on these forms, with their
        standard errors; they are shifted to the left of 0, so that neither hides the other.
    """,
    seconds=(150, 1800),
    observables=("icl_error",),
    gallery={"layer_dims": (10, 14, 20, 28), "seeds": 48, "layer_seeds": 32},
    full={"dims": (10, 14, 20, 28, 40), "layer_dims": (10, 14, 20, 28, 40), "seeds": 64},
    explained=(
        "The theory is that of infinite dimension. From 10 to 28 dimensions the excess over the "
        "theory falls from 15 to 4 % for the regression, and from 40 to 10 % for a layer with a "
        "trained value vector, which fits the noise. The limits of the fits in 1/d agree with "
        "the theory."
    ),
)
def in_context_size(
    context_ratio: float = 1.0,
    task_ratio: float = 2.0,
    sample_ratio: float = 3.0,
    noise: float = 0.25,
    ridge: float = 0.1,
    dims: tuple[int, ...] = (10, 14, 20, 28),
    layer_dims: tuple[int, ...] = (10, 14, 20),
    seeds: int = 24,
    layer_seeds: int = 16,
) -> Iterator[Curve]:
    system = LinearAttention(context_ratio, task_ratio, sample_ratio, noise, ridge)
    yield Curve("theory", linear_attention, system, {"input_dim": dims})
    yield Curve(
        "regression on quadratic features",
        quadratic_regression,
        system,
        {"input_dim": dims},
        seeds,
        batch_seeds=True,
    )
    yield Curve(LAYER, trained_attention, system, {"input_dim": layer_dims}, layer_seeds)


@study(
    "in-context-structure",
    title=(
        "Tasks along directions of small variance in training keep a larger error, which longer "
        "contexts do not remove"
    ),
    source=f"derived here; the layer of {SOURCE}",
    panels=[
        Panel(
            "test_context_ratio",
            "icl_error",
            by="fresh tasks",
            log="xy",
            xlabel=r"examples in a test context over dimension $l'/d$",
            ylabel="error on fresh tasks",
        ),
    ],
    caption=r"""
        Training tasks have the variances {variances}, each along a sixth of the directions; fresh
        tasks, which training has not seen, have the same variances, in the same or in the reverse
        order. Linear attention, $k$ = {task_ratio} $d$ training tasks, contexts of $l$ =
        {context_ratio} $d$ examples in training and $l'$ in the test, $n$ = {sample_ratio} $d^2$
        sequences, ridge $\lambda$ = {ridge}, label noise $\rho$ = {noise}. Marks: the limit $a$ of
        fits $a + b/d$ to trainings at $d$ = {input_dim} and at 3/4 and 1/2 of it.
    """,
    seconds=(90, 900),
    observables=("icl_error", "idg_error"),
    gallery={"seeds": 32},
    full={"input_dim": 48, "seeds": 64},
)
def in_context_structure(
    variances: tuple[float, ...] = (2.6, 1.4, 0.8, 0.6, 0.4, 0.2),
    test_context_ratios: tuple[float, ...] = (0.5, 2.0, 8.0, 32.0),
    context_ratio: float = 2.0,
    task_ratio: float = 2.0,
    sample_ratio: float = 2.0,
    noise: float = 0.2,
    ridge: float = 0.2,
    input_dim: int = 24,
    seeds: int = 16,
) -> Iterator[Curve]:
    for name, fresh in (("as in training", variances), ("in reverse", variances[::-1])):
        system = StructuredTasks(
            context_ratio,
            task_ratio,
            sample_ratio,
            noise,
            ridge,
            context_ratio,
            input_dim=input_dim,
            task_variances=np.asarray(variances),
            test_variances=np.asarray(fresh),
        )
        facets = {"fresh tasks": name}
        line = {"test_context_ratio": between(test_context_ratios)}
        yield Curve("theory", linear_attention, system, line, facets=facets)
        measured = {"test_context_ratio": test_context_ratios}
        yield Curve(
            EXTRAPOLATED,
            extrapolated_regression,
            system,
            measured,
            seeds,
            batch_seeds=True,
            facets=facets,
        )
