"""Results that are not what their class declares: refused at the first point, in memory and on disk
alike, and nothing kept."""

import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float, Int
from magnet import Paramagnet

import orderparam as op
from orderparam.core.errors import SweepError
from orderparam.core.result import Result
from orderparam.core.verb import experiment, theory

GRID = {"temperature": [0.5, 1.0, 2.0]}
CALLS: list[float] = []


class Histogram(Result):
    """Counts at places, and their mean."""

    counts: Float[Array, "place"]
    mean: Float[Array, ""]


class Clash(Result):
    """Two arrays along one dimension."""

    first: Float[Array, "place"]
    second: Float[Array, "place"]


class Seeded(Result):
    """An array along a dimension that every sweep of an experiment has."""

    runs: Float[Array, "seed"]


class Count(Result):
    """A whole number."""

    count: Int[Array, ""]


class Bare(Result):
    """A field without an annotation of its shape."""

    mean: float


def measuring(made):
    """An experiment that returns what it is told."""

    @experiment
    def histogram(system: Paramagnet, key: Array) -> Histogram:
        CALLS.append(float(system.temperature))
        return made(float(system.temperature))

    return histogram


WRONG = {
    "rank": (
        lambda t: Histogram(counts=np.ones((2, 3)), mean=t),
        r"counts has shape \(2, 3\), but is declared as \(place\): let the shape",
    ),
    "number": (
        lambda t: Histogram(counts=np.ones(2), mean=np.ones(3)),
        r"mean has shape \(3,\), but is declared as one number",
    ),
    "extents": (
        lambda t: Clash(first=np.ones(2), second=np.ones(3)),
        r"second has shape \(3,\), \(place\): first says place = 2",
    ),
    "seed": (lambda t: Seeded(runs=np.ones(2)), "runs has a dimension 'seed', as the sweep has"),
    "text": (
        lambda t: Histogram(counts=np.ones(2), mean="warm"),
        "mean holds <U4: give booleans, integers, real or complex",
    ),
    "object": (lambda t: Histogram(counts=np.ones(2), mean=None), "mean holds object"),
    "date": (
        lambda t: Histogram(counts=np.ones(2), mean=np.datetime64("2026-01-01")),
        "mean holds datetime64",
    ),
    "no result": (lambda t: (t, t), "returned tuple, not a Result"),
    "bare": (lambda t: Bare(mean=t), "Bare.mean: annotate it with jaxtyping"),
}


@pytest.mark.parametrize("stored", [False, True], ids=["memory", "disk"])
@pytest.mark.parametrize("kind", WRONG)
def test_what_is_not_as_declared_ends_the_sweep_at_the_first_point_and_leaves_the_store_free(
    tmp_path, kind, stored
):
    made, message = WRONG[kind]
    store = tmp_path / "s.zarr" if stored else None
    CALLS.clear()
    with pytest.raises(ValueError, match=f"^histogram: .*{message}"):
        op.sweep(measuring(made), Paramagnet(1.0), GRID, seeds=2, store=store)
    assert len(CALLS) == 1
    mended = op.sweep(
        measuring(lambda t: Histogram(counts=np.ones(4), mean=t)),
        Paramagnet(1.0),
        GRID,
        seeds=2,
        store=store,
    )
    assert mended["counts"].shape == (3, 2, 4)


def test_a_theory_is_held_to_it_too(tmp_path):
    @theory
    def flat(system: Paramagnet) -> Histogram:
        return Histogram(counts=jnp.ones((2, 2)) * system.temperature, mean=system.temperature)

    @theory(traced=False)
    def host(system: Paramagnet) -> Histogram:
        return Histogram(counts=np.ones((2, 2)), mean=system.temperature)

    for wrong in (flat, host):
        with pytest.raises(
            ValueError, match=r"counts has shape \(2, 2\), but is declared as \(place\)"
        ):
            op.sweep(wrong, Paramagnet(1.0), GRID, store=tmp_path / f"{wrong.fn.__name__}.zarr")


def test_worker_processes_end_it_too(tmp_path):
    from magnet import misshapen

    with pytest.raises(
        ValueError, match=r"misshapen: occupation has shape \(\), but is declared as \(state\)"
    ):
        op.sweep(misshapen, Paramagnet(1.0), GRID, seeds=1, executor=1, store=tmp_path / "s.zarr")


def test_a_masked_number_is_no_number(tmp_path):
    """`np.ma.masked` is stored as NaN, also in one entry of an array; it was 0.0."""
    masked = measuring(
        lambda t: Histogram(
            counts=np.ma.array([1.0, 2.0], mask=[False, t < 1]), mean=np.ma.masked if t < 1 else 3.0
        )
    )
    for store in (None, tmp_path / "s.zarr"):
        data = op.sweep(masked, Paramagnet(1.0), {"temperature": [0.5, 2.0]}, seeds=1, store=store)
        np.testing.assert_array_equal(data["mean"].values[:, 0], [np.nan, 3.0])
        np.testing.assert_array_equal(data["counts"].values[:, 0], [[1.0, np.nan], [1.0, 2.0]])
    whole = measuring(lambda t: Count(count=np.ma.masked_equal(3, 3)))
    with pytest.raises(SweepError, match="count holds masked entries"):
        op.sweep(whole, Paramagnet(1.0), GRID, seeds=1)


def test_whole_numbers_where_real_ones_are_declared_cut_nothing():
    data = op.sweep(
        measuring(lambda t: Histogram(counts=[1, 2], mean=1 if t < 1 else 1.5)),
        Paramagnet(1.0),
        GRID,
        seeds=1,
    )
    assert data["counts"].dtype == np.float64
    assert data["mean"].values[:, 0].tolist() == [1.0, 1.5, 1.5]


def test_real_numbers_among_whole_ones_fail_and_are_not_cut():
    with pytest.warns(UserWarning, match="count is float64 here and int64 at other points"):
        data = op.sweep(
            measuring(lambda t: Count(count=1 if t < 1 else 1.5)),
            Paramagnet(1.0),
            {"temperature": [0.5, 2.0]},
            seeds=1,
        )
    assert data["status"].values[:, 0].tolist() == [1, 3]


def test_other_shapes_at_other_points_of_what_cannot_be_batched_fail_alone():
    def untraceable(system: Paramagnet) -> Histogram:
        return Histogram(
            counts=np.ones(2 if float(system.temperature) < 2 else 3), mean=system.temperature
        )

    with pytest.warns(
        UserWarning, match=r"counts has shape \(3,\) here and \(2,\) at other points"
    ):
        data = op.sweep(untraceable, Paramagnet(1.0), GRID)
    assert data["status"].values.tolist() == [1, 1, 3]


def test_an_error_that_cannot_say_what_it_is_costs_its_own_point_only(tmp_path):
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    def failing(t):
        if t == 1.0:
            raise Mute
        return Histogram(counts=np.ones(2), mean=t)

    with pytest.warns(UserWarning, match=r"Mute: its message cannot be made \(RuntimeError\)"):
        data = op.sweep(
            measuring(failing), Paramagnet(1.0), GRID, seeds=1, store=tmp_path / "s.zarr"
        )
    assert data["status"].values[:, 0].tolist() == [1, 3, 1]
