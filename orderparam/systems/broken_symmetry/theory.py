r"""Parisi's solution of the Sherrington-Kirkpatrick model with one or several steps of symmetry
breaking, the replica-symmetric solution, and the line at which the replica-symmetric solution
becomes unstable.
"""

import jax
import jax.numpy as jnp
from jax.scipy.special import erf
from jaxtyping import Array, Bool, Float

from orderparam.core.needs import between
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.quadrature import safe_sqrt, standard_normal_rule
from orderparam.gaussian.tail import log_cdf
from orderparam.solve.minimum import differentiated, lbfgs_minimum, newton_minimum
from orderparam.solve.newton import largest_fixed_point
from orderparam.solve.parisi import (
    OverlapSteps,
    cascade,
    dense_overlaps,
    field_grid,
    increasing,
    overlaps_of,
    slope_squares,
)
from orderparam.solve.root import decreasing_root
from orderparam.solve.solved import Solved
from orderparam.systems.broken_symmetry.model import SpinGlass

Number = Float[Array, ""]
Vector = Float[Array, "unknown"]

_MOST_FREE = 6  # most steps whose overlaps are optimised; with more steps the overlaps are fixed
_REACH = 11.0  # half the range of the field grid, in units of sqrt(largest overlap)


class GroundState(Result):
    """The lowest energy of the spin glass with replica symmetry broken in k steps.

    Fields:
        ground_energy: lowest energy per spin, a lower bound for every k.
        overlaps: q_0, ..., q_(k-1), the overlaps at which the steps of the function y(q) begin; the
            last step ends at q_k = 1.
        heights: y_1, ..., y_k, the values of y(q) on the steps. y is the limit of x/T, with x the
            probability that the overlap of two replicas is below q.
        stationarity: largest deviation of E phi'(q)^2 from q, at and between the overlaps. It is 0
            for the solution of Parisi's equation and measures how far k steps are from it.
        residual: largest entry of the gradient of the functional.
        converged: whether this entry is below 1e-8.
    """

    ground_energy: Number
    overlaps: Float[Array, "step"]
    heights: Float[Array, "step"]
    stationarity: Number
    residual: Number
    converged: Bool[Array, ""]


class GlassThermodynamics(Result):
    """Thermodynamic functions of the spin glass per spin.

    Fields:
        free_energy: f per spin.
        energy: energy e per spin, including the energy in the field.
        entropy: s = (e - f)/T.
        overlap_square: <q^2> of two replicas, averaged over couplings.
    """

    free_energy: Number
    energy: Number
    entropy: Number
    overlap_square: Number


class GlassEquilibrium(GlassThermodynamics):
    """Equilibrium of the spin glass with replica symmetry broken in k steps.

    The free energy is a lower bound for every k.

    Fields:
        mean_overlap: <q> of two replicas. Without a field, spins are reversed such that q >= 0.
        largest_overlap: q_k, the overlap of two replicas in the same pure state.
        stationarity: largest deviation of E m(q)^2 from q, at and between the overlaps, where m(q)
            is the mean of a spin given its field at overlap q.
        residual: largest entry of the gradient of the functional.
        converged: whether this entry is below 1e-8.
    """

    mean_overlap: Number
    largest_overlap: Number
    stationarity: Number
    residual: Number
    converged: Bool[Array, ""]


class SymmetricGlass(GlassThermodynamics):
    """Replica-symmetric equilibrium of the spin glass.

    Fields:
        overlap: overlap q of two replicas.
        stability: 1 - E sech^4(u)/T^2 with u as in `symmetric`; replica symmetry is unstable where
            it is negative.
        residual: absolute residual of the equation for q.
        converged: whether this equation was solved.
    """

    overlap: Number
    stability: Number
    residual: Number
    converged: Bool[Array, ""]


class GlassLine(Result):
    """Temperature of the spin-glass transition.

    Fields:
        temperature: highest temperature at which replica symmetry is unstable.
        residual: residual of the equation for the temperature.
        converged: whether this equation was solved.
    """

    temperature: Number
    residual: Number
    converged: Bool[Array, ""]


