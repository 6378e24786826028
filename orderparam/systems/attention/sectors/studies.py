"""The named figures of learning with attention in each sector under permutations of tokens."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from orderparam.comparison import Comparison, Curve, between, study
from orderparam.plotting import Freehand, Panel
from orderparam.plotting.style import ink
from orderparam.systems.attention.sectors.experiment import sector_regression, sector_training
from orderparam.systems.attention.sectors.model import SequenceRegression
from orderparam.systems.attention.sectors.theory import sector_learning

LAVIE = "Lavie, Gur-Ari, Ringel 2024 (arXiv:2402.05173)"
SECTORS = ("symmetric", "standard")
WORDS: dict[Any, str] = {
    "symmetric": "sum of all tokens",
    "standard": "difference of two tokens",
    **{tokens: f"{tokens} tokens" for tokens in (3, 6, 12)},
}


@study(
    "attention-sectors",
    title="In longer sequences functions that depend on the order of tokens are learned much later "
    "than symmetric ones",
    source=f"sectors of {LAVIE}; the kernel and its spectrum are chosen and derived here",
    panels=[
        Panel(
            "n_train",
            "learnability",
            facet="target",
            by="tokens",
            log="x",
            xlabel="sequences $n$",
            ylabel="share of the target that is learned",
            text=WORDS,
        ),
        Panel(
            "n_train",
            "test_error",
            facet="target",
            by="tokens",
            log="xy",
            xlabel="sequences $n$",
            ylabel="test error",
            text=WORDS,
        ),
    ],
    columns=2,
    caption=r"""
        Regression on sequences of $T$ tokens in {input_dim} dimensions with the kernel of
        infinitely many heads plus that of a linear read-out of the tokens; logits are multiplied by
        {scale}, ridge {ridge}. Lines: self-consistent theory with the spectrum of the kernel, in
        which sums of tokens have $2 d$ modes and differences $d (T - 1)$ modes. Marks:
        Gaussian-process regression on drawn sequences.
    """,
    seconds=(60, 600),
    observables=("learnability", "test_error"),
    full={"input_dim": 16, "n_train": (8, 16, 32, 64, 128, 256, 512), "seeds": 64},
)
def attention_sectors(
    n_train: tuple[int, ...] = (6, 12, 25, 50, 100, 200),
    lengths: tuple[int, ...] = (3, 6, 12),
    input_dim: int = 8,
    scale: float = 2.0,
    ridge: float = 0.05,
    seeds: int = 32,
) -> Iterator[Curve]:
    for target in SECTORS:
        for tokens in lengths:
            system = SequenceRegression(
                n_train[0], ridge, scale, tokens=tokens, input_dim=input_dim, target=target
            )
            facets = {"target": target, "tokens": tokens}
            over = {"n_train": between(n_train, 40)}
            yield Curve("infinitely many heads", sector_learning, system, over, facets=facets)
            measured = {"n_train": n_train}
            yield Curve("regression", sector_regression, system, measured, seeds, facets=facets)


def draw_heads(axes: Any, comparison: Comparison) -> None:
    """Draws the ratio of test errors of trained layers to those of regression on the same data
    against 1/H."""
    axes.axhline(1.0, color=ink(), linewidth=1.0, label="infinitely many heads")
    runs = comparison.experiments().values()
    limits = {
        data.attrs["facets"]["target"]: data["test_error"].values.ravel()
        for data in runs
        if data.attrs["facets"]["layer"] == "infinite"
    }
    finite = [data for data in runs if data.attrs["facets"]["layer"] == "finite"]
    for number, data in enumerate(finite):
        target = data.attrs["facets"]["target"]
        values = data["test_error"].transpose("heads", ..., "seed").values
        values = values.reshape(data.sizes["heads"], -1)
        limit = limits[target]
        # Both have the same sequences: the error of the ratio of means follows from paired
        # differences.
        mean = values.mean(axis=1) / limit.mean()
        differences = values - mean[:, None] * limit
        error = differences.std(axis=1, ddof=1) / np.sqrt(len(limit)) / limit.mean()
        inverse = 1 / data["heads"].values.astype(float)
        look: dict[str, Any] = {"color": f"C{number}"}
        axes.errorbar(inverse, mean, error, fmt="o", label=WORDS[target], **look)
        if not np.all(error > 0) or len(inverse) < 2:
            continue  # a single run has no error for a fit
        terms = 3 if len(inverse) > 3 else 2
        solve = np.linalg.pinv(np.vander(inverse, terms, True) / error[:, None]) / error
        at = np.linspace(0, inverse.max(), 50)
        axes.plot(at, np.vander(at, terms, True) @ (solve @ mean), "--", **look)
        spread = np.sqrt(np.sum((solve[0] * error) ** 2))
        axes.errorbar(0, solve[0] @ mean, spread, fmt="s", fillstyle="none", **look)
    axes.set(xlabel="$1/H$", ylabel="test error / that of regression")


@study(
    "attention-sectors-heads",
    title="Few heads learn differences of tokens worse, and sums of tokens better, than infinitely "
    "many",
    source=f"sectors of {LAVIE}; training and extrapolation are chosen here",
    panels=[Freehand(draw_heads)],
    caption=r"""
        All weights of a layer with $H$ heads, and queries of {width_per_head} $H$ entries, are
        trained on {n_train} sequences of {tokens} tokens in {input_dim} dimensions with a ridge
        towards their start. Marks: mean test error over {seeds} runs, divided by that of regression
        with the kernel on the same sequences. Dashed: least squares of $a + b/H$, with a term
        $c/H^2$ where there are four numbers of heads; open squares: the limits $a$.
    """,
    seconds=(120, 1200),
    observables=("test_error",),
    full={"heads": (4, 8, 16, 32, 64), "seeds": 64},
    gallery={"heads": (4, 8, 16, 32), "seeds": 140},
    explained=(
        "The theory is that of infinitely many heads and treats features as Gaussian. The figure "
        "divides by regression on the same sequences, which leaves the number of heads as the only "
        "difference: extrapolated from 4 to 32 heads the ratios are 1.002(5) for the sum and "
        "1.007(9) for the difference."
    ),
)
def attention_sectors_heads(
    heads: tuple[int, ...] = (3, 5, 8),
    width_per_head: int = 4,
    n_train: int = 24,
    tokens: int = 4,
    input_dim: int = 4,
    ridge: float = 0.1,
    seeds: int = 16,
) -> Iterator[Curve]:
    for target in SECTORS:
        system = SequenceRegression(
            n_train,
            ridge,
            width_per_head=width_per_head,
            tokens=tokens,
            input_dim=input_dim,
            target=target,
        )
        one: dict[str, Any] = {"n_train": [n_train]}
        facets = {"target": target}
        yield Curve("theory", sector_learning, system, one, facets=facets)
        yield Curve(
            "regression",
            sector_regression,
            system,
            one,
            seeds,
            paired=("n_train",),  # the sequences of the trained layers
            facets={**facets, "layer": "infinite"},
        )
        over = {"heads": heads}
        yield Curve(
            "trained layer",
            sector_training,
            system,
            over,
            seeds,
            paired=("heads",),
            facets={**facets, "layer": "finite"},
        )
