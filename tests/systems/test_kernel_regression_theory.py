"""Theories of kernel regression: exact identities, limits in which two of them must agree, and
input that is refused."""

import itertools
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.test_util
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orderparam.kernels import generalized_cross_validation
from orderparam.kernels.effective_ridge import effective_ridge
from orderparam.kernels.spectra import finite_rank, power_law
from orderparam.kernels.spectrum import Spectrum
from orderparam.systems.kernel_regression import (
    HeteroscedasticRegression,
    KernelRegression,
    LearningCurve,
    PoolRegression,
    annealed,
    cavity,
    equivalent_kernel,
    equivalent_kernel_corrected,
    equivalent_kernel_on_pool,
    heteroscedastic,
    mode_decomposition,
    optimal_temperature,
    renormalization_group,
    self_consistent,
    self_consistent_on_pool,
)
from orderparam.systems.renormalization import DecimatedRegression, decimation_flow

RIDGE = eqx.filter_jit(effective_ridge)
K = np.arange(1.0, 61)
POWER_LAW = Spectrum(K**-1.5, K**-2)


def padded(spectrum):
    if spectrum.eigenvalues.size > 61:
        return spectrum
    empty = 61 - spectrum.eigenvalues.size
    return Spectrum(
        np.append(spectrum.eigenvalues, np.full(empty, 1e-3)),
        np.append(spectrum.target_power, np.zeros(empty)),
        np.append(spectrum.multiplicities, np.zeros(empty)),
        spectrum.tail,
        spectrum.tail_power,
    )


def system(spectrum=POWER_LAW, n_train=20.0, temperature=0.1, noise=0.0):
    """Levels without modes up to 61, so that a theory is compiled once for all of them."""
    return KernelRegression(padded(spectrum), n_train, temperature, noise)


def same(one, other, rel=1e-10, names=None):
    for name in names or [
        name for name in LearningCurve.dims() if name not in ("residual", "converged")
    ]:
        assert float(getattr(one, name)) == pytest.approx(
            float(getattr(other, name)), rel=rel, abs=1e-14
        ), name


# Identities of the self-consistent theory


@pytest.mark.parametrize(("temperature", "noise"), [(0.0, 0.0), (0.1, 0.3), (5.0, 0.0)])
def test_learnabilities_sum_to_the_samples_that_the_ridge_leaves(temperature, noise):
    curve = self_consistent(system(temperature=temperature, noise=noise))
    modes = mode_decomposition(system(temperature=temperature))
    left = 20 - temperature * 20 / float(curve.effective_ridge)
    assert float(curve.effective_dimension) == pytest.approx(left, rel=1e-12)
    assert float(modes.learnability[:60].sum()) == pytest.approx(left, rel=1e-12)


def test_the_conservation_law_holds_for_every_single_data_set():
    # tr[Lambda Phi^T (K + T)^-1 Phi], the learnabilities summed over modes, against P - T tr (K +
    # T)^-1
    features = np.random.default_rng(0).normal(size=(20, 60))
    kernel = (features * np.asarray(POWER_LAW.eigenvalues)) @ features.T
    inverse = np.linalg.inv(kernel + 0.1 * np.eye(20))
    learned = np.asarray(POWER_LAW.eigenvalues) * np.einsum(
        "ik,ij,jk->k", features, inverse, features
    )
    estimate = generalized_cross_validation(kernel, features[:, 0], 0.1)
    assert learned.sum() == pytest.approx(20 - 0.1 * np.trace(inverse), rel=1e-12)
    assert float(estimate.effective_dimension) == pytest.approx(learned.sum(), rel=1e-10)
    assert float(estimate.effective_ridge) == pytest.approx(20 / np.trace(inverse), rel=1e-10)


def test_the_modes_share_the_whole_error():
    noisy = system(noise=0.3)
    curve, modes = self_consistent(noisy), mode_decomposition(noisy)
    assert float(modes.bias.sum()) == pytest.approx(float(curve.bias), rel=1e-12)
    assert float(modes.variance.sum()) == pytest.approx(float(curve.variance), rel=1e-12)
    assert float(curve.bias + curve.variance) == pytest.approx(
        float(curve.population_error), rel=1e-12
    )
    assert float(
        modes.learnability @ noisy.spectrum.target_power / POWER_LAW.total_power
    ) == pytest.approx(float(curve.target_learnability), rel=1e-12)


