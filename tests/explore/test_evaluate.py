"""Theories are evaluated for the latest request alone; experiments in processes that can be
killed."""

import threading
import time

import numpy as np
import pytest
import xarray as xr

pytest.importorskip("panel", reason="the extra explore is not installed")

import orderparam as op
from orderparam.explore import evaluate
from orderparam.explore.curves import entries
from orderparam.explore.evaluate import Latest, Stale, curve
from orderparam.explore.first_state import opened
from orderparam.explore.measure import Measurement, measured, store_of
from orderparam.explore.phases import planes
from orderparam.plotting.plane import plane_image


def never():
    return False


@pytest.fixture(scope="module")
def magnet():
    return opened("spins.MeanFieldMagnet")


def test_requests_that_are_overtaken_are_not_begun():
    begun, going = [], threading.Event()

    def work(request, stale):
        begun.append(request)
        going.wait(10)

    latest = Latest(work)
    for request in range(50):
        latest.ask(request)
        time.sleep(0.002)
    going.set()
    deadline = time.monotonic() + 10
    while begun[-1] != 49 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert begun[-1] == 49
    assert len(begun) <= 3


def test_what_is_stale_ends_between_two_points():
    state = opened("committee.Committee").with_(theories=("committee.information_transition",))
    calls = []

    def stale():
        calls.append(1)
        return len(calls) > 1

    with pytest.raises(Stale):
        curve(state, state.theories[0], stale)
    assert len(calls) == 2


def test_another_number_compiles_nothing(magnet):
    name = magnet.theories[0]
    curve(magnet, name, never)
    again = [curve(magnet.with_(changes={"field": 0.01 * k}), name, never) for k in range(1, 6)]
    assert evaluate.is_compiled(magnet, name)
    assert all(one.problem == "" for one in again)
    assert len({one.data["magnetisation"].values.tobytes() for one in again}) == 5
    assert min(one.milliseconds for one in again) < 100


def test_a_host_algorithm_is_drawn_ever_finer():
    state = opened("online_sgd.PhasePoint").with_(theories=("online_sgd.residual_risk",))
    assert not op.theories()[state.theories[0]].traced
    seen = []
    whole = curve(state, state.theories[0], never, seen.append)
    assert [one.data.sizes[state.x] for one in seen] == [5, 9, 17, 33]
    assert whole.data[state.x].values.tolist() == state.grid
    assert whole.data.attrs["points"] == len(state.grid)
    first = seen[0].data
    there = whole.data.sel({state.x: first[state.x]})
    for name in first.data_vars:
        if name != "seconds":
            np.testing.assert_array_equal(first[name], there[name])


def test_a_theory_that_fails_says_why(magnet):
    lattice = opened("spins.IsingLattice")
    state = lattice.with_(theories=("spins.onsager",), changes={"field": 0.5})
    found = curve(state, "spins.onsager", never)
    said = (
        found.problem
        or " ".join(found.data.attrs.get("failures", []))
        or str(found.data.attrs["unconverged"])
    )
    assert said not in ("", "0")


def test_a_measurement_is_found_again_and_goes_on(magnet, tmp_path):
    state = magnet.with_(
        measured=3,
        seeds=2,
        options={("spins.glauber", "sweeps"): 50, ("spins.glauber", "replicas"): 1},
    )
    assert measured(state, tmp_path) is None
    run = Measurement(state, tmp_path)
    run.start()
    wait(run)
    assert run.problem == ""
    found = measured(state, tmp_path)
    assert (found.done, found.failed, found.wanted) == (6, 0, 6)
    assert measured(state.with_(seeds=3), tmp_path) is None
    assert measured(state.with_(changes={"field": 0.1}), tmp_path) is None
    assert measured(state.with_(show=(), theories=()), tmp_path) is not None
    assert store_of(state, tmp_path).is_relative_to(tmp_path)


def test_cancel_kills_the_workers_and_keeps_what_is_done(magnet, tmp_path):
    state = magnet.with_(
        measured=4,
        seeds=20,
        options={("spins.glauber", "sweeps"): 20000, ("spins.glauber", "replicas"): 8},
    )
    run = Measurement(state, tmp_path)
    run.start()
    time.sleep(1.0)
    run.cancel()
    begun = time.monotonic()
    wait(run)
    assert time.monotonic() - begun < 10
    found = measured(state, tmp_path)
    assert found is None or found.done < found.wanted


def wait(run):
    deadline = time.monotonic() + 120
    while not run.ended and time.monotonic() < deadline:
        time.sleep(0.05)
    assert run.ended


def test_the_plane_becomes_finer_and_its_picture_is_that_of_its_points(magnet):
    found = list(planes(magnet, 16, never))
    assert [len(one.data["point"]) for one in found] == sorted(
        len(one.data["point"]) for one in found
    )
    assert len(found) == 2
    _, _, pixels = plane_image(found[-1].data)
    corner = found[-1].data
    low = np.argmin(corner["temperature"].values + 1e3 * corner["field"].values)
    assert pixels[0, 0] == pytest.approx(float(corner["order"].values[low, 0, 0]), abs=1e-12)
    with pytest.raises(Stale):
        next(planes(magnet, 16, lambda: True))


def test_a_time_along_the_axis_is_drawn_and_a_course_in_time_ends():
    times = xr.DataArray([3.0, 2.0, 1.0], dims="time")
    assert [row.tolist() for row in entries(times, "time")] == [[3.0, 2.0, 1.0]]
    course = xr.DataArray([[3.0, 2.0], [5.0, 4.0]], dims=("noise", "time"))
    assert [row.tolist() for row in entries(course, "noise")] == [[2.0, 4.0]]
