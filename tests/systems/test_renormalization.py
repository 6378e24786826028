"""Renormalization: what no flow may change, what runs measure, and what is refused."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import orderparam as op
from orderparam.kernels import Spectrum
from orderparam.systems.renormalization import (
    EXACT_COUPLING,
    Bonds,
    DecimatedPool,
    DecimatedRegression,
    InteractingPool,
    InteractingRegression,
    ScaleFreeRegression,
    SpinBlocks,
    VectorMagnet,
    block_spins,
    bond_point,
    characteristic_flow,
    coupling_flow,
    decimated,
    decimation_flow,
    gap_equation,
    local_potential,
    one_loop_point,
    recursive_flow,
    regression,
    running_ridge,
    sampled_modes,
    sampled_regression,
    scaling_interval,
    spherical_point,
)
from orderparam.systems.renormalization.decimation.model import decimated_circle
from orderparam.systems.renormalization.magnet.experiment import majority, sums_around
from orderparam.systems.renormalization.studies import learnabilities, learning_curves

K = np.arange(1.0, 41.0)
SPECTRUM = Spectrum(K**-2, K**-2)


def learner(**changes):
    return DecimatedRegression(SPECTRUM, 15.0, 0.02, 0.1).with_(**changes)


# Decimation


def test_the_exact_closure_is_the_same_for_every_cut_and_ends_at_the_effective_ridge():
    whole = decimated(learner())
    for cut in (1.0, 7.0, 39.0, 40.0):
        curve = decimated(learner(cut=cut), closure="exact")
        assert float(curve.mode_count) == cut
        for name in ("threshold", "effective_ridge", "test_error", "bias"):
            assert float(getattr(curve, name)) == pytest.approx(
                float(getattr(whole, name)), rel=1e-12
            )
    flow = decimation_flow(learner())
    last = float(flow.exact_ridge[0] + flow.threshold * flow.learnability[0])
    assert last == pytest.approx(float(flow.effective_ridge), rel=1e-13)


def test_levels_stand_for_their_modes():
    pairs = Spectrum(np.repeat(K[:10] ** -2, 2), np.repeat(K[:10] ** -2 / 2, 2))
    levels = Spectrum(K[:10] ** -2, K[:10] ** -2, np.full(10, 2.0))
    for closure in ("effective ridge", "equivalent kernel", "exact"):
        one, other = (
            decimated(DecimatedRegression(s, 15.0, 0.02, cut=8.0), closure=closure)
            for s in (pairs, levels)
        )
        assert float(one.test_error) == pytest.approx(float(other.test_error), rel=1e-12)
    # a level is not cut in two
    assert float(decimated(DecimatedRegression(levels, 15.0, 0.02, cut=9.0)).mode_count) == 8


def test_one_sweep_stays_below_the_exact_ridge():
    for temperature in (1e-6, 0.02, 1.0):
        flow, sweep = (
            decimation_flow(learner(temperature=temperature)),
            running_ridge(learner(temperature=temperature)),
        )
        assert np.all(np.asarray(sweep.ridge) <= np.asarray(flow.exact_ridge) * (1 + 1e-12))
        assert np.all(np.asarray(flow.exact_ridge) <= np.asarray(flow.ridge) * (1 + 1e-12))
    unseen = DecimatedRegression(Spectrum(np.full(40, 1e-9), np.zeros(40)), 15.0, 1.0)
    assert float(running_ridge(unseen).end) == pytest.approx(
        float(decimation_flow(unseen).effective_ridge), rel=1e-13
    )


def test_what_is_left_is_more_gaussian():
    ratio = np.asarray(decimation_flow(learner()).non_gaussianity)
    assert np.all(np.diff(ratio) > 0)


def test_the_spectrum_of_a_pool():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(30, 5)), rng.normal(size=30)
    system = DecimatedPool.from_kernel(x @ x.T, y, 10, 0.1)
    assert system.features.shape == (30, 5)  # of rank five
    assert np.allclose(system.features.T @ system.features / 30, np.eye(5), atol=1e-12)
    assert np.allclose((system.features * system.spectrum.eigenvalues) @ system.features.T, x @ x.T)
    assert float(system.spectrum.total_power) == pytest.approx(np.mean(y**2), rel=1e-12)
    # the whole pool learned: kernel ridge regression in its own coordinates
    whole = regression(system.with_(n_train=30), jax.random.key(0))
    fitted = x @ x.T @ np.linalg.solve(x @ x.T + 0.1 * np.eye(30), y)
    assert float(whole.test_error) == pytest.approx(np.mean((fitted - y) ** 2), rel=1e-10)


def test_regression_on_gaussian_features_follows_the_theory():
    k = np.arange(1.0, 801)
    system = DecimatedRegression(Spectrum(k**-1.6, k**-1.6), 100, 0.05, 0.02, cut=400.0)
    errors = op.sweep(regression, system, {"n_train": [100]}, seeds=40)["test_error"].squeeze()
    theory = float(decimated(system.with_(cut=math.inf)).test_error)
    assert (
        abs(float(errors.mean()) - theory)
        < 4 * float(errors.std(ddof=1)) / math.sqrt(40) + 0.02 * theory
    )
    uniform = op.sweep(
        lambda s, key: regression(s, key, keep="uniform ridge"),
        system,
        {"n_train": [100]},
        seeds=40,
    )
    assert float(abs(uniform["test_error"] / errors - 1).max()) < 0.1  # the same training sets
    assert float(uniform["ridge"].mean()) == pytest.approx(
        0.05 + np.sum(k[400:] ** -1.6), rel=1e-12
    )


def test_the_variance_on_a_circle_is_the_same_everywhere():
    circle = decimated_circle(60, 1.6, 20, 0.01).with_(cut=20.0)
    found = regression(circle, jax.random.key(0), keep="local ridge")
    assert float(found.ridge_variation) < 1e-10


# The functional flow


def interacting(**changes):
    return InteractingRegression(SPECTRUM, 100.0, 1.0, 2.0).with_(**changes)


def test_the_theory_that_is_left_has_the_same_mass():
    gap = gap_equation(interacting())
    for cut in (3, 20):
        left = K[:cut] ** -2
        square = float(jnp.sum(left / (1 + gap.mass * left) + left / (1 + gap.mass * left) ** 2))
        flow = characteristic_flow(
            interacting(cut=float(cut)), points=2, reach=square / float(gap.squared_deviation)
        )
        assert float(flow.mass[1]) == pytest.approx(float(gap.mass), rel=1e-10)


@pytest.mark.parametrize("cut", [1.0, 10.0, math.inf])
def test_recursion_and_characteristics_agree(cut):
    for system in (
        interacting(cut=cut),
        interacting(cut=cut, loss="2*log(exp(z) + exp(-z))", quartic=0.1),
    ):
        exact = characteristic_flow(system, points=9)
        coarse, fine = (recursive_flow(system, points=9, grid=grid) for grid in (128, 2048))
        assert fine.converged
        assert np.allclose(fine.mass, exact.mass, rtol=1e-8)
        assert float(fine.residual) <= max(float(coarse.residual) / 64, 1e-13)


def test_the_likelihood_of_a_gaussian_process_is_carried_by_the_same_flow():
    system = learner(noise=0.0, cut=12.0)
    flow, n = decimation_flow(system), 11
    # the variance of the modes that are left
    left = float(flow.effective_ridge - flow.exact_ridge[n])
    end = float(flow.effective_ridge - system.temperature)
    found = characteristic_flow(system, points=2, reach=left / end)
    assert float(found.mass[1]) == pytest.approx(15.0 / float(flow.effective_ridge), rel=1e-10)
    assert 15.0 / float(found.mass[1]) - left == pytest.approx(
        float(flow.exact_ridge[n]), rel=1e-10
    )
    assert recursive_flow(system, points=5).converged


def test_a_square_loss_is_the_equivalent_kernel():
    gap, classical = (
        gap_equation(interacting(quartic=0.0)),
        decimated(DecimatedRegression(SPECTRUM, 100.0, 1.0), closure="equivalent kernel"),
    )
    assert float(gap.shift) == pytest.approx(0, abs=1e-12)
    assert float(gap.test_error) == pytest.approx(float(classical.test_error), rel=1e-12)
    assert float(gap.relative_change) == pytest.approx(0, abs=1e-12)


def test_the_first_order_in_the_interaction_is_the_deviation_without():
    rise = jax.grad(lambda u: gap_equation(interacting(quartic=u)).shift)(0.0)
    assert float(rise) == pytest.approx(
        6 * float(gap_equation(interacting(quartic=0.0)).squared_deviation), rel=1e-8
    )


def test_a_quartic_loss_may_be_written_as_a_formula():
    one, other = (
        gap_equation(interacting()),
        gap_equation(interacting(quartic=0.0, loss="z**2 + 2*z**4")),
    )
    assert float(one.mass) == pytest.approx(float(other.mass), rel=1e-11)


def test_several_solutions_are_told():
    """A loss that saturates: a mode stays where its prior is, or at its target."""
    system = InteractingRegression(
        Spectrum(np.full(40, 0.4), np.full(40, 0.4)), 40.0, 1.0, loss="2 - 2*exp(-z**2/2)"
    )
    many = [
        bool(gap_equation(system.with_(n_train=n)).valid)
        for n in (1.0, 105.0, 108.0, 110.0, 112.0, 115.0, 1000.0)
    ]
    assert many[0]
    assert many[-1]
    assert not all(many)


def test_the_interaction_vanishes_at_large_density_as_its_interval_says():
    at = [ScaleFreeRegression(0.5, 1.2, density, 1.0, 1e-4, modes=5e11) for density in (1e6, 1e7)]
    exact, law = (
        [gap_equation(system) for system in at],
        [scaling_interval(system) for system in at],
    )
    assert float(exact[1].shift) == pytest.approx(float(law[1].shift), rel=0.03)
    assert float(law[1].fluctuation_shift / law[0].fluctuation_shift) == pytest.approx(
        10 ** (-0.5 / 1.5), rel=1e-12
    )
    assert float(coupling_flow(at[0]).shift) == pytest.approx(float(exact[0].shift), rel=0.01)
    assert not scaling_interval(ScaleFreeRegression(0.5, 3.5, 1e6, 1.0, 0.1)).valid


def test_sampled_modes():
    k = np.arange(1.0, 101)
    system = InteractingRegression(Spectrum(k**-2, k**-2), 100.0, 1.0, 5.0)
    run, gap = sampled_modes(system, jax.random.key(0), samples=400), gap_equation(system)
    assert run.converged
    assert run.acceptance_rate > 0.6
    assert float(run.squared_deviation) == pytest.approx(float(gap.squared_deviation), rel=0.015)
    assert np.allclose(run.learnability[:10], gap.learnability[:10], atol=0.04)


def test_a_posterior_on_given_samples():
    """Where the ridge is large; without interaction it is Gaussian, and known for every training
    set."""
    k = np.arange(1.0, 21)
    system = InteractingRegression(Spectrum(k**-2, k**-2), 400, 10.0)
    errors = [sampled_regression(system, jax.random.key(n), samples=200) for n in range(4)]
    found = np.array([float(one.squared_deviation) for one in errors])
    expected = float(gap_equation(system).squared_deviation)
    assert abs(found.mean() - expected) < 4 * found.std(ddof=1) / 2 + 0.03 * expected
    exact = (
        float(decimated(DecimatedRegression(system.spectrum, 400.0, 10.0)).effective_ridge) - 10.0
    )
    assert np.mean([float(one.fluctuation) for one in errors]) == pytest.approx(exact, rel=0.05)


def test_a_posterior_on_a_pool():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(200, 6)), rng.normal(size=200)
    system = InteractingPool.from_kernel(x @ x.T / 6, y, 200, 20.0, quartic=0.3)
    run, gap = sampled_regression(system, jax.random.key(0)), gap_equation(system)
    assert float(run.squared_deviation) == pytest.approx(float(gap.squared_deviation), rel=0.05)


# The magnet


def test_many_components_meet_the_spherical_point_of_learning():
    """Learning is a long-range magnet of many components in one dimension."""
    learning = spherical_point(ScaleFreeRegression(0.5, 1.0, 1e4, 1.0))
    magnet = one_loop_point(VectorMagnet(1.0, 1e6, 1.5))
    assert float(magnet.mass) == pytest.approx(float(learning.mass_coupling), rel=2e-5)
    assert float(magnet.relevant) == pytest.approx(float(learning.relevant), rel=2e-5)
    assert float(magnet.irrelevant) == pytest.approx(float(learning.irrelevant), rel=2e-5)


def test_the_potential_of_many_components_and_near_four_dimensions():
    many = local_potential(VectorMagnet(3.0, 1e4))
    assert many.converged
    assert (float(many.nu), float(many.omega)) == pytest.approx((1.0, 1.0), abs=3e-4)
    for eps in (0.02, 0.01):
        near = local_potential(VectorMagnet(4 - eps))
        assert near.converged
        assert float(near.nu) == pytest.approx(0.5 + eps / 12, abs=eps**2)
        assert float(near.omega) == pytest.approx(eps, abs=2 * eps**2)
    assert not local_potential(VectorMagnet(2.2)).converged


def test_bonds_of_no_transition():
    assert not bond_point(Bonds(1.0, 1.0)).converged
    assert bond_point(Bonds(1.0, 1.05)).converged


def test_sums_around_a_spin_and_majorities():
    rng = np.random.default_rng(0)
    spins = rng.choice([-1, 1], size=(2, 8, 8)).astype(np.int8)
    around = np.asarray(sums_around(jnp.asarray(spins)))
    n = 8
    for r, i, j in itertools.product(range(2), range(n), range(n)):

        def s(a, b, r=r, i=i, j=j):
            return int(spins[r, (i + a) % n, (j + b) % n])

        corners = list(itertools.product((-1, 1), repeat=2))
        assert around[0, r, i, j] == s(0, 1) + s(0, -1) + s(1, 0) + s(-1, 0)
        assert around[1, r, i, j] == sum(s(a, b) for a, b in corners)
        assert around[2, r, i, j] == sum(s(a, 0) * s(0, b) * s(a, b) for a, b in corners)
    total = spins.reshape(2, 4, 2, 4, 2).sum(axis=(2, 4))
    blocks, _ = majority(jnp.asarray(spins), jnp.uint64(5))
    assert set(np.unique(blocks)) == {-1, 1}
    assert np.all(np.asarray(blocks)[total != 0] == np.sign(total)[total != 0])


def test_couplings_before_any_block_are_those_of_the_lattice():
    found = block_spins(SpinBlocks(1 / EXACT_COUPLING, 32), jax.random.key(1), sweeps=200)
    for value, error, exact in (
        (found.neighbour_coupling, found.neighbour_coupling_error, EXACT_COUPLING),
        (found.diagonal_coupling, found.diagonal_coupling_error, 0.0),
        (found.square_coupling, found.square_coupling_error, 0.0),
    ):
        assert abs(float(value[0]) - exact) < 4.5 * float(error[0])
        assert float(error[0]) < 0.01
    assert float(found.thermal_exponent) == pytest.approx(1.0, abs=0.12)


def test_blocks_flow_to_order_and_to_disorder():
    for temperature, sign in ((2.0, 1), (2.6, -1)):
        found = block_spins(SpinBlocks(temperature, 32), jax.random.key(2), sweeps=200)
        one, two = (float(found.neighbour_coupling[n] + found.diagonal_coupling[n]) for n in (1, 2))
        assert sign * (two - one) > 0


# Finite size


def test_one_tool_collapses_learnabilities_and_learning_curves():
    k = np.arange(1.0, 5001)  # fewer modes shift the exponents
    system = DecimatedRegression(Spectrum(k**-2, k**-2), 50, 1e-8)
    sizes = [40, 80, 160]
    modes = learnabilities(
        op.sweep(regression, system, {"n_train": sizes, "temperature": [1e-8]}, seeds=12)
    )
    assert modes.inverse_nu == pytest.approx(-1, abs=0.08)
    temperatures = np.geomspace(0.2 / 80, 20 / 80, 9).tolist()
    runs = op.sweep(regression, system, {"n_train": sizes, "temperature": temperatures}, seeds=40)
    curves = learning_curves(runs)
    assert abs(curves.inverse_nu - 1) < 3 * curves.inverse_nu_error < 0.3
    assert curves.power == pytest.approx(-1.0, abs=0.1)  # 6 % steeper at these sizes


# What is refused


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: DecimatedRegression(Spectrum([1.0, 0.0], [1.0, 1.0]), 3, 0.1),
            "spectrum.eigenvalues = 0: must be > 0",
        ),
        (
            lambda: InteractingRegression(Spectrum([1.0, 0.0], [1.0, 1.0]), 3, 0.1),
            "spectrum.eigenvalues = 0: must be > 0",
        ),
        (
            lambda: DecimatedRegression(Spectrum([1.0, -1.0], [1.0, 1.0]), 3, 0.1),
            "Spectrum.eigenvalues = -1.0: must be >= 0",
        ),
        (
            lambda: learner(cut=41.0),
            "DecimatedRegression.cut = 41.0: must be at most 40, the number of modes",
        ),
        (lambda: learner(cut=0.0), "DecimatedRegression.cut = 0.0: must be >= 1"),
        (lambda: interacting(cut=50.0), "InteractingRegression.cut = 50.0: must be at most 40"),
        (lambda: interacting(loss="z**2 + z**3"), r"loss = 'z\*\*2 \+ z\*\*3': must be even"),
        (lambda: interacting(loss="abs(z)"), r"loss = 'abs\(z\)': must be smooth"),
        (lambda: interacting(loss="z1*z2"), "must be a formula in z alone"),
        (lambda: decimated(learner(), threshold=1.5), "threshold = 1.5: must be > 0 and < 1"),
        (lambda: local_potential(VectorMagnet(), order=2), "order = 2: must be from 3 to 40"),
        (
            lambda: local_potential(VectorMagnet(4.5)),
            "VectorMagnet.dim = 4.5: must be between 2 and 4",
        ),
        (
            lambda: local_potential(VectorMagnet(kinetic=1.5)),
            "VectorMagnet.kinetic = 1.5: must be 2",
        ),
        (
            lambda: SpinBlocks(2.0, 20, 3),
            "SpinBlocks.length = 20: must be a multiple of 8 and >= 32",
        ),
        (
            lambda: decimated_circle(20, 1.5, 30),
            "DecimatedPool.n_train = 30: must be <= 20, the size of the pool",
        ),
        (
            lambda: regression(
                DecimatedRegression(Spectrum([1.0], [1.0], [3.0]), 5, 0.1), jax.random.key(0)
            ),
            "spectrum.multiplicities: must be 1 in every entry",
        ),
    ],
)
def test_what_nobody_can_mean_is_refused_by_name(build, message):
    with pytest.raises(ValueError, match=message):
        build()
