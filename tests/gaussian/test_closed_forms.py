"""Closed two-point functions against quadrature and finite differences, inside and on the edges of
the domain."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.gaussian import activation, expectation, expectation_2d

CLOSED = [
    *("linear", "quadratic", "cubic", "hermite(2)", "hermite(5)", "polynomial(0.3, -1, 0.2, 0.5)"),
    *("erf", "erf_scaled", "gelu", "relu", "leaky_relu(0.1)", "leaky_relu(-0.4, 0.7)", "abs"),
    *("exp", "sin", "cos", "rbf", "gaussian"),
]
JUMPS = ["sign", "step"]
ALL = [activation(name) for name in [*CLOSED, *JUMPS]]
SMOOTH = slice(0, len(CLOSED))


COUNT = 24  # all covariances come in arrays of this size: one compilation for all


def inside():
    """Random covariances with |rho| < 0.9."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.2, 1.0, (2, COUNT))
    return (
        jnp.asarray(a),
        jnp.asarray(rng.uniform(-0.9, 0.9, COUNT) * np.sqrt(a * b)),
        jnp.asarray(b),
    )


def everywhere():
    """Half of them at rho = -1, 0 and 1, with equal and unequal variances."""
    a, c, b = map(np.array, inside())
    a[:6] = b[:6]
    c[:12] = np.tile([-1.0, 0.0, 1.0], 4) * np.sqrt(a * b)[:12]
    return jnp.asarray(a), jnp.asarray(c), jnp.asarray(b)


@jax.jit
def two_point(a, c, b):
    return jnp.stack([phi.two_point(a, c, b) for phi in ALL])


@jax.jit
def two_point_derivative(a, c, b):
    return jnp.stack([phi.two_point_derivative(a, c, b) for phi in ALL])


@jax.jit
def partials(a, c, b):
    """dF/da, dF/dc, dF/db of all activations, by reverse mode."""
    _, pull = jax.vjp(lambda *args: two_point(*args).sum(axis=-1), a, c, b)
    return jnp.stack(jax.vmap(pull)(jnp.eye(len(ALL))))


@jax.jit
def second_partials(a, c, b):
    _, pull = jax.vjp(lambda *args: two_point_derivative(*args).sum(axis=-1), a, c, b)
    return jnp.stack(jax.vmap(pull)(jnp.eye(len(ALL))))


def central_difference(function, arguments, i, step=1e-4):
    """Fourth order in the step."""

    def at(k):
        return function(*(x + k * step * (i == j) for j, x in enumerate(arguments)))

    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step)


def named(violations):
    """Names of the activations for which any entry is True."""
    return [
        phi.name
        for phi, bad in zip(ALL, np.asarray(violations).reshape(len(ALL), -1).any(axis=1))
        if bad
    ]


def test_value_is_the_average():
    a, c, b = everywhere()
    exact = jax.jit(
        lambda a, c, b: expectation_2d(
            lambda u, v: jnp.stack([phi(u) * phi(v) for phi in ALL]), a, c, b, ((0.0,), (0.0,))
        )
    )(a, c, b)
    scale = jnp.sqrt(two_point(a, a, a) * two_point(b, b, b))
    assert named(jnp.abs(two_point(a, c, b) - exact) > 1e-11 * scale) == []


def test_derivative_is_the_average_of_slopes():
    """Price's theorem, with phi' by automatic differentiation (sign and step: the delta functions
    are not seen)."""
    a, c, b = everywhere()
    smooth = ALL[SMOOTH]
    exact = jax.jit(
        lambda a, c, b: expectation_2d(
            lambda u, v: jnp.stack([phi.derivative(u) * phi.derivative(v) for phi in smooth]),
            a,
            c,
            b,
            ((0.0,), (0.0,)),
        )
    )(a, c, b)
    difference = jnp.abs(two_point_derivative(a, c, b)[SMOOTH] - exact)
    scale = jnp.sqrt(two_point_derivative(a, a, a) * two_point_derivative(b, b, b))[SMOOTH]
    assert [
        phi.name for phi, bad in zip(smooth, (difference > 1e-9 * scale).any(axis=1)) if bad
    ] == []


def test_derivative_of_the_function_itself():
    z = jnp.linspace(-2.1, 2.1, COUNT)
    slopes = jax.jit(lambda z: jnp.stack([phi.derivative(z) for phi in ALL]))(z)
    difference = central_difference(jax.jit(lambda z: jnp.stack([phi(z) for phi in ALL])), (z,), 0)
    assert named(jnp.abs(slopes - difference) > 1e-9) == []