@pytest.mark.parametrize("n_train", [3, 20, 55, 300])
def test_a_target_drawn_from_the_prior_is_learned_as_well_as_the_posterior_says(n_train):
    # Bayes-optimal: Y = m lambda and noise = temperature
    spectrum = Spectrum([1.0, 0.1, 0.003], [2.0, 1.0, 0.3], [2.0, 10.0, 100.0])
    curve = self_consistent(system(spectrum, n_train, 0.2, 0.2))
    assert float(curve.test_error) == pytest.approx(float(curve.posterior_variance), rel=1e-11)


def test_training_error_is_the_discrepancy_times_the_temperature():
    curve = self_consistent(system(noise=0.2))
    assert float(curve.train_error) == pytest.approx(
        0.1**2 * float(curve.squared_discrepancy), rel=1e-12
    )


def test_without_ridge_the_training_error_vanishes_and_the_discrepancy_does_not():
    ridgeless, limit = (
        self_consistent(system(temperature=0.0)),
        self_consistent(system(temperature=1e-11)),
    )
    assert float(ridgeless.train_error) == 0
    assert float(ridgeless.squared_discrepancy) == pytest.approx(
        float(limit.squared_discrepancy), rel=1e-8
    )


def test_hardly_any_data_leaves_the_prior():
    curve = self_consistent(system(n_train=1e-9, noise=0.3))
    assert float(curve.test_error) == pytest.approx(float(POWER_LAW.total_power), rel=1e-7)
    assert float(curve.posterior_variance) == pytest.approx(float(POWER_LAW.total), rel=1e-7)


def test_splitting_a_level_changes_nothing():
    whole = Spectrum([1.0, 0.3, 0.1], [0.5, 0.3, 0.2], [3.0, 8.0, 30.0])
    split = Spectrum([0.3, 1.0, 0.1, 0.3], [0.1, 0.5, 0.2, 0.2], [3.0, 3.0, 30.0, 5.0])
    for theory in (self_consistent, equivalent_kernel_corrected, renormalization_group, annealed):
        same(theory(system(whole, noise=0.1)), theory(system(split, noise=0.1)))


def test_many_tiny_modes_act_as_ridge_and_noise():
    # The deviation of m modes of total weight c from a ridge c is of order c/(m kappa)
    resolved = Spectrum(POWER_LAW.eigenvalues, POWER_LAW.target_power, tail=0.3, tail_power=0.05)
    deviations = []
    for count in (1e5, 1e6):
        tiny = Spectrum(
            np.append(POWER_LAW.eigenvalues, 0.3 / count),
            np.append(POWER_LAW.target_power, 0.05),
            np.append(np.ones(60), count),
        )
        one, other = (
            self_consistent(system(tiny, noise=0.1)),
            self_consistent(system(resolved, noise=0.1)),
        )
        same(one, other, rel=30 / count)
        deviations.append(float(one.test_error - other.test_error))
    assert deviations[0] / deviations[1] == pytest.approx(10, rel=0.01)
    plain = self_consistent(system(temperature=0.4, noise=0.15))
    assert float(plain.effective_ridge) == pytest.approx(float(other.effective_ridge), rel=1e-12)
    assert float(plain.population_error) + 0.05 == pytest.approx(
        float(other.population_error), rel=1e-12
    )


@pytest.mark.parametrize("n_train", [50.0, 50.5, 80.0, 1e4])
def test_more_samples_than_modes_and_no_ridge(n_train):
    # a fifth of the target is outside the kernel's range
    spectrum = Spectrum([0.02, 0.0], [1.0, 0.2], [50.0, 1.0])
    curve = self_consistent(system(spectrum, n_train, 0.0, 0.3))
    exact = 0.5 / (1 - 50 / n_train) - 0.3 if n_train > 50 else np.inf
    assert float(curve.test_error) == pytest.approx(exact, rel=1e-12)
    assert float(curve.effective_ridge) == 0
    assert curve.converged
    if n_train > 50:
        assert float(curve.train_error) == pytest.approx(0.5 * (1 - 50 / n_train), rel=1e-12)


