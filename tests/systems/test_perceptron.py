"""The perceptron and its teacher: limits, real students against theory, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.systems.perceptron import (
    BatchPerceptron,
    OnlinePerceptron,
    ThermalPerceptron,
    annealed,
    batch_rule,
    batch_student,
    binary_transitions,
    enumerated_students,
    high_temperature_transitions,
    online_rule,
    online_student,
    parallel_tempering,
    quenched,
)
from orderparam.systems.perceptron.prolonged import prolonged_fixed_point


def runs(experiment, system, name, count=8, **options):
    values = [
        float(getattr(experiment(system, jax.random.key(seed), **options), name))
        for seed in range(count)
    ]
    return np.mean(values), np.std(values, ddof=1) / np.sqrt(count)


def test_hot_students_know_nothing_and_anneal_alike():
    """As T grows at fixed alpha/T quenched and annealed theory agree: 1/T corrections."""
    hot = ThermalPerceptron(100.0, 100.0)
    np.testing.assert_allclose(
        quenched(hot).teacher_overlap, annealed(hot).teacher_overlap, rtol=1e-2
    )
    overlap = float(quenched(ThermalPerceptron(1e4, 1e4)).teacher_overlap)
    np.testing.assert_allclose(
        np.arctanh(overlap) * np.pi * np.sqrt(1 - overlap**2), 1.0, rtol=1e-3
    )


@pytest.mark.parametrize("weights", ["binary", "spherical"])
def test_free_entropy_has_the_slope_that_thermodynamics_demands(weights):
    """-d(free entropy)/d(1/T) = alpha mistakes, whatever the order parameters do."""
    step, inverse = 1e-4, 2.0
    free = [
        float(quenched(ThermalPerceptron(0.9, 1 / (inverse + s), weights)).free_entropy)
        for s in (-step, step)
    ]
    errors = 0.9 * float(quenched(ThermalPerceptron(0.9, 1 / inverse, weights)).mistakes)
    np.testing.assert_allclose((free[0] - free[1]) / (2 * step), errors, rtol=1e-6)


def test_annealed_theory_promises_too_much():
    system = ThermalPerceptron(0.8)
    assert float(annealed(system).free_entropy) > float(quenched(system).free_entropy)


@pytest.mark.parametrize(
    ("sample_ratio", "temperature"), [(1.4935, 0.0), (1.6, 0.0), (2.0, 0.2), (2.5, 0.5), (3.0, 1.0)]
)
def test_beyond_the_spinodal_the_student_is_the_teacher(sample_ratio, temperature):
    found = quenched(ThermalPerceptron(sample_ratio, temperature))
    assert found.converged
    assert found.teacher_overlap == found.self_overlap == 1
    assert found.free_entropy == found.entropy == found.classification_error == found.mistakes == 0


def test_two_values_that_a_map_exchanges_are_no_fixed_point():
    """y -> 1 - y leaves only 1/2 where it is; every pair of steps leaves everything where it is."""
    swapped = prolonged_fixed_point(
        lambda y, _: 1 - y, jnp.asarray([0.2, 0.9]), None, tolerance=1e-11, max_steps=100
    )
    assert not swapped.converged
    np.testing.assert_allclose(swapped.residual, 0.8)
    still = prolonged_fixed_point(
        lambda y, slope: slope * (1 - y), jnp.zeros(2), 0.7, tolerance=1e-11, max_steps=100
    )
    assert still.converged
    np.testing.assert_allclose(still.value, 0.7 / 1.7, rtol=1e-10)


@pytest.mark.parametrize("weights", ["binary", "spherical"])
def test_students_in_equilibrium_stay_where_they_are(weights):
    """Over the plane of n/d and T, the line of transitions included: one step changes ln qh and ln
    Rh by less than 1e-10."""
    system = ThermalPerceptron(1.0, 1.0, weights)
    ratios, temperatures = jnp.geomspace(0.02, 50.0, 12), jnp.asarray([0.0, 0.3, 2.0, 5.0])
    found = jax.vmap(
        jax.vmap(lambda n, t: quenched(system.with_(sample_ratio=n, temperature=t)), (0, None)),
        (None, 0),
    )(ratios, temperatures)
    assert np.all(found.converged)
    assert np.all(found.residual < 1e-10)


@pytest.mark.parametrize("temperature", [0.0, 0.2, 1.0, 3.0])
def test_the_state_that_students_are_stuck_in_ends_at_the_spinodal(temperature):
    """By iteration: below it the student has the overlap of the fold but for a square root of the
    distance, above it is the teacher. The fold lies within 1e-5 of the jump."""
    system = ThermalPerceptron(1.0, temperature)
    found = binary_transitions(system)
    assert found.converged
    for nearness in (1e-3, 1e-5):
        below, above = (
            quenched(
                system.with_(sample_ratio=found.spinodal * (1 + side * nearness)), max_steps=20_000
            )
            for side in (-1, 1)
        )
        assert below.converged
        assert above.converged
        distance = float(found.spinodal_overlap - below.teacher_overlap)
        np.testing.assert_allclose(distance / np.sqrt(nearness), 0.37, rtol=0.2)
        assert above.teacher_overlap == 1


def test_transitions_from_cold_to_hot():
    """T -> 0 is the one-parameter curve of q = R, T -> infinity the closed form; between, the
    spinodal comes last."""
    cold, nearly = (
        binary_transitions(ThermalPerceptron(1.0, temperature)) for temperature in (0.0, 0.02)
    )
    hot, limit = (
        binary_transitions(ThermalPerceptron(1.0, 1e4)),
        high_temperature_transitions(ThermalPerceptron(1.0, 1e4)),
    )
    for name in ("thermodynamic", "spinodal"):
        np.testing.assert_allclose(getattr(nearly, name), getattr(cold, name), rtol=1e-9)
        np.testing.assert_allclose(getattr(hot, name) / 1e4, getattr(limit, name), rtol=1e-4)
    np.testing.assert_allclose(hot.spinodal_overlap, limit.spinodal_overlap, atol=1e-4)
    np.testing.assert_allclose(
        limit.spinodal_overlap * np.arctanh(limit.spinodal_overlap), 1.0, rtol=1e-12
    )
    warm = binary_transitions(ThermalPerceptron(1.0, 0.25))
    assert warm.thermodynamic < warm.freezing < warm.spinodal
    hot = binary_transitions(ThermalPerceptron(1.0, 1.0))
    assert np.isinf(hot.freezing)
    assert not hot.freezes
    assert warm.freezes


def test_transitions_are_those_of_the_iterated_state():
    found = binary_transitions(ThermalPerceptron(1.0, 0.2))
    at = quenched(ThermalPerceptron(found.thermodynamic, 0.2))
    np.testing.assert_allclose(
        [at.free_entropy, at.teacher_overlap - found.overlap], 0.0, atol=1e-9
    )
    np.testing.assert_allclose(
        quenched(ThermalPerceptron(found.freezing, 0.2)).entropy, 0.0, atol=1e-9
    )


def test_spherical_students_have_no_transition_at_any_temperature():
    """The replica-symmetric state is stable (replicon below 1/2), and R rises with n/d without a
    jump: at high temperature as alpha/T = pi R / sqrt(1 - R^2), at every other one by less than a
    jump between neighbouring points."""
    ratios = jnp.geomspace(0.05, 500.0, 60)
    for temperature in (0.0, 0.05, 0.2, 0.5, 1.0, 5.0):
        system = ThermalPerceptron(1.0, temperature, "spherical")
        found = jax.vmap(lambda ratio, system=system: quenched(system.with_(sample_ratio=ratio)))(
            ratios
        )
        assert np.all(found.converged)
        assert np.all(found.replicon < 0.5 + 1e-3)
        steps = np.diff(found.teacher_overlap)
        assert np.all(steps > 0)
        assert np.max(steps) < 0.06


def test_every_student_counted():
    mean, error = runs(
        enumerated_students, ThermalPerceptron(0.5, 1.0, input_dim=15), "free_entropy", 40
    )
    expected = float(quenched(ThermalPerceptron(0.5, 1.0)).free_entropy)
    assert abs(mean - expected) < 4 * error + 0.02  # 1/N
    one = enumerated_students(ThermalPerceptron(5.0, 0.0, input_dim=11), jax.random.key(0))
    np.testing.assert_allclose(
        [one.teacher_overlap, one.entropy, one.mistakes], [1.0, 0.0, 0.0], atol=1e-12
    )


def test_parallel_tempering_samples_what_is_counted():
    system = ThermalPerceptron(0.8, 0.7, input_dim=11)
    for seed in range(2):
        exact, found = (
            run(system, jax.random.key(seed)) for run in (enumerated_students, parallel_tempering)
        )
        assert found.converged
        for name, tolerance in (
            ("mistakes", 0.01),
            ("teacher_overlap", 0.05),
            ("self_overlap", 0.05),
        ):
            np.testing.assert_allclose(getattr(found, name), getattr(exact, name), atol=tolerance)


@pytest.mark.parametrize("rule", ["hebb", "pseudo-inverse", "maximal stability"])
def test_students_of_all_examples(rule):
    system = BatchPerceptron(2.0, rule, 100)
    mean, error = runs(batch_student, system, "classification_error")
    assert abs(mean - float(batch_rule(system).classification_error)) < 4 * error + 0.003


@pytest.mark.parametrize("rule", ["hebb", "rosenblatt", "adaline", "optimal"])
def test_students_of_a_stream(rule):
    system = OnlinePerceptron(3.0, rule, 0.5, 1000)
    theory = online_rule(system)
    for name in ("classification_error", "length"):
        mean, error = runs(online_student, system, name)
        assert abs(mean - float(getattr(theory, name))) < 4 * error + 0.004


def test_nobody_learns_faster_online_than_the_optimal_rule_or_better_than_bayes():
    best = float(online_rule(OnlinePerceptron(2.0, "optimal")).classification_error)
    for rule in ("hebb", "rosenblatt", "adaline"):
        assert float(online_rule(OnlinePerceptron(2.0, rule, 0.7)).classification_error) > best
    bayes = float(quenched(ThermalPerceptron(2.0, 0.0, "spherical")).bayes_error)
    assert bayes < best
    for rule in ("hebb", "pseudo-inverse", "maximal stability"):
        assert float(batch_rule(BatchPerceptron(2.0, rule)).classification_error) > bayes


def test_adaline_forgets_at_any_rate_below_two():
    slow = online_rule(OnlinePerceptron(1e3, "adaline", 1e-3))
    np.testing.assert_allclose(
        slow.teacher_overlap,
        batch_rule(BatchPerceptron(1e9, "pseudo-inverse")).teacher_overlap,
        rtol=0.1,
    )
    same = [
        float(online_rule(OnlinePerceptron(2.0, "adaline", rate)).length)
        for rate in (1 - 1e-7, 1.0, 1 + 1e-7)
    ]
    np.testing.assert_allclose(same, same[1], rtol=1e-6)


def test_what_cannot_be_done_is_refused_by_name():
    with pytest.raises(ValueError, match=r"ThermalPerceptron\.weights"):
        binary_transitions(ThermalPerceptron(1.0, 0.0, "spherical"))
    with pytest.raises(
        ValueError, match=r"temperature = 1e\+16: must be <= 1e\+06.*high_temperature_transitions"
    ):
        binary_transitions(ThermalPerceptron(1.0, 1e16))
    with pytest.raises(ValueError, match=r"ThermalPerceptron\.input_dim = 25"):
        enumerated_students(ThermalPerceptron(1.0, 0.0, input_dim=25), jax.random.key(0))
    with pytest.raises(ValueError, match=r"sample_ratio = 0\.001"):
        online_student(OnlinePerceptron(0.001, "hebb", input_dim=100), jax.random.key(0))
