"""The perceptron and its teacher: students at a temperature, and learning rules.

import orderparam as op
from orderparam.systems.perceptron import OnlinePerceptron, ThermalPerceptron, binary_transitions, online_rule, quenched

binary_transitions(ThermalPerceptron(1.0)).thermodynamic
op.sweep(online_rule, OnlinePerceptron(1.0, "rosenblatt"), {"sample_ratio": [1, 2, 5]})
"""

from orderparam.systems.perceptron.equilibrium.experiment import Counted, Tempered, enumerated_students, parallel_tempering
from orderparam.systems.perceptron.equilibrium.model import ThermalPerceptron
from orderparam.systems.perceptron.equilibrium.theory import (
    Annealed,
    BinaryTransitions,
    Learner,
    Quenched,
    WarmTransitions,
    annealed,
    binary_transitions,
    high_temperature,
    high_temperature_transitions,
    quenched,
)
from orderparam.systems.perceptron.rules.experiment import batch_student, online_student
from orderparam.systems.perceptron.rules.model import BatchPerceptron, OnlinePerceptron
from orderparam.systems.perceptron.rules.theory import OnlineError, RuleError, batch_rule, online_rule
