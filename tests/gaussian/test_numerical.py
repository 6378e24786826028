"""Numerical two-point functions: of functions whose closed form is known, given as plain Python
functions, and of tanh."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import erf

from orderparam.gaussian import activation, expectation_2d
from orderparam.gaussian.interpolation import contract


def relu_function(z):
    return jnp.where(z > 0, z, 0.0)


def step_function(z):
    return jnp.where(z > 0, 1.0, 0.0)


def hard_tanh(z):
    return jnp.clip(z, -1.0, 1.0)


TANH = activation("tanh")
RELU = activation(relu_function, kinks=(0,))
STEP = activation(step_function, kinks=(0,))
HARD = activation(hard_tanh, kinks=(-1, 1), parity="odd")

# inside, on the diagonal, antipodal, uncorrelated, zero variance, large variance, rounded above
# sqrt(ab), nearly equal
TABLE = np.array(
    [
        *(
            (1.3, 0.55, 0.8),
            (1.0, 1.0, 1.0),
            (2.0, -2.0, 2.0),
            (1.0, 0.0, 3.0),
            (0.5, 0.0, 0.0),
            (100.0, 30.0, 20.0),
        ),
        *((0.3, 0.1 + 0.2, 0.3), (2.0, 2.0 - 1e-9, 2.0)),
    ]
)
A, C, B = map(jnp.asarray, TABLE.T)


def sphere(count, variance, key=0):
    """Gram matrix of random inputs with |x|^2 = variance, among them repeated, opposite and nearly
    equal ones."""
    x = np.random.default_rng(key).normal(size=(count, 3))
    x[count // 2 : count // 2 + 5] = x[:5]
    x[-10:-5], x[-5:] = -x[:5], x[:5] + 1e-4 * x[5:10]
    return (
        x / np.linalg.norm(x, axis=1)[:, None] * np.sqrt(np.broadcast_to(variance, count))[:, None]
    )


@pytest.mark.parametrize("variance", [1.0, 100.0])
def test_kernel_matrix_of_normalised_inputs(variance):
    x = sphere(40, variance)
    kernel = activation(erf).two_point(variance, x @ x.T, variance)
    exact = activation("erf").two_point(variance, x @ x.T, variance)
    np.testing.assert_allclose(kernel, exact, rtol=0, atol=2e-12)


def test_kernel_matrix_of_any_inputs():
    """Variances from 0 to 100, more entries than are integrated one by one."""
    scale = np.concatenate([[0.0, 100.0], np.random.default_rng(2).uniform(0, 10, 68) ** 2])
    x = sphere(70, 1.0) * np.sqrt(scale)[:, None]
    variance = np.sum(x * x, axis=1)
    arguments = variance[:, None], x @ x.T, variance[None]
    kernel = activation(erf).two_point(*arguments)
    np.testing.assert_allclose(kernel, activation("erf").two_point(*arguments), rtol=0, atol=1e-11)
    assert np.linalg.eigvalsh(kernel)[0] > -1e-10


def test_kink_at_the_origin():
    exact = activation("relu")
    np.testing.assert_allclose(
        RELU.two_point(A, C, B), exact.two_point(A, C, B), rtol=0, atol=3e-13
    )
    x = sphere(40, 2.0)
    np.testing.assert_allclose(
        RELU.two_point(2.0, x @ x.T, 2.0), exact.two_point(2.0, x @ x.T, 2.0), rtol=0, atol=1e-12
    )


def test_kink_gradients():
    """Price's theorem with kinks: first derivatives need phi'; those of the derivative need the
    delta functions in phi''."""
    exact = activation("relu")
    regular = B > 0

    def both(phi):
        first = jax.grad(lambda *args: phi.two_point(*args).sum(), (0, 1, 2))
        second = jax.grad(lambda *args: phi.two_point_derivative(*args).sum(), (0, 1, 2))
        return jax.jit(
            lambda *args: (phi.two_point_derivative(*args), first(*args), second(*args))
        )(A, C, B)

    value, first, second = both(RELU)
    exact_value, exact_first, exact_second = both(exact)
    np.testing.assert_allclose(value[regular], exact_value[regular], rtol=0, atol=1e-11)
    for i in range(3):
        np.testing.assert_allclose(first[i][regular], exact_first[i][regular], rtol=0, atol=1e-11)
        np.testing.assert_allclose(second[i], exact_second[i], rtol=1e-10, atol=1e-13)


def test_jump():
    exact = activation("step")
    regular = B > 0  # with zero variance the value is phi(0), and phi(0) is a convention
    np.testing.assert_allclose(
        STEP.two_point(A, C, B)[regular], exact.two_point(A, C, B)[regular], rtol=0, atol=1e-11
    )
    slope, exact_slope = STEP.two_point_derivative(A, C, B), exact.two_point_derivative(A, C, B)
    np.testing.assert_allclose(slope[regular], exact_slope[regular], rtol=1e-12)
    assert bool(jnp.isinf(slope[1]) & jnp.isinf(slope[2]))
    assert float(jax.jit(jax.grad(lambda t: STEP.two_point(t, t, t)))(0.7)) == 0.0
    with pytest.raises(ValueError, match=r"kinks at \(0.0,\)"):
        jax.grad(STEP.two_point_derivative, 1)(1.0, 0.5, 1.0)


def test_kinks_away_from_the_origin():
    """min(max(u, -1), 1): table against entry-by-entry integration, and all derivatives against
    finite differences."""
    a, c, b = point = np.array([1.3, 0.55, 0.8])
    step = 1e-3
    moves = np.concatenate([np.outer([1, -1, 2, -2], row) for row in step * np.eye(3)])
    covariance = np.linspace(-2.0, 2.0, 97)
    entries = np.concatenate([moves + point, [[2.0, x, 2.0] for x in covariance[::32]]])
    single = np.asarray(HARD.two_point(*map(jnp.asarray, entries.T)))
    np.testing.assert_allclose(
        HARD.two_point(2.0, covariance, 2.0)[::32], single[12:], rtol=0, atol=1e-12
    )
    f = single[:12].reshape(3, 4)
    gradient = jax.jit(jax.grad(HARD.two_point, (0, 1, 2)))(a, c, b)
    np.testing.assert_allclose(
        gradient, (8 * (f[:, 0] - f[:, 1]) - (f[:, 2] - f[:, 3])) / (12 * step), rtol=0, atol=1e-9
    )
    # d^2 F / dc^2 is the density of (u, v) at the four corners where both slopes jump
    det = a * b - c * c
    density = [
        np.exp(-(a + b - 2 * s * c) / (2 * det)) / (2 * np.pi * np.sqrt(det)) for s in (1, -1)
    ]
    curvature = float(jax.jit(jax.grad(HARD.two_point_derivative, 1))(a, c, b))
    assert curvature == pytest.approx(2 * density[0] - 2 * density[1], rel=1e-12)


def test_tanh_gradients():
    """Against finite differences, and on the edges: d/dq F(q, q, q) = d/dq E tanh(u)^2."""
    gradient = jax.jit(jax.grad(lambda *args: TANH.two_point(*args).sum(), (0, 1, 2)))
    values = gradient(A, C, B)
    assert all(bool(jnp.isfinite(v).all()) for v in values)
    diagonal = sum(v[1] for v in values)
    q = 1.0 + 1e-3 * np.array([1, -1, 2, -2])
    f = np.asarray(TANH.moment(2, q))
    assert float(diagonal) == pytest.approx((8 * (f[0] - f[1]) - (f[2] - f[3])) / 12e-3, abs=1e-10)
    for i in range(3):
        ahead = np.resize(TABLE[0], (8, 3)) + np.resize([1, -1, 2, -2], 8)[:, None] * 1e-3 * (
            np.arange(3) == i
        )
        f = np.asarray(TANH.two_point(*map(jnp.asarray, ahead.T)))
        assert float(values[i][0]) == pytest.approx(
            (8 * (f[0] - f[1]) - (f[2] - f[3])) / 12e-3, abs=1e-10
        )
    np.testing.assert_allclose(TANH.two_point_derivative(A, C, B), values[1], rtol=1e-14)


def test_tanh_becomes_sign():
    """F at infinite variance is (2/pi) asin(rho)."""
    q = 1e6
    assert float(TANH.two_point(q, 0.5 * q, q)) == pytest.approx(1 / 3, abs=1e-3)
    assert float(TANH.two_point(1e-8, 0.5e-8, 1e-8)) == pytest.approx(0.5e-8, rel=1e-7)


def test_tanh_is_its_mehler_series():
    """F(a, c, b) = sum_n c_n(a) c_n(b) rho^n."""
    first, second = TANH.hermite_coefficients(120, jnp.array([1.3, 0.8]))
    rho = 0.55 / np.sqrt(1.3 * 0.8)
    assert float(jnp.sum(first * second * rho ** jnp.arange(120))) == pytest.approx(
        float(TANH.two_point(1.3, 0.55, 0.8)), abs=1e-14
    )


def test_shapes_broadcast():
    a, c, b = jnp.ones((2, 1, 3)), jnp.zeros((4, 1)), jnp.ones(3)
    for phi in (
        TANH,
        activation("relu"),
        activation("linear"),
        activation("quadratic"),
        activation("rbf"),
    ):
        for function in (phi.two_point, phi.two_point_derivative):
            assert jax.eval_shape(function, a, c, b).shape == (2, 4, 3), phi.name


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((5, 1), (1, 4)),
        ((3, 1, 2, 1), (1, 4, 1, 2)),
        ((3, 1, 2), (1, 4, 2)),
        ((6,), (6,)),
        ((), (2, 3)),
        ((5, 1), (4,)),
    ],
)
def test_contraction_of_variances(left, right):
    """Kernel matrices of vectors and of pixels, shared axes, single variances: always the
    elementwise inner product."""
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(*left, 7)), rng.normal(size=(*right, 7))
    np.testing.assert_allclose(
        contract(jnp.asarray(x), jnp.asarray(y)), np.sum(x * y, axis=-1), rtol=1e-12, atol=1e-14
    )


def test_average_of_a_function_of_both():
    """E exp(u - v) = exp((a + b - 2c) / 2), and a probability with cuts away from the origin."""
    value = jax.jit(lambda c: expectation_2d(lambda u, v: jnp.exp(u - v), 0.5, c, 0.4))(0.2)
    assert float(value) == pytest.approx(np.exp((0.5 + 0.4 - 0.4) / 2), rel=1e-12)
    above = jax.jit(
        lambda c: expectation_2d(
            lambda u, v: (u > 0.7) * (v > 0.7) * 1.0, 1.0, c, 1.0, ((0.7,), (0.7,))
        )
    )(0.3)
    assert float(above) == pytest.approx(bivariate_tail(0.7, 0.3), abs=1e-13)


def bivariate_tail(k, rho):
    """P(u > k, v > k) = P(u > k)^2 + int_0^rho density(k, k; r) dr (Plackett 1954)."""
    from scipy.integrate import quad
    from scipy.stats import norm

    integral, _ = quad(
        lambda r: np.exp(-(k**2) / (1 + r)) / (2 * np.pi * np.sqrt(1 - r**2)), 0, rho, epsabs=1e-15
    )
    return norm.sf(k) ** 2 + integral
