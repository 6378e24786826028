"""Figures of training in time, of the examples it needs, and of what can be pruned from a trained network."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from orderparam.core.study import Curve, study
from orderparam.data import load, subsample
from orderparam.data.tasks import one_hot
from orderparam.systems.kernel_adaptation.dynamics.figures import draw_grokking, draw_pruning, draw_sample_complexity
from orderparam.systems.kernel_adaptation.dynamics.pruning import Classifier, pruned_classifier
from orderparam.systems.kernel_adaptation.dynamics.training import langevin_training
from orderparam.systems.kernel_adaptation.two_layers.examples_needed import examples_needed, sampled_examples_needed
from orderparam.systems.kernel_adaptation.two_layers.experiment.sampled import sampled_network
from orderparam.systems.kernel_adaptation.two_layers.model import TwoLayerNetwork, hermite_target
from orderparam.systems.kernel_adaptation.two_layers.theory.adapted_weights import adapted_weights
from orderparam.systems.kernel_adaptation.two_layers.theory.fixed_kernel import gaussian_process

_GROKKING = "Rubin, Seroussi, Ringel 2024, arXiv 2310.03789"
EQUILIBRIUM = "equilibrium"


@study(
    "grokking",
    title="Training waits at the linear part of its target until neurons specialise, and then learns the cubic part",
    source=_GROKKING,
    draw=draw_grokking,
    seconds=(90, 1500),
    observables=("output", "spread"),
    full={"beta": 1.0, "duration": 40.0, "small_duration": 200.0, "seeds": 6},
)
def grokking(
    beta: float = 0.5,
    chi: float = 20.0,
    cubic: float = -0.3,
    reduced_temperature: float = 5.0,
    duration: float = 10.0,
    step: float = 0.0125,
    small_n_train: int = 400,
    small_duration: float = 40.0,
    small_step: float = 0.005,
    seeds: int = 3,
) -> list[Curve]:
    root, target = math.sqrt(beta), hermite_target({1: 1.0, 3: cubic})
    system = TwoLayerNetwork(
        round(150 * root), round(700 * beta), round(3000 * beta), reduced_temperature * root / chi, target, 1 / chi, 0.5
    )
    small = TwoLayerNetwork(20, 100, small_n_train, 0.2, target, 0.015, 0.5)
    here, there = {"temperature": [system.temperature]}, {"n_train": [small_n_train]}
    training = partial(langevin_training, duration=duration, step=step)
    long = partial(langevin_training, duration=small_duration, step=small_step, records=200)
    return [
        Curve("equilibrium (GMFL)", adapted_weights, system, here),
        Curve("from the prior", training, system, here, seeds=seeds),
        Curve("from the target", partial(training, start="informed"), system, here, seeds=seeds),
        Curve("adapted weights (GMFL)", adapted_weights, small, there, panel=EQUILIBRIUM),
        Curve("trained, from the prior", long, small, there, seeds=seeds, panel=EQUILIBRIUM),
        Curve("trained, from the target", partial(long, start="informed"), small, there, seeds=seeds, panel=EQUILIBRIUM),
        Curve("posterior by HMC", partial(sampled_network, samples=300), small, there, seeds=seeds, panel=EQUILIBRIUM),
    ]


@study(
    "sample-complexity",
    title="A cubic component needs examples in proportion to d in a network that adapts, to d^3 in its fixed kernel",
    source=f"{_GROKKING}; Rubin et al. 2025, arXiv 2502.03210",
    draw=draw_sample_complexity,
    seconds=(120, 4800),
    observables=("examples",),
    full={"measured": (8, 16, 32, 64), "seeds": 12, "ratios": (10.0, 15.0, 22.0, 33.0, 50.0)},
)
def sample_complexity(
    cubic: float = -0.3,
    threshold: float = 0.15,
    temperature: float = 0.2,
    readout_variance: float = 0.015,
    weight_variance: float = 0.5,
    units_per_input: float = 5.0,
    measured: tuple[int, ...] = (8, 16, 24),
    ratios: tuple[float, ...] = (16.0, 24.0, 34.0),
    seeds: int = 3,
) -> list[Curve]:
    target = hermite_target({1: 1.0, 3: cubic})
    system = TwoLayerNetwork(20, 100, 100, temperature, target, readout_variance, weight_variance)
    needed = partial(examples_needed, threshold=threshold, units_per_input=units_per_input)
    grid = {"input_dim": [8.0 * 2**k for k in range(7)]}
    runs = partial(sampled_examples_needed, threshold=threshold, units_per_input=units_per_input, ratios=ratios)
    return [
        Curve("infinitely wide (GP)", partial(needed, theory=gaussian_process, power=3.0), system, grid),
        Curve("adapted weights (GMFL)", partial(needed, theory=adapted_weights), system, grid),
        Curve("sampled network", runs, system, {"input_dim": measured}, seeds=seeds),
    ]


def digits(n_train: int, n_test: int) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """x, y, x_test, y_test of scikit-learn's digits: centred and scaled together by the training set, one-hot minus 1/10."""
    data = subsample(load("digits"), n_train + n_test, 0)
    x = data.inputs - data.inputs[:n_train].mean(axis=0)
    x = x / np.sqrt(np.mean(x[:n_train] ** 2))
    y = one_hot(data.labels, zero_mean=True).values
    return jnp.asarray(x[:n_train]), jnp.asarray(y[:n_train]), jnp.asarray(x[n_train:]), jnp.asarray(y[n_train:])


@study(
    "latent-pruning",
    title="What a network has learned lies in few directions of its latent kernel, and the rest can be pruned",
    source="Seroussi, Naveh, Ringel 2023, arXiv 2112.15383; Chizat, Oyallon, Bach 2019",
    draw=draw_pruning,
    seconds=(40, 400),
    observables=("accuracy",),
    full={"width": 512, "n_train": 1000, "n_test": 797, "seeds": 16, "steps": 4000},
)
def latent_pruning(
    width: int = 128,
    n_train: int = 300,
    n_test: int = 1000,
    chis: tuple[float, ...] = (1.0, 10.0, 100.0),
    temperature: float = 0.01,
    steps: int = 1000,
    seeds: int = 5,
) -> list[Curve]:
    system = Classifier(*digits(n_train, n_test), width=width, temperature=temperature)
    trained = partial(pruned_classifier, steps=steps)
    return [
        Curve("first features", partial(trained, train_hidden=False), system, {"chi": [chis[0]]}, seeds=seeds),
        Curve("trained", trained, system, {"chi": chis}, seeds=seeds),
    ]