def test_a_noiseless_target_is_learned_exactly_at_the_interpolation_threshold():
    curve = self_consistent(system(finite_rank(50, 0.02), 50.0, 0.0))
    assert float(curve.test_error) == float(curve.train_error) == 0


@pytest.mark.parametrize("n_train", [10.0, 49.0, 51.0, 200.0])
def test_ridgeless_double_descent(n_train):
    curve = self_consistent(system(finite_rank(50, 0.02), n_train, 0.0, 0.25))
    x = n_train / 50
    exact = 1 - x + 0.25 * x / (1 - x) if x < 1 else 0.25 / (x - 1)
    assert float(curve.test_error) == pytest.approx(exact, rel=1e-12)


def test_the_peak_grows_as_the_inverse_root_of_the_ridge():
    errors = [
        float(self_consistent(system(finite_rank(50, 0.02), 50.0, t, 0.25)).test_error)
        for t in (1e-8, 1e-10)
    ]
    assert errors[1] / errors[0] == pytest.approx(10, rel=1e-3)


@pytest.mark.parametrize(("capacity", "source"), [(1.5, 0.4), (2.0, 0.3), (2.5, 0.35)])
def test_constants_of_ridgeless_power_laws(capacity, source):
    # kappa = (I/n)^alpha with I = (pi/alpha)/sin(pi/alpha), gamma = 1 - 1/alpha,
    # E = alpha kappa^2r pi (1-2r)/(alpha sin 2 pi r) and noise excess s2 (alpha - 1)
    n_train = 1e3
    spectrum = power_law(capacity, source)
    ridge = RIDGE(spectrum, n_train, 0.0)
    integral = np.pi / capacity / np.sin(np.pi / capacity)
    assert float(ridge.threshold) == pytest.approx((integral / n_train) ** capacity, rel=0.02)
    assert float(ridge.spread) == pytest.approx(1 - 1 / capacity, rel=0.02)
    clean, noisy = (
        float(self_consistent(system(spectrum, n_train, 0.0, s2)).test_error) for s2 in (0.0, 1.0)
    )
    r = source
    assert clean == pytest.approx(
        float(ridge.threshold) ** (2 * r) * np.pi * (1 - 2 * r) / np.sin(2 * np.pi * r), rel=0.02
    )
    assert noisy - clean == pytest.approx(capacity - 1, rel=0.02)


@pytest.mark.parametrize(("decay", "noise"), [(0.6, 0.0), (0.6, 1.0), (3.0, 0.0), (3.0, 1.0)])
def test_four_regimes(decay, noise):
    # T = n^(1-l): error ~ n^(-2 min(l,alpha) r) without noise, noise excess ~ n^(min(l,alpha)/alpha
    # - 1)
    capacity, source = 1.5, 0.4
    spectrum = power_law(capacity, source)
    errors = []
    for n in (1e7, 1e8):
        errors.append(
            [
                float(self_consistent(system(spectrum, n, n ** (1 - decay), s2)).test_error)
                for s2 in (0.0, 1.0)
            ]
        )
    errors = np.array(errors)
    values = errors[:, 1] - errors[:, 0] if noise else errors[:, 0]
    steep = min(decay, capacity)
    predicted = steep / capacity - 1 if noise else -2 * steep * source
    assert np.log10(values[1] / values[0]) == pytest.approx(predicted, abs=0.01)


def test_derivatives_of_the_error():
    def error(numbers, power):
        return self_consistent(
            KernelRegression(Spectrum(POWER_LAW.eigenvalues, power), *numbers)
        ).test_error

    jax.test_util.check_grads(
        jax.jit(error),
        ((20.0, 0.1, 0.3), POWER_LAW.target_power),
        order=1,
        modes=["rev"],
        atol=0,
        rtol=1e-7,
        eps=1e-5,
    )


# Theories that must agree


