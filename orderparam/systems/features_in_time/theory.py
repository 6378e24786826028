"""Theory of features in time: the network of infinite width on a given training set."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.late import ndtri
from orderparam.core.needs import at_least, equal, power_of_two
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.systems.features_in_time.model import FeatureDescent

Scalar = Float[Array, ""]
Steps = Float[Array, "step"]


class FeaturePath(Result):
    """Errors along training, and how far the tangent kernel moved. Standard errors are those over
    independent runs of the particles, and 0 where the theory is exact.

    Fields:
        test_error: mean squared error on the test inputs after 0, 1, ... steps.
        train_error: mean squared error on the training set after 0, 1, ... steps.
        kernel_drift: Frobenius norm of Theta_T - Theta_0 on the training set, divided by that of
            Theta_0; T is the last step.
        test_error_uncertainty: standard error of the test error.
        train_error_uncertainty: standard error of the training error.
        kernel_drift_uncertainty: standard error of `kernel_drift`.
        converged: whether all results are finite.
    """

    test_error: Steps
    train_error: Steps
    kernel_drift: Scalar
    test_error_uncertainty: Steps
    train_error_uncertainty: Steps
    kernel_drift_uncertainty: Scalar
    converged: Bool[Array, ""]


class BestRate(Result):
    """The learning rate with the smallest training error after the last step.

    Fields:
        best_rate: the learning rate with the smallest training error.
        best_error: the training error with the best rate.
        converged: whether the best rate lies inside the range that was searched.
    """

    best_rate: Scalar
    best_error: Scalar
    converged: Bool[Array, ""]


class FeatureParticles(NamedTuple):
    """Read-outs of the particles, and their pre-activations on the training and test inputs."""

    readout: Float[Array, "unit"]
    hidden: Float[Array, "unit point"]


class LinearMoments(NamedTuple):
    """The moments <a^2>, <a h> and <h h> of linear units, on the training and test inputs."""

    square: Scalar
    mixed: Float[Array, "point"]
    hidden: Float[Array, "point other_point"]


_PARTICLES = {
    "samples": power_of_two(why="for Sobol's points"),
    "runs": at_least(2, why="for standard errors"),
    "seed": at_least(0),
}


@theory(needs=_PARTICLES)
def particle_dynamics(
    system: FeatureDescent, *, samples: int = 2048, runs: int = 4, seed: int = 0
) -> FeaturePath:
    r"""Errors of a network of infinite width along gradient descent on given data, at any richness.

    As $N \to \infty$ at fixed scales $\gamma, \eta_h, \eta_a$ of the system the units are
    independent particles (a, h) in the field of $f(x) = \frac1\gamma E\, a\, \phi(h(x))$. The
    vector h has one component for each input; at the start a ~ N(0, 1) and h ~ N(0, K), and each
    particle follows the equations of `FeatureDescent`. Averages over the start are means over
    scrambled Sobol points, whose error falls nearly as one over their number; they have no bias of
    finite width. In the ntk and standard parametrisations `width` determines the scales and nothing
    else.

    Args:
        samples: number of Sobol points in a run, a power of 2; each gives a pair (a, h), (-a, h).
        runs: number of independent scramblings, whose scatter gives the standard errors.
        seed: seed of the scramblings.

    Raises:
        ValueError: if `samples` is not a power of 2, or for a single run.

    Accuracy: statistical, with the standard errors of the result.

    Cost: of order samples * runs * steps * train * (train + test), with `train` training and `test`
    test inputs.

    Source: Mei, Montanari, Nguyen (2018); Bordelon, Pehlevan (2022). The use of Sobol points
    instead of a large network is new here.

    >>> import numpy as np
    >>> x = np.eye(3)
    >>> system = FeatureDescent(x, np.ones(3), x, np.ones(3), steps=2)
    >>> found = particle_dynamics(system, samples=64, runs=2)
    >>> found.train_error[0].item(), bool(found.converged)
    (1.0, True)
    """
    kernel = _kernel(system)
    points = _start_points(system, samples, runs, seed)
    scales = system.scales()

    def one(start: FeatureParticles) -> tuple[Array, Array, Array]:
        end, (test, train) = _particle_path(system, kernel, start, scales)
        before, after = (_tangent(system, kernel, state, scales) for state in (start, end))
        return test, train, jnp.linalg.norm(after - before) / jnp.linalg.norm(before)

    found = jax.lax.map(one, points)
    test, train, drift = (jnp.mean(values, axis=0) for values in found)
    doubts = [jnp.std(values, axis=0, ddof=1) / jnp.sqrt(runs) for values in found]
    return FeaturePath(
        test_error=test,
        train_error=train,
        kernel_drift=drift,
        test_error_uncertainty=doubts[0],
        train_error_uncertainty=doubts[1],
        kernel_drift_uncertainty=doubts[2],
        converged=_finite(test, train, drift),
    )


@theory(
    needs={"activation.name": equal("linear", why="`particle_dynamics` takes every activation")}
)
def linear_recursion(system: FeatureDescent) -> FeaturePath:
    r"""Errors of a linear network of infinite width along gradient descent, exactly.

    With $A = \langle a^2 \rangle$, $u = \langle a h \rangle$, $H = \langle h h^T \rangle$ and $c =
    K\Delta$ a step of `FeatureDescent` changes the moments to

    $$ A' = A + 2\eta_a \Delta \cdot u + \eta_a^2 \Delta \cdot H \Delta, \qquad
       u' = u + \eta_a H \Delta + \eta_h A c + \eta_a \eta_h c\, (\Delta \cdot u), \qquad
       H' = H + \eta_h (u c^T + c u^T) + \eta_h^2 A c c^T $$

    The start is $A = 1, u = 0, H = K$, and the output is $f = u/\gamma$.

    Raises:
        ValueError: for an activation that is not linear.

    Accuracy: rounding.

    Source: derived here.

    >>> import numpy as np
    >>> x = np.eye(3)
    >>> system = FeatureDescent(x, np.ones(3), x, np.ones(3), activation="linear", steps=2)
    >>> linear_recursion(system).train_error[0].item()
    1.0
    """
    test, train, drift = _linear_path(system, system.scales())
    exact = jnp.zeros(())
    return FeaturePath(
        test_error=test,
        train_error=train,
        kernel_drift=drift,
        test_error_uncertainty=0 * test,
        train_error_uncertainty=0 * train,
        kernel_drift_uncertainty=exact,
        converged=_finite(test, train, drift),
    )


def _linear_path(
    system: FeatureDescent, scales: tuple[Scalar, Scalar, Scalar]
) -> tuple[Steps, Steps, Scalar]:
    """Test and training error of linear units at every step, and the change of the tangent
    kernel."""
    kernel, count = _kernel(system), len(system.targets)
    (gamma, hidden_rate, readout_rate), wanted = scales, _wanted(system)

    def step(state: LinearMoments, _: None) -> tuple[LinearMoments, Array]:
        square, u, h = state
        delta = (wanted - u / gamma)[:count]
        c, pull = kernel[:, :count] @ delta, delta @ u[:count]
        following = LinearMoments(
            square + 2 * readout_rate * pull + readout_rate**2 * delta @ h[:count, :count] @ delta,
            u
            + readout_rate * h[:, :count] @ delta
            + hidden_rate * square * c
            + readout_rate * hidden_rate * c * pull,
            h
            + hidden_rate * (jnp.outer(u, c) + jnp.outer(c, u))
            + hidden_rate**2 * square * jnp.outer(c, c),
        )
        return following, (wanted - following.mixed / gamma) ** 2

    start = LinearMoments(jnp.ones(()), jnp.zeros(len(wanted)), kernel)
    end, squares = jax.lax.scan(step, start, length=system.steps)
    squares = jnp.concatenate([wanted[None] ** 2, squares])
    test, train = jnp.mean(squares[:, count:], axis=1), jnp.mean(squares[:, :count], axis=1)

    def tangent(state: LinearMoments) -> Array:
        both = readout_rate * state.hidden + hidden_rate * state.square * kernel
        return both[:count, :count]

    before, after = tangent(start), tangent(end)
    return test, train, jnp.linalg.norm(after - before) / jnp.linalg.norm(before)


@theory(needs=_PARTICLES)
def best_rate(
    system: FeatureDescent, *, samples: int = 2048, runs: int = 2, seed: int = 0
) -> BestRate:
    r"""The learning rate with which a network of infinite width has the smallest training error
    after `steps` steps.

    This rate minimises the training error of `particle_dynamics` after the last step, averaged over
    the runs; for a linear activation it minimises that of `linear_recursion`. Rates are searched
    between 0.05 and 8 times the inverse of the largest eigenvalue of the tangent kernel at the
    start, on a grid that is refined around its lowest point; `learning_rate` is not used. In the
    mean-field parametrisation the result does not depend on the width, in the ntk parametrisation
    it tends to a constant, and in the standard one it falls as 1/N.

    Args:
        samples: number of Sobol points in a run, a power of 2.
        runs: number of independent scramblings, over which the error is averaged.
        seed: seed of the scramblings.

    Raises:
        ValueError: if `samples` is not a power of 2, or for a single run.

    Accuracy: 1e-4 relative, in addition to the statistical error of the particles.

    Source: Yang, Hu (2021); the curve in the width is derived here.

    >>> import numpy as np
    >>> x = np.eye(3)
    >>> system = FeatureDescent(x, np.ones(3), x, np.ones(3), steps=1)
    >>> bool(best_rate(system, samples=64).converged)
    True
    """
    kernel = _kernel(system)
    points = _start_points(system, samples, runs, seed)

    def error(rate: Scalar) -> Scalar:
        if system.activation.name == "linear":
            return _linear_path(system, system.scales(rate))[1][-1]

        def one(start: FeatureParticles) -> Array:
            return _particle_path(system, kernel, start, system.scales(rate))[1][1][-1]

        return jnp.mean(jax.lax.map(one, points))

    first = FeatureParticles(points.readout[0], points.hidden[0])
    tangent = _tangent(system, kernel, first, system.scales(1.0)) / system.scales()[0]
    rate, lowest, inside = best_of_rates(error, jnp.linalg.norm(tangent, 2))
    return BestRate(best_rate=rate, best_error=lowest, converged=inside)


def _particle_path(
    system: FeatureDescent,
    kernel: Array,
    start: FeatureParticles,
    scales: tuple[Scalar, Scalar, Scalar],
) -> tuple[FeatureParticles, tuple[Steps, Steps]]:
    """The particles after the last step, and test and training error at every step."""
    gamma, hidden_rate, readout_rate = scales
    count, wanted, phi = len(system.targets), _wanted(system), system.activation

    def step(state: FeatureParticles, _: None) -> tuple[FeatureParticles, Array]:
        a, h = state
        values = phi(h)
        residual = wanted - a @ values / (gamma * len(a))
        delta = residual[:count]
        pull = (a[:, None] * phi.derivative(h[:, :count]) * delta) @ kernel[:count]
        following = FeatureParticles(
            a + readout_rate * values[:, :count] @ delta, h + hidden_rate * pull
        )
        return following, residual**2

    end, squares = jax.lax.scan(step, start, length=system.steps)
    last = (wanted - end.readout @ phi(end.hidden) / (gamma * len(end.readout))) ** 2
    squares = jnp.concatenate([squares, last[None]])
    return end, (jnp.mean(squares[:, count:], axis=1), jnp.mean(squares[:, :count], axis=1))


def _tangent(
    system: FeatureDescent,
    kernel: Array,
    state: FeatureParticles,
    scales: tuple[Scalar, Scalar, Scalar],
) -> Float[Array, "train other_train"]:
    """gamma times the matrix that maps Delta to the first-order change of f in a step."""
    count, phi = len(system.targets), system.activation
    h = state.hidden[:, :count]
    values, slopes = phi(h), state.readout[:, None] * phi.derivative(h)
    _, hidden_rate, readout_rate = scales
    both = readout_rate * values.T @ values
    return (both + hidden_rate * (slopes.T @ slopes) * kernel[:count, :count]) / len(h)


def _kernel(system: FeatureDescent) -> Float[Array, "point other_point"]:
    x = jnp.concatenate([system.inputs, system.test_inputs])
    return x @ x.T / x.shape[1]


def _wanted(system: FeatureDescent) -> Float[Array, "point"]:
    return jnp.concatenate([system.targets, system.test_targets])


def _start_points(system: FeatureDescent, samples: int, runs: int, seed: int) -> FeatureParticles:
    """The particles (run, particle) at the start: antisymmetric pairs from scrambled Sobol
    points."""
    from scipy.stats import qmc  # slow to import, and used only here

    x = jnp.concatenate([system.inputs, system.test_inputs])
    inputs = x.shape[1]
    drawn = []
    for run in range(runs):
        sobol = qmc.Sobol(inputs + 1, scramble=True, seed=np.random.default_rng([seed, run]))
        uniform = sobol.random_base2(samples.bit_length() - 1)
        drawn.append(ndtri(np.clip(uniform, 1e-15, 1 - 1e-15)))
    normal = jnp.asarray(np.stack(drawn))
    a, h = normal[..., 0], normal[..., 1:] @ x.T / jnp.sqrt(inputs)
    return FeatureParticles(jnp.concatenate([a, -a], axis=1), jnp.concatenate([h, h], axis=1))


def _finite(*values: Array) -> Bool[Array, ""]:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(each)) for each in values]))


# ------------------------------------------------------------------------------------------------
# The best learning rate, found from the error after training as a function of the rate alone.

LOWEST, HIGHEST, GRID, REFINED = 0.05, 8.0, 48, 5


def best_of_rates(
    error: Callable[[Scalar], Scalar], fastest: Scalar
) -> tuple[Scalar, Scalar, Bool[Array, ""]]:
    """The learning rate with the smallest error, that error, and whether the rate lies inside the
    range searched.

    The grid is refined five times around its lowest point; an error that is not finite counts as
    infinite.

    fastest: largest rate of relaxation for a learning rate of 1; the ends of the range are
        multiples of its inverse.
    """
    errors = jax.vmap(error)

    def at(logarithms: Array) -> tuple[Array, Array]:
        found = errors(jnp.exp(logarithms))
        found = jnp.where(jnp.isfinite(found), found, jnp.inf)
        return jnp.argmin(found), found

    grid = jnp.linspace(jnp.log(LOWEST / fastest), jnp.log(HIGHEST / fastest), GRID)
    best, found = at(grid)
    inside = (best > 0) & (best < GRID - 1)
    middle, gap, lowest = grid[best], grid[1] - grid[0], found[best]
    for _ in range(REFINED):
        near = middle + gap * jnp.linspace(-1, 1, 9)
        best, found = at(near)
        middle, gap, lowest = near[best], gap / 4, found[best]
    return jnp.exp(middle), lowest, inside
