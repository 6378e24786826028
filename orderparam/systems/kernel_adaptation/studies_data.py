"""The named figure of theories on a given training set, up to weights with their full distribution."""

from functools import partial

import jax
import numpy as np

from orderparam.core.study import Curve, study
from orderparam.systems.kernel_adaptation.experiment.data import draw_network
from orderparam.systems.kernel_adaptation.experiment.on_data import adapted_weights_on_data, sampled_on_data
from orderparam.systems.kernel_adaptation.figures_data import draw_particles
from orderparam.systems.kernel_adaptation.model import TwoLayerNetwork, hermite_target
from orderparam.systems.kernel_adaptation.theory import (
    gaussian_process_on_data,
    gaussian_weights_on_data,
    kernel_scaling_on_data,
)


@study(
    "relu-particles",
    title="On given data: what a relu network learns, and which theories know",
    source="Rubin, Fischer, Lindner, Dahmen, Seroussi, Ringel, Krämer, Helias 2025, arXiv 2502.03210",
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