def test_the_equivalent_kernel_is_the_limit_of_high_temperature():
    hot = system(temperature=1e6)
    one, other = self_consistent(hot), equivalent_kernel(hot)
    same(
        one,
        other,
        rel=1e-5,
        names=["test_error", "train_error", "bias", "posterior_variance", "effective_ridge"],
    )
    assert 1 - float(one.test_error / POWER_LAW.total_power) == pytest.approx(
        1 - float(other.test_error / POWER_LAW.total_power), rel=1e-4
    )
    assert other.valid


def test_a_fixed_number_of_examples_against_all_training_sets():
    """The parities of three signs have a constant square, and all 512 sets of three examples can be
    averaged. The next order of the test error is the third in 1/T, that of a Poisson number of
    examples is wrong in the second."""
    points = np.array(list(itertools.product([-1, 1], repeat=3)))
    subsets = [list(s) for k in range(4) for s in itertools.combinations(range(3), k)]
    parities = np.array([points[:, s].prod(axis=1) for s in subsets])
    levels, noise = np.array([0.5, 1.0, 0.3, 0.2]), 0.1
    kernel = parities.T * levels[[len(s) for s in subsets]] @ parities
    target = 0.8 * parities[1] + 0.6 * parities[-1]
    sets = list(itertools.product(range(8), repeat=3))

    def exact(temperature):
        errors, outputs = [], []
        for chosen in map(list, sets):
            inverse = np.linalg.inv(kernel[np.ix_(chosen, chosen)] + temperature * np.eye(3))
            maps = kernel[:, chosen] @ inverse
            outputs.append(maps @ target[chosen])
            test = np.mean((outputs[-1] - target) ** 2)
            train = np.mean((temperature * inverse @ target[chosen]) ** 2)
            noisy = np.sum(maps**2) / 8, temperature**2 * np.sum(inverse**2) / 3
            errors.append((test + noise * noisy[0], train + noise * noisy[1]))
        mean = np.mean(outputs, axis=0)
        bias, learned = np.mean((mean - target) ** 2), np.mean(mean * target)
        return np.array([*np.mean(errors, axis=0), bias, learned])

    def falls(examples):
        """The factors by which both deviations fall as T doubles."""
        deviations = []
        for temperature in (80.0, 160.0):
            spectrum = Spectrum(levels, [0.0, 0.64, 0.0, 0.36], [1.0, 3.0, 3.0, 1.0])
            system = KernelRegression(spectrum, 3, temperature, noise)
            found = equivalent_kernel_corrected(system, examples=examples)
            ours = found.test_error, found.train_error, found.bias, found.target_learnability
            deviations.append(np.array(ours) - exact(temperature))
        return deviations[0] / deviations[1]

    test, train, bias, learned = falls("fixed")
    assert min(test, bias, learned) > 6.5
    assert train > 3.5
    test, train, bias, learned = falls("poisson")
    assert max(test, bias, learned) < 4.2
    assert train < 2


def test_the_corrections_are_the_expansion_of_the_self_consistent_theory():
    # The deviation falls as 1/T for the equivalent kernel and as 1/T^2 with the correction, beside
    # the 1/T of 1 - E itself.
    for theory, power in ((equivalent_kernel, 1), (equivalent_kernel_corrected, 2)):
        for name in (
            "test_error",
            "train_error",
            "bias",
            "variance",
            "effective_ridge",
            "target_learnability",
        ):
            if (theory is equivalent_kernel and name == "train_error") or (
                name == "variance" and theory is equivalent_kernel
            ):
                continue
            deviations = []
            for temperature in (3e3, 3e4):
                hot = system(temperature=temperature, noise=0.3)
                exact, series = getattr(self_consistent(hot), name), getattr(theory(hot), name)
                scale = temperature if name == "effective_ridge" else 1.0
                deviations.append(abs(float(exact - series)) / scale)
            assert deviations[1] < deviations[0] / 10**power * 1.2, (theory, name)


def test_the_validity_of_the_expansion_is_told():
    assert equivalent_kernel_corrected(system(temperature=10.0)).valid
    assert not equivalent_kernel(system(temperature=10.0)).valid
    cold = equivalent_kernel_corrected(system(temperature=1e-3))
    assert not cold.valid
    assert float(cold.fluctuation_ratio) == pytest.approx(
        float(cold.posterior_variance) / 1e-3, rel=1e-12
    )


