"""The named figures of extensive-width learning: staircase, errors and their collapse, sampled posteriors, trained students."""

from functools import partial

import numpy as np

from orderparam.core.study import Curve, study
from orderparam.gaussian.polynomials import Polynomial
from orderparam.systems.extensive_width import figures, measured_figures
from orderparam.systems.extensive_width.experiment import (
    adam_at_effective_width,
    adam_student,
    posterior_hmc,
    quadratic_posterior_hmc,
)
from orderparam.systems.extensive_width.model import (
    HierarchicalTeacher,
    QuadraticTeacher,
    WeightedTeacher,
    WidthLimitedStudent,
    gaussian_readouts,
)
from orderparam.systems.extensive_width.theory import (
    bayes_optimal,
    compressed,
    flat_hierarchy,
    informed_state,
    quadratic_bayes_optimal,
)

SOURCE = "Nguyen and Barbier 2026"


def _samples(low: float, high: float, count: int) -> list[float]:
    """Whole numbers of samples, equidistant in the logarithm."""
    return sorted({float(round(n)) for n in np.geomspace(low, high, count)})


@study(
    "feature-staircase",
    title="Features are learned one after the other, each by a jump of its overlap",
    source=SOURCE,
    seconds=(20, 60),
    observables=("error",),
    full={"points": 3000},
    draw=figures.draw_staircase,
)
def feature_staircase(
    input_dim: int = 200, width: int = 100, decay: float = 1.0, noise: float = 0.01, points: int = 600
) -> list[Curve]:
    system = HierarchicalTeacher(input_dim, width, decay, noise)
    over = {"n_train": _samples(0.01 * input_dim**2, 40 * input_dim**2, points)}
    return [
        Curve("Bayes-optimal", bayes_optimal, system, over),
        Curve("informed branch", informed_state, system, over),
    ]


