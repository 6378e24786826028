"""A student perceptron that learns from a teacher perceptron: in equilibrium at a temperature, or
by a learning rule.
"""

from typing import Literal

from orderparam.core.system import System, parameter, structure
from orderparam.priors.names import law

# ------------------------------------------------------------------------------------------------
# A student perceptron at a temperature, with a teacher perceptron of the same kind.


class ThermalPerceptron(System):
    r"""A student perceptron in equilibrium at a temperature, with a teacher of the same kind.

    The teacher has the weights $w_0$ and labels $n = \alpha N$ Gaussian inputs, $y =
    \mathrm{sign}(w_0 \cdot x)$, with $\alpha$ = `sample_ratio` and N = `input_dim`. The student's
    weights w have the probability

    $$ P(w) = \frac1Z\, e^{-E(w)/T}, \qquad
       E(w) = \text{number of examples that } w \text{ gets wrong} $$

    with T = `temperature`; at T = 0 all students without errors are equally likely. The option
    `weights` sets the law of the weights of both networks: entries +-1 ("binary"), or vectors of
    length $\sqrt N$ ("spherical"). $R = w \cdot w_0/N$ is the overlap of a student with the
    teacher, q is the overlap of two students on the same examples, and arccos(R)/pi is the error on
    a new input.

    Source: Györgyi (1990); Sompolinsky, Tishby, Seung (1990).
    """

    sample_ratio: float = parameter("samples per dimension alpha = n/N", above=0, default=1.0)
    temperature: float = parameter("temperature T of the number of errors", minimum=0, default=0.0)
    weights: Literal["binary", "spherical"] = structure(
        "law of the weights", convert=law("binary", "spherical"), default="binary"
    )
    input_dim: float = parameter(
        "number N of weights in a run", minimum=3, integer=True, default=63
    )


# ------------------------------------------------------------------------------------------------
# A student perceptron that learns from a teacher by a rule.

BatchRule = Literal["hebb", "pseudo-inverse", "maximal stability"]
OnlineRule = Literal["hebb", "rosenblatt", "adaline", "optimal"]


class BatchPerceptron(System):
    r"""A student perceptron that learns from all examples at once by a rule.

    A teacher with the weights $w_0$ labels $n = \alpha N$ Gaussian inputs $x \sim N(0, I/N)$, $y =
    \mathrm{sign}(w_0 \cdot x)$, with $\alpha$ = `sample_ratio` and N = `input_dim`. `rule` is
    "hebb", $w = \sum_\mu y^\mu x^\mu$; "pseudo-inverse", the shortest least-squares fit of the
    labels; or "maximal stability", the weights that maximise the smallest margin $y^\mu w \cdot
    x^\mu/|w|$ of all examples. The overlap R is the cosine of the angle between student and
    teacher.

    Source: Opper, Kinzel, Kleinz, Nehl (1990).
    """

    sample_ratio: float = parameter("samples per dimension alpha = n/N", above=0)
    rule: BatchRule = structure("learning rule", default="hebb")
    input_dim: float = parameter(
        "number N of weights in a run", minimum=3, integer=True, default=400
    )


class OnlinePerceptron(System):
    r"""A student perceptron that sees each example once and learns by a rule.

    $$ w \leftarrow w + f\, y\, x, \qquad y = \mathrm{sign}(w_0 \cdot x), \quad x \sim N(0, I/N) $$

    for $\alpha N$ examples, from w = 0, with $\alpha$ = `sample_ratio` and N = `input_dim`. With
    the margin $k = y\, w \cdot x$ and $\eta$ = `rate`, `rule` is "hebb", $f = \eta$; "rosenblatt",
    $f = \eta$ where $k \le 0$, else 0; "adaline", $f = \eta (1 - k)$; or "optimal". The optimal
    rule keeps the mean w and the variance V of the teacher's weights given the examples so far, and
    has

    $$ f = V g, \qquad \frac{dV}{d\alpha} = -V^2 E g^2, \qquad
       g = \partial_k \ln \Phi\Big( \frac{k}{\sqrt V} \Big) $$

    where $\Phi(k/\sqrt V)$ is the likelihood of the label and V = 1 at the start.

    Source: Kinzel, Rujan (1990); Biehl, Schwarze (1992); Opper (1996) for the optimal rule, which
    reaches the bound of Kinouchi, Caticha (1992).
    """

    sample_ratio: float = parameter("samples per dimension alpha = n/N", above=0)
    rule: OnlineRule = structure("learning rule", default="optimal")
    rate: float = parameter("learning rate (not of the optimal rule)", above=0, default=1.0)
    input_dim: float = parameter(
        "number N of weights in a run", minimum=3, integer=True, default=1000
    )
