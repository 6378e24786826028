"""Figures of training in time, and of what can be pruned from a trained network."""

from collections.abc import Iterator, Mapping
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
    draw_component,
    draw_errors,
    draw_selections,
    draw_specialised,
)
from orderparam.systems.kernel_adaptation.dynamics.model import Classifier
from orderparam.systems.kernel_adaptation.dynamics.pruning import pruned_classifier
from orderparam.systems.kernel_adaptation.dynamics.training import langevin_training
from orderparam.systems.kernel_adaptation.modes.network import hermite_target
from orderparam.systems.kernel_adaptation.two_layers.model import TwoLayerNetwork
from orderparam.systems.kernel_adaptation.two_layers.theory.adapted_weights import adapted_weights
from orderparam.systems.kernel_adaptation.two_layers.theory.fixed_kernel import gaussian_process


@study(
    "grokking",
    title="The training set is fitted on the features of the start; what generalises follows when they have turned",
    source="Rubin, Seroussi, Ringel 2024, arXiv 2310.03789; Kumar, Bordelon, Gershman, Pehlevan 2024, arXiv 2310.06110",
    panels=[Freehand(draw) for draw in (draw_errors, draw_component, draw_specialised)],
    caption="Relu network, $d$ = {input_dim}, $N$ = {width}, $n$ = {n_train}, $y = h_2(w_*\\cdot x)$; Langevin dynamics with "
    "weight decay and one learning rate, $T$ = {temperature}, variance of $\\sqrt{{N}}a$ {readout_variance}, $E|w|^2$ = 1; time "
    "1: that of the read-out's weight decay alone. Means of {seeds} runs, bands: standard errors. Theory, dotted: equilibrium, "
    "averaged over data, which is too high where $n$ is a few $d$.",
    seconds=(50, 3600),
    observables=("output",),
    full={"input_dim": 40, "width": 600, "n_train": 320, "readout_variance": 0.3, "duration": 60.0, "step": 0.0002, "seeds": 8},
)
def grokking(
    input_dim: int = 24,
    width: int = 240,
    n_train: int = 190,
    temperature: float = 0.02,
    readout_variance: float = 0.4,
    duration: float = 6.0,
    step: float = 0.0003,
    seeds: int = 4,
) -> Iterator[Curve]:
    target = hermite_target({2: 1.0}, normalised=True)
    system = TwoLayerNetwork(input_dim, width, n_train, temperature, target, readout_variance, activation="relu")
    here, training = {"n_train": [n_train]}, partial(langevin_training, duration=duration, step=step, records=150, one_rate=True)
    effective, fixed = (partial(theory, ridge_kind="effective") for theory in (adapted_weights, gaussian_process))
    yield Curve("adapted weights", effective, system, here)
    yield Curve("infinitely wide (GP)", fixed, system, here, baseline=True)
    yield Curve("from the prior", training, system, here, seeds=seeds)
    yield Curve("from the target", partial(training, start="informed"), system, here, seeds=seeds)


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
) -> Iterator[Curve]:
    system = Classifier(*digits(n_train, n_test), width=width, temperature=temperature)
    trained = partial(pruned_classifier, steps=steps)
    yield Curve("trained", trained, system, {"chi": chis}, seeds=seeds)
    yield Curve("features of the start", partial(trained, train_hidden=False), system, {"chi": [chis[0]]}, seeds=seeds)
