"""Extensive-width teachers: numbers computed independently (Hermite sums, brute-force enumeration),
to the digits given."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import orderparam as op
from orderparam.gaussian import activation
from orderparam.gaussian.polynomials import Hermite
from orderparam.systems.extensive_width import (
    TANH_2,
    HierarchicalTeacher,
    WeightedTeacher,
    WidthLimitedStudent,
    all_solutions,
    bayes_optimal,
    channel,
    coexistence_windows,
    collective_transition,
    compressed,
    flat_hierarchy,
    informed_state,
    staircase,
    steep_hierarchy,
)

STEEP = HierarchicalTeacher(input_dim=200, width=100, decay=1.0, noise=0.01)
FLAT = HierarchicalTeacher(input_dim=200, width=100, decay=0.3, noise=0.04)


@pytest.mark.parametrize(
    ("which", "total", "threshold", "jump", "spinodal", "spinodal_overlap"),
    [
        (TANH_2, 0.103123765, 19.2740807, 0.750827401, 17.6797675, 0.6044103),
        (Hermite(3), 1.0, 1.45577674, 0.645007451, 4 / 3, 0.5),
        (Hermite(4), 1.0, 1.97590511, 0.80452183, 1.6875, 2 / 3),
        (Hermite(7), 1.0, 2.87342228, 0.92761087, 2.13284571, 5 / 6),
        (activation("erf"), 0.0401458728, 41.993225, 0.69852365, 38.467703, 0.55199098),
        (activation("sign"), 1 - 2 / np.pi, 9.90938519, 0.85004754, 9.15527192, np.sqrt(0.5)),
    ],
    ids=["tanh2", "h3", "h4", "h7", "erf", "sign"],
)
def test_thresholds_of_a_single_feature(which, total, threshold, jump, spinodal, spinodal_overlap):
    tables = channel(which)
    np.testing.assert_allclose(tables.total, total, rtol=5e-9)
    np.testing.assert_allclose(jnp.exp(tables.bayes.threshold), threshold, rtol=5e-9)
    np.testing.assert_allclose(
        tables.overlap(tables.bayes.threshold, tables.bayes), jump, rtol=2e-8
    )
    np.testing.assert_allclose(jnp.exp(tables.informed.threshold), spinodal, rtol=5e-9)
    np.testing.assert_allclose(
        tables.overlap(tables.informed.threshold, tables.informed), spinodal_overlap, rtol=1e-6
    )


def test_overlap_of_a_single_feature_against_its_signal():
    ratio = jnp.array([1.01, 1.1, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0])
    tanh2 = [
        0.757983424,
        0.804666114,
        0.889570036,
        0.927578055,
        0.957015091,
        0.976293313,
        0.988830434,
        0.998938840,
    ]
    cubic = [
        0.652624437,
        0.704555307,
        0.812011924,
        0.868121692,
        0.916744190,
        0.951890952,
        0.976552952,
        0.997705005,
    ]
    for which, expected in ((TANH_2, tanh2), (Hermite(3), cubic)):
        tables = channel(which)
        np.testing.assert_allclose(
            tables.overlap(jnp.log(ratio) + tables.bayes.threshold, tables.bayes),
            expected,
            atol=6e-10,
        )


def test_steep_hierarchy_at_finite_size():
    reference = {
        80000: (31, 0.00242194775), 162893: (47, 0.00141899536), 331678: (69, 0.000768000406),
        565363: (92, 0.000424070713),
        675352: (100, 0.000332742943), 1375132: (100, 0.000153206347), 2800000: (100,
        7.32255781e-5),
    }  # fmt: skip
    for n, (width, error) in reference.items():
        found = bayes_optimal(STEEP.with_(n_train=n))
        assert float(found.effective_width) == width
        np.testing.assert_allclose(found.error, error, rtol=5e-9)
        assert found.converged


def test_flat_hierarchy_at_finite_size():
    found = [bayes_optimal(FLAT.with_(n_train=n)) for n in (20000, 40000, 60000, 80000)]
    np.testing.assert_array_equal([one.effective_width for one in found], [5, 26, 100, 100])
    np.testing.assert_allclose(
        [one.error for one in found],
        [0.0884146895, 0.0647048386, 0.0251813524, 0.0149930264],
        rtol=5e-9,
    )
    overlaps = [one.overlap[np.array([0, 9, 49, 99])] for one in found]
    expected = [
        [0.955506886, 0, 0, 0],
        [0.984019081, 0.915854967, 0, 0],
        [0.993674973, 0.972099956, 0.904520979, 0.799578160],
        [0.996045807, 0.983229481, 0.948804194, 0.910250553],
    ]
    np.testing.assert_allclose(overlaps, expected, atol=6e-10)


def test_given_readouts():
    linear = np.linspace(2.5, 1.0, 100)
    fast = np.exp(-np.arange(100) / 5)
    teacher = WeightedTeacher(200, linear / np.linalg.norm(linear), 0.04, 40000)
    found = bayes_optimal(teacher)
    np.testing.assert_allclose([found.error, found.effective_width], [0.0625105147, 47], rtol=5e-9)
    found = bayes_optimal(teacher.with_(readout=fast / np.linalg.norm(fast), n_train=60000))
    np.testing.assert_allclose([found.error, found.effective_width], [0.00262559067, 12], rtol=5e-9)


def test_every_solution_and_the_bayes_optimal_one():
    few = all_solutions(STEEP.with_(n_train=700))
    np.testing.assert_array_equal(few.effective_width, [1, 0])
    np.testing.assert_allclose(few.free_entropy, [7.7528205, 7.6274548], rtol=1e-8)
    np.testing.assert_allclose(few.error[0], 0.0656334478, rtol=8e-9)
    rivals = {
        0.82: ([89, 88, 200, 191], 785.1091),
        0.835: ([99, 98, 200, 177], 802.0266),
        0.85: ([200], 822.54633611),
    }
    teacher = HierarchicalTeacher(input_dim=400, width=200, decay=0.3, noise=0.01)
    for alpha, (widths, psi) in rivals.items():
        found = all_solutions(teacher.with_(n_train=alpha * 400**2))
        np.testing.assert_array_equal(found.effective_width[: len(widths)], widths)
        np.testing.assert_allclose(found.free_entropy[0], psi, rtol=1e-7)
        chosen = bayes_optimal(teacher.with_(n_train=alpha * 400**2))
        np.testing.assert_allclose(chosen.free_entropy, found.free_entropy[0], rtol=1e-13)
        np.testing.assert_allclose(chosen.error, found.error[0], rtol=1e-11)


def test_staircase_of_a_steep_hierarchy():
    steps = staircase(STEEP)
    np.testing.assert_array_equal(steps.width_after, np.arange(1, 101))
    np.testing.assert_allclose(steps.n_train[0], 630.89615733, rtol=1e-10)
    assert np.max(steps.residual) < 1e-11
    windows = coexistence_windows(STEEP)
    np.testing.assert_allclose([windows.begin[0], windows.end[0]], [585.213, 712.970], atol=6e-4)
    assert np.all(windows.begin < steps.n_train)
    assert np.all(steps.n_train < windows.end)
    flat = coexistence_windows(FLAT)
    np.testing.assert_allclose([flat.begin[0], flat.end[0]], [7515.046, 7642.802], atol=6e-4)
    np.testing.assert_allclose(flat.end - flat.begin, 127.7564, atol=6e-5)
    np.testing.assert_allclose(flat.begin[-1], 57458.08, atol=6e-3)


def jagged(rng: np.random.Generator, kind: str, count: int) -> np.ndarray:
    """Read-outs of unit norm in no order: spread out, in clusters, or alike."""
    if kind == "spread":
        v = np.exp(rng.normal(size=count))
    elif kind == "clusters":
        v = rng.choice(np.exp(rng.normal(size=4)), size=count) * (1 + 0.02 * rng.normal(size=count))
    else:
        v = np.arange(1.0, count + 1) ** -0.3
    return v / np.linalg.norm(v)


def test_selected_branch_is_the_best_of_all_solutions():
    """A scan of the free entropy against the enumeration of every interval between two kinks, at
    300 features."""
    rng, rivals = np.random.default_rng(0), 0
    for case in range(18):
        kind = ("spread", "clusters", "alike")[case % 3]
        noise, alpha = 10 ** rng.uniform(-3, -1.5), 10 ** rng.uniform(-1, 1)
        if kind == "alike":
            noise, alpha = 0.01, rng.uniform(0.82, 0.88)
        teacher = WeightedTeacher(600.0, jagged(rng, kind, 300), noise, alpha * 600**2)
        chosen, every = bayes_optimal(teacher), all_solutions(teacher)
        rivals += int(every.stable.sum()) > 1
        assert float(chosen.effective_width) == float(every.effective_width[0])
        np.testing.assert_allclose(chosen.error, every.error[0], rtol=1e-8)
    assert rivals >= 3  # or the test would say nothing


def test_both_sides_of_every_transition_of_clustered_readouts():
    """Collective steps and single ones: the staircase is a chain, and the states beside each step
    are those it names."""
    teacher = WeightedTeacher(600.0, jagged(np.random.default_rng(5), "clusters", 300), 0.003, 1.0)
    steps = staircase(teacher)
    assert np.all(np.diff(steps.n_train) > 0)
    np.testing.assert_array_equal(steps.width_before[1:], steps.width_after[:-1])
    gained = np.asarray(steps.width_after - steps.width_before)
    assert gained.max() > 10
    for step in np.argsort(-gained)[:8]:
        for side, width in ((-1, steps.width_before[step]), (1, steps.width_after[step])):
            found = bayes_optimal(
                teacher.with_(n_train=float(steps.n_train[step]) * (1 + side * 1e-4))
            )
            assert float(found.effective_width) == float(width)


def test_informed_branch():
    for teacher, alpha, error, width in (
        (FLAT, 1.4, 0.0299221, 100),
        (FLAT, 1.0, 0.0630471, 31),
        (STEEP, 2.0, 0.00238486, 33),
    ):
        found = informed_state(teacher.with_(n_train=alpha * 200**2))
        np.testing.assert_allclose([found.error, found.effective_width], [error, width], rtol=2e-6)
        assert found.converged


@pytest.mark.parametrize(
    ("decay", "expected"),
    [
        (0.6, (0.295932732, 0.130961823, 0.0583893046, 0.442539161)),
        (1.0, (0.887991729, 0.109325477, 0.0565666309, 0.123115423)),
        (1.5, (1.02568445, 0.0845486768, 0.0553582236, 0.0824314701)),
    ],
)
def test_limits_of_steep_hierarchies(decay, expected):
    found = steep_hierarchy(HierarchicalTeacher(1000, 500, decay, 0.04, 1e6))
    np.testing.assert_allclose(jax.tree.leaves(found), expected, rtol=6e-9)


def test_limits_of_flat_hierarchies():
    grid = HierarchicalTeacher(1000, 500, 0.3, 0.04)
    found = op.sweep(flat_hierarchy, grid, {"n_train": [5e5, 1e6, 3e6]})
    np.testing.assert_allclose(
        found["error"], [0.0784993620, 0.0590817367, 0.00856306456], rtol=5e-9
    )
    np.testing.assert_allclose(
        found["learned_fraction"], [0.0548214493, 0.234533296, 1.0], rtol=1e-8
    )
    np.testing.assert_allclose(found["sample_ratio_all"], 1.552962, rtol=3e-8)
    ratios = op.sweep(flat_hierarchy, grid, {"noise": [0.04, 0.01]})
    np.testing.assert_allclose(ratios["first_order_ratio"], [0.91606, 1.15899], atol=6e-6)


@pytest.mark.parametrize(
    ("decay", "noise", "alpha", "window", "after"),
    [
        (0.3, 0.01, 0.85666, (0.830184, 0.873729), (0.5256, 0.042304, 0.019851)),
        (0.1, 0.04, 1.159071, (1.109417, 1.193681), (0.26505, 0.085485, 0.043051)),
        (0.0, 0.01, 0.796693268, (0.732907232, 1.0901783), (0.0, 0.1031238, 0.0219067316)),
        (0.0, 0.04, 1.14786854, (1.05933859, 1.3792895), (0.0, 0.1031238, 0.0430203026)),
    ],
)
def test_collective_transitions(decay, noise, alpha, window, after):
    found = collective_transition(HierarchicalTeacher(1000, 500, decay, noise))
    assert found.first_order
    np.testing.assert_allclose(found.sample_ratio, alpha, rtol=1e-5 if decay else 5e-9)
    np.testing.assert_allclose(found.coexistence, window, rtol=1e-5 if decay else 3e-8)
    np.testing.assert_allclose(
        [found.fraction_before, found.error_before, found.error_after], after, rtol=5e-5
    )


def test_no_collective_transition_where_the_staircase_is_continuous():
    assert not collective_transition(HierarchicalTeacher(1000, 500, 0.3, 0.04)).first_order


def test_students_of_limited_width():
    student = WidthLimitedStudent(STEEP.with_(n_train=80000), 5)
    found = op.sweep(compressed, student, {"width": [5, 10, 20, 30, 50, 100]})
    expected = [0.0110736, 0.00577351, 0.00312803, 0.00244955, 0.00242195, 0.00242195]
    np.testing.assert_allclose(found["error"], expected, rtol=5e-6)
    np.testing.assert_allclose(found["one_sample_error"][-1], 0.00346933, rtol=2e-6)
    assert found["error"][-1] == pytest.approx(float(found["error"][-2]), rel=1e-12)


def test_a_million_features():
    teacher = HierarchicalTeacher(input_dim=2e6, width=1_000_000, decay=1.0, noise=0.01)
    for alpha, error, width in (
        (0.1, 1.22887e-4, 789),
        (1.0, 3.86627e-5, 2506),
        (10.0, 1.216748e-5, 7937),
    ):
        found = bayes_optimal(teacher.with_(n_train=alpha * 4e12))
        np.testing.assert_allclose([found.error, found.effective_width], [error, width], rtol=4e-6)
        assert found.converged
        if alpha == 1.0:
            np.testing.assert_allclose(
                found.error * 4e12 / (found.effective_width * 2e6), 0.030856, rtol=2e-5
            )
