"""A score on random features: limits, identities, and scores that are really learned."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.gaussian.marchenko_pastur import spectral_rule
from orderparam.systems.diffusion import (
    FeatureScore,
    drawn_score,
    drawn_score_times,
    score_losses,
    score_spectrum,
    score_times,
    trained_score,
)
from orderparam.systems.diffusion.score_spectrum import _inside
from orderparam.systems.diffusion.score_theory import (
    Resolvent,
    excess,
    linear_trace,
    quadratic_trace,
    resolvent,
)

SYSTEM = FeatureScore(2.0, 8.0, 0.1)


def losses(system):
    found = score_losses(system)
    assert found.converged
    return np.array([found.train_loss, found.test_loss])


def runs(experiment, system, count, *names, **options):
    """Means of observables over seeds, and their standard errors."""
    found = [experiment(system, jax.random.key(seed), **options) for seed in range(count)]
    values = np.array([[getattr(one, name) for name in names] for one in found])
    return values.mean(0), values.std(0, ddof=1) / np.sqrt(count)


def test_nothing_is_learned_at_once_or_with_a_large_ridge():
    np.testing.assert_allclose(losses(SYSTEM.with_(training_time=1e-9)), 1.0, atol=1e-8)
    np.testing.assert_allclose(losses(SYSTEM.with_(ridge=1e9)), 1.0, atol=1e-8)


def test_a_long_training_ends_at_the_ridge():
    for ridge in (0.0, 0.05):
        system = SYSTEM.with_(ridge=ridge)
        late = losses(system.with_(training_time=1e6))
        np.testing.assert_allclose(late, losses(system), rtol=1e-9)


def test_many_examples_and_features_learn_the_exact_score():
    """1 - D, from above; training and test loss meet as 1/n."""
    system = FeatureScore(1e10, 1e4, 0.3, ridge=1e-3)
    train, test = losses(system)
    best = 1 - (1 - np.exp(-0.6))
    assert best < test < best * 1.001
    np.testing.assert_allclose(train, test, rtol=1e-5)
    for case in ((2.0, 8.0, 0.1), (0.3, 1.0, 0.7), (30.0, 0.4, 0.05)):
        assert score_times(FeatureScore(*case)).best_loss > np.exp(-2 * case[2])


def test_training_lowers_the_training_loss():
    times = np.geomspace(1e-2, 1e5, 40)
    along = np.array([losses(SYSTEM.with_(training_time=time))[0] for time in times])
    assert np.all(np.diff(along) < 1e-12)


def test_few_features_follow_from_the_law_of_marchenko_and_pastur_alone():
    """With n -> infinity U is U', and both losses are 1 - D mu^2 (1/d) tr S f (2 - U f)."""
    system = FeatureScore(1e9, 0.5, 0.2, training_time=3.0)
    powers = system.powers
    s, mass = (np.asarray(values) for values in spectral_rule(0.5))
    u = powers.linear * s + powers.example + powers.rest
    f = -np.expm1(-3.0 * u) / u
    exact = 1 - powers.noise * powers.linear * 0.5 * (mass @ (s * f * (2 - u * f)))
    np.testing.assert_allclose(losses(system), exact, rtol=2e-8)


def test_two_resolvents_of_equal_ridge_are_a_derivative():
    powers = SYSTEM.powers
    ridge, step = 0.07, 1e-4
    at, _ = resolvent(powers, jnp.asarray([ridge, ridge - step, ridge + step]) + 0j)
    one = Resolvent(*(values[:1] for values in at))
    traces = np.real(linear_trace(powers, at))
    exact = (traces[1] - traces[2]) / (2 * step)
    found = np.real(quadratic_trace(powers, one, one, 1.0, 0.0))[0, 0]
    np.testing.assert_allclose(found, exact, rtol=1e-5)


def test_edges_are_double_roots_where_the_density_ends():
    for case in (
        (2.0, 8.0, 0.1),
        (0.5, 8.0, 0.01),
        (8.0, 2.0, 0.1),
        (2.0, 8.0, 2.0),
        (2.0, 0.5, 0.1),
    ):
        system = FeatureScore(*case)
        found = score_spectrum(system)
        assert found.converged
        shifted = system.powers._replace(rest=0.0)
        edges = [found.smallest, found.gap_start, found.gap_end, found.largest]
        for place, edge in enumerate(edges):
            if np.isinf(edge):
                continue
            x = float(edge - system.powers.rest) * (1 + 1e-5 * np.array([-1.0, 1.0]))
            dense = np.asarray(_inside(shifted, jnp.asarray(x)))
            assert dense.tolist() == ([False, True] if place % 2 == 0 else [True, False])


