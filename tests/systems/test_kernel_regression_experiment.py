"""Regression on random subsets, on Gaussian features and with finite networks: what is measured is
what the theory means."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import orderparam as op
from orderparam.kernels import Spectrum, finite_rank, gp_posterior
from orderparam.networks import fully_connected
from orderparam.sampling import sample
from orderparam.systems.kernel_regression import (
    HeteroscedasticRegression,
    KernelRegression,
    MeasuredLearningCurve,
    NetworkRegression,
    PoolRegression,
    cavity,
    equivalent_kernel,
    equivalent_kernel_corrected,
    gaussian_design,
    gp_regression,
    heteroscedastic,
    heteroscedastic_design,
    image_pool,
    network_posterior,
    optimal_temperature,
    renormalization_group,
    self_consistent,
    self_consistent_on_pool,
)

MODES = np.arange(1, 1001.0)


def test_gaussian_features_fulfil_the_self_consistent_theory():
    system = KernelRegression(
        Spectrum(MODES**-1.5, MODES**-2), n_train=100, temperature=0.1, noise=0.2
    )
    runs = op.sweep(gaussian_design, system, {"n_train": [100]}, seeds=40)
    theory = op.sweep(self_consistent, system, {"n_train": [100]})
    assert float(theory["test_error"][0]) == pytest.approx(0.1150350967, rel=1e-8)
    for name in runs.data_vars:
        if name in ("status", "seconds"):
            continue
        mean, error = float(runs[name].mean()), float(runs[name].std(ddof=1) / np.sqrt(40))
        # Corrections to the theory are of relative order 1/P; the rest is three standard errors.
        assert abs(mean - float(theory[name][0])) < 3 * error + 0.02 * abs(mean), name


def test_the_tail_of_a_spectrum_acts_as_ridge_and_its_power_as_noise():
    with_tail = KernelRegression(
        Spectrum(MODES[:30] ** -1.5, MODES[:30] ** -2, tail=0.3, tail_power=0.1), 40, 0.1
    )
    explicit = KernelRegression(Spectrum(MODES[:30] ** -1.5, MODES[:30] ** -2), 40, 0.4, noise=0.1)
    key = jax.random.key(3)
    a, b = gaussian_design(with_tail, key), gaussian_design(explicit, key)
    assert float(a.test_error) == pytest.approx(float(b.test_error) + 0.1, rel=1e-12)
    assert float(a.posterior_variance) == pytest.approx(
        float(b.posterior_variance) + 0.3, rel=1e-12
    )


def test_without_a_ridge_and_beyond_the_rank_it_is_least_squares():
    """The kernel has 20 of the 23 modes of the target: what it cannot express is noise to it."""
    eigenvalues = np.concatenate([[0.0], MODES[:20] ** -1.5, [0.0, 0.0]])
    power = np.concatenate([[0.3], MODES[:20] ** -2, [0.1, 0.0]])
    system, key = (
        KernelRegression(Spectrum(eigenvalues, power), 30, 0.0, noise=0.2),
        jax.random.key(4),
    )
    found = gaussian_design(system, key)
    feature_key, noise_key = jax.random.split(key)
    # those of the kernel come first
    features = np.asarray(jax.random.normal(feature_key, (30, 23)))
    target = np.sqrt(np.concatenate([MODES[:20] ** -2, [0.3, 0.1, 0.0]]))
    labels = features @ target + np.sqrt(0.2) * np.asarray(jax.random.normal(noise_key, (30,)))
    coefficients, residual = np.linalg.lstsq(features[:, :20], labels)[:2]
    assert float(found.test_error) == pytest.approx(
        np.sum((coefficients - target[:20]) ** 2) + 0.4, rel=1e-10
    )
    assert float(found.train_error) == pytest.approx(float(residual[0]) / 30, rel=1e-10)
    limit = gaussian_design(system.with_(temperature=1e-9), key)
    for name in ("test_error", "train_error", "effective_dimension", "target_learnability"):
        assert float(getattr(found, name)) == pytest.approx(
            float(getattr(limit, name)), rel=1e-5
        ), name
    assert np.isinf(found.squared_discrepancy)
    assert bool(found.converged)


def test_the_discrepancy_stays_finite_where_everything_is_explained():
    system = KernelRegression(Spectrum(MODES[:20] ** -1.5, MODES[:20] ** -2), 30, 0.0)
    runs = [
        float(gaussian_design(system, key).squared_discrepancy)
        for key in jax.random.split(jax.random.key(0), 40)
    ]
    limit = gaussian_design(
        system.with_(temperature=1e-9), jax.random.split(jax.random.key(0), 40)[0]
    )
    assert runs[0] == pytest.approx(float(limit.squared_discrepancy), rel=1e-5)
    theory, error = (
        float(self_consistent(system).squared_discrepancy),
        np.std(runs, ddof=1) / np.sqrt(40),
    )
    # corrections of order 1/(P - rank)
    assert np.mean(runs) == pytest.approx(theory, abs=3 * error + 0.1 * theory)


def test_a_kernel_that_cannot_be_inverted_is_never_a_result():
    system = KernelRegression(Spectrum(MODES[:40] ** -20.0, MODES[:40] ** -2), 30, 0.0)
    with pytest.raises(ValueError, match=r"temperature = 0: .* not positive definite"):
        gaussian_design(system, jax.random.key(0))
    batch = op.sweep(gaussian_design, system, {"n_train": [30]}, seeds=3, batch_seeds=True)
    assert np.all(batch["status"] == 3)  # no number is left


def test_inputs_with_a_ridge_and_a_noise_of_their_own():
    system = HeteroscedasticRegression(
        Spectrum(MODES[:200] ** -1.5, MODES[:200] ** -2),
        150,
        0.05,
        weights=[0.4, 0.6],
        extra_temperature=[0.0, 2.0],
        extra_noise=[0.3, 0.0],
    )
    runs = op.sweep(heteroscedastic_design, system, {"n_train": [150]}, seeds=40)
    theory = op.sweep(heteroscedastic, system, {"n_train": [150]})
    uniform = self_consistent(
        KernelRegression(system.spectrum, 150, 0.05 + 0.6 * 2.0, noise=0.4 * 0.3)
    )
    deviations = {}
    for name in MeasuredLearningCurve.dims():
        mean, error = float(runs[name].mean()), float(runs[name].std(ddof=1) / np.sqrt(40))
        assert abs(mean - float(theory[name][0])) < 3 * error + 0.02 * abs(mean), name
        deviations[name] = abs(mean - float(getattr(uniform, name))) / max(error, 1e-12)
    # a ridge and a noise that are the mean of these predict something else
    assert deviations["test_error"] > 10
    assert deviations["posterior_variance"] > 10


def test_inputs_without_a_ridge_determine_all_modes_when_they_outnumber_them():
    system = HeteroscedasticRegression(
        Spectrum(MODES[:30] ** -1.5, MODES[:30] ** -2),
        300,
        0.0,
        weights=[0.5, 0.5],
        extra_temperature=[0.0, 1.0],
        extra_noise=[0.2, 5.0],
    )
    runs = op.sweep(heteroscedastic_design, system, {"n_train": [300]}, seeds=40)
    theory = op.sweep(heteroscedastic, system, {"n_train": [300]})
    for name in (
        "test_error",
        "train_error",
        "posterior_variance",
        "effective_dimension",
        "squared_discrepancy",
    ):
        mean, error = float(runs[name].mean()), float(runs[name].std(ddof=1) / np.sqrt(40))
        if np.isinf(mean):
            assert np.isinf(theory[name][0])
        else:
            assert abs(mean - float(theory[name][0])) <= 3 * error + 0.03 * abs(mean), name


def test_a_level_is_its_modes():
    level = gaussian_design(KernelRegression(finite_rank(6, 0.5, 3.0), 10, 0.1), jax.random.key(0))
    modes = KernelRegression(Spectrum(np.full(6, 0.5), np.full(6, 0.5)), 10, 0.1)
    assert float(level.test_error) == pytest.approx(
        float(gaussian_design(modes, jax.random.key(0)).test_error), rel=1e-12
    )


@pytest.fixture(scope="module")
def digits():
    return image_pool("digits", "even-odd", pool=600)


def test_regression_on_a_pool_is_gaussian_process_regression(digits):
    system, key = digits.with_(n_train=30), jax.random.key(5)
    measured = gp_regression(system, key)
    chosen = jax.random.permutation(jax.random.split(key)[0], 600)[:30]
    kernel, targets = system.kernel, system.targets
    posterior = gp_posterior(
        kernel[np.ix_(chosen, chosen)],
        kernel[:, chosen],
        jnp.diagonal(kernel),
        targets[chosen],
        0.1,
    )
    outside = np.setdiff1d(np.arange(600), chosen)
    squared = (posterior.mean - targets) ** 2
    assert float(measured.test_error) == pytest.approx(float(squared[outside].mean()), rel=1e-9)
    assert float(measured.population_error) == pytest.approx(float(squared.mean()), rel=1e-9)
    assert float(measured.train_error) == pytest.approx(
        float(((posterior.fitted - targets[chosen]) ** 2).mean()), rel=1e-9
    )
    assert float(measured.posterior_variance) == pytest.approx(
        float(posterior.variance.mean()), rel=1e-9
    )


def test_real_digits_follow_the_theory_within_a_tenth(digits):
    grid = {"n_train": [50, 100]}
    runs = op.sweep(gp_regression, digits, grid, seeds=20)
    theory = op.sweep(self_consistent_on_pool, digits, grid)
    np.testing.assert_allclose(runs["test_error"].mean("seed"), theory["test_error"], rtol=0.1)
    np.testing.assert_allclose(
        runs["posterior_variance"].mean("seed"), theory["posterior_variance"], rtol=0.05
    )


def test_several_outputs_add_their_errors(digits):
    both = jnp.stack([digits.targets, -2 * digits.targets], axis=1)
    pair = PoolRegression.from_kernel(digits.kernel, both, 30, 0.1)
    one, two = (
        gp_regression(digits.with_(n_train=30), jax.random.key(1)),
        gp_regression(pair, jax.random.key(1)),
    )
    assert float(two.test_error) == pytest.approx(5 * float(one.test_error), rel=1e-10)


@pytest.fixture(scope="module")
def small_problem():
    key = jax.random.key(0)
    inputs = jax.random.normal(key, (28, 3))
    targets = jnp.tanh(inputs[:, 0]) - 0.5 * inputs[:, 1]
    return NetworkRegression.from_architecture(
        fully_connected(1, None, "erf"), inputs, targets, n_train=8, temperature=0.1, width=20
    )


def test_integrating_the_read_out_changes_nothing(small_problem):
    """The collapsed posterior and HMC on all weights, for the same narrow network and training
    set."""
    key = jax.random.key(7)
    collapsed = network_posterior(small_problem, key, draws=400)
    order = jax.random.permutation(jax.random.split(key)[0], 28)
    train, test = order[:8], order[8:]
    architecture = fully_connected(1, 20, "erf")
    x, y, targets = (
        small_problem.inputs[train],
        small_problem.targets[train],
        small_problem.targets[test],
    )

    def log_density(u):
        loss = 0.5 * jnp.sum((architecture.apply(u, x)[:, 0] - y) ** 2)
        return -loss / 0.1 - 0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(u))

    full = sample(
        log_density,
        lambda k: architecture.draw(k, 3),
        jax.random.key(8),
        chains=8,
        warmup=150,
        samples=400,
        leapfrog_steps=12,
        observe=lambda u: architecture.apply(u, small_problem.inputs[test])[:, 0],
    )
    assert bool(collapsed.converged)
    assert bool(full.converged)
    error = jnp.mean((full.mean - targets) ** 2)
    uncertainty = (
        2
        * jnp.sqrt(jnp.mean((full.mean - targets) ** 2))
        * jnp.sqrt(jnp.mean(full.standard_error**2))
    )
    assert abs(float(collapsed.test_error - error)) < 2 * float(uncertainty)
    variance = float(jnp.mean(jnp.var(full.observables, axis=(0, 1))))
    assert float(collapsed.held_out_variance) == pytest.approx(variance, rel=0.15)


def test_a_wide_network_is_the_gaussian_process(small_problem):
    key = jax.random.key(2)
    wide = network_posterior(small_problem.with_(width=400), key, draws=200)
    infinite = gp_regression(small_problem, key)
    narrow = network_posterior(small_problem.with_(width=4), key, draws=200)
    assert float(wide.test_error) == pytest.approx(float(infinite.test_error), rel=0.08)
    assert abs(float(wide.test_error - infinite.test_error)) < abs(
        float(narrow.test_error - infinite.test_error)
    )


PATCHES = HeteroscedasticRegression(
    finite_rank(6, 0.5),
    10,
    0.1,
    weights=[0.5, 0.5],
    extra_temperature=[0.0, 1.0],
    extra_noise=[0.0, 0.0],
)
UNIFORM_POOL = PoolRegression.from_kernel(np.eye(6), np.ones(6), 3, 0.1)


@pytest.mark.parametrize(
    "theory",
    [
        self_consistent,
        equivalent_kernel,
        equivalent_kernel_corrected,
        renormalization_group,
        optimal_temperature,
        cavity,
    ],
    ids=lambda theory: theory.name,
)
def test_a_theory_of_a_uniform_ridge_refuses_one_that_is_not(theory):
    with pytest.raises(
        ValueError,
        match=rf"{theory.name} takes a (Kernel|Pool)Regression, not a HeteroscedasticRegression",
    ):
        theory(PATCHES)


@pytest.mark.parametrize(
    ("experiment", "system", "message"),
    [
        (
            gp_regression,
            KernelRegression(finite_rank(6, 0.5), 10, 0.1),
            "takes a PoolRegression, not a KernelRegression",
        ),
        (
            gaussian_design,
            KernelRegression(finite_rank(6, 0.5), 10.5, 0.1),
            "n_train = 10.5: an experiment needs a whole number",
        ),
        (
            gaussian_design,
            KernelRegression(finite_rank(6.5, 0.5), 10, 0.1),
            "multiplicities: a Gaussian design needs integers",
        ),
        (gaussian_design, KernelRegression(finite_rank(10**8, 0.5), 10, 0.1), "too large"),
        (gaussian_design, UNIFORM_POOL, "a PoolRegression is measured by gp_regression"),
        (gaussian_design, PATCHES, "takes a KernelRegression, not a HeteroscedasticRegression"),
        (
            heteroscedastic_design,
            KernelRegression(finite_rank(6, 0.5), 10, 0.1),
            "takes a HeteroscedasticRegression",
        ),
        (
            network_posterior,
            KernelRegression(finite_rank(6, 0.5), 10, 0.1),
            "takes a NetworkRegression, not a KernelRegression",
        ),
    ],
)
def test_a_system_that_the_experiment_cannot_run_is_refused(experiment, system, message):
    with pytest.raises(ValueError, match=message):
        experiment(system, jax.random.key(0))


def test_equal_inputs_without_ridge_are_refused():
    kernel = jnp.ones((20, 20))
    system = PoolRegression.from_kernel(kernel, jnp.ones(20), 10, 0.0)
    with pytest.raises(ValueError, match="not positive definite"):
        gp_regression(system, jax.random.key(0))
