"""The compiled programs of a run, each over all chains: begin, burn in, adapt the step size,
record."""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from blackjax.adaptation.step_size import dual_averaging_adaptation
from jaxtyping import Array, Float, Key, PyTree

from orderparam.sampling.transitions import TARGET_ACCEPTANCE, Leapfrog, LogDensity, begin, move


@eqx.filter_jit
def begin_chains(method: str, log_density: LogDensity, positions: PyTree) -> Any:
    """States of all chains, from positions with a leading chain axis."""
    return jax.vmap(partial(begin, method, log_density))(positions)


@eqx.filter_jit
def burn_in(
    method: str,
    leapfrog: Leapfrog,
    log_density: LogDensity,
    keys: Key[Array, "chain"],
    states: Any,
    step_sizes: Float[Array, "chain"],
    transitions: int,
) -> Any:
    """Runs `transitions` of every chain at fixed step size, and returns the states."""

    def one(key, state, step_size):
        def body(state, key):
            return move(method, leapfrog, log_density, key, state, step_size)[0], None

        return jax.lax.scan(body, state, jax.random.split(key, transitions))[0]

    return jax.vmap(one)(keys, states, step_sizes)


@eqx.filter_jit
def adapt(
    method: str,
    leapfrog: Leapfrog,
    log_density: LogDensity,
    keys: Key[Array, "chain"],
    states: Any,
    transitions: int,
) -> tuple[Any, Float[Array, "chain"]]:
    """Runs `transitions` of every chain while each tunes its step size to the target acceptance,
    and returns states and step sizes.

    Dual averaging of log eps (Nesterov 2009; Hoffman & Gelman 2014, section 3.2), drawn towards eps
    = 1 at first. Half way it is restarted, drawn towards the step size found, so that the initial
    relaxation into the bulk has no effect.
    """
    # Stan's gamma = 0.05 and its pull towards ten times the first step make log eps swing widely:
    # chains are thrown over barriers, and the average falls short (acceptance 0.90 for 0.80 in 1000
    # dimensions after 300 transitions; now 0.82).
    initialise, update, average = dual_averaging_adaptation(TARGET_ACCEPTANCE[method], gamma=0.2)

    def one(key, state):
        def body(carry, inputs):
            state, averaging = carry
            index, key = inputs
            restarted = initialise(average(averaging) / 10)
            averaging = jax.tree.map(
                partial(jnp.where, index == transitions // 2), restarted, averaging
            )
            step_size = jnp.exp(averaging.log_step_size)
            state, acceptance = move(method, leapfrog, log_density, key, state, step_size)
            return (state, update(averaging, acceptance)), None

        start = jax.tree.map(partial(jnp.asarray, dtype=float), initialise(0.1))
        inputs = (jnp.arange(transitions), jax.random.split(key, transitions))
        (state, averaging), _ = jax.lax.scan(body, (state, start), inputs)
        return state, average(averaging)

    return jax.vmap(one)(keys, states)


class Traces(eqx.Module):
    """The recorded numbers of every chain."""

    observables: PyTree
    averages: PyTree
    log_density: Float[Array, "chain draw"]
    virial: Float[Array, "chain draw"]
    acceptance_rate: Float[Array, "chain"]


@eqx.filter_jit
def record(
    method: str,
    leapfrog: Leapfrog,
    log_density: LogDensity,
    functions: tuple[Callable[[PyTree], PyTree], Callable[[PyTree], PyTree]],
    keys: Key[Array, "chain"],
    states: Any,
    step_sizes: Float[Array, "chain"],
    draws: int,
    thin: int,
) -> tuple[Any, Traces]:
    """Records every chain `draws` times, once after each `thin` transitions at fixed step size, and
    returns the last states and the records: every value of the first function of positions, the
    mean of the second."""
    observe, average = functions

    def one(key, state, step_size):
        def transition(state, key):
            return move(method, leapfrog, log_density, key, state, step_size)

        def body(carry, key):
            state, mean = carry
            state, acceptance = jax.lax.scan(transition, state, jax.random.split(key, thin))
            ratio = virial(state.position, state.logdensity_grad)
            mean = jax.tree.map(lambda m, x: m + x / draws, mean, average(state.position))
            recorded = (observe(state.position), state.logdensity, ratio, jnp.mean(acceptance))
            return (state, mean), recorded

        shapes = jax.eval_shape(average, state.position)
        mean = jax.tree.map(lambda x: jnp.zeros(x.shape), shapes)
        (state, mean), (observables, density, ratio, acceptance) = jax.lax.scan(
            body, (state, mean), jax.random.split(key, draws)
        )
        return state, Traces(observables, mean, density, ratio, jnp.mean(acceptance))

    return jax.vmap(one)(keys, states, step_sizes)


def virial(position: PyTree, log_density_gradient: PyTree) -> Float[Array, ""]:
    """(u . grad U)/(number of parameters). Integration by parts: its equilibrium average is 1 for
    every potential."""
    products = jax.tree.map(
        lambda u, gradient: -jnp.sum(u * gradient), position, log_density_gradient
    )
    return sum(jax.tree.leaves(products)) / sum(leaf.size for leaf in jax.tree.leaves(position))
