"""Heat-bath dynamics of the mean-field magnet, one spin at a time."""

from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.systems.spins.mean_field.model import MeanFieldMagnet
from orderparam.systems.spins.measurement import MeasuredSpins, Series, measured


@experiment
def glauber(
    system: MeanFieldMagnet,
    key: PRNGKeyArray,
    *,
    start: Literal["along", "against"] = "along",
    replicas: int = 8,
    warmup: int = 200,
    sweeps: int = 1000,
) -> MeasuredSpins:
    """A random spin is drawn anew from its conditional law, N times a sweep (Glauber 1963);
    `replicas` independent runs.

    start: all spins along the field (up in zero field), or against it, from where a metastable
    state is reached that lives for a time exponential in N. The number of spins that are up is a
    Markov chain of its own, and is all that is kept.
    """
    n = system.spins
    first = n if (system.field >= 0) == (start == "along") else 0
    up = _run(jnp.full(replicas, first), system.temperature, system.field, key, n, warmup, sweeps)
    m = (2 * up - n) / n
    series = Series(-(m**2) / 2 - system.field * m, m, jnp.abs(m), m**2, m**4)
    return measured(series, system.temperature, jnp.asarray(float(n)))


@partial(jax.jit, static_argnames=("n", "warmup", "sweeps"))
def _run(
    start: Int[Array, "replica"],
    temperature: Float[Array, ""],
    field: Float[Array, ""],
    key: PRNGKeyArray,
    n: int,
    warmup: int,
    sweeps: int,
) -> Int[Array, "replica sweep"]:
    """The number of spins that are up, after each sweep of the warmed-up chains."""
    up = jnp.arange(n + 1.0)
    total = 2 * up - n
    # a spin that is down turns up
    rise = (1 - up / n) * jax.nn.sigmoid(2 * ((total + 1) / n + field) / temperature)
    fall = up / n * jax.nn.sigmoid(-2 * ((total - 1) / n + field) / temperature)

    def update(up: Array, uniform: Array) -> tuple[Array, None]:
        return up + (uniform < rise[up]) - (uniform > 1 - fall[up]), None

    def sweep(up: Array, key: PRNGKeyArray) -> tuple[Array, Array]:
        up, _ = jax.lax.scan(update, up, jax.random.uniform(key, (n, *start.shape)))
        return up, up

    return jax.lax.scan(sweep, start, jax.random.split(key, warmup + sweeps))[1][warmup:].T
