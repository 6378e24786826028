"""The named figures of language models."""

from collections.abc import Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from orderparam.analysis.scaling_law import ScalingLaw, scaling_law
from orderparam.analysis.scaling_law.runs import FLOPS
from orderparam.comparison import Comparison, Curve, study
from orderparam.data.text import documentation, numbered_bytes
from orderparam.observables.width_transfer import width
from orderparam.plotting import Freehand, Panel
from orderparam.plotting.style import COLOURS, MARKERS, ink
from orderparam.running.estimate import estimate
from orderparam.systems.language_models.experiment import trained_language_model
from orderparam.systems.language_models.model import Family, LanguageTraining, Scaling
from orderparam.systems.language_models.theory import counted_contexts

FAMILIES: dict[Family, str] = {"transformer": "transformer", "lstm": "LSTM"}
FORMS = {"additive": "additive law", "kaplan": "Kaplan's law"}
RATES: dict[Family, float] = {"transformer": 0.03, "lstm": 0.1}


@cache
def installed_text(packages: tuple[str, ...], test_bytes: int) -> LanguageTraining:
    """Training and test text from the documentation of installed packages. No source file
    contributes to both."""
    text, test_text, alphabet = numbered_bytes(documentation(packages), test_bytes=test_bytes)
    return LanguageTraining(text, test_text, len(alphabet))


class MeasuredLosses(NamedTuple):
    """Mean losses of one family of networks, and the law that fits them, or None if no law can be
    fitted."""

    parameters: np.ndarray
    seen: np.ndarray
    loss: np.ndarray
    error: np.ndarray
    law: ScalingLaw | None


def measured_losses(comparison: Comparison, family: str) -> MeasuredLosses:
    """Mean losses of one family of networks, with the better fit of two laws: the additive one and
    Kaplan's."""
    (runs,) = comparison.experiments(family=family).values()
    loss, error = estimate(runs, "test_loss")
    size = runs["parameters"].isel(seed=0).broadcast_like(loss)
    seen = runs["n_train"].broadcast_like(loss)
    columns = [one.transpose(*loss.dims).values.ravel() for one in (size, seen, loss, error)]
    finite = np.isfinite(columns[2])
    sizes, samples, losses, errors = (column[finite] for column in columns)
    try:
        law = scaling_law(losses, sizes, samples, bootstrap=100)
    except ValueError:  # too few runs
        law = None
    return MeasuredLosses(sizes, samples, losses, errors, law)


def draw_sizes(axes: Any, comparison: Comparison, family: str) -> None:
    """Draws losses against the number of parameters, with the law, for each number of bytes."""
    runs = measured_losses(comparison, family)
    title = family
    if runs.law is not None:
        title += f", {FORMS[runs.law.form]}\n" + ", ".join(
            rf"$\{name}$ = {one.value:.2f} [{one.low:.2f}, {one.high:.2f}]"
            for name, one in runs.law.intervals.items()
            if name in ("alpha", "beta")
        )
    for number, count in enumerate(np.unique(runs.seen)):
        at, colour = runs.seen == count, COLOURS[number]
        sizes, losses = runs.parameters[at], runs.loss[at]
        axes.errorbar(sizes, losses, runs.error[at], fmt=MARKERS[number], color=colour)
        if runs.law is not None:
            line = np.geomspace(runs.parameters.min(), runs.parameters.max(), 40)
            axes.plot(line, runs.law.predict(line, np.full(40, count))[0], color=colour)
        place = (sizes[-1], losses[-1])
        axes.annotate(
            f"{count / 1000:.0f} kB", place, (6, -3), textcoords="offset points", color=colour
        )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="parameters $N$",
        ylabel="test loss in nats",
        title=title,
    )
    if len(runs.parameters):
        axes.set_xlim(right=2 * runs.parameters.max())  # room for the texts


def draw_compute(axes: Any, comparison: Comparison) -> None:
    """Draws losses against the number of operations, with the lowest losses of the laws at sizes
    and numbers of bytes within those that were measured."""
    for number, family in enumerate(FAMILIES.values()):
        runs = measured_losses(comparison, family)
        spent, colour = FLOPS * runs.parameters * runs.seen, COLOURS[number]
        axes.plot(spent, runs.loss, MARKERS[number], color=colour, label=family)
        if runs.law is not None:
            line = np.geomspace(spent.min(), spent.max(), 60)
            sizes = np.geomspace(runs.parameters.min(), runs.parameters.max(), 200)
            seen = line[:, None] / (FLOPS * sizes)
            loss = runs.law.predict(np.broadcast_to(sizes, seen.shape).ravel(), seen.ravel())[0]
            within = (seen >= runs.seen.min()) & (seen <= runs.seen.max())
            lowest = np.where(within, loss.reshape(seen.shape), np.inf).min(1)
            axes.plot(line, np.where(np.isfinite(lowest), lowest, np.nan), color=colour)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="operations $C = 6 N D$",
        ylabel="test loss in nats",
        title="lines: laws at the best $N$ measured",
    )


