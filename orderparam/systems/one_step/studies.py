"""The named figures of one giant gradient step."""

from functools import partial

import numpy as np

from orderparam.core.study import Curve, study
from orderparam.losses import RealLabels, SignLabels
from orderparam.systems.one_step.experiment import learn_after_step, learn_spiked
from orderparam.systems.one_step.experiment_spectrum import measured_spectrum
from orderparam.systems.one_step.figures import draw_batch_sizes, draw_groups, draw_learning_curves, draw_spectra
from orderparam.systems.one_step.model import OneStep, SpikedFeatures
from orderparam.systems.one_step.theory.first_step import best_linear, no_step_asymptotics, one_step_asymptotics
from orderparam.systems.one_step.theory.isotropic import spiked_asymptotics
from orderparam.systems.one_step.theory.spectrum import FeatureMatrix, feature_spectrum


def _between(values: tuple[float, ...], points: int) -> list[float]:
    return list(np.unique(np.append(np.geomspace(min(values), max(values), points), values).round(12)))


@study(
    "one-step-batch-size",
    title="One large gradient step on enough examples beats every fixed kernel",
    source="Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro 2024 (arXiv:2402.04980); Ba et al. 2022 (arXiv:2205.01445)",
    draw=draw_batch_sizes,
    seconds=(70, 6000),
    observables=("test_error", "train_error", "spike_overlap", "effective_share"),
    full={"input_dim": 1000, "batch_ratios": (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0), "seeds": 16},
)
def one_step_batch_size(
    input_dim: int = 250,
    batch_ratios: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 8.0, 64.0),
    sample_ratio: float = 2.0,
    width_ratio: float = 1.0,
    seeds: int = 8,
) -> list[Curve]:
    problems = {
        "tanh target": OneStep(
            sample_ratio, width_ratio, 1.0, 1.0, ridge=0.01, activation="tanh", labels=RealLabels("tanh"), input_dim=input_dim
        ),
        "sign target": OneStep(
            sample_ratio, width_ratio, 1.0, 3.0, ridge=0.1, activation="tanh", labels=SignLabels(), input_dim=input_dim
        ),
    }
    curves = []
    for panel, system in problems.items():
        fine = {"batch_ratio": _between(batch_ratios, 40)}
        ends = {"batch_ratio": [min(batch_ratios), max(batch_ratios)]}
        run = partial(learn_after_step, test_points=3000)
        curves += [
            Curve(f"one step, {panel}", one_step_asymptotics, system, fine, panel=panel),
            Curve(f"no step, {panel}", no_step_asymptotics, system, ends, panel=f"{panel}, limits"),
            Curve(f"best linear, {panel}", best_linear, system, ends, panel=f"{panel}, limits"),
            Curve(f"measured, {panel}", run, system, {"batch_ratio": batch_ratios}, seeds, panel=panel),
        ]
    return curves


@study(
    "one-step-spectrum",
    title="The spectrum of the features before and after one gradient step",
    source="Dandi, Pesce, Cui, Krzakala, Lu, Loureiro 2024 (arXiv:2410.18938); Moniri et al. 2023 (arXiv:2310.07891)",
    draw=draw_spectra,
    seconds=(40, 1200),
    observables=("edge", "mean_eigenvalue"),
    full={"input_dim": 2000, "seeds": 10, "bins": 60},
)
def one_step_spectrum(
    input_dim: int = 500,
    sample_ratio: float = 2.0,
    width_ratio: float = 1.0,
    batch_ratio: float = 8.0,
    step: float = 3.0,
    bins: int = 36,
    seeds: int = 6,
) -> list[Curve]:
    learner = OneStep(
        sample_ratio, width_ratio, batch_ratio, step, ridge=0.1, activation="tanh", labels=SignLabels(), input_dim=input_dim
    )
    curves = []
    for panel, trained in (("before", False), ("after", True)):
        system = FeatureMatrix(learner, trained, bins, 5e-3, 6.0)
        curves += [
            Curve(f"theory, {panel}", feature_spectrum, system, {}, panel=panel),
            Curve(f"measured, {panel}", measured_spectrum, system, {}, seeds, panel=panel),
        ]
    return curves


@study(
    "one-step-learning-curve",
    title="Learning curves of the read-out after one gradient step, square and logistic loss",
    source="Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro 2024 (arXiv:2402.04980)",
    draw=draw_learning_curves,
    seconds=(100, 4000),
    observables=("classification_error", "train_loss", "teacher_overlap"),
    full={"input_dim": 600, "sample_ratios": (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0), "seeds": 16, "points": 40},
)
def one_step_learning_curve(
    input_dim: int = 150,
    sample_ratios: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0),
    width_ratio: float = 1.0,
    batch_ratio: float = 4.0,
    step: float = 3.0,
    ridge: float = 0.05,
    seeds: int = 5,
    points: int = 7,
) -> list[Curve]:
    curves = []
    for loss in ("square", "logistic"):
        system = OneStep(
            1.0,
            width_ratio,
            batch_ratio,
            step,
            ridge=ridge,
            activation="tanh",
            labels=SignLabels(),
            loss=loss,
            input_dim=input_dim,
        )
        panel = f"{loss} loss"
        fine = {"sample_ratio": _between(sample_ratios, points)}
        run = partial(learn_after_step, test_points=2000)
        curves += [
            Curve(f"one step, {panel}", one_step_asymptotics, system, fine, panel=panel),
            Curve(f"no step, {panel}", no_step_asymptotics, system, {"sample_ratio": sample_ratios}, panel=f"{panel}, no step"),
            Curve(f"measured, {panel}", run, system, {"sample_ratio": sample_ratios}, seeds, panel=panel),
        ]
    return curves


@study(
    "one-step-groups",
    title="What the signs of the read-out during the step are good for: relu features learn |z| only with both",
    source="Dandi, Pesce, Cui, Krzakala, Lu, Loureiro 2024 (arXiv:2410.18938)",
    draw=draw_groups,
    seconds=(60, 2500),
    observables=("test_error", "train_error", "effective_share"),
    full={"input_dim": 1000, "sample_ratios": (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0), "seeds": 16},
)
def one_step_groups(
    input_dim: int = 300,
    sample_ratios: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0),
    width_ratio: float = 1.0,
    overlap: float = 0.9,
    spike: float = 1.5,
    ridge: float = 0.1,
    noise: float = 0.01,
    seeds: int = 8,
) -> list[Curve]:
    labels = RealLabels("abs", noise)
    curves = []
    for panel, spikes in (("no spike", (0.0,)), ("one sign", (spike,)), ("both signs", (spike, -spike))):
        system = SpikedFeatures(
            1.0, width_ratio, overlap, spikes, ridge=ridge, activation="relu", labels=labels, input_dim=input_dim
        )
        curves += [
            Curve(f"theory, {panel}", spiked_asymptotics, system, {"sample_ratio": _between(sample_ratios, 25)}, panel=panel),
            Curve(f"measured, {panel}", learn_spiked, system, {"sample_ratio": sample_ratios}, seeds, panel=panel),
        ]
    return curves
