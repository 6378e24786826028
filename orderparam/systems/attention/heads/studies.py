"""The named figures of random attention with many heads."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import numpy as np

from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand, Panel
from orderparam.plotting.style import ink
from orderparam.systems.attention.heads.experiment import (
    drawn_head_kurtosis,
    drawn_transformer_kernels,
)
from orderparam.systems.attention.heads.model import RandomHeads, RandomTransformer
from orderparam.systems.attention.heads.theory import head_kurtosis, transformer_kernels

HRON = "Hron, Bahri, Sohl-Dickstein, Novak 2020 (arXiv:2006.10540)"


def drawn_tokens(sequences: int, tokens: int, input_dim: int) -> Any:
    """Sequences of standard normal tokens, the same in every run."""
    return jax.random.normal(jax.random.key(tokens), (sequences, tokens, input_dim))


@study(
    "attention-heads",
    title="The excess kurtosis of a random layer of attention falls as one over the number of "
    "heads",
    source=f"{HRON} for the limit; the kurtosis is derived here",
    panels=[
        Panel(
            "heads",
            ("kurtosis", lambda data: data["kurtosis"].mean("sequence")),
            by="attention",
            log="xy",
            fit="H",
            xlabel="heads $H$",
            ylabel="excess kurtosis",
        )
    ],
    caption="""
        Excess kurtosis of the outputs of one layer with $H$ random heads, averaged over the tokens
        of two sequences of {tokens} tokens in {input_dim} dimensions; queries have {key_width}
        entries. Lines: $(3/H) [E k^2/(E k)^2 - 1]$ at every $H$, where $k$ is the variance of a
        head's output at fixed queries and keys; its moments are those of the theory of infinitely
        many heads, after which lines are named. Marks: {networks} layers drawn in each of {seeds}
        runs; the average over the value weights is exact. The line of softmax holds for infinitely
        wide queries; that of linear attention is exact at every width.
    """,
    seconds=(60, 600),
    observables=("kurtosis",),
    full={"key_width": 1024, "networks": 8000, "seeds": 32},
    gallery={"networks": 600},
)
def attention_heads(
    heads: tuple[int, ...] = (1, 2, 4, 8, 16),
    tokens: int = 4,
    input_dim: int = 8,
    key_width: int = 64,
    scale: float = 2.0,
    networks: int = 300,
    seeds: int = 16,
) -> Iterator[Curve]:
    x = drawn_tokens(2, tokens, input_dim)
    over = {"heads": heads}
    drawn = partial(drawn_head_kurtosis, networks=networks)
    for normaliser, name in (("softmax", "softmax"), ("identity", "linear")):
        system = RandomHeads(x, 1, key_width, scale, normaliser)
        facets = {"attention": name}
        yield Curve("infinitely many heads", head_kurtosis, system, over, facets=facets)
        yield Curve("drawn layers", drawn, system, over, seeds, facets=facets)


def draw_limits(axes: Any, comparison: Comparison) -> None:
    """Draws the ratio of kernels of finite transformers to their limits against 1/H, with fits a +
    b/H + c/H^2."""
    theories = {data.attrs["facets"]["tokens"]: data for data in comparison.theories().values()}
    axes.axhline(1.0, color=ink(), linewidth=1.0, label="limit of many heads")
    number = 0
    for data in comparison.experiments().values():
        tokens = data.attrs["facets"]["tokens"]
        for kernel, word in (("nngp", "kernel"), ("ntk", "tangent kernel")):
            limit = np.trace(theories[tokens][kernel].values, axis1=-2, axis2=-1).mean()
            values = np.trace(data[kernel].values, axis1=-2, axis2=-1) / limit
            values = values.reshape(data.sizes["heads"], -1)
            mean = values.mean(axis=1)
            error = values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
            inverse = 1 / data["heads"].values.astype(float)
            look: dict[str, Any] = {"color": f"C{number}"}
            axes.errorbar(inverse, mean, error, fmt="o", label=f"{word}, {tokens} tokens", **look)
            number += 1
            if not np.all(error > 0) or len(inverse) < 3:
                continue  # a single run has no error for a fit
            design = np.stack([inverse**power for power in range(3)], axis=1)
            solve = np.linalg.pinv(design / error[:, None]) / error
            at = np.linspace(0, inverse.max(), 50)
            fit = np.stack([at**power for power in range(3)], axis=1) @ (solve @ mean)
            axes.plot(at, fit, "--", **look)
            spread = np.sqrt(np.sum((solve[0] * error) ** 2))
            axes.errorbar(0, solve[0] @ mean, spread, fmt="s", fillstyle="none", **look)
    axes.set(xlabel="$1/H$", ylabel="mean over networks, divided by the limit")


@study(
    "attention-kernels",
    title=(
        "The traces of the mean kernels of random transformer blocks of 2 to 16 heads lie within 3 "
        "% of the limit of many heads; no dependence on heads is resolved"
    ),
    source=f"{HRON}; the extrapolation is derived here",
    panels=[Freehand(draw_limits)],
    caption="""
        Transformers with {depth} block on two sequences of {lengths} tokens in {input_dim}
        dimensions; tokens and queries have 4 entries for each of $H$ heads. Marks: kernels averaged
        over {networks} networks drawn in each of {seeds} runs; shown is their trace over the two
        sequences, divided by the trace of the limit. Dashed: least squares of $a + b/H + c/H^2$;
        open squares: the limits $a$. Single entries of the mean kernels deviate from the limit by
        up to 7 %, none by more than three standard errors.
    """,
    seconds=(120, 1200),
    observables=("nngp", "ntk"),
    full={
        "heads": (2, 4, 8, 16, 32, 64),
        "lengths": (2, 3, 5),
        "networks": 400,
        "seeds": 64,
    },
    gallery={"networks": 100},
)
def attention_kernels(
    heads: tuple[int, ...] = (2, 3, 4, 8, 16),
    lengths: tuple[int, ...] = (3,),
    input_dim: int = 6,
    depth: int = 1,
    networks: int = 50,
    seeds: int = 16,
) -> Iterator[Curve]:
    for tokens in lengths:
        system = RandomTransformer(drawn_tokens(2, tokens, input_dim), 2, scale=1.5, depth=depth)
        facets, over = {"tokens": tokens}, {"heads": heads}
        limit = {"heads": heads[-1:]}
        yield Curve("infinitely many heads", transformer_kernels, system, limit, facets=facets)
        drawn = partial(drawn_transformer_kernels, networks=networks)
        yield Curve("drawn networks", drawn, system, over, seeds, facets=facets)
