"""In-context learning: limits, exact moments, and layers that were trained."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.systems.in_context import (
    LinearAttention,
    StructuredTasks,
    context_ridge,
    extrapolated_regression,
    linear_attention,
    quadratic_regression,
    task_posterior,
    trained_attention,
)
from orderparam.systems.in_context.experiment import drawn_summaries
from orderparam.systems.in_context.theory import fresh_moments, mean_error, moments_of

SYSTEM = LinearAttention(1.0, 0.5, 1.0, 0.25, 0.1)


def test_infinitely_many_tasks_leave_nothing_to_remember():
    found = linear_attention(SYSTEM.with_(task_ratio=np.inf))
    np.testing.assert_allclose(found.icl_error, found.idg_error, rtol=1e-12)
    near = linear_attention(SYSTEM.with_(task_ratio=1e9))
    np.testing.assert_allclose(near.icl_error, found.icl_error, rtol=1e-7)


def test_endless_training_is_the_limit_of_long_training():
    for ridge in (0.0, 0.3):
        endless = linear_attention(SYSTEM.with_(sample_ratio=np.inf, ridge=ridge))
        long = linear_attention(SYSTEM.with_(sample_ratio=1e9, ridge=ridge))
        for name in ("icl_error", "idg_error", "train_error", "effective_ridge"):
            np.testing.assert_allclose(
                getattr(endless, name), getattr(long, name), rtol=1e-7, atol=1e-12
            )


def test_tests_under_the_law_of_training_are_those_of_training():
    shifted = SYSTEM.with_(test_context_ratio=1.0, test_noise=0.25)
    for name in ("icl_error", "idg_error"):
        np.testing.assert_allclose(
            getattr(linear_attention(shifted), name), getattr(linear_attention(SYSTEM), name)
        )


def test_a_large_ridge_predicts_zero():
    found = linear_attention(SYSTEM.with_(ridge=1e8, test_noise=0.4))
    np.testing.assert_allclose([found.icl_error, found.idg_error], 1.4, rtol=1e-6)
    np.testing.assert_allclose(found.train_error, 1.25, rtol=1e-6)


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_equal_variances_are_isotropic_tasks_whatever_their_number(ridge):
    numbers = {"context_ratio": 1.3, "task_ratio": 0.8, "sample_ratio": 0.7, "ridge": ridge}
    one = linear_attention(LinearAttention(**numbers))
    many = linear_attention(
        StructuredTasks(**numbers, task_variances=np.ones(5), test_variances=np.ones(5))
    )
    for name in ("icl_error", "idg_error", "train_error"):
        np.testing.assert_allclose(getattr(one, name), getattr(many, name), rtol=1e-12)


def test_no_layer_is_better_on_fresh_tasks_than_bayes():
    rng = np.random.default_rng(0)
    for context, tasks, samples, noise, ridge in np.exp(rng.uniform(-2, 2, (40, 5))):
        system = LinearAttention(context, tasks, samples, noise, ridge)
        assert linear_attention(system).icl_error > context_ridge(system).icl_error


def test_gradients_are_those_of_differences():
    def error(ridge, samples, tasks):
        return linear_attention(
            SYSTEM.with_(ridge=ridge, sample_ratio=samples, task_ratio=tasks)
        ).icl_error

    for at in (np.array([0.1, 1.5, 0.7]), np.array([0.1, 0.6, 2.0])):
        slopes = jax.grad(lambda u: error(*u))(jnp.asarray(at))
        for i in range(3):
            shift = np.eye(3)[i] * at[i] * 1e-5
            difference = (error(*(at + shift)) - error(*(at - shift))) / (2 * at[i] * 1e-5)
            np.testing.assert_allclose(slopes[i], difference, rtol=1e-6)


def test_the_first_ridge_helps_as_the_derivative_at_zero_says():
    system = SYSTEM.with_(sample_ratio=2.0)
    slope = jax.grad(lambda ridge: linear_attention(system.with_(ridge=ridge)).icl_error)(0.0)
    small = linear_attention(system.with_(ridge=1e-6)).icl_error
    zero = linear_attention(system.with_(ridge=0.0)).icl_error
    np.testing.assert_allclose(slope, (small - zero) / 1e-6, rtol=1e-4)


VARIANCES = np.array([1.6, 0.4, 1.2, 0.8])


def test_summaries_of_drawn_contexts_have_the_law_of_whole_contexts():
    """Means of h, s and all their products over drawn inputs, over the short cut, and exactly."""
    rng, d, length, noise, count = np.random.default_rng(0), 4, 3, 0.7, 200_000
    u = rng.standard_normal((count, d))
    tasks = u * np.sqrt(VARIANCES * d) / np.linalg.norm(u, axis=1, keepdims=True)
    x = rng.standard_normal((count, length, d)) / np.sqrt(d)
    y = np.einsum("nld,nd->nl", x, tasks) + np.sqrt(noise) * rng.standard_normal((count, length))
    h = d / length * np.einsum("nl,nld->nd", y, x)
    whole = np.concatenate([h, np.mean(y**2, axis=1)[:, None]], axis=1)
    short = np.asarray(drawn_summaries(jax.random.key(0), jnp.asarray(tasks), noise, length))
    exact = fresh_moments(jnp.asarray(VARIANCES), noise, length)
    for drawn in (whole, short):
        products = drawn[:, :, None] * drawn[:, None, :]
        error = products.std(axis=0) / np.sqrt(count)
        assert np.max(np.abs((products.mean(axis=0) - exact.second) / error)) < 4
        crossed = tasks[:, :, None] * drawn[:, None, :]
        error = crossed.std(axis=0) / np.sqrt(count)
        assert np.max(np.abs((crossed.mean(axis=0) - exact.cross) / error)) < 4
    # and fourth moments, which the ridge regression sees
    fourth = np.array([np.mean(drawn**4, axis=0) for drawn in (whole, short)])
    np.testing.assert_allclose(*fourth, rtol=0.06)
    assert abs(float(exact.second[-1, -1]) - (1.7**2 + 0.05) * (1 + 2 / length)) < 0.2


def test_the_corner_of_the_second_moments():
    """E s^2 = (1 + rho)^2 (1 + 2/l) for tasks on the sphere, not 1 + rho^2."""
    exact = fresh_moments(jnp.ones(10), 1.0, 10)
    np.testing.assert_allclose(exact.second[-1, -1], 4.8, rtol=1e-14)


def test_the_error_of_a_matrix_is_that_on_new_sequences():
    rng, d, length, noise, count = np.random.default_rng(1), 5, 4, 0.5, 200_000
    gamma = 0.3 * rng.standard_normal((d, d + 1))
    few = rng.standard_normal((3, d))
    tasks = few[rng.integers(3, size=count)]
    summaries = np.asarray(drawn_summaries(jax.random.key(2), jnp.asarray(tasks), noise, length))
    x = rng.standard_normal((count, d)) / np.sqrt(d)
    y = np.sum(x * tasks, axis=1) + np.sqrt(noise) * rng.standard_normal(count)
    squares = (y - np.sum((x @ gamma) * summaries, axis=1)) ** 2
    exact = mean_error(jnp.asarray(gamma), moments_of(jnp.asarray(few), noise, length))
    assert abs(squares.mean() - exact) < 3.5 * squares.std() / np.sqrt(count)


def test_regression_on_few_sequences_interpolates():
    found = quadratic_regression(SYSTEM.with_(ridge=0.0, sample_ratio=0.4), jax.random.key(0))
    assert found.train_error < 1e-12
    assert found.idg_error > 0.25


def _mean(experiment, system, runs, names):
    drawn = jax.vmap(lambda key: experiment(system, key))(jax.random.split(jax.random.key(3), runs))
    values = np.stack([np.asarray(getattr(drawn, name)) for name in names])
    return values.mean(axis=1), values.std(axis=1, ddof=1) / np.sqrt(runs)


NAMES = ("icl_error", "idg_error", "train_error")


def test_extrapolated_regression_meets_the_theory():
    """Standard errors of 0.6 to 2 %; at d = 24 itself errors are above the limit."""
    system = LinearAttention(2.0, 1.0, 2.0, 0.25, 0.2, 1.0, 0.5, input_dim=24)
    theory = linear_attention(system)
    exact = np.array([float(getattr(theory, name)) for name in NAMES])
    mean, error = _mean(extrapolated_regression, system, 48, NAMES)
    assert np.max(error / exact) < 0.03
    assert np.max(np.abs(mean - exact) / error) < 3.5
    single, noise = _mean(quadratic_regression, system.with_(input_dim=12), 96, NAMES[:1])
    assert single[0] - exact[0] > 3 * noise[0]


def test_structured_tasks_meet_the_theory():
    system = StructuredTasks(
        2.0,
        2.0,
        2.0,
        0.2,
        0.2,
        input_dim=24,
        task_variances=[2.2, 0.8, 0.6, 0.4, 0.4, 1.6],
        test_variances=[0.2, 1.0, 1.0, 1.0, 2.0, 0.2],
    )
    theory = linear_attention(system)
    exact = np.array([float(getattr(theory, name)) for name in NAMES])
    mean, error = _mean(extrapolated_regression, system, 48, NAMES)
    assert np.max(error / exact) < 0.03
    assert np.max(np.abs(mean - exact) / error) < 3.5


def test_a_whole_layer_approaches_the_regression():
    """On contexts of one length, values that are trained add noise that falls with d."""
    system, keys = (
        LinearAttention(1.0, 2.0, 3.0, 0.25, 0.1),
        jax.random.split(jax.random.key(0), 16),
    )
    excess, shares = [], []
    for size in (8, 16):
        at = system.with_(input_dim=size)
        layers = [trained_attention(at, key) for key in keys]
        assert all(bool(layer.converged) for layer in layers)
        fixed = [quadratic_regression(at, key) for key in keys]
        ratio = np.mean([x.icl_error for x in layers]) / np.mean([x.icl_error for x in fixed])
        excess.append(float(ratio) - 1)
        shares.append(float(np.mean([layer.label_share for layer in layers])))
    assert excess[0] > 1.5 * excess[1] > 0
    assert 0.6 < shares[0] < shares[1] < 1


def test_the_posterior_over_the_training_tasks_knows_only_them():
    """Own tasks at once; a fresh one is taken for the nearest of the k (drawn with other
    programs)."""
    system = LinearAttention(1.0, 1.0, 1.0, 0.25, input_dim=20)
    mean, error = _mean(task_posterior, system, 24, ("icl_error", "idg_error"))
    np.testing.assert_allclose(mean[1], 0.25, atol=1e-3 + 3 * error[1])
    assert abs(mean[0] - 1.642) < 3.5 * np.hypot(error[0], 0.006)


def test_what_is_refused():
    key = jax.random.key(0)
    with pytest.raises(ValueError, match="sample_ratio = inf"):
        quadratic_regression(SYSTEM.with_(sample_ratio=np.inf), key)
    with pytest.raises(ValueError, match="task_ratio = inf"):
        task_posterior(SYSTEM.with_(task_ratio=np.inf), key)
    with pytest.raises(ValueError, match="test_noise = 0"):
        task_posterior(SYSTEM.with_(test_noise=0.0), key)
    odd = StructuredTasks(
        1.0, 1.0, 1.0, task_variances=np.ones(3), test_variances=np.ones(3), input_dim=20
    )
    with pytest.raises(ValueError, match="multiple of the 3"):
        quadratic_regression(odd, key)
    with pytest.raises(ValueError, match="must have direction = 3"):
        StructuredTasks(1.0, 1.0, 1.0, task_variances=np.ones(3), test_variances=np.ones(2))
