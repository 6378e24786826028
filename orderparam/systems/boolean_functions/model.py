"""Boolean functions: networks trained on some inputs, and the signs of their outputs on the other
inputs."""

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.system import System, parameter, part, structure
from orderparam.networks.architecture import Architecture


class BooleanTraining(System):
    r"""Networks that fit labels $\pm1$ on a few inputs; the signs of the outputs on the test inputs
    define a function.

    Networks are drawn from the prior. Gradient descent trains all layers or the read-out only, for
    `steps` steps: on the `square` loss $\frac12 \sum (y - f)^2$, or on the `logistic` loss $\sum
    \ln(1 + e^{-y f})$, which is the cross entropy of two classes. A step takes all examples, or a
    `batch` of them drawn without replacement, whose gradient is multiplied by n/`batch`. Learning
    rates are in units of the inverse of the largest eigenvalue of the kernel of infinite width.
    Functions are the patterns of signs on the test inputs. In their order the last test input
    changes fastest, and -1 comes before 1.

    `ValueError` is raised for more than ten test inputs, for a batch of more examples than there
    are, and for an architecture that is not in ntk scaling.
    """

    inputs: Float[Array, "train input"] = parameter("training inputs")
    labels: Float[Array, "train"] = parameter("their labels, -1 or 1")
    test_inputs: Float[Array, "test input"] = parameter("inputs on which functions are told apart")
    architecture: Architecture = part(
        "one output, ntk scaling; where it leaves widths open, `width` fills them"
    )
    width: int = parameter(
        "width of the hidden layers of an experiment", minimum=1, integer=True, default=64
    )
    learning_rate: float = parameter(
        "learning rate, over the inverse of the largest eigenvalue of the kernel",
        above=0,
        default=0.8,
    )
    trained: Literal["all", "readout"] = structure("layers that are trained", default="all")
    loss: Literal["square", "logistic"] = structure("loss of the training", default="square")
    batch: int = structure("examples of one step; 0 takes all", minimum=0, default=0)
    networks: int = structure("networks of one run of an experiment", minimum=2, default=250)
    steps: int = structure("number of steps", minimum=1, default=300)

    def __check_init__(self) -> None:
        if self.architecture.scaling != "ntk":
            raise ValueError(
                f"BooleanTraining.architecture has scaling {self.architecture.scaling!r}: must be "
                "'ntk'"
            )
        if self.batch > len(self.labels):
            raise ValueError(
                f"BooleanTraining.batch = {self.batch}: must be at most {len(self.labels)}, the "
                "number of training inputs"
            )
        if len(self.test_inputs) > 10:
            raise ValueError(
                f"BooleanTraining.test_inputs has {len(self.test_inputs)} rows: must have at most "
                "10, as there are two to their number functions"
            )

    def slope(self, outputs: Float[Array, "train"], key: PRNGKeyArray) -> Float[Array, "train"]:
        """Derivatives of the loss with respect to the outputs on the training inputs. On a randomly
        drawn batch they are divided by the batch's share of the examples; outside it they are 0."""
        logistic = -self.labels * jax.nn.sigmoid(-self.labels * outputs)
        found = outputs - self.labels if self.loss == "square" else logistic
        if self.batch == 0:
            return found
        count = len(self.labels)
        drawn = jax.random.permutation(key, count) < self.batch
        return jnp.where(drawn, found, 0.0) * (count / self.batch)
