"""Reference values of one-pass SGD: steady states in closed form, flows integrated independently,
the price of a smaller rate."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.systems.online_sgd import (
    CommitteeSGD,
    ReproducibleStart,
    TeacherStart,
    asymptotic_error,
    overlap_chain,
    overlap_flow,
    plateau,
    steady_state,
    trained_network,
)

# R / sigma^2 of the matched committee, readouts 1, and the largest stable learning rate.
LINEAR_RESPONSE = {
    1: ((9.21152703e-4, 9.421103322e-3, 5.240455470e-2, 1.2195843867e-1), 4.055778676),
    2: ((1.845705978e-3, 1.9204291322e-2, 1.1712551406e-1, 3.2331767841e-1), 2.306827696),
    3: ((2.773678482e-3, 2.9370612173e-2, 1.9902795016e-1, 7.175676469e-1), 1.620674506),
    4: ((3.705089211e-3, 3.9943012709e-2, 3.0599776556e-1, 1.83642866157), 1.249392781),
}


@pytest.fixture(scope="module")
def flow():
    return overlap_flow


@pytest.fixture(scope="module")
def committee():
    """Four units learn two; times 1, 10, 100, 1000 and a dimension so large that rounding to whole
    steps does not matter."""
    return CommitteeSGD(
        input_dim=1e12, width=4, learning_rate=4.0, first_record=1.0, horizon=1e3, records=4
    )


@pytest.mark.parametrize("units", LINEAR_RESPONSE)
def test_linear_response_to_label_noise(units):
    errors, critical = LINEAR_RESPONSE[units]
    theory = asymptotic_error
    system = CommitteeSGD(width=units, teacher_width=units, readout="sum", noise=1.0)
    for rate, error in zip((0.01, 0.1, 0.5, 1.0), errors):
        found = theory(system.with_(learning_rate=rate))
        assert float(found.test_error) == pytest.approx(error, rel=2e-9)
        assert float(found.critical_learning_rate) == pytest.approx(critical, rel=1e-9)


def test_copies_of_a_unit_act_as_one_with_a_smaller_rate():
    """Four units on a teacher of two, rate 4, noise 1e-3: integrated to n/d = 1e6 the flow ends at
    R = 1.1664076e-4."""
    found = asymptotic_error(CommitteeSGD(width=4, teacher_width=2, learning_rate=4.0, noise=1e-3))
    one = asymptotic_error(CommitteeSGD(width=2, teacher_width=2, learning_rate=2.0, noise=1e-3))
    assert float(found.test_error) == pytest.approx(float(one.test_error), rel=1e-12)
    assert float(found.critical_learning_rate) == pytest.approx(
        2 * float(one.critical_learning_rate), rel=1e-12
    )
    # to first order in the noise
    assert float(found.test_error) == pytest.approx(1.1664076e-4, rel=5e-3)


def test_critical_rate_and_small_rate_of_one_unit():
    found = asymptotic_error(
        CommitteeSGD(width=1, teacher_width=1, readout="sum", learning_rate=1.0, noise=1.0)
    )
    assert float(found.critical_learning_rate) == pytest.approx(np.pi * np.sqrt(5 / 3), rel=1e-12)
    assert float(found.small_rate_risk) == pytest.approx(0.0918881492370, rel=1e-11)


def test_flow_with_both_terms(flow, committee):
    found = flow(committee)
    assert bool(found.converged)
    np.testing.assert_allclose(
        found.test_error,
        [4.944065777e-2, 4.0637125734e-3, 3.5260097001e-3, 1.194718385e-4],
        rtol=3e-8,
    )


def test_flow_without_label_noise(flow, committee):
    found = flow(committee.with_(noise=0.0))
    np.testing.assert_allclose(
        found.test_error[:3], [4.935113149e-2, 3.9231777201e-3, 3.3793399852e-3], rtol=3e-8
    )


def test_limits_with_one_term(flow, committee):
    np.testing.assert_allclose(
        flow(committee, terms="learning").test_error[:3],
        [3.8129691674e-2, 3.1027227247e-3, 2.7218157026e-3],
        rtol=3e-8,
    )
    noisy = flow(committee, terms="noise")
    np.testing.assert_allclose(
        noisy.test_error, [0.1222445109, 0.2399182378, 0.3184387238, 0.2735886104], rtol=1e-8
    )
    np.testing.assert_allclose(
        np.diagonal(noisy.self_overlap[1]),
        [1.4168175753, 1.3914235450, 1.4115502979, 1.4026482196],
        rtol=1e-8,
    )
    np.testing.assert_array_equal(noisy.teacher_overlap[-1], noisy.teacher_overlap[0])


def test_learning_rate_trades_floor_for_samples(flow, committee):
    """d = 1000, gamma = p d^-delta at n/d = 100 and 1000: the smaller rate is behind first and
    ahead later."""
    found = {
        delta: flow(committee.with_(learning_rate=4.0 * 1000**-delta)).test_error[2:]
        for delta in (0.25, 0.375, 0.5)
    }
    np.testing.assert_allclose(found[0.25], [3.138064e-3, 8.014007e-4], rtol=1e-6)
    np.testing.assert_allclose(found[0.375], [3.416102e-3, 2.952848e-3], rtol=1e-6)
    np.testing.assert_allclose(found[0.5], [8.668172e-3, 3.015863e-3], rtol=1e-6)


def test_steady_states_at_finite_noise():
    """Full nonlinear steady states of the matched committee, and the flow that ends there."""
    steady = steady_state
    system = CommitteeSGD(
        width=2,
        teacher_width=2,
        readout="sum",
        learning_rate=0.5,
        start=TeacherStart(),
        horizon=50.0,
    )
    for noise, risk in ((1e-4, 1.171220332e-5), (1e-2, 1.1678015818e-3), (0.25, 2.7455547502e-2)):
        found = steady(system.with_(noise=noise))
        assert bool(found.converged)
        assert float(found.growth_rate) < 0
        assert float(found.test_error) == pytest.approx(risk, rel=1e-9)
    # The same point in the other normalisation: gamma = K^2 eta, Delta = sigma^2 / K^2, R = eps /
    # K^2.
    other = CommitteeSGD(
        width=2, teacher_width=2, learning_rate=2.0, noise=1e-3, start=TeacherStart(), horizon=50.0
    )
    assert float(steady(other).test_error) == pytest.approx(1.169867130e-4, rel=1e-8)
    # Two units on one teacher unit drift apart at next to no cost. Reference: the flow at n/d =
    # 1e8, by SciPy's LSODA.
    copies = CommitteeSGD(width=2, teacher_width=1, learning_rate=1.0, noise=1e-3, horizon=1000.0)
    found = steady(copies)
    assert bool(found.converged)
    assert -1e-4 < float(found.growth_rate) < 0
    assert float(found.test_error) == pytest.approx(5.237446886365e-5, rel=1e-10)
    assert float(asymptotic_error(copies).test_error) == pytest.approx(
        float(found.test_error), rel=1e-3
    )


def test_symmetric_plateau_is_a_saddle():
    system = CommitteeSGD(
        width=2,
        teacher_width=2,
        readout="sum",
        learning_rate=0.5,
        noise=1e-2,
        start=ReproducibleStart(teacher_overlap=0.0),
        horizon=50.0,
    )
    found = steady_state(system)
    assert bool(found.converged)
    assert float(found.unstable_directions) == 1
    np.testing.assert_allclose(
        found.teacher_overlap, np.full((2, 2), float(found.teacher_overlap[0, 0])), rtol=1e-8
    )
    # The asymmetry grows at the saddle's rate: a start 100 times nearer to the saddle stays ln(100)
    # / rate longer. It leaves where -d ln R / d ln t = 0.05, quadratic in the asymmetry: one
    # smaller by sqrt(t1 / t2) is enough at the later time t2.
    lengths = jax.vmap(
        lambda overlap: plateau(
            system.with_(start=ReproducibleStart(teacher_overlap=overlap), horizon=2000.0),
            slope=0.05,
        )
    )(jnp.asarray([1e-4, 1e-6, 1e-8]))
    assert bool(jnp.all(lengths.converged))
    leave = np.asarray(lengths.exit)
    stays = np.diff(leave) * float(found.growth_rate) + np.diff(np.log(leave)) / 2
    # The approach to the saddle itself is slow: the longer the stay, the better its rate is met.
    assert stays[1] / np.log(100) == pytest.approx(1, abs=0.01)
    assert abs(stays[1] / np.log(100) - 1) < 0.5 * abs(stays[0] / np.log(100) - 1)
    assert float(lengths.entry_risk[1]) > float(found.test_error) > float(lengths.exit_risk[1])


def test_network_and_chain_follow_the_flow_at_finite_dimension():
    """d = 400, 64 runs each: chain and network agree with one another and with the flow within a
    few standard errors."""
    system = CommitteeSGD(input_dim=400, first_record=2.0, horizon=12.0, records=3)
    theory = overlap_flow(system)
    keys = jax.random.split(jax.random.key(0), 64)
    found = {
        f: np.asarray(jax.vmap(lambda k, f=f: f(system, k).test_error)(keys))
        for f in (overlap_chain, trained_network)
    }
    errors = {f: runs.std(axis=0, ddof=1) / 8 for f, runs in found.items()}
    means = {f: runs.mean(axis=0) for f, runs in found.items()}
    combined = np.hypot(*errors.values())
    assert np.all(np.abs(means[overlap_chain] - means[trained_network]) < 4 * combined)
    for f in found:
        assert np.all(
            np.abs(means[f] - theory.test_error) < 4 * errors[f] + 2e-2 * theory.test_error
        )
    spread = [runs.std(axis=0, ddof=1) for runs in found.values()]
    assert np.all(np.abs(np.log(spread[0] / spread[1])) < 0.5)
