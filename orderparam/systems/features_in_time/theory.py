"""Features in time: the network of infinite width on a given training set."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy.special import ndtri
from scipy.stats import qmc

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.systems.features_in_time.model import FeatureDescent
from orderparam.systems.features_in_time.rates import best_of_rates

Scalar = Float[Array, ""]
Steps = Float[Array, "step"]


class FeaturePath(Result):
    """Errors along training, and how far the tangent kernel moved; uncertainties are standard errors
    over independent runs of the particles, 0 where the theory is exact.

    Fields:
        test_error: mean squared error on the test inputs after 0, 1, ... steps.
        train_error: mean squared error on the training set.
        kernel_drift: Frobenius norm of Theta_T - Theta_0 on the training set, relative to that of
            Theta_0, T the last step.
        test_error_uncertainty: of the test error.
        train_error_uncertainty: of the training error.
        kernel_drift_uncertainty: of the drift.
        converged: whether all numbers are finite.
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
        best_rate: that learning rate.
        best_error: the training error with it.
        converged: whether it lies inside the range that was searched.
    """

    best_rate: Scalar
    best_error: Scalar
    converged: Bool[Array, ""]


class FeatureParticles(NamedTuple):
    """Read-outs, and pre-activations on training and test inputs."""

    readout: Float[Array, "unit"]
    hidden: Float[Array, "unit point"]


class LinearMoments(NamedTuple):
    """The moments of linear units: <a^2>, <a h> and <h h> on training and test inputs."""

    square: Scalar
    mixed: Float[Array, "point"]
    hidden: Float[Array, "point other_point"]


def _enough_particles(
    system: FeatureDescent, samples: int = 2048, runs: int = 4, seed: int = 0
) -> None:
    if samples < 2 or samples & (samples - 1):
        raise ValueError(f"samples = {samples}: must be a power of 2 from 2, for Sobol's points")
    if runs < 2:
        raise ValueError(f"runs = {runs}: must be >= 2, to have standard errors")
    if seed < 0:
        raise ValueError(f"seed = {seed}: must be >= 0")


def _linear(system: FeatureDescent) -> None:
    if system.activation.name != "linear":
        raise ValueError(
            f"activation = {system.activation.name!r}: only 'linear' closes; `particle_dynamics` "
            "takes every activation"
        )


@theory(check=_enough_particles)
def particle_dynamics(
    system: FeatureDescent, *, samples: int = 2048, runs: int = 4, seed: int = 0
) -> FeaturePath:
    r"""Errors of a network of infinite width along gradient descent on given data, lazy to rich.

    As $N \to \infty$ at fixed scales $\gamma, \eta_h, \eta_a$ of the system the units are independent
    particles (a, h) in the field of $f(x) = \frac1\gamma E\, a\, \phi(h(x))$: h has one component
    for each input, a ~ N(0, 1) and h ~ N(0, K) at the start, and each follows the equations of
    `FeatureDescent`. Averages over the start are means over scrambled Sobol points, whose error
    falls nearly as one over their number; they have no bias of finite width. In the ntk and standard
    parametrisations `width` sets the scales and nothing else.

    Args:
        samples: points of a run, a power of 2; each is a pair (a, h), (-a, h).
        runs: independent scramblings, whose scatter gives the standard errors.
        seed: of the scramblings.

    Raises:
        ValueError: for samples that are no power of 2, or a single run.

    Accuracy: statistical, given by the fields of uncertainty. Cost: samples * runs * steps * train *
    (train + test).

    Source: Mei, Montanari, Nguyen (2018); Bordelon, Pehlevan (2022); Sobol points instead of a
    large network are from here.

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


@theory(check=_linear)
def linear_recursion(system: FeatureDescent) -> FeaturePath:
    r"""Errors of a linear network of infinite width along gradient descent, exactly.

    With $A = \langle a^2 \rangle$, $u = \langle a h \rangle$, $H = \langle h h^T \rangle$ and $c =
    K\Delta$ a step of `FeatureDescent` is

    $$ A' = A + 2\eta_a \Delta \cdot u + \eta_a^2 \Delta \cdot H \Delta, \qquad
       u' = u + \eta_a H \Delta + \eta_h A c + \eta_a \eta_h c\, (\Delta \cdot u), \qquad
       H' = H + \eta_h (u c^T + c u^T) + \eta_h^2 A c c^T $$

    from $A = 1, u = 0, H = K$, and $f = u/\gamma$.

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
    return FeaturePath(test, train, drift, 0 * test, 0 * train, exact, _finite(test, train, drift))


def _linear_path(
    system: FeatureDescent, scales: tuple[Scalar, Scalar, Scalar]
) -> tuple[Steps, Steps, Scalar]:
    """Test and training error at every step, and the drift of the kernel, of linear units."""
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


@theory(check=_enough_particles)
def best_rate(
    system: FeatureDescent, *, samples: int = 2048, runs: int = 2, seed: int = 0
) -> BestRate:
    r"""The learning rate with which a network of infinite width fits best after `steps` steps.

    It minimises the training error of `particle_dynamics` after the last step, averaged over the
    runs; of a linear activation that of `linear_recursion`. Rates are searched between a twentieth
    and eight times the inverse of the largest eigenvalue of the tangent kernel at the start, on a
    grid that is refined around its lowest point; `learning_rate` is not used. In the mean-field
    parametrisation the result does not depend on the width, in the ntk parametrisation it tends to
    a constant, and in the standard one it falls as 1/N.

    Args:
        samples: points of a run, a power of 2.
        runs: independent scramblings, which are averaged.
        seed: of the scramblings.

    Raises:
        ValueError: for samples that are no power of 2, or a single run.

    Accuracy: 1e-4 of the rate, beside the statistical error of the particles.

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
    return BestRate(*best_of_rates(error, jnp.linalg.norm(tangent, 2)))


def _particle_path(
    system: FeatureDescent,
    kernel: Array,
    start: FeatureParticles,
    scales: tuple[Scalar, Scalar, Scalar],
) -> tuple[FeatureParticles, tuple[Steps, Steps]]:
    """The particles at the end, test and training error at every step."""
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
    """gamma times the matrix that takes Delta to the first-order change of f in a step."""
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
    """(run, particle): antisymmetric pairs from scrambled Sobol points."""
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
