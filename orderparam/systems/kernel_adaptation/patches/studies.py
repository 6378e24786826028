"""The named figures of convolutional networks on patches."""

from functools import partial

import numpy as np

from orderparam.core.study import Curve, study
from orderparam.systems.kernel_adaptation.patches.experiment import sampled_patches
from orderparam.systems.kernel_adaptation.patches.figures import draw_erf_patches, draw_transition
from orderparam.systems.kernel_adaptation.patches.model import PatchNetwork
from orderparam.systems.kernel_adaptation.two_layers.model import hermite_target
from orderparam.systems.kernel_adaptation.two_layers.theory.adapted_weights import adapted_weights
from orderparam.systems.kernel_adaptation.two_layers.theory.fixed_kernel import gaussian_process

_SOURCE = "Seroussi, Naveh, Ringel 2023, arXiv 2112.15383"


def linear_patches(size: float, chi: float) -> PatchNetwork:
    """N = 10 a, S = 50 a, C = 1000 a: d = 500 a^2. Temperature and read-out variance 1/chi."""
    return PatchNetwork(50 * size, 10 * size, 1000 * size, 100, 1.0, hermite_target({1: 1.0}), activation="linear").scaling(chi)


@study(
    "patches-transition",
    title="A linear convolutional network learns at P ~ d^(3/4), its infinitely wide limit at P ~ d",
    source=_SOURCE,
    draw=draw_transition,
    seconds=(60, 900),
    observables=("total_learnability", "eigenvalue_ratio"),
    full={"sizes": (0.2, 1.0, 4.0, 16.0, 64.0), "seeds": 20, "draws": 400, "measured": (0.25, 0.5, 1.0, 2.0, 4.0)},
)
def patches_transition(
    sizes: tuple[float, ...] = (0.2, 2.0, 20.0),
    chi: float = 100.0,
    measured: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0),
    seeds: int = 4,
    draws: int = 120,
) -> list[Curve]:
    curves = []
    for size in sizes:
        system = linear_patches(size, chi)
        grid = {"n_train": (float(system.critical_examples) * np.geomspace(0.1, 30, 41)).tolist()}
        curves.append(Curve(f"$d$ = {500 * size**2:g}", adapted_weights, system, grid, panel="size"))
        curves.append(Curve(f"GP, $d$ = {500 * size**2:g}", gaussian_process, system, grid, panel="size"))
    small = linear_patches(min(sizes), chi)
    grid = {"n_train": (float(small.critical_examples) * np.geomspace(0.3, 8, 25)).tolist()}
    points = [max(2, round(float(small.critical_examples) * x)) for x in measured]
    sampler = partial(sampled_patches, samples=draws, warmup=120)
    return [
        *curves,
        Curve("ridge $T/P$", adapted_weights, small, grid, panel="sampled"),
        Curve("effective ridge", partial(adapted_weights, ridge_kind="self-consistent"), small, grid, panel="sampled"),
        Curve("GP, effective ridge", partial(gaussian_process, ridge_kind="effective"), small, grid, panel="sampled"),
        Curve("sampled network", sampler, small, {"n_train": points}, seeds=seeds, panel="sampled"),
    ]


@study(
    "patches-erf",
    title="Fewer patches, stronger features: an erf convolutional network on a cubic target",
    source=_SOURCE,
    draw=draw_erf_patches,
    seconds=(80, 3600),
    observables=("learnability", "eigenvalue_ratio"),
    full={"patches": (1, 5, 10), "patch_dim": 50, "channels": 1000, "n_train": (100, 400), "seeds": 4, "draws": 300},
)
def patches_erf(
    patches: tuple[int, ...] = (1, 3),
    patch_dim: int = 15,
    channels: int = 100,
    chi: float = 100.0,
    cubic: float = 0.1,
    n_train: tuple[int, ...] = (30, 100),
    seeds: int = 3,
    draws: int = 120,
) -> list[Curve]:
    system = PatchNetwork(patch_dim, 1, channels, 100, 1.0, hermite_target({1: 1.0, 3: cubic})).scaling(chi)
    grid = {"patches": patches, "n_train": np.geomspace(min(n_train) / 2, 4 * max(n_train), 11).tolist()}
    sampler = partial(sampled_patches, samples=draws, warmup=120)
    return [
        Curve("GP", partial(gaussian_process, ridge_kind="effective"), system, grid),
        Curve("ridge $T/P$", adapted_weights, system, grid),
        Curve("effective ridge", partial(adapted_weights, ridge_kind="self-consistent"), system, grid),
        Curve("sampled", sampler, system, {"patches": patches, "n_train": n_train}, seeds=seeds),
    ]
