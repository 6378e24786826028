"""Experiment of language models: a network is trained on a text and tested on other documents."""

from math import gcd
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, PRNGKeyArray

from orderparam.core.needs import Need
from orderparam.core.verb import experiment
from orderparam.systems.language_models.model import HEAD, Family, LanguageTraining, Scaling
from orderparam.systems.language_models.networks import arrays, logits, parts, rates, spreads
from orderparam.systems.language_models.theory import (
    LanguageLoss,
    gathered_windows,
    whole_windows,
)

_TESTED = 64  # windows tested at once
_heads = Need(
    f"a multiple of {HEAD}", lambda x: x % HEAD == 0, f"a head of attention has {HEAD} units"
)


@experiment(needs={"width": _heads})
def trained_language_model(system: LanguageTraining, key: PRNGKeyArray) -> LanguageLoss:
    """Test loss, on other documents, of a network that is trained on a text.

    A pass reads every window of the text once, and all passes read the windows in the same order:
    the i-th window read has the number $s i + o$ modulo the number of windows, with random s and o.
    Gradients are clipped at the norm 1. The learning rate of Adam (0.9, 0.99) rises over the first
    tenth of the steps, but over at most 50 steps, and then falls to zero as a cosine. The network
    is trained in single precision. A run whose loss is not finite counts as not converged.

    Source: Kaplan et al. (2020) for the setting.

    >>> import jax
    >>> text = LanguageTraining([0, 1] * 4000, [0, 1] * 80, 2, n_train=8000, context=16)
    >>> bool(trained_language_model(text, jax.random.key(0)).test_loss < 0.3)
    True
    """
    width, context = system.size("width"), system.context
    windows = max(1, (system.size("n_train") - 1) // context)
    start_key, order_key = jax.random.split(key)
    # the map i -> stride i + offset, modulo the number of windows, visits every window once in a
    # pass
    stride, offset = (int(n) % windows for n in jax.random.bits(order_key, (2,)))
    while gcd(stride, windows) != 1:
        stride += 1
    losses = _run(
        start_key,
        jnp.asarray(system.text, jnp.uint8),
        jnp.asarray(system.test_text, jnp.uint8),
        jnp.asarray([stride, offset, windows, system.steps]),
        jnp.asarray(system.learning_rate, jnp.float32),
        _Form(system.family, system.parametrisation, width, system.symbols, context, system.batch),
    )
    return LanguageLoss(
        test_loss=losses.mean(),
        position_loss=losses,
        parameters=system.parameters,
        operations=system.operations,
        converged=jnp.isfinite(losses.mean()),
    )


class _Form(NamedTuple):
    """The static options on which the compiled program depends."""

    family: Family
    parametrisation: Scaling
    width: int
    symbols: int
    context: int
    batch: int


@eqx.filter_jit
def _run(
    key: Array, text: Array, test_text: Array, numbers: Array, rate: Array, form: _Form
) -> Array:
    """Mean test loss at each position of a window after training. The number of steps is an
    argument of the compiled program, so that one program serves all numbers of steps."""
    context = form.context
    layout = parts(form.family, form.width, form.symbols, context)
    spread, factors = spreads(layout), rates(layout, form.parametrisation, form.width)
    stride, offset, windows, steps = numbers

    def losses(weights: Array, read: Array) -> Array:
        """-ln p of each byte after the first of a window, (window, position)."""
        read = read.astype(jnp.int32)
        given = logits(form.family, arrays(layout, weights), read[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(given, read[:, 1:])

    adam = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam(0.9, 0.99))
    rising = jnp.clip(steps // 10, 1, 50)

    def step(at: Array, state: tuple[Array, Any]) -> tuple[Array, Any]:
        weights, moments = state
        visited = (stride * (at * form.batch + jnp.arange(form.batch)) + offset) % windows
        read = gathered_windows(text, visited * context, context)
        slope = jax.grad(lambda one: losses(one, read).mean())(weights)
        move, moments = adam.update(slope, moments)
        falling = (1 + jnp.cos(jnp.pi * jnp.maximum(at - rising, 0) / (steps - rising + 1))) / 2
        now = (rate * jnp.minimum((at + 1) / rising, falling)).astype(jnp.float32)
        return weights - now * factors * move, moments

    start = spread * jax.random.normal(key, spread.shape, jnp.float32)
    weights, _ = jax.lax.fori_loop(0, steps, step, (start, adam.init(start)))
    tested = whole_windows(test_text, context)

    def together(some: Array) -> Array:
        return losses(weights, gathered_windows(test_text, some, context))

    # the last group of windows is filled up with windows that are not counted
    groups = jnp.pad(tested, (0, -len(tested) % _TESTED)).reshape(-1, _TESTED)
    found = jax.lax.map(together, groups).reshape(-1, context)[: len(tested)]
    return found.mean(0).astype(float)
