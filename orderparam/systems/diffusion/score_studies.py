"""The named figures of a score that is learned on random features."""

from collections.abc import Iterator
from functools import partial

from orderparam.comparison import Curve, between, study
from orderparam.plotting import Panel
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


@study(
    "score-training",
    title="A learned score generalises early and memorises late; with more examples it memorises less",
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
        Marks: features and data drawn in $d$ = {input_dim}, with the flow solved exactly, or
        trained with steps of length {learning_rate} and fresh noises.
    """,
    seconds=(100, 1200),
    observables=("test_loss", "train_loss"),
    gallery={"input_dim": 30, "seeds": 16},
    full={"input_dim": 80, "seeds": 32},
    explained=(
        "The theory is that of infinite dimension. For 2 d examples the drawn features differ from it by up to 8 % at the late "
        "times; in half the dimension, the control, by 1.7 to 1.9 times as much, as expected of a term of order 1/d. Steps of "
        "finite length with fresh noises add up to 1 %."
    ),
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
    title=(
        "A score memorises the later the more examples it has, up to about half as many "
        "examples as features"
    ),
    source=f"{SOURCE}; the times at any n/d and p/d are derived here",
    panels=[
        Panel(
            "sample_ratio",
            name,
            by="features",
            where={"panel": "times"},
            log="xy",
            xlabel="examples over dimension $n/d$",
            ylabel=label,
        )
        for name, label in (
            ("best_time", r"$\tau$ of the smallest test loss"),
            ("memorisation_time", r"$\tau$ of half the gap"),
        )
    ]
    + [
        Panel(
            "sample_ratio",
            "waiting",
            by="dimension",
            where={"panel": "sizes"},
            log="x",
            ratio_to="theory",
            xlabel="examples over dimension $n/d$",
            ylabel="ratio of the times / theory",
        )
    ],
    columns=3,
    caption=r"""
        Denoising score matching of $n$ examples on $p$ random tanh features at the time $t$ = {time} of the diffusion, gradient
        flow from zero. Left: training time $\tau$ of the smallest test loss; middle: time at which test loss minus training
        loss is half of what it is at the end. Lines join the theory of many dimensions between the marks: drawn
        features and data in $d$ = {input_dim}, with the flow solved exactly. Right: the ratio of the two
        times for $p$ = {feature_ratio} $d$ in three dimensions.
    """,
    seconds=(60, 600),
    observables=("best_time", "memorisation_time", "waiting"),
    gallery={"input_dim": 40, "dims": (15, 30, 60), "seeds": 16},
    full={"input_dim": 80, "dims": (30, 60, 120), "seeds": 32},
    explained=(
        "The theory is that of infinite dimension. The ratio of the times exceeds it by up to 22, 9 and 3 % in d = 15, 30 and "
        "60, as expected of terms between d^(-1) and d^(-3/2). The order of the times at different n, with the maximum where "
        "n is one half to one times p, is the same in theory and measurement."
    ),
)
def score_times_study(
    sample_ratios: tuple[float, ...] = (1.5, 3.0, 6.0, 12.0, 24.0),
    feature_ratios: tuple[float, ...] = (4.0, 8.0, 16.0),
    time: float = 0.1,
    feature_ratio: float = 8.0,
    input_dim: int = 20,
    dims: tuple[int, ...] = (10, 15, 20),
    seeds: int = 16,
) -> Iterator[Curve]:
    marks = {"sample_ratio": sample_ratios}
    for ratio in feature_ratios:
        system = FeatureScore(sample_ratios[0], ratio, time, input_dim=input_dim)
        facets = {"panel": "times", "features": f"$p$ = {ratio:g} $d$"}
        yield Curve("theory", score_times, system, marks, facets=facets)
        yield Curve(
            "drawn data", drawn_score_times, system, marks, seeds, batch_seeds=True, facets=facets
        )
    system = FeatureScore(sample_ratios[0], feature_ratio, time)
    yield Curve("theory", score_times, system, marks, facets={"panel": "sizes"})
    for dim in dims:
        facets = {"panel": "sizes", "dimension": f"$d$ = {dim}"}
        each = system.with_(input_dim=dim)
        yield Curve(
            "drawn data", drawn_score_times, each, marks, seeds, batch_seeds=True, facets=facets
        )


EDGES = {
    "smallest": "lower edge, memorising bulk",
    "gap_start": "upper edge, memorising bulk",
    "gap_end": "lower edge, learning bulk",
    "largest": "upper edge, learning bulk",
}


@study(
    "score-spectrum",
    title=(
        "The spectrum of the features of a score has two bulks, whose edges approach the theory "
        "as dimensions grow"
    ),
    source=f"{SOURCE}; the equation of the edges is derived here",
    panels=[
        Panel(
            "eigenvalue",
            "density",
            facet="examples",
            where={"panel": "density"},
            log="x",
            xlabel="eigenvalue $x$",
            ylabel=r"density of $\ln x$",
        ),
        *(
            Panel(
                "sample_ratio",
                name,
                by="dimension",
                where={"panel": "edges"},
                log="x",
                ratio_to="theory",
                xlabel="examples over dimension $n/d$",
                ylabel=f"{label} / theory",
            )
            for name, label in EDGES.items()
        ),
    ],
    columns=3,
    caption=r"""
        The second moments of $p$ = {feature_ratio} $d$ random tanh features of noisy examples at the time $t$ = {time},
        averaged over the noise; $n$ examples. The lower bulk memorises the examples, the upper one learns their law.
        First panels: density of the logarithms of eigenvalues, smoothed over a width of
        0.1, of {seeds} draws in $d$ = {input_dim} (black) and in the theory for many dimensions (pink). Others: the edges of the
        two bulks over those of the theory, in three dimensions.
    """,
    seconds=(60, 600),
    observables=("smallest", "gap_start", "gap_end", "largest"),
    gallery={"input_dim": 40, "dims": (20, 40, 80), "seeds": 16},
    full={"input_dim": 120, "dims": (40, 80, 160), "seeds": 32},
    explained=(
        "The theory is that of infinite dimension. The edges of drawn matrices approach its edges: the median deviation of the "
        "twelve edges is 13, 8 and 5 % in d = 20, 40 and 80, less by a factor of 1.6 for every doubling, as expected of a term "
        "of order d^(-2/3); the largest, of the lowest edge at n = d, is 41, 26 and 14 %."
    ),
)
def score_spectrum_study(
    shown: tuple[float, ...] = (2.0, 4.0),
    sample_ratios: tuple[float, ...] = (1.0, 2.0, 4.0),
    feature_ratio: float = 8.0,
    time: float = 0.1,
    input_dim: int = 20,
    dims: tuple[int, ...] = (10, 15, 20),
    seeds: int = 16,
) -> Iterator[Curve]:
    system = FeatureScore(shown[0], feature_ratio, time, input_dim=input_dim)
    for ratio in shown:
        facets = {"panel": "density", "examples": f"$n$ = {ratio:g} $d$"}
        each = system.with_(sample_ratio=ratio)
        yield Curve("theory", score_spectrum, each, {}, facets=facets)
        yield Curve("drawn data", drawn_score_spectrum, each, {}, seeds, facets=facets)
    over = {"sample_ratio": sample_ratios}
    yield Curve("theory", score_spectrum, system, over, facets={"panel": "edges"})
    for dim in dims:
        facets = {"panel": "edges", "dimension": f"$d$ = {dim}"}
        each = system.with_(input_dim=dim)
        yield Curve("drawn data", drawn_score_spectrum, each, over, seeds, facets=facets)


@study(
    "score-ridge",
    title="A ridge keeps a score from memorising: the test loss has its minimum at a finite ridge",
    source=f"{SOURCE}; George, Veiga, Macris 2025 (arXiv:2502.00336); losses derived here",
    panels=[
        Panel(
            "ridge",
            name,
            by=facet,
            where={"panel": facet},
            log="x",
            xlabel="ridge $r$",
            ylabel=label,
        )
        for facet, name, label in (
            ("examples", "test_loss", "test loss"),
            ("examples", "train_loss", "training loss"),
            ("features", "test_loss", "test loss"),
        )
    ],
    columns=3,
    caption=r"""
        Denoising score matching on random tanh features at the time $t$ = {time} of the diffusion, trained to the end with a
        ridge $r$. Left and middle: $p$ = {feature_ratio} $d$ features and three numbers of examples; right: $n$ =
        {sample_ratio} $d$ examples and three numbers of features. The loss is 1 without a score. Lines: theory for many
        dimensions. Marks: drawn features and data in $d$ = {input_dim}.
    """,
    seconds=(60, 600),
    observables=("test_loss", "train_loss"),
    gallery={"input_dim": 60, "seeds": 16},
    full={"input_dim": 120, "seeds": 32},
    explained=(
        "The theory is that of infinite dimension. At ridges below 0.1 the drawn features differ from it by up to 4 %, with "
        "8 d features and 2 d examples; in a third of the dimension, the control, by 10 %, as expected of a term of order 1/d."
    ),
)
def score_ridge_study(
    sample_ratios: tuple[float, ...] = (2.0, 4.0, 8.0),
    feature_ratios: tuple[float, ...] = (2.0, 4.0, 8.0),
    ridges: tuple[float, ...] = (0.003, 0.03, 0.3, 1.0, 3.0),
    sample_ratio: float = 4.0,
    feature_ratio: float = 8.0,
    time: float = 0.1,
    input_dim: int = 20,
    seeds: int = 16,
) -> Iterator[Curve]:
    cases = [("examples", "n", ratio, feature_ratio) for ratio in sample_ratios]
    cases += [("features", "p", sample_ratio, ratio) for ratio in feature_ratios]
    line, marks = {"ridge": between(ridges, 40)}, {"ridge": ridges}
    for facet, symbol, examples, features in cases:
        system = FeatureScore(examples, features, time, input_dim=input_dim)
        varied = examples if facet == "examples" else features
        facets = {"panel": facet, facet: f"${symbol}$ = {varied:g} $d$"}
        yield Curve("theory", score_losses, system, line, facets=facets)
        yield Curve(
            "drawn data", drawn_score, system, marks, seeds, batch_seeds=True, facets=facets
        )
