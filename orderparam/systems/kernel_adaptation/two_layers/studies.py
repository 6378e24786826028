"""The named figures of kernel adaptation."""

import math
from functools import partial

import numpy as np

from orderparam.core.study import Curve, study
from orderparam.systems.kernel_adaptation.deep.studies import deep_preactivations
from orderparam.systems.kernel_adaptation.dynamics.studies import grokking, latent_pruning, sample_complexity
from orderparam.systems.kernel_adaptation.on_data.studies import relu_particles, relu_scaling
from orderparam.systems.kernel_adaptation.patches.studies import patches_erf, patches_transition
from orderparam.systems.kernel_adaptation.two_layers.experiment.sampled import sampled_network
from orderparam.systems.kernel_adaptation.two_layers.figures import draw_hysteresis, draw_phases, draw_relu, draw_staircase
from orderparam.systems.kernel_adaptation.two_layers.model import TwoLayerNetwork, hermite_target
from orderparam.systems.kernel_adaptation.two_layers.theory.adapted_weights import adapted_weights
from orderparam.systems.kernel_adaptation.two_layers.theory.fixed_kernel import gaussian_process, kernel_scaling
from orderparam.systems.kernel_adaptation.two_layers.theory.gaussian_weights import gaussian_weights

__all__ = [
    "adaptation_hysteresis",
    "adaptation_phases",
    "deep_preactivations",
    "grokking",
    "latent_pruning",
    "patches_erf",
    "patches_transition",
    "relu_adaptation",
    "relu_particles",
    "relu_scaling",
    "sample_complexity",
    "staircase",
]

_GROKKING = "Rubin, Seroussi, Ringel 2024, arXiv 2310.03789"
_FEATURES = "Rubin, Fischer, Lindner, Dahmen, Seroussi, Ringel, Krämer, Helias 2025, arXiv 2502.03210"


@study(
    "staircase",
    title="A network climbs from the linear to the cubic part of its target, where its infinitely wide limit cannot",
    source=f"{_GROKKING}; {_FEATURES}",
    draw=draw_staircase,
    seconds=(120, 1800),
    observables=("output",),
    full={"n_train": (50, 100, 200, 400, 800, 1600, 3200), "seeds": 16, "draws": 500},
)
def staircase(
    input_dim: int = 20,
    width: int = 100,
    cubic: float = -0.3,
    temperature: float = 0.2,
    readout_variance: float = 0.015,
    weight_variance: float = 0.5,
    n_train: tuple[int, ...] = (50, 200, 500, 1200),
    seeds: int = 4,
    draws: int = 400,
) -> list[Curve]:
    target = hermite_target({1: 1.0, 3: cubic})
    system = TwoLayerNetwork(input_dim, width, 100, temperature, target, readout_variance, weight_variance)
    return _theories_and_network(system, np.geomspace(30, 3e5, 21), n_train, seeds, draws)


@study(
    "staircase-mean-field",
    title="Close to specialisation: mean-field networks in d = 50 with a small cubic part",
    source=_GROKKING,
    draw=draw_staircase,
    seconds=(90, 7200),
    observables=("output",),
    full={
        "width": 1000,
        "temperature": 0.1,
        "readout_variance": 0.1,
        "n_train": (100, 400, 1600),
        "seeds": 8,
        "draws": 500,
    },
)
def staircase_mean_field(
    input_dim: int = 50,
    width: int = 200,
    cubic: float = 0.05,
    temperature: float = 0.5,
    readout_variance: float = 0.5,
    weight_variance: float = 0.5,
    n_train: tuple[int, ...] = (100, 400),
    seeds: int = 2,
    draws: int = 120,
) -> list[Curve]:
    """Mean-field scaling, temperature = readout_variance = 100/N: the theories of weights that adapt are the same for all N."""
    target = hermite_target({1: 1.0, 3: cubic})
    system = TwoLayerNetwork(input_dim, width, 100, temperature, target, readout_variance, weight_variance)
    *theories, network = _theories_and_network(system, np.geomspace(30, 3e5, 17), n_train, seeds, draws)
    consistent = partial(adapted_weights, ridge_kind="self-consistent")
    return [*theories, Curve("GMFL, self-consistent ridge", consistent, system, theories[0].over), network]