@study(
    "bayes-error-collapse",
    title="Two power laws of the error, one law in terms of the effective width",
    source=SOURCE,
    seconds=(70, 3000),
    observables=("error",),
    full={"input_dims": (200, 2000, 20000, 2000000), "points": 120, "measured_dim": 100, "epochs": 10000, "seeds": 4},
    draw=measured_figures.draw_collapse,
)
def bayes_error_collapse(
    input_dims: tuple = (200, 20000),
    decays: tuple = (0.7, 1.0, 1.5),
    noise: float = 0.01,
    points: int = 60,
    measured_dim: int = 20,
    measured_decay: float = 1.0,
    measured_ratios: tuple = (1.0, 4.0),
    epochs: int = 2000,
    seeds: int = 2,
) -> list[Curve]:
    curves = []
    for decay in decays:
        for dim in input_dims:
            over = {"n_train": list(np.geomspace(0.02, 3e3 if decay < 1.2 else 3e4, points) * float(dim) ** 2)}
            system = HierarchicalTeacher(dim, int(dim) // 2, decay, noise)
            curves.append(Curve(f"decay {decay:g}, dimension {dim:g}", bayes_optimal, system, over, panel=f"{decay:g}"))
    measured = WidthLimitedStudent(
        HierarchicalTeacher(measured_dim, measured_dim // 2, measured_decay, noise), float(measured_dim // 2)
    )
    ns = {"teacher.n_train": [float(round(ratio * measured_dim**2)) for ratio in measured_ratios]}
    grid = {"teacher.n_train": list(np.geomspace(0.02, 3e3, points) * float(measured_dim) ** 2)}
    hmc = partial(posterior_hmc, start="partially_informed", draws=150)
    adam = partial(adam_at_effective_width, epochs=epochs)
    return [
        *curves,
        Curve(f"dimension {measured_dim}, theory", compressed, measured, grid, panel="measured"),
        Curve("HMC", hmc, measured, ns, seeds, panel="measured"),
        Curve("Adam, width $k_c$", adam, measured, ns, seeds, batch_seeds=True, panel="measured"),
    ]


@study(
    "posterior-sampling",
    title="Error and overlaps of sampled posteriors on top of the theory",
    source=f"{SOURCE}, figure with decay 0.3",
    seconds=(95, 90000),
    observables=("error", "effective_width"),
    full={"input_dim": 200, "width": 100, "warmup": 300, "draws": 400, "seeds": 8, "ratios": tuple(np.arange(1, 11) * 0.3)},
    draw=measured_figures.draw_posterior,
)
def posterior_sampling(
    input_dim: int = 28,
    width: int = 14,
    decay: float = 0.3,
    noise: float = 0.04,
    ratios: tuple = (0.5, 1.0, 1.7, 2.5),
    warmup: int = 100,
    draws: int = 150,
    seeds: int = 2,
) -> list[Curve]:
    system = HierarchicalTeacher(input_dim, width, decay, noise)
    grid = {"n_train": _samples(0.02 * input_dim**2, 3.0 * input_dim**2, 240)}
    measured = [float(round(a * input_dim**2)) for a in ratios]
    hmc = partial(posterior_hmc, warmup=warmup, draws=draws)
    return [
        Curve("Bayes-optimal", bayes_optimal, system, grid),
        Curve("informed branch", informed_state, system, grid),
        Curve("HMC, learned features informed", partial(hmc, start="partially_informed"), system, {"n_train": measured}, seeds),
        Curve("HMC, uninformed", partial(hmc, start="uninformed"), system, {"n_train": measured[-1:]}, 1),
    ]


@study(
    "quadratic-specialisation",
    title="A quadratic component: one collective state, out of which features specialise",
    source="Barbier, Camilli, Nguyen, Pastore and Skerk 2025, Statistical mechanics of extensive-width Bayesian neural networks",
    seconds=(95, 40000),
    observables=("error", "quadratic_overlap"),
    full={"input_dim": 150, "width": 76, "ratios": (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0), "draws": 400, "seeds": 6, "points": 120},
    draw=measured_figures.draw_quadratic,
)
def quadratic_specialisation(
    input_dim: int = 16,
    width: int = 8,
    noise: float = 1.25,
    ratios: tuple = (2.0, 6.0),
    draws: int = 80,
    seeds: int = 2,
    points: int = 16,
) -> list[Curve]:
    mixed = Polynomial((-(0.5**0.5), -0.5, 0.5**0.5, 1 / 6))  # He_2 / sqrt(2) + He_3 / 6
    laws = {"homogeneous": (1.0,), "Rademacher": (1.0, -1.0), "Gaussian": gaussian_readouts(width - width % 2)}
    curves = []
    for name, values in laws.items():
        system = QuadraticTeacher(input_dim, width - width % 2, noise, 1000.0, mixed, values)
        grid = {"n_train": _samples(0.3 * input_dim**2, 9.0 * input_dim**2, points)}
        measured = {"n_train": [float(round(a * input_dim**2)) for a in ratios]}
        curves.append(Curve(f"theory, {name}", quadratic_bayes_optimal, system, grid, panel=name))
        hmc = partial(quadratic_posterior_hmc, draws=draws, leapfrog_steps=20)
        last = {"n_train": measured["n_train"][-1:]}
        curves += [
            Curve(f"HMC, informed, {name}", partial(hmc, start="informed"), system, measured, seeds, panel=name),
            Curve(f"HMC, uninformed, {name}", partial(hmc, start="uninformed"), system, last, 1, panel=name),
        ]
    return curves


@study(
    "student-training",
    title="A student as narrow as what the data resolve ends below the full-width one",
    source=f"{SOURCE}, figure of errors against epochs",
    seconds=(40, 6000),
    observables=("error",),
    full={"input_dim": 200, "width": 100, "epochs": 10000, "seeds": 9},
    draw=measured_figures.draw_training,
)
def student_training(
    input_dim: int = 32,
    width: int = 16,
    ratio: float = 1.0,
    decay: float = 1.0,
    noise: float = 0.01,
    epochs: int = 4000,
    seeds: int = 3,
) -> list[Curve]:
    teacher = HierarchicalTeacher(input_dim, width, decay, noise, round(ratio * input_dim**2))
    resolved = max(1.0, float(bayes_optimal(teacher).effective_width))
    student, trained = WidthLimitedStudent(teacher, width), partial(adam_student, epochs=epochs)
    widths = sorted({float(width), resolved, max(1.0, float(round(0.7 * resolved)))}, reverse=True)
    return [
        Curve("best possible", compressed, student, {"width": widths}),
        Curve("Adam", trained, student, {"width": widths}, seeds, batch_seeds=True),
    ]


@study(
    "student-width",
    title="Knowledge transfer: the best student is about as wide as the features its data resolve",
    source=f"{SOURCE}, experiments with Adam",
    seconds=(80, 40000),
    observables=("error",),
    full={
        "input_dim": 200, "width": 100, "epochs": 10000, "seeds": 9,
        "widths": (5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100), "ratios": (1.0, 2.0, 3.0, 5.0, 10.0),
    },
    draw=measured_figures.draw_student_width,
)  # fmt: skip
def student_width(
    input_dim: int = 32,
    width: int = 16,
    widths: tuple = (2, 4, 6, 9, 12, 16),
    ratios: tuple = (1.0, 2.0, 6.0),
    decay: float = 1.0,
    noise: float = 0.01,
    epochs: int = 2000,
    seeds: int = 3,
) -> list[Curve]:
    curves = []
    for ratio in ratios:
        teacher = HierarchicalTeacher(input_dim, width, decay, noise, round(ratio * input_dim**2))
        student = WidthLimitedStudent(teacher, width)
        panel = f"{ratio:g}"
        every = {"width": [float(p) for p in range(1, width + 1)]}
        some = {"width": [float(p) for p in widths]}
        trained = partial(adam_student, epochs=epochs)
        curves += [
            Curve(f"best possible, n/d² = {ratio:g}", compressed, student, every, panel=panel),
            Curve(f"Adam, n/d² = {ratio:g}", trained, student, some, seeds, batch_seeds=True, panel=panel),
        ]
    return curves


@study(
    "student-scaling",
    title="Students of full and of effective width against the Bayes-optimal error",
    source=f"{SOURCE}, figure with decay 1",
    seconds=(100, 60000),
    observables=("error",),
    full={"input_dim": 200, "width": 100, "ratios": (2.0, 70.0), "points": 21, "epochs": 10000, "seeds": 9},
    draw=measured_figures.draw_student_scaling,
)
def student_scaling(
    input_dim: int = 32,
    width: int = 16,
    decay: float = 1.0,
    noise: float = 0.01,
    ratios: tuple = (0.5, 16.0),
    points: int = 5,
    epochs: int = 2000,
    seeds: int = 3,
) -> list[Curve]:
    teacher = HierarchicalTeacher(input_dim, width, decay, noise)
    student = WidthLimitedStudent(teacher, width)
    low, high = (ratio * input_dim**2 for ratio in ratios)
    grid = {"teacher.n_train": _samples(low / 2, 2 * high, 120)}
    ns = _samples(low, high, points)
    partly = [n for n in ns if float(bayes_optimal(teacher.with_(n_train=n)).effective_width) < width]
    wide, every = partial(adam_student, epochs=epochs), {"teacher.n_train": ns}
    curves = [
        Curve("Bayes-optimal", compressed, student, grid),
        Curve("Adam, full width", wide, student, every, seeds, batch_seeds=True),
    ]
    for label, fraction in (("Adam, width $k_c$", 1.0), ("Adam, width $k_c$/2", 0.5)):
        trained = partial(adam_at_effective_width, fraction=fraction, epochs=epochs)
        over = {"teacher.n_train": partly} if fraction == 1.0 else every
        curves.append(Curve(label, trained, student, over, seeds, batch_seeds=True))
    return curves


@study(
    "effective-model",
    title="The learned features alone, with the rest as noise, have the same posterior",
    source=f"{SOURCE}, effective model",
    seconds=(80, 20000),
    observables=("error",),
    full={"input_dim": 200, "width": 100, "warmup": 300, "draws": 400, "seeds": 8},
    draw=measured_figures.draw_effective_model,
)
def effective_model(
    input_dim: int = 32,
    width: int = 16,
    decay: float = 0.8,
    noise: float = 0.01,
    ratio: float = 1.0,
    warmup: int = 100,
    draws: int = 200,
    seeds: int = 3,
) -> list[Curve]:
    teacher = HierarchicalTeacher(input_dim, width, decay, noise, round(ratio * input_dim**2))
    resolved = max(1.0, float(bayes_optimal(teacher).effective_width))
    full, effective = (WidthLimitedStudent(teacher, p) for p in (float(width), resolved))
    hmc = partial(posterior_hmc, start="partially_informed", warmup=warmup, draws=draws)
    return [
        Curve("theory", compressed, full, {"width": [float(width), resolved]}),
        Curve("HMC, whole model", hmc, full, {"width": [float(width)]}, seeds),
        Curve("HMC, effective model", hmc, effective, {"width": [resolved]}, seeds),
    ]


@study(
    "collective-transition",
    title="Read-outs of similar size: many features learned at once",
    source="derived for this package from the free entropy of Nguyen and Barbier 2026",
    seconds=(40, 120),
    observables=("error",),
    full={"points": 400, "resolution": 80},
    draw=figures.draw_collective,
)
def collective(
    width_ratio: float = 0.5, noise: float = 0.01, decay: float = 0.3, points: int = 120, resolution: int = 32
) -> list[Curve]:
    dim = 400
    limit = HierarchicalTeacher(dim, round(width_ratio * dim), decay, noise)
    grid = {"n_train": [float(a) * dim**2 for a in np.linspace(0.4, 1.2, points)]}
    diagram = {"decay": list(np.linspace(0.02, 0.48, resolution)), "noise": list(np.geomspace(0.002, 0.3, resolution))}
    return [
        Curve("infinite dimension", flat_hierarchy, limit, grid),
        Curve("dimension 400, Bayes-optimal", bayes_optimal, limit, grid),
        Curve("dimension 400, informed branch", informed_state, limit, grid),
        Curve("order of the transition", flat_hierarchy, limit, diagram, panel="diagram"),
    ]


@study(
    "readout-laws",
    title="Overlaps of all features for flat, power-law and exponential read-outs",
    source=f"{SOURCE}, appendix figures",
    seconds=(40, 60),
    observables=("error",),
    draw=figures.draw_readout_laws,
)
def readout_laws(
    input_dim: int = 200, width: int = 100, noise: float = 0.04, ratios: tuple = (0.5, 1.0, 1.5, 2.0)
) -> list[Curve]:
    rank = np.arange(width)
    laws = {
        "power law 0.4": (rank + 1.0) ** -0.4,
        "power law 0.7": (rank + 1.0) ** -0.7,
        "linear 2.5 to 1": np.linspace(2.5, 1.0, width),
        "exp(-i/20)": np.exp(-rank / 20),
        "exp(-i/5)": np.exp(-rank / 5),
    }
    over = {"n_train": [ratio * input_dim**2 for ratio in ratios]}
    return [
        Curve(name, bayes_optimal, WeightedTeacher(input_dim, v / np.linalg.norm(v), noise), over, panel=name)
        for name, v in laws.items()
    ]
