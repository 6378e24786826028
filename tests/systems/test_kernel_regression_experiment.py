"""Regression on random subsets, on Gaussian features and with finite networks: what is measured is what the theory means."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import orderparam as op
from orderparam.kernels import Spectrum, finite_rank, gp_posterior
from orderparam.networks import fully_connected
from orderparam.sampling import sample
from orderparam.systems.kernel_regression import (
    KernelRegression,
    NetworkRegression,
    PoolRegression,
    gaussian_design,
    gp_regression,
    image_pool,
    network_posterior,
    self_consistent,
    self_consistent_on_pool,
)
from orderparam.systems.kernel_regression.forecast import user_pool

MODES = np.arange(1, 1001.0)


def test_gaussian_features_fulfil_the_self_consistent_theory():
    system = KernelRegression(Spectrum(MODES**-1.5, MODES**-2), n_train=100, temperature=0.1, noise=0.2)
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
    with_tail = KernelRegression(Spectrum(MODES[:30] ** -1.5, MODES[:30] ** -2, tail=0.3, tail_power=0.1), 40, 0.1)
    explicit = KernelRegression(Spectrum(MODES[:30] ** -1.5, MODES[:30] ** -2), 40, 0.4, noise=0.1)
    key = jax.random.key(3)
    a, b = gaussian_design(with_tail, key), gaussian_design(explicit, key)
    assert float(a.test_error) == pytest.approx(float(b.test_error) + 0.1, rel=1e-12)
    assert float(a.posterior_variance) == pytest.approx(float(b.posterior_variance) + 0.3, rel=1e-12)


def test_a_level_is_its_modes():
    level = gaussian_design(KernelRegression(finite_rank(6, 0.5, 3.0), 10, 0.1), jax.random.key(0))
    modes = KernelRegression(Spectrum(np.full(6, 0.5), np.full(6, 0.5)), 10, 0.1)
    assert float(level.test_error) == pytest.approx(float(gaussian_design(modes, jax.random.key(0)).test_error), rel=1e-12)


@pytest.fixture(scope="module")
def digits():
    return image_pool("digits", "even-odd", pool=600)


def test_regression_on_a_pool_is_gaussian_process_regression(digits):
    system, key = digits.with_(n_train=30), jax.random.key(5)
    measured = gp_regression(system, key)
    chosen = jax.random.permutation(jax.random.split(key)[0], 600)[:30]
    kernel, targets = system.kernel, system.targets
    posterior = gp_posterior(kernel[np.ix_(chosen, chosen)], kernel[:, chosen], jnp.diagonal(kernel), targets[chosen], 0.1)
    outside = np.setdiff1d(np.arange(600), chosen)
    squared = (posterior.mean - targets) ** 2
    assert float(measured.test_error) == pytest.approx(float(squared[outside].mean()), rel=1e-9)
    assert float(measured.population_error) == pytest.approx(float(squared.mean()), rel=1e-9)
    assert float(measured.train_error) == pytest.approx(float(((posterior.fitted - targets[chosen]) ** 2).mean()), rel=1e-9)
    assert float(measured.posterior_variance) == pytest.approx(float(posterior.variance.mean()), rel=1e-9)


def test_real_digits_follow_the_theory_within_a_tenth(digits):
    grid = {"n_train": [50, 100]}
    runs = op.sweep(gp_regression, digits, grid, seeds=20)
    theory = op.sweep(self_consistent_on_pool, digits, grid)
    np.testing.assert_allclose(runs["test_error"].mean("seed"), theory["test_error"], rtol=0.1)
    np.testing.assert_allclose(runs["posterior_variance"].mean("seed"), theory["posterior_variance"], rtol=0.05)


def test_several_outputs_add_their_errors(digits):
    both = jnp.stack([digits.targets, -2 * digits.targets], axis=1)
    pair = PoolRegression.from_kernel(digits.kernel, both, 30, 0.1)
    one, two = gp_regression(digits.with_(n_train=30), jax.random.key(1)), gp_regression(pair, jax.random.key(1))
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
    """The collapsed posterior and HMC on all weights, for the same narrow network and training set."""
    key = jax.random.key(7)
    collapsed = network_posterior(small_problem, key, draws=400)
    order = jax.random.permutation(jax.random.split(key)[0], 28)
    train, test = order[:8], order[8:]
    architecture = fully_connected(1, 20, "erf")
    x, y, targets = small_problem.inputs[train], small_problem.targets[train], small_problem.targets[test]

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
    uncertainty = 2 * jnp.sqrt(jnp.mean((full.mean - targets) ** 2)) * jnp.sqrt(jnp.mean(full.standard_error**2))
    assert abs(float(collapsed.test_error - error)) < 2 * float(uncertainty)
    variance = float(jnp.mean(jnp.var(full.observables, axis=(0, 1))))
    assert float(collapsed.held_out_variance) == pytest.approx(variance, rel=0.15)


def test_a_wide_network_is_the_gaussian_process(small_problem):
    key = jax.random.key(2)
    wide = network_posterior(small_problem.with_(width=400), key, draws=200)
    infinite = gp_regression(small_problem, key)
    narrow = network_posterior(small_problem.with_(width=4), key, draws=200)
    assert float(wide.test_error) == pytest.approx(float(infinite.test_error), rel=0.08)
    assert abs(float(wide.test_error - infinite.test_error)) < abs(float(narrow.test_error - infinite.test_error))


@pytest.mark.parametrize(
    ("experiment", "system", "message"),
    [
        (gp_regression, KernelRegression(finite_rank(6, 0.5), 10, 0.1), "gp_regression takes a PoolRegression, not a KernelRegression"),
        (gaussian_design, KernelRegression(finite_rank(6, 0.5), 10.5, 0.1), "n_train = 10.5: an experiment needs a whole number"),
        (gaussian_design, KernelRegression(finite_rank(6.5, 0.5), 10, 0.1), "multiplicities: a Gaussian design needs integers"),
        (gaussian_design, KernelRegression(finite_rank(10**8, 0.5), 10, 0.1), "too large"),
        (network_posterior, KernelRegression(finite_rank(6, 0.5), 10, 0.1), "takes a NetworkRegression, not a KernelRegression"),
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


def test_words_that_hardly_occur_twice_are_no_classes(tmp_path):
    file = tmp_path / "weights.csv"
    file.write_text("x,weight\n" + "\n".join(f"{i}.5,{i // 2} kg" for i in range(9)))
    with pytest.raises(ValueError, match=r"5 different words in 9 rows, such as '0 kg'.*without its unit"):
        user_pool(str(file), None, None)
