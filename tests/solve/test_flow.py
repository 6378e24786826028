"""Flows against solutions known in closed form: accuracy, events, and what happens when the solver
cannot get there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.solve.flow import crossing, flow


def oscillator(state, frequency):
    """Position and velocity of a harmonic oscillator; from (1, 0) the position is cos(frequency
    t)."""
    return {"x": state["v"], "v": -(frequency**2) * state["x"]}


REST = {"x": jnp.asarray(1.0), "v": jnp.asarray(0.0)}


def test_values_at_the_asked_times_are_good_to_the_tolerance():
    times = jnp.asarray([0.1, 1.0, 5.0, 20.0])
    found = flow(oscillator, REST, times, 2.0)
    assert bool(found.converged)
    np.testing.assert_allclose(found.value["x"], np.cos(2 * times), atol=2e-7)
    loose = flow(oscillator, REST, times, 2.0, rtol=1e-4, atol=1e-4)
    assert int(loose.steps) < int(found.steps) / 3
    error = [float(jnp.max(jnp.abs(f.value["x"] - jnp.cos(2 * times)))) for f in (found, loose)]
    assert 100 * error[0] < error[1] < 0.1


def test_implicit_steps_on_a_stiff_relaxation():
    """y' = -1e5 (y - cos t) follows cos t - 1e-5 sin t + ...: stability limits explicit steps, not
    implicit ones."""

    def field(y, rate):
        return jnp.stack([jnp.ones(()), -rate * (y[1] - jnp.cos(y[0]))])

    start, times = jnp.asarray([0.0, 0.0]), jnp.asarray([1.0, 2.0])
    plain, stiff = (
        flow(field, start, times, 1e5, stiff=s, rtol=1e-7, atol=1e-9) for s in (False, True)
    )
    exact = (1e10 * np.cos(times) + 1e5 * np.sin(times)) / (1e10 + 1)
    for found in (plain, stiff):
        assert bool(found.converged)
        np.testing.assert_allclose(found.value[:, 1], exact, atol=2e-7)
    assert int(stiff.steps) < int(plain.steps) / 100


def test_long_implicit_steps_near_rest_are_not_refused():
    """Two modes that die out at rates 1 and 1e-3 around (1, 1): by t = 1e6 only rounding moves the
    state, which must not shorten the steps: 125 of them."""

    def field(y, rates):
        fast, slow = y[0] + y[1] - 2, y[0] - y[1]
        return jnp.stack(
            [-rates[0] * fast - rates[1] * slow, -rates[0] * fast + rates[1] * slow]
        ) * jnp.exp(y[0] / 7)

    start, rates = jnp.asarray([0.3, 0.9]), jnp.asarray([0.5, 5e-4])
    times = jnp.asarray([10.0, 1e3, 1e6])
    found = flow(field, start, times, rates, stiff=True, max_steps=200)
    assert bool(found.converged)
    np.testing.assert_allclose(
        found.value[:2], flow(field, start, times[:2], rates, rtol=1e-11).value, rtol=2e-8
    )
    np.testing.assert_allclose(found.value[2], 1.0, rtol=1e-12)


def test_an_implicit_step_to_where_the_slope_is_no_number_is_refused():
    """y' = -1e6 y + sqrt(max(1 - y^2, 0)) settles at y = 1e-6; the first guess of a long step lies
    far outside, where the slope is 0/0."""
    found = flow(
        lambda y, _: -1e6 * y + jnp.sqrt(jnp.maximum(1 - y**2, 0.0)),
        jnp.asarray([0.08]),
        jnp.asarray([1.0]),
        stiff=True,
    )
    assert bool(found.converged)
    assert float(found.value[0, 0]) == pytest.approx(1e-6, rel=1e-8)


def test_batches_and_derivatives():
    def end(rate):
        return flow(
            lambda y, rate: -rate * y, jnp.asarray(1.0), jnp.asarray([1.5]), rate, max_steps=512
        ).value[0]

    rates = jnp.asarray([0.2, 1.0, 3.0])
    np.testing.assert_allclose(jax.vmap(end)(rates), np.exp(-1.5 * rates), rtol=1e-8)
    assert float(jax.grad(end)(1.0)) == pytest.approx(-1.5 * np.exp(-1.5), rel=1e-6)


@pytest.mark.parametrize("stiff", [False, True])
@pytest.mark.parametrize(
    ("field", "half"),
    [
        (lambda y, _: y**2, 2.0),  # infinite at t = 1
        (lambda y, _: -0.5 / y, np.sqrt(0.5)),  # zero at t = 1, with infinite slope
        (lambda y, _: -2 * jnp.sqrt(y), 0.25),  # zero at t = 1, and no number beyond
        (lambda y, _: jnp.nan * y, np.inf),
    ],
)
def test_what_ends_before_the_time_is_given_up_there(field, half, stiff):
    """Not after a million steps, and what came before is kept."""
    ended = flow(field, jnp.asarray(1.0), jnp.asarray([0.5, 2.0]), stiff=stiff, rtol=1e-7)
    assert not bool(ended.converged)
    assert int(ended.steps) < 5000
    assert float(ended.value[0]) == pytest.approx(half, rel=1e-5)


def test_a_budget_of_steps_that_is_too_small_is_reported():
    assert not bool(flow(oscillator, REST, jnp.asarray([1e3]), 2.0, max_steps=50).converged)


def test_crossings_are_located_in_the_asked_direction():
    def position(_, state, __):
        return state["x"]

    begin, until = jnp.asarray(0.0), jnp.asarray(10.0)
    down = crossing(oscillator, REST, position, begin, until, 1.0, direction=-1.0)
    up = crossing(oscillator, REST, position, begin, until, 1.0, direction=1.0)
    assert bool(down.converged)
    assert bool(up.converged)
    np.testing.assert_allclose([down.time, up.time], [np.pi / 2, 3 * np.pi / 2], rtol=1e-8)
    np.testing.assert_allclose([down.value["v"], up.value["v"]], [-1.0, 1.0], rtol=1e-7)
    never = crossing(oscillator, REST, lambda t, state, _: state["x"] - 2, begin, until, 1.0)
    assert not bool(never.converged)
    assert float(never.residual) == pytest.approx(2 - np.cos(10), abs=1e-7)
    assert max(float(down.residual), float(up.residual)) < 1e-8
    assert float(never.time) == 10.0
    assert float(never.value["x"]) == pytest.approx(np.cos(10), abs=1e-7)


def test_crossings_of_a_batch_depend_on_its_parameters():
    """cos(w t) first vanishes at pi / (2 w); the condition may use the time and the parameters."""
    times = jax.vmap(
        lambda w: (
            crossing(
                oscillator,
                REST,
                lambda t, state, w: state["x"] * w,
                jnp.asarray(0.0),
                jnp.asarray(9.0),
                w,
                direction=-1.0,
            ).time
        )
    )(jnp.asarray([0.5, 1.0, 2.0]))
    np.testing.assert_allclose(times, np.pi / 2 / np.asarray([0.5, 1.0, 2.0]), rtol=1e-8)
    clock = crossing(
        oscillator, REST, lambda t, *_: t - 3.25, jnp.asarray(1.0), jnp.asarray(9.0), 1.0
    )
    assert float(clock.time) == pytest.approx(3.25, rel=1e-9)
