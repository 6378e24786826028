"""The named figures of theories on given training sets, up to weights with their full distribution."""

from functools import partial

import jax
import numpy as np

from orderparam.core.study import Curve, study
from orderparam.systems.kernel_adaptation.on_data.experiment import adapted_weights_on_data, sampled_on_data
from orderparam.systems.kernel_adaptation.on_data.figures import draw_particles, draw_scaled
from orderparam.systems.kernel_adaptation.on_data.scaled import (
    ScaledNetwork,
    averaged_at_scale,
    sampled_at_scale,
    solved_on_drawn_data,
)
from orderparam.systems.kernel_adaptation.on_data.theory import (
    gaussian_process_on_data,
    gaussian_weights_on_data,
    kernel_scaling_on_data,
)
from orderparam.systems.kernel_adaptation.two_layers.experiment.data import draw_network
from orderparam.systems.kernel_adaptation.two_layers.model import TwoLayerNetwork, hermite_target
from orderparam.systems.kernel_adaptation.two_layers.theory.adapted_weights import adapted_weights

_FEATURES = "Rubin, Fischer, Lindner, Dahmen, Seroussi, Ringel, Krämer, Helias 2025, arXiv 2502.03210"


@study(
    "relu-particles",
    title="On given data: what a relu network learns, and which theories know",
    source=_FEATURES,
    draw=draw_particles,
    seconds=(80, 3600),
    observables=("projections", "spread"),
    full={"input_dim": 24, "n_train": 96, "widths": (50, 100, 188, 400), "replicas": 8, "draws": 400, "seeds": 4},
)
def relu_particles(
    input_dim: int = 12,
    n_train: int = 36,
    absolute: float = 0.3,
    chi: float = 16.0,
    widths: tuple[int, ...] = (25, 80),
    replicas: int = 4,
    draws: int = 110,
    seeds: int = 2,
) -> list[Curve]:
    target = hermite_target({1: 1.0})
    averaged = TwoLayerNetwork(input_dim, 100, n_train, 0.1, target, absolute=absolute, activation="relu").scaling(chi)
    system = draw_network(averaged, jax.random.key(0))
    grid = {"width": np.geomspace(min(widths) / 1.5, 2e4, 17).tolist()}
    measured = {"width": widths}
    return [
        Curve("infinitely wide (GP)", gaussian_process_on_data, system, grid),
        Curve("rescaled kernel", kernel_scaling_on_data, system, grid),
        Curve("Gaussian weights (VGA)", gaussian_weights_on_data, system, grid),
        Curve("sampled network", partial(sampled_on_data, samples=draws, warmup=80), system, measured, seeds=seeds),
        Curve(
            "adapted weights (particles)",
            partial(adapted_weights_on_data, replicas=replicas, samples=draws, warmup=80),
            system,
            measured,
            seeds=seeds,
        ),
    ]


@study(
    "relu-scaling",
    title="Larger networks on more data: a kernel that only scales forgets the even part, one that turns learns it",
    source=_FEATURES,
    draw=draw_scaled,
    seconds=(120, 7200),
    observables=("output",),
    full={"betas": (0.125, 0.25, 0.5, 1.0), "seeds": 8, "draws": 600},
)
def relu_scaling(
    input_dim: int = 96,
    width: int = 750,
    ratios: tuple[int, ...] = (2, 3, 4),
    betas: tuple[float, ...] = (0.125, 0.25),
    absolute: float = 0.3,
    chi: float = 30.0,
    draws: int = 300,
    seeds: int = 4,
) -> list[Curve]:
    """input_dim, width: at beta = 1. ratios: n/d."""
    network = TwoLayerNetwork(input_dim, width, 1, 0.1, hermite_target({1: 1.0}), absolute=absolute, activation="relu")
    system = ScaledNetwork(network.scaling(chi), 1.0)
    examples = {"network.n_train": [ratio * input_dim for ratio in ratios]}
    lines = np.geomspace(min(betas) / 1.3, max(betas) * 1.3, 9).tolist()
    turned = partial(averaged_at_scale, theory=partial(adapted_weights, ridge_kind="effective"))
    on_data = {
        "infinitely wide (GP)": gaussian_process_on_data,
        "rescaled kernel": kernel_scaling_on_data,
        "Gaussian weights (VGA)": gaussian_weights_on_data,
    }
    measured = {"scale": betas, **examples}
    return [
        Curve("adapted weights, averaged over data", turned, system, {"scale": lines, **examples}),
        *(
            Curve(label, partial(solved_on_drawn_data, theory=theory), system, measured, seeds=seeds)
            for label, theory in on_data.items()
        ),
        Curve("sampled network", partial(sampled_at_scale, samples=draws), system, measured, seeds=seeds),
    ]
