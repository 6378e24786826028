"""A perceptron that learns from a teacher perceptron, and a small network that learns to classify
pictures.
"""

from typing import Any, Self

import jax
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.system import System, parameter
from orderparam.data import load

# ------------------------------------------------------------------------------------------------
# A perceptron that learns from a teacher perceptron.


class PerceptronLearning(System):
    r"""A perceptron that learns from the labels of a teacher perceptron.

    The training set holds $n = \alpha d$ inputs $x \sim N(0, I)$ in d = `input_dim` dimensions,
    with $\alpha$ = `sample_ratio`. Their labels are $y = \mathrm{sign}(w_0 \cdot x)$, where $w_0$
    are the teacher's weights; there is no threshold. The error of a student is the probability of a
    wrong sign on a new input, $\arccos(R)/\pi$ with R the cosine of the angle between student and
    teacher. `confidence` is the probability with which a bound holds.
    """

    sample_ratio: float = parameter("examples per dimension alpha = n/d", above=0)
    input_dim: float = parameter(
        "input dimension d, of bounds and experiments", minimum=2, integer=True, default=50
    )
    confidence: float = parameter(
        "probability with which a bound holds", above=0, below=1, default=0.95
    )


# ------------------------------------------------------------------------------------------------
# A small network that learns to classify pictures.


class ImageClassifier(System):
    r"""A network with two hidden relu layers that classifies pictures. It is trained on the first
    `n_train` of them and tested on the others.

    $$ \Delta w \leftarrow \mu\, \Delta w - \eta\, (\nabla \ell + \gamma w), \qquad
       w \leftarrow w + \Delta w $$

    is one step of SGD with $\ell$ the mean cross entropy of a batch and $\eta$ = `learning_rate`.
    Plain SGD has $\mu = \gamma = 0$. Regularised training has $\mu$ = `momentum` and $\gamma$ =
    `weight_decay`. The preparation of an adversarial start (see `bad_minima`) has $\mu$ =
    `momentum` and $\gamma = 0$; `copies` and `dropped` define its training examples.

    Raises:
        ValueError: if `n_train` leaves no example for testing.
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
        "momentum of regularised training and of memorisation", minimum=0, below=1, default=0.9
    )
    weight_decay: float = parameter("weight decay of regularised training", minimum=0, default=2e-3)
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
                f"{type(self).__name__}.n_train = {float(np.max(self.n_train)):g}: must leave some "
                f"of the {len(self.inputs)} examples for testing"
            )

    @classmethod
    def of(cls, data: str, examples: int, **fields: Any) -> Self:
        """A system made of the first examples of a data set of `orderparam.data.load`, in a fixed
        random order.

        Args:
            data: name of the data set.
            examples: number of examples that are taken, for training and testing together.
            fields: the other fields of the system.
        """
        dataset = load(data)
        chosen = np.random.default_rng(0).permutation(len(dataset.labels))[:examples]
        return cls(dataset.inputs[chosen], dataset.labels[chosen], **fields)