def test_the_equation_of_e_has_the_slope_of_differences():
    powers, e, step = SYSTEM.powers, 0.3 + 0.2j, 1e-6
    _, slope = excess(powers, 0.1 + 0.3j, jnp.asarray(e))
    after, before = (excess(powers, 0.1 + 0.3j, jnp.asarray(e + s))[0] for s in (step, -step))
    np.testing.assert_allclose(slope, (after - before) / (2 * step), rtol=1e-7)


def test_the_smoothed_density_counts_all_eigenvalues():
    for case in ((3.0, 2.0, 0.3), (2.0, 8.0, 0.1)):
        found = score_spectrum(FeatureScore(*case, smoothing=0.2))
        total = np.trapezoid(found.density, np.log(found.eigenvalue))
        np.testing.assert_allclose(total, 1.0, atol=0.05)  # tails are cut off


def test_times_are_where_the_losses_say():
    found = score_times(SYSTEM)
    assert found.converged
    at = [losses(SYSTEM.with_(training_time=found.best_time * f)) for f in (0.98, 1.0, 1.02)]
    assert at[1][1] < min(at[0][1], at[2][1])
    half = losses(SYSTEM.with_(training_time=found.memorisation_time))
    end = losses(SYSTEM)
    np.testing.assert_allclose(np.diff(half), np.diff(end) / 2, rtol=1e-8)


def test_memorisation_waits_for_more_data_while_features_abound():
    waits = [float(score_times(FeatureScore(n, 64.0, 0.02)).waiting) for n in (2, 4, 8)]
    assert waits[0] < waits[1] < waits[2]
    few = [float(score_times(FeatureScore(n, 4.0, 0.02)).waiting) for n in (2, 8, 32)]
    assert few[0] > few[1] > few[2]


def test_gradients_are_those_of_differences():
    def loss(time):
        return score_losses(SYSTEM.with_(time=time, training_time=3.0)).test_loss

    slope = jax.grad(loss)(0.1)
    np.testing.assert_allclose(slope, (loss(0.1 + 1e-5) - loss(0.1 - 1e-5)) / 2e-5, rtol=1e-6)

    def edge(time):
        return score_spectrum(SYSTEM.with_(time=time)).gap_end

    slope = jax.grad(edge)(0.1)
    np.testing.assert_allclose(slope, (edge(0.1 + 1e-5) - edge(0.1 - 1e-5)) / 2e-5, rtol=1e-5)


def test_drawn_scores_come_to_the_theory_as_the_dimension_grows():
    """Within 2 % at 40 dimensions, and closer than at 10; of linear features within the errors of
    what is left."""
    system = FeatureScore(2.0, 3.0, 0.2, training_time=2.0)
    exact = losses(system)
    small, _ = runs(drawn_score, system.with_(input_dim=10), 32, "train_loss", "test_loss")
    large, error = runs(drawn_score, system.with_(input_dim=40), 16, "train_loss", "test_loss")
    assert np.all(error < 0.01 * exact)
    assert np.all(np.abs(large - exact) < 0.02 * exact + 2 * error)
    assert np.abs(large - exact).sum() < np.abs(small - exact).sum()


def test_steps_with_fresh_noise_learn_what_the_flow_learns():
    system = FeatureScore(2.0, 3.0, 0.2, training_time=2.0, input_dim=20)
    names = "train_loss", "test_loss"
    flow, error = runs(drawn_score, system, 16, *names)
    steps, other = runs(trained_score, system, 16, *names, learning_rate=0.01)
    assert np.all(np.hypot(error, other) < 0.02)
    assert np.all(np.abs(flow - steps) < 3.7 * np.hypot(error, other) + 0.01 * flow)


def test_drawn_times_are_those_of_the_drawn_losses():
    system = FeatureScore(2.0, 4.0, 0.1, input_dim=16)
    key = jax.random.key(1)
    found = drawn_score_times(system, key)
    at = drawn_score(system.with_(training_time=float(found.memorisation_time)), key)
    end = drawn_score(system, key)
    half = (end.test_loss - end.train_loss) / 2
    np.testing.assert_allclose(at.test_loss - at.train_loss, half, rtol=1e-3)
    best = drawn_score(system.with_(training_time=float(found.best_time)), key)
    np.testing.assert_allclose(best.test_loss, found.best_loss, rtol=1e-5)


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"FeatureScore.activation = 'relu': must be odd"):
        FeatureScore(2.0, 4.0, 0.1, activation="relu")
    with pytest.raises(ValueError, match="takes a smooth one"):
        drawn_score(FeatureScore(2.0, 4.0, 0.1, activation="sign"), jax.random.key(0))
    with pytest.raises(ValueError, match=r"FeatureScore.training_time = inf"):
        trained_score(SYSTEM, jax.random.key(0))
