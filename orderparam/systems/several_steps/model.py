"""The systems of several giant gradient steps of a first layer.

Inputs are x ~ N(0, I_d), and labels are y = g(z) + sqrt(noise) N(0, 1) with z the projections of x
on r orthonormal teacher directions. The rows w of the first layer start uniformly on the unit
sphere and take steps on batches of n = sample_ratio d examples,

    w <- w + step (1/n) sum_mu y_mu sigma'(w.x_mu + bias) x_mu,

which is gradient descent on the correlation loss -y f. (The square loss has the same steps as long
as the network's output is small compared with the label.) With a read-out f = a.sigma(W x + bias)/p
and learning rate eta for the mean loss, step = eta a_j / p: a neuron with a negative read-out has a
negative step. For the square loss (y - f)^2/2 the residual y - f takes the place of the label.
"""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.system import System, parameter, structure
from orderparam.gaussian import Activation, activation, activation_names
from orderparam.gaussian.target import Target
from orderparam.gaussian.target import target as find_target

_LARGEST_DIMENSION = 3


class SeveralSteps(System):
    """A first layer that takes `steps` giant steps, each on a batch of sample_ratio * input_dim
    examples.

    target: formula in z1, z2, z3 (or z), see `orderparam.gaussian.target`. A target of one
        direction may have kinks; a target of several directions must be smooth. activation: any
        continuous one. Other targets and activations raise a `ValueError`.
    """

    sample_ratio: float = parameter("examples of a batch per dimension", above=0, default=4.0)
    step: float = parameter("step size s times the sign of the read-out", default=1.0)
    bias: float = parameter("bias of the neurons", default=0.0)
    noise: float = parameter("variance of the label noise", minimum=0, default=0.0)
    input_dim: int = parameter(
        "input dimension d of an experiment", minimum=4, integer=True, default=256
    )
    target: str = structure("target g, a formula", default="z1 + z1*z2")
    activation: Activation = structure(
        "activation sigma", convert=activation, choices=activation_names, default="relu"
    )
    steps: int = structure("number of steps", minimum=1, default=4)

    def __check_init__(self) -> None:
        teacher = self.teacher
        if teacher.dimension > _LARGEST_DIMENSION:
            raise ValueError(
                f"SeveralSteps.target = {self.target!r}: has more than {_LARGEST_DIMENSION} "
                "directions"
            )
        if teacher.dimension > 1 and teacher.switches:
            raise ValueError(
                f"SeveralSteps.target = {self.target!r}: with several directions it must be smooth"
            )
        with jax.ensure_compile_time_eval():
            sides = [
                np.asarray(self.activation(np.array([kink - 1e-9, kink + 1e-9])))
                for kink in self.activation.kinks
            ]
        if any(abs(right - left) > 1e-6 for left, right in sides):
            raise ValueError(
                f"SeveralSteps.activation = {self.activation.name!r}: must be continuous, to have "
                "a gradient"
            )

    @property
    def teacher(self) -> Target:
        return find_target(self.target)

    @property
    def batch(self) -> int:
        """Number of examples in a batch of an experiment."""
        return max(1, round(float(self.sample_ratio) * int(self.input_dim)))


class GiantLayer(System):
    r"""A layer whose neurons take giant steps on fresh batches, each with its own step and bias.

    Inputs $x \sim N(0, 1_d)$, labels $y = f^*(z) + \sqrt\Delta\, \xi$ as in `SeveralSteps`; the
    rows of W start orthonormal and orthogonal to the teacher. On batches of n = `sample_ratio` * d
    examples

    $$ w_j \leftarrow w_j + \frac{s_j}{n} \sum_\mu e_\mu\, \sigma'(h_{j\mu} + b_j)\, x_\mu $$

    with $e = y$ for the correlation loss and $e = y - F$, $F = \frac{1}{\sqrt p} \sum_j
    \mathrm{sign}(s_j)\, \sigma(h_j + b_j)$, for the square loss of p neurons. After each step a
    read-out with a constant is fitted to fresh examples by least squares.
    """

    step: Float[Array, "neuron"] = parameter("steps s_j, with the signs of the read-outs")
    bias: Float[Array, "neuron"] = parameter("biases b_j")
    sample_ratio: float = parameter("examples of a batch per dimension", above=0, default=8.0)
    noise: float = parameter("variance Delta of the label noise", minimum=0, default=0.0)
    input_dim: int = parameter(
        "input dimension d of an experiment", minimum=4, integer=True, default=400
    )
    target: str = structure("target f*, a formula", default="z1 + z1*z2 + z2*z3/2")
    activation: Activation = structure(
        "activation sigma, smooth",
        convert=activation,
        choices=activation_names,
        default="erf_scaled",
    )
    loss: Literal["correlation", "square"] = structure("loss", default="correlation")
    steps: int = structure("number of steps", minimum=1, default=4)

    def __check_init__(self) -> None:
        if self.teacher.dimension > _LARGEST_DIMENSION:
            raise ValueError(
                f"GiantLayer.target = {self.target!r}: has more than {_LARGEST_DIMENSION} "
                "directions"
            )
        if self.activation.kinks:
            raise ValueError(f"GiantLayer.activation = {self.activation.name!r}: must be smooth")

    @property
    def teacher(self) -> Target:
        return find_target(self.target)

    def residual(
        self, fields: Float[Array, "sample neuron"], label: Float[Array, "sample"]
    ) -> Array:
        """The factor e of every example, computed from its fields and its label."""
        if self.loss == "correlation":
            return label
        sign = jnp.sign(self.step) / jnp.sqrt(len(self.step))
        return label - self.activation(fields + self.bias) @ sign
