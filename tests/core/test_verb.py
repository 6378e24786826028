"""Theories and experiments: compiled once, refused by name, found, differentiated, batched, carried
to other processes."""

import pickle
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Bool, Float
from magnet import Magnetisation, Paramagnet, exact, sampled

import orderparam as op
from orderparam.core import verb
from orderparam.core.declared import topic_of
from orderparam.core.grid import Grid
from orderparam.core.result import Result
from orderparam.core.system import System, parameter, structure
from orderparam.core.verb import Theory, experiment, theory, unwrap
from orderparam.running.program import TheoryRun


class Well(System):
    """A particle in a well."""

    depth: float = parameter("depth of the well", above=0)
    positions: Float[Array, "place"] = parameter("places looked at")
    shape: Literal["round", "square"] = structure("shape", default="round")


class Energy(Result):
    energy: Float[Array, "place"]
    converged: Bool[Array, ""]


TRACES: list[str] = []


@theory
def energy(
    system: Well, scale: float = 1.0, *, sign: Literal["plus", "minus"] = "plus", order: int = 2
) -> Energy:
    """depth * scale * x^2."""
    TRACES.append(sign)
    return Energy(
        energy=(1 if sign == "plus" else -1) * scale * system.depth * system.positions**order,
        converged=jnp.asarray(True),
    )


@theory(traced=False)
def by_hand(system: Well) -> Energy:
    return Energy(
        energy=jnp.asarray([float(system.depth) * x for x in np.asarray(system.positions)]),
        converged=jnp.asarray(True),
    )


def _shallow(system: Well) -> None:
    if system.depth > 5:
        raise ValueError(f"Well.depth = {system.depth}: this expansion needs a depth <= 5")


@theory(check=_shallow)
def expansion(system: Well) -> Energy:
    return Energy(energy=system.depth * system.positions, converged=jnp.asarray(True))


@experiment
def drawn(system: Well, key: Array, *, draws: int = 3) -> Energy:
    return Energy(
        energy=jax.random.normal(key, (system.positions.shape[0],)) * system.depth / draws,
        converged=jnp.asarray(True),
    )


def compilations(call):
    """How many programs a call compiles."""
    counted = []

    def listen(event, seconds, **_):
        if event == "/jax/core/compile/backend_compile_duration":
            counted.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        jax.block_until_ready(call())
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    return len(counted)


def test_a_second_call_compiles_nothing_whatever_the_numbers_and_their_types():
    places = np.linspace(0, 1, 7)
    assert compilations(lambda: energy(Well(1.0, places))) >= 1  # the count can see a compilation
    for depth in (1.0, 2, np.float32(0.3), jnp.asarray(3), np.int64(4), jnp.float32(2)):
        assert compilations(lambda depth=depth: energy(Well(depth, places + 1), 0.5)) == 0
    assert compilations(lambda: energy(Well(1.0, list(places), "square"))) >= 1


def test_two_sweeps_over_the_same_columns_compile_once():
    system = Well(1.0, [1.0, 2.0])
    first = op.sweep(energy, system, {"depth": [1.0, 2.0, 3.0]})
    other, second = system.with_(positions=[3.0, 4.0]), {}
    assert (
        compilations(lambda: second.update(data=op.sweep(energy, other, {"depth": [4, 5, 6]}))) == 0
    )
    np.testing.assert_allclose(first["energy"], np.outer([1, 2, 3], [1, 4]))
    np.testing.assert_allclose(second["data"]["energy"], np.outer([4, 5, 6], [9, 16]))


def test_the_programs_of_sweeps_that_are_kept_are_bounded_and_those_used_last_stay(monkeypatch):
    monkeypatch.setattr(verb, "PROGRAMS", 2)

    def sweep(order):
        return op.sweep(
            partial(energy, order=order), Well(1.0, [1.0, 2.0, 3.0]), {"depth": [1.0, 2.0]}
        )

    for order in (11, 12, 11, 13):
        sweep(order)
    assert len(energy._batched) == 2
    assert compilations(lambda: sweep(11)["energy"].values) == 0
    assert compilations(lambda: sweep(12)["energy"].values) >= 1


def test_another_system_is_refused_in_one_line():
    with pytest.raises(ValueError, match=r"^test_verb\.energy takes a Well, not a Paramagnet$"):
        energy(Paramagnet(1.0))
    with pytest.raises(ValueError, match=r"^test_verb\.drawn takes a Well, not a Paramagnet$"):
        drawn(Paramagnet(1.0), jax.random.key(0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sgn": "plus"}, "no option 'sgn'; did you mean 'sign'"),
        ({"sign": "pluss"}, "sign = 'pluss': must be one of plus, minus; did you mean 'plus'"),
        ({"sign": 3}, "sign = 3: must be one of plus, minus"),
        ({"scale": "large"}, "scale = 'large': must be a number"),
        ({"scale": 10**400}, "scale = an integer of more than 20 digits: must be a number"),
        ({"scale": np.zeros(0)}, "scale = array.*: must be a number"),
        ({"order": 2.5}, "order = 2.5: must be an integer"),
    ],
)
def test_options_are_checked_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        energy(Well(1.0, [1.0]), **options)


def test_an_option_is_given_once():
    with pytest.raises(ValueError, match="scale is given twice"):
        energy(Well(1.0, [1.0]), 2.0, scale=3.0)
    with pytest.raises(ValueError, match="takes at most 3 options, not 4"):
        energy(Well(1.0, [1.0]), 2.0, "plus", 2, 5)


