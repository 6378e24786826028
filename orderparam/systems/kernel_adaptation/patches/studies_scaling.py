"""How the number of examples of a linear convolutional network grows with its input."""

from collections.abc import Iterator
from functools import partial

from orderparam.comparison import Curve, between, study
from orderparam.plotting import Panel, slope
from orderparam.systems.kernel_adaptation.network import hermite_target
from orderparam.systems.kernel_adaptation.patches.examples_needed import (
    measured_patch_examples,
    patch_examples_needed,
    regressed_patches,
)
from orderparam.systems.kernel_adaptation.patches.linear_channels import sampled_linear_patches
from orderparam.systems.kernel_adaptation.patches.model import PatchNetwork
from orderparam.systems.kernel_adaptation.two_layers.fixed_shape import gaussian_process
from orderparam.systems.kernel_adaptation.two_layers.theory import adapted_weights


@study(
    "patches-scaling",
    title="Half of a linear target: convolutional networks need fewer examples than their inputs, "
    "a fixed kernel in proportion",
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
