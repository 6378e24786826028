"""Phase diagrams and transitions of magnets whose lines are known: Curie-Weiss, and Blume-Capel
with its tricritical point."""

import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

import orderparam as op
from orderparam.analysis.phases.study import diagram_curve, phases_panel

sys.path.insert(0, str(Path(__file__).parent))
from blume_capel import Magnet, Stable, in_a_field, stable, state

TRICRITICAL = np.array([2 / 3 * np.log(2), 1 / 3])
PLANE = {"anisotropy": (0.0, 0.55), "temperature": (0.05, 1.0)}


def continuous_line(temperature):
    return temperature * np.log(2 * (1 - temperature) / temperature)


@pytest.fixture(scope="module")
def diagram():
    return op.phase_diagram(state, Magnet(1.0), PLANE, order="magnetisation")


# -- one line ------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0.4, 0.5, 0.66])
def test_a_continuous_transition_is_located_to_ten_digits(temperature):
    found = op.transition(
        state, Magnet(temperature), {"anisotropy": (0.0, 1.0)}, order="magnetisation"
    )
    assert found.kind == "continuous"
    assert found.branch == "stable"
    assert abs(found.location - continuous_line(temperature)) < 1e-10
    assert abs(found.exponent - 0.5) < 1e-3
    assert found.doubt < 0.02
    assert not found.spinodals


def test_a_first_order_transition_has_two_branches_and_ends_of_branches():
    found = op.transition(state, Magnet(0.2), {"anisotropy": (0.3, 0.6)}, order="magnetisation")
    assert found.kind == "jump"
    assert found.branch == "stable"
    free = [
        float(state(Magnet(0.2, found.location), branch=branch).free_energy)
        for branch in ("ordered", "disordered")
    ]
    assert abs(free[0] - free[1]) < 1e-10
    assert found.low == 0
    assert abs(found.high - float(state(Magnet(0.2, found.location)).magnetisation)) < 1e-6
    (end,) = found.spinodals["ordered"]
    assert end > found.location
    m = float(state(Magnet(0.2, end - 1e-9)).magnetisation)
    assert m > 0.3
    assert float(state(Magnet(0.2, end + 1e-9)).magnetisation) == 0.0


@pytest.mark.parametrize("offset", [0.0, 0.123, 0.4])
def test_an_onset_that_is_linear_is_located_beyond_the_level(offset):
    """The level is passed 1e-6 away from the onset, which is corrected for."""

    def linear(system: Magnet) -> Stable:
        t = system.temperature - offset - 0.2
        return Stable(magnetisation=jnp.maximum(t, 0.0) + t * jnp.maximum(t, 0.0))

    theory = op.core.verb.Theory(linear, None, True, True)
    found = op.transition(theory, Magnet(1.0), {"temperature": (0.05, 1.0)}, order="magnetisation")
    assert found.kind == "continuous"
    assert abs(found.exponent - 1) < 1e-4
    assert abs(found.location - offset - 0.2) < 1e-9


def test_a_critical_isotherm_has_exponent_one_third():
    found = op.transition(
        in_a_field, Magnet(1.0), {"field": (-0.3, 1.0)}, order="magnetisation", level=0
    )
    assert found.kind == "continuous"
    assert abs(found.location) < 1e-10
    assert abs(found.exponent - 1 / 3) < 2e-3


@pytest.mark.parametrize(("temperature", "kind"), [(0.7, "jump"), (1.5, "crossover")])
def test_the_kind_at_zero_field(temperature, kind):
    found = op.transition(
        in_a_field, Magnet(temperature), {"field": (-0.3, 1.0)}, order="magnetisation", level=0
    )
    assert found.kind == kind
    assert abs(found.location) < 1e-10
    assert found.doubt < 0.02


def test_a_weak_first_order_transition_is_no_continuous_one():
    """At D = 0.4621, a millionth beyond the tricritical point, the magnetisation jumps by a
    hundredth."""
    found = op.transition(
        state, Magnet(1.0, 0.4621), {"temperature": (0.05, 1.0)}, order="magnetisation"
    )
    assert found.kind == "jump"
    assert 0.005 < found.jump < 0.02