def test_options_by_position_by_name_or_left_out_run_one_program():
    well = Well(1.0, [1.0, 2.0, 3.0, 4.0])
    before = len(TRACES)
    calls = [
        energy(well),
        energy(well, 1),
        energy(well, scale=jnp.asarray(1.0)),
        energy(well, np.float32(1), "plus", 2),
    ]
    assert len(TRACES) == before + 1
    assert all((call.energy == calls[0].energy).all() for call in calls)


def test_sweeps_with_other_numbers_as_options_compile_once():
    well, found = Well(1.0, [1.0, 2.0, 3.0, 4.0, 5.0]), {}
    op.sweep(partial(energy, scale=2.0), well, {"depth": [1.0, 2.0]})
    sweep = partial(op.sweep, partial(energy, scale=3.0), well, {"depth": [1.0, 2.0]})
    assert compilations(lambda: found.update(data=sweep())) == 0
    np.testing.assert_allclose(found["data"]["energy"].values[:, 1], [12, 24])
    minus = op.sweep(partial(energy, scale=3.0, sign="minus"), well, {"depth": [1.0, 2.0]})
    np.testing.assert_allclose(minus["energy"].values[:, 1], [-12, -24])


def test_a_sweep_asks_the_theory_about_every_point_and_no_other():
    with pytest.warns(UserWarning, match="6.0: this expansion needs a depth <= 5"):
        data = op.sweep(expansion, Well(1.0, [1.0]), {"depth": [2.0, 6.0]})
    assert data["status"].values.tolist() == [1, 3]
    good = op.sweep(expansion, Well(6.0, [1.0]), {"depth": [2.0, 3.0]})  # no point at 6
    assert good["status"].values.tolist() == [1, 1]


def test_whole_numbers_that_are_mapped_over_are_floats_to_a_theory():
    @theory
    def halved(system: Well) -> Energy:
        return Energy(
            energy=jax.lax.fori_loop(0, 2, lambda _, x: x / 2, system.depth) * system.positions,
            converged=jnp.asarray(True),
        )

    found = jax.vmap(lambda depth: halved(Well(depth, [1.0])).energy[0])(jnp.arange(1, 3))
    np.testing.assert_allclose(found, [0.25, 0.5])


def test_an_experiment_reads_its_sizes_where_its_key_is_traced():
    @experiment
    def sized(system: Well, key: Array) -> Energy:
        return Energy(
            energy=jax.random.normal(key, (system.size("depth"),)), converged=jnp.asarray(True)
        )

    assert jax.jit(lambda key: sized(Well(3, [1.0]), key).energy)(jax.random.key(0)).shape == (3,)


def test_a_theory_checks_what_it_cannot_do_before_it_compiles():
    with pytest.raises(ValueError, match=r"Well\.depth = 6\.0: this expansion needs"):
        expansion(Well(6.0, [1.0]))
    # traced numbers pass
    assert jax.vmap(lambda d: expansion(Well(d, [1.0])).energy)(jnp.asarray([6.0])).shape == (1, 1)


def test_grad_vmap_and_jit_work_over_a_theory():
    def value(depth):
        return energy(Well(depth, [2.0])).energy[0]

    assert jax.grad(value)(1.5) == 4.0
    np.testing.assert_allclose(jax.jit(jax.vmap(value))(jnp.arange(1.0, 4.0)), [4, 8, 12])


def test_a_host_algorithm_is_swept_point_by_point_without_complaint(recwarn):
    data = op.sweep(by_hand, Well(1.0, [1.0, 2.0]), {"depth": [1.0, 2.0]})
    np.testing.assert_allclose(data["energy"], [[1, 2], [2, 4]])
    assert not recwarn.list
    # One point a task: each is kept as it finishes, and workers share them.
    assert TheoryRun(
        by_hand, Well(1.0, [1.0]), Grid.of({"depth": [1.0, 2.0]}), 2**30
    ).block_shape() == (1,)


def test_options_travel_with_partial():
    assert unwrap(partial(partial(energy, sign="plus"), sign="minus")) == (
        energy,
        {"sign": "minus"},
    )
    data = op.sweep(partial(energy, sign="minus"), Well(1.0, [2.0]), {"depth": [1.0, 3.0]})
    np.testing.assert_allclose(data["energy"].values.ravel(), [-4, -12])


def test_an_experiment_is_given_float64_arrays_and_options():
    assert drawn(Well(2, [1.0, 2.0]), jax.random.key(0), draws=1).energy.dtype == jnp.float64


def test_verbs_travel_by_name():
    assert pickle.loads(pickle.dumps(exact)) is exact
    assert pickle.loads(pickle.dumps(partial(sampled))).func is sampled


def test_a_verb_knows_what_it_takes_and_gives():
    assert (exact.name, exact.systems, exact.results) == (
        "magnet.exact",
        (Paramagnet,),
        (Magnetisation,),
    )
    assert (energy.choices("sign"), list(energy.options)) == (
        ("plus", "minus"),
        ["scale", "sign", "order"],
    )
    assert isinstance(energy, Theory)
    assert energy.differentiable
    assert not by_hand.differentiable
    assert energy.__doc__ == "depth * scale * x^2."


def test_the_topic_is_read_off_the_module():
    assert topic_of("orderparam.systems.online_sgd.theory.flow") == "online_sgd"
    assert topic_of("someones_package.glass") == "glass"