@theory(needs={"steps": between(0, 32)})
def ground_state(system: SpinGlass, *, steps: int = 3) -> GroundState:
    r"""Ground-state energy of the spin glass, with replica symmetry broken in k steps.

    For overlaps $q_0 < \dots < q_k = 1$ (`overlaps`) and heights $y_1 < \dots < y_k$ (`heights`),
    let $\phi$ be the value at $h_0$ = `field` of Parisi's recursion from $\phi_k(h) = |h|$,

    $$ \phi_{i-1}(h) = \frac{1}{y_i} \ln \int Dz\, e^{y_i \phi_i(h + \sqrt{q_i - q_{i-1}}\, z)},
       \qquad \phi = \int Dz\, \phi_0(h_0 + \sqrt{q_0}\, z) $$

    Then

    $$ -E_0 = \min_{q, y} \Big\{ \phi - \frac14 \sum_i y_i (q_i^2 - q_{i-1}^2) \Big\} $$

    The system's temperature is not used.

    Args:
        steps: number k of steps; 0 is replica symmetry. Up to 6 steps both overlaps and heights are
            optimised. With more steps the overlaps are $1 - (1 - i/(k+1))^2$ and only the heights
            are optimised, in which the functional is convex: this is Parisi's equation with y(q)
            constant between the overlaps.

    Raises:
        ValueError: for fewer than 0 or more than 32 steps.

    Accuracy: 1e-9 for the given number of steps. The difference of `ground_energy` from its limit
    of many steps falls about as $k^{-3.3}$ for optimised overlaps, and is 2e-6 at 16 steps.

    Source: Parisi (1980); Auffinger, Chen (2017) for temperature zero.

    >>> round(float(ground_state(SpinGlass(), steps=1).ground_energy), 8)
    -0.76525943
    """
    if steps == 0:
        return _symmetric_ground_state(jnp.asarray(system.field))
    free = steps <= _MOST_FREE
    grid = field_grid(_REACH + system.field)
    given = dense_overlaps(steps)

    def steps_at(unknowns: Vector) -> OverlapSteps:
        overlaps = overlaps_of(unknowns[:steps]) if free else given
        return OverlapSteps(jnp.append(overlaps, 1.0), increasing(unknowns[-steps:]))

    def functional(unknowns: Vector) -> Number:
        tried = steps_at(unknowns)
        innermost = _innermost(grid, tried.widths[-1], tried.heights[-1])
        average = cascade(innermost, grid, tried.outer, system.field)
        return average - jnp.sum(tried.heights * jnp.diff(tried.overlaps**2)) / 4

    # The start is close to the solution, in which y(q) has slope 1 at q = 0 and diverges at q = 1.
    heights = 2 * (given + 0.03) / jnp.sqrt(1.03 - given)
    start = jnp.log(jnp.diff(heights, prepend=0.0))
    if free:
        shares = jnp.diff(given, prepend=0.0, append=1.0)
        start = jnp.append(jnp.log(shares[:-1] / shares[-1]), start)
    found = lbfgs_minimum(functional, start)
    if free:  # the minimum is flat in the overlaps: Newton's method finds them more accurately
        found = newton_minimum(differentiated(functional), found.value)
    solved = steps_at(found.value)

    # Stationarity, E phi'(q)^2 = q, is checked at the overlaps and in the middle of every step.
    fine = solved.halved()
    width, height = fine.widths[-1], fine.heights[-1]
    slopes = jax.vmap(jax.grad(lambda h: _innermost(h, width, height)))(grid)
    squares = slope_squares(_innermost(grid, width, height), slopes, grid, fine.outer, system.field)
    return GroundState(
        ground_energy=-functional(found.value),
        overlaps=solved.overlaps[:-1],
        heights=solved.heights,
        stationarity=jnp.max(jnp.abs(squares - fine.outer.overlaps)),
        residual=found.residual,
        converged=found.converged,
    )


