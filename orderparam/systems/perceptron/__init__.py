"""A student perceptron that learns from a teacher perceptron: in equilibrium at a temperature, and
by learning rules.

import orderparam as op
from orderparam.systems.perceptron import OnlinePerceptron, ThermalPerceptron
from orderparam.systems.perceptron import binary_transitions, online_rule, quenched

binary_transitions(ThermalPerceptron(1.0)).thermodynamic
op.sweep(online_rule, OnlinePerceptron(1.0, "rosenblatt"), {"sample_ratio": [1, 2, 5]})
"""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.perceptron.annealed import (
        Annealed,
        WarmTransitions,
        annealed,
        high_temperature,
        high_temperature_transitions,
    )
    from orderparam.systems.perceptron.experiment import (
        Counted,
        Tempered,
        batch_student,
        enumerated_students,
        online_student,
        parallel_tempering,
    )
    from orderparam.systems.perceptron.model import (
        BatchPerceptron,
        OnlinePerceptron,
        ThermalPerceptron,
    )
    from orderparam.systems.perceptron.rules import OnlineError, RuleError, batch_rule, online_rule
    from orderparam.systems.perceptron.theory import (
        BinaryTransitions,
        Learner,
        Quenched,
        binary_transitions,
        quenched,
    )

# axis labels of this topic's quantities: words and symbol
LABELS = {
    "mistakes": ("fraction of mistakes in training", ""),
}

__all__ = exported(globals())
