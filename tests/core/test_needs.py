"""What theories and experiments need of their systems and options, declared with `needs=`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Bool, Float

import orderparam as op
from orderparam.core import needs
from orderparam.core.given import concrete
from orderparam.core.result import Result
from orderparam.core.system import System
from orderparam.core.verb import experiment, theory


class Slope(System):
    """A slope."""

    height: float = op.parameter("height", default=1.0)
    kind: str = op.structure("kind", default="straight", choices=("straight", "bent"))


class Descent(Result):
    """A descent."""

    time: Float[Array, ""]
    converged: Bool[Array, ""]


@theory(needs={"height": needs.above(0, why="nothing slides on flat ground")})
def slide(system: Slope) -> Descent:
    return Descent(time=jnp.sqrt(system.height), converged=jnp.asarray(True))


@experiment(needs={"kind": needs.equal("straight"), "runs": needs.at_least(2)})
def sled(system: Slope, key: Array, *, runs: int = 2) -> Descent:
    return Descent(time=jnp.sqrt(system.height) * runs, converged=jnp.asarray(True))


@experiment
def walk(system: Slope, key: Array, *, samples: int = 2) -> Descent:
    return Descent(time=jnp.asarray(1.0 / samples), converged=jnp.asarray(True))


@pytest.mark.parametrize("samples", [0, -3])
def test_numbers_of_samples_are_positive_without_a_word(samples):
    with pytest.raises(ValueError, match=rf"walk: samples = {samples}: must be >= 1$"):
        walk(Slope(), jax.random.key(0), samples=samples)


def test_a_need_of_a_field_is_refused_by_name_with_its_reason():
    message = r"^Slope\.height = 0: must be > 0 \(nothing slides on flat ground\)$"
    with pytest.raises(ValueError, match=message):
        slide(Slope(0.0))
    assert float(slide(Slope(4.0)).time) == 2.0


def test_points_of_a_sweep_that_do_not_meet_a_need_are_marked():
    with pytest.warns(UserWarning, match="must be > 0"):
        found = op.sweep(slide, Slope(), {"height": [1.0, 0.0]})
    assert np.isfinite(found["time"].values).tolist() == [True, False]


def test_traced_numbers_pass():
    np.testing.assert_allclose(jax.vmap(lambda h: slide(Slope(h)).time)(jnp.zeros(2)), 0.0)


def test_needs_of_words_and_of_options():
    with pytest.raises(ValueError, match=r"^Slope\.kind = 'bent': must be 'straight'$"):
        sled(Slope(kind="bent"), jax.random.key(0))
    with pytest.raises(ValueError, match=r"^runs = 1: must be >= 2$"):
        sled(Slope(), jax.random.key(0), runs=1)
    with pytest.raises(
        ValueError, match=r"^runs = an integer of more than 20 digits: must be >= 2$"
    ):
        sled(Slope(), jax.random.key(0), runs=-(10**400))
    assert float(sled(Slope(), jax.random.key(0)).time) == 2.0


def test_every_need_is_of_a_field_or_an_option_and_its_default_meets_it():
    for verb in [*op.theories().values(), *op.experiments().values()]:
        for name, need in verb.needs.items():
            if name in verb.options:
                default = verb.options[name].default
                assert default is None or need.holds(default), (verb.name, name)
            else:
                first = name.partition(".")[0]
                owners = concrete(verb.systems)
                fields = [{*dir(one), *one.__dataclass_fields__} for one in owners]
                assert owners
                assert all(first in names for names in fields), (verb.name, name)
