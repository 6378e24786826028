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
    r"""Equilibrium or metastable averages of the mean-field magnet, simulated with heat-bath
    dynamics.

    In each of the N steps of a sweep one random spin is drawn from its conditional law,

    $$ P(s_i = +1) = \frac{1}{1 + e^{-2 (h + \frac1N \sum_{j \ne i} s_j)/T}} $$

    with N = `spins`, h = `field` and T = `temperature`. The number of spins that are up is a Markov
    chain, and the simulation keeps nothing else.

    Args:
        start: "along" starts with all spins along the field (up without a field), "against" with
            all spins against it. The latter reaches the metastable state, whose lifetime is
            exponential in N.
        replicas: number of independent runs that are simulated together.
        warmup: sweeps of each replica before anything is measured.
        sweeps: measured sweeps of each replica; at least 8.

    Source: Glauber (1963).

    >>> import jax
    >>> runs = glauber(MeanFieldMagnet(0.5, 0.1, spins=100), jax.random.key(0), sweeps=100)
    >>> bool(abs(runs.magnetisation - 0.97) < 0.02)
    True
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
    """Number of spins that are up after each measured sweep."""
    up = jnp.arange(n + 1.0)
    total = 2 * up - n
    # Either the random spin is down and turns up, or it is up and turns down. The sum over the
    # other spins leaves it out.
    rise = (1 - up / n) * jax.nn.sigmoid(2 * ((total + 1) / n + field) / temperature)
    fall = up / n * jax.nn.sigmoid(-2 * ((total - 1) / n + field) / temperature)

    def update(up: Array, uniform: Array) -> tuple[Array, None]:
        return up + (uniform < rise[up]) - (uniform > 1 - fall[up]), None

    def sweep(up: Array, key: PRNGKeyArray) -> tuple[Array, Array]:
        up, _ = jax.lax.scan(update, up, jax.random.uniform(key, (n, *start.shape)))
        return up, up

    return jax.lax.scan(sweep, start, jax.random.split(key, warmup + sweeps))[1][warmup:].T
