"""Generalisation: limits of bounds and of typical curves, perceptrons and networks that really
learn, and refusals."""

import math

import jax
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import linprog
from scipy.special import ndtr

from orderparam.losses.margin import shortest_vector
from orderparam.systems.generalisation import (
    ImageClassifier,
    PerceptronLearning,
    bad_minima,
    counting_bound,
    sampled_students,
    trained_network,
    trained_student,
    typical,
    uniform_bound,
    worst_consistent,
    worst_student,
)

LEARNERS = ("Bayes", "Gibbs", "largest margin", "Hebb")


def deviation(runs, expected):
    """Of the mean error of some runs from what is expected, in standard errors of its scatter."""
    values = [float(run.error) for run in runs]
    return (np.mean(values) - float(expected)) / (np.std(values, ddof=1) / np.sqrt(len(values)))


# -- theory --------------------------------------------------------------------------------------


def test_hebbs_rule():
    for ratio in (0.1, 3.0):
        overlap = 1 / np.sqrt(1 + np.pi / (2 * ratio))
        np.testing.assert_allclose(
            typical(PerceptronLearning(ratio), learner="Hebb").overlap, overlap, rtol=1e-13
        )


@pytest.mark.parametrize("ratio", [1e-6, 0.01, 1.0, 7.0, 1e3, 1e6])
def test_errors_are_in_order(ratio):
    bayes, gibbs, margin, hebb = (
        typical(PerceptronLearning(ratio), learner=learner) for learner in LEARNERS
    )
    worst = worst_consistent(PerceptronLearning(ratio))
    assert all(x.converged for x in (bayes, gibbs, margin, worst))
    assert 0 < bayes.error < margin.error < gibbs.error < worst.error <= 1
    assert bayes.error <= hebb.error


def test_no_examples_teach_nothing():
    for learner in LEARNERS:
        np.testing.assert_allclose(
            typical(PerceptronLearning(1e-8), learner=learner).error, 0.5, atol=1e-3
        )


@pytest.mark.parametrize("ratio", [0.7, 2.0, 30.0])
def test_the_worst_student_satisfies_gardners_condition(ratio):
    """1 - R^2 = 2 alpha int_-inf^0 Dt Phi(R t/sqrt(1 - R^2)) t^2."""
    overlap = float(worst_consistent(PerceptronLearning(ratio)).overlap)
    slope = overlap / np.sqrt(1 - overlap**2)
    integral = quad(
        lambda t: np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi) * ndtr(slope * t) * t**2,
        -12,
        0,
        epsabs=1e-14,
    )[0]
    np.testing.assert_allclose(1 - overlap**2, 2 * ratio * integral, rtol=1e-9)


def test_the_worst_student_knows_nothing_at_the_capacity_and_errs_as_one_over_alpha():
    np.testing.assert_allclose(worst_consistent(PerceptronLearning(2.0)).error, 0.5, rtol=1e-14)
    np.testing.assert_allclose(
        1e6 * worst_consistent(PerceptronLearning(1e6)).error, 1.5, rtol=1e-9
    )


def test_bounds_by_counting():
    system = PerceptronLearning(4.0, 10)
    dichotomies = 2 * sum(math.comb(79, k) for k in range(10))
    np.testing.assert_allclose(
        uniform_bound(system).error, 2 / 40 * np.log2(2 * dichotomies / 0.05), rtol=1e-12
    )
    few = PerceptronLearning(0.3, 10)  # 6 points in general position: all 2^6 dichotomies
    np.testing.assert_allclose(
        uniform_bound(few).error, 2 / 3 * (6 + np.log2(2 / 0.05)), rtol=1e-12
    )
    np.testing.assert_allclose(uniform_bound(system, form="square root").error, 0.5, rtol=1e-14)
    expected = np.sqrt((10 * (np.log(8) + 1) + np.log(80)) / 40)
    np.testing.assert_allclose(uniform_bound(system, form="dimension").error, expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("ratio", "dim"), [(0.1, 10_000), (0.499, 10_000), (0.55, 10_000), (0.8, 10_000), (2.0, 10_000)]
)
def test_bounds_in_many_dimensions(ratio, dim):
    """Below d/2 examples it was -inf or far too small: the terms that count were left out."""
    points = round(2 * ratio * dim)
    dichotomies, term = 0, 1
    for k in range(min(dim, points)):
        dichotomies += 2 * term
        term = term * (points - 1 - k) // (k + 1)
    expected = 2 / (ratio * dim) * (math.log2(dichotomies) + math.log2(2 / 0.05))
    np.testing.assert_allclose(
        uniform_bound(PerceptronLearning(ratio, dim)).error, expected, rtol=1e-10
    )


@pytest.mark.parametrize("ratio", [1.0, 10.0, 1e3])
def test_bounds_hold_for_the_worst(ratio):
    system = PerceptronLearning(ratio, 1000)
    for form in ("growth function", "dimension"):
        assert uniform_bound(system, form=form).error > worst_consistent(system).error


def test_the_network_has_so_many_weights():
    system = ImageClassifier(np.ones((20, 6)), np.zeros(20), n_train=10, width=4)
    np.testing.assert_allclose(counting_bound(system).error, np.sqrt((6 * 4 + 4 * 4 + 4 * 10) / 10))


