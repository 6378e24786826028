"""A classifier with two hidden layers on given examples, by regression on one-hot targets."""

from jaxtyping import Array, Float

from orderparam.core.fields import parameter
from orderparam.core.system import System


class Classifier(System):
    """A network with two hidden layers of `width` relu units.

    Inputs have a norm of about sqrt(input). In units of the prior all weights are N(0, 1): h_1 =
    W_1 x / sqrt(input), h_2 = sqrt(2/width) W_2 phi(h_1) and f = sqrt(1/(chi width)) A phi(h_2);
    temperature T/chi. So the infinitely wide network is the same for all chi. chi: strength of
    adaptation, as in `TwoLayerNetwork.scaling`: 1 standard, ~ width mean-field; training turns lazy
    for chi -> 0, where a small change of the weights suffices (Chizat, Oyallon, Bach 2019).
    """

    inputs: Float[Array, "train input"] = parameter("training inputs")
    targets: Float[Array, "train class"] = parameter("their one-hot targets")
    test_inputs: Float[Array, "test input"] = parameter("test inputs")
    test_targets: Float[Array, "test class"] = parameter("their one-hot targets")
    width: float = parameter("units of each hidden layer", minimum=1, integer=True, default=200)
    chi: float = parameter(
        "strength of adaptation: read-out variance 1/chi, temperature T/chi", above=0, default=1.0
    )
    temperature: float = parameter("temperature T in the standard scaling", above=0, default=0.01)