def heteroscedastic_system(
    temperatures, noises, weights, spectrum=POWER_LAW, n_train=20.0, temperature=0.0
):
    return HeteroscedasticRegression(
        padded(spectrum),
        n_train,
        temperature,
        weights=weights,
        extra_temperature=temperatures,
        extra_noise=noises,
    )


@pytest.mark.parametrize(
    ("spectrum", "n_train", "temperature"),
    [
        (POWER_LAW, 20.0, 0.1),
        (POWER_LAW, 20.0, 0.0),
        (POWER_LAW, 70.0, 0.0),
        (
            Spectrum(POWER_LAW.eigenvalues, POWER_LAW.target_power, tail=0.3, tail_power=0.1),
            70.0,
            0.0,
        ),
        (
            Spectrum(POWER_LAW.eigenvalues, POWER_LAW.target_power, tail=0.3, tail_power=0.1),
            20.0,
            0.1,
        ),
    ],
)
def test_a_ridge_that_is_the_same_everywhere(spectrum, n_train, temperature):
    uniform = heteroscedastic_system([temperature] * 2, [0.3, 0.3], [0.25, 0.75], spectrum, n_train)
    same(heteroscedastic(uniform), self_consistent(system(spectrum, n_train, temperature, 0.3)))


def test_inputs_with_a_huge_ridge_are_not_there():
    half = heteroscedastic(heteroscedastic_system([0.1, 1e9], [0.3, 7.0], [0.5, 0.5], n_train=40.0))
    alone = self_consistent(system(n_train=20.0, noise=0.3))
    same(
        half,
        alone,
        rel=1e-6,
        names=["test_error", "bias", "variance", "posterior_variance", "effective_dimension"],
    )


@pytest.mark.parametrize("free", [0.3, 0.9])
def test_a_vanishing_ridge_on_some_inputs_is_the_limit_of_a_small_one(free):
    curves = [
        heteroscedastic(
            heteroscedastic_system([ridge, 1.0], [0.1, 0.5], [free, 1 - free], n_train=80.0)
        )
        for ridge in (0.0, 1e-15)
    ]
    names = [
        "test_error",
        "train_error",
        "bias",
        "posterior_variance",
        "effective_dimension",
        "target_learnability",
    ]
    same(*curves, rel=1e-8, names=names)
    assert all(curve.converged for curve in curves)


# Decimation


def test_the_exact_flow_leaves_the_threshold_and_the_error_unchanged():
    full = system(noise=0.2)
    flow = decimation_flow(
        DecimatedRegression(full.spectrum, full.n_train, full.temperature, full.noise)
    )
    ridge = RIDGE(full.spectrum, 20.0, 0.1)
    curve = self_consistent(full)
    for n in (0, 7, 30, 58):
        kept = jnp.arange(60) <= n
        rest = padded(
            Spectrum(
                jnp.where(kept, POWER_LAW.eigenvalues, 0),
                jnp.where(kept, POWER_LAW.target_power, 0),
            )
        )
        reduced = KernelRegression(rest, full.n_train, flow.exact_ridge[n], flow.exact_noise[n])
        again = RIDGE(rest, 20.0, flow.exact_ridge[n])
        assert float(again.threshold) == pytest.approx(float(ridge.threshold), rel=1e-13)
        # What was error on the decimated modes is noise for those that are left.
        noisy = float(self_consistent(reduced).population_error + flow.exact_noise[n])
        assert noisy == pytest.approx(float(curve.population_error) + 0.2, rel=1e-12)


def test_decimation_to_leading_order_is_close_to_the_full_theory_and_needs_no_order_of_levels():
    shuffled = np.random.default_rng(0).permutation(60)
    mixed = Spectrum(POWER_LAW.eigenvalues[shuffled], POWER_LAW.target_power[shuffled])
    for options in ({"threshold": 0.05}, {"cutoff": "bare", "threshold": 0.05}):
        theory = partial(renormalization_group, **options)
        curve = theory(system(temperature=2.0))
        same(curve, theory(system(mixed, temperature=2.0)))
        assert curve.found_cutoff
        assert 1 < curve.mode_count < 60
        assert float(curve.test_error) == pytest.approx(
            float(self_consistent(system(temperature=2.0)).test_error), rel=0.01
        )


