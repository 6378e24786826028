"""Facts about the flow of one-pass SGD that need no reference numbers: symmetries, limits,
conventions, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

import orderparam as op
from orderparam.gaussian import activation
from orderparam.gaussian.points import normal_points
from orderparam.solve.flow import flow
from orderparam.systems.online_sgd import (
    CommitteeSGD,
    PhasePoint,
    SphereStart,
    asymptotic_error,
    averages,
    overlap_chain,
    overlap_flow,
    phase_flow,
    plateau,
    region,
    residual_risk,
    steady_state,
    time_exponent,
    trained_network,
)
from orderparam.systems.online_sgd.averages import four_points, signal_power
from orderparam.systems.online_sgd.experiment import lower_root
from orderparam.systems.online_sgd.model import check_continuous
from orderparam.systems.online_sgd.theory import Order, problem, risk_of, velocity


@pytest.fixture(scope="module")
def fields():
    """A generic covariance of three student and two teacher fields, and signed readouts."""
    rng = np.random.default_rng(0)
    student = 0.5 * rng.standard_normal((3, 6))
    teacher = np.eye(6)[:2]
    rows = np.concatenate([student, teacher])
    return jnp.asarray(rows @ rows.T), jnp.asarray([-0.3, -0.5, 0.2, 0.6, 0.4])


def sampled(name, fields, signed, count=2_000_000):
    """Risk, learning and noise term (with label noise 0.1) by plain sampling, with standard
    errors."""
    sigma = activation(name)
    z = np.random.default_rng(1).standard_normal((count, 5)) @ np.asarray(
        averages.symmetric_root(fields)
    )
    error = np.asarray(sigma(z)) @ np.asarray(signed)
    slopes = np.asarray(sigma.derivative(z[:, :3]))
    learning = slopes.T @ (error[:, None] * z) / count
    noise = (slopes * (error**2 + 0.1)[:, None]).T @ slopes / count
    return np.mean(error**2) / 2, learning, noise


@pytest.mark.parametrize("name", ["erf_scaled", "erf", "relu"])
def test_averages_agree_with_sampling(name, fields):
    """Two million samples: agreement to 2e-3 in absolute terms, about four standard errors."""
    covariance, signed = fields
    risk, learning, noise = sampled(name, covariance, signed)
    sigma = activation(name)
    assert float(averages.half_square(sigma, covariance, signed)) == pytest.approx(risk, abs=2e-3)
    np.testing.assert_allclose(
        averages.learning_term(sigma, covariance, signed, 3), learning, atol=2e-3
    )
    found = jax.jit(lambda c: averages.noise_term(sigma, c, signed, 3, jnp.asarray(0.1)))(
        covariance
    )
    np.testing.assert_allclose(found, noise, atol=2e-3)


def test_quasi_random_fields_agree_with_the_closed_form(fields):
    """The fallback of activations with unusual kinks, on one activation where it can be checked."""
    covariance, signed = fields
    sigma = activation("erf_scaled")
    points = normal_points(5, averages.LOG2_POINTS) @ averages.symmetric_root(covariance)
    slopes, error = sigma.derivative(points[:, :3]), sigma(points) @ signed
    quadrature = (slopes * error[:, None] ** 2).T @ slopes / len(points)
    exact = averages.noise_term(sigma, covariance, signed, 3, jnp.asarray(0.0))
    np.testing.assert_allclose(quadrature, exact, rtol=3e-3)


def test_smooth_quadrature_agrees_with_the_closed_form(fields):
    """Variances up to 2, and a student that copies the teacher (a singular covariance)."""
    covariance, signed = fields
    sigma = activation("erf_scaled")
    rows = jnp.eye(2)[jnp.asarray([0, 1, 0, 0, 1])]
    power = jax.jit(lambda law: signal_power(sigma, law, signed, 3))
    for law in (covariance, rows @ rows.T):
        exact = averages.noise_term(sigma, law, signed, 3, jnp.asarray(0.0))
        np.testing.assert_allclose(power(law), exact, rtol=1e-6, atol=1e-9)


def test_kinked_averages_of_equally_correlated_fields():
    """Correlations 1/2: given the field they share, all fields are independent, and one integral
    over it is left."""
    law = 0.5 * (jnp.ones((4, 4)) + jnp.eye(4))
    low, high = 0.3, 1.2
    points = jax.jit(four_points, static_argnums=(0, 2))
    found = points((low, high), law, 2)

    def average(f):
        return integrate.quad(lambda u: stats.norm.pdf(u) * f(u), -12, 12, epsabs=1e-13, limit=200)[
            0
        ]

    def slope(u, power=1):
        return low**power + (high**power - low**power) * stats.norm.cdf(u)

    def value(u, slopes=1):  # E[sigma'^(slopes - 1) sigma] of one field, given u
        relu = (u * stats.norm.cdf(u) + stats.norm.pdf(u)) / np.sqrt(2)
        return low**slopes * u / np.sqrt(2) + (high**slopes - low**slopes) * relu

    def square(u, slopes=2):  # E[sigma'^(slopes - 2) sigma^2]
        positive = ((u**2 + 1) * stats.norm.cdf(u) + u * stats.norm.pdf(u)) / 2
        return low**slopes * (u**2 + 1) / 2 + (high**slopes - low**slopes) * positive

    expected = {
        (0, 1, 2, 3): lambda u: slope(u) ** 2 * value(u) ** 2,
        (0, 0, 2, 3): lambda u: slope(u, 2) * value(u) ** 2,
        (0, 1, 2, 2): lambda u: slope(u) ** 2 * square(u),
        (0, 1, 0, 2): lambda u: value(u, 2) * slope(u) * value(u),
        (0, 1, 0, 1): lambda u: value(u, 2) ** 2,
        (0, 1, 1, 1): lambda u: slope(u) * square(u, 3),
        (0, 0, 0, 2): lambda u: value(u, 3) * value(u),
        (1, 1, 1, 1): lambda u: square(u, 4),
    }
    for index, f in expected.items():
        assert float(found[index]) == pytest.approx(average(f), rel=1e-9), index
    # Students that copy teachers, three fields in one: E[sigma'^2 sigma^2] and E[sigma' sigma]^2.
    rows = jnp.eye(2)[jnp.asarray([0, 1, 0, 0, 1])]
    copies = points((0.0, 1.0), rows @ rows.T, 3)
    assert float(copies[0, 2, 0, 3]) == pytest.approx(0.5, abs=1e-4)
    assert float(copies[0, 1, 3, 4]) == pytest.approx(1 / (2 * np.pi), abs=1e-4)


def test_permuting_units_and_flipping_signs_leave_the_risk(fields):
    covariance, signed = fields
    order = jnp.asarray([2, 0, 1, 3, 4])
    flip = jnp.asarray([1.0, -1.0, 1.0, 1.0, 1.0])
    sigma = activation("erf_scaled")
    risk = averages.half_square(sigma, covariance, signed)
    assert averages.half_square(sigma, covariance[order][:, order], signed[order]) == pytest.approx(
        float(risk)
    )
    flipped = averages.half_square(sigma, flip[:, None] * covariance * flip, flip * signed)
    assert float(flipped) == pytest.approx(float(risk), rel=1e-13)


def test_rates_in_one_batch_are_the_same_as_alone():
    system = CommitteeSGD(input_dim=1e9, width=2, horizon=5.0, records=3)
    together = jax.vmap(lambda rate: overlap_flow(system.with_(learning_rate=rate)).test_error)(
        jnp.asarray([2.0, 1.0])
    )
    alone = overlap_flow(system.with_(learning_rate=2.0))
    np.testing.assert_allclose(together[0], alone.test_error, rtol=1e-7)


def test_a_flow_without_end_is_given_up(monkeypatch):
    """Explicit steps to n/d = 1e9 took as long as the machine was left to it."""
    monkeypatch.setattr("orderparam.systems.online_sgd.theory._STEPS", 50)
    found = overlap_flow.fn(CommitteeSGD(width=1, teacher_width=1, horizon=1e9, records=3))
    assert not found.converged


def test_long_stiff_flows_take_few_steps():
    """To n/d = 1e6, where the flow has come to rest (R = 1.1664076e-4, by two solvers): 622
    steps."""
    system = CommitteeSGD(input_dim=1e12, first_record=1.0, horizon=1e6, records=3)
    path = flow(
        velocity,
        Order.at_start(system),
        system.sample_ratio(),
        problem(system),
        stiff=True,
        max_steps=900,
    )
    assert bool(path.converged)
    end = jax.tree.map(lambda leaf: leaf[-1], path.value)
    assert float(risk_of(system, end)) == pytest.approx(1.1664076e-4, rel=1e-8)


def test_readouts_only_set_the_unit_of_the_labels():
    """Labels c times as large, of noise c^2 times as large, learnt c^2 times as slowly, are the
    same problem: R ~ c^2."""
    scale = 3.0
    system = CommitteeSGD(
        input_dim=1e9, width=2, learning_rate=0.5, noise=0.01, horizon=5.0, records=3
    )
    plain = system.with_(student_readout=1.0, teacher_readout=[1.0, 1.0])
    scaled = plain.with_(
        student_readout=scale,
        teacher_readout=[scale, scale],
        learning_rate=0.5 / scale**2,
        noise=0.01 * scale**2,
    )
    for mine, usual in zip(plain.readouts(), system.with_(readout="sum").readouts()):
        np.testing.assert_array_equal(mine, usual)
    for theory in (overlap_flow, asymptotic_error):
        np.testing.assert_allclose(
            theory(scaled).test_error, scale**2 * theory(plain).test_error, rtol=1e-8
        )
    own = plain.with_(student_readout=[0.2, 0.4], teacher_readout=2.0)
    np.testing.assert_array_equal(own.readouts()[0], [0.2, 0.4])
    np.testing.assert_array_equal(own.readouts()[1], [2.0, 2.0])


def test_both_layers_are_learnt_as_their_flow_says():
    """A teacher of readouts 2 and 1, a student that starts from small ones and trains them (Goldt
    et al. 2019): d = 300."""
    system = CommitteeSGD(
        input_dim=300,
        width=2,
        learning_rate=0.4,
        readout_rate=0.8,
        student_readout=[0.9, 0.3],
        teacher_readout=[2.0, 1.0],
        noise=0.01,
        first_record=1.0,
        horizon=8.0,
        records=2,
    )
    theory = overlap_flow(system)
    runs = jax.vmap(lambda key: trained_network(system, key))(
        jax.random.split(jax.random.key(0), 32)
    )
    assert float(jnp.max(jnp.abs(theory.readout_weight[-1] - jnp.asarray([0.9, 0.3])))) > 0.2
    for name in ("readout_weight", "test_error"):
        found, expected = np.asarray(getattr(runs, name)), np.asarray(getattr(theory, name))
        errors = found.std(0, ddof=1) / np.sqrt(32)
        assert np.all(np.abs(found.mean(0) - expected) < 4 * errors + 0.01 * np.abs(expected)), name


def test_both_input_conventions_train_the_same_network():
    system = CommitteeSGD(input_dim=60, horizon=2.0, records=3)
    one, other = (
        trained_network(system.with_(inputs=inputs), jax.random.key(1))
        for inputs in ("unit", "scaled")
    )
    np.testing.assert_allclose(one.self_overlap, other.self_overlap, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(one.teacher_overlap, other.teacher_overlap, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "changes",
    [
        {"readout_rate": 0.5},
        {"repeats": 2},
        {"batch_size": 4},
        pytest.param({"activation": "relu"}, marks=pytest.mark.slow),
    ],
)
def test_every_kind_of_training_follows_its_flow(changes):
    """Trained readouts, repeated samples, batches, another activation: network and flow at d = 300,
    mean of 32 runs."""
    system = CommitteeSGD(
        input_dim=300,
        width=2,
        learning_rate=1.0,
        first_record=1.0,
        horizon=4.0,
        records=2,
        **changes,
    )
    runs = np.asarray(
        jax.vmap(lambda k: trained_network(system, k).test_error)(
            jax.random.split(jax.random.key(0), 32)
        )
    )
    theory = np.asarray(overlap_flow(system).test_error)
    # 1/d corrections of one per cent are allowed on top of four standard errors.
    assert np.all(
        np.abs(runs.mean(0) - theory) < 4 * runs.std(0, ddof=1) / np.sqrt(32) + 0.01 * theory
    )


def test_batches_in_the_chain_have_the_law_of_the_network():
    system = CommitteeSGD(
        input_dim=40,
        width=2,
        batch_size=4,
        learning_rate=4.0,
        first_record=1.0,
        horizon=4.0,
        records=2,
    )
    keys = jax.random.split(jax.random.key(0), 400)
    runs = [
        np.asarray(jax.vmap(lambda k, f=f: f(system, k).self_overlap[-1])(keys))
        for f in (overlap_chain, trained_network)
    ]
    means, spreads = [x.mean(0) for x in runs], [x.std(0) for x in runs]
    assert np.all(np.abs(means[0] - means[1]) < 4 * np.hypot(*spreads) / 20)
    np.testing.assert_allclose(spreads[0], spreads[1], rtol=0.25)


def test_root_of_singular_covariances():
    rows = np.random.default_rng(0).standard_normal((4, 2))
    covariance = jnp.asarray(rows @ rows.T)
    root = lower_root(covariance)
    np.testing.assert_allclose(root @ root.T, covariance, atol=1e-12)
    np.testing.assert_array_equal(np.triu(root, 1), 0)


def test_random_starts_have_the_overlaps_of_random_vectors():
    draws = jax.vmap(lambda seed: SphereStart(seed=seed).overlaps(2, 2, jnp.asarray(50.0)))(
        jnp.arange(4000)
    )
    np.testing.assert_allclose(jnp.diagonal(draws[0], axis1=1, axis2=2), 1.0, rtol=1e-12)
    np.testing.assert_allclose(jnp.var(draws[0][:, 0, 1]), 1 / 50, rtol=0.1)
    np.testing.assert_allclose(jnp.var(draws[1], axis=0), 1 / 50, rtol=0.1)


def test_dimensions_of_different_widths_are_one_sweep():
    """kappa = 1/4: widths 3 and 4."""
    point, dims = (
        PhasePoint(width_exponent=0.25, base_width=1, horizon=1.0, records=2),
        [81.0, 256.0],
    )
    found = op.sweep(phase_flow, point, {"input_dim": dims})
    committees = [point.with_(input_dim=dim).committee for dim in dims]
    assert [committee.width for committee in committees] == [3, 4]
    expected = [overlap_flow(committee).test_error for committee in committees]
    np.testing.assert_allclose(found["test_error"], expected, rtol=1e-12)


def test_regions_of_the_phase_diagram():
    assert region(0.0, 0.5) == region(0.5, -0.25) == "perfect learning"
    assert region(0.5, -0.5) == "Saad-Solla line"
    assert region(0.25, -0.5) == "noise dominated"
    assert region(0.0, -0.75) == "no differential equation"
    assert [time_exponent(0.0, x) for x in (0.5, 0.0, -0.375, -0.75)] == [1.5, 1.0, 0.25, 0.0]
    with pytest.raises(ValueError, match="width_exponent"):
        region(-0.1, 0.0)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"width": 0}, "width"),
        ({"noise": -1.0}, "noise"),
        ({"teacher_width": 0}, "teacher_width"),
        ({"readout": "median"}, "readout"),
        ({"activation": "reloo"}, "reloo"),
        ({"first_record": 3.0, "horizon": 2.0}, "first_record"),
        ({"repeats": 0}, "repeats"),
        ({"student_readout": [1.0, 2.0]}, r"student_readout has shape \(2,\).*4 units"),
        ({"teacher_readout": [[1.0, 2.0]]}, "teacher_readout"),
        ({"start": "sphere"}, "start"),
    ],
)
def test_refusals_name_the_field(arguments, field):
    with pytest.raises(ValueError, match=field):
        CommitteeSGD(**arguments)


def test_the_steady_state_ends_where_its_risk_diverges():
    """Points beyond the critical learning rate have no state, which a transition can use; points
    that did not converge would say nothing."""
    point = PhasePoint(input_dim=1e4, base_width=100, noise=1e-3, teacher_width=1)
    over = {"rate_exponent": (-0.8, 0.8)}
    found = op.transition(residual_risk, point, over, order="test_error")
    assert found.kind == "divergence"
    assert found.exponent == pytest.approx(-1, abs=1e-5)
    rates = [
        residual_risk(point.with_(rate_exponent=found.location + step)) for step in (-1e-6, 1e-6)
    ]
    assert [bool(rate.valid) for rate in rates] == [False, True]
    assert np.isnan(float(rates[0].test_error))


def test_experiments_refuse_what_they_cannot_run():
    with pytest.raises(ValueError, match="input_dim"):
        overlap_chain(CommitteeSGD(input_dim=8), jax.random.key(0))
    with pytest.raises(ValueError, match="repeats"):
        overlap_chain(CommitteeSGD(batch_size=2, repeats=2), jax.random.key(0))
    with pytest.raises(ValueError, match="horizon"):
        trained_network(
            CommitteeSGD(input_dim=10, first_record=1e-4, horizon=1e-3), jax.random.key(0)
        )
    with pytest.raises(ValueError, match="teacher_width"):
        asymptotic_error(CommitteeSGD(width=3))
    with pytest.raises(ValueError, match="student_readout"):
        asymptotic_error(CommitteeSGD(width=2, student_readout=1.0))
    with pytest.raises(ValueError, match="width_exponent"):
        phase_flow(PhasePoint(input_dim=1e9, width_exponent=1.0))
    with pytest.raises(ValueError, match="terms"):
        overlap_flow(CommitteeSGD(), terms="none")
    with pytest.raises(ValueError, match="clock"):
        PhasePoint(clock="sand")


@pytest.mark.parametrize(
    "which",
    ["sign", "step", activation(jnp.round, kinks=np.arange(-7.5, 8).tolist(), name="round")],
)
@pytest.mark.parametrize("theory", [overlap_flow, plateau, steady_state, asymptotic_error])
def test_an_activation_with_jumps_is_refused_by_name(theory, which):
    """Its derivative is zero wherever SGD looks, but its Gaussian averages contain the jumps."""
    system = CommitteeSGD(width=2, activation=which)
    name = which if isinstance(which, str) else which.name
    with pytest.raises(ValueError, match=f"CommitteeSGD.activation = {name}: must be continuous"):
        theory(system)


def test_kinks_and_fast_growth_are_no_jumps():
    """Quadratic units have a flow at small learning rates; at large ones they diverge."""
    for which in ("relu", "abs", "leaky_relu(0.1)"):
        check_continuous(CommitteeSGD(activation=which))
    slow = CommitteeSGD(width=2, activation="quadratic", learning_rate=0.2, horizon=20.0, records=3)
    assert overlap_flow(slow).converged
