"""Studies of one giant gradient step."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from orderparam.comparison import Comparison, Curve, between, study
from orderparam.losses import RealLabels, SignLabels
from orderparam.plotting import Freehand, Panel, horizontal
from orderparam.plotting.measured import mean_and_error
from orderparam.plotting.style import COLOURS
from orderparam.systems.one_step.experiment import learn_after_step, learn_spiked, measured_spectrum
from orderparam.systems.one_step.model import OneStep, SpikedFeatures
from orderparam.systems.one_step.spectrum import FeatureMatrix, feature_spectrum
from orderparam.systems.one_step.theory import (
    best_linear,
    no_step_asymptotics,
    one_step_asymptotics,
    spiked_asymptotics,
)

# ------------------------------------------------------------------------------------------------
# The density of eigenvalues on logarithmic axes, with the bulk's edge and the eigenvalue of the
# features' mean.


def draw_outliers(axes: Any, comparison: Comparison) -> None:
    """Draw bulk and outlier before and after the step; an eigenvalue outside has the weight 1/p."""
    p = comparison.parameters
    weight = 1 / (p["width_ratio"] * p["input_dim"])
    for colour, step in zip(COLOURS, ("before the step", "after the step")):
        (theory,), (runs,) = (
            comparison.theories(step=step).values(),
            comparison.experiments(step=step).values(),
        )
        place = theory["eigenvalue"].values
        axes.plot(place, theory["density"].values, color=colour)
        mean, error = mean_and_error(runs["density"])
        axes.errorbar(place, mean, np.nan_to_num(error), fmt="o", color=colour, markersize=3)
        axes.axvline(float(theory["edge"]), color=colour, linestyle=":", linewidth=0.9)
        top, spread = (np.ravel(part)[0] for part in mean_and_error(runs["mean_eigenvalue"]))
        # an odd activation has no mean before the step
        if float(theory["mean_eigenvalue"]) > float(theory["edge"]):
            outside = float(theory["mean_eigenvalue"])
            axes.vlines(outside, 0.3 * weight, 2.5, color=colour, linestyle="--", linewidth=0.9)
            text = "eigenvalue of\nthe mean, theory"
            axes.annotate(text, (outside, 2.5), ha="center", va="bottom", color=colour)
            axes.errorbar(
                [top], [weight], xerr=[np.nan_to_num(spread)], fmt="o", color=colour, markersize=4
            )
    axes.set(xscale="log", yscale="log", ylim=(0.3 * weight, None))
    axes.set(xlabel=r"eigenvalue $\lambda$ of $\Phi^\top\Phi/p$", ylabel=r"density per $\lambda$")


def _beside(x: str, name: str, facet: str) -> Panel:
    """A panel of the measured error divided by that of the theory for the trained layers."""
    quantity = ("measured / theory of the layers", lambda data: data[name] / data[f"given_{name}"])
    return Panel(
        x, quantity, facet=facet, log="x", where={"label": "measured"}, reference=[horizontal(1.0)]
    )


@study(
    "one-step-batch-size",
    title=(
        "One large gradient step on enough examples beats the best linear predictor, and "
        "therefore, in theory, every fixed kernel at this number of examples"
    ),
    source="Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro 2024 (arXiv:2402.04980); Ba et "
    "al. 2022 (arXiv:2205.01445)",
    panels=[
        Panel("batch_ratio", "test_error", facet="labels", log="xy"),
        _beside("batch_ratio", "test_error", "labels"),
    ],
    caption=r"""
        $y = \tanh\,\theta\cdot x$ and $\mathrm{{sign}}\,\theta\cdot x$; networks
        $a\cdot\tanh(Wx)/\sqrt{{p}}$ of $p$ = {width_ratio} $d$ units; one step of effective size
        {step} on the first layer ($a^0 = 1$) with $n_B$ examples, then ridge regression of $a$
        (ridge {ridge}) on $n$ = {sample_ratio} $d$ fresh examples; measured at $d$ = {input_dim}.
        With $n$ in proportion to $d$ no fixed kernel has a smaller error than the best linear
        predictor in theory. The line takes the first layer apart from the learned direction as
        isotropic. Below: measured errors divided by the theory for the given first layer of each
        network.
    """,
    seconds=(30, 6000),
    observables=("test_error", "train_error", "spike_overlap", "effective_share"),
    explained=(
        "The closed theory assumes an isotropic bulk after the step. With small batches, n_B = d, "
        "measured errors are 2 to 6 % above this theory at every size from d = 125 to 1000, and "
        "the theory of the given layers agrees with them within 1.2(5) %. With large batches, n_B "
        "= 64 d, measured errors for tanh labels, for which the theory is 0.008, are above it by "
        "21.5(8), 9.8(6), 5.7(7) and 2.4(7) % at d = 125, 250, 500 and 1000, a correction of "
        "finite dimension in proportion to 1/d; those for sign labels are below it by 0.8(6) and "
        "0.4(6) % at 250 and 500."
    ),
    gallery={"seeds": 16},
    full={
        "input_dim": 1000,
        "batch_ratios": (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0),
        "seeds": 16,
    },
)
def one_step_batch_size(
    input_dim: int = 250,
    batch_ratios: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 8.0, 24.0, 64.0),
    sample_ratio: float = 2.0,
    width_ratio: float = 1.0,
    step: float = 3.0,
    ridge: float = 0.1,
    seeds: int = 8,
) -> Iterator[Curve]:
    for target, labels in (("tanh", RealLabels("tanh")), ("sign", SignLabels())):
        system = OneStep(
            sample_ratio,
            width_ratio,
            1.0,
            step,
            ridge=ridge,
            activation="tanh",
            labels=labels,
            input_dim=input_dim,
        )
        facets = {"labels": f"{target} labels"}
        fine = {"batch_ratio": between(batch_ratios, 40)}
        ends = {"batch_ratio": [min(batch_ratios), max(batch_ratios)]}
        run = partial(learn_after_step, test_points=3000)
        yield Curve("one step, isotropic bulk", one_step_asymptotics, system, fine, facets=facets)
        yield Curve("no step", no_step_asymptotics, system, ends, facets=facets, baseline=True)
        yield Curve(
            "best linear predictor", best_linear, system, ends, facets=facets, baseline=True
        )
        yield Curve("measured", run, system, {"batch_ratio": batch_ratios}, seeds, facets=facets)


@study(
    "one-step-spectrum",
    title="One gradient step changes the bulk of the features' spectrum and adds one eigenvalue "
    "far outside",
    source="Dandi, Pesce, Cui, Krzakala, Lu, Loureiro 2024 (arXiv:2410.18938); Moniri et al. 2023 "
    "(arXiv:2310.07891)",
    panels=[
        Panel(
            "eigenvalue",
            (r"density per $\ln\lambda$", lambda data: data["eigenvalue"] * data["density"]),
            by="step",
            log="x",
            xlabel=r"eigenvalue $\lambda$ of $\Phi^\top\Phi/p$",
        ),
        Freehand(draw_outliers),
    ],
    caption=(
        r"$\Phi$: tanh features ($p$ = {width_ratio} $d$) of $n$ = {sample_ratio} $d$ Gaussian "
        r"inputs $x$ of dimension $d$ = {input_dim}; one step of size {step} on {batch_ratio} $d$ "
        r"labels $\mathrm{{sign}}\,\theta\cdot x$ with a fixed $\theta$. Theory: features with "
        r"isotropic fluctuations, averaged over bins on the left. Right: the upper end of the "
        r"bulk, with its edge (dotted). After the step the features' mean adds one eigenvalue far "
        r"outside, drawn with its weight $1/p$ (dashed: theory; mark: measured). In a bin that "
        r"contains an edge the density is averaged over both of its sides; at finite $d$ the "
        r"largest eigenvalue of the bulk lies below the edge."
    ),
    seconds=(10, 1200),
    observables=("edge", "mean_eigenvalue"),
    explained=(
        "The largest of finitely many eigenvalues lies below the edge of the bulk in infinite "
        "dimension. Control: it lies 4.0(4) % below with 250 inputs and 2.9(3) % below with 500 "
        "before the step, and 3.7(9) and 2.8(5) % below after it (the law of largest eigenvalues "
        "predicts a ratio of 1.6); the eigenvalue of the mean agrees within 0.6(5) %."
    ),
    gallery={"seeds": 16},
    full={"input_dim": 2000, "seeds": 10, "bins": 60},
)
def one_step_spectrum(
    input_dim: int = 500,
    sample_ratio: float = 2.0,
    width_ratio: float = 1.0,
    batch_ratio: float = 8.0,
    step: float = 3.0,
    bins: int = 36,
    seeds: int = 6,
) -> Iterator[Curve]:
    learner = OneStep(
        sample_ratio,
        width_ratio,
        batch_ratio,
        step,
        ridge=0.1,
        activation="tanh",
        labels=SignLabels(),
        input_dim=input_dim,
    )
    for when, trained in (("before the step", False), ("after the step", True)):
        system = FeatureMatrix(learner, trained, bins, 5e-3, 6.0)
        yield Curve("theory", feature_spectrum, system, {}, facets={"step": when})
        yield Curve("measured", measured_spectrum, system, {}, seeds, facets={"step": when})


@study(
    "one-step-learning-curve",
    title=(
        "After one gradient step the test errors of read-outs trained with square and logistic "
        "loss are at most 4 % above theory"
    ),
    source="Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro 2024 (arXiv:2402.04980)",
    panels=[
        Panel("sample_ratio", "classification_error", facet="loss", log="x"),
        _beside("sample_ratio", "classification_error", "loss"),
    ],
    caption=r"""
        $y = \mathrm{{sign}}\,\theta\cdot x$; networks $a\cdot\tanh(Wx)/\sqrt{{p}}$, $p$ =
        {width_ratio} $d$; one step of effective size {step} on {batch_ratio} $d$ examples, then $a$
        is trained with the loss and ridge {ridge} added to the summed loss; measured at $d$ =
        {input_dim}. Line: theory for a first layer that is isotropic apart from the learned
        direction, computed at {points} values and joined; dashed: without a step. Below: measured
        errors divided by the theory for the given first layer of each network; all lie above 1,
        within the errors, and no other $d$ was run.
    """,
    seconds=(55, 4000),
    observables=("classification_error", "train_loss", "teacher_overlap"),
    full={
        "input_dim": 600,
        "sample_ratios": (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0),
        "seeds": 16,
        "points": 40,
    },
)
def one_step_learning_curve(
    input_dim: int = 150,
    sample_ratios: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0),
    width_ratio: float = 1.0,
    batch_ratio: float = 4.0,
    step: float = 3.0,
    ridge: float = 0.05,
    seeds: int = 5,
    points: int = 7,
) -> Iterator[Curve]:
    for loss in ("square", "logistic"):
        system = OneStep(
            1.0,
            width_ratio,
            batch_ratio,
            step,
            ridge=ridge,
            activation="tanh",
            labels=SignLabels(),
            loss=loss,
            input_dim=input_dim,
        )
        facets = {"loss": f"{loss} loss"}
        fine = {"sample_ratio": between(sample_ratios, points)}
        run = partial(learn_after_step, test_points=2000)
        yield Curve("one step, isotropic bulk", one_step_asymptotics, system, fine, facets=facets)
        yield Curve(
            "no step",
            no_step_asymptotics,
            system,
            {"sample_ratio": sample_ratios},
            facets=facets,
            baseline=True,
        )
        yield Curve("measured", run, system, {"sample_ratio": sample_ratios}, seeds, facets=facets)


@study(
    "one-step-groups",
    title="With n and p of the order of d, relu features learn an even target only if their spikes "
    "have both signs",
    source="Dandi, Pesce, Cui, Krzakala, Lu, Loureiro 2024 (arXiv:2410.18938)",
    panels=lambda p: [
        Panel(
            "sample_ratio",
            "test_error",
            by="signs",
            log="x",
            ylim=(0, None),
            reference=[horizontal(1 - 2 / np.pi + p["noise"], "best constant, best linear")],
        )
    ],
    caption=(
        r"$y = |\theta\cdot x|$ plus noise of variance {noise}; features relu$(w_j\cdot x + u_j "
        r"v\cdot x)$, $v\cdot\theta$ = {overlap}, $p$ = {width_ratio} $d$. Spikes $u_j$ = 0; $u_j$ "
        r"= {spike}; or {spike} for one half of the neurons and minus that for the other, as after "
        r"a step with read-outs of both signs. Ridge regression ({ridge}); $d$ = {input_dim}."
    ),
    seconds=(20, 2500),
    observables=("test_error", "train_error", "effective_share"),
    gallery={"seeds": 16, "sample_ratios": (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)},
    full={"input_dim": 1000, "sample_ratios": (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0), "seeds": 16},
)
def one_step_groups(
    input_dim: int = 300,
    sample_ratios: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0),
    width_ratio: float = 1.0,
    overlap: float = 0.9,
    spike: float = 1.5,
    ridge: float = 0.1,
    noise: float = 0.01,
    seeds: int = 8,
) -> Iterator[Curve]:
    labels = RealLabels("abs", noise)
    for signs, spikes in (
        ("no spike", (0.0,)),
        ("one sign", (spike,)),
        ("both signs", (spike, -spike)),
    ):
        system = SpikedFeatures(
            1.0,
            width_ratio,
            overlap,
            spikes,
            ridge=ridge,
            activation="relu",
            labels=labels,
            input_dim=input_dim,
        )
        fine, facets = {"sample_ratio": between(sample_ratios, 25)}, {"signs": signs}
        yield Curve("theory", spiked_asymptotics, system, fine, facets=facets)
        yield Curve(
            "measured", learn_spiked, system, {"sample_ratio": sample_ratios}, seeds, facets=facets
        )
