"""A network that learns to predict the next byte of a text."""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from orderparam.core.system import System, parameter, structure

Family = Literal["lstm", "transformer"]
Scaling = Literal["standard", "mean-field"]
HEAD = 8  # units of one head of attention
BLOCKS = 2  # blocks of a transformer


class LanguageTraining(System):
    r"""A network of width w that learns to predict the next byte of a text.

    Both families read windows of `context` bytes and give the logarithms of the probabilities of
    the next byte at each position. The "lstm" has one layer of w cells. The "transformer" has two
    blocks, each of which consists of causal attention with heads of eight units and of a hidden
    layer with 4 w units. Its values are normalised before attention and hidden layer, and the
    embedding of positions is learned.

    The loss is the mean of $-\ln p$ in nats. Adam makes `epochs` passes over the first `n_train`
    bytes of the text. In the parametrisation "mean-field" the learning rate of all matrices between
    units, and of the read-out, is `learning_rate` * 16 / w. In the parametrisation "standard" all
    weights have the same learning rate. At w = 16 the two parametrisations agree. The read-out
    starts at zero in both of them.

    `orderparam.data.text.numbered_bytes` makes the training text and the test text from a corpus.

    Source: Hochreiter and Schmidhuber (1997); Vaswani et al. (2017); Yang et al. (2022) for the
    rates.

    >>> system = LanguageTraining([0, 1] * 300, [0, 1] * 80, 2, n_train=600)
    >>> system.steps, float(system.operations)
    (1, 18978816.0)
    """

    text: Num[Array, "byte"] = parameter("numbers of the bytes of the training text", minimum=0)
    test_text: Num[Array, "test_byte"] = parameter("the same of the test text", minimum=0)
    symbols: int = structure("number of different bytes", minimum=2, maximum=256)
    width: float = parameter("w, units of a layer", minimum=8, default=16)
    n_train: float = parameter("bytes D of the text that are used", minimum=1, default=131_072)
    learning_rate: float = parameter("largest learning rate of Adam", above=0, default=0.01)
    epochs: float = parameter("passes over these bytes", above=0, default=1)
    family: Family = structure("kind of network", default="transformer")
    parametrisation: Scaling = structure("learning rates of wide layers", default="mean-field")
    context: int = structure("bytes of a window", minimum=2, default=64)
    batch: int = structure("windows of a step", minimum=1, default=8)

    def __check_init__(self) -> None:
        if isinstance(self.text, jax.core.Tracer):
            return
        for name in ("text", "test_text"):
            numbers = np.asarray(getattr(self, name))
            if np.any(numbers != np.round(numbers)):
                raise ValueError(f"LanguageTraining.{name}: the numbers of bytes must be integers")
            if np.max(numbers) >= self.symbols:
                raise ValueError(
                    f"LanguageTraining.{name} has the number {np.max(numbers):.3g}: must be below "
                    f"symbols = {self.symbols}"
                )
            if len(numbers) <= self.context:
                raise ValueError(
                    f"LanguageTraining.{name} has {len(numbers)} bytes: must have more than "
                    f"context = {self.context}"
                )
        if np.any(np.asarray(self.n_train) > len(self.text)):
            raise ValueError(
                f"LanguageTraining.n_train = {self.n_train}: the text has {len(self.text)} bytes"
            )

    @property
    def steps(self) -> int:
        """Number of steps of Adam. Raises `ValueError` where n_train or epochs is an array, for
        which no one number of steps exists."""
        for name in ("n_train", "epochs"):
            if np.ndim(getattr(self, name)) > 0:
                raise ValueError(f"LanguageTraining.{name} is an array: steps need one number")
        return max(1, round(float(self.n_train * self.epochs) / (self.batch * self.context)))

    @property
    def parameters(self) -> Float[Array, ""]:
        """Number N of parameters without those of the embedding and of the positions."""
        width, out = jnp.asarray(self.width, float), self.symbols
        if self.family == "lstm":
            return 8 * width**2 + 4 * width + (width + 1) * out
        return 12 * BLOCKS * width**2 + (width + 1) * out

    @property
    def operations(self) -> Float[Array, ""]:
        """Estimated number of floating-point operations of training: 6 N for each byte, times the
        number of bytes that are read."""
        return 6 * self.parameters * self.steps * self.batch * self.context
