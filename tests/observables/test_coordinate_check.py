"""`coordinate_check`: sizes against the exact first step, parametrisations by name, PyTorch and JAX
alike, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from orderparam.observables import coordinate_check
from orderparam.observables.width_parametrisation import NAMES
from orderparam.observables.width_theory import linear_first_step

INPUTS = 6


@pytest.fixture(scope="module")
def data():
    x = np.random.default_rng(0).normal(size=(30, INPUTS))
    return x, np.sign(x[:, 0] * x[:, 1])


def weights(width, seed, readout=1.0):
    """In standard parametrisation, the read-out in units of N^(-1/2)."""
    one, two = jax.random.split(jax.random.key(seed))
    first = jax.random.normal(one, (width, INPUTS)) / INPUTS**0.5
    return first, readout * jax.random.normal(two, (1, width)) / width**0.5


def network(parameters, x, activation=jnp.tanh):
    return activation(x @ parameters[0].T) @ parameters[1].T


def test_the_first_step_of_a_linear_network(data):
    """Root mean squares over initialisations beside the exact average, within four errors."""
    x, y = data
    rate = 0.05
    found = coordinate_check(
        lambda width, seed: (
            lambda w, x: network(w, x, lambda h: h), weights(width, seed)
        ),
        [16, 32, 64], x, y, learning_rate=rate, steps=1, seeds=24,
    )  # fmt: skip
    for width, rows in found.table.groupby("width"):
        exact = linear_first_step(x, y, NAMES["standard", "sgd"], width, 2, rate).first_layer
        squares = np.square(rows["h1 step 1"])
        error = squares.std(ddof=1) / len(squares) ** 0.5
        assert abs(squares.mean() - exact**2) < 4 * error
    assert np.all(found.table["loss_1"] < found.table["loss_0"])


def test_a_parametrisation_is_recognised_and_a_wrong_one_is_not(data):
    """Maximal-update scaling for Adam: a read-out of variance 1 / N^2 with the learning rate
    1 / N."""
    x, y = data

    def rates(width, parameters):
        parts = {"hidden": optax.adam(1e-3), "readout": optax.adam(1e-3 / width)}
        return optax.multi_transform(parts, ("hidden", "readout"))

    widths, words = [64, 128, 256, 512], {"learning_rate": 1e-3, "steps": 2}
    mup = coordinate_check(
        lambda n, seed: (network, weights(n, seed, n**-0.5)), widths, x, y,
        optimiser=rates, **words,
    )  # fmt: skip
    assert ("muP", "adam") in mup.transfer.consistent
    assert ("standard", "adam") not in mup.transfer.consistent
    assert mup.updates[2]["h2"].low < 0 < mup.updates[2]["h2"].high
    assert mup.transfer.activation["h2"].high < 0  # the output shrinks as N^(-1/2) at the start
    standard = coordinate_check(
        lambda n, seed: (network, weights(n, seed)), widths, x, y, optimiser="adam", **words
    )
    assert ("standard", "adam") in standard.transfer.consistent
    assert ("muP", "adam") not in standard.transfer.consistent
    assert "change by step 2" in str(standard)
    assert standard.figure() is not None


@pytest.mark.parametrize("loss", ["square", "cross-entropy"])
def test_pytorch_has_the_same_sizes(data, loss):
    torch = pytest.importorskip("torch")
    x, y = data
    labels = (y > 0).astype(int) if loss == "cross-entropy" else y
    outputs = 2 if loss == "cross-entropy" else 1

    def of(width, seed):
        first, last = weights(width, seed)
        return first, jnp.concatenate([last] * outputs) * jnp.arange(1, outputs + 1)[:, None]

    def in_torch(width, seed):
        first, last = (torch.as_tensor(np.array(one)) for one in of(width, seed))
        made = torch.nn.Sequential(
            torch.nn.Linear(INPUTS, width, bias=False),
            torch.nn.Tanh(),
            torch.nn.Linear(width, outputs, bias=False),
        ).double()
        with torch.no_grad():
            made[0].weight[:], made[2].weight[:] = first, last
        return made

    words = {"learning_rate": 0.01, "steps": 2, "seeds": 2, "loss": loss}
    one, other = (
        coordinate_check(made, [8, 16, 32], x, labels, **words).table
        for made in (lambda n, seed: (network, of(n, seed)), in_torch)
    )
    np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"widths": [8, 16]}, "at least 3 different widths"),
        ({"steps": 0}, "must be at least 1 and 2"),
        ({"learning_rate": 0.0}, "must be > 0"),
        ({"optimiser": "lion"}, "must be 'sgd' or 'adam', or a function"),
        ({"loss": "hinge"}, "must be 'square' or 'cross-entropy', or a function"),
        ({"readout": 0.0}, "h1 at width 4: its change after 1 steps is 0"),
        ({"learning_rate": 1e200}, "is inf|is nan"),
    ],
)
def test_what_is_refused(data, words, message):
    given = {"widths": [4, 8, 16], "learning_rate": 0.1, "seeds": 2, "steps": 2} | words
    readout = given.pop("readout", 1.0)
    with pytest.raises(ValueError, match=message):
        coordinate_check(
            lambda n, seed: (network, weights(n, seed, readout)),
            given.pop("widths"),
            *data,
            **given,
        )
