"""Parallel recall of the Hopfield model at zero temperature, step by step: two theories, and
simulated networks.

The field of a spin is m xi plus the noise of the other patterns, which is taken to be Gaussian with
variance s^2. With u = m/s, the normal density phi and a prime for the next step, Amari and Maginu
(1988, Neural Networks 1, 63) have

    m' = erf(u/sqrt 2),
    s'^2 = alpha + 4 phi(u)^2 + 4 alpha m m' phi(u)/s,    s^2 = alpha at the start.

The last term of s'^2 is the correlation of the new state with the noise of the step before. The
first step is exact for many spins, and the second is nearly exact. Correlations over more than one
step are neglected. The equations therefore overestimate later overlaps. They predict that patterns
are lost at loads above 0.16, whereas patterns are lost above 0.138.

The generating functional keeps the correlations of all steps and is exact for many spins (Bolle,
Busquets Blanco, Verbeiren 2004, arXiv:cond-mat/0307499). It describes one spin that moves in the
field of all others, with a noise that is correlated in time and a force that depends on the spin's
own past.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.needs import equal
from orderparam.core.result import Result, along_time
from orderparam.core.verb import experiment, theory
from orderparam.systems.associative_memory.hopfield.experiment import aligned, fields, totals
from orderparam.systems.associative_memory.hopfield.model import Hopfield


class Steps(Result):
    """Predicted overlaps in the course of parallel recall.

    Fields:
        overlap: overlap with the pattern after 0, 1, ... parallel steps.
        noise: standard deviation of the field of the other patterns, at the same times.
    """

    overlap: Float[Array, "time"]
    noise: Float[Array, "time"]


class MeasuredSteps(Result):
    """Measured overlaps in the course of parallel recall.

    Fields:
        overlap: overlap with the pattern after 0, 1, ... parallel steps, averaged over networks.
    """

    overlap: Float[Array, "time"]


_COLD = {"temperature": equal(0, why="theory and simulation of single steps are at T = 0")}


@theory(needs=_COLD)
def statistical_neurodynamics(system: Hopfield, *, steps: int = 10) -> Steps:
    r"""Overlap and noise after each parallel step of recall at T = 0, from the overlap `start`.

    With the `overlap` m, the standard deviation $\varsigma$ of the noise (`noise`), $u =
    m/\varsigma$, the normal density $\varphi$ and $\alpha$ = `load`, one step is

    $$ m' = \mathrm{erf} \frac{u}{\sqrt 2}, \qquad
       \varsigma'^2 = \alpha + 4 \varphi(u)^2 + 4 \alpha\, m\, m' \frac{\varphi(u)}{\varsigma},
          \qquad
       \varsigma_0^2 = \alpha $$

    Args:
        steps: number of parallel steps.

    Raises:
        ValueError: for a temperature other than 0.

    Accuracy: the first step is exact for many spins, and the second is nearly exact. Later overlaps
    are overestimated.

    Source: Amari, Maginu (1988).

    >>> path = statistical_neurodynamics(Hopfield(0.08, start=0.5), steps=2)
    >>> [round(float(m), 6) for m in path.overlap]
    [0.5, 0.9229, 0.982216]
    """
    load = system.load

    def step(state: Steps, _: None) -> tuple[Steps, Steps]:
        m, noise = state.overlap, state.noise
        u = m / noise
        density = jnp.exp(-(u**2) / 2) / np.sqrt(2 * np.pi)
        after = erf(u / np.sqrt(2))
        new = Steps(
            overlap=after,
            noise=jnp.sqrt(load + 4 * density**2 + 4 * load * m * after * density / noise),
        )
        return new, new

    begin = Steps(overlap=jnp.asarray(system.start), noise=jnp.sqrt(load))
    return along_time(begin, jax.lax.scan(step, begin, length=steps)[1])


@theory(differentiable=False, needs=_COLD)
def generating_functional(system: Hopfield, *, steps: int = 10, paths: int = 1 << 17) -> Steps:
    r"""Overlap and noise after each parallel step in the limit of many spins, including the
    correlations of all earlier steps.

    A single spin, measured along the pattern, obeys the effective dynamics

    $$ s_{t+1} = \mathrm{sgn}\Big(m_t + \alpha \sum_{t'<t} R_{tt'} s_{t'}
            + \sqrt\alpha\, \eta_t\Big),
       \qquad \langle \eta\eta^T\rangle = (1-G)^{-1} C (1-G^T)^{-1}, \qquad R = (1-G)^{-1} G $$

    with $\alpha$ = `load`. The `overlap` $m_t = \langle s_t \rangle$, the correlation $C_{tt'} =
    \langle s_t s_{t'}\rangle$ and the response $G_{tt'}$ of $s_t$ to a field at $t'$ are averages
    over the paths of this spin. A step needs averages of earlier steps only. A sample of `paths`
    paths can therefore be extended one step at a time (Eissfeller, Opper 1992). The response
    follows from Gaussian integration by parts, $\langle s\,\eta^T\rangle = \sqrt\alpha\, G\,
    \langle \eta\eta^T\rangle$. `noise` is $\sqrt{\alpha \langle\eta_t^2\rangle}$.

    Args:
        system: the network; its `temperature` must be 0, and its `spins` are not used.
        steps: number of parallel steps.
        paths: number of simulated paths of the single spin; their random numbers are fixed.

    Accuracy: the statistical error of an average over `paths` paths: 0.003 in the first two steps,
    and larger near the edge of the basin of attraction, where paths diverge.

    Source: Bolle, Busquets Blanco, Verbeiren (2004); paths: Eissfeller, Opper (1992).

    >>> path = generating_functional(Hopfield(0.08, start=0.35), steps=2)
    >>> first = statistical_neurodynamics(Hopfield(0.08, start=0.35), steps=1)
    >>> bool(abs(path.overlap[1] - first.overlap[1]) < 0.005)
    True
    """
    load, start, times = system.load, jnp.asarray(system.start), jnp.arange(steps + 1)
    for_start, for_noise = jax.random.split(jax.random.key(0))
    rank = jax.random.permutation(for_start, (jnp.arange(paths) + 0.5) / paths)
    first = jnp.where(rank < (1 + start) / 2, 1.0, -1.0)
    normal = jax.random.normal(for_noise, (steps + 1, paths))
    # The noise has mean zero in the sample, so that the measured response is exactly 0 where all
    # paths agree.
    normal -= jnp.mean(normal, axis=1, keepdims=True)

    def step(
        state: tuple[Array, Array, Array, Array], t: Array
    ) -> tuple[tuple[Array, Array, Array, Array], Steps]:
        spins, overlap, noises, response = state  # times after t hold zeros
        past = jnp.where(times <= t, 1.0, 0.0)
        memory = jnp.linalg.inv(jnp.eye(steps + 1) - response)
        later = jnp.diag(1 - past)
        across = memory @ (spins @ spins.T / paths + later) @ memory.T
        # Covariance (1 - G)^-1 C (1 - G^T)^-1 of eta, divided by its standard deviations, which are
        # of order 1/sqrt(alpha) in chaotic states.
        scale = jnp.sqrt(jnp.diagonal(across))
        across = across / scale / scale[:, None]
        factor = jnp.linalg.cholesky(across + _SMALLEST * jnp.eye(steps + 1))
        noise = factor[t] @ normal
        noises = noises.at[t].set(noise)
        strength = jnp.sqrt(load) * scale[t]
        field = overlap + load * (memory @ response)[t] @ spins + strength * noise
        following = jnp.where(field > 0, 1.0, -1.0)
        # G from <s eta^T> = sqrt(alpha) G <eta eta^T>. The ridge 1/paths keeps the equation regular
        # in steps whose noise is almost determined by that of earlier steps.
        moved = noises @ following / paths * past
        covariance = across * past * past[:, None] + later + jnp.eye(steps + 1) / paths
        responds = jnp.linalg.solve(covariance, moved) / (jnp.sqrt(load) * scale)
        response = response.at[t + 1].set(responds, mode="drop")
        after = jnp.mean(following)
        spins = spins.at[t + 1].set(following, mode="drop")
        return (spins, after, noises, response), Steps(overlap=overlap, noise=strength)

    none = jnp.zeros((steps + 1, paths))
    begin = (none.at[0].set(first), start, none, jnp.zeros((steps + 1, steps + 1)))
    return jax.lax.scan(step, begin, times)[1]


# Least variance of the part of the noise that is independent of earlier steps. A state at rest has
# no such part, and its covariance would have no Cholesky factor.
_SMALLEST = 1e-9


@experiment(needs=_COLD)
def parallel_steps(
    system: Hopfield, key: PRNGKeyArray, *, networks: int = 8, steps: int = 10
) -> MeasuredSteps:
    r"""Overlap after each parallel step of recall at T = 0, averaged over networks with independent
    patterns.

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
        overlap=_path(system.start, key, n, max(1, round(float(system.load) * n)), networks, steps)
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
        new = aligned(fields(stored, totals(stored, spins)) - patterns * spins, spins)
        return new, jnp.mean((first * new).astype(float))

    _, path = jax.lax.scan(step, spins, length=steps)
    return jnp.concatenate([jnp.mean((first * spins).astype(float))[None], path])
