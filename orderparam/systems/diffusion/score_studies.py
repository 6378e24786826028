"""The named figures of scores that are learned on random features."""

from collections.abc import Iterator
from functools import partial

from orderparam.comparison import Curve, between, study
from orderparam.plotting import Panel, horizontal
from orderparam.systems.diffusion.score_experiment import (
    drawn_score,
    drawn_score_spectrum,
    drawn_score_times,
    trained_score,
)
from orderparam.systems.diffusion.score_model import FeatureScore
from orderparam.systems.diffusion.score_spectrum import score_spectrum
from orderparam.systems.diffusion.score_theory import score_losses, score_times

SOURCE = "Bonnaire, Urfin, Biroli, Mezard 2025 (arXiv:2505.17638)"
SIZES = (
    "The theory is that of infinite dimension. In the study score-size the differences fall as 1/d "
    "from 10 to 40 dimensions."
)


@study(
    "score-training",
    title="A learned score generalises early, and memorises later the more examples there are",
    source=f"{SOURCE}; losses at all times derived here",
    panels=[
        Panel(
            "training_time",
            name,
            by="examples",
            log="x",
            xlabel=r"training time $\tau$",
            ylabel=label,
        )
        for name, label in (("test_loss", "test loss"), ("train_loss", "training loss"))
    ],
    columns=2,
    caption=r"""
        Denoising score matching on $p$ = {feature_ratio} $d$ random tanh features at the time $t$ = {time} of the diffusion, $n$
        Gaussian examples (colours), gradient flow from zero. The loss is 1 without a score. Lines: theory for many dimensions.
        Marks: features and data drawn in $d$ = {input_dim}, the flow solved exactly; and steps of length {learning_rate} with
        fresh noises.
    """,
    seconds=(100, 1200),
    observables=("test_loss", "train_loss"),
    gallery={"input_dim": 30, "seeds": 16},
    full={"input_dim": 80, "seeds": 32},
    explained=SIZES,
)
def score_training(
    sample_ratios: tuple[float, ...] = (2.0, 4.0, 8.0),
    times: tuple[float, ...] = (0.1, 0.4, 2.0, 10.0, 50.0, 1000.0),
    step_times: tuple[float, ...] = (0.4, 4.0),
    feature_ratio: float = 8.0,
    time: float = 0.1,
    learning_rate: float = 0.02,
    input_dim: int = 20,
    seeds: int = 16,
) -> Iterator[Curve]:
    for ratio in sample_ratios:
        system = FeatureScore(ratio, feature_ratio, time, times[0], input_dim=input_dim)
        facets = {"examples": f"$n$ = {ratio:g} $d$"}
        line = {"training_time": between(times, 60)}
        yield Curve("theory", score_losses, system, line, facets=facets)
        yield Curve(
            "drawn data",
            drawn_score,
            system,
            {"training_time": times},
            seeds,
            batch_seeds=True,
            facets=facets,
        )
        yield Curve(
            "steps with fresh noise",
            partial(trained_score, learning_rate=learning_rate),
            system,
            {"training_time": step_times},
            seeds,
            facets=facets,
        )


@study(
    "score-times",
    title="Memorisation waits in proportion to the examples only while these are few beside the features",
    source=SOURCE,
    panels=[
        Panel(
            "sample_ratio",
            name,
            by="features",
            log="xy",
            xlabel=r"examples over dimension $n/d$",
            ylabel=label,
        )
        for name, label in (
            ("best_time", "training time of the smallest test loss"),
            ("memorisation_time", "training time of half the gap"),
            ("waiting", "ratio of the two times"),
        )
    ],
    columns=3,
    caption=r"""
        Random tanh features at the time $t$ = {time} of the diffusion, trained without a ridge. Lines: theory for many
        dimensions. Marks: features and data drawn in $d$ = {input_dim}. The bulk of the spectrum that memorises lies near
        $v^2 + s^2 p/n$, which is $v^2$ when there are many examples.
    """,
    seconds=(100, 1200),
    observables=("best_time", "memorisation_time", "waiting"),
    gallery={"input_dim": 30, "seeds": 16},
    full={"input_dim": 80, "feature_ratios": (4.0, 8.0, 16.0, 32.0), "seeds": 32},
    explained=SIZES,
)
def score_times_study(
    sample_ratios: tuple[float, ...] = (2.0, 4.0, 8.0),
    feature_ratios: tuple[float, ...] = (4.0, 8.0, 16.0),
    time: float = 0.1,
    input_dim: int = 20,
    seeds: int = 16,
) -> Iterator[Curve]:
    for ratio in feature_ratios:
        system = FeatureScore(sample_ratios[0], ratio, time, input_dim=input_dim)
        facets = {"features": f"$p$ = {ratio:g} $d$"}
        line = {"sample_ratio": between(sample_ratios, 30)}
        yield Curve("theory", score_times, system, line, facets=facets)
        yield Curve(
            "drawn data",
            drawn_score_times,
            system,
            {"sample_ratio": sample_ratios},
            seeds,
            batch_seeds=True,
            facets=facets,
        )


