"""Regression on a torus: its features, and what a known subspace of the target is worth."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import orderparam as op
from orderparam.systems.kernel_regression import (
    TorusRegression,
    optimal_temperature,
    self_consistent,
    torus_regression,
)
from orderparam.systems.kernel_regression.torus.experiment import half_lattice

PLANE = TorusRegression.from_smoothness(2, 1.0, 1.0, 40, 0.1, 0.1, cut=6)


def test_one_wave_vector_of_each_pair():
    waves = half_lattice(2, 3)
    assert waves[0].tolist() == [0, 0]
    both = {tuple(k) for k in waves.tolist()} | {tuple(-k) for k in waves[1:]}
    assert len(both) == 2 * len(waves) - 1 == 29  # integer points within a circle of radius 3


def test_one_run_is_regression_with_the_kernel_of_all_waves():
    """The same draw, with the kernel written as a sum of cosines, and errors as means over a grid
    that integrates all waves exactly."""
    key = jax.random.key(2)
    found = torus_regression(PLANE, key)
    input_key, target_key, noise_key = jax.random.split(key, 3)
    x = jax.random.uniform(input_key, (40, 2), maxval=2 * np.pi)
    waves = half_lattice(2, 6)
    level = 1.0 + np.sum(waves**2, axis=1)
    pairs = np.where(np.arange(len(waves)) > 0, 2.0, 1.0)
    eigenvalues = level**-2 / (pairs @ level**-2)  # target and kernel alike: s = a, r = d

    def kernel(x, other):
        return sum(
            pair * value * jnp.cos((x[:, None] - other[None]) @ k)
            for pair, value, k in zip(pairs, eigenvalues, waves)
        )

    drawn = jax.random.normal(target_key, (2 * len(waves) - 1,))

    def target(x):
        cosines = jnp.sqrt(pairs * eigenvalues) * jnp.cos(x @ waves.T)
        sines = jnp.sqrt(2 * eigenvalues[1:]) * jnp.sin(x @ waves[1:].T)
        return cosines @ drawn[: len(waves)] + sines @ drawn[len(waves) :]

    labels = target(x) + jnp.sqrt(0.1) * jax.random.normal(noise_key, (40,))
    weights = jnp.linalg.solve(kernel(x, x) + 0.1 * jnp.eye(40), labels)
    side = np.arange(16) * 2 * np.pi / 16
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    error = jnp.mean((kernel(grid, x) @ weights - target(grid)) ** 2)
    assert float(found.test_error) == pytest.approx(float(error), rel=1e-9)
    assert float(found.train_error) == pytest.approx(
        float(jnp.mean((0.1 * weights) ** 2)), rel=1e-9
    )


def test_the_best_ridge_is_the_label_noise_where_the_kernel_is_the_covariance_of_the_target():
    for dim, cut in ((1, 200), (3, 8)):
        system = TorusRegression.from_smoothness(dim, 0.8, 0.8, 100, 0.3, 0.07, cut=cut)
        assert float(optimal_temperature(system).temperature) == pytest.approx(0.07, rel=1e-6)


def test_the_theory_holds_on_a_torus():
    runs = op.sweep(torus_regression, PLANE, {"n_train": [40, 160]}, seeds=60)
    theory = op.sweep(self_consistent, PLANE, {"n_train": [40, 160]})
    mean = runs["test_error"].mean("seed")
    error = runs["test_error"].std("seed", ddof=1) / np.sqrt(60)
    # terms of relative order 1/P
    allowed = 3 * error + theory["test_error"] * 2 / theory["n_train"]
    assert bool(np.all(np.abs(mean - theory["test_error"]) < allowed))


def test_the_rate_is_that_of_the_kernel_and_not_of_the_target():
    """Exponents between n = 4096 and 16384 at the best ridge."""

    def exponent(dim, relevant, cut):
        system = TorusRegression.from_smoothness(
            dim, 1.0, 1.0, 10, 0.1, 0.1, cut=cut, target_dim=relevant
        )
        errors = op.sweep(optimal_temperature, system, {"n_train": [4096, 16384]})["test_error"]
        return float(np.log(errors[0] / errors[1]) / np.log(4))

    assert exponent(2, 1, 120) == pytest.approx(exponent(2, 2, 120), abs=0.03)
    assert exponent(1, 1, 3000) > exponent(2, 1, 120) + 0.1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cut": 5.0}, "spectrum does not belong to a torus with input_dim = 2 and cut = 5"),
        ({"target_dim": 1}, "spectrum has target power where a target of target_dim = 1 has none"),
        ({"n_train": 10_000_000}, "waves are too many"),
    ],
)
def test_a_system_that_does_not_fit_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        torus_regression(PLANE.with_(**changes), jax.random.key(0))
