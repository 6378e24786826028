"""Bracketed roots: accuracy, derivatives of all orders, and honesty when there is no root."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.solve.root import decreasing_root


def power(u, args):
    base, exponent = args
    return base - u**exponent


@pytest.mark.parametrize(
    ("function", "lower", "upper", "root"),
    [
        (lambda u, _: jnp.cos(u), 0.0, 3.0, np.pi / 2),
        # Newton overshoots from almost everywhere
        (lambda u, _: -jnp.tanh(1e3 * (u - 0.3)), -50.0, 700.0, 0.3),
        # no absolute size of the function matters
        (lambda u, _: 1e-200 * (5.0 - u), -1e3, 1e3, 5.0),
        # infinite slope at the root
        (lambda u, _: jnp.where(u < 1, 1.0, -1.0) * jnp.abs(u - 1) ** 0.25, -4.0, 9.0, 1.0),
    ],
)
def test_roots_to_rounding(function, lower, upper, root):
    found = decreasing_root(function, lower, upper)
    assert float(found.value) == pytest.approx(root, rel=1e-12)


def test_convergence_is_reported():
    found = decreasing_root(power, 0.0, 9.0, (2.0, 3.0))
    assert found.converged
    assert found.residual < 1e-14
    assert 2 < found.steps < 20


@pytest.mark.parametrize(
    ("function", "lower", "upper"),
    [
        (lambda u, _: 1.0 + u**2, 0.0, 1.0),  # never zero
        (lambda u, _: -1.0 - u, 0.0, 1.0),  # negative in the whole bracket
        (lambda u, _: jnp.nan * u, 0.0, 1.0),
        (lambda u, _: 1 - u, 0.0, jnp.nan),
    ],
)
def test_a_root_that_is_not_there_is_not_reported_as_found(function, lower, upper):
    assert not decreasing_root(function, lower, upper).converged


def test_first_and_second_derivatives_are_those_of_the_root():
    def root(base):
        return decreasing_root(power, 0.0, 9.0, (base, 3.0)).value  # base^(1/3)

    base = 2.0
    assert float(jax.grad(root)(base)) == pytest.approx(base ** (-2 / 3) / 3, rel=1e-12)
    assert float(jax.jacfwd(root)(base)) == pytest.approx(base ** (-2 / 3) / 3, rel=1e-12)
    assert float(jax.grad(jax.grad(root))(base)) == pytest.approx(
        -2 / 9 * base ** (-5 / 3), rel=1e-11
    )


def test_a_batch_gives_the_same_as_one_by_one():
    bases = jnp.array([1e-6, 0.5, 2.0, 300.0])
    batch = jax.jit(jax.vmap(lambda base: decreasing_root(power, 0.0, 9.0, (base, 3.0))))(bases)
    np.testing.assert_allclose(batch.value, np.cbrt(bases), rtol=1e-12)
    assert batch.converged.all()


def test_a_root_inside_a_root_has_its_derivatives():
    def root(a):
        """u + v = 4 with v^3 = a + u."""

        def excess(u, a):
            return 4 - u - decreasing_root(lambda v, _: a + u - v**3, 0.0, 9.0).value

        return decreasing_root(excess, 0.0, 9.0, a).value

    a = 2.0
    v = 4 - float(root(a))
    slope = -1 / (1 + 3 * v**2)
    assert a + 4 - v == pytest.approx(v**3, rel=1e-13)
    assert float(jax.grad(root)(a)) == pytest.approx(slope, rel=1e-12)
    assert float(jax.jacfwd(root)(a)) == pytest.approx(slope, rel=1e-12)
    assert float(jax.hessian(root)(a)) == pytest.approx(-6 * v * slope**3, rel=1e-11)
    batch = jax.jit(jax.vmap(jax.grad(root)))(jnp.array([1.0, a]))
    assert float(batch[1]) == pytest.approx(slope, rel=1e-12)


def test_the_function_is_traced_once_also_for_a_derivative():
    # each level of nested roots would otherwise multiply the time of compilation
    traced = []

    def counted(u, args):
        traced.append(u)
        return power(u, args)

    def root(base):
        return decreasing_root(counted, 0.0, 9.0, (base, 3.0)).value

    jax.jit(root)(2.0)
    assert len(traced) == 1
    jax.jit(jax.grad(root))(2.0)
    assert len(traced) == 2
