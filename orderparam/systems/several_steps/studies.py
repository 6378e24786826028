"""The named figures of several giant steps."""

from functools import partial

import numpy as np

from orderparam.core.study import Curve, study
from orderparam.systems.several_steps.experiment import correlation_steps, square_loss_steps
from orderparam.systems.several_steps.figures import draw_directions, draw_reuse, draw_staircase
from orderparam.systems.several_steps.model import SeveralSteps
from orderparam.systems.several_steps.theory import fresh_batches, reused_batch

# target, activation, bias, step
_STAIRS = (
    ("z1/3 + 2*z1*z2/3", "relu", 0.0, 3.0),
    ("z1 + z1*z2 + z1*z2*z3", "erf", 1.0, 2.0),
    ("z1 + He3(z2)/sqrt(6)", "relu", 0.5, 2.0),
)
_CUBIC = "He3(z)/sqrt(6)"


@study(
    "giant-steps-staircase",
    title="Several giant steps learn a hierarchy of directions, one step after another",
    source="Dandi, Krzakala, Loureiro, Pesce, Stephan 2023 (arXiv:2305.18270); Abbe, Boix-Adsera, Misiakiewicz 2022",
    draw=draw_staircase,
    seconds=(60, 1800),
    observables=("overlap",),
    full={"input_dim": 1024, "repeats": 16, "seeds": 32},
)
def giant_steps_staircase(
    input_dim: int = 256, sample_ratio: float = 8.0, steps: int = 5, neurons: int = 64, repeats: int = 4, seeds: int = 12
) -> list[Curve]:
    curves = []
    for target, activation, bias, step in _STAIRS:
        system = SeveralSteps(sample_ratio, step, bias, 0.0, input_dim, target, activation, steps)
        over = {"step": (step,)}
        run = partial(correlation_steps, neurons=neurons, repeats=repeats)
        curves.append(Curve(f"recursion, {target}", fresh_batches, system, over, panel=target))
        curves.append(Curve(f"correlation loss, {target}", run, system, over, seeds, panel=target))
        square = partial(square_loss_steps, neurons=4 * neurons)
        curves.append(Curve(f"square loss, {target}", square, system, over, seeds, panel=f"square loss, {target}"))
    return curves


@study(
    "giant-steps-batch-reuse",
    title="A batch that is used twice shows what fresh batches hide: the information exponent is broken",
    source="Dandi, Troiani, Arnaboldi, Pesce, Zdeborova, Krzakala 2024 (arXiv:2402.03220)",
    draw=draw_reuse,
    seconds=(70, 1500),
    observables=("overlap",),
    full={"dimensions": (50, 100, 200, 400, 800), "repeats": 400, "seeds": 24},
)
def giant_steps_batch_reuse(
    step_sizes: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0),
    sample_ratio: float = 4.0,
    step: float = 4.0,
    dimensions: tuple[int, ...] = (50, 100, 200),
    input_dim: int = 100,
    activation: str = "relu",
    neurons: int = 32,
    repeats: int = 50,
    seeds: int = 12,
) -> list[Curve]:
    system = SeveralSteps(sample_ratio, step, 0.0, 0.0, input_dim, _CUBIC, activation, 2)
    grid = list(np.linspace(0.0, max(step_sizes), 33))
    curves = []
    for label, reuse, theory in (("same batch", True, reused_batch), ("fresh batches", False, fresh_batches)):
        run = partial(correlation_steps, reuse=reuse, neurons=neurons, repeats=repeats)
        for name, values, line in (("step", step_sizes, grid), ("size", dimensions, dimensions)):
            field, panel = ("step" if name == "step" else "input_dim"), f"{label}, {name}"
            curves.append(Curve(f"d to infinity, {panel}", theory, system, {field: line}, panel=panel))
            curves.append(Curve(f"measured, {panel}", run, system, {field: values}, seeds, panel=panel))
    return curves


@study(
    "giant-steps-directions",
    title="Where neurons point after several giant steps: close to the first one, or apart in the teacher's plane",
    source="Dandi, Krzakala, Loureiro, Pesce, Stephan 2023 (arXiv:2305.18270)",
    draw=draw_directions,
    seconds=(20, 900),
    observables=("cosine_squared",),
    full={"input_dim": 4096, "sample_ratio": 1.0, "neurons": 1024, "seeds": 2},
)
def giant_steps_directions(
    input_dim: int = 512, sample_ratio: float = 4.0, step: float = 2.0, steps: int = 6, neurons: int = 256, seeds: int = 4
) -> list[Curve]:
    curves = []
    for target in ("2*z1 + z1**2/2 + z2/2", "(z1 + z1**2 + z2 - z2**2)/2"):
        system = SeveralSteps(sample_ratio, step, 0.0, 0.0, input_dim, target, "relu", steps)
        run = partial(square_loss_steps, neurons=neurons)
        curves.append(Curve(f"square loss, y = {target}", run, system, {"step": (step,)}, seeds, panel=target))
    return curves
