"""Generalisation: typical learning curves of the perceptron."""

import jax
import numpy as np
import pytest

from orderparam.systems.generalisation import (
    ImageClassifier,
    PerceptronLearning,
    bad_minima,
    typical,
)

VERSION_SPACE = {  # alpha -> q, Gibbs, Bayes
    0.5: (0.2803257344, 0.4095575194, 0.3223953396),
    1: (0.4862636370, 0.3383594684, 0.2543729703),
    2: (0.7282981740, 0.2403115941, 0.1745341856),
    5: (0.9320642457, 0.1180060333, 0.0839351698),
    10: (0.9813780850, 0.0615252741, 0.0435732040),
    20: (None, 0.0311126782, 0.0220087611),
    50: (None, 0.0124854196, 0.0088290910),
}
LARGEST_MARGIN = {  # alpha -> R, error
    0.5: (0.5121484694, 0.3288497530),
    1: (0.6713576482, 0.2657114699),
    2: (0.8297576432, 0.1884786103),
    3: (0.9009981, 0.1428356400),
    5: (None, 0.0938270078),
    10: (None, 0.0491833963),
    20: (None, 0.0249132759),
}


@pytest.mark.parametrize("ratio", VERSION_SPACE)
def test_gibbs_and_bayes(ratio):
    overlap, gibbs, bayes = VERSION_SPACE[ratio]
    student, vote = (
        typical(PerceptronLearning(float(ratio)), learner=learner) for learner in ("Gibbs", "Bayes")
    )
    np.testing.assert_allclose([student.error, vote.error], [gibbs, bayes], atol=5.1e-11)
    if overlap is not None:
        np.testing.assert_allclose([student.overlap, vote.overlap**2], overlap, atol=5.1e-11)


@pytest.mark.parametrize("ratio", LARGEST_MARGIN)
def test_the_largest_margin(ratio):
    overlap, error = LARGEST_MARGIN[ratio]
    found = typical(PerceptronLearning(float(ratio)), learner="largest margin")
    np.testing.assert_allclose(found.error, error, atol=5.1e-11)
    if overlap is not None:
        np.testing.assert_allclose(found.overlap, overlap, atol=5.1e-8 if ratio == 3 else 5.1e-11)


def test_the_asymptotics():
    for learner, limit in (("Gibbs", 0.6247), ("Bayes", 0.4417), ("largest margin", 0.500)):
        found = typical(PerceptronLearning(1e4), learner=learner)
        np.testing.assert_allclose(1e4 * found.error, limit, atol=6e-4)


@pytest.mark.slow
def test_bad_minima_of_digits():
    """Three networks of an independent program, 64-256-256-10 on 500 digits: test errors and weight
    norms of the four ways."""
    system = ImageClassifier.of(
        "digits",
        1797,
        n_train=500,
        width=256,
        copies=4,
        dropped=0.2,
        batch_size=50,
        learning_rate=0.02,
    )
    runs = [
        bad_minima(system.with_(weight_decay=2e-3, momentum=0.9), jax.random.key(seed))
        for seed in range(4)
    ]
    assert all(run.converged for run in runs)
    errors = np.array([run.error for run in runs])
    spread = np.hypot(errors.std(axis=0, ddof=1) / 2, [0.004, 0.004, 0.002, 0.002])
    assert np.all(abs(errors.mean(axis=0) - [0.040, 0.102, 0.032, 0.033]) < 3.5 * spread)
    np.testing.assert_allclose(
        np.mean([run.weight_norm for run in runs], axis=0), [33.1, 47, 13.3, 12.1], rtol=0.05
    )
