"""Prediction of the next byte from counts of contexts, without a network."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from orderparam.core.needs import between
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.systems.language_models.model import LanguageTraining

Scalar = Float[Array, ""]


class LanguageLoss(Result):
    """Loss of a prediction of the next byte, in nats.

    Fields:
        test_loss: mean of -ln p over the bytes of the test windows.
        position_loss: mean of -ln p at each position of a window, that is, after 1, 2 .. bytes of
            context.
        parameters: number N of parameters without embedding and positions.
        operations: estimated number of floating-point operations, 6 N times the number of bytes
            read.
        converged: whether the loss is finite.
    """

    test_loss: Scalar
    position_loss: Float[Array, "position"]
    parameters: Scalar
    operations: Scalar
    converged: Bool[Array, ""]


def gathered_windows(
    text: Int[Array, "byte"], starts: Int[Array, "window"], context: int
) -> Int[Array, "window byte"]:
    """Windows of `context` bytes and the byte after them."""
    return text[starts[:, None] + jnp.arange(context + 1)]


def whole_windows(text: Int[Array, "byte"], context: int) -> Int[Array, "window"]:
    """First positions of windows of a text that do not overlap and are followed by a byte."""
    return jnp.arange(0, len(text) - context, context)


@theory(needs={"order": between(0, 6)})  # 256^7 numbers of contexts fit into 64 bits
def counted_contexts(system: LanguageTraining, *, order: int = 4) -> LanguageLoss:
    r"""Loss of the prediction from counts of the last bytes, in contexts of 0 to `order` bytes.

    With $n(h c)$ the number of times that the byte c follows the bytes h in the first `n_train`
    bytes, and $T(h)$ the number of different bytes that follow h,

    $$ p(c | h) = \frac{n(h c) + T(h)\, p(c | h')}{n(h) + T(h)} , $$

    where $h'$ is h without its first byte, and the prediction without any context has the constant
    1/symbols in place of $p(c | h')$. If a context never occurred, the prediction is that of the
    shorter context. At position p of a window the context has at most p bytes.

    Args:
        order: largest number of bytes of a context, at most 6. Default 4.

    Returns:
        Losses of the counts on the windows of the test text, without sampling. `parameters` and
        `operations` are those of the network of the system, for figures that show both.

    Accuracy: exact up to rounding.

    Source: Witten and Bell (1991), method C.

    >>> text = LanguageTraining([0, 1] * 300, [0, 1] * 80, 2, n_train=600)
    >>> round(float(counted_contexts(text, order=1).test_loss), 4)
    0.0017
    """
    text, test = system.text.astype(int), system.test_text.astype(int)
    symbols, context = system.symbols, system.context
    starts = whole_windows(test, context)
    windows = gathered_windows(test, starts, context)
    position = jnp.arange(context)
    guess = jnp.full((len(starts), context), 1 / symbols)
    for length in range(order + 1):
        after, total, kinds = _counts(text, system.n_train, windows, length, symbols)
        mixed = (after + kinds * guess) / jnp.maximum(total + kinds, 1)
        # a shorter part of the window than `length` bytes is no context of this order
        guess = jnp.where((total > 0) & (position + 1 >= length), mixed, guess)
    losses = -jnp.log(guess).mean(0)
    return LanguageLoss(
        test_loss=losses.mean(),
        position_loss=losses,
        parameters=system.parameters,
        operations=6 * system.parameters * system.n_train * system.epochs,
        converged=jnp.isfinite(losses.mean()),
    )


def _counts(
    text: Array, n_train: Any, windows: Array, length: int, symbols: int
) -> tuple[Array, Array, Array]:
    """Counts n(h c), n(h) and T(h) at each position of each window, for contexts of `length`
    bytes."""
    powers = symbols ** jnp.arange(length, -1, -1)
    places = len(text) - length
    codes = sum(text[i : i + places] * powers[i] for i in range(length + 1))
    inside = jnp.arange(places) + length < n_train
    beyond = symbols ** (length + 1)
    codes = jnp.sort(jnp.where(inside, codes, beyond))
    new = jnp.concatenate([jnp.ones(1, bool), codes[1:] != codes[:-1]])
    kinds = jnp.concatenate([jnp.zeros(1), jnp.cumsum(new)])
    padded = jnp.pad(windows, ((0, 0), (max(length - 1, 0), 0)))
    width, shift = windows.shape[1] - 1, max(length - 1, 0) - length + 1
    asked = sum(padded[:, i + shift : i + shift + width] * powers[i] for i in range(length + 1))
    base = asked // symbols * symbols
    low, high = jnp.searchsorted(codes, base), jnp.searchsorted(codes, base + symbols)
    first, last = jnp.searchsorted(codes, asked), jnp.searchsorted(codes, asked + 1)
    counted = (last - first).astype(float), (high - low).astype(float)
    return *counted, kinds[high] - kinds[low]
