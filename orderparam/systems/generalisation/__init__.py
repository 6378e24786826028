"""Generalisation: worst-case bounds, typical learning curves, and global minima that do not
generalise.

import orderparam as op
from orderparam.systems.generalisation import PerceptronLearning, typical
from orderparam.systems.generalisation import uniform_bound, worst_consistent

system = PerceptronLearning(sample_ratio=5.0)
typical(system, learner="Bayes").error
worst_consistent(system).error
uniform_bound(system).error
"""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.generalisation.experiment import (
        Learned,
        sampled_students,
        trained_student,
        worst_student,
    )
    from orderparam.systems.generalisation.image_experiment import (
        ARMS,
        Arms,
        Trained,
        bad_minima,
        trained_network,
    )
    from orderparam.systems.generalisation.model import ImageClassifier, PerceptronLearning
    from orderparam.systems.generalisation.theory import (
        Bound,
        Typical,
        counting_bound,
        typical,
        uniform_bound,
        worst_consistent,
    )

# axis labels of this topic's quantities: words and symbol
LABELS = {
    "copies": ("copies of every mode", "m"),
}

__all__ = exported(globals())
