"""The named figures of features in time."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from orderparam.comparison import Curve, study
from orderparam.plotting import Panel
from orderparam.systems.features_in_time.experiment import trained_features, tuned_network
from orderparam.systems.features_in_time.model import FeatureDescent
from orderparam.systems.features_in_time.theory import best_rate, particle_dynamics


def single_index(dim: int, n_train: int, n_test: int) -> tuple[np.ndarray, ...]:
    """Gaussian inputs and targets sin(2 x_1) for training and test, the same in every run."""
    x = np.random.default_rng(0).standard_normal((n_train + n_test, dim))
    y = np.sin(2 * x[:, 0])
    return x[:n_train], y[:n_train], x[n_train:], y[n_train:]


def _marked(data: xr.Dataset, name: str) -> xr.DataArray:
    """Values along the steps: all steps of a theory, for a line; about twelve of a measurement, for
    marks."""
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
    title="The theory of infinite width holds on given data from lazy to rich training; networks follow it step by step",
    source="Mei, Montanari, Nguyen 2018 (arXiv:1804.06561); Bordelon, Pehlevan 2022 (arXiv:2205.09653)",
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
        Networks with one hidden layer of erf units learn {n_train} examples of $\sin(2x_1)$ in {dim} dimensions by gradient
        descent with rate {learning_rate}, from a start with $f = 0$; {n_test} test inputs. $\gamma$: richness of the
        mean-field parametrisation. Lines: infinite width, with {samples} pairs of particles at Sobol points in each of 4
        runs. Marks: networks of {width} units. Last panel: networks of several widths at $\gamma$ = {rich}.
    """,
    seconds=(60, 600),
    observables=("test_error", "train_error", "kernel_drift"),
    explained="Networks of finite width differ from the particles; narrow ones most, and most where the error is nearly zero.",
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
    title="The best learning rate tends to a constant in two parametrisations; in the standard one it falls nearly as 1/N",
    source="Yang, Hu 2021 (arXiv:2011.14522); Yang et al. 2022 (arXiv:2203.03466); the curves are derived here",
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
        Networks with one hidden layer of erf units learn {n_train} examples of $\sin(2x_1)$ in {dim} dimensions in {steps} steps
        of gradient descent. Shown is the learning rate with the smallest training error after the last step. Lines: infinitely
        many particles at the scales of each parametrisation. Marks: networks of N units, each trained with all rates.
    """,
    seconds=(40, 300),
    observables=("best_rate",),
    explained=(
        "Networks of finite width differ from infinitely many particles, the less the wider they are. "
        "Control with 96 networks (48 of 512 units): the best rates of 32, 128 and 512 units lie 12.1(16), "
        "5.2(12) and 1.6(12) % below the theory in the standard parametrisation, 3.5(14), 2.9(10) and 1.0(8) % "
        "above it in the mean-field one."
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