def test_nothing_is_decimated_when_every_mode_can_be_learned():
    cold = system(temperature=1e-8, n_train=40.0)
    for cutoff in ("self_consistent", "bare"):
        curve = renormalization_group(cold, cutoff=cutoff)
        assert not curve.found_cutoff
        assert curve.mode_count == 60
        same(curve, self_consistent(cold))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 0.0}, "threshold = 0.0: must be between 0 and 1"),
        ({"cutoff": "hard"}, "cutoff = 'hard': must be one of self_consistent, bare"),
        ({"residual": "cavity"}, "residual = 'cavity': must be one of"),
        (
            {"residual": "self_consistent_on_pool"},
            "residual = self_consistent_on_pool: takes a PoolRegression, not a KernelRegression",
        ),
    ],
)
def test_unknown_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        renormalization_group(system(), **options)


def test_the_annealed_average_overestimates_the_ridge():
    for temperature in (1e-3, 0.1, 10.0):
        cold = system(temperature=temperature)
        assert annealed(cold).effective_ridge > self_consistent(cold).effective_ridge


# The best ridge


def test_equal_modes_have_one_best_ridge_for_every_sample_size():
    # T = s2 r lambda / Y
    spectrum = finite_rank(30, 0.07, target_power=1.7)
    sizes = jnp.array([3.0, 29.0, 30.0, 31.0, 400.0])
    found = jax.jit(
        jax.vmap(lambda p: optimal_temperature(KernelRegression(spectrum, p, 1.0, 0.4)))
    )(sizes)
    np.testing.assert_allclose(found.temperature, 0.4 * 30 * 0.07 / 1.7, rtol=1e-8)
    assert found.converged.all()
    assert np.all(np.diff(found.test_error) < 0)  # no second descent at the best ridge


def test_a_target_drawn_from_the_prior_is_learned_best_at_the_temperature_of_its_noise():
    prior = Spectrum(POWER_LAW.eigenvalues, 2.5 * POWER_LAW.eigenvalues)
    found = optimal_temperature(system(prior, noise=0.5))
    assert float(found.temperature) == pytest.approx(0.5 / 2.5, rel=1e-8)


def test_no_other_temperature_is_better():
    noisy = system(noise=0.2)
    found = optimal_temperature(noisy)
    for factor in (0.3, 0.99, 1.01, 3.0):
        other = self_consistent(system(noise=0.2, temperature=factor * float(found.temperature)))
        assert other.test_error > found.test_error
    assert float(
        self_consistent(system(noise=0.2, temperature=found.temperature)).test_error
    ) == pytest.approx(float(found.test_error), rel=1e-13)


def test_the_best_ridge_of_a_tail_is_less_by_the_tail():
    tail = Spectrum(POWER_LAW.eigenvalues, POWER_LAW.target_power, tail=0.1)
    plain, with_tail = (
        optimal_temperature(system(noise=0.2)),
        optimal_temperature(system(tail, noise=0.2)),
    )
    assert float(plain.temperature - with_tail.temperature) == pytest.approx(0.1, rel=1e-7)
    assert float(plain.test_error) == pytest.approx(float(with_tail.test_error), rel=1e-12)


def test_a_clean_smooth_target_needs_no_ridge():
    found = optimal_temperature(system())
    assert float(found.temperature) == 0
    assert found.converged


def test_a_target_that_cannot_be_learned_has_no_best_ridge():
    assert not optimal_temperature(
        system(Spectrum(K**-1.5, 0 * K, tail_power=1.0), noise=0.2)
    ).converged


def test_derivative_of_the_best_ridge():
    best = jax.jit(lambda noise: optimal_temperature(system().with_(noise=noise)).temperature)
    step = 1e-5
    numerical = (best(0.2 + step) - best(0.2 - step)) / (2 * step)
    assert float(jax.jit(jax.grad(best))(0.2)) == pytest.approx(float(numerical), rel=1e-6)


# Pools


def ring(size=40, noise=0.3):
    """A pool in which every point is equivalent to every other: a kernel of the distance on a ring,
    and a random target."""
    distance = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    kernel = np.exp(-np.minimum(distance, size - distance) / 3.0)
    pool = PoolRegression.from_kernel(
        kernel, np.random.default_rng(0).normal(size=size), 10.0, 0.1, noise
    )
    return at(pool, 10.0, 0.1, noise)


