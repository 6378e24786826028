"""A perceptron that learns from a perceptron."""

from orderparam.core.system import System, parameter


class PerceptronLearning(System):
    """n = sample_ratio d examples x ~ N(0, I) in d dimensions with the labels sign(w_0 . x) of a teacher; no threshold.

    A student's error is the probability of a wrong sign, (1/pi) arccos of its overlap with the teacher.
    """

    sample_ratio: float = parameter("examples per dimension alpha = n/d", above=0)
    input_dim: float = parameter("input dimension d, of bounds and experiments", minimum=2, integer=True, default=50)
    confidence: float = parameter("probability with which a bound holds", above=0, below=1, default=0.95)
