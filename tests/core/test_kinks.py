"""Kinks and jumps of a person's function."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.core import kinks
from orderparam.core.kinks import rough_places
from orderparam.gaussian import activation
from orderparam.networks.dense import Nonlinearity
from orderparam.systems.random_networks import RandomNetwork


@pytest.mark.parametrize(
    ("function", "jumps", "rough"),
    [
        (jax.nn.relu, [], [0]),
        (lambda z: jnp.where(z > 0, z, 0.9 * z), [], [0]),
        (jnp.abs, [], [0]),
        (lambda z: 1e-9 * jnp.abs(z - 1.3), [], [1.3]),
        (lambda z: jnp.clip(z, -1, 1), [], [-1, 1]),
        (lambda z: jnp.sqrt(jnp.abs(z)), [], [0]),
        (lambda z: jnp.tanh(z) + 1e-3 * jnp.abs(z - 1), [], [1]),
        (jnp.sign, [0], []),
        (lambda z: jnp.where(z > 0.3, z**2, 0.0), [0.3], []),
        (lambda z: jnp.where(z > 0, 1.0, 0.0) + jax.nn.relu(z - 2), [0], [2]),
    ],
)
def test_kinks_and_jumps_are_found(function, jumps, rough):
    found = rough_places(function)
    np.testing.assert_allclose(found.jumps, jumps, atol=2e-6)
    np.testing.assert_allclose(found.kinks, rough, atol=2e-6)


def test_of_many_jumps_some_are_found():
    jumps = rough_places(jnp.floor).jumps
    assert len(jumps) >= 7
    np.testing.assert_allclose(jumps, np.round(jumps), atol=2e-6)


SMOOTH = {
    "tanh": jnp.tanh,
    "tanh of 50": lambda z: jnp.tanh(50 * z),
    "tanh of 1000": lambda z: jnp.tanh(1000 * z),
    "peak": lambda z: 1 / (1 + (300 * z) ** 2),
    "sine": lambda z: jnp.sin(30 * z),
    "gelu": jax.nn.gelu,
    "softplus": jax.nn.softplus,
    "elu": jax.nn.elu,
    "power": lambda z: z**5,
    "growth": lambda z: jnp.exp(z**2),
    "constant": lambda z: 0 * z + 1,
    "large": lambda z: 1e9 * jnp.tanh(z),
    "rounding near 0": lambda z: (1 - jnp.cos(z)) / z**2,
    "single precision": lambda z: jnp.tanh(z.astype(jnp.float32)).astype(jnp.float64),
    "logarithm": jnp.log,
    "not a number": lambda z: z * jnp.nan,
}


@pytest.mark.parametrize("function", SMOOTH.values(), ids=SMOOTH)
def test_smooth_functions_have_none(function):
    assert rough_places(function) == ((), ())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (jnp.abs, r"not smooth at 0, .* activation\(function, kinks=\(0.0,\)\)"),
        (lambda z: jnp.sign(z), "jumps at 0,"),
        (jnp.floor, "jumps at .* and elsewhere"),
        (activation(lambda z: jnp.abs(z - 1)), r"not smooth at 1, .* kinks=\(1.0,\)"),
        (activation(lambda z: jnp.clip(z, -1, 1), kinks=(1,)), r"at -1, .* kinks=\(-1.0, 1.0\)"),
    ],
)
def test_unnamed_kinks_are_refused(given, message):
    with pytest.raises(ValueError, match=f"^RandomNetwork.activation.*{message}"):
        RandomNetwork([[1.0, 0.5]], activation=given)
    with pytest.raises(ValueError, match=message):
        Nonlinearity(given)


@dataclasses.dataclass
class Steep:
    slope: float

    def __call__(self, z):
        return jnp.tanh(self.slope * z)


def test_a_function_without_a_hash_is_refused_in_plain_words():
    with pytest.raises(ValueError, match=r"an object of Steep has no hash .*: give a plain funct"):
        RandomNetwork([[1.0, 0.5]], activation=Steep(2.0))
    steep = Steep(2.0)
    RandomNetwork([[1.0, 0.5]], activation=lambda z: steep(z))


@pytest.mark.parametrize(
    "given",
    [
        jnp.tanh,
        lambda z: jnp.tanh(50 * z),
        activation(jnp.abs, kinks=(0,)),
        activation(jnp.floor, kinks=tuple(range(-8, 9))),
    ],
)
def test_smooth_functions_and_named_kinks_are_accepted(given):
    RandomNetwork([[1.0, 0.5]], activation=given)


def test_the_catalogue_is_not_searched(monkeypatch):
    monkeypatch.setattr(kinks, "rough_places", lambda function: pytest.fail("searched"))
    for name in ("relu", "sign", "tanh", "erf"):
        RandomNetwork([[1.0, 0.5]], activation=name)


def test_a_function_of_a_traced_number_is_not_searched():
    @jax.jit
    def value(slope):
        return Nonlinearity(activation(lambda z: jnp.tanh(slope * z))).activation(1.0)

    np.testing.assert_allclose(value(2.0), np.tanh(2.0))
