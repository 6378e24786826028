"""Several giant gradient steps of a first layer: the parameters.

Inputs x ~ N(0, I_d), labels y = g(z) + sqrt(noise) N(0, 1) with z the projections of x on r
orthonormal teacher directions. Rows w of the first layer start uniform on the unit sphere and take
steps on batches of n = sample_ratio d examples,

    w <- w + step (1/n) sum_mu y_mu sigma'(w.x_mu + bias) x_mu,

the gradient of the correlation loss -y f (the network's output is small beside the label). With a
read-out f = a.sigma(W x + bias)/p and learning rate eta for the mean loss, step = eta a_j / p: a
neuron with a negative read-out has a negative step. In the square loss (y - f)^2/2 the label is
replaced by y - f.
"""

import jax
import numpy as np

from orderparam.core.system import System, parameter, structure
from orderparam.gaussian import Activation, activation, activation_names
from orderparam.gaussian.target import Target
from orderparam.gaussian.target import target as find_target

_LARGEST_DIMENSION = 3


class SeveralSteps(System):
    """`steps` giant steps of a first layer, on a batch of sample_ratio * input_dim examples each.

    target: formula in z1, z2, z3 (or z), see `orderparam.gaussian.target`; of one direction it may
    have kinks, of several it must be smooth. activation: continuous. Raises `ValueError` for
    others.
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
                f"SeveralSteps.target = {self.target!r}: has more than {_LARGEST_DIMENSION} directions"
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
                f"SeveralSteps.activation = {self.activation.name!r}: must be continuous, to have a gradient"
            )

    @property
    def teacher(self) -> Target:
        return find_target(self.target)

    @property
    def batch(self) -> int:
        """Examples of a batch in an experiment."""
        return max(1, round(float(self.sample_ratio) * int(self.input_dim)))
