"""Minima with their derivatives, against closed forms; barriers of a domain; what was not found is
said."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.solve.minimum import differentiated, lbfgs_minimum, newton_minimum


def newton(function, start, **options):
    return newton_minimum(differentiated(function), start, **options)


@pytest.mark.parametrize("minimum", [newton, lbfgs_minimum])
def test_minimum_and_its_derivatives(minimum):
    """u - a log u in each unknown, coupled by (sum u - s)^2/2: stationarity u (1 + sum u - s) = a,
    and du/ds from it."""
    a = jnp.asarray([0.5, 1.0, 2.0])

    def at(s):
        return minimum(
            lambda x: jnp.sum(jnp.exp(x) - a * x) + (jnp.sum(jnp.exp(x)) - s) ** 2 / 2, jnp.zeros(3)
        )

    found = jax.jit(at)(1.5)
    assert bool(found.converged)
    assert float(found.residual) < 1e-8
    assert 0 < int(found.steps) < 40
    total = (0.5 + np.sqrt(0.25 + 4 * 3.5)) / 2  # t (1 + t - s) = sum a
    np.testing.assert_allclose(jnp.exp(found.value), a / (1 + total - 1.5), rtol=1e-8)
    slope = total / (2 * total - 0.5)  # dt/ds
    for derivative in (jax.grad, jax.jacfwd):
        assert float(derivative(lambda s: jnp.sum(jnp.exp(at(s).value)))(1.5)) == pytest.approx(
            slope, rel=1e-7
        )


@pytest.mark.parametrize("minimum", [newton, lbfgs_minimum])
def test_what_was_not_found_is_said(minimum):
    assert not bool(
        minimum(lambda x: jnp.sum(jnp.cosh(x)), jnp.asarray([4.0, -3.0]), max_steps=2).converged
    )


def test_barriers_are_not_crossed():
    """log(1 - x) is infinite on the barrier, where the first full step leads, and no number beyond
    it."""
    found = newton(lambda x: jnp.sum(-jnp.log(1 - x) / 10 - x), jnp.asarray([0.0]))
    np.testing.assert_allclose(found.value, 0.9, rtol=1e-9)
