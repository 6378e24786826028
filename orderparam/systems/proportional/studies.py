"""The named figures of the room: what finite width does to Bayesian networks on a fixed training set."""

from functools import partial
from typing import Any

import numpy as np

from orderparam.core.study import Curve, study
from orderparam.systems.proportional.experiment import langevin, posterior, sampled_similarity
from orderparam.systems.proportional.figures import (
    LOSSES,
    draw_architectures,
    draw_depth,
    draw_importance,
    draw_order,
    draw_priors,
    draw_similarity,
    draw_temperature,
)
from orderparam.systems.proportional.model import Convolutional, FullyConnected, LocallyConnected
from orderparam.systems.proportional.tasks import as_images, dense, flat, image_data, patch_teacher
from orderparam.systems.proportional.theory import finite_width, infinite_width, similarity
from orderparam.systems.proportional.theory.recursion import Closure

_PACELLI = "Pacelli, Ariosto, Pastore, Ginelli, Gherardi, Rotondo 2023"
_BAGLIONI = "Baglioni, Pacelli, Aiudi, Di Renzo, Vezzani, Burioni, Rotondo 2024"
_AIUDI = "Aiudi, Pacelli, Baglioni, Vezzani, Burioni, Rotondo 2025"


def _sampler(samples: int) -> Any:
    return partial(posterior, samples=samples)


def _line(least: float, most: float, points: int = 25) -> list[float]:
    return [float(x) for x in np.geomspace(least, most, points)]


@study(
    "finite-width-depth",
    title="Train and test loss against the width of Bayesian networks with one to three layers",
    source=_PACELLI,
    draw=draw_depth,
    seconds=(130, 7200),
    observables=LOSSES,
    full={
        "data": "mnist",
        "n_train": 500,
        "n_test": 1000,
        "measured_widths": (50, 100, 200, 500, 1000),
        "samples": 500,
        "seeds": 4,
    },
)
def finite_width_depth(
    data: str = "digits",
    n_train: int = 40,
    n_test: int = 100,
    temperature: float = 0.1,
    depths: tuple[int, ...] = (1, 2, 3),
    measured_widths: tuple[int, ...] = (20, 80),
    samples: int = 120,
    seeds: int = 2,
) -> list[Curve]:
    system = dense(data, n_train, n_test, width=100, temperature=temperature)
    widths = _line(min(measured_widths) / 2, 2000, 12)
    curves = []
    for depth in depths:
        deep, panel = system.with_(depth=depth), f"depth {depth}"
        curves += [
            Curve(f"nested, {panel}", partial(finite_width, closure="nested"), deep, {"width": widths}, panel=panel),
            Curve(f"infinite width, {panel}", infinite_width, deep, {"width": widths}, panel=panel),
        ]
        others: tuple[Closure, ...] = ("common", "linear") if depth > 1 else ()  # at depth one there is one closure
        for closure in others:
            theory = partial(finite_width, closure=closure)
            curves.append(Curve(f"{closure}, {panel}", theory, deep, {"width": widths}, panel=panel))
        curves.append(Curve(f"sampled, {panel}", _sampler(samples), deep, {"width": measured_widths}, seeds=seeds, panel=panel))
    return curves