@theory(needs={"steps": between(1, _MOST_FREE)})
def equilibrium(system: SpinGlass, *, steps: int = 3) -> GlassEquilibrium:
    r"""Equilibrium of the spin glass at a temperature, with replica symmetry broken in k steps.

    For $\beta = 1/T$ (`temperature`), overlaps $q_0 < \dots < q_k < 1$ and heights $0 < x_1 < \dots
    < x_k < 1$, let $\phi$ be the value at the `field` of the recursion of `ground_state` that
    begins with $\phi_k(h) = \ln 2\cosh \beta h + \beta^2 (1 - q_k)/2$ and has $x_i$ in place of
    $y_i$. Then

    $$ -\beta f = \min_{q, x} \Big\{ \phi - \frac{\beta^2}{4} \Big[ \sum_i x_i (q_i^2 -
       q_{i-1}^2) + 1 - q_k^2 \Big] \Big\} $$

    with the `free_energy` f per spin. The overlap of two replicas is $q_i$ with probability
    $x_{i+1} - x_i$ ($x_0 = 0$, $x_{k+1} = 1$), which gives $\langle q^2 \rangle$ and the `energy`
    $-\frac{\beta}{2} (1 - \langle q^2 \rangle) - h m$, with the magnetisation m and h = `field`.
    Where the replica-symmetric state is stable, the result is that state: all overlaps are equal to
    its q.

    Args:
        steps: number k of steps, whose overlaps and heights are all optimised.

    Raises:
        ValueError: for fewer than 1 or more than 6 steps.

    Accuracy: 1e-9 in the free energy for the given number of steps. Next to the transition the free
    energy is flat in the overlaps: `largest_overlap` is accurate to 1e-4 there, and averages of q
    to 1e-7. For T >= 0.5 the results of three steps are within 1e-6 of those of four.

    Source: Parisi (1980).

    >>> round(float(equilibrium(SpinGlass(0.8), steps=2).free_energy), 6)
    -0.865115
    """
    beta = 1 / jnp.asarray(system.temperature)

    def steps_at(unknowns: Vector) -> OverlapSteps:
        largest = jax.nn.sigmoid(unknowns[0])
        shares = jnp.append(overlaps_of(unknowns[1 : steps + 1]), 1.0)
        # The recursion divides by heights: heights near zero would amplify rounding errors.
        shifts = jax.nn.softmax(jnp.append(unknowns[steps + 1 :], 0.0))
        heights = 1e-5 + (1 - 1e-5) * jnp.cumsum(shifts)[:-1]
        return OverlapSteps(largest * shares, heights)

    def grid_of(tried: OverlapSteps, field: Number) -> Array:
        return field_grid(_REACH * jnp.sqrt(tried.overlaps[-1]) + field)

    def functional(unknowns: Vector, field: Number) -> Number:
        tried = steps_at(unknowns)
        q, grid = tried.overlaps, grid_of(tried, field)
        average = cascade(_log_2_cosh(beta * grid), grid, tried, field)
        nested = jnp.sum(tried.heights * jnp.diff(q**2)) + 1 - q[-1] ** 2
        return average + beta**2 * ((1 - q[-1]) / 2 - nested / 4)

    field = jnp.asarray(system.field)
    largest = jnp.clip(1 - 0.9 / beta, 0.05, 0.9)
    level = jnp.arange(1, steps + 1) / (steps + 1)
    shares = jnp.diff(level, prepend=0.0, append=1.0)
    heights = 0.6 * level
    rises = jnp.diff(heights, prepend=0.0)
    start = jnp.concatenate(
        [
            jnp.log(largest / (1 - largest))[None],
            jnp.log(shares[:-1] / shares[-1]),
            jnp.log(rises / (1 - heights[-1])),
        ]
    )
    near = lbfgs_minimum(lambda u: functional(u, field), start)
    found = newton_minimum(differentiated(lambda u: functional(u, field)), near.value)
    # The derivative of -beta f with respect to the field is beta m, because f is stationary in
    # overlaps and heights.
    value, magnetisation = jax.value_and_grad(functional, argnums=1)(found.value, field)
    solved = steps_at(found.value)
    weights = jnp.diff(solved.heights, prepend=0.0, append=1.0)
    square = weights @ solved.overlaps**2
    free_energy = -value / beta
    energy = -beta * (1 - square) / 2 - field * magnetisation / beta

    fine, grid = solved.halved(), grid_of(solved, field)
    squares = slope_squares(_log_2_cosh(beta * grid), jnp.tanh(beta * grid), grid, fine, field)
    broken = GlassEquilibrium(
        free_energy=free_energy,
        energy=energy,
        entropy=beta * (energy - free_energy),
        overlap_square=square,
        mean_overlap=weights @ solved.overlaps,
        largest_overlap=solved.overlaps[-1],
        stationarity=jnp.max(jnp.abs(squares - fine.overlaps)),
        residual=found.residual,
        converged=found.converged,
    )
    whole = symmetric(system)
    unbroken = GlassEquilibrium(
        free_energy=whole.free_energy,
        energy=whole.energy,
        entropy=whole.entropy,
        overlap_square=whole.overlap_square,
        mean_overlap=whole.overlap,
        largest_overlap=whole.overlap,
        stationarity=jnp.zeros(()),
        residual=whole.residual,
        converged=whole.converged,
    )
    # Steps of zero width would lower the functional by a discretisation error of the field grid.
    stable = whole.stability > 0
    return jax.tree.map(lambda one, other: jnp.where(stable, one, other), unbroken, broken)


