"""The flow of the overlaps, and the mean time that their diffusion needs to leave the neighbourhood of zero.

With e the error signal, rate the learning rate per sample and t = n / d,

    dm/dt = rate E[e (z* - lambda m)] - rate^2 / 2 m E[e^2]        (Ben Arous, Gheissari, Jagannath 2021)

where z* are the hidden fields and lambda = w.x. For one index and small m the first term is rate sum_k k c_k(g)
c_k(sigma) m^(k-1): the smallest k in it is the information exponent.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.verb import theory
from orderparam.solve.flow import flow
from orderparam.systems.multi_index.neuron.model import ExitTime, OverlapPath, SphericalSGD
from orderparam.systems.multi_index.rules import half_line_rule

_NODES = {1: 48, 2: 14, 3: 7, 4: 4}  # Gauss nodes on each half line of every field
_NOISE_NODES = 5
_GRID = 1201  # points of the first-passage problem
_QUANTILES = 64  # starts over which its solution is averaged
_STEPS = 10_000  # of the solver: beyond, what limits the explicit ones is stability


def _fields(system: SphericalSGD, overlap: Float[Array, "index"]) -> tuple[Array, Array, Array, Array]:
    """Quadrature over hidden fields, the part of lambda that is independent of them, and label noise: z*, lambda, y,
    weights."""
    count = system.teacher.dimension
    z, w = half_line_rule(_NODES[count])
    xi, v = np.polynomial.hermite_e.hermegauss(_NOISE_NODES)
    grids = np.meshgrid(*[z] * (count + 1), xi, indexing="ij")
    weights = np.prod(np.meshgrid(*[w] * (count + 1), v / v.sum(), indexing="ij"), axis=0).ravel()
    stars = np.stack([part.ravel() for part in grids[:count]], axis=-1)
    free, noise = grids[count].ravel(), grids[count + 1].ravel()
    outside = jnp.sqrt(jnp.maximum(1 - jnp.sum(overlap**2), 0.0))
    label = system.teacher(jnp.asarray(stars)) + jnp.sqrt(system.noise) * noise
    return jnp.asarray(stars), jnp.asarray(stars) @ overlap + outside * free, label, jnp.asarray(weights)


def drift_and_spread(
    system: SphericalSGD, overlap: Float[Array, "index"]
) -> tuple[Float[Array, "index"], Float[Array, "index index"]]:
    """dm/dt, and d times the covariance of m that one unit of time n/d adds, rate^2 E[e^2 (z* - lambda m)(z* - lambda
    m)^T].

    By tensor quadrature with rules that allow the target a kink on coordinate planes; the student is taken to be
    smooth. Exact to rounding for polynomials and, for one index, to about 1e-6 for erf and tanh students; second looks
    with repetition above 1 sharpen the student, and cost digits (4e-5 at 3).
    """
    stars, field, label, weights = _fields(system, overlap)
    error = system.error_signal(field, label, 1.0)
    pull = error[:, None] * (stars - field[:, None] * overlap)
    rate = system.rate
    drift = rate * weights @ pull - rate**2 / 2 * overlap * (weights @ error**2)
    return drift, rate**2 * (pull * weights[:, None]).T @ pull


@theory
def overlap_flow(system: SphericalSGD, *, stiff: bool = False) -> OverlapPath:
    """m(t) from `first_overlap`, or from the median first overlap 0.6745 / sqrt(d) when that is 0.

    stiff: implicit steps, for strong second looks: E[e^2] grows with the 18th power of the field for Hermite 2, so that noise may
        erase the overlap within 1e-6 of a sample per dimension. Explicit steps are then so short that 10^4 of them do not
        get there, and `converged` is False.
    """
    count = system.teacher.dimension
    typical = 0.6744897501960817 / jnp.sqrt(jnp.asarray(system.input_dim, jnp.float64))
    first = jnp.where(jnp.asarray(system.first_overlap) > 0, system.first_overlap, typical)
    times = system.steps() * system.batch_size / system.input_dim

    def field(overlap: Array, system: SphericalSGD) -> Array:
        return drift_and_spread(system, overlap)[0]

    path = flow(field, jnp.full(count, first), times, system, stiff=stiff, rtol=1e-8, atol=1e-10, max_steps=_STEPS)
    return OverlapPath(times, path.value, jnp.linalg.norm(path.value, axis=-1), path.converged)


def _one_index(system: SphericalSGD) -> None:
    if system.teacher.dimension != 1:
        raise ValueError(f"SphericalSGD.target = {system.target!r}: exit_time is for one hidden index; follow `overlap_flow`")


@theory(check=_one_index)
def exit_time(system: SphericalSGD) -> ExitTime:
    """Mean number of samples until |m| = exit_overlap, one hidden index.

    At finite d the overlap diffuses: dm = mu(m) dt + sqrt(D(m)/d) dB with mu, D of `drift_and_spread`. The mean time
    T(m) from m solves D/(2d) T'' + mu T' = -1, T = 0 at |m| = exit_overlap; it is averaged over the first overlaps m ~
    N(0, 1/d) (their absolute value for `start` "positive"). Noise thus takes part where the drift is too weak, or of
    the wrong sign, to escape alone. Derived for this package, not in the cited papers; exact as d -> infinity, on a
    grid good to about 1e-4. `converged` says that the time is below the horizon. Raises `ValueError` for targets of
    several indices.
    """
    dim = jnp.asarray(system.input_dim, jnp.float64)
    # Evenly spaced in asinh(m sqrt(d)): fine on the scale 1/sqrt(d) of the start, logarithmic above it.
    reach = jnp.arcsinh(system.exit_overlap * jnp.sqrt(dim))
    s = jnp.linspace(-1.0, 1.0, _GRID) * reach
    m = jnp.sinh(s) / jnp.sqrt(dim)
    drift, spread = jax.lax.map(lambda x: drift_and_spread(system, x[None]), m, batch_size=64)
    drift, spread = drift[:, 0], spread[:, 0, 0] / (2 * dim)
    # In s: T' = T_s / m_s, T'' = T_ss / m_s^2 - T_s m_ss / m_s^3.
    slope, bend = jnp.cosh(s) / jnp.sqrt(dim), m
    second = spread / slope**2
    first = drift / slope - spread * bend / slope**3
    step = s[1] - s[0]
    inner = (second[1:-1], first[1:-1])
    lower = inner[0] / step**2 - inner[1] / (2 * step)
    upper = inner[0] / step**2 + inner[1] / (2 * step)
    solution = jax.lax.linalg.tridiagonal_solve(
        lower.at[0].set(0.0), -2 * inner[0] / step**2, upper.at[-1].set(0.0), -jnp.ones((_GRID - 2, 1))
    )
    times = jnp.pad(solution[:, 0], 1)
    quantiles = jax.scipy.special.ndtri((jnp.arange(_QUANTILES) + 0.5) / _QUANTILES) / jnp.sqrt(dim)
    starts = jnp.abs(quantiles) if system.start == "positive" else quantiles
    starts = jnp.where(jnp.asarray(system.first_overlap) > 0, system.first_overlap, starts)
    mean = jnp.mean(jnp.interp(jnp.arcsinh(starts * jnp.sqrt(dim)), s, times))
    return ExitTime(mean * dim, mean * dim / system.batch_size, (mean > 0) & (mean < system.horizon))
