"""The named figure of learning rules: from all examples at once, and from one at a time."""

import numpy as np

from orderparam.core.study import Curve, study
from orderparam.plotting import Panel
from orderparam.systems.perceptron.equilibrium.model import ThermalPerceptron
from orderparam.systems.perceptron.equilibrium.theory import quenched
from orderparam.systems.perceptron.rules.experiment import batch_student, online_student
from orderparam.systems.perceptron.rules.model import BatchPerceptron, OnlinePerceptron
from orderparam.systems.perceptron.rules.theory import batch_rule, online_rule

BATCH = ("hebb", "pseudo-inverse", "maximal stability")
ONLINE = ("hebb", "rosenblatt", "adaline", "optimal")


@study(
    "perceptron-rules",
    title="Rules by which a perceptron learns from a teacher, from all examples at once and one at a time",
    source="Opper, Kinzel, Kleinz, Nehl 1990; Kinouchi, Caticha 1992; Watkin, Rau, Biehl 1993",
    seconds=(50, 900),
    observables=("teacher_overlap", "classification_error"),
    full={"input_dim": 400, "stream_dim": 10_000, "seeds": 16, "batch_ratios": (0.25, 0.5, 1.5, 2.0, 3.0, 4.0, 6.0)},
    columns=2,
    panels=[
        Panel("sample_ratio", "classification_error", by="rule", log="xy", where={"part": part}, title=title)
        for part, title in (("batch", "all examples at once"), ("online", "each example once"))
    ],
    caption=r"""
        $y=\mathrm{{sign}}(w_0\cdot x)$. $N$ = {input_dim} (left) and {stream_dim} (right, learning rate {rate}).
        Grey: a student drawn from all those without errors.
    """,
)
def perceptron_rules(
    batch_ratios: tuple[float, ...] = (0.5, 2.0, 4.0),
    online_ratios: tuple[float, ...] = (0.3, 1.0, 3.0, 10.0),
    rate: float = 0.5,
    input_dim: int = 100,
    stream_dim: int = 1000,
    seeds: int = 8,
) -> list[Curve]:
    curves: list[Curve] = []
    system: BatchPerceptron | OnlinePerceptron
    for part, rules, ratios in (("batch", BATCH, batch_ratios), ("online", ONLINE, online_ratios)):
        fine = {"sample_ratio": tuple(np.geomspace(min(ratios) / 2, 1.5 * max(ratios), 80).tolist())}
        sphere = ThermalPerceptron(1.0, 0.0, "spherical")
        curves += [Curve("without errors", quenched, sphere, fine, facets={"part": part}, baseline=True)]
        for rule in rules:
            facets, over = {"part": part, "rule": rule}, {"sample_ratio": ratios}
            if part == "batch":
                system, predict, run = BatchPerceptron(1.0, rule, input_dim), batch_rule, batch_student
            else:
                system, predict, run = OnlinePerceptron(1.0, rule, rate, stream_dim), online_rule, online_student
            curves.append(Curve("theory", predict, system, fine, facets=facets))
            curves.append(Curve("student", run, system, over, seeds, facets=facets))
    return curves
