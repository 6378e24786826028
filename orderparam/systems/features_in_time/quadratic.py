"""Theory of quadratic units in time: the exact recursion of their two moments.

Every unit is moved by the same affine map, so that the mean weight and the second moment of the
weights determine the output at all times, at any width.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.systems.features_in_time.model import QuadraticDescent

Scalar = Float[Array, ""]
State = TypeVar("State")


class QuadraticPath(Result):
    """Errors along training, and when they have fallen to half of their values at the start.

    Fields:
        step: the recorded numbers of steps, from 0 on.
        train_error: mean squared error on the training set at these steps.
        test_error: mean squared error on the test inputs at these steps.
        fitted_step: step from which the training error stays below half of its value at the start;
            the last step if it ends above.
        learned_step: step from which the test error stays below half of its value at the start; the
            last step if it ends above.
        delay: learned_step / fitted_step.
        converged: whether all errors are finite and both end below half of their values at the
            start.
    """

    step: Float[Array, "record"]
    train_error: Float[Array, "record"]
    test_error: Float[Array, "record"]
    fitted_step: Scalar
    learned_step: Scalar
    delay: Scalar
    converged: Bool[Array, ""]


class UnitMoments(NamedTuple):
    """Mean of the weights of the units, and mean of their products."""

    mean: Float[Array, "input"]
    square: Float[Array, "input other_input"]


@theory
def quadratic_recursion(system: QuadraticDescent) -> QuadraticPath:
    r"""Errors of infinitely many quadratic units along gradient descent, exactly.

    With $\Delta = y - f$, $b = X^T \Delta/P$, $B = X^T \mathrm{diag}(\Delta) X/P$, $A = 1 +
    \frac{\eta\epsilon}{\kappa} B$ and $c = \frac{\eta}{\kappa} b$ every unit moves as $w_i
    \leftarrow A w_i + c$. The mean $\bar w$ and the second moment M of the weights therefore follow

    $$ \bar w' = A \bar w + c, \qquad M' = A M A^T + A \bar w c^T + c (A \bar w)^T + c c^T, \qquad
       f = \kappa \Big( \bar w \cdot x + \frac{\epsilon}{2}\, x^T M x \Big) - f_0 $$

    from $\bar w = 0, M = \sigma^2 1$. A network of N units obeys the same recursion from its own
    moments, which differ from these moments by $O(N^{-1/2})$. It has no other difference from
    infinitely many units. `width` is not used.

    Accuracy: rounding for the errors; `fitted_step` and `learned_step` are interpolated in ln(step)
    between recorded steps.

    Cost: of order train * input^2 for a step.

    Source: Kumar, Bordelon, Gershman, Pehlevan (2024) for the network; the closed recursion is
    derived here.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_normal((40, 3))
    >>> y = (x[:, 0] ** 2 - 1) / np.sqrt(2)
    >>> found = quadratic_recursion(QuadraticDescent(x[:20], y[:20], x[20:], y[20:], steps=500))
    >>> bool(found.train_error[-1] < 0.5 * found.train_error[0])
    True
    """
    size = system.inputs.shape[1]
    start = UnitMoments(jnp.zeros(size), system.start_variance * jnp.eye(size))
    return moments_path(system, start)


def moments_path(system: QuadraticDescent, start: UnitMoments) -> QuadraticPath:
    """Errors along the recursion from the given moments, which are those of infinitely many units
    or of one network."""
    x, bend, scale = system.inputs, system.curvature, system.laziness

    def raw(moments: UnitMoments, inputs: Array) -> Array:
        quadratic = jnp.sum((inputs @ moments.square) * inputs, axis=1)
        return scale * (inputs @ moments.mean + bend / 2 * quadratic)

    first = raw(start, x)

    def step(moments: UnitMoments) -> UnitMoments:
        delta = (system.targets + first - raw(moments, x)) / len(x)
        turn = jnp.eye(len(moments.mean))
        turn = turn + system.learning_rate * bend / scale * (x.T * delta) @ x
        shift = system.learning_rate / scale * (x.T @ delta)
        mean = turn @ moments.mean
        mixed = jnp.outer(mean, shift)
        square = turn @ moments.square @ turn.T + mixed + mixed.T + jnp.outer(shift, shift)
        return UnitMoments(mean + shift, square)

    return recorded_path(system, start, step, raw)


def recorded_path(
    system: QuadraticDescent,
    start: State,
    step: Callable[[State], State],
    output: Callable[[State, Array], Array],
) -> QuadraticPath:
    """Errors at the recorded steps. `step` advances a state by one step; `output` is the output of
    a state, from which that of the start is subtracted here."""
    first = [output(start, inputs) for inputs in (system.inputs, system.test_inputs)]

    def errors(state: State) -> tuple[Scalar, Scalar]:
        train = system.targets + first[0] - output(state, system.inputs)
        test = system.test_targets + first[1] - output(state, system.test_inputs)
        return jnp.mean(train**2), jnp.mean(test**2)

    # states at recorded steps are kept on the way, and those of other steps are dropped
    places = np.full(system.steps + 1, len(system.recorded))
    places[system.recorded] = np.arange(len(system.recorded))
    kept = jax.tree.map(lambda one: jnp.zeros((len(system.recorded), *one.shape)), start)

    def put(kept: Any, state: State, place: Array) -> Any:
        return jax.tree.map(lambda rows, one: rows.at[place].set(one, mode="drop"), kept, state)

    def advance(carry: tuple[State, Any], place: Array) -> tuple[tuple[State, Any], None]:
        state = step(carry[0])
        return (state, put(carry[1], state, place)), None

    first_kept = put(kept, start, jnp.asarray(0))
    (_, kept), _ = jax.lax.scan(advance, (start, first_kept), jnp.asarray(places[1:]))
    train, test = jax.lax.map(errors, kept)
    steps = jnp.asarray(system.recorded, float)
    fitted, learned = _halved(steps, train), _halved(steps, test)
    sound = jnp.all(jnp.isfinite(train) & jnp.isfinite(test))
    return QuadraticPath(
        step=steps,
        train_error=train,
        test_error=test,
        fitted_step=fitted,
        learned_step=learned,
        delay=learned / fitted,
        converged=sound & (train[-1] < train[0] / 2) & (test[-1] < test[0] / 2),
    )


def _halved(steps: Float[Array, "record"], errors: Float[Array, "record"]) -> Scalar:
    """The step from which errors stay below half of the first, by interpolation in the logarithm of
    the step; the last step if they end above."""
    above = errors >= errors[0] / 2
    last = jnp.max(jnp.where(above, jnp.arange(len(errors)), 0))
    following = jnp.minimum(last + 1, len(errors) - 1)
    low, high = (jnp.log(jnp.maximum(steps[at], 0.5)) for at in (last, following))
    drop = errors[last] - errors[following]
    share = jnp.where(drop > 0, (errors[last] - errors[0] / 2) / jnp.where(drop > 0, drop, 1), 0.0)
    return jnp.exp(low + jnp.clip(share, 0, 1) * (high - low))
