"""The named figures of features in time."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from orderparam.comparison import Curve, study
from orderparam.plotting import Panel
from orderparam.systems.features_in_time.experiment import (
    trained_features,
    trained_linear_layers,
    trained_quadratic,
    tuned_network,
)
from orderparam.systems.features_in_time.linear_layers import linear_layers_dynamics
from orderparam.systems.features_in_time.model import (
    FeatureDescent,
    LinearLayersDescent,
    QuadraticDescent,
)
from orderparam.systems.features_in_time.quadratic import quadratic_recursion
from orderparam.systems.features_in_time.theory import best_rate, particle_dynamics


def single_index(dim: int, n_train: int, n_test: int) -> tuple[np.ndarray, ...]:
    """Gaussian inputs and targets sin(2 x_1) for training and test, the same in every run."""
    x = np.random.default_rng(0).standard_normal((n_train + n_test, dim))
    y = np.sin(2 * x[:, 0])
    return x[:n_train], y[:n_train], x[n_train:], y[n_train:]


def _marked(data: xr.Dataset, name: str) -> xr.DataArray:
    """Values at all steps of a theory, which is drawn as a line, or at about twelve steps of a
    measurement, which is drawn as marks."""
    steps = xr.DataArray(np.arange(data.sizes["step"]), dims=["step"])
    values = steps if name == "step" else data[name]
    if "seed" not in data.dims:
        return values
    last = data.sizes["step"] - 1
    return values.isel(step=np.unique(np.geomspace(1, last, 12).round().astype(int)))


STEP = ("step", partial(_marked, name="step"))


def _errors(name: str, label: str, **words: Any) -> Panel:
    return Panel(STEP, (label, partial(_marked, name=name)), log="x", **words)


@study(
    "features-in-time",
    title=(
        "Networks of 512 units follow the theory of infinite width step by step, from lazy to"
        " rich training"
    ),
    source="Mei, Montanari, Nguyen 2018 (arXiv:1804.06561); Bordelon, Pehlevan 2022 "
    "(arXiv:2205.09653)",
    panels=[
        _errors("train_error", "training error", by="richness", where={"quantity": "path"}),
        _errors("test_error", "test error", by="richness", where={"quantity": "path"}),
        Panel(
            "richness",
            "kernel_drift",
            where={"quantity": "path"},
            log="xy",
            ylabel="change of the tangent kernel",
        ),
        _errors(
            "test_error",
            "test error / theory",
            by="width",
            where={"quantity": "width"},
            ratio_to="theory",
            ylabel="test error / theory",
        ),
    ],
    columns=2,
    caption=r"""
        Networks with one hidden layer of erf units learn {n_train} examples of $\sin(2x_1)$ in
        {dim} dimensions by gradient descent with rate {learning_rate}, from a start with $f = 0$;
        {n_test} test inputs; errors are mean squares. $\gamma$: richness of the mean-field
        parametrisation. Lines: infinite width, with {samples} pairs of particles at Sobol points in
        each of 4 runs. Marks: networks of {width} units. Third panel: norm of the change of the
        tangent kernel in training over its norm at the start; the line joins the values of the
        theory. Last panel: networks of $N$ units at $\gamma$ = {rich}.
    """,
    seconds=(60, 600),
    observables=("test_error", "train_error", "kernel_drift"),
    explained="Networks of finite width differ from the particles. The difference is largest for "
    "narrow networks and where the error is nearly zero.",
    gallery={"width": 512, "widths": (32, 128), "seeds": 24, "samples": 2048},
    full={"width": 4096, "widths": (32, 128, 512, 2048), "seeds": 64, "samples": 16384},
)
def features_in_time(
    dim: int = 10,
    n_train: int = 30,
    n_test: int = 60,
    learning_rate: float = 0.05,
    richnesses: tuple[float, ...] = (0.1, 0.4, 1.5),
    rich: float = 1.5,
    steps: int = 100,
    samples: int = 1024,
    width: int = 512,
    widths: tuple[int, ...] = (32, 128),
    seeds: int = 16,
) -> Iterator[Curve]:
    system = FeatureDescent(
        *single_index(dim, n_train, n_test),
        rich,
        learning_rate,
        width,
        activation="erf_scaled",
        steps=steps,
    )
    theory = partial(particle_dynamics, samples=samples)
    path, over = {"quantity": "path"}, {"richness": richnesses}
    yield Curve("theory", theory, system, over, facets=path)
    yield Curve("network", trained_features, system, over, seeds, batch_seeds=True, facets=path)
    sizes, at = {"quantity": "width"}, {"richness": [rich]}
    yield Curve("theory", theory, system, at, facets=sizes)
    for each in widths:
        facets = {**sizes, "width": each}
        narrow = system.with_(width=each)
        yield Curve("network", trained_features, narrow, at, seeds, batch_seeds=True, facets=facets)


@study(
    "width-transfer",
    title="The best learning rate tends to a constant in two parametrisations; in the standard one "
    "it falls nearly as 1/N",
    source="Yang, Hu 2021 (arXiv:2011.14522); Yang et al. 2022 (arXiv:2203.03466); the curves are "
    "derived here",
    panels=[
        Panel(
            "width",
            "best_rate",
            by="parametrisation",
            log="xy",
            fit="N",
            xlabel="width $N$",
            ylabel=r"best learning rate $\eta^*$",
        ),
        Panel(
            "width",
            "best_rate",
            by="parametrisation",
            log="x",
            ratio_to="theory",
            xlabel="width $N$",
            ylabel="best rate / infinite width",
        ),
    ],
    columns=2,
    caption=r"""
        Networks with one hidden layer of erf units learn {n_train} examples of $\sin(2x_1)$ in
        {dim} dimensions in {steps} steps of gradient descent. Shown is the learning rate with the
        smallest training error after the last step. Lines: infinitely many particles at the scales
        of each parametrisation. Marks: networks of N units, each trained with all rates.
    """,
    seconds=(40, 300),
    observables=("best_rate",),
    explained=(
        "The wider a network is, the less it differs from infinitely many particles. "
        "Control with 96 networks (48 of 512 units): the best rates of 32, 128 and 512 "
        "units lie 12.1(16), 5.2(12) and 1.6(12) % below the theory in the standard "
        "parametrisation, 3.5(14), 2.9(10) and 1.0(8) % above it in the mean-field one."
    ),
    gallery={"widths": (32, 128, 512, 2048), "seeds": 24, "samples": 1024},
    full={"widths": (32, 64, 128, 256, 512, 1024, 2048, 4096), "seeds": 64, "samples": 16384},
)
def width_transfer(
    dim: int = 10,
    n_train: int = 12,
    steps: int = 5,
    richness: float = 1.0,
    samples: int = 1024,
    widths: tuple[int, ...] = (32, 128, 512),
    seeds: int = 16,
) -> Iterator[Curve]:
    data = single_index(dim, n_train, 2)
    for parametrisation in ("mean-field", "ntk", "standard"):
        system = FeatureDescent(
            *data,
            richness,
            activation="erf_scaled",
            parametrisation=parametrisation,
            steps=steps,
        )
        facets, over = {"parametrisation": parametrisation}, {"width": widths}
        yield Curve("theory", partial(best_rate, samples=samples), system, over, facets=facets)
        yield Curve("network", tuned_network, system, over, seeds, batch_seeds=True, facets=facets)


@study(
    "grokking-lazy-to-rich",
    title=(
        "From rich to lazy, networks halve their training error about twice later, but their "
        "test error more than ten times later, with the delays of the theory"
    ),
    source="Kumar, Bordelon, Gershman, Pehlevan 2024 (arXiv:2310.06110); closed recursion derived "
    "here",
    panels=[
        *(
            Panel(
                "step",
                name,
                by="laziness",
                where={"quantity": "laziness"},
                log="x",
                xlim=(1, None),
                xlabel="step",
                ylabel=label,
            )
            for name, label in (("train_error", "training error"), ("test_error", "test error"))
        ),
        Panel(
            "laziness",
            "delay",
            where={"quantity": "laziness"},
            log="xy",
            ylabel="delay of the test error",
        ),
        Panel(
            "step",
            "test_error",
            by="width",
            where={"quantity": "width"},
            log="x",
            ratio_to="theory",
            xlim=(1, None),
            xlabel="step",
            ylabel="test error / theory",
        ),
    ],
    columns=2,
    caption=r"""
        Networks of {width} units $h + \epsilon h^2/2$, $\epsilon$ = {curvature}, with fixed
        read-outs, learn {n_train} examples of $(x_1^2 - 1)/\sqrt{{2}}$ in {dim} dimensions by
        gradient descent with learning rate {learning_rate}, from $f = 0$; {n_test} test inputs; all
        runs have the same data. $\kappa$: scale of the output; the larger it is, the less the
        weights have to move. Lines: infinite width, exact at every step. Third panel: ratio of the
        steps from which test and training error stay below half of their starts; the line joins the
        values of the theory. Last panel: networks of $N$ = {widths} units at $\kappa$ = {laziness}.
    """,
    seconds=(60, 600),
    observables=("train_error", "test_error", "delay"),
    explained="A network differs from infinite width only by the moments of its weights at the "
    "start: with these moments the recursion gives every error of a network to nine "
    "digits. The difference is largest where the error is small.",
    gallery={"width": 200, "widths": (10, 50), "seeds": 32},
    full={"width": 1000, "widths": (10, 50, 200), "seeds": 64, "steps": 30000},
)
def grokking_lazy_to_rich(
    dim: int = 20,
    n_train: int = 120,
    n_test: int = 2000,
    curvature: float = 0.3,
    learning_rate: float = 0.2,
    kappas: tuple[float, ...] = (1.0, 2.5, 6.0, 16.0),
    laziness: float = 6.0,
    width: int = 100,
    widths: tuple[int, ...] = (10,),
    steps: int = 4000,
    seeds: int = 16,
) -> Iterator[Curve]:
    x = np.random.default_rng(0).standard_normal((n_train + n_test, dim))
    y = (x[:, 0] ** 2 - 1) / np.sqrt(2)
    system = QuadraticDescent(
        x[:n_train],
        y[:n_train],
        x[n_train:],
        y[n_train:],
        laziness,
        curvature,
        learning_rate=learning_rate,
        width=width,
        steps=steps,
    )
    over, lazy = {"laziness": kappas}, {"quantity": "laziness"}
    yield Curve("theory", quadratic_recursion, system, over, facets=lazy)
    yield Curve("network", trained_quadratic, system, over, seeds, facets=lazy)
    yield Curve("theory", quadratic_recursion, system, {}, facets={"quantity": "width"})
    for each in widths:
        facets = {"quantity": "width", "width": each}
        narrow = system.with_(width=each)
        yield Curve("network", trained_quadratic, narrow, {}, seeds, facets=facets)


@study(
    "linear-layers-in-time",
    title=(
        "Linear networks of 512 units follow the exact theory of infinite "
        "width at every depth and richness; narrower ones deviate more"
    ),
    source="Bordelon, Pehlevan 2022 (arXiv:2205.09653); causal solution for steps of finite size "
    "derived here",
    panels=[
        _errors(
            "train_error",
            "training error",
            by="richness",
            facet="depth",
            where={"quantity": "path"},
        ),
        _errors(
            "train_error",
            "training error / theory",
            by="width",
            where={"quantity": "width"},
            ratio_to="theory",
            ylabel="training error / theory",
        ),
    ],
    columns=2,
    caption=r"""
        Linear networks with $L$ hidden layers of {width} units learn {n_train} examples of a linear
        target in {dim} dimensions by gradient descent with rate {learning_rate}; all runs have the
        same data; the error is the mean square. $\gamma$: richness of the mean-field
        parametrisation. Lines: infinite width, exact at every step. Last panel: networks of $N$
        units in each of {deepest} hidden layers at $\gamma = 1$.
    """,
    seconds=(60, 300),
    observables=("train_error",),
    explained="Networks of finite width start with random outputs, and their kernels differ from "
    "those of infinite width; both change mean errors by amounts of order 1/N.",
    gallery={"width": 512, "widths": (16, 64, 256), "seeds": 64},
    full={"width": 2048, "widths": (16, 64, 256, 1024), "seeds": 128},
)
def linear_layers_in_time(
    dim: int = 10,
    n_train: int = 6,
    richness: tuple[float, ...] = (0.3, 1.0, 2.0),
    depths: tuple[int, ...] = (1, 2, 3),
    deepest: int = 3,
    learning_rate: float = 0.025,
    width: int = 256,
    widths: tuple[int, ...] = (16, 64),
    steps: int = 40,
    seeds: int = 32,
) -> Iterator[Curve]:
    x = np.random.default_rng(1).standard_normal((n_train + 4, dim))
    y = x[:, 0]
    data = x[:n_train], y[:n_train], x[n_train:], y[n_train:]
    for depth in depths:
        system = LinearLayersDescent(
            *data, richness[0], learning_rate, width, depth=depth, steps=steps
        )
        over, facets = {"richness": richness}, {"quantity": "path", "depth": depth}
        yield Curve("theory", linear_layers_dynamics, system, over, facets=facets)
        yield Curve("network", trained_linear_layers, system, over, seeds, facets=facets)
    system = LinearLayersDescent(*data, 1.0, learning_rate, depth=deepest, steps=steps)
    yield Curve("theory", linear_layers_dynamics, system, {}, facets={"quantity": "width"})
    for each in widths:
        facets = {"quantity": "width", "width": each}
        one = system.with_(width=each)
        yield Curve("network", trained_linear_layers, one, {}, seeds, facets=facets)
