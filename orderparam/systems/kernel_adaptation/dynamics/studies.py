"""Figures of training in time, and of what can be pruned from a trained network."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from orderparam.core.study import Curve, study
from orderparam.data import load, subsample
from orderparam.data.tasks import one_hot
from orderparam.plotting import Freehand, Panel, vertical
from orderparam.systems.kernel_adaptation.dynamics.figures import (
    draw_components,
    draw_equilibrium,
    draw_errors,
    draw_selections,
    draw_specialised,
)
from orderparam.systems.kernel_adaptation.dynamics.model import Classifier
from orderparam.systems.kernel_adaptation.dynamics.pruning import pruned_classifier
from orderparam.systems.kernel_adaptation.dynamics.training import langevin_training
from orderparam.systems.kernel_adaptation.modes.network import hermite_target
from orderparam.systems.kernel_adaptation.two_layers.experiment.sampled import sampled_network
from orderparam.systems.kernel_adaptation.two_layers.model import TwoLayerNetwork
from orderparam.systems.kernel_adaptation.two_layers.theory.adapted_weights import adapted_weights


@study(
    "grokking",
    title="Training waits at the linear part of its target until neurons specialise, and then learns the cubic part",
    source="Rubin, Seroussi, Ringel 2024, arXiv 2310.03789",
    panels=[Freehand(draw) for draw in (draw_errors, draw_components, draw_specialised, draw_equilibrium)],
    columns=2,
    caption="Erf network, Langevin dynamics with weight decay on $y = He_1 {cubic:+g} He_3$; time 1: that of the weight decay "
    "alone. First three: $\\beta$ = {beta}, $d = 150\\sqrt{{\\beta}}$, $n = 3000\\beta$, $N = 700\\beta$, $T$ = "
    "{reduced_temperature} $\\sqrt{{\\beta}}/\\chi$, read-out variance $1/\\chi$, $\\chi$ = {chi}, $E|w|^2$ = 0.5; from prior "
    "weights unless said. Last: $d$ = 20, $N$ = 100, $n$ = {small_n_train}, $T$ = 0.2, second half of a run, over HMC on the "
    "same data. Bands: standard errors.",
    seconds=(120, 1500),
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
    seeds: int = 4,
) -> list[Curve]:
    root, target = math.sqrt(beta), hermite_target({1: 1.0, 3: cubic})
    system = TwoLayerNetwork(
        round(150 * root), round(700 * beta), round(3000 * beta), reduced_temperature * root / chi, target, 1 / chi, 0.5
    )
    small = TwoLayerNetwork(20, 100, small_n_train, 0.2, target, 0.015, 0.5)
    here, there = {"temperature": [system.temperature]}, {"n_train": [small_n_train]}
    training = partial(langevin_training, duration=duration, step=step)
    long = partial(langevin_training, duration=small_duration, step=small_step, records=200)
    large, compared = {"part": "in time"}, {"part": "equilibrium"}
    return [
        Curve("adapted weights (GMFL)", adapted_weights, system, here, facets=large),
        Curve("from the prior", training, system, here, seeds=seeds, facets=large),
        Curve("from the target", partial(training, start="informed"), system, here, seeds=seeds, facets=large),
        Curve("adapted weights (GMFL)", adapted_weights, small, there, facets=compared),
        Curve("from the prior", long, small, there, seeds=seeds, facets=compared),
        Curve("from the target", partial(long, start="informed"), small, there, seeds=seeds, facets=compared),
        Curve("posterior by HMC", partial(sampled_network, samples=300), small, there, seeds=seeds, facets=compared),
    ]


def digits(n_train: int, n_test: int) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """x, y, x_test, y_test of scikit-learn's digits: centred and scaled together by the training set, one-hot minus 1/10."""
    data = subsample(load("digits"), n_train + n_test, 0)
    x = data.inputs - data.inputs[:n_train].mean(axis=0)
    x = x / np.sqrt(np.mean(x[:n_train] ** 2))
    y = one_hot(data.labels, zero_mean=True).values
    return jnp.asarray(x[:n_train]), jnp.asarray(y[:n_train]), jnp.asarray(x[n_train:]), jnp.asarray(y[n_train:])


def _pruning_panels(p: Mapping[str, Any]) -> list[Panel | Freehand]:
    classes = vertical(9)
    return [
        Panel("rank", "accuracy", by="chi", log="x", xlabel="directions kept $k$", ylabel="test accuracy"),
        Freehand(draw_selections, f"trained, $\\chi$ = {p['chis'][-1]:g}"),
        Panel(
            ("order", lambda data: np.arange(1, data.sizes["direction"] + 1)),
            "eigenvalues",
            by="chi",
            log="xy",
            ylabel="latent eigenvalue / trace",
            ylim=(1e-5, 1),
            reference=[classes],
        ),
    ]


@study(
    "latent-pruning",
    title="What a network has learned lies in few directions of its latent kernel, and the rest can be pruned",
    source="Seroussi, Naveh, Ringel 2023, arXiv 2112.15383; Chizat, Oyallon, Bach 2019",
    panels=_pruning_panels,
    caption="Digits 8 x 8, {n_train} training and {n_test} test examples; two hidden layers of {width} relu units, one-hot "
    "targets, temperature {temperature}$/\\chi$, read-out variance $1/\\chi$. Pruned without retraining; {seeds} networks on "
    "one split. Dotted: number of classes minus one.",
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
    start = Curve("features of the start", partial(trained, train_hidden=False), system, {"chi": [chis[0]]}, seeds=seeds)
    return [Curve("trained", trained, system, {"chi": chis}, seeds=seeds), start]
