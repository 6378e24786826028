"""Generalisation: bounds on the worst case, what is typical, and global minima that do not generalise.

import orderparam as op
from orderparam.systems.generalisation import PerceptronLearning, typical, uniform_bound, worst_consistent

system = PerceptronLearning(sample_ratio=5.0)
typical(system, learner="Bayes").error
worst_consistent(system).error
uniform_bound(system).error
"""

from orderparam.systems.generalisation.minima.experiment import ARMS, Arms, Trained, bad_minima, trained_network
from orderparam.systems.generalisation.minima.model import ImageClassifier
from orderparam.systems.generalisation.minima.theory import counting_bound
from orderparam.systems.generalisation.perceptron.experiment import Learned, sampled_students, trained_student, worst_student
from orderparam.systems.generalisation.perceptron.model import PerceptronLearning
from orderparam.systems.generalisation.perceptron.theory import Bound, Typical, typical, uniform_bound, worst_consistent
