"""Features in time: a network with one hidden layer that learns a training set.

As the number N of hidden units grows at a fixed richness, the units become independent particles,
which move in the field of their own mean output. Training is lazy at small richness: the tangent
kernel stays fixed. At large richness it learns features.
"""

from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.system import System, parameter, structure
from orderparam.gaussian.activations import activation, activation_names
from orderparam.gaussian.base import Activation

Scalar = Float[Array, ""]


class FeatureDescent(System):
    r"""A network with one hidden layer that learns a training set by gradient descent.

    The output is $f(x) = \frac{1}{\gamma N} \sum_i a_i \phi(h_i(x))$ with $h_i = w_i \cdot x/\sqrt
    D$ and inputs x of dimension D; all weights are N(0, 1) at the start. With $\Delta = y - f$ and
    $K = x \cdot x'/D$ a step on the loss $\frac12 \sum_\mu (y_\mu - f_\mu)^2$ is

    $$ h_i \leftarrow h_i + \eta_h a_i \sum_\mu \phi'(h_{i\mu}) \Delta_\mu K_\mu, \qquad
       a_i \leftarrow a_i + \eta_a \sum_\mu \phi(h_{i\mu}) \Delta_\mu $$

    `parametrisation` determines $\gamma$, $\eta_h$ and $\eta_a$, with $\eta$ the `learning_rate`
    and N the `width`:

    - mean-field: $\gamma$ = `richness`, $\eta_h = \eta_a = \eta\gamma$, independent of the width;
    - ntk: $\gamma = N^{-1/2}$, $\eta_h = \eta_a = \eta\gamma$;
    - standard, in which the entries of the two layers are of the usual sizes $1/\sqrt D$ and
      $1/\sqrt N$, with one rate for both layers: $\gamma = N^{-1/2}$, $\eta_h = \eta D/\sqrt N$,
      $\eta_a = \eta \sqrt N$.

    The start is antisymmetric: units come in pairs (a, h) and (-a, h), so that f = 0. `ValueError`
    is raised for shapes that do not fit, and for an odd width.
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
        """gamma, eta_h and eta_a at the learning rate, or at `rate` if it is given."""
        eta = self.learning_rate if rate is None else rate
        root = jnp.sqrt(jnp.asarray(self.width, float))
        if self.parametrisation == "standard":
            return 1 / root, eta * self.inputs.shape[1] / root, eta * root
        gamma = jnp.asarray(self.richness) if self.parametrisation == "mean-field" else 1 / root
        return gamma, eta * gamma, eta * gamma


class LinearLayersDescent(System):
    r"""A linear network with several hidden layers that learns a training set by gradient descent.

    The fields are $h^1 = W^1 x/\sqrt D$ and $h^l = W^l h^{l-1}/\sqrt N$ for the layers l = 2 to L
    (`depth`), and the output is $f = w \cdot h^L/(\gamma N)$; all weights are N(0, 1) at the start.
    On the loss $\frac12 \sum_\mu (y_\mu - f_\mu)^2$ a step changes all weights $\theta$ by
    $\eta \gamma^2 N \sum_\mu (y_\mu - f_\mu)\, \partial f_\mu/\partial\theta$, with `richness`
    $\gamma$.

    With one hidden layer this is `FeatureDescent` with linear units. `ValueError` is raised for
    shapes that do not fit.
    """

    inputs: Float[Array, "train input"] = parameter("training inputs")
    targets: Float[Array, "train"] = parameter("their targets")
    test_inputs: Float[Array, "test input"] = parameter("inputs at which the error is measured")
    test_targets: Float[Array, "test"] = parameter("their targets")
    richness: float = parameter("richness gamma", above=0, default=1.0)
    learning_rate: float = parameter(
        "learning rate eta, for the summed loss", above=0, default=0.05
    )
    width: int = parameter(
        "units N in a hidden layer of an experiment", minimum=1, integer=True, default=256
    )
    depth: int = structure("number L of hidden layers", minimum=1, maximum=8, default=2)
    steps: int = structure("number of steps", minimum=1, default=20)


class QuadraticDescent(System):
    r"""A network of quadratic units that learns a training set, lazily or by moving its kernel.

    The output is $f(x) = \frac{\kappa}{N} \sum_i \phi(w_i \cdot x) - f_0(x)$ with $\phi(h) = h +
    \epsilon h^2/2$, where $f_0$ is the sum at the start, so that f = 0 there. The entries of all
    $w_i$ are $N(0, \sigma^2)$ at the start (`start_variance` $\sigma^2$). Only the $w_i$ are
    trained, on the mean loss $\frac{1}{2P} \sum_\mu (f_\mu - y_\mu)^2$ of the P examples:

    $$ w_i \leftarrow w_i + \frac{\eta}{\kappa P} \sum_\mu \phi'(w_i \cdot x_\mu)\, (y_\mu -
       f_\mu)\, x_\mu $$

    At large `laziness` $\kappa$ the weights hardly move and the tangent kernel stays fixed. Errors
    are recorded at the start and at `records` numbers of steps with equal ratios. `ValueError` is
    raised for shapes that do not fit.
    """

    inputs: Float[Array, "train input"] = parameter("training inputs")
    targets: Float[Array, "train"] = parameter("their targets")
    test_inputs: Float[Array, "test input"] = parameter("inputs at which the error is measured")
    test_targets: Float[Array, "test"] = parameter("their targets")
    laziness: float = parameter("scale kappa of the output", above=0, default=4.0)
    curvature: float = parameter("coefficient epsilon of the units", default=0.3)
    start_variance: float = parameter(
        "variance sigma^2 of the weights at the start", minimum=0, default=0.05
    )
    learning_rate: float = parameter("learning rate eta, for the mean loss", above=0, default=0.2)
    width: int = parameter("hidden units N of an experiment", minimum=1, integer=True, default=200)
    steps: int = structure("number of steps", minimum=1, default=1000)
    records: int = structure("about how many numbers of steps are recorded", minimum=2, default=40)

    @property
    def recorded(self) -> np.ndarray:
        """The numbers of steps at which errors are recorded, from 0 on."""
        later = np.unique(np.geomspace(1, self.steps, self.records).round().astype(int))
        return np.concatenate([[0], later])
