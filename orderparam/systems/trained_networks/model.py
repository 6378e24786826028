"""The system of trained networks: a network that learns a training set by gradient descent and is
inspected when its training error has fallen to given levels."""

from itertools import pairwise

from jaxtyping import Array, Float

from orderparam.core.system import System, parameter, part, structure
from orderparam.networks.architecture import Architecture, of_width
from orderparam.networks.dense import Nonlinearity
from orderparam.networks.layer import Layer


class InspectedTraining(System):
    r"""A network of any architecture that learns a training set by gradient descent.

    The output is $f(x) = [g_\theta(x) - g_{\theta_0}(x)] / (\gamma \sqrt N)$, where g is the
    network in ntk scaling, N the number of units (channels) of its last hidden layer, and $\gamma$
    the `richness`: training is lazy for small $\gamma$ and rich for $\gamma$ of order 1. All
    parameters are trained on $\frac1n \sum_\mu (y_\mu - f_\mu)^2$. The learning rate is such that a
    step changes the outputs by `learning_rate` times the residual along the largest eigenvalue of
    the tangent kernel at the start. The network is inspected at the start, where the training error
    is 1 in units of the mean of $y^2$, and when it has first fallen to each of the `levels` below
    1.

    Raises `ValueError` for an architecture that is not in ntk scaling or has no hidden layer, and
    for levels that do not decrease or do not lie above 0 and at most at 1.
    """

    inputs: Float[Array, "train *input"] = parameter("training inputs")
    targets: Float[Array, "train"] = parameter("their targets")
    test_inputs: Float[Array, "test *input"] = parameter("inputs at which outputs are compared")
    test_targets: Float[Array, "test"] = parameter("their targets")
    architecture: Architecture = part(
        "one output, ntk scaling; where it leaves widths open, `width` fills them"
    )
    width: int = parameter(
        "width of the hidden layers of an experiment", minimum=1, integer=True, default=64
    )
    richness: float = parameter("richness gamma", above=0, default=0.1)
    learning_rate: float = parameter(
        "part of the residual that a first step takes away at most", above=0, maximum=1, default=0.1
    )
    levels: tuple[float, ...] = structure(
        "training errors over the mean square of the targets; 1 alone for the start",
        default=(0.5, 0.1),
    )
    steps: int = structure("largest number of steps", minimum=1, default=20_000)

    def __check_init__(self) -> None:
        if self.architecture.scaling != "ntk":
            raise ValueError(
                f"InspectedTraining.architecture has scaling {self.architecture.scaling!r}: must "
                "be 'ntk'"
            )
        if not hidden(self.architecture):
            raise ValueError("InspectedTraining.architecture has no hidden layer: must have one")
        below = (1.0, *self.below(), 0.0)
        falling = all(a > b for a, b in pairwise(below))
        if not self.levels or not falling or self.levels[0] > 1 or 1.0 in self.levels[1:]:
            raise ValueError(
                f"InspectedTraining.levels = {self.levels}: must fall, between 1 and 0"
            )

    def below(self) -> tuple[float, ...]:
        """The levels below 1, which are reached by training."""
        return tuple(level for level in self.levels if level < 1)

    def network(self) -> Architecture:
        """The architecture with all widths filled in."""
        return of_width(self.architecture, self.size("width"))


def hidden(architecture: Architecture) -> tuple[tuple[Layer, ...], ...]:
    """The layers up to and including its activation, for each hidden layer."""
    layers = architecture.layers.layers
    ends = [i + 1 for i, layer in enumerate(layers) if isinstance(layer, Nonlinearity)]
    return tuple(layers[:end] for end in ends)
