"""A sweep: theories batched, experiments seeded by their coordinates alone, failures marked,
nothing lost."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float
from magnet import Magnetisation, Paramagnet, exact, failing_at_two, sampled

import orderparam as op
from orderparam.core.errors import SweepError
from orderparam.core.grid import Grid, point_key
from orderparam.core.result import Result
from orderparam.core.system import Record, System, parameter, part, structure
from orderparam.core.verb import experiment, theory
from orderparam.running.program import TheoryRun

SYSTEM = Paramagnet(1.0)
GRID = {"temperature": [0.5, 1.0, 2.0], "field": [0.1, 0.2]}


def test_a_theory_over_numbers_and_structure():
    data = op.sweep(
        exact,
        SYSTEM,
        {"temperature": [0.5, 1.0, 2.0], "shape": ["tanh", "line"], "field": [0.1, 0.2, 0.3]},
    )
    assert data["occupation"].dims == ("temperature", "shape", "field", "state")
    t, h = data["temperature"], data["field"]
    np.testing.assert_allclose(
        data["magnetisation"].sel(shape="tanh"), np.tanh(h / t).T, rtol=1e-14
    )
    np.testing.assert_allclose(data["magnetisation"].sel(shape="line"), (h / t).T, rtol=1e-14)
    assert (data["status"] == 1).all()


def test_without_a_grid_there_is_one_point():
    data = op.sweep(exact, SYSTEM)
    assert float(data["magnetisation"]) == pytest.approx(np.tanh(0.5))
    assert op.sweep(sampled, SYSTEM, seeds=3)["magnetisation"].dims == ("seed",)


def test_a_large_grid_is_worked_off_in_blocks_that_fit_the_memory():
    over = {"temperature": np.linspace(1, 2, 70), "field": np.linspace(0, 1, 40)}
    whole = op.sweep(exact, SYSTEM, over)
    small = op.sweep(exact, SYSTEM, over, memory=1000)
    np.testing.assert_array_equal(whole["magnetisation"], small["magnetisation"])
    assert max(TheoryRun(exact, SYSTEM, Grid.of(over), 1000).block_shape()) < 40
    assert TheoryRun(exact, SYSTEM, Grid.of(over), 2**30).block_shape() == (25, 40)


def test_unconverged_points_are_kept_marked_and_counted_once():
    with pytest.warns(UserWarning, match="of 4 points 2 did not converge") as caught:
        data = op.sweep(exact, SYSTEM, {"temperature": [0.1, 0.2, 0.3, 0.4]})
    assert len(caught) == 1
    assert data["status"].values.tolist() == [2, 2, 1, 1]
    assert np.isfinite(data["magnetisation"]).all()


def test_an_unconverged_point_without_a_number_has_failed():
    def hot(system: Paramagnet) -> Magnetisation:
        found = exact(system)
        absent = jnp.where(found.converged, 0.0, jnp.nan)
        return jax.tree.map(
            lambda leaf: leaf + absent if jnp.issubdtype(leaf.dtype, jnp.inexact) else leaf, found
        )

    with pytest.warns(UserWarning, match="of 4 points 2 failed"):
        data = op.sweep(hot, SYSTEM, {"temperature": [0.1, 0.2, 0.3, 0.4]})
    assert data["status"].values.tolist() == [3, 3, 1, 1]


def test_one_failing_point_does_not_end_the_sweep():
    with pytest.warns(UserWarning, match=r"of 12 points 4 failed.*no spins left"):
        data = op.sweep(failing_at_two, SYSTEM, GRID, seeds=2)
    failed = data["status"] == 3
    assert failed.sel(temperature=2.0).all()
    assert int(failed.sum()) == 4
    assert np.isnan(data["magnetisation"].sel(temperature=2.0)).all()
    assert np.isfinite(data["magnetisation"].sel(temperature=1.0)).all()


def test_a_theory_that_cannot_be_batched_is_evaluated_point_by_point():
    def written_in_python(system):
        if system.temperature > 1.5:
            raise ValueError("too hot")
        return exact(system)

    with pytest.warns(UserWarning, match=r"point by point|too hot"):
        data = op.sweep(written_in_python, SYSTEM, {"temperature": [0.5, 1.0, 2.0]})
    assert data["status"].values.tolist() == [1, 1, 3]


def test_when_every_point_fails_the_first_error_is_raised():
    with pytest.raises(SweepError, match=r"every point failed.*no spins left"):
        op.sweep(failing_at_two, SYSTEM, {"temperature": [2.0]}, seeds=2)


def test_the_key_of_a_point_depends_on_seed_and_coordinates_alone():
    few = op.sweep(sampled, SYSTEM, {"temperature": [1.0, 2.0]}, seeds=[3, 1])
    more = op.sweep(sampled, SYSTEM, {"temperature": [2, 0.7, 1]}, seeds=4)
    for t in (1.0, 2.0):
        for seed in (1, 3):
            a, b = few.sel(temperature=t, seed=seed), more.sel(temperature=t, seed=seed)
            assert float(a["magnetisation"]) == float(b["magnetisation"])
    keys = {
        tuple(jax.random.key_data(point_key(s, {"t": t})).tolist())
        for s in range(20)
        for t in range(20)
    }
    assert len(keys) == 400


def test_paired_dimensions_share_their_randomness():
    a = jax.random.key_data(point_key(0, {"t": 1.0, "h": 2.0}, paired=("t",)))
    b = jax.random.key_data(point_key(0, {"t": 5.0, "h": 2.0}, paired=("t",)))
    assert (a == b).all()


def test_seeds_in_one_vmapped_call_give_the_same_numbers():
    def traceable(system, key):
        return sampled(system, key)

    one = op.sweep(traceable, SYSTEM, GRID, seeds=3)
    batched = op.sweep(traceable, SYSTEM, GRID, seeds=3, batch_seeds=True)
    np.testing.assert_array_equal(one["magnetisation"], batched["magnetisation"])


class Law(Record):
    """A part that goes by a name."""

    strength: float = parameter("strength")
    table: Float[Array, "entry"] = parameter("table", default=(1.0, 2.0))
    name: str = structure("name", default="law")


class Lawful(System):
    law: Law = part("law")
    scale: float = parameter("scale", default=1.0)


class Value(Result):
    value: Float[Array, ""]


@theory
def strength(system: Lawful, *, weights: Array | None = None) -> Value:
    return Value(
        value=system.scale * system.law.strength * (1.0 if weights is None else weights.sum())
    )


def test_parts_are_grid_values_and_numbers_inside_them_too():
    laws = [Law(2.0, name="weak"), Law(3.0, name="strong")]
    data = op.sweep(strength, Lawful(laws[0]), {"law": laws, "scale": [1, 2.5]})
    np.testing.assert_allclose(data["value"].sel(law="strong"), [3.0, 7.5])
    data = op.sweep(
        strength, Lawful(laws[0]), {"law.strength": [1.0, 4.0], "law.name": ["weak", "strong"]}
    )
    np.testing.assert_allclose(data["value"], [[1.0, 1.0], [4.0, 4.0]])


def test_parts_and_arrays_of_one_name_are_not_taken_for_another_in_a_store(tmp_path):
    system = Lawful(Law(1.0))
    op.sweep(strength, system, {"law": [Law(2.0)]}, store=tmp_path / "law.zarr")
    with pytest.raises(ValueError, match="another sweep"):
        op.sweep(strength, system, {"law": [Law(3.0)]}, store=tmp_path / "law.zarr")
    weights = np.ones(2000)
    op.sweep(
        partial(strength, weights=jnp.asarray(weights)), system, store=tmp_path / "weights.zarr"
    )
    weights[1000] = 5.0  # not among the entries that are printed
    with pytest.raises(ValueError, match="another sweep"):
        op.sweep(
            partial(strength, weights=jnp.asarray(weights)), system, store=tmp_path / "weights.zarr"
        )


def test_what_worker_processes_cannot_import_is_refused_by_name():
    class Local(Paramagnet):
        pass

    @experiment
    def near(system: Paramagnet, key: Array) -> Value:
        return Value(value=system.temperature)

    for fn, system, name in (
        (sampled, Local(1.0), "Local"),
        (near, SYSTEM, "near"),
        (partial(near), SYSTEM, "near"),
    ):
        with pytest.raises(
            ValueError,
            match=f"{name} is defined in the running script or notebook, or in a function",
        ):
            op.sweep(fn, system, seeds=1, executor=1)


def test_an_experiment_agrees_with_its_theory_within_error_bars():
    theory = op.sweep(exact, SYSTEM, GRID)["magnetisation"]
    runs = op.sweep(sampled, SYSTEM, GRID, seeds=40)["magnetisation"]
    z = (runs.mean("seed") - theory) / (runs.std("seed", ddof=1) / np.sqrt(40))
    assert float((z**2).mean()) < 3.0  # six independent z: the mean square exceeds 3 once in 200


@pytest.mark.parametrize(
    ("over", "options", "message"),
    [
        ({"temprature": [1.0]}, {}, "did you mean 'temperature'"),
        ({"temperature": []}, {}, "is empty"),
        ({"temperature": 1.0}, {}, "give a sequence"),
        ({"temperature": "abc"}, {}, "give a sequence"),
        ({"temperature": [1.0, -1.0]}, {}, "must be > 0"),
        ({"temperature": [1.0, 1]}, {}, "twice"),
        ({"temperature": [1.0, 10**400]}, {}, r"over\['temperature'\] holds an integer"),
        ([("temperature", [1.0])], {}, "give a mapping"),
        ({"temperature": [1.0, float("nan")]}, {}, "must be finite and > 0"),
        ({"spins": [10, 10.5]}, {}, "an integer"),
        ({"temperature": [1.0]}, {"seeds": None}, "sampled is an experiment; give their number"),
        ({"temperature": [1.0]}, {"seeds": 0}, "at least one"),
        ({"temperature": [1.0]}, {"seeds": [1, 1]}, "different integers"),
        ({"temperature": [1.0]}, {"seeds": [-1]}, ">= 0"),
        ({"temperature": [1.0]}, {"seeds": []}, "at least one"),
        ({"temperature": [1.0]}, {"seeds": [0.5]}, "different integers"),
        ({"temperature": [1.0]}, {"seeds": 2.5}, "different integers"),
        ({"temperature": [1.0]}, {"seeds": "12"}, "different integers"),
        ({"temperature": [1.0]}, {"seeds": [True, False]}, "different integers"),
        ({"temperature": [1.0]}, {"seeds": [2**63]}, r"below 2\^63"),
        (
            {"temperature": [1.0]},
            {"seeds": 1, "paired": ("temprature",)},
            "did you mean 'temperature'",
        ),
        ({"temperature": [1.0]}, {"seeds": 1, "paired": "temperature"}, "give a sequence"),
        ({"temperature": [1.0]}, {"memory": -1}, "number of bytes"),
        ({"temperature": [1.0]}, {"memory": 1.5}, "number of bytes"),
        ({"temperature": [1.0]}, {"store": 5}, "store = 5: give the path"),
        ({"temperature": [1.0]}, {"executor": 0}, "at least 1"),
        ({"temperature": [1.0]}, {"executor": 2**70}, "at most 1024"),
        ({"temperature": [1.0]}, {"executor": 1.5}, "give None, a number of processes"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(over, options, message):
    with pytest.raises(ValueError, match=message):
        op.sweep(exact if "seeds" not in options else sampled, SYSTEM, over, **options)


def test_what_is_no_system_is_refused():
    with pytest.raises(ValueError, match=r"^system = 5: must be a System$"):
        op.sweep(exact, 5, GRID)


def test_a_theory_takes_no_seeds():
    with pytest.raises(ValueError, match="exact is a theory, which takes none"):
        op.sweep(exact, SYSTEM, GRID, seeds=2)