@study(
    "finite-width-temperature",
    title="Losses of a Bayesian network against its temperature, by theory, Monte Carlo and noisy gradient descent",
    source=_BAGLIONI,
    draw=draw_temperature,
    seconds=(90, 3600),
    observables=LOSSES,
    full={"data": "mnist", "n_train": 500, "n_test": 1000, "width": 500, "samples": 500, "seeds": 4, "langevin_steps": 1_000_000},
)
def finite_width_temperature(
    data: str = "digits",
    n_train: int = 40,
    n_test: int = 200,
    width: int = 40,
    measured: tuple[float, ...] = (0.01, 0.1, 1.0),
    samples: int = 250,
    seeds: int = 2,
    langevin_steps: int = 60_000,
) -> list[Curve]:
    system = dense(data, n_train, n_test, width=width, temperature=0.1)
    over = {"temperature": _line(1e-3, 10)}
    noisy = [t for t in measured if t >= 0.1]
    descent = partial(langevin, burn_in=langevin_steps // 5, samples=200, thin=max(1, langevin_steps // 200))
    return [
        Curve("finite width", finite_width, system, over),
        Curve("infinite width", infinite_width, system, over),
        Curve("Hamiltonian Monte Carlo", _sampler(samples), system, {"temperature": measured}, seeds=seeds),
        Curve("Langevin", descent, system, {"temperature": noisy}, seeds=seeds),
    ]


@study(
    "finite-width-order",
    title="The order parameter of kernel renormalisation, test and train loss against samples per hidden unit",
    source=_PACELLI,
    draw=draw_order,
    seconds=(60, 1800),
    observables=("order_parameters", "test_error", "train_error"),
    full={"n_train": 200, "n_test": 500, "measured_widths": (50, 100, 200, 400, 800), "samples": 400, "seeds": 4},
)
def finite_width_order(
    data: str = "digits",
    n_train: int = 40,
    n_test: int = 100,
    temperatures: tuple[float, ...] = (0.1, 1.0),
    measured_widths: tuple[int, ...] = (20, 40, 120),
    samples: int = 120,
    seeds: int = 4,
) -> list[Curve]:
    system = dense(data, n_train, n_test, width=100, temperature=0.1)
    curves = []
    for temperature in temperatures:
        one, panel = system.with_(temperature=temperature), f"T = {temperature:g}"
        curves += [
            Curve(f"theory, {panel}", finite_width, one, {"width": _line(5, 4000)}, panel=panel),
            Curve(f"infinite width, {panel}", infinite_width, one, {"width": [4000.0]}, panel=panel),
            Curve(f"sampled, {panel}", _sampler(samples), one, {"width": measured_widths}, seeds=seeds, panel=panel),
        ]
    return curves


@study(
    "finite-width-priors",
    title="Losses of a Bayesian network against the prior variances of its layers",
    source=_BAGLIONI,
    draw=draw_priors,
    seconds=(60, 1800),
    observables=("test_error", "train_error"),
    full={"data": "mnist", "n_train": 500, "n_test": 1000, "width": 500, "samples": 500, "seeds": 4},
)
def finite_width_priors(
    data: str = "digits",
    n_train: int = 40,
    n_test: int = 200,
    width: int = 40,
    temperature: float = 0.1,
    measured: tuple[float, ...] = (0.25, 1.0, 4.0),
    samples: int = 120,
    seeds: int = 4,
) -> list[Curve]:
    system = dense(data, n_train, n_test, width=width, temperature=temperature)
    curves = []
    for prior in ("weight_variance", "readout_variance"):
        line = {prior: _line(0.1, 10)}
        curves += [
            Curve(f"finite width, {prior}", finite_width, system, line, panel=prior),
            Curve(f"infinite width, {prior}", infinite_width, system, line, panel=prior),
            Curve(f"sampled, {prior}", _sampler(samples), system, {prior: measured}, seeds=seeds, panel=prior),
        ]
    return curves


@study(
    "finite-width-architectures",
    title="Convolutional, locally connected and fully connected networks: finite against infinite width",
    source=_AIUDI,
    draw=draw_architectures,
    seconds=(80, 3600),
    observables=LOSSES,
    full={"n_train": 200, "n_test": 1000, "measured": (10, 20, 50, 100, 400), "samples": 400, "seeds": 4},
)
def finite_width_architectures(
    n_train: int = 50,
    n_test: int = 100,
    temperature: float = 0.1,
    targets: tuple[str, ...] = ("shared", "one"),
    measured: tuple[int, ...] = (20,),
    samples: int = 150,
    seeds: int = 2,
) -> list[Curve]:
    curves = []
    grid = _line(5, 2000, 14)
    for target in targets:
        fields, panel = patch_teacher(target, n_train, n_test), f"teacher: {target}"
        systems: dict[str, tuple[Any, str]] = {
            "fully connected": (FullyConnected(**flat(fields), width=10, temperature=temperature), "width"),
            "convolutional": (Convolutional(**fields, channels=10, temperature=temperature, mask=10), "channels"),
            "locally connected": (LocallyConnected(**fields, channels=10, temperature=temperature, mask=10), "channels"),
        }
        for name, (system, axis) in systems.items():
            own = f"{name}, {panel}"
            curves += [
                Curve(f"{name}, {panel}", finite_width, system, {axis: grid}, panel=own),
                Curve(f"{name} limit, {panel}", infinite_width, system, {axis: [grid[0]]}, panel=own),
                Curve(f"{name}, sampled, {panel}", _sampler(samples), system, {axis: measured}, seeds=seeds, panel=own),
            ]
    return curves


@study(
    "local-feature-importance",
    title="The local order parameters of a convolutional network: which pairs of patches it learns to use",
    source=_AIUDI,
    draw=draw_importance,
    seconds=(60, 1200),
    observables=("order_parameters",),
    full={"n_train": 200, "n_test": 500, "samples": 500, "seeds": 4},
)
def local_feature_importance(
    n_train: int = 60, n_test: int = 50, channels: int = 20, temperature: float = 0.1, samples: int = 200, seeds: int = 2
) -> list[Curve]:
    digits, shape = image_data("digits", n_train, n_test)
    cases = {
        "shared filter": (patch_teacher("shared", n_train, n_test), 10),
        "one patch": (patch_teacher("one", n_train, n_test), 10),
        "digits, parity": (as_images(digits, shape), 4),
    }
    curves = []
    for name, (fields, mask) in cases.items():
        system, over = Convolutional(**fields, channels=channels, temperature=temperature, mask=mask), {"channels": [channels]}
        curves += [
            Curve(f"theory, {name}", finite_width, system, over, panel=name),
            Curve(f"sampled, {name}", _sampler(samples), system, over, seeds=seeds, panel=name),
        ]
    return curves


@study(
    "finite-width-similarity",
    title="Similarity matrices of the hidden layer before and after learning, of a dense and a convolutional network",
    source=_AIUDI,
    draw=draw_similarity,
    seconds=(60, 2400),
    observables=("prior_alignment", "posterior_alignment"),
    full={"n_train": 200, "width": 100, "samples": 300, "seeds": 4},
)
def finite_width_similarity(
    data: str = "digits",
    n_train: int = 40,
    width: int = 30,
    temperature: float = 0.1,
    mask: int = 4,
    samples: int = 200,
    seeds: int = 2,
) -> list[Curve]:
    fields, shape = image_data(data, n_train, 10)
    images = as_images(fields, shape)
    networks: dict[str, tuple[Any, str]] = {
        "fully connected": (FullyConnected(**fields, width=width, temperature=temperature), "width"),
        "convolutional": (Convolutional(**images, channels=width, temperature=temperature, mask=mask), "channels"),
    }
    curves = []
    for panel, (system, axis) in networks.items():
        over, sampler = {axis: [width]}, partial(sampled_similarity, samples=samples)
        curves += [
            Curve(f"first order in 1/N, {panel}", similarity, system, over, panel=panel),
            Curve(f"sampled, {panel}", sampler, system, over, seeds=seeds, panel=panel),
        ]
    return curves