# -- perceptrons ---------------------------------------------------------------------------------


def test_the_margin_is_the_largest():
    """Against a linear programme for the direction: no better margin in any of the directions
    around the optimum."""
    rng = np.random.default_rng(0)
    patterns = rng.normal(size=(30, 12))
    signed = patterns * np.sign(patterns @ rng.normal(size=12))[:, None]
    student, found = shortest_vector(signed, np.ones(30))
    assert found
    margin = np.min(signed @ student) / np.linalg.norm(student)
    np.testing.assert_allclose(margin, 1 / np.linalg.norm(student), rtol=1e-10)
    # on the tangent plane at the optimum no direction raises the margins of all patterns that touch
    # it
    support = signed[signed @ student < 1 + 1e-9]
    unit = student / np.linalg.norm(student)
    best = linprog(
        np.append(np.zeros(12), -1.0),
        A_ub=np.hstack([-(support - np.outer(support @ unit, unit)), np.ones((len(support), 1))]),
        b_ub=np.zeros(len(support)),
        bounds=[(-1, 1)] * 12 + [(None, None)],
    )
    assert -best.fun < 1e-9


def test_the_nearest_consistent_student_and_demands_that_nobody_meets():
    rng = np.random.default_rng(1)
    signed = rng.normal(size=(20, 10)) + 0.5
    away = -np.ones(10)
    change, found = shortest_vector(signed, -signed @ away)
    assert found
    nearest, fields = away + change, signed @ (away + change)
    assert np.min(fields) > -1e-9
    np.testing.assert_allclose(change @ nearest, 0, atol=1e-9)  # a projection on a cone
    opposite = np.vstack([np.eye(3)[0], -np.eye(3)[0]])
    assert not shortest_vector(opposite, np.ones(2))[1]


@pytest.mark.parametrize("learner", ["Hebb", "largest margin"])
def test_trained_students_err_as_predicted(learner):
    system = PerceptronLearning(2.0, 100)
    runs = [trained_student(system, jax.random.key(seed), learner=learner) for seed in range(6)]
    assert all(run.converged for run in runs)
    np.testing.assert_allclose(
        np.mean([run.error for run in runs]), typical(system, learner=learner).error, rtol=0.03
    )
    if learner == "largest margin":
        assert all(run.training_error == 0 for run in runs)


@pytest.mark.parametrize("learner", ["Gibbs", "Bayes"])
def test_sampled_students_err_as_predicted(learner):
    system = PerceptronLearning(1.0, 30)
    runs = [
        sampled_students(system, jax.random.key(seed), learner=learner, data_sets=32, steps=8000)
        for seed in range(4)
    ]
    np.testing.assert_allclose(
        np.mean([run.error for run in runs]), typical(system, learner=learner).error, rtol=0.03
    )
    assert all(run.training_error < 1e-9 for run in runs if learner == "Gibbs")


def test_the_worst_student_is_found_where_it_points_away():
    system = PerceptronLearning(1.0, 80)
    runs = [worst_student(system, jax.random.key(seed), rounds=5) for seed in range(4)]
    assert all(run.converged for run in runs)
    np.testing.assert_allclose(
        np.mean([run.error for run in runs]), worst_consistent(system).error, rtol=0.03
    )


# -- networks ------------------------------------------------------------------------------------


def test_sgd_reaches_a_bad_minimum_and_regularisation_a_good_one():
    system = ImageClassifier.of("digits", 800, n_train=150, width=64, copies=3)
    found = bad_minima(system, jax.random.key(0), regularised_epochs=200)
    random, adversarial, repaired, regularised = np.asarray(found.error)
    assert found.converged
    assert found.memorised == 1
    assert adversarial > random + 0.03
    assert repaired < adversarial - 0.03
    assert abs(repaired - regularised) < 0.05  # three standard errors of a difference on 650 images
    assert found.weight_norm[1] > max(found.weight_norm[0], found.weight_norm[2])


def test_a_network_learns_from_a_random_start():
    found = trained_network(
        ImageClassifier.of("digits", 600, n_train=300, width=32), jax.random.key(0)
    )
    assert found.converged
    assert found.train_error == 0
    assert found.error < 0.15


# -- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PerceptronLearning(0.0), r"PerceptronLearning.sample_ratio = 0.0: must be > 0"),
        (
            lambda: PerceptronLearning(1.0, confidence=1.0),
            r"PerceptronLearning.confidence = 1.0: must be > 0 and < 1",
        ),
        (
            lambda: ImageClassifier(np.ones((5, 2)), np.arange(5), n_train=5),
            r"ImageClassifier.n_train = 5: must leave some",
        ),
        (
            lambda: ImageClassifier(np.ones((5, 2)), np.arange(4)),
            r"ImageClassifier.labels has shape",
        ),
        (lambda: ImageClassifier(np.ones((2, 2)), [0, 10]), r"ImageClassifier.labels = 10"),
        (
            lambda: typical(PerceptronLearning(1.0), learner="Baies"),
            "learner = 'Baies': must be one of",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
