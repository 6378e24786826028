"""Systems check their numbers, results label themselves."""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float
from magnet import Magnetisation, Paramagnet, exact

from orderparam.core.fields import Declaration
from orderparam.core.result import Result, along_time, with_errors
from orderparam.core.system import System, as_arrays, parameter, replace, structure


def test_every_number_is_a_leaf_and_structure_is_not():
    leaves = jax.tree.leaves(Paramagnet(1.0))
    assert leaves == [1.0, 0.5, 400]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"temperature": 0.0}, "Paramagnet.temperature = 0.0: must be > 0"),
        ({"temperature": -1}, "must be > 0"),
        ({"temperature": float("nan")}, "must be finite and > 0"),
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


class Cloud(System):
    """Points in space."""

    points: Float[Array, "point 3"] = parameter("points in space")
    count: int = parameter("a number of any size", default=0, infinite=True)
    order: Literal[1, 2] = structure("order of the expansion", default=1)
    name: str = structure("name", default="cloud")
    marks: tuple[str, ...] = structure("words", default=())
    sides: tuple[Literal["left", "right"], ...] = structure("sides", default=())
    span: tuple[int, float] = structure("count and length", default=(1, 2.0))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"points": np.ones((5, 2))}, r"Cloud.points has shape \(5, 2\): must be \(point, 3\)"),
        (
            {"span": (10**30, 1.0)},
            r"Cloud\.span.* an integer of more than 20 digits: must be an integer",
        ),
        ({"span": (2**31, 1.0)}, r"Cloud\.span.* = 2147483648: .*at most 2\.15e\+09 in size"),
        (
            {"points": jax.random.split(jax.random.key(0))},
            "Cloud.points = .*: must be an array of numbers",
        ),
        ({"count": jax.random.key(0)}, "Cloud.count = .*: must be an array of numbers"),
        ({"order": 3}, "Cloud.order = 3: must be one of 1, 2"),
        ({"name": ["a", "list"]}, "Cloud.name = .*: must be a str"),
        ({"marks": ("a", 1)}, "Cloud.marks = 1: must be a str"),
        ({"marks": "ab"}, "Cloud.marks = 'ab': must be a tuple"),
        (
            {"sides": ["left", "rihgt"]},
            "Cloud.sides = 'rihgt': must be one of left, right; did you mean 'right'",
        ),
        ({"span": (1,)}, r"Cloud.span = \(1,\): must be 2 of them"),
        ({"span": (1.5, 2)}, "Cloud.span = 1.5: must be an integer"),
        ({1: 2.0}, "Cloud has no field '1'"),
    ],
)
def test_the_annotation_is_what_is_allowed(changes, message):
    cloud = Cloud(np.ones((4, 3)), order=2)
    with pytest.raises(ValueError, match=message):
        replace(cloud, changes)


@pytest.mark.parametrize("count", [-1, 2.5, np.inf, np.array([1.0, 2.0])])
def test_a_size_is_a_whole_number(count):
    with pytest.raises(
        ValueError, match=r"Cloud\.count = .*: an experiment needs a whole number >= 0"
    ):
        Cloud(np.ones((4, 3)), count).size("count")


def test_a_size_that_no_experiment_has_is_refused():
    with pytest.raises(ValueError, match=r"Cloud\.count = 1e\+300: .* whole number <= 2\^53"):
        Cloud(np.ones((4, 3)), 1e300).size("count")


def test_lists_may_hold_traced_numbers():
    slope = jax.grad(lambda x: Cloud([[x, 2 * x, 3.0]]).points.sum())(1.0)
    assert slope == 3.0


def test_arrays_of_any_kind_become_what_theories_expect():
    leaves = {
        "key": jax.random.key(0),
        "none": None,
        "word": "x",
        "index": np.array([1, 2]),
        "half": jnp.float16(0.5),
        "i": 1j,
    }
    read = as_arrays(leaves | {"weak": jnp.asarray(1.0), "count": jnp.asarray(3)})
    assert [read[name].dtype for name in ("half", "weak", "count")] == [jnp.float64] * 3
    assert not read["weak"].weak_type
    assert (read["index"].dtype, read["none"], read["word"], read["i"]) == (
        jnp.int64,
        None,
        "x",
        1j,
    )
    assert jax.vmap(lambda n: as_arrays({"n": n})["n"])(jnp.arange(3)).dtype == jnp.float64


def test_a_copy_does_not_read_large_arrays_again(monkeypatch):
    cloud = Cloud(np.ones((100, 3)))
    read = []
    monkeypatch.setattr(
        Declaration,
        "_inside",
        lambda self, array: read.append(np.shape(array)) or np.ones(np.shape(array), bool),
    )
    cloud.with_(count=3)
    assert (100, 3) not in read


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
        Magnetisation(
            magnetisation=jnp.array(0.0), occupation=jnp.array(0.0), converged=jnp.array(True)
        ).to_dataset()


def test_a_result_is_built_by_names_only():
    m = jnp.array(0.0)
    with pytest.raises(TypeError, match=r"Magnetisation\(magnetisation=\.\.\., occupation=\.\.\."):
        Magnetisation(m, m, jnp.array(True))


def test_errors_follow_their_values():
    fields = with_errors(energy=(1.0, 0.1), entropy=(jnp.ones(2), jnp.zeros(2)))
    assert list(fields) == ["energy", "energy_error", "entropy", "entropy_error"]
    assert float(fields["energy_error"]) == 0.1


def test_a_path_begins_at_its_start():
    class Path(Result):
        overlap: Float[Array, "time"]
        rows: Float[Array, "time neuron"]

    def step(state, _):
        after = Path(overlap=state.overlap + 1, rows=2 * state.rows)
        return after, after

    start = Path(overlap=jnp.array(0.0), rows=jnp.ones(2))
    path = along_time(start, jax.lax.scan(step, start, length=2)[1])
    assert path.overlap.tolist() == [0.0, 1.0, 2.0]
    assert path.rows.tolist() == [[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]]


def test_an_unannotated_field_is_refused():
    class Bare(Result):
        x: float

    with pytest.raises(TypeError, match="annotate it with jaxtyping"):
        Bare.dims()


def test_two_named_dimensions():
    class Overlaps(Result):
        overlap: Float[Array, "student teacher"]

    assert Overlaps(overlap=jnp.ones((2, 3))).to_dataset()["overlap"].sizes == {
        "student": 2,
        "teacher": 3,
    }


def test_a_batch_where_one_number_is_needed_is_named():
    class Bounded(System):
        "Two numbers, one below the other."

        low: float = parameter("the lower")
        high: float = parameter("the higher")

        def __check_init__(self):
            if self.low > self.high:
                raise ValueError("turned round")

    with pytest.raises(ValueError, match=r"^Bounded.low = .*1\., *2\..* must be one number each"):
        Bounded(np.array([1.0, 2.0]), 3.0)
    with pytest.raises(ValueError, match=r"^turned round"):
        Bounded(2.0, 1.0)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ma.masked, "temperature holds masked entries"),
        (np.ma.array([1.0, 2.0], mask=[True, False]), "temperature holds masked entries"),
        (memoryview(np.ones(2)), "temperature = <memory.*not bytes of memory"),
    ],
)
def test_what_numpy_would_take_for_other_numbers_is_refused(value, message):
    with pytest.raises(ValueError, match=f"^Paramagnet.{message}"):
        Paramagnet(value)
    # nothing is masked
    assert Paramagnet(np.ma.array([1.0, 2.0])).temperature.tolist() == [1.0, 2.0]
