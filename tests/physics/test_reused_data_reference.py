"""Training on re-used data against numbers computed elsewhere, with other programs."""

import numpy as np
import pytest

from orderparam.systems.reused_data import (
    ReusedCommittee,
    ReusedData,
    closed_dynamics,
    committee_dynamics,
    sampled_dynamics,
)

# Ridge regression: settings, and by step (m, test error, training error), to ten digits
RIDGE = {
    "full batch": (
        ReusedData(1.5, 0.2, 0.1, steps=40),
        {
            1: (0.3, 1.106, 0.69),
            2: (0.45, 0.79886, 0.3789),
            5: (0.65541, 0.4616553091, 0.1503924975),
            10: (0.7860314385, 0.2916179252, 0.0779990369),
            40: (0.9466605247, 0.1656912745, 0.0373062088),
        },
    ),
    "mini-batches": (
        ReusedData(1.5, 0.2, 0.1, 0.1, 0.25, teacher_overlap=0.2, steps=40),
        {
            1: (0.436, 1.17, 1.0604),
            5: (0.6946109594, 0.4970396711, 0.2998817652),
            10: (0.7785051026, 0.2868240636, 0.1414353393),
            40: (0.8556090308, 0.1606499003, 0.0733636973),
        },
    ),
    "momentum": (
        ReusedData(0.8, 0.3, 0.2, 0.05, momentum=0.8, steps=40),
        {
            1: (0.24, 1.291025, 0.666025),
            5: (0.7448213822, 0.8994047140, 0.3629902027),
            10: (0.7106944870, 0.6949226893, 0.1270642728),
            40: (0.6890798834, 0.5300998105, 0.0141763278),
        },
    ),
    "Langevin": (
        ReusedData(2.0, 0.1, 0.1, 0.2, 0.5, 0.5, 0.3, self_overlap=0.5, steps=40),
        {
            5: (0.7728595520, 0.6371966306, 0.4264263757),
            10: (0.8131769281, 0.6020656023, 0.3884712060),
            40: (0.8510059840, 0.5935777817, 0.3803351488),
        },
    ),
}


@pytest.mark.parametrize("name", RIDGE)
def test_ridge_regression_step_by_step(name):
    system, expected = RIDGE[name]
    found = closed_dynamics(system)
    assert found.converged
    for step, (overlap, test_error, train_error) in expected.items():
        np.testing.assert_allclose(found.overlap[step], overlap, atol=1e-10)
        np.testing.assert_allclose(found.test_error[step], test_error, atol=1e-10)
        np.testing.assert_allclose(2 * found.train_loss[step], train_error, atol=1e-10)


def test_a_response_across_two_steps():
    found = closed_dynamics(RIDGE["momentum"][0])
    np.testing.assert_allclose(found.response[3, 1], -0.4635, atol=1e-12)


def test_the_published_fixed_point_of_ridge_regression():
    found = closed_dynamics(ReusedData(3.0, 0.1, 0.0, 0.5, teacher_overlap=0.2, steps=150))
    np.testing.assert_allclose(found.overlap[1], 0.43, atol=1e-12)
    np.testing.assert_allclose(found.overlap[-1], 0.81386, atol=5e-6)


# Sampled elsewhere with other programs: by step (m, its error, q, its error)
SAMPLED = {
    "logistic": (
        ReusedData(3.0, 0.5, 0.0, 0.1, task="logistic", steps=30),
        {
            1: (0.598, 0.003, 0.986, 0.004),
            5: (1.425, 0.003, 2.719, 0.010),
            10: (1.801, 0.003, 4.082, 0.015),
            30: (2.135, 0.003, 5.56, 0.02),
        },
    ),
    "a fifth in each step": (
        ReusedData(3.0, 0.5, 0.0, 0.1, 0.2, task="logistic", steps=30),
        {
            2: (0.953, 0.002, 2.471, 0.011),
            5: (1.509, 0.003, 3.766, 0.011),
            10: (1.895, 0.002, 5.017, 0.010),
            30: (2.211, 0.003, 6.317, 0.020),
        },
    ),
    "Langevin": (
        ReusedData(3.0, 0.2, 0.0, 0.2, 1.0, 0.3, 0.5, task="logistic", steps=30),
        {
            2: (0.501, 0.001, 1.280, 0.001),
            5: (1.025, 0.002, 2.531, 0.004),
            10: (1.403, 0.002, 3.870, 0.007),
            25: (1.707, 0.002, 5.154, 0.007),
        },
    ),
    "phase retrieval": (
        ReusedData(4.0, 0.05, teacher_overlap=0.3, task="phase retrieval", steps=40),
        {
            1: (0.279, 0.001, 0.570, 0.002),
            10: (0.432, 0.003, 0.544, 0.002),
            20: (0.627, 0.006, 0.667, 0.006),
            40: (0.871, 0.005, 0.844, 0.007),
        },
    ),
}


@pytest.mark.parametrize("name", SAMPLED)
def test_sampled_overlaps_step_by_step(name):
    system, expected = SAMPLED[name]
    found = sampled_dynamics(system, samples=2000)
    assert found.converged
    for step, (m, m_error, q, q_error) in expected.items():
        spread = np.hypot(found.overlap_uncertainty[step], m_error)
        assert abs(found.overlap[step] - m) < 3 * spread
        assert spread < 0.012
        spread = np.hypot(found.self_overlap_uncertainty[step], q_error)
        assert abs(found.self_overlap[step] - q) < 3 * spread
        assert spread < 0.035


def test_a_committee_step_by_step():
    start = np.array([[0.2, -0.1], [0.0, 0.15]])
    system = ReusedCommittee(4.0, start, 0.5 * np.eye(2), 0.2, 0.5, steps=20)
    found = committee_dynamics(system, samples=2000)
    expected = {
        5: ([[0.520, 0.281], [0.307, 0.537]], [[0.002, 0.004], [0.003, 0.003]]),
        20: ([[0.569, 0.336], [0.359, 0.597]], 0.005),
    }
    for step, (overlap, error) in expected.items():
        spread = np.hypot(found.overlap_uncertainty[step], error)
        assert np.all(abs(found.overlap[step] - np.array(overlap)) < 3 * spread)
        assert np.all(spread < 0.02)
    own, spread = found.self_overlap[5], found.self_overlap_uncertainty[5]
    expected = np.array([[0.631, 0.115], [0.115, 0.669]])
    assert np.all(abs(own - expected) < 3 * np.hypot(spread, 0.003))
    assert abs(found.self_overlap[20, 0, 0] - 0.835) < 3 * np.hypot(
        found.self_overlap_uncertainty[20, 0, 0], 0.009
    )
