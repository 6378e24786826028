"""A classifier with two hidden layers on given examples, trained by regression on one-hot
targets."""

from jaxtyping import Array, Float

from orderparam.core.fields import parameter
from orderparam.core.system import System


class Classifier(System):
    r"""A classifier with two hidden layers of relu units, on given examples with one-hot targets.

    $$ h_1 = \frac{1}{\sqrt d} W_1 x, \qquad h_2 = \sqrt{2/N}\, W_2\, \phi(h_1), \qquad
       f = \frac{1}{\sqrt{\chi N}} A\, \phi(h_2) $$

    with N = `width`, d the input dimension, all weights N(0, 1) at the prior, and the temperature
    `temperature` / $\chi$, so that the infinitely wide network is the same for all `chi`. `chi` is
    the strength of adaptation, as in `TwoLayerNetwork.scaling`: 1 is the standard scaling, chi ~ N
    the mean-field scaling; for chi -> 0 training turns lazy, because a small change of the weights
    suffices. Inputs should have a norm of about sqrt(d).

    Source: Seroussi, Naveh, Ringel (2023); Chizat, Oyallon, Bach (2019).

    >>> Classifier(np.eye(3), np.eye(3), np.eye(3), np.eye(3), width=8).inputs.shape
    (3, 3)
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
