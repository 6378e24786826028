"""A student perceptron at a temperature, taught by a perceptron of the same kind."""

from typing import Literal

from orderparam.core.system import System, parameter, structure


class ThermalPerceptron(System):
    """N weights w, labels y = sign(w0.x) of n = alpha N Gaussian inputs, and students of probability exp(-(errors of w)/T) / Z.

    Weights are +-1 (binary) or of length sqrt(N) (spherical), those of the teacher w0 alike. R = w.w0/N is the overlap with the
    teacher, q that of two students; the error on a new input is arccos(R)/pi. T = 0: students without errors, all alike.
    """

    sample_ratio: float = parameter("samples per dimension alpha = n/N", above=0)
    temperature: float = parameter("temperature T of the number of errors", minimum=0, default=0.0)
    weights: Literal["binary", "spherical"] = structure("law of the weights", default="binary")
    input_dim: float = parameter("number N of weights in a run", minimum=3, integer=True, default=63)