@study(
    "score-spectrum",
    title="Two bulks of eigenvalues separate learning from memorising, and close up as examples become many",
    source=f"{SOURCE}; the equation of the edges derived here",
    panels=[
        Panel(
            "eigenvalue",
            "density",
            by="examples",
            log="x",
            xlabel="eigenvalue $x$",
            ylabel=r"density of $\ln x$",
        ),
    ],
    caption=r"""
        Eigenvalues of the second moments of $p$ = {feature_ratio} $d$ random tanh features at the time $t$ = {time} of the
        diffusion, $n$ examples (colours), $d$ = {input_dim}. The density is smoothed over a width of {smoothing} in $\ln
        x$, in theory and measurement alike. The narrow peak holds $p - n - d$ equal eigenvalues.
    """,
    seconds=(60, 600),
    observables=("density",),
    gallery={"input_dim": 40, "seeds": 16},
    full={"input_dim": 120, "seeds": 32},
    explained=SIZES,
)
def score_spectrum_study(
    sample_ratios: tuple[float, ...] = (1.0, 2.0, 8.0),
    feature_ratio: float = 8.0,
    time: float = 0.1,
    smoothing: float = 0.2,
    input_dim: int = 20,
    seeds: int = 16,
) -> Iterator[Curve]:
    for ratio in sample_ratios:
        system = FeatureScore(ratio, feature_ratio, time, smoothing=smoothing, input_dim=input_dim)
        facets = {"examples": f"$n$ = {ratio:g} $d$"}
        yield Curve("theory", score_spectrum, system, {}, facets=facets)
        yield Curve(
            "drawn data", drawn_score_spectrum, system, {}, seeds, batch_seeds=True, facets=facets
        )


@study(
    "score-size",
    title="Losses, times and edges of drawn features come to the theory as the dimension grows",
    source=SOURCE,
    panels=[
        Panel(
            "input_dim",
            name,
            log="x",
            ratio_to="theory",
            xlabel="dimension $d$",
            ylabel=f"{label} / theory",
            reference=[horizontal(1, "")],
        )
        for name, label in (
            ("best_loss", "smallest test loss"),
            ("end_loss", "test loss at the end"),
            ("end_train_loss", "training loss at the end"),
            ("memorisation_time", "time of half the gap"),
            ("gap_start", "upper edge of the lower bulk"),
            ("gap_end", "lower edge of the upper bulk"),
        )
    ],
    columns=3,
    caption=r"""
        Random tanh features, $n$ = {sample_ratio} $d$ examples, $p$ = {feature_ratio} $d$ features, time $t$ = {time} of the
        diffusion. Losses approach the theory as $1/d$, edges of the spectrum as $d^{{-2/3}}$.
    """,
    seconds=(100, 1200),
    observables=(
        "best_loss",
        "end_loss",
        "end_train_loss",
        "memorisation_time",
        "gap_start",
        "gap_end",
    ),
    gallery={"dims": (10, 20, 40), "seeds": 32},
    full={"dims": (10, 20, 40, 80), "seeds": 64},
    explained="The theory is that of infinite dimension; terms of order 1/d, and at the edges of order $d^{-2/3}$, are left.",
)
def score_size(
    dims: tuple[int, ...] = (8, 16, 24),
    sample_ratio: float = 2.0,
    feature_ratio: float = 8.0,
    time: float = 0.1,
    seeds: int = 16,
) -> Iterator[Curve]:
    system = FeatureScore(sample_ratio, feature_ratio, time, input_dim=dims[0])
    over = {"input_dim": dims}
    for name, theory, experiment in (
        ("times", score_times, drawn_score_times),
        ("spectrum", score_spectrum, drawn_score_spectrum),
    ):
        yield Curve(f"theory, {name}", theory, system, over)
        yield Curve(f"drawn data, {name}", experiment, system, over, seeds, batch_seeds=True)