def test_a_branch_that_ends_inside_the_line_may_be_alone_in_a_batch():
    """Of 65 points in batches of 64 the last, where there is no solution, is not evaluated
    alone."""

    @op.theory
    def broken(system: Magnet) -> Stable:
        return Stable(magnetisation=jnp.where(system.field < 0.69, 0.1 + system.field, jnp.nan))

    found = op.transition(broken, Magnet(1.0), {"field": (0.0, 0.7)}, order="magnetisation")
    assert found.kind == "end"
    assert abs(found.location - 0.69) < 1e-9


@pytest.mark.parametrize(("step", "kind"), [(1e-4, "crossover"), (1e-2, "jump")])
def test_a_theory_that_rounds_has_no_jumps(step, kind):
    """Steps of 1e-4 of the range of the order parameter are the theory's own, steps of a hundredth
    may not be."""

    @op.theory
    def rounded(system: Magnet) -> Stable:
        return Stable(magnetisation=jnp.round(system.field / step) * step)

    found = op.transition(
        rounded, Magnet(1.0), {"field": (-0.3, 0.7)}, order="magnetisation", level=0.10004
    )
    assert found.kind == kind
    assert found.doubt == (1 if kind == "crossover" else 0)


def test_where_nothing_happens_it_is_said():
    with pytest.raises(
        ValueError, match=r"no transition between temperature = 0\.8 and 1: magnetisation is 0 to 0"
    ):
        op.transition(stable, Magnet(1.0), {"temperature": (0.8, 1.0)}, order="magnetisation")


# -- the plane -----------------------------------------------------------------------------------


def test_the_lines_of_blume_capel(diagram):
    (line,) = diagram.select("continuous", "stable")
    assert np.max(np.abs(line.x - continuous_line(line.y))) < 1e-5
    assert np.all(line.y > TRICRITICAL[1] - 1e-3)
    assert np.max(line.y) > 0.66
    (jump,) = diagram.select("jump", "stable")
    assert np.all(jump.y < TRICRITICAL[1])
    assert np.min(jump.y) < 0.1
    free = [
        [
            float(state(Magnet(t, d), branch=branch).free_energy)
            for branch in ("ordered", "disordered")
        ]
        for d, t in zip(jump.x, jump.y)
    ]
    assert np.max(np.abs(np.diff(free))) < 1e-5
    (spinodal,) = diagram.select("jump", "ordered")
    # the ordered branch lives on beyond the transition
    assert np.max(spinodal.x) > 0.54 > np.max(jump.x)


def test_the_tricritical_point(diagram):
    (end,) = [end for end in diagram.ends if end.branch == "stable"]
    assert end.kind == "tricritical"
    off = np.abs(np.array([end.x, end.y]) - TRICRITICAL) / np.array([0.55, 0.95])
    assert np.all(off < 3 * end.error)
    assert end.error < 1e-3


def test_a_line_of_jumps_ends_at_the_critical_point():
    over = {"temperature": (0.2, 1.8), "field": (-0.5, 0.61)}
    found = op.phase_diagram(in_a_field, Magnet(1.0), over, order="magnetisation", level=0)
    (jump,) = found.select("jump")
    assert np.max(np.abs(jump.y)) < 1e-6
    assert np.max(jump.x) < 1
    (end,) = found.ends
    assert end.kind == "critical"
    assert abs(end.x - 1) < 1e-3
    assert abs(end.y) < 1e-6


def test_ten_times_fewer_points_than_a_grid_of_the_same_resolution():
    over = {"anisotropy": (0.0, 0.55), "temperature": (0.05, 1.0)}
    found = op.phase_diagram(
        stable, Magnet(1.0), over, order="magnetisation", resolution=32, accuracy=1e-3
    )
    assert found.points < (1000 + 1) ** 2 / 10


def test_what_is_kept_is_not_computed_again(tmp_path, monkeypatch):
    monkeypatch.setattr("orderparam.analysis.phases.points.WORTH_KEEPING", 0.0)
    calls = []

    def counted(system):
        calls.append(system)
        return stable.fn(system)

    counted.__module__, counted.__qualname__ = stable.__module__, "stable"
    counted.__annotations__ = stable.fn.__annotations__
    theory = op.core.verb.Theory(counted, None, False, False)
    ask = partial(
        op.transition,
        theory,
        Magnet(1.0),
        {"temperature": (0.05, 1.0)},
        order="magnetisation",
        points=17,
    )
    first = ask(store=tmp_path / "line")
    evaluated = len(calls)
    assert evaluated == first.data.sizes["point"]
    kept = sorted((tmp_path / "line").iterdir())
    assert ask(store=tmp_path / "line").location == first.location
    assert len(calls) == evaluated
    for entry in (kept[-1] / "status").glob("c*"):
        entry.unlink()
    assert ask(store=tmp_path / "line").location == first.location
    assert evaluated < len(calls) <= evaluated + 64  # one batch