def at(pool, n_train, temperature, noise=0.0):
    return pool.with_(n_train=n_train, temperature=temperature, noise=noise)


def scattered(size=40, outputs=()):
    random = np.random.default_rng(2)
    features = random.normal(size=(size, 60)) * np.arange(1, 61) ** -0.7
    targets = np.tanh(
        features[:, :1] + 0.5 * random.normal(size=(size, *outputs, 1)).reshape(size, -1)
    )
    return PoolRegression.from_kernel(
        features @ features.T, targets if outputs else targets[:, 0], 10.0, 0.1
    )


@pytest.mark.parametrize(
    ("n_train", "temperature", "noise"),
    [(10, 0.1, 0.3), (30, 0.5, 0.4), (20, 0.0, 0.1), (39.9, 3.0, 0.1)],
)
def test_a_pool_of_equivalent_points_is_the_average_of_its_cavities(n_train, temperature, noise):
    pool = at(ring(), n_train, temperature, noise)
    same(self_consistent_on_pool(pool), cavity(pool), rel=1e-8)


def test_a_small_share_of_a_pool_is_the_infinite_population():
    tiny = at(ring(), 1e-6, 0.1, 0.3)
    same(self_consistent_on_pool(tiny), self_consistent(tiny), rel=1e-6)


def test_a_pool_without_ridge_and_noise_is_corrected_for_its_training_points():
    pool = at(scattered(), 15, 0.0)
    one, other = self_consistent_on_pool(pool), self_consistent(pool)
    same(
        one,
        other,
        rel=1e-11,
        names=["test_error", "population_error", "train_error", "bias", "posterior_variance"],
    )
    assert float(one.test_error) == pytest.approx(
        float(one.population_error) / (1 - 15 / 40), rel=1e-12
    )


def test_all_but_one_point_is_leave_one_out():
    # P -> M: the held-out error of a point is that of the training set without it, [(K + T)^-1
    # y]_x^2 / [(K + T)^-1]_xx^2
    pool = at(scattered(), 40 - 1e-9, 0.1)
    inverse = np.linalg.inv(np.asarray(pool.kernel) + 0.1 * np.eye(40))
    curve = cavity(pool)
    np.testing.assert_allclose(
        curve.point_error, (inverse @ pool.targets / np.diag(inverse)) ** 2, rtol=1e-6, atol=1e-11
    )
    np.testing.assert_allclose(curve.point_variance, 1 / np.diag(inverse) - 0.1, rtol=1e-6)


def test_a_single_training_point_is_averaged_exactly():
    # P -> 0: e_x = y_x^2 + P E_x'[shift of the squared error at x by training on x'], to first
    # order in P, x' != x
    pool = at(scattered(), 1e-6, 0.1)
    kernel, y = np.asarray(pool.kernel), np.asarray(pool.targets)
    weight = kernel / (np.diag(kernel) + 0.1)  # prediction at row x after training on column x'
    shift = (weight * y - y[:, None]) ** 2 - y[:, None] ** 2
    np.fill_diagonal(shift, 0)
    slope = (np.asarray(cavity(pool).point_error) - y**2) / 1e-6
    np.testing.assert_allclose(slope, shift.mean(axis=1), rtol=1e-4, atol=1e-6)


def test_outputs_of_a_pool_add_up():
    together = at(scattered(outputs=(3,)), 10, 0.1)
    apart = [
        at(PoolRegression.from_kernel(together.kernel, together.targets[:, c], 10, 0.1), 10, 0.1)
        for c in range(3)
    ]
    for theory in (cavity, equivalent_kernel_on_pool, self_consistent_on_pool):
        whole, parts = theory(together), [theory(one) for one in apart]
        for name in ("test_error", "population_error", "train_error", "bias"):
            assert float(getattr(whole, name)) == pytest.approx(
                sum(float(getattr(p, name)) for p in parts), rel=1e-8
            )
    np.testing.assert_allclose(
        cavity(together).point_error, sum(cavity(one).point_error for one in apart), rtol=1e-8
    )


