"""Systems check their numbers, results label themselves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float
from magnet import Magnetisation, Paramagnet, exact

from orderparam.core.result import Result
from orderparam.core.system import System, parameter


def test_every_number_is_a_leaf_and_structure_is_not():
    leaves = jax.tree.leaves(Paramagnet(1.0))
    assert leaves == [1.0, 0.5, 400]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"temperature": 0.0}, "Paramagnet.temperature = 0.0: must be > 0"),
        ({"temperature": -1}, "must be > 0"),
        ({"temperature": float("nan")}, "must be > 0"),
        ({"temperature": "warm"}, "must be a number"),
        ({"temperature": None}, "must be a number"),
        ({"temperature": True}, "must be a number"),
        ({"spins": 2.5}, "an integer and >= 1"),
        ({"spins": 0}, "an integer and >= 1"),
        ({"tempertaure": 1.0}, "did you mean 'temperature'"),
        ({"x.y": 1.0}, "no field 'x'"),
        ({"shape.y": 1.0}, "has no fields of its own"),
    ],
)
def test_a_wrong_number_is_named_with_what_is_allowed(changes, message):
    with pytest.raises(ValueError, match=message.replace(".", r"\.")):
        Paramagnet(1.0).with_(**changes)


def test_theories_differentiate_through_a_system():
    slope = jax.grad(lambda t: exact(Paramagnet(t, field=0.3)).magnetisation)(0.7)
    assert slope == pytest.approx(-0.3 / 0.7**2 / np.cosh(0.3 / 0.7) ** 2, rel=1e-12)


def test_nested_modules_are_reached_by_dotted_names():
    class Outer(System):
        inner: Paramagnet
        scale: float = parameter("scale", default=1.0)

    outer = Outer(Paramagnet(1.0)).with_(**{"inner.temperature": 3.0, "scale": 2})
    assert (outer.inner.temperature, outer.scale) == (3.0, 2)
    with pytest.raises(ValueError, match="must be > 0"):
        outer.with_(**{"inner.temperature": -3.0})


def test_the_annotation_is_the_schema():
    result = exact(Paramagnet(1.0))
    data = result.to_dataset()
    assert Magnetisation.dims()["occupation"] == ("state",)
    assert data["occupation"].dims == ("state",)
    assert float(data["magnetisation"]) == pytest.approx(np.tanh(0.5), rel=1e-14)
    batch = jax.vmap(lambda t: exact(Paramagnet(t)))(jnp.linspace(1, 2, 5))
    assert batch.to_dataset(["temperature"])["occupation"].dims == ("temperature", "state")


def test_a_result_prints_itself_with_shapes_and_values():
    text = repr(exact(Paramagnet(1.0)))
    assert "magnetisation" in text
    assert "0.46211716" in text
    assert "(state 2)" in text


def test_a_shape_that_contradicts_its_annotation_is_refused():
    with pytest.raises(ValueError, match="occupation has shape"):
        Magnetisation(jnp.array(0.0), jnp.array(0.0), jnp.array(True)).to_dataset()


def test_an_unannotated_field_is_refused():
    class Bare(Result):
        x: float

    with pytest.raises(TypeError, match="annotate it with jaxtyping"):
        Bare.dims()


def test_two_named_dimensions():
    class Overlaps(Result):
        overlap: Float[Array, "student teacher"]

    assert Overlaps(jnp.ones((2, 3))).to_dataset()["overlap"].sizes == {"student": 2, "teacher": 3}
