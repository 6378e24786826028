"""Random features in examples and width at once: the joint law against drawn features, its limits
and its optima."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.systems.scaling_laws import (
    ParameterBudget,
    ScaleFreeFeatures,
    best_split,
    drawn_regression,
    joint_law,
    limit_exponents,
    optimal_ridge,
)

SYSTEM = ScaleFreeFeatures(
    80.0, 60.0, spectral_decay=1.5, target_decay=2.0, ridge=0.05, noise=0.1, modes=1000
)


def test_the_joint_law_is_the_mean_over_draws():
    """Up to O(1/N): 3 % allowed, and three standard errors of 30 draws."""
    expected = float(joint_law(SYSTEM).test_error)
    runs = np.array(
        [float(drawn_regression(SYSTEM, jax.random.key(seed)).test_error) for seed in range(30)]
    )
    assert abs(runs.mean() - expected) < 3 * runs.std(ddof=1) / np.sqrt(30) + 0.03 * expected


def test_infinitely_many_features_are_the_kernel():
    wide, wider = (joint_law(SYSTEM.with_(width=width)) for width in (1e9, jnp.inf))
    assert float(wide.test_error) == pytest.approx(float(wider.test_error), rel=1e-7)
    assert float(wider.above_infinite_width) == pytest.approx(0, abs=1e-12)
    assert float(wider.width_exponent) == pytest.approx(0, abs=1e-9)


def test_infinitely_many_examples_leave_what_features_cannot_represent():
    many = joint_law(SYSTEM.with_(n_train=1e10))
    assert float(many.above_infinite_data) / float(many.test_error) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(("a", "b"), [(2.0, 2.0), (1.5, 1.4), (1.5, 2.2), (1.3, 3.2)])
def test_resolution_limited_exponents(a, b):
    """Far out; corrections are powers of the sizes."""
    limit, decays = limit_exponents(a, b), {"spectral_decay": a, "target_decay": b, "ridge": 1e-14}
    wide, many = ScaleFreeFeatures(3e4, jnp.inf, **decays), ScaleFreeFeatures(1e14, 3e4, **decays)
    assert float(joint_law(wide).data_exponent) == pytest.approx(limit.data, abs=0.03)
    assert float(joint_law(many).width_exponent) == pytest.approx(limit.width, abs=0.03)


@pytest.mark.parametrize(
    ("moving", "excess"), [("width", "above_infinite_width"), ("n_train", "above_infinite_data")]
)
def test_variance_limited_exponents(moving, excess):
    few = {"n_train": 100.0, "width": 100.0}
    one, two = (ScaleFreeFeatures(**few | {moving: size}, ridge=1e-3) for size in (1e6, 2e6))
    ratio = float(getattr(joint_law(one), excess)) / float(getattr(joint_law(two), excess))
    assert np.log2(ratio) == pytest.approx(1.0, abs=1e-3)


def test_the_best_ridge_is_a_minimum_with_the_right_derivative():
    found = optimal_ridge(SYSTEM)
    assert bool(found.converged)
    errors = [
        float(joint_law(SYSTEM.with_(ridge=float(found.ridge) * factor)).test_error)
        for factor in (0.9, 1.0, 1.1)
    ]
    assert errors[1] == pytest.approx(float(found.test_error), rel=1e-9)
    assert errors[1] < min(errors[0], errors[2])
    slope = jax.grad(lambda noise: optimal_ridge(SYSTEM.with_(noise=noise)).test_error)(0.1)
    step = [float(optimal_ridge(SYSTEM.with_(noise=0.1 + h)).test_error) for h in (-1e-4, 1e-4)]
    assert float(slope) == pytest.approx((step[1] - step[0]) / 2e-4, rel=1e-5)


def test_no_ridge_is_best_for_a_wide_kernel_without_noise():
    found = optimal_ridge(ScaleFreeFeatures(100.0, jnp.inf))
    assert bool(found.converged)
    assert float(found.ridge) == 0


def test_equal_numbers_are_best_where_error_is_symmetric():
    """y_k^2 = lambda_k: features and examples can be exchanged (Maloney, Roberts, Sully 2022)."""
    found = best_split(ParameterBudget(400.0))
    assert bool(found.converged)
    assert float(found.data_share) == pytest.approx(0.5, abs=1e-9)


def test_the_best_split_is_lower_than_its_neighbours():
    budget = ParameterBudget(400.0, target_decay=3.0)
    found = best_split(budget)
    shares = float(found.data_share) + np.array([-0.02, 0.0, 0.02])
    errors = [float(optimal_ridge(budget.with_(data_share=share)).test_error) for share in shares]
    assert errors[1] == pytest.approx(float(found.test_error), rel=1e-9)
    assert errors[1] < min(errors[0], errors[2])


def test_exponents_of_other_papers():
    ours = ScaleFreeFeatures(10.0, 20.0, spectral_decay=1.6, target_decay=2.9)
    for theirs in (
        ScaleFreeFeatures.bordelon(2.9, 1.6, 10.0, 20.0),
        ScaleFreeFeatures.paquette(0.8, 0.65, 10.0, 20.0),
        ScaleFreeFeatures.caponnetto(1.6, 1.9 / 3.2, 10.0, 20.0),
    ):
        assert theirs.target_decay == pytest.approx(ours.target_decay)
        assert theirs.spectral_decay == pytest.approx(ours.spectral_decay)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ScaleFreeFeatures(10.0, 10.0, spectral_decay=1.0),
            "spectral_decay = 1.0: must be > 1",
        ),
        (lambda: ScaleFreeFeatures(10.0, 10.0, modes=10.5), "modes = 10.5: must be a whole number"),
        (lambda: ParameterBudget(100.0, 1.0), "data_share = 1.0: must be > 0 and < 1"),
        (lambda: limit_exponents(1.5, 0.9), "target_decay = 0.9: must be > 1"),
        (
            lambda: drawn_regression(ScaleFreeFeatures(10.0, 10.0), jax.random.key(0)),
            "modes = inf: must be <= 100000",
        ),
        (lambda: drawn_regression(SYSTEM.with_(width=10.5), jax.random.key(0)), "width = 10.5"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