@theory
def symmetric(system: SpinGlass) -> SymmetricGlass:
    r"""Replica-symmetric equilibrium of the spin glass, and whether it is stable.

    With $\beta = 1/T$ (`temperature`) and h = `field`,

    $$ q = \int Dz\, \tanh^2 u, \qquad -\beta f = \frac{\beta^2 (1-q)^2}{4} + \int Dz\, \ln 2\cosh
       u, \qquad u = \beta (\sqrt q\, z + h) $$

    with q = `overlap` and f = `free_energy`. The solution is stable where $\beta^2 \int Dz\,
    \mathrm{sech}^4 u < 1$.

    Accuracy: 1e-9 for T >= 0.05.

    Source: Sherrington, Kirkpatrick (1975); de Almeida, Thouless (1978).

    >>> float(symmetric(SpinGlass(0.5)).stability) < 0 < float(symmetric(SpinGlass(1.5)).stability)
    True
    """
    beta, field = 1 / jnp.asarray(system.temperature), jnp.asarray(system.field)
    solved = _symmetric_overlap(beta, field)
    q = solved.value
    u, weight = _fields(beta, field, q)
    value = beta**2 * (1 - q) ** 2 / 4 + jnp.sum(weight * _log_2_cosh(u))
    free_energy = -value / beta
    magnetisation = jnp.sum(weight * jnp.tanh(u))
    energy = -beta * (1 - q**2) / 2 - field * magnetisation
    return SymmetricGlass(
        free_energy=free_energy,
        energy=energy,
        entropy=beta * (energy - free_energy),
        overlap_square=q**2,
        overlap=q,
        stability=1 - beta**2 * jnp.sum(weight / jnp.cosh(u) ** 4),
        residual=solved.residual,
        converged=solved.converged,
    )


@theory
def at_line(system: SpinGlass) -> GlassLine:
    r"""Temperature below which replica symmetry is unstable, at the system's field.

    The temperature solves $T^2 = \int Dz\, \mathrm{sech}^4 u$ with u and q as in `symmetric`;
    without a field it is 1. The system's temperature is not used.

    Accuracy: 1e-8 for fields up to 3.

    Source: de Almeida, Thouless (1978).

    >>> round(float(at_line(SpinGlass(field=0.5)).temperature), 4)
    0.5351
    """

    def excess(log_temperature: Number, field: Number) -> Number:
        beta = jnp.exp(-log_temperature)
        q = _symmetric_overlap(beta, field).value
        u, weight = _fields(beta, field, q)
        return 2 * jnp.log(beta) + jnp.log(jnp.sum(weight / jnp.cosh(u) ** 4))

    field = jnp.asarray(system.field)
    root = decreasing_root(excess, jnp.log(0.02), jnp.log(1.5), jnp.maximum(field, 1e-6))
    none = field == 0
    return GlassLine(
        temperature=jnp.where(none, 1.0, jnp.exp(root.value)),
        residual=jnp.where(none, 0.0, root.residual),
        converged=none | root.converged,
    )


def _symmetric_ground_state(field: Number) -> GroundState:
    """Ground state with replica symmetry: E_0 = -E |h + z| with z standard normal, at overlap 1.

    E sign(h + z)^2 is 1 and equals the overlap, so that the stationarity is 0.
    """
    energy = -(jnp.sqrt(2 / jnp.pi) * jnp.exp(-(field**2) / 2) + field * erf(field / jnp.sqrt(2.0)))
    none, zero = jnp.zeros(0), jnp.zeros(())
    return GroundState(
        ground_energy=energy,
        overlaps=none,
        heights=none,
        stationarity=zero,
        residual=zero,
        converged=jnp.asarray(True),
    )


def _innermost(h: Array, width: Number, height: Number) -> Array:
    """First step of the recursion from phi_k(h) = |h|, in closed form: (1/y) ln E exp(y |h + z|)
    with y = `height` and z a normal variable of variance `width`.
    """
    scale = jnp.sqrt(width)
    above = height * h + log_cdf(h / scale + height * scale)
    below = -height * h + log_cdf(-h / scale + height * scale)
    return jnp.logaddexp(above, below) / height + height * width / 2


def _log_2_cosh(u: Array) -> Array:
    return jnp.abs(u) + jnp.log1p(jnp.exp(-2 * jnp.abs(u)))


def _fields(beta: Number, field: Number, overlap: Number) -> tuple[Array, Array]:
    """Quadrature nodes u = beta (sqrt(q) z + h) and weights; nodes are dense where u changes
    sign."""
    root = safe_sqrt(overlap)
    z, weight = standard_normal_rule((-field / jnp.maximum(root, 1e-3),), refine=4)
    return beta * (root * z + field), weight


def _symmetric_overlap(beta: Number, field: Number) -> Solved:
    """Largest solution of q = E tanh^2 u, u = beta (sqrt(q) z + h)."""

    def change(q: Number, args: tuple[Number, Number]) -> Number:
        u, weight = _fields(*args, q)
        return jnp.sum(weight * jnp.tanh(u) ** 2)

    return largest_fixed_point(change, jnp.ones(()), (beta, field))
