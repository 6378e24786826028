"""Parallel dynamics of the Hopfield model at zero temperature, step by step: signal and noise, and
real networks.

The field of a spin is m xi plus noise of the other patterns, taken to be Gaussian with variance
s^2. With u = m/s and the normal density phi, Amari and Maginu (1988, Neural Networks 1, 63) have

    m' = erf(u/sqrt 2),      s'^2 = alpha + 4 phi(u)^2 + 4 alpha m m' phi(u)/s,      s^2 = alpha at the start:

what a state remembers of the noise that made it, one step back. The first step is exact for many
spins, the second nearly so; further back nothing is remembered, and states are held too long: the
equations lose the pattern at alpha = 0.16 only.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment, theory
from orderparam.systems.associative_memory.hopfield.experiment import aligned, totals
from orderparam.systems.associative_memory.hopfield.model import Hopfield


class Steps(Result):
    """overlap with the pattern and standard deviation of the other patterns' field after 0, 1, ...
    parallel steps.
    """

    overlap: Float[Array, "time"]
    noise: Float[Array, "time"]


class MeasuredSteps(Result):
    """overlap after 0, 1, ... parallel steps, averaged over networks."""

    overlap: Float[Array, "time"]


def _cold(system: Hopfield, **_: object) -> None:
    if float(system.temperature) != 0:
        raise ValueError(
            f"Hopfield.temperature = {float(system.temperature):g}: must be 0 for dynamics step by step"
        )


@theory(check=_cold)
def statistical_neurodynamics(system: Hopfield, *, steps: int = 10) -> Steps:
    """Amari, Maginu 1988, from the overlap `start`."""
    load = system.load

    def step(
        state: tuple[Array, Array], _: None
    ) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        m, noise = state
        u = m / noise
        density = jnp.exp(-(u**2) / 2) / np.sqrt(2 * np.pi)
        after = erf(u / np.sqrt(2))
        new = after, jnp.sqrt(load + 4 * density**2 + 4 * load * m * after * density / noise)
        return new, new

    begin = jnp.asarray(system.start), jnp.sqrt(load)
    _, path = jax.lax.scan(step, begin, length=steps)
    return Steps(*(jnp.concatenate([first[None], rest]) for first, rest in zip(begin, path)))


@experiment(check=_cold)
def parallel_steps(
    system: Hopfield, key: PRNGKeyArray, *, networks: int = 8, steps: int = 10
) -> MeasuredSteps:
    """`networks` networks of their own patterns, all spins updated at once; as `recall`
    otherwise."""
    n = system.size("spins")
    return MeasuredSteps(
        _path(system.start, key, n, max(1, round(float(system.load) * n)), networks, steps)
    )


@partial(jax.jit, static_argnames=("n", "patterns", "networks", "steps"))
def _path(
    start: Array, key: PRNGKeyArray, n: int, patterns: int, networks: int, steps: int
) -> Float[Array, "time"]:
    for_patterns, for_start = jax.random.split(key)
    stored = jax.random.rademacher(for_patterns, (n, networks, patterns), jnp.int8)
    first = stored[:, :, 0].astype(jnp.float32)
    rank = jnp.argsort(jax.random.uniform(for_start, (n, networks)), axis=0)
    spins = jnp.where(rank < jnp.round((1 - start) / 2 * n), -first, first)

    def step(spins: Array, _: None) -> tuple[Array, Array]:
        fields = (
            jnp.einsum("irp,rp->ir", stored.astype(jnp.float32), totals(stored, spins))
            - patterns * spins
        )
        new = aligned(fields, spins)
        return new, jnp.mean((first * new).astype(float))

    _, path = jax.lax.scan(step, spins, length=steps)
    return jnp.concatenate([jnp.mean((first * spins).astype(float))[None], path])