def test_the_data_set_is_labelled_and_drawn(diagram):
    data = diagram.data
    assert set(data["order"].dims) == {"point", "branch", "component"}
    assert list(data["branch"].values) == ["stable", "ordered", "disordered"]
    assert len(data["anisotropy"]) == diagram.points == data.sizes["point"]
    assert set(data["boundary_kind"].values) == {"jump", "continuous"}
    figure = diagram.figure()
    lines = {line.get_label() for line in figure.axes[0].lines}
    assert {"jump, stable", "continuous, stable", "tricritical point"} <= lines
    assert "tricritical" in repr(diagram)
    assert f"{diagram.points} points" in repr(diagram)


def test_a_plane_without_a_boundary_says_so():
    found = op.phase_diagram(
        stable,
        Magnet(1.0),
        {"anisotropy": (0.0, 0.1), "temperature": (0.8, 1.0)},
        order="magnetisation",
    )
    assert found.boundaries == ()
    assert found.ends == ()
    assert found.points == 81
    assert found.figure().axes


# -- measured ------------------------------------------------------------------------------------


class Noisy(op.Result):
    order: Float[Array, ""]


@op.experiment
def noisy(system: Magnet, key: jax.Array) -> Noisy:
    """tanh of the distance from temperature 0.4, with noise of standard deviation 0.5."""
    return Noisy(order=jnp.tanh((0.4 - system.temperature) / 0.1) + 0.5 * jax.random.normal(key))


def test_stochastic_bisection_finds_the_place_within_its_error():
    found = [
        op.transition(
            noisy,
            Magnet(1.0, 0.01 * k),
            {"temperature": (0.1, 1.0)},
            order="order",
            level=0,
            seeds=4,
            accuracy=0.01,
        )
        for k in range(8)
    ]
    deviates = np.array([(one.location - 0.4) / one.error for one in found])
    assert np.sqrt(np.mean(deviates**2)) < 2.5
    assert all(one.error < 0.011 * 0.9 and one.kind == "measured" for one in found)


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"over": {"temprature": (0.1, 1)}}, "no field 'temprature'; did you mean 'temperature'"),
        ({"over": {"temperature": (1, 0.1)}}, "increasing"),
        ({"over": {"temperature": (0.1, 1, "lgo")}}, "did you mean 'log'"),
        ({"over": {"temperature": (-1, 1)}}, "must be > 0"),
        ({"over": {"temperature": (0.1, 1), "field": (0, 1)}}, "one field"),
        ({"order": "magnetization"}, "did you mean 'magnetisation'"),
        ({"branches": ["odered"]}, "did you mean 'ordered'"),
        ({"seeds": 4}, "takes none"),
        ({"points": 2}, "at least 5"),
    ],
)
def test_mistakes_are_refused_by_name(change, message):
    given = {"over": {"temperature": (0.1, 1.0)}, "order": "magnetisation", **change}
    with pytest.raises(ValueError, match=message):
        op.transition(state, Magnet(1.0), given.pop("over"), **given)


@pytest.mark.parametrize(
    ("name", "value"), [("resolution", 20), ("accuracy", 0.1), ("accuracy", 1e-15)]
)
def test_sizes_of_a_plane_are_checked(name, value):
    with pytest.raises(ValueError, match=name):
        op.phase_diagram(stable, Magnet(1.0), PLANE, order="magnetisation", **{name: value})


# -- in a study ----------------------------------------------------------------------------------


def test_a_phase_diagram_is_the_curve_of_a_study():
    curve = diagram_curve(stable, Magnet(1.0), PLANE, order="magnetisation", resolution=16)
    data = op.sweep(curve.fn, curve.system, curve.over)
    assert data["boundary_x"].dims == ("boundary_point",)
    assert data.sizes["point"] > 100
    assert phases_panel("anisotropy", "temperature").title == ""
