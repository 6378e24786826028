"""Linear convolutional networks of one, five and ten patches."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from orderparam.comparison import Curve, study
from orderparam.plotting import Panel
from orderparam.systems.kernel_adaptation.network import hermite_target
from orderparam.systems.kernel_adaptation.patches.linear_channels import sampled_linear_patches
from orderparam.systems.kernel_adaptation.patches.model import PatchNetwork
from orderparam.systems.kernel_adaptation.two_layers.fixed_shape import gaussian_process
from orderparam.systems.kernel_adaptation.two_layers.theory import adapted_weights


@study(
    "patches-linear",
    title="A linear network of more patches needs more examples, and at the same learnability its "
    "kernel adapts further",
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
        Ratio: eigenvalue of the network's kernel along the target over that across it, 1 without
        adaptation. Sampled: Hamiltonian Monte Carlo, {seeds} training sets.
    """,
    seconds=(60, 900),
    observables=("total_learnability", "eigenvalue_ratio"),
    explained=(
        "The theory is averaged over data. With the effective ridge learnabilities are at most "
        "12 % above the networks' (one, five and ten patches at 80 examples: .892, .633, .433 "
        "for .895(4), .566(15), .386(17)); with the source's ridge T/P they are 1.4 to 2.7 times "
        "those of the networks with five and ten patches. Ratios in theory are up to 19 % above "
        "the networks'. There is no control on the same data. At equal learnability more patches "
        "adapt further: ten patches at a learnability of .39 have a ratio of 3.0, one patch at "
        ".47 has 1.6."
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
    grid = {
        "patches": patches,
        "n_train": np.geomspace(min(n_train) / 2, 4 * max(n_train), 13).tolist(),
    }
    consistent, wide = (
        partial(theory, ridge_kind="self-consistent")
        for theory in (adapted_weights, gaussian_process)
    )
    sampler = partial(sampled_linear_patches, samples=draws, warmup=200)
    yield Curve("adapted weights, effective ridge", consistent, system, grid)
    yield Curve("adapted weights, ridge $T/P$", adapted_weights, system, grid)
    yield Curve("infinitely wide (GP), effective ridge", wide, system, grid)
    yield Curve(
        "sampled network", sampler, system, {"patches": patches, "n_train": n_train}, seeds=seeds
    )
