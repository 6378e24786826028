"""The named figures of a score that is learned on random features."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from orderparam.comparison import Comparison, Curve, between, study
from orderparam.plotting import Freehand, Panel, vertical
from orderparam.plotting.style import COLOURS
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
    title="A learned score generalises early and memorises late; with more examples it memorises "
    "less",
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
        Denoising score matching on $p$ = {feature_ratio} $d$ random tanh features at the time $t$ =
        {time} of the diffusion, $n$ Gaussian examples (colours), gradient flow from zero. The loss
        is 1 without a score. Lines: theory for many dimensions. Marks: features and data drawn in
        $d$ = {input_dim}, with the flow solved exactly, or trained with steps of length
        {learning_rate} and fresh noises.
    """,
    seconds=(100, 1200),
    observables=("test_loss", "train_loss"),
    gallery={"input_dim": 30, "seeds": 16},
    full={"input_dim": 80, "seeds": 32},
    explained=(
        "The theory is that of infinite dimension. With 2 d examples the losses of drawn "
        "features differ from it by up to 8 % at late times. In a control with half the "
        "dimension the difference is 1.7 to 1.9 times as large, as expected of a correction of "
        "order 1/d. Training with steps of finite length and fresh noises adds up to 1 %."
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


def draw_approach(
    axes: Any, comparison: Comparison, series: Sequence[tuple[str, str, float]], power: float
) -> None:
    """Draws the ratio of measurements in several dimensions d to the theory against d^power, with a
    least-squares fit a + b d^power and its limit a.

    series: words, observable and n/d of every colour. Curves that have other facets than the
    dimension and the panel "sizes" are left out.
    """
    (theory,) = (data for data in comparison.theories().values() if _of_sizes(data))
    drawn = [data for data in comparison.experiments().values() if _of_sizes(data)]
    at = np.array([float(data.attrs["facets"]["dimension"]) for data in drawn]) ** power
    handles = []
    axes.axhline(1.0, color="0.55", linewidth=0.8, linestyle=":")
    for number, (_, name, ratio) in enumerate(series):
        look: dict[str, Any] = {"color": f"C{number + 4}"}
        level = float(theory[name].sel(sample_ratio=ratio, method="nearest"))
        runs = np.stack([data[name].sel(sample_ratio=ratio).values for data in drawn]) / level
        mean, error = runs.mean(axis=1), runs.std(axis=1, ddof=1) / np.sqrt(runs.shape[1])
        if not np.all(error > 0) or len(at) < 3:  # a single run has no error for a fit
            handles.append(axes.plot(at, mean, "o", **look)[0])
            continue
        handles.append(axes.errorbar(at, mean, error, fmt="o", **look))
        fit, spread = np.polyfit(at, mean, 1, w=1 / error, cov="unscaled")
        ends = np.array([0.0, at.max()])
        axes.plot(ends, np.polyval(fit, ends), "--", **look)
        beside = -0.015 * (number + 1) * at.max()  # where no limit hides another
        axes.errorbar(beside, fit[1], np.sqrt(spread[1, 1]), fmt="s", fillstyle="none", **look)
    axes.legend(handles, [words for words, *_ in series], fontsize=8)


def _of_sizes(data: Any) -> bool:
    return bool(data.attrs["facets"].get("panel") == "sizes")


SIZES_OF_TIMES = [(f"$n$ = {ratio:g} $d$", "waiting", ratio) for ratio in (3.0, 6.0, 24.0)]


def draw_ratio_of_times(axes: Any, comparison: Comparison) -> None:
    """Draws the ratio of the two times, divided by that of the theory, against 1/d."""
    draw_approach(axes, comparison, SIZES_OF_TIMES, -1.0)
    axes.set(xlabel="$1/d$", ylabel="ratio of the times / theory")


@study(
    "score-times",
    title=(
        "In theory a score of 4 to 16 features per input memorises latest when it has between half "
        "and three quarters as many examples as features"
    ),
    source=f"{SOURCE}; the times at any n/d and p/d are derived here",
    panels=[
        *(
            Panel(
                (
                    "examples over features $n/p$",
                    lambda data: data["sample_ratio"] / data.attrs["facets"]["features"],
                ),
                name,
                by="features",
                where={"panel": "times"},
                log="xy",
                ylabel=label,
                reference=[vertical(0.5)] if name == "memorisation_time" else (),
                text={ratio: f"$p$ = {ratio:g} $d$" for ratio in (2.0, 4.0, 8.0, 16.0)},
            )
            for name, label in (
                ("best_time", r"$\tau$ of least test loss"),
                ("memorisation_time", r"$\tau$ of half the gap"),
            )
        ),
        Freehand(draw_ratio_of_times),
    ],
    columns=3,
    caption=r"""
        Denoising score matching of $n$ examples on $p$ random tanh features at the time $t$ =
        {time} of the diffusion; $\tau$: time of training by gradient flow from zero. Left: $\tau$
        of the smallest test loss; middle: $\tau$ at which the gap between test and training loss is
        half of its final value; dotted: $n = p/2$. Lines: theory of many dimensions. Marks: drawn
        features and data in $d$ = {input_dim}, with the flow solved exactly; they are too few to
        locate the maxima. Right: the ratio of the two times for $p$ = {feature_ratio} $d$ in three
        dimensions, over the theory; dashed: least squares of $a + b/d$; open squares: the limits
        $a$, set apart at $1/d = 0$.
    """,
    seconds=(60, 600),
    observables=("best_time", "memorisation_time", "waiting"),
    gallery={"input_dim": 40, "dims": (15, 30, 60), "seeds": 16},
    full={"input_dim": 80, "dims": (30, 60, 120), "seeds": 32},
    explained=(
        "The theory is that of infinite dimension, in which the maximum is at n/p = 0.71, 0.58 and "
        "0.52 for p = 4 d, 8 d and 16 d. In d = 40 the time of the least test loss is within 4 % "
        "of the theory, that of half the gap within 20 %. The ratio of the times exceeds the "
        "theory by up to 22, 9 and 3 % in d = 15, 30 and 60. The fits a + b/d have the limits "
        "0.985(9), 0.994(5) and 0.968(7) for n = 3 d, 6 d and 24 d: with 24 d examples the excess "
        "falls faster than 1/d (by 2.5 and 2.9 times for twice the dimension), so that this limit "
        "is too low."
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
    line, marks = {"sample_ratio": between(sample_ratios, 40)}, {"sample_ratio": sample_ratios}
    for ratio in feature_ratios:
        system = FeatureScore(sample_ratios[0], ratio, time, input_dim=input_dim)
        facets: dict[str, Any] = {"panel": "times", "features": ratio}
        yield Curve("theory", score_times, system, line, facets=facets)
        yield Curve(
            "drawn data", drawn_score_times, system, marks, seeds, batch_seeds=True, facets=facets
        )
    system = FeatureScore(sample_ratios[0], feature_ratio, time)
    yield Curve("theory", score_times, system, marks, facets={"panel": "sizes"})
    for dim in dims:
        facets = {"panel": "sizes", "dimension": dim}
        each = system.with_(input_dim=dim)
        yield Curve(
            "drawn data", drawn_score_times, each, marks, seeds, batch_seeds=True, facets=facets
        )


def draw_edges(axes: Any, comparison: Comparison, names: Sequence[str], words: str) -> None:
    """Draws the lower and the upper edge of a bulk, divided by those of the theory, against
    d^(-2/3)."""
    series = [
        (f"{place}, $n$ = {ratio:g} $d$", name, ratio)
        for name, place in zip(names, ("lower", "upper"))
        for ratio in comparison.parameters["sample_ratios"]
    ]
    draw_approach(axes, comparison, series, -2 / 3)
    axes.set(xlabel="$d^{-2/3}$", ylabel=f"edges of the {words} bulk / theory")


@study(
    "score-spectrum",
    title=(
        "The spectrum of the features of a score has two bulks, whose edges are within 5 % of the "
        "theory in 160 dimensions"
    ),
    source=f"{SOURCE}; the equation of the edges is derived here",
    panels=[
        Panel(
            "eigenvalue",
            "density",
            facet="sample_ratio",
            by="dimension",
            log="xy",
            xlabel="eigenvalue $x$",
            ylabel=r"density of $\ln x$",
            ylim=(1e-3, 3),
            text={ratio: f"$n$ = {ratio:g} $d$" for ratio in (2.0, 4.0)},
        ),
        Freehand(partial(draw_edges, names=("smallest", "gap_start"), words="memorising")),
        Freehand(partial(draw_edges, names=("gap_end", "largest"), words="learning")),
    ],
    columns=2,
    caption=r"""
        The second moments of $p$ = {feature_ratio} $d$ random tanh features of noisy examples at
        the time $t$ = {time}, averaged over the noise; $n$ examples. The gap between training and
        test loss grows on the time scale of the inverse eigenvalues of the lower bulk (memorising),
        both losses fall on that of the upper one (learning). Above: density of the logarithms of
        the eigenvalues of {seeds} draws in the dimensions $d$ (colours) and in the theory for many
        dimensions (yellow), all smoothed over a width of 0.1 in $\ln x$. Below, in colours of their
        own: the lower and upper edges of both bulks over those of the theory; dashed: least squares
        of $a + b\, d^{{-2/3}}$; open squares: the limits $a$, set apart at 0.
    """,
    seconds=(60, 600),
    observables=("smallest", "gap_start", "gap_end", "largest"),
    gallery={"dims": (20, 40, 80, 160)},
    full={"dims": (40, 80, 160, 320), "seeds": 32},
    explained=(
        "The theory is that of infinite dimension. The median deviation of the eight edges is"
        " 11, 8, 5 and 3 % in d = 20, 40, 80 and 160, the largest 24, 14, 9 and 5 %. Six "
        "edges follow a + b d^(-2/3), with limits between 0.976(13) and 1.010(11); the lower "
        "edge of the memorising bulk does not (chi squared 39 and 114 for two degrees of "
        "freedom). It lies next to the peak of the p - n - d eigenvalues of features that no "
        "example determines, which are all equal in the theory. With 2 d examples the "
        "measured peak has a height of 0.54, 0.77, 1.01 and 1.28, that of the theory 2.02."
    ),
)
def score_spectrum_study(
    sample_ratios: tuple[float, ...] = (2.0, 4.0),
    feature_ratio: float = 8.0,
    time: float = 0.1,
    dims: tuple[int, ...] = (10, 15, 20),
    seeds: int = 16,
) -> Iterator[Curve]:
    system = FeatureScore(sample_ratios[0], feature_ratio, time)
    over = {"sample_ratio": sample_ratios}
    yield Curve("theory", score_spectrum, system, over, facets={"panel": "sizes"})
    for dim in dims:
        facets = {"panel": "sizes", "dimension": dim}
        each = system.with_(input_dim=dim)
        yield Curve("drawn data", drawn_score_spectrum, each, over, seeds, facets=facets)


# the curve of 4 d examples and 8 d features, in two panels, has one colour
_SAME = {"$p$ = 8 $d$": COLOURS[1]}


@study(
    "score-ridge",
    title=(
        "The test loss of a score is smallest at a finite ridge; below it the training loss "
        "falls while the test loss grows"
    ),
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
            colours=_SAME,
        )
        for facet, name, label in (
            ("examples", "test_loss", "test loss"),
            ("examples", "train_loss", "training loss"),
            ("features", "test_loss", "test loss"),
        )
    ],
    columns=3,
    caption=r"""
        Denoising score matching on random tanh features at the time $t$ = {time} of the diffusion,
        trained to the end. Losses per dimension are shown without the term of the ridge, $r (1 -
        e^{{-2t}}) |A|^2/d$ with the matrix $A$ of the read-out; the loss is 1 without a score. Left
        and middle: $p$ = {feature_ratio} $d$ features and three numbers $n$ of examples; right: $n$
        = {sample_ratio} $d$ examples and three numbers of features. The curves of $n$ =
        {sample_ratio} $d$ at the left and of $p$ = {feature_ratio} $d$ at the right are the same.
        The theory is that of many dimensions; features and data are drawn in $d$ = {input_dim}.
    """,
    seconds=(60, 600),
    observables=("test_loss", "train_loss"),
    gallery={"input_dim": 60, "seeds": 16},
    full={"input_dim": 120, "seeds": 32},
    explained=(
        "The theory is that of infinite dimension. At ridges below 0.1 the drawn features differ "
        "from it by up to 4 %, with 8 d features and 2 d examples; in a third of the dimension, "
        "the control, by 10 %, as expected of a term of order 1/d."
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
