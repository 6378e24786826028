"""The learnability of the directions that a layer keeps, in theory and measured."""

import jax
import jax.numpy as jnp
import numpy as np

from orderparam.systems.kernel_adaptation.readers import each_rank, fresh, predicted, regressed

predict, regress = jax.jit(predicted), jax.jit(regressed)
EIGENVALUES = np.array([1.0, 0.3, 0.1, 0.03, 0.01, 0.003])
TARGET = np.array([[0.5, 0.2], [1.0, -0.5], [-1.0, 1.0], [2.0, 0.0], [1.0, 3.0], [0.0, 4.0]])
NOISE, RIDGE, N = 0.3, 0.2, 40


def drawn(random, count, noise=NOISE):
    z = random.standard_normal((count, 6)) * np.sqrt(EIGENVALUES)
    return jnp.asarray(z), jnp.asarray(z @ TARGET + noise * random.standard_normal((count, 2)))


def test_theory_is_the_average_over_training_sets():
    """On Gaussian features the effective ridge is right to order 1/n: 2 % at 40 examples. The
    average is over 300 training sets."""
    random = np.random.default_rng(0)
    z, y = drawn(random, 20_000)
    learned = [float(regress(*drawn(random, N), z[:4000], y[:4000], RIDGE)[1]) for _ in range(300)]
    mean, error = np.mean(learned), np.std(learned) / np.sqrt(300)
    theory = float(predicted(z, y, N, RIDGE))
    assert abs(mean - theory) < 3 * error + 0.02 * theory


def test_few_images_predict_what_many_do_on_average():
    """The noise on the targets seems to be learned from 40 images: without the correction for their
    number they predict more than 20,000 do."""
    random = np.random.default_rng(1)
    exact = float(predict(*drawn(random, 20_000, 1.0), N, RIDGE))
    found = [float(predict(*drawn(random, 40, 1.0), N, RIDGE)) for _ in range(200)]
    error = np.std(found) / np.sqrt(200)
    assert abs(np.mean(found) - exact) < 3 * error + 0.02 * exact


def test_closed_form_with_one_direction():
    """One direction of variance 1 and a noiseless target of slope 1: kappa solves a quadratic."""
    z = jnp.asarray(np.repeat([[1.0], [-1.0]], 50, axis=0))
    kappa = (RIDGE + 1 - N + np.sqrt((RIDGE + 1 - N) ** 2 + 4 * N * RIDGE)) / (2 * N)
    np.testing.assert_allclose(predicted(z, z, N, RIDGE), 1 / (1 + kappa), rtol=1e-9)


def test_halves_are_trained_and_tested_in_turn():
    z, y = drawn(np.random.default_rng(2), 60)
    one = regressed(z[:20], y[:20], z[30:], y[30:], RIDGE)[1]
    other = regressed(z[30:50], y[30:50], z[:30], y[:30], RIDGE)[1]
    np.testing.assert_allclose(fresh(z, y, 20, RIDGE)[0], (one + other) / 2, rtol=1e-9)


def test_a_rank_is_a_set_of_columns():
    random = np.random.default_rng(3)
    (train, y), (test, y_test) = drawn(random, 30), drawn(random, 50)
    masks = jnp.asarray([[1.0] * 2 + [0.0] * 4, [1.0] * 6])
    found = each_rank((train, y), (test, y_test), masks, 0.5, RIDGE)
    kept = [0.5 * part[:, :2] for part in (train, test)]
    np.testing.assert_allclose(found[1][0], regressed(kept[0], y, kept[1], y_test, RIDGE)[1])
    np.testing.assert_allclose(found[3][0], predicted(kept[1], y_test, 25, RIDGE), rtol=1e-9)
