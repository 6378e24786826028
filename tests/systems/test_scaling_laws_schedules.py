"""Momentum and schedules of one-pass SGD: exact moments against closed forms and against
streams."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.systems.scaling_laws import (
    PowerLawFeatures,
    ScheduledSGD,
    drawn_features,
    one_pass_sgd,
    scheduled_mean,
    scheduled_sgd,
)
from orderparam.systems.scaling_laws.one_pass.experiment import Features
from orderparam.systems.scaling_laws.one_pass.experiment import _with_momentum as _stream

FEATURES = PowerLawFeatures(
    1.0, 0.3, 60, width=8, learning_rate=0.2, batch_size=2, horizon=60, records=6
)


def test_without_either_it_is_plain_sgd():
    key, plain = jax.random.key(0), ScheduledSGD(FEATURES)
    np.testing.assert_allclose(
        scheduled_mean(plain, key).risk, drawn_features(FEATURES, key).risk, rtol=1e-11
    )
    np.testing.assert_allclose(
        scheduled_sgd(plain, key).risk, one_pass_sgd(FEATURES, key).risk, rtol=1e-11
    )


@pytest.mark.parametrize(
    ("words", "rate"),
    [
        ({"momentum": 0.7}, 0.05),
        ({"schedule": "power", "decay": 0.5, "period": 10.0}, 0.2),
        ({"schedule": "cosine", "momentum": 0.3, "warmup": 10.0}, 0.15),
        ({"schedule": "linear"}, 0.2),
    ],
)
def test_streams_have_the_exact_mean_of_their_features(words, rate):
    """One draw of the features, 4000 streams of samples."""
    system, draw = ScheduledSGD(FEATURES.with_(learning_rate=rate), **words), jax.random.key(1)
    drawn, exact = Features(FEATURES, draw), np.asarray(scheduled_mean(system, draw).risk)
    numbers = (drawn.eigenvalues, drawn.best, drawn.irreducible, FEATURES.steps.astype(int))
    keys = jax.random.split(jax.random.key(2), 4000)
    runs = np.asarray(jax.vmap(lambda key: _stream(system, *numbers, key, 2))(keys))
    deviation = (runs.mean(axis=0) - exact) / (runs.std(axis=0, ddof=1) / np.sqrt(len(runs)))
    assert np.abs(deviation).max() < 4


def test_small_rates_with_momentum_are_larger_rates_without():
    key, slow = jax.random.key(3), FEATURES.with_(learning_rate=1e-4, horizon=40000)
    heavy = scheduled_mean(ScheduledSGD(slow, momentum=0.9), key).risk[-1]
    plain = drawn_features(slow.with_(learning_rate=1e-3), key).risk[-1]
    assert float(heavy) == pytest.approx(float(plain), rel=2e-3)


def test_a_rate_that_falls_goes_below_the_floor():
    key, long = jax.random.key(4), FEATURES.with_(horizon=20000)
    flat, fallen = (
        scheduled_mean(ScheduledSGD(long, schedule=schedule), key)
        for schedule in ("constant", "cosine")
    )
    above = [float(curve.risk[-1] - curve.irreducible_risk) for curve in (flat, fallen)]
    assert above[1] < above[0] / 10


def test_schedules():
    long = FEATURES.with_(horizon=1000)
    steps = jnp.array([0.0, 500.0, 1000.0])
    np.testing.assert_allclose(
        ScheduledSGD(long, schedule="linear").rate(steps), [0.2, 0.1, 0], atol=1e-15
    )
    np.testing.assert_allclose(
        ScheduledSGD(long, schedule="cosine").rate(steps), [0.2, 0.1, 0], atol=1e-15
    )
    power = ScheduledSGD(long, schedule="power", decay=1.0, period=500.0, warmup=4.0)
    np.testing.assert_allclose(power.rate(steps), [0.05, 0.1, 0.2 / 3], rtol=1e-14)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"momentum = 1.0: must be >= 0 and < 1"):
        ScheduledSGD(FEATURES, momentum=1.0)
    with pytest.raises(ValueError, match=r"schedule = .cosin.*cosine"):
        ScheduledSGD(FEATURES, schedule="cosin")
