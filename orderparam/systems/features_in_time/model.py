"""Features in time: a network with one hidden layer that learns a training set.

As N grows at a fixed richness its hidden units become independent particles, which move in the
field of their own mean output. Small richness is lazy, large richness is rich.
"""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.system import System, parameter, structure
from orderparam.gaussian.activations import activation, activation_names
from orderparam.gaussian.base import Activation

Scalar = Float[Array, ""]


class FeatureDescent(System):
    r"""A network with one hidden layer that learns a training set by gradient descent.

    $f(x) = \frac{1}{\gamma N} \sum_i a_i \phi(h_i(x))$ with $h_i = w_i \cdot x/\sqrt D$ and all
    weights N(0, 1). On the loss $\frac12 \sum_\mu (y_\mu - f_\mu)^2$ a step is, with $\Delta = y -
    f$ and $K = x \cdot x'/D$,

    $$ h_i \leftarrow h_i + \eta_h a_i \sum_\mu \phi'(h_{i\mu}) \Delta_\mu K_\mu, \qquad
       a_i \leftarrow a_i + \eta_a \sum_\mu \phi(h_{i\mu}) \Delta_\mu $$

    `parametrisation` determines $\gamma$, $\eta_h$ and $\eta_a$, with $\eta$ the `learning_rate`
    and N the `width`:

    - mean-field: $\gamma$ = `richness`, $\eta_h = \eta_a = \eta\gamma$, at every width;
    - ntk: $\gamma = N^{-1/2}$, $\eta_h = \eta_a = \eta\gamma$;
    - standard, the usual layers with entries $1/\sqrt D$ and $1/\sqrt N$ and one rate for both:
      $\gamma = N^{-1/2}$, $\eta_h = \eta D/\sqrt N$, $\eta_a = \eta \sqrt N$.

    The start is antisymmetric: units come in pairs (a, h) and (-a, h), so that f = 0. Raises
    `ValueError` for shapes that do not fit, and for an odd width.
    """

    inputs: Float[Array, "train input"] = parameter("training inputs")
    targets: Float[Array, "train"] = parameter("their targets")
    test_inputs: Float[Array, "test input"] = parameter("inputs at which the error is measured")
    test_targets: Float[Array, "test"] = parameter("their targets")
    richness: float = parameter(
        "richness gamma of the mean-field parametrisation", above=0, default=1.0
    )
    learning_rate: float = parameter("learning rate eta, for the summed loss", above=0, default=0.1)
    width: int = parameter(
        "hidden units N of an experiment, and of the rates", minimum=2, integer=True, default=256
    )
    activation: Activation = structure(
        "nonlinearity", convert=activation, choices=activation_names, default="erf"
    )
    parametrisation: Literal["mean-field", "ntk", "standard"] = structure(
        "how output and rates depend on the width", default="mean-field"
    )
    steps: int = structure("number of steps", minimum=1, default=40)

    def scales(self, rate: Scalar | float | None = None) -> tuple[Scalar, Scalar, Scalar]:
        """gamma, and the rates of hidden units and of read-outs; `rate` replaces the learning
        rate."""
        eta = self.learning_rate if rate is None else rate
        root = jnp.sqrt(jnp.asarray(self.width, float))
        if self.parametrisation == "standard":
            return 1 / root, eta * self.inputs.shape[1] / root, eta * root
        gamma = jnp.asarray(self.richness) if self.parametrisation == "mean-field" else 1 / root
        return gamma, eta * gamma, eta * gamma