def test_gradient_against_finite_differences():
    arguments = inside()
    gradient = partials(*arguments)
    scale = 1 + jnp.abs(two_point(*arguments))
    for i in range(3):
        assert (
            named(jnp.abs(gradient[i] - central_difference(two_point, arguments, i)) > 1e-9 * scale)
            == []
        )
    assert (
        named(
            jnp.abs(gradient[1] - two_point_derivative(*arguments))
            > 1e-14 * (1 + jnp.abs(gradient[1]))
        )
        == []
    )


def test_gradient_of_the_derivative_against_finite_differences():
    arguments = inside()
    gradient = second_partials(*arguments)
    scale = 1 + jnp.abs(gradient).max(axis=0)
    for i in range(3):
        assert (
            named(
                jnp.abs(gradient[i] - central_difference(two_point_derivative, arguments, i))
                > 1e-8 * scale
            )
            == []
        )


def edges():
    """The diagonal, the antipodes, a covariance rounded above sqrt(ab), nearly equal inputs, zero
    variances."""
    table = [
        *((0.7, 0.7, 0.7), (1.0, 1.0, 1.0), (1.3, -1.3, 1.3), (2.0, np.sqrt(2.0 * 0.3), 0.3)),
        *((0.3, 0.1 + 0.2, 0.3), (0.3, -0.1 - 0.2, 0.3), (1.0, 1.0 - 1e-13, 1.0), (1.0, 0.0, 1.0)),
        *(
            (0.0, 0.0, 0.0),
            (0.0, 0.0, 1.2),
            (1.2, 0.0, 0.0),
            (1e-300, 1e-300, 1e-300),
            (1e-12, 1e-12, 1e-12),
        ),
    ]
    return tuple(jnp.asarray(np.resize(column, COUNT)) for column in np.array(table).T)


def test_edges_are_finite():
    a, c, b = edges()
    assert named(~jnp.isfinite(two_point(a, c, b))) == []
    assert named(~jnp.isfinite(partials(a, c, b)).all(axis=0)) == []
    assert named(jnp.isnan(two_point_derivative(a, c, b))) == []
    assert named(~jnp.isfinite(two_point_derivative(a, c, b))) == JUMPS
    assert named(~jnp.isfinite(second_partials(a, c, b)).all(axis=0)) == []


def test_rounding_above_one_changes_nothing():
    exact, above = (
        two_point(*(jnp.full(COUNT, x) for x in (0.3, c, 0.3))) for c in (0.3, 0.1 + 0.2)
    )
    assert named(jnp.abs(exact - above) > 1e-15) == []


def test_float32_is_taken_to_float64():
    a, c, b = (x.astype(jnp.float32) for x in everywhere())
    wide = two_point(*(x.astype(jnp.float64) for x in (a, c, b)))
    assert two_point(a, c, b).dtype == jnp.float64
    np.testing.assert_array_equal(two_point(a, c, b), wide)
    assert activation("relu")(np.float32(0.1)).dtype == jnp.float64


def test_derivative_along_the_diagonal():
    """d/dq F(q, q, q) = d/dq E phi(u)^2 = E (z^2 - 1) phi(sqrt(q) z)^2 / (2q)."""
    q = jnp.linspace(0.1, 1.0, COUNT)
    along = partials(q, q, q).sum(axis=0)

    @jax.jit
    def truth(q):
        return expectation(
            lambda u: (u**2 / q[:, None] - 1) * jnp.stack([phi(u) ** 2 for phi in ALL]), q, (0.0,)
        ) / (2 * q)

    assert named(jnp.abs(along - truth(q)) > 1e-12 * (1 + jnp.abs(along))) == []


def test_gram_matrices_stay_positive():
    """F of a Gram matrix is a Gram matrix, with repeated, opposite, scaled and vanishing inputs."""
    x = np.random.default_rng(1).normal(size=(30, 4)) * 0.6
    x[20:25], x[25:28], x[28], x[29] = x[:5], -x[:3], 1.7 * x[0], 0
    gram = x @ x.T
    variance = np.diagonal(gram)
    kernels = np.asarray(two_point(variance[:, None], gram, variance[None]))
    lowest, trace = np.linalg.eigvalsh(kernels)[:, 0], np.trace(kernels, axis1=1, axis2=2)
    assert named(lowest < -1e-13 * trace) == []


