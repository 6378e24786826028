"""Parallel dynamics of the Hopfield model at zero temperature, step by step: in theory and in
networks.

The field of a spin is m xi plus the noise of the other patterns, which is taken to be Gaussian with
variance s^2. With u = m/s and the normal density phi, Amari and Maginu (1988, Neural Networks 1,
63) have

    m' = erf(u/sqrt 2),
    s'^2 = alpha + 4 phi(u)^2 + 4 alpha m m' phi(u)/s,    s^2 = alpha at the start.

The last term is the correlation of the state with the noise of the step before. The first step is
exact for many spins, the second nearly so. Correlations over more than one step are left out, so
that the equations overestimate later overlaps: they lose the pattern at a load of 0.16 only.
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
    """Predicted path of parallel recall.

    Fields:
        overlap: overlap with the pattern after 0, 1, ... parallel steps.
        noise: standard deviation of the field of the other patterns at these times.
    """

    overlap: Float[Array, "time"]
    noise: Float[Array, "time"]


class MeasuredSteps(Result):
    """Measured path of parallel recall.

    Fields:
        overlap: overlap with the pattern after 0, 1, ... parallel steps, averaged over networks.
    """

    overlap: Float[Array, "time"]


def _cold(system: Hopfield, **_: object) -> None:
    if float(system.temperature) != 0:
        raise ValueError(
            f"Hopfield.temperature = {float(system.temperature):g}: must be 0 for dynamics step by step"
        )


@theory(check=_cold)
def statistical_neurodynamics(system: Hopfield, *, steps: int = 10) -> Steps:
    r"""Overlap and noise after each parallel step of recall at T = 0, from the overlap `start`.

    With the overlap m, the standard deviation $\varsigma$ of the noise, $u = m/\varsigma$, the
    normal density $\varphi$ and $\alpha$ = `load`, one step is

    $$ m' = \mathrm{erf} \frac{u}{\sqrt 2}, \qquad
       \varsigma'^2 = \alpha + 4 \varphi(u)^2 + 4 \alpha\, m\, m' \frac{\varphi(u)}{\varsigma},
          \qquad
       \varsigma_0^2 = \alpha $$

    Args:
        steps: number of parallel steps.

    Raises:
        ValueError: for a temperature other than 0.

    Accuracy: the first step is exact for many spins, the second nearly so. Later overlaps are
    overestimated.

    Source: Amari, Maginu (1988).

    >>> path = statistical_neurodynamics(Hopfield(0.08, start=0.5), steps=2)
    >>> [round(float(m), 6) for m in path.overlap]
    [0.5, 0.9229, 0.982216]
    """
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
    r"""Overlap after each parallel step of recall at T = 0, averaged over networks with patterns of
    their own.

    All spins are updated at once, $s_i \leftarrow \mathrm{sign} \sum_{j \ne i} J_{ij} s_j$, from a
    random state of overlap `start` with the first pattern. The number of patterns is `load` *
    `spins`, rounded and at least 1.

    Args:
        networks: number of independent networks in one run.
        steps: number of parallel steps.

    Raises:
        ValueError: for a temperature other than 0.

    Source: Amari, Maginu (1988).

    >>> import jax
    >>> path = parallel_steps(Hopfield(0.05, spins=200, start=0.5), jax.random.key(0), networks=2)
    >>> path.overlap.shape, bool(path.overlap[-1] > path.overlap[0])
    ((11,), True)
    """
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
        # N times the field; the second term removes the diagonal of the couplings.
        fields = (
            jnp.einsum("irp,rp->ir", stored.astype(jnp.float32), totals(stored, spins))
            - patterns * spins
        )
        new = aligned(fields, spins)
        return new, jnp.mean((first * new).astype(float))

    _, path = jax.lax.scan(step, spins, length=steps)
    return jnp.concatenate([jnp.mean((first * spins).astype(float))[None], path])