def _theories_and_network(
    system: TwoLayerNetwork, lines: np.ndarray, n_train: tuple[int, ...], seeds: int, draws: int
) -> list[Curve]:
    grid = {"n_train": lines.tolist()}
    return [
        Curve("infinitely wide (GP)", gaussian_process, system, grid),
        Curve("Gaussian weights (VGA)", gaussian_weights, system, grid),
        Curve("adapted weights (GMFL)", adapted_weights, system, grid),
        Curve("sampled network", partial(sampled_network, samples=draws), system, {"n_train": n_train}, seeds=seeds),
    ]


def scaling_set(beta: float, chi: float, cubic: float) -> TwoLayerNetwork:
    """d = 150 sqrt(beta), n = 3000 beta, N = 700 beta, read-out variance 1/chi, E|w|^2 = 1/2."""
    target = hermite_target({1: 1.0, 3: cubic})
    return TwoLayerNetwork(150 * math.sqrt(beta), 700 * beta, 3000 * beta, 1.0, target, 1 / chi, 0.5)


@study(
    "adaptation-phases",
    title="Gaussian feature learning, and coexistence with specialised neurons, sharper in larger systems",
    source=_GROKKING,
    draw=draw_phases,
    seconds=(40, 200),
    observables=("output",),
    full={"betas": (1.0, 2.0, 4.0, 8.0), "points": 80},
)
def adaptation_phases(
    betas: tuple[float, ...] = (1.0, 2.0, 4.0),
    chi: float = 20.0,
    cubic: float = -0.3,
    shown: tuple[float, ...] = (8.0, 4.5, 1.0),
    points: int = 34,
) -> list[Curve]:
    reduced = sorted({*np.linspace(0.8, 10.0, points).tolist(), *shown})
    curves = []
    for beta in betas:
        system = scaling_set(beta, chi, cubic)
        grid = {"temperature": [t * math.sqrt(beta) / chi for t in reduced]}
        curves.append(Curve(f"$\\beta$ = {beta:g}", adapted_weights, system, grid))
    return curves


@study(
    "relu-adaptation",
    title="What adapts in a relu network: its kernel turns, where scaling it would not help",
    source=_FEATURES,
    draw=draw_relu,
    seconds=(90, 1800),
    observables=("output",),
    full={"n_train": (48, 96, 240, 480, 960), "seeds": 16, "draws": 400},
)
def relu_adaptation(
    input_dim: int = 24,
    width: int = 188,
    chi: float = 30.0,
    absolute: float = 0.3,
    n_train: tuple[int, ...] = (48, 120, 240),
    seeds: int = 4,
    draws: int = 250,
) -> list[Curve]:
    system = TwoLayerNetwork(input_dim, width, 100, 1.0, hermite_target({1: 1.0}), absolute=absolute, activation="relu").scaling(
        chi
    )
    grid = {"n_train": np.geomspace(40, 2000, 16).tolist()}
    measured = partial(sampled_network, samples=draws)
    return [
        Curve("infinitely wide (GP)", gaussian_process, system, grid),
        Curve("rescaled kernel", kernel_scaling, system, grid),
        Curve("Gaussian weights (VGA)", gaussian_weights, system, grid),
        Curve("adapted weights", adapted_weights, system, grid),
        Curve("adapted weights, effective ridge", partial(adapted_weights, ridge_kind="effective"), system, grid),
        Curve("sampled network", measured, system, {"n_train": n_train}, seeds=seeds),
    ]


@study(
    "adaptation-hysteresis",
    title="Two states of Gaussian weights, and the one state of unconstrained ones",
    source=f"{_GROKKING}; {_FEATURES}",
    draw=draw_hysteresis,
    seconds=(25, 60),
    observables=("output",),
    full={"points": 120},
)
def adaptation_hysteresis(beta: float = 4.0, chi: float = 20.0, cubic: float = -0.3, points: int = 40) -> list[Curve]:
    system = scaling_set(beta, chi, cubic).with_(modes=(1, 3))
    grid = {"temperature": (np.linspace(0.25, 0.6, points) * math.sqrt(beta) / chi).tolist()}
    return [
        Curve("Gaussian, from the prior", partial(gaussian_weights, branch="uninformed"), system, grid),
        Curve("Gaussian, from the target", partial(gaussian_weights, branch="informed"), system, grid),
        Curve("adapted weights (GMFL)", adapted_weights, system, grid),
    ]