def test_kernel_of_an_input_with_itself():
    """One piecewise linear layer: K(x, x) = s |x|^2, so dK/dx = 2 s x, and the mixed derivative d^2
    K / dx dy at x = y is s."""
    layers = [activation(name) for name in ("relu", "abs", "leaky_relu(0.2)")]

    def kernel(x, y):
        return jnp.stack([phi.two_point(x @ x, x @ y, y @ y) for phi in layers])

    x = jnp.array([0.3, -1.1, 0.4])
    gradient = jax.jit(jax.jacrev(lambda x: kernel(x, x)))(x)
    mixed = jax.jit(jax.jacfwd(jax.jacrev(kernel, 0), 1))(x, x)
    for i, slope in enumerate([0.5, 1.0, 0.52]):
        np.testing.assert_allclose(gradient[i], 2 * slope * x, rtol=1e-14)
        np.testing.assert_allclose(mixed[i], slope * np.eye(3), rtol=0, atol=1e-14)


def test_large_variances():
    """No overflow, and the limits erf -> sign and sin^2 -> 1/2."""
    a = jnp.array([1e6, 1e12])
    np.testing.assert_allclose(activation("erf").two_point(a, a / 2, a), 1 / 3, atol=1e-6)
    for name, c, value in [
        ("sin", 800.0, 0.5),
        ("sin", -800.0, -0.5),
        ("cos", -800.0, 0.5),
        ("rbf", 800.0, 1.0),
    ]:
        assert float(activation(name).two_point(800.0, c, 800.0)) == pytest.approx(value, rel=1e-15)
        assert np.isfinite(float(jax.grad(activation(name).two_point, 1)(800.0, c, 800.0)))


def test_small_covariance_keeps_its_digits():
    """sinh(c) and asin(x) near 0: no cancellation."""
    for name, value in [
        ("sin", np.exp(-1) * 1e-12),
        ("erf_scaled", 1e-12 / np.pi),
        ("hermite(1)", 1e-12),
    ]:
        assert float(activation(name).two_point(1.0, 1e-12, 1.0)) == pytest.approx(value, rel=1e-12)


def test_moments():
    variance = jnp.linspace(0.0, 2.0, COUNT)
    means, squares, cubes = jax.jit(
        lambda q: [jnp.stack([phi.moment(k, q) for phi in ALL]) for k in (1, 2, 3)]
    )(variance)
    diagonal = two_point(variance, variance, variance)
    assert named((jnp.abs(squares - diagonal) > 1e-12 * diagonal)[:, 1:]) == []
    origin = jnp.stack([phi(0.0) for phi in ALL])
    np.testing.assert_allclose(cubes[:, 0], origin**3, rtol=0, atol=1e-15)
    assert named((means != 0).any(axis=1)) == [phi.name for phi in ALL if phi.parity != "odd"]
    np.testing.assert_allclose(
        activation("relu").mean(variance), jnp.sqrt(variance / (2 * np.pi)), atol=1e-15
    )
    np.testing.assert_allclose(activation("exp").mean(400.0), np.exp(200.0), rtol=1e-14)


def test_slopes_and_coefficients_can_be_differentiated():
    leaky = jax.grad(lambda phi: phi.two_point(1.0, 0.3, 1.0))(activation("leaky_relu(0.2, 0.9)"))
    step, theta = 0.7, np.arccos(0.3)
    core = (np.sin(theta) + (np.pi - theta) * 0.3) / (2 * np.pi)
    assert float(leaky.negative_slope) == pytest.approx(-2 * step * core + 0.9 * 0.3, rel=1e-14)
    polynomial = jax.grad(lambda phi: phi.two_point(1.0, 0.3, 1.0))(
        activation("polynomial(0.0, 1.0, 0.0, 0.5)")
    )
    # p_1 (u) + p_3 (u^3): F = c p_1^2 + 6 c p_1 p_3 + p_3^2 (9c + 6c^3)
    expected = [0.0, 2 * 0.3 + 6 * 0.3 * 0.5, 0.0, 6 * 0.3 + (9 * 0.3 + 6 * 0.027)]
    np.testing.assert_allclose(polynomial.coefficients, expected, rtol=1e-14)


@pytest.mark.parametrize("gain", [0.3, 1.0, 2.5])
def test_erf_with_a_gain_by_name_is_erf_of_scaled_variances(gain):
    phi, unit = activation(f"erf_gain({gain})"), activation("erf")
    a, c, b = 0.7, 0.4, 1.3
    assert float(phi.two_point(a, c, b)) == pytest.approx(
        float(unit.two_point(gain**2 * a, gain**2 * c, gain**2 * b)), rel=1e-14
    )
    assert activation(phi.name) == phi
    assert float(phi(0.8)) == pytest.approx(float(unit(0.8 * gain)), rel=1e-15)