def test_position_does_not_matter_where_all_points_are_equivalent():
    pool = at(ring(), 10, 3.0, 0.3)
    same(equivalent_kernel_on_pool(pool), equivalent_kernel_corrected(pool), rel=1e-10)


def test_derivatives_of_the_cavity_error():
    pool = scattered(20)

    def error(n_train, temperature, noise):
        return cavity(pool.with_(n_train=n_train, temperature=temperature, noise=noise)).test_error

    jax.test_util.check_grads(
        jax.jit(error), (8.0, 0.1, 0.2), order=1, modes=["rev"], atol=0, rtol=1e-6, eps=1e-4
    )


def test_a_batch_of_cavities():
    pool = scattered(20)
    sizes = jnp.array([2.0, 8.0, 19.0])
    batch = jax.jit(jax.vmap(lambda p: cavity(pool.with_(n_train=p))))(sizes)
    for i, n_train in enumerate(sizes):
        np.testing.assert_allclose(
            batch.point_error[i], cavity(at(pool, n_train, 0.1)).point_error, rtol=1e-8
        )
    assert batch.converged.all()


# Bad input


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_train": 0}, "KernelRegression.n_train = 0: must be > 0"),
        ({"temperature": -1e-9}, "KernelRegression.temperature = -1e-09: must be >= 0"),
        ({"noise": np.nan}, "KernelRegression.noise = nan: must be finite and >= 0"),
        ({"spectrum": np.ones(3)}, "KernelRegression.spectrum = .*: must be a Spectrum"),
        ({"spectrum.tail": -1.0}, "Spectrum.tail = -1.0: must be >= 0"),
        ({"spectrum.tale": 1.0}, "did you mean 'tail'"),
    ],
)
def test_bad_systems_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        KernelRegression(POWER_LAW, 20.0, 0.1).with_(**changes)


def test_a_pool_must_fit_its_spectrum_and_leave_something_to_test_on():
    pool = scattered(20)
    for changes, message in (
        ({"n_train": 20}, "PoolRegression.n_train = 20: must be < 20, the size of the pool"),
        ({"targets": 2 * pool.targets}, "PoolRegression.spectrum has target power"),
        ({"kernel": 2 * pool.kernel}, "PoolRegression.spectrum sums to"),
        (
            {"targets": pool.targets[:7]},
            (
                r"PoolRegression.targets has shape \(7,\), \(pool\): must have pool = 20, as "
                r"kernel has"
            ),
        ),
    ):
        with pytest.raises(ValueError, match=message):
            pool.with_(**changes)


def test_bad_regions_are_refused():
    for arrays, message in (
        (([0.1, 0.1], [0.0, 0.0], [0.5, 0.6]), r"weights sum to 1.1: must sum to 1"),
        (
            ([0.1, -0.1], [0.0, 0.0], [0.5, 0.5]),
            "extra_temperature = -0.1: must be >= 0 in every entry",
        ),
        (
            ([0.1], [0.0, 0.0], [0.5, 0.5]),
            r"extra_temperature has shape \(1,\), \(region\): must have region = 2",
        ),
        (
            ([0.1, 0.1], [0.0, np.nan], [0.5, 0.5]),
            "extra_noise = nan: must be finite and >= 0 in every entry",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            heteroscedastic_system(*arrays)


NUMBERS = st.just(0.0) | st.floats(1e-250, 1e6)


@given(st.floats(1e-3, 1e4), NUMBERS, NUMBERS)
@settings(max_examples=60, deadline=None)
def test_any_allowed_numbers_give_a_converged_curve_between_its_limits(n_train, temperature, noise):
    curve = self_consistent(
        system(Spectrum(POWER_LAW.eigenvalues, POWER_LAW.target_power), n_train, temperature, noise)
    )
    assert curve.converged
    assert 0 <= float(curve.bias) <= float(POWER_LAW.total_power) * (1 + 1e-12)
    assert 0 <= float(curve.target_learnability) <= 1 + 1e-12
    assert 0 <= float(curve.effective_dimension) <= min(n_train, 60) * (1 + 1e-9)
    assert float(curve.train_error) >= 0
