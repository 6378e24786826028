"""Every theory of generalisation."""

import numpy as np
from checks import checks

from orderparam.systems.generalisation import ImageClassifier, PerceptronLearning

PICTURES = np.random.default_rng(0).uniform(size=(12, 9))
SYSTEMS = [PerceptronLearning(3.0), ImageClassifier(PICTURES, np.arange(12) % 10, n_train=8)]
globals().update(checks("generalisation", SYSTEMS))
