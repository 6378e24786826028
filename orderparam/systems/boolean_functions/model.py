"""Boolean functions: networks trained on some inputs, and the signs that they give the others."""

from typing import Literal

from jaxtyping import Array, Float

from orderparam.core.system import System, parameter, part, structure
from orderparam.networks.architecture import Architecture


class BooleanTraining(System):
    r"""Networks that fit labels $\pm1$ on a few inputs; their signs on the others are a function.

    Networks are drawn from the prior and trained by gradient descent on the loss $\frac12 \sum
    (y - f)^2$ until it is fitted, all layers or the read-out alone. Learning rates are in units of
    the inverse of the largest eigenvalue of the kernel of infinite width. Functions are the patterns
    of signs on the test inputs, the last of which changes fastest, -1 before 1.

    Raises `ValueError` for more than ten test inputs, and for an architecture that is not in ntk
    scaling.
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
    networks: int = structure("networks of one run of an experiment", minimum=2, default=250)
    steps: int = structure("largest number of steps", minimum=1, default=300)

    def __check_init__(self) -> None:
        if self.architecture.scaling != "ntk":
            raise ValueError(
                f"BooleanTraining.architecture has scaling {self.architecture.scaling!r}: must be 'ntk'"
            )
        if len(self.test_inputs) > 10:
            raise ValueError(
                f"BooleanTraining.test_inputs has {len(self.test_inputs)} rows: must have at most "
                "10, as there are two to their number functions"
            )
