"""Looking up activations: names, text forms, Python functions, and what is refused."""

import pickle
import string

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orderparam.gaussian import Activation, activation, activation_names

finite = st.floats(-1e6, 1e6)


def plain(z):
    return jnp.sin(z) ** 2


def test_every_name():
    for text in activation_names():
        name, _, parameters = text.partition("(")
        phi = activation(f"{name}({'3, ' * parameters.count(',')}3)" if parameters else name)
        assert isinstance(phi, Activation)
        assert activation(phi.name) == phi
        assert activation(phi) is phi
        assert hash(phi) == hash(activation(phi.name))
        assert pickle.loads(pickle.dumps(phi)) == phi


def test_text_forms():
    assert activation("leaky_relu(0.1)") == activation("leaky_relu", negative_slope=0.1)
    assert activation(" leaky_relu( negative_slope = 0.1, positive_slope=2 ) ") == activation(
        "leaky_relu(0.1, 2)"
    )
    assert activation("polynomial(0,1,0,0.5)") == activation(
        "polynomial", coefficients=(0, 1, 0, 0.5)
    )
    assert activation("quadratic") == activation("monomial(2)") == activation("monomial", degree=2)
    assert activation("leaky_relu(0.1)") != activation("leaky_relu(0.2)")
    assert activation("erf") != activation("erf_scaled")


@given(finite, finite)
def test_names_carry_the_parameters(negative, positive):
    phi = activation("leaky_relu", negative_slope=negative, positive_slope=positive)
    assert activation(phi.name) == phi


@given(st.lists(finite, min_size=1, max_size=6))
def test_polynomial_names(coefficients):
    phi = activation("polynomial", coefficients=coefficients)
    assert activation(phi.name) == phi


@given(st.text(string.printable, max_size=12))
def test_any_other_text_is_refused(text):
    names = [name.partition("(")[0] for name in activation_names()]
    if text.partition("(")[0].strip() not in names:
        with pytest.raises(ValueError):
            activation(text)


@pytest.mark.parametrize(
    ("which", "parameters", "message"),
    [
        ("rellu", {}, "did you mean 'relu'"),
        ("relu(3)", {}, "has no parameters"),
        ("tanh", {"gain": 2}, "has no parameters"),
        ("hermite", {}, "needs its degree"),
        ("hermite(0)", {}, "degree = 0: must be an integer >= 1"),
        ("hermite(2.5)", {}, "degree = 2.5"),
        ("monomial(-1)", {}, "degree = -1"),
        ("leaky_relu(a)", {}, "'a' is not a number"),
        ("leaky_relu(nan)", {}, "negative_slope = nan: must be a finite number"),
        ("leaky_relu(0.1, slope=2)", {}, "no parameter 'slope'; did you mean 'positive_slope'"),
        ("leaky_relu(1, 2, 3)", {}, "takes 2 parameters"),
        ("leaky_relu(1, negative_slope=2)", {}, "negative_slope is given twice"),
        ("leaky_relu(negative_slope=1, negative_slope=2)", {}, "negative_slope is given twice"),
        ("leaky_relu(negative_slope=1)", {"negative_slope": 2}, "negative_slope is given twice"),
        ("leaky_relu", {"negative_slope": "steep"}, "negative_slope = 'steep'"),
        ("polynomial()", {}, "at least one number"),
        ("polynomial", {"coefficients": 3}, "must be a sequence"),
        ("polynomial(1, inf)", {}, r"coefficients\[1\] = inf"),
        ("relu)(", {}, "must be a name"),
        ("__import__('os')", {}, "is not a number|unknown activation|must be a name"),
        (3, {}, "must be a name, a function or an Activation"),
        (plain, {"kink": 0}, "no parameter 'kink'; did you mean 'kinks'"),
        (plain, {"kinks": "0"}, "kinks = '0'"),
        (plain, {"kinks": (np.inf,)}, "must be a list of finite numbers"),
        (plain, {"parity": "symmetric"}, "parity = 'symmetric'"),
        (jnp.sum, {}, "same shape"),
        (lambda z: z > 0, {}, "array of reals"),
        (lambda z: float(z), {}, "cannot trace"),
        (activation("relu"), {"kinks": (0,)}, "takes no parameter kinks"),
    ],
)
def test_bad_input(which, parameters, message):
    with pytest.raises(ValueError, match=message):
        activation(which, **parameters)


@pytest.mark.parametrize("value", [0, -1, 2.0, True, "3"])
def test_counts_and_orders(value):
    for phi in map(activation, ("relu", "linear", "hermite(2)", "exp")):
        with pytest.raises(ValueError, match="count"):
            phi.hermite_coefficients(value)
        with pytest.raises(ValueError, match="order"):
            phi.moment(value, 1.0)


def test_python_functions():
    phi = activation(plain, parity="even", name="square of the sine")
    assert (phi.name, phi.kinks, phi.parity) == ("square of the sine", (), "even")
    assert activation(plain).name == "plain"
    assert activation(plain, kinks=(1, 0, 1)).kinks == (0.0, 1.0)
    assert activation(plain) == activation(plain) != activation(plain, kinks=(0,))
    # E sin^2 u sin^2 v = (1 - 2 e^{-2q} + e^{-4q} cosh(4c)) / 4
    assert float(phi.two_point(1.0, 0.3, 1.0)) == pytest.approx(
        (1 - 2 * np.exp(-2) + np.exp(-4) * np.cosh(1.2)) / 4, rel=1e-12
    )


def test_kinks_and_parity():
    assert all(
        activation(name).kinks == (0.0,) for name in ("relu", "leaky_relu", "abs", "sign", "step")
    )
    assert all(activation(name).kinks == () for name in ("tanh", "erf", "linear", "gelu"))
    for name in activation_names():
        if "(" not in name:
            phi, z = activation(name), jnp.array([0.3, 1.7])
            same, opposite = jnp.allclose(phi(-z), phi(z)), jnp.allclose(phi(-z), -phi(z))
            assert phi.parity == ("even" if same else "odd" if opposite else None), name


def test_static_and_leaves():
    """Parameters are leaves, degrees and functions are not; an activation can be a static argument
    of a compiled function."""
    assert jax.tree.leaves(activation("leaky_relu(0.1)")) == [0.1, 1.0]
    assert jax.tree.leaves(activation("hermite(3)")) == jax.tree.leaves(activation("tanh")) == []
    compiled = jax.jit(lambda phi, c: phi.two_point(1.0, c, 1.0), static_argnums=0)
    assert float(compiled(activation("leaky_relu(-1)"), 0.0)) == pytest.approx(2 / np.pi, rel=1e-15)
    traced = jax.jit(lambda phi: phi.name == "leaky_relu")
    assert bool(traced(activation("leaky_relu(0.1)")))
