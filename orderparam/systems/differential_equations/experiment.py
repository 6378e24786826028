"""Experiments of differential equations: regression at drawn points, and networks trained on the
residual."""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.networks.architecture import Architecture, of_width
from orderparam.systems.differential_equations.model import (
    EquationNetwork,
    EquationRegression,
    circle,
)
from orderparam.systems.differential_equations.theory import EquationErrors

Scalar = Float[Array, ""]
TEST_POINTS = 256
# largest number of Gauss-Newton steps, and the size of the gradient, relative to that at the start,
# at which they end
STEPS, STATIONARY = 60, 1e-6
# number of step lengths that are tried, each half as long as the one before
HALVED = 8


class NetworkErrors(Result):
    """Errors of one trained network.

    Fields:
        equation_error: mean of (L u - f)^2 over the circle.
        solution_error: mean of (u - true solution)^2 over the circle.
        converged: whether the penalised loss is stationary.
    """

    equation_error: Scalar
    solution_error: Scalar
    converged: Bool[Array, ""]


@experiment
def solved_at_points(
    system: EquationRegression,
    key: PRNGKeyArray,
    *,
    points: Literal["random", "grid", "gaussian"] = "random",
) -> EquationErrors:
    r"""Errors of one estimate of the solution, from values of the right-hand side at drawn points.

    The coefficients of the true solution are drawn with the given power at every frequency, and the
    n x n linear system of kernel regression is solved. Errors are sums over the coefficients, so
    that the average over x is exact.

    Args:
        points: "random": independent and uniform. "grid": equidistant, with a random offset on the
            circle, or at j/(n + 1) on the interval. "gaussian": there are no points; the values of
            all modes are independent Gaussian numbers, which is the control for theories that take
            the modes as Gaussian.

    Source: the collocation of Raissi, Perdikaris, Karniadakis (2017), with a Gaussian process.

    >>> import jax
    >>> system = EquationRegression([1.0, 0.1, 0.01], [0.0, 1.0, 0.5], n_points=8)
    >>> bool(solved_at_points(system, jax.random.key(0)).solution_error < 1e-12)
    True
    """
    return _solve(system, key, points, system.size("n_points"))


@experiment
def trained_equation_network(system: EquationNetwork, key: PRNGKeyArray) -> NetworkErrors:
    r"""Errors of one network of `width` units that is trained on the residual of an equation.

    All weights are trained by Gauss-Newton steps on the penalised loss, until the gradient is 1e-6
    of the gradient at the start. Each step is halved repeatedly, and the length with the lowest
    loss is taken. The first full step alone is regression with the tangent kernel of this network.

    Source: the experiment of Wang, Yu, Perdikaris (2022), trained to the end.

    >>> import jax
    >>> from orderparam.networks.fully_connected import fully_connected
    >>> network = fully_connected(1, None, "erf", bias_variance=1.0)
    >>> system = EquationNetwork([0.0, 1.0], [0.0, 0.0], 8, network, width=16)
    >>> bool(trained_equation_network(system, jax.random.key(0)).converged)
    True
    """
    architecture = of_width(system.architecture, system.size("width"))
    count = system.size("n_points")
    points = 2 * jnp.pi * jnp.arange(count) / count
    return _train(system, architecture, architecture.draw(key, 2), points)


@eqx.filter_jit
def _solve(
    system: EquationRegression, key: PRNGKeyArray, points: str, count: int
) -> EquationErrors:
    point_key, sign_key, noise_key, start_key = jax.random.split(key, 4)
    each = [0] if system.domain == "circle" else []
    each += [k for k in range(len(each), len(system.prior)) for _ in range(_modes(system))]
    frequency = jnp.asarray(each)
    gain = system.operator.gain(system.wave_numbers)[frequency]
    # The direction of the true solution within the modes of one frequency is uniform: a sign, or an
    # angle.
    angle = jax.random.uniform(sign_key, (len(system.prior),), maxval=2 * jnp.pi)
    sign = jnp.where(angle < jnp.pi, 1.0, -1.0)
    if system.domain == "circle":
        pair = jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)[1:].reshape(-1)
        direction = jnp.concatenate([sign[:1], pair])
    else:
        direction = sign
    right_hand = jnp.sqrt(gain * system.solution_power[frequency]) * direction

    if points == "gaussian":
        values = jax.random.normal(point_key, (count, len(each)))
    elif points == "random":
        values = _values(system, jax.random.uniform(point_key, (count,)))
    elif system.domain == "circle":
        values = _values(system, (jnp.arange(count) + jax.random.uniform(start_key)) / count)
    else:
        values = _values(system, jnp.arange(1, count + 1) / (count + 1))
    kernel = gain * system.prior[frequency]
    y = values @ right_hand + jnp.sqrt(system.noise) * jax.random.normal(noise_key, (count,))
    if count > len(each):  # the kernel matrix would be singular without a ridge
        root = jnp.sqrt(kernel)
        rows = jnp.concatenate([values * root, jnp.sqrt(system.ridge) * jnp.eye(len(each))])
        estimate = root * jnp.linalg.lstsq(rows, jnp.pad(y, (0, len(each))))[0]
    else:
        gram = (values * kernel) @ values.T + system.ridge * jnp.eye(count)
        estimate = kernel * (values.T @ jnp.linalg.solve(gram, y))
    squares = (estimate - right_hand) ** 2
    unseen = system.solution_power[frequency] * direction**2
    solution = jnp.where(gain > 0, squares / jnp.where(gain > 0, gain, 1.0), unseen)
    return EquationErrors(equation_error=jnp.sum(squares), solution_error=jnp.sum(solution))


