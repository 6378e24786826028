"""A perceptron that learns from a perceptron, and a small network that learns to tell pictures
apart.
"""

from typing import Any, Self

import jax
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.system import System, parameter
from orderparam.data import load

# ------------------------------------------------------------------------------------------------
# A perceptron that learns from a perceptron.


class PerceptronLearning(System):
    """n = sample_ratio d examples x ~ N(0, I) in d dimensions with the labels sign(w_0 . x) of a
    teacher; no threshold.

    A student's error is the probability of a wrong sign, (1/pi) arccos of its overlap with the
    teacher.
    """

    sample_ratio: float = parameter("examples per dimension alpha = n/d", above=0)
    input_dim: float = parameter(
        "input dimension d, of bounds and experiments", minimum=2, integer=True, default=50
    )
    confidence: float = parameter(
        "probability with which a bound holds", above=0, below=1, default=0.95
    )


# ------------------------------------------------------------------------------------------------
# A small network that learns to tell pictures apart.


class ImageClassifier(System):
    """A network of two hidden relu layers on pictures; the first `n_train` are for training, the
    others for testing.

    SGD: w <- w - learning_rate g + momentum (last change), g the gradient of the mean cross entropy
    of a batch plus weight_decay w. copies, dropped: what an adversarial start is prepared with, see
    `bad_minima`.
    """

    inputs: Float[Array, "example pixel"] = parameter("pictures, one in each row")
    labels: Float[Array, "example"] = parameter(
        "their classes, 0 to 9", minimum=0, maximum=9, integer=True
    )
    n_train: float = parameter("number of training examples", minimum=1, integer=True, default=500)
    width: float = parameter("width of both hidden layers", minimum=1, integer=True, default=256)
    learning_rate: float = parameter("learning rate", above=0, default=0.02)
    batch_size: float = parameter("examples in a batch", minimum=1, integer=True, default=50)
    momentum: float = parameter(
        "momentum where there is regularisation", minimum=0, below=1, default=0.9
    )
    weight_decay: float = parameter(
        "weight decay where there is regularisation", minimum=0, default=2e-3
    )
    copies: float = parameter(
        "copies of each example with random labels", minimum=1, integer=True, default=4
    )
    dropped: float = parameter(
        "share of the pixels that are blackened in the copies", minimum=0, maximum=1, default=0.2
    )

    def __check_init__(self) -> None:
        if any(isinstance(x, jax.core.Tracer) for x in (self.inputs, self.n_train)):
            return
        if np.max(self.n_train) >= len(self.inputs):
            raise ValueError(
                f"{type(self).__name__}.n_train = {float(np.max(self.n_train)):g}: must leave some of the "
                f"{len(self.inputs)} examples for testing"
            )

    @classmethod
    def of(cls, data: str, examples: int, **fields: Any) -> Self:
        """The first examples of a data set of `orderparam.data.load`, in a fixed random order."""
        dataset = load(data)
        chosen = np.random.default_rng(0).permutation(len(dataset.labels))[:examples]
        return cls(dataset.inputs[chosen], dataset.labels[chosen], **fields)