def in_octaves(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Losses averaged over the octaves of positions 1, 2, 3-4, 5-8 ..: middle positions, means over
    runs, and their standard errors."""
    last = values.shape[1]
    ends = np.unique(np.minimum(2 ** np.arange(np.ceil(np.log2(last)) + 1), last)).astype(int)
    parts = np.split(np.arange(last), ends[:-1])
    means = np.stack([values[:, part].mean(1) for part in parts])
    runs = values.shape[0]
    error = means.std(1, ddof=min(1, runs - 1)) / runs**0.5
    return (
        np.array([np.sqrt((part[0] + 1) * (part[-1] + 1)) for part in parts]),
        means.mean(1),
        error,
    )


def draw_positions(axes: Any, comparison: Comparison) -> None:
    """Draws the losses of the largest networks with most text, position by position."""
    for number, family in enumerate(FAMILIES.values()):
        (runs,) = comparison.experiments(family=family).values()
        largest = runs.isel(width=-1, n_train=-1)
        at, loss, error = in_octaves(largest["position_loss"].transpose("seed", ...).values)
        axes.errorbar(at, loss, error, fmt=MARKERS[number], color=COLOURS[number])
    (counts,) = comparison.theories().values()
    at, loss, _ = in_octaves(counts["position_loss"].values.reshape(1, -1))
    axes.plot(at, loss, color=ink(), label=counts.attrs["label"])
    axes.set(xscale="log", xlabel="bytes of context", ylabel="test loss in nats")


@study(
    "language-scaling",
    title=(
        "In three runs with half a megabyte of text the widest LSTM learns more than the widest "
        "transformer; counts of contexts predict better than both"
    ),
    source="Kaplan et al. 2020 (arXiv:2001.08361); Hoffmann et al. 2022 (arXiv:2203.15556)",
    panels=[
        *(Freehand(partial(draw_sizes, family=family)) for family in FAMILIES.values()),
        Freehand(draw_compute),
        Freehand(draw_positions),
    ],
    columns=2,
    caption=r"""
        Networks of widths {widths} (LSTM: {lstm_widths}) read $D$ bytes of the
        documentation strings of {packages} once, and are tested on other documents. $N$ is
        the number of parameters without embedding and positions. Largest learning rate:
        0.03 (LSTM: 0.1). Above: means over {seeds} runs with their errors, and $D$; lines:
        the better one of $L = E + A N^{{-\alpha}} + B D^{{-\beta}}$ (additive) and $L =
        [(N_c/N)^{{\alpha/\beta}} + D_c/D]^\beta$ (Kaplan), with 95 % intervals of the
        exponents; the transformer's law lies above the losses measured with most text.
        Below left: the same runs, and the lowest losses that the laws give for $N$ and $D$
        within the measured ranges. Below right: the widest networks with most text, by
        position in the window; for comparison, predictions from counts of up to {order}
        preceding bytes in that text.
    """,
    seconds=(60, 8000),
    observables=("test_loss",),
    gallery={
        "widths": (16, 24, 32, 48, 64, 192),
        "lstm_widths": (16, 32, 64, 96, 128, 352),
        "n_train": (65_536, 131_072, 262_144, 524_288),
        "test_bytes": 65_536,
        "seeds": 3,
    },
    full={
        "widths": (16, 32, 64, 96, 128, 192),
        "lstm_widths": (16, 32, 64, 128, 256, 352),
        "n_train": (131_072, 262_144, 524_288, 1_048_576, 2_097_152),
        "packages": ("pydoc_data", "numpy", "scipy"),
        "test_bytes": 65_536,
        "seeds": 4,
    },
)
def language_scaling(
    widths: tuple[int, ...] = (8, 16, 24, 32, 40),
    lstm_widths: tuple[int, ...] = (8, 16, 24, 32, 48),
    n_train: tuple[int, ...] = (16_384, 32_768),
    packages: tuple[str, ...] = ("pydoc_data", "numpy"),
    test_bytes: int = 8_192,
    order: int = 4,
    seeds: int = 3,
) -> Iterator[Curve]:
    text = installed_text(packages, test_bytes)
    sizes: dict[Family, tuple[int, ...]] = {"transformer": widths, "lstm": lstm_widths}
    for family, name in FAMILIES.items():
        system = text.with_(family=family, learning_rate=RATES[family])
        over = {"width": sizes[family], "n_train": n_train}
        yield Curve("network", trained_language_model, system, over, seeds, facets={"family": name})
    most = text.with_(n_train=max(n_train))
    counts = partial(counted_contexts, order=order)
    yield Curve("counts of contexts", counts, most, {}, baseline=True)


def draw_best_rates(axes: Any, comparison: Comparison) -> None:
    """Draws the best rate of each width in both parametrisations, with its exponent."""
    words = []
    for number, runs in enumerate(comparison.experiments().values()):
        losses = runs["test_loss"]
        table = {name: losses[name].broadcast_like(losses).values.ravel() for name in losses.dims}
        # a run that diverged has no loss
        table["loss"] = np.nan_to_num(losses.values.ravel(), nan=np.inf, posinf=np.inf)
        try:
            found = width(table).shift
        except ValueError:  # best rates at the end of the grid
            continue
        assert found is not None
        best = [one for one in found.optima if np.isfinite(one.error)]
        rate = 2 ** np.array([one.rate for one in best])
        factor = 2 ** np.array([1.96 * one.error for one in best])
        low, high = found.interval
        axes.errorbar(
            [one.width for one in best],
            rate,
            (rate - rate / factor, rate * factor - rate),
            fmt=MARKERS[number],
            color=COLOURS[number],
        )
        name = runs.attrs["facets"]["parametrisation"]
        words.append(rf"{name}: $w^{{{found.exponent:.2f}}}$ [{low:.2f}, {high:.2f}]")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="width $w$",
        ylabel="best learning rate",
        title="\n".join(words),
    )


@study(
    "language-rates",
    title=(
        "From width 16 to 48 the best learning rate of a transformer falls, unless the rates of "
        "matrices are scaled"
    ),
    source="Yang et al. 2022 (arXiv:2203.03466)",
    explained=(
        "There are three runs of each setting, because 16 would take about an hour of a core; "
        "the intervals count the scatter of the 15 runs of a width. At width 96 the interval of "
        "the standard parametrisation leaves the measured rates. Without this width the best "
        "rate falls from about 0.035 at width 16 to 0.018 at width 48, beyond both intervals, "
        "and the mean-field one stays between 0.035 and 0.05."
    ),
    panels=[
        Panel(
            "learning_rate",
            "test_loss",
            by="width",
            facet="parametrisation",
            log="x",
            xlabel=r"learning rate $\eta$",
            ylabel="test loss in nats",
        ),
        Freehand(draw_best_rates),
    ],
    columns=3,
    caption=r"""
        Transformers of the widths {widths} read {n_train} bytes of the documentation of {packages}
        once, and are tested on other documents. Standard: all weights have the learning rate
        $\eta$. Mean-field: matrices between units and the read-out have $16 \eta/w$ at the width
        $w$. Left and middle: means over {seeds} runs with their errors. Right: the lowest points of
        parabolas through the losses of each width, with 95 % intervals and exponents (circles:
        standard; squares: mean-field).
    """,
    seconds=(60, 10_000),
    observables=("test_loss",),
    gallery={
        "widths": (16, 24, 32, 48, 96),
        "learning_rates": (0.005, 0.01, 0.02, 0.04, 0.08),
        "n_train": 65_536,
        "test_bytes": 65_536,
        "seeds": 3,
    },
    full={
        "widths": (16, 32, 64, 96, 128, 192),
        "learning_rates": (0.0025, 0.005, 0.01, 0.02, 0.04, 0.08),
        "n_train": 1_048_576,
        "test_bytes": 65_536,
    },
)
def language_rates(
    widths: tuple[int, ...] = (8, 16, 24, 32, 48),
    learning_rates: tuple[float, ...] = (0.01, 0.02, 0.04, 0.08),
    n_train: int = 8_192,
    packages: tuple[str, ...] = ("pydoc_data", "numpy"),
    test_bytes: int = 8_192,
    seeds: int = 3,
) -> Iterator[Curve]:
    text = installed_text(packages, test_bytes).with_(n_train=n_train)
    scalings: tuple[Scaling, ...] = ("standard", "mean-field")
    for scaling in scalings:
        system = text.with_(parametrisation=scaling)
        over = {"width": widths, "learning_rate": learning_rates}
        facets = {"parametrisation": scaling}
        yield Curve("network", trained_language_model, system, over, seeds, facets=facets)
