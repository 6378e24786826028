"""A student perceptron that learns from a perceptron: at a temperature, or by a rule."""

from typing import Literal

from orderparam.core.system import System, parameter, structure

# ------------------------------------------------------------------------------------------------
# A student perceptron at a temperature, taught by a perceptron of the same kind.


class ThermalPerceptron(System):
    """N weights w, labels y = sign(w0.x) of n = alpha N Gaussian inputs, and students of
    probability exp(-(errors of w)/T) / Z.

    Weights are +-1 (binary) or of length sqrt(N) (spherical), those of the teacher w0 alike. R =
    w.w0/N is the overlap with the teacher, q that of two students; the error on a new input is
    arccos(R)/pi. T = 0: students without errors, all alike.
    """

    sample_ratio: float = parameter("samples per dimension alpha = n/N", above=0)
    temperature: float = parameter("temperature T of the number of errors", minimum=0, default=0.0)
    weights: Literal["binary", "spherical"] = structure("law of the weights", default="binary")
    input_dim: float = parameter(
        "number N of weights in a run", minimum=3, integer=True, default=63
    )


# ------------------------------------------------------------------------------------------------
# A student perceptron that learns from a teacher by a rule.

BatchRule = Literal["hebb", "pseudo-inverse", "maximal stability"]
OnlineRule = Literal["hebb", "rosenblatt", "adaline", "optimal"]


class BatchPerceptron(System):
    """A student of all n = alpha N examples, labels y = sign(w0.x) of Gaussian inputs x ~ N(0,
    I/N).

    hebb: w = sum y x. pseudo-inverse: least squares of y, of minimal length where that leaves a
    choice. maximal stability: the largest smallest margin y w.x / |w|. Overlap R: the cosine of the
    angle between student and teacher.
    """

    sample_ratio: float = parameter("samples per dimension alpha = n/N", above=0)
    rule: BatchRule = structure("learning rule", default="hebb")
    input_dim: float = parameter(
        "number N of weights in a run", minimum=3, integer=True, default=400
    )


class OnlinePerceptron(System):
    """A student that sees each of alpha N examples once: w <- w + f y x, x ~ N(0, I/N), y =
    sign(w0.x), from w = 0.

    With the margin k = y w.x and Q = |w|^2/N:  hebb f = rate; rosenblatt f = rate where k < 0, 0
    elsewhere; adaline f = rate (1 - k); optimal: the mean and the variance V of the weights are
    kept, f = V g(1, k, V), dV = -V^2 E g^2 (Opper 1996; the bound of Kinouchi and Caticha 1992).
    """

    sample_ratio: float = parameter("samples per dimension alpha = n/N", above=0)
    rule: OnlineRule = structure("learning rule", default="optimal")
    rate: float = parameter("learning rate (not of the optimal rule)", above=0, default=1.0)
    input_dim: float = parameter(
        "number N of weights in a run", minimum=3, integer=True, default=1000
    )