def _modes(system: EquationRegression) -> int:
    """Number of modes of each frequency above 0."""
    return 2 if system.domain == "circle" else 1


def _values(system: EquationRegression, share: Array) -> Array:
    """Values of all modes, rotated by the phase of the operator, at points given as fractions of
    the domain."""
    wave = jnp.arange(len(system.prior))
    if system.domain == "interval":
        return jnp.sqrt(2.0) * jnp.sin(jnp.pi * share[:, None] * (wave + 1))
    angle = 2 * jnp.pi * share[:, None] * wave[1:]
    pair = jnp.sqrt(2.0) * jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=2)
    return jnp.concatenate([jnp.ones((len(share), 1)), pair.reshape(len(share), -1)], axis=1)


@eqx.filter_jit
def _train(
    system: EquationNetwork, architecture: Architecture, drawn: Any, points: Array
) -> NetworkErrors:
    start, restore = ravel_pytree((drawn, drawn))
    wave = jnp.arange(len(system.cosines))

    def solution(x: Array) -> Array:
        angle = x[:, None] * wave
        return jnp.cos(angle) @ system.cosines + jnp.sin(angle) @ system.sines

    def output(weights: Array, x: Array) -> Array:
        first, second = (architecture.apply(one, circle(x))[:, 0] for one in restore(weights))
        return (first - second) / jnp.sqrt(2.0)

    def acted(function: Any, x: Array) -> Array:
        """Values of L applied to a function, at points."""

        def value(shift: Array) -> Array:
            return function(x + shift)

        def slope(shift: Array) -> tuple[Array, Array]:
            return jax.jvp(value, (shift,), (jnp.ones(()),))

        (u, first), (_, second) = jax.jvp(slope, (jnp.zeros(()),), (jnp.ones(()),))
        c = system.operator
        return c.reaction * u + c.advection * first - c.diffusion * second

    def residual(weights: Array, x: Array) -> Array:
        return acted(lambda x: output(weights, x), x) - acted(solution, x)

    def at(weights: Array) -> tuple[Array, Array, Array]:
        """Residuals, their derivatives by the weights, and the size of the gradient of the
        penalised loss."""
        rest, slopes = residual(weights, points), jax.jacrev(residual)(weights, points)
        return (
            rest,
            slopes,
            jnp.linalg.norm(slopes.T @ rest + system.ridge * (weights - start)),
        )

    def loss(weights: Array) -> Array:
        change = weights - start
        return jnp.sum(residual(weights, points) ** 2) + system.ridge * change @ change

    def step(state: tuple[Array, Any, Array]) -> tuple[Array, Any, Array]:
        weights, (rest, slopes, _), count = state
        gram = slopes @ slopes.T + system.ridge * jnp.eye(len(points))
        # The step leads to the minimum of the loss in which the residual is linearised in the
        # weights.
        inner = jnp.linalg.solve(gram, slopes @ (weights - start) - rest)
        direction = start + slopes.T @ inner - weights
        share = 0.5 ** jnp.arange(HALVED)
        losses = jax.lax.map(lambda part: loss(weights + part * direction), share)
        following = weights + share[jnp.argmin(losses)] * direction
        return following, at(following), count + 1

    first = at(start)

    def going(state: tuple[Array, Any, Array]) -> Array:
        return (state[2] < STEPS) & (state[1][2] > STATIONARY * first[2])

    weights, last, _ = jax.lax.while_loop(going, step, (start, first, jnp.zeros((), int)))
    test = 2 * jnp.pi * jnp.arange(TEST_POINTS) / TEST_POINTS
    return NetworkErrors(
        equation_error=jnp.mean(residual(weights, test) ** 2),
        solution_error=jnp.mean((output(weights, test) - solution(test)) ** 2),
        converged=last[2] <= STATIONARY * first[2],
    )
