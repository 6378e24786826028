"""The studies of convolutional networks on patches."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from orderparam.comparison import Curve, between, study
from orderparam.plotting import Panel, curve, slope
from orderparam.systems.kernel_adaptation.network import hermite_target
from orderparam.systems.kernel_adaptation.patches.examples_needed import (
    measured_patch_examples,
    patch_examples_needed,
    regressed_patches,
)
from orderparam.systems.kernel_adaptation.patches.experiment import sampled_patches
from orderparam.systems.kernel_adaptation.patches.linear_channels import sampled_linear_patches
from orderparam.systems.kernel_adaptation.patches.model import PatchNetwork
from orderparam.systems.kernel_adaptation.two_layers.fixed_shape import gaussian_process
from orderparam.systems.kernel_adaptation.two_layers.theory import adapted_weights

_SOURCE = "Seroussi, Naveh, Ringel 2023, arXiv 2112.15383"


def linear_patches(size: float, chi: float) -> PatchNetwork:
    """A linear network with N = 10 a, S = 50 a and C = 1000 a, so that d = 500 a^2. Temperature and
    read-out variance are 1/chi."""
    return PatchNetwork(
        50 * size, 10 * size, 1000 * size, 100, 1.0, hermite_target({1: 1.0}), activation="linear"
    ).scaling(chi)


_EFFECTIVE = "adapted weights, effective ridge"
_WIDE = "infinitely wide (GP), effective ridge"


def _transition_panels(p: Mapping[str, Any]) -> list[Panel]:
    critical = {
        500 * size**2: float(linear_patches(size, p["chi"]).critical_examples)
        for size in p["sizes"]
    }
    axis = (
        "$P/P_c$, $P_c\\sim d^{3/4}$",
        lambda data: data["n_train"] / critical[data.attrs["facets"]["input_dim"]],
    )
    growing = {"part": "growing"}
    # The part of the kernel that is not learned acts as a ridge: its trace s v adds to T, so that
    # P_c is multiplied by 1 + s v / T = 2.
    limit = curve(lambda x: np.maximum(0, 1 - 2 / x))
    adapted = growing | {"label": _EFFECTIVE}
    return [
        Panel(
            axis,
            "total_learnability",
            by="input_dim",
            where=growing,
            log="x",
            reference=[limit],
            ylim=(0, 1),
        ),
        Panel(axis, "eigenvalue_ratio", by="input_dim", where=adapted, log="xy"),
        *(
            Panel(
                "n_train", y, where={"part": "sampled"}, log="x", title=f"$d$ = {min(critical):g}"
            )
            for y in ("total_learnability", "eigenvalue_ratio")
        ),
    ]


@study(
    "patches-transition",
    title=(
        "In theory linear convolutional networks learn half of a target of 200,000 inputs from an "
        "eighth as many examples; at 20 inputs sampled networks agree"
    ),
    source=_SOURCE,
    explained=(
        "Both learnabilities that are measured with 25 examples lie about 8 % below the theory, "
        "nearly three standard errors; whether the average over data, which the theories take, "
        "is the cause was not tested."
    ),
    panels=_transition_panels,
    columns=2,
    caption=r"""
        Linear units, $N = 10a$ patches of $S = 50a$ inputs, $C = 1000a$ channels, $d = 500a^2$
        inputs; temperature $T$ and read-out variance $1/\chi$, $\chi$ = {chi}, $E|w|^2$ = 1; target
        linear in every patch. Learnability: the share of the target that is learned. Ratio:
        eigenvalue of the kernel along the target over that across it. There are $n = P$ examples,
        and theories are averaged over them. With the ridge $T/P$ learning starts at $P_c =
        \sqrt{{SCN/\chi}}$. In large networks the effective ridge is twice as large, because the
        trace of the part that is not learned adds to $T$; dotted: the learnability $1 - 2P_c/P$ of
        this limit. Bottom: networks of the smallest size, where $P_c$ is not small against $d$;
        solid: adapted weights with the effective ridge.
    """,
    seconds=(60, 900),
    observables=("total_learnability", "eigenvalue_ratio"),
    gallery={"seeds": 16},
    full={
        "sizes": (0.2, 1.0, 4.0, 16.0, 64.0),
        "seeds": 20,
        "draws": 400,
        "measured": (0.25, 0.5, 1.0, 2.0, 4.0),
    },
)
def patches_transition(
    sizes: tuple[float, ...] = (0.2, 2.0, 20.0),
    chi: float = 100.0,
    measured: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0),
    seeds: int = 4,
    draws: int = 200,
) -> Iterator[Curve]:
    consistent, wide = (
        partial(theory, ridge_kind="self-consistent")
        for theory in (adapted_weights, gaussian_process)
    )
    for size in sizes:
        system = linear_patches(size, chi)
        grid = {"n_train": (float(system.critical_examples) * np.geomspace(0.1, 30, 41)).tolist()}
        facets = {"part": "growing", "input_dim": 500 * size**2}
        yield Curve(_EFFECTIVE, consistent, system, grid, facets=facets)
        yield Curve(_WIDE, wide, system, grid, facets=facets, baseline=True)
    small, facets = linear_patches(min(sizes), chi), {"part": "sampled"}
    grid = {"n_train": (float(small.critical_examples) * np.geomspace(0.3, 8, 25)).tolist()}
    points = [max(2, round(float(small.critical_examples) * x)) for x in measured]
    sampler = partial(sampled_patches, samples=draws, warmup=120)
    yield Curve(_EFFECTIVE, consistent, small, grid, facets=facets)
    yield Curve("adapted weights, ridge $T/P$", adapted_weights, small, grid, facets=facets)
    yield Curve(_WIDE, wide, small, grid, facets=facets, baseline=True)
    yield Curve("sampled network", sampler, small, {"n_train": points}, seeds=seeds, facets=facets)


def _erf_panels(p: Mapping[str, Any]) -> list[Panel]:
    """Marks of different numbers of patches stand beside one another, because they would hide each
    other."""
    patches = list(p["patches"])

    def aside(data: xr.Dataset) -> xr.DataArray:
        theory = data.attrs["kind"] == "theory"
        step = 0 if theory else patches.index(int(data["patches"])) - (len(patches) - 1) / 2
        return data["n_train"] * 1.07**step

    axis = ("training examples $n$", aside)
    shared: dict[str, Any] = {"by": "patches", "log": "x"}
    return [
        Panel(axis, "learnability", **shared, where={"mode": 0}, title="$h_1$"),
        Panel(axis, "learnability", **shared, where={"mode": 1}, title="$h_3$"),
        Panel(
            axis,
            "eigenvalue_ratio",
            **shared,
            text={n: f"$N$ = {n}" for n in patches},
            beside={n: (np.inf, "right") for n in patches},
            xlim=(0.45 * min(p["n_train"]), 11 * max(p["n_train"])),  # room for these texts
        ),
    ]


@study(
    "patches-erf",
    title=(
        "An erf network of more patches needs more examples for the linear part; with ten its "
        "kernel adapts less than with one at 25 examples, and more at 60"
    ),
    source=_SOURCE,
    panels=_erf_panels,
    caption=r"""
        Erf units, $N$ patches of {patch_dim} inputs, {channels} channels, $y = N^{{-1/2}}\sum_i
        (He_1 {cubic:+g} He_3)(w_*\cdot x_i)$; temperature $T$ and read-out variance $1/\chi$,
        $\chi$ = {chi}, $E|w|^2$ = 1. Learnability of $h_p$: the share of the part $He_p$ that is
        learned, negative where it has the wrong sign. Ratio: eigenvalue of the kernel along the
        target over that across it. $P = n$; theories are averaged over data and computed on a grid
        of $n$, whose points lines join. Marks of different $N$ stand beside one another.
    """,
    seconds=(100, 3600),
    observables=("learnability", "eigenvalue_ratio"),
    explained=(
        "The theories are averaged over data, of which there are only 0.2 to 4 for each input, and "
        "this average is the cause. With the effective ridge learnabilities of five and ten "
        "patches at 25 examples agree; the other learnabilities of networks lie 4 to 29 % below it "
        "and ratios 9 to 35 %. With the source's ridge T/P networks lie 6 to 63 % below. Control: "
        "the equations of adapted weights, solved without this average on the 16 training sets of "
        "the networks of five and ten patches (by 1,500 weighted particles), give learnabilities "
        "of h_1 of .491 and .317 and ratios of 6.04 and 5.25 at 60 examples, where the marks of "
        "the networks stand at .486, .317, 6.02 and 5.32; at 25 examples they give .214, .093, "
        "2.79 and 1.87, for marks at .210, .088, 2.68 and 1.88. All these learnabilities, with "
        "those of h_3, differ by at most 6 %. On the same training sets a network of one patch "
        "agrees with kernel adaptation to 1 %."
    ),
    coarse=(
        "Training sets of 25 examples differ. The learnabilities that the title compares differ by "
        "factors of 1.5 to 2.5 from one number of patches to the next, and the ratios by 1.2(2) at "
        "25 examples and by 2.0(3) and 1.3(4) at 60."
    ),
    gallery={"patches": (1, 5, 10), "n_train": (25, 60), "draws": 240, "seeds": 16},
    full={
        "patches": (1, 5, 10),
        "patch_dim": 50,
        "channels": 1000,
        "n_train": (100, 400),
        "draws": 300,
    },
)
def patches_erf(
    patches: tuple[int, ...] = (1, 3),
    patch_dim: int = 15,
    channels: int = 100,
    chi: float = 100.0,
    cubic: float = 0.1,
    n_train: tuple[int, ...] = (30, 100),
    seeds: int = 12,
    draws: int = 120,
) -> Iterator[Curve]:
    system = PatchNetwork(
        patch_dim, 1, channels, 100, 1.0, hermite_target({1: 1.0, 3: cubic})
    ).scaling(chi)
    sampler = partial(sampled_patches, samples=draws, warmup=120)
    yield from _theories_and_network(system, sampler, 11, patches, n_train, seeds)


def _theories_and_network(
    system: PatchNetwork,
    sampler: Callable[..., Any],
    points: int,
    patches: tuple[int, ...],
    n_train: tuple[int, ...],
    seeds: int,
) -> Iterator[Curve]:
    """Averaged theories on a grid of `points` training sets, with both ridges and without
    adaptation, and sampled networks at the sizes `n_train`."""
    grid = {
        "patches": patches,
        "n_train": np.geomspace(min(n_train) / 2, 4 * max(n_train), points).tolist(),
    }
    consistent, wide = (
        partial(theory, ridge_kind="self-consistent")
        for theory in (adapted_weights, gaussian_process)
    )
    yield Curve("adapted weights, effective ridge", consistent, system, grid)
    yield Curve("adapted weights, ridge $T/P$", adapted_weights, system, grid)
    yield Curve("infinitely wide (GP), effective ridge", wide, system, grid)
    yield Curve(
        "sampled network", sampler, system, {"patches": patches, "n_train": n_train}, seeds=seeds
    )


# ------------------------------------------------------------------------------------------------
# Linear convolutional networks of one, five and ten patches.


@study(
    "patches-linear",
    title=(
        "A linear network of more patches needs more examples; with ten its kernel adapts less "
        "than with one at 20 and 40 examples, and further at 80"
    ),
    source="Seroussi, Naveh, Ringel 2023, arXiv 2112.15383",
    panels=[
        Panel("n_train", "total_learnability", by="patches", log="x", ylim=(0, 1)),
        Panel("n_train", "eigenvalue_ratio", by="patches", log="x"),
    ],
    columns=2,
    caption=r"""
        Linear units, $N$ patches of {patch_dim} inputs, {channels} channels, target linear in every
        patch; temperature $T$ and read-out variance both $1/\chi$, $\chi$ = {chi}, $E|w|^2$ = 1;
        $P = n$. Theories averaged over data. Learnability: share of the target that is learned.
        Ratio: eigenvalue of the network's kernel along the target divided by that orthogonal to it,
        1 without adaptation. Sampled: Hamiltonian Monte Carlo, {seeds} training sets.
    """,
    seconds=(60, 900),
    observables=("total_learnability", "eigenvalue_ratio"),
    explained=(
        "The theory is averaged over data. With the effective ridge learnabilities are at most "
        "12 % above the networks' (one, five and ten patches at 80 examples: .892, .633, .433 "
        "for .895(4), .566(15), .386(17)) and ratios 19 %; with the source's ridge T/P "
        "learnabilities are 1.4 to 2.7 times those of the networks with five and ten patches. The "
        "average over data is the cause. Control: the equations of adapted weights, solved without "
        "this average on the 16 training sets of the networks at 80 examples, give learnabilities "
        "of .566(15) and .386(17) with five and ten patches, as the networks have. On five of the "
        "sets with five patches and on five with ten networks were sampled again: learnabilities "
        "differ from this theory by -.0004(1) and .0001(1), and ratios are 0.6(1) % larger."
    ),
    gallery={"seeds": 16, "n_train": (20, 40, 80), "draws": 1000},
    full={
        "patch_dim": 50,
        "channels": 1000,
        "n_train": (50, 100, 200, 400),
        "seeds": 16,
    },
)
def patches_linear(
    patches: tuple[int, ...] = (1, 5, 10),
    patch_dim: int = 20,
    channels: int = 400,
    chi: float = 100.0,
    n_train: tuple[int, ...] = (20, 40),
    seeds: int = 4,
    draws: int = 250,
) -> Iterator[Curve]:
    system = PatchNetwork(
        patch_dim, 1, channels, 100, 1.0, hermite_target({1: 1.0}), activation="linear"
    ).scaling(chi)
    sampler = partial(sampled_linear_patches, samples=draws, warmup=200)
    yield from _theories_and_network(system, sampler, 13, patches, n_train, seeds)


# ------------------------------------------------------------------------------------------------
# How the number of examples of a linear convolutional network grows with its input.


@study(
    "patches-scaling",
    title=(
        "To learn half of a linear target convolutional networks of 20 to 80 inputs need fewer "
        "examples than inputs, a fixed kernel about 1.5 times as many"
    ),
    source="Seroussi, Naveh, Ringel 2023, arXiv 2112.15383",
    panels=[
        Panel(
            ("inputs $d = NS$", lambda data: 0.2 * data["patch_dim"] ** 2),
            "examples",
            by="weights",
            log="xy",
            fit="d",
            reference=[
                slope(1, "$d$", through=(100.0, 260.0)),
                slope(0.75, "$d^{3/4}$", through=(100.0, 35.0)),
            ],
            ylabel="examples needed $P$",
        )
    ],
    caption=r"""
        Number $P$ of examples at which the share {threshold} of a target that is linear in every
        patch is learned. Linear units, patches of $S$ inputs, $N = S/5$ patches, $C = 20 S$
        channels, so that $S$, $N$ and $C$ grow as $\sqrt{{d}}$; temperature and read-out variance
        $1/\chi$, $\chi$ = {chi}, $E|w|^2$ = 1. Each run samples networks at $P/d^{{3/4}}$ =
        {ratios}, or regresses with the kernel of infinitely many channels at $P/d$ =
        {kernel_ratios}, with a power law of the share not learned between. Theories are averaged
        over data, with the self-consistent ridge; in theory the exponent of the networks falls
        slowly to 3/4.
    """,
    seconds=(60, 4800),
    observables=("examples",),
    gallery={"measured": (10, 15, 20), "seeds": 16},
    full={"measured": (10, 20, 30, 40, 50), "draws": 500, "seeds": 32},
)
def patches_scaling(
    threshold: float = 0.5,
    chi: float = 100.0,
    ratios: tuple[float, ...] = (1.4, 3.0),
    kernel_ratios: tuple[float, ...] = (1.0, 2.2),
    measured: tuple[int, ...] = (5, 10),
    draws: int = 250,
    seeds: int = 4,
) -> Iterator[Curve]:
    """measured: dimensions S of a patch, multiples of 5."""
    target = hermite_target({1: 1.0})
    system = PatchNetwork(10, 2, 200, 20, 1.0, target, activation="linear").scaling(chi)
    line = {"patch_dim": between((float(min(measured)), 4.0 * max(measured), *measured), 9)}
    sampler = partial(sampled_linear_patches, warmup=200, samples=draws)
    for weights, theory, learner, options in (
        ("weights that adapt", adapted_weights, sampler, {"ratios": ratios}),
        (
            "fixed kernel",
            gaussian_process,
            regressed_patches,
            {"ratios": kernel_ratios, "power": 1.0},
        ),
    ):
        facets = {"weights": weights}
        averaged = partial(theory, ridge_kind="self-consistent")
        needed = partial(patch_examples_needed, theory=averaged, threshold=threshold)
        run = partial(measured_patch_examples, learner=learner, threshold=threshold, **options)
        adapting = theory is adapted_weights
        name = "adapted weights" if adapting else "infinitely many channels (GP)"
        yield Curve(name, needed, system, line, facets=facets)
        name = "sampled network" if adapting else "regression on drawn data"
        yield Curve(name, run, system, {"patch_dim": measured}, seeds, facets=facets)
