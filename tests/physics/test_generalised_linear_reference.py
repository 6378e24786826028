"""Bayes-optimal generalised linear models: overlaps and thresholds known to many digits."""

import numpy as np
import pytest

from orderparam.channels import RealLabels, SignLabels
from orderparam.priors import GaussianPrior, Rademacher, SparsePrior
from orderparam.systems.generalised_linear import (
    ElasticNet,
    GeneralisedLinear,
    PenalisedFit,
    amp_fixed_point,
    best_penalty,
    elastic_net,
    penalised_fit,
    sparse_thresholds,
    spectral,
    state_evolution,
    thresholds,
)

BINARY = {
    0.5: (0.2930890301, 0.3721327777),
    1.0: (0.5607147371, 0.1061082678),
    1.2: (0.6686613799, 0.0179650086),
}
BINARY |= {1.4: (0.7896990395, -0.0564266309)}  # alpha -> q, entropy
MAGNITUDES = {0.55: 0.02314198, 0.8: 0.21622749, 1.0: 0.47626359}
RELU = {0.5: 0.38162801, 1.0: 0.69279390, 1.5: 0.91027717}
# 1 - q of signs with binary weights, published as a check of a peer
TRAMP = {0.5: 0.70691097, 1.0: 0.43928526, 1.4: 0.21030096}


@pytest.mark.parametrize("alpha", BINARY)
def test_signs_and_binary_weights(alpha):
    found = state_evolution(GeneralisedLinear(alpha, SignLabels(), Rademacher()))
    overlap, entropy = BINARY[alpha]
    np.testing.assert_allclose(
        [found.overlap, found.free_entropy + np.log(2)], [overlap, entropy], atol=6e-11
    )
    if alpha in TRAMP:
        np.testing.assert_allclose(found.error, TRAMP[alpha], atol=1.1e-8)


def test_transitions_of_signs_and_binary_weights():
    found = thresholds(GeneralisedLinear(1.0, SignLabels(), Rademacher()))
    np.testing.assert_allclose(
        [found.information, found.algorithmic], [1.244683989851, 1.492631818230], atol=1e-9
    )
    np.testing.assert_allclose(found.overlap_before, 0.6937602197, atol=1e-8)
    assert float(found.overlap_after) == pytest.approx(1.0, abs=1e-12)


def test_information_threshold_of_turned_labels():
    """At the threshold known weights have the free entropy of unknown ones, which a coarser rule
    misses by 5e-8."""
    found = thresholds(GeneralisedLinear(1.0, SignLabels(0.02), Rademacher()))
    np.testing.assert_allclose(found.information, 1.4951771051, atol=1e-9)


def test_weak_recovery_of_magnitudes_by_an_eigenvector():
    """The eigenvector of |z| stands out from n = d/2 on; the cosine vanishes there as a square
    root."""
    cosines = [
        float(spectral(GeneralisedLinear(0.5 + gap, RealLabels("abs"), GaussianPrior())).cosine)
        for gap in (-1e-9, 1e-9)
    ]
    assert cosines[0] == 0.0
    assert 0 < cosines[1] < 1e-3


@pytest.mark.parametrize(
    ("alpha", "error"), [(0.5, 0.3223953396), (1.0, 0.2543729703), (10.0, 0.0435732040)]
)
def test_signs_and_gaussian_weights(alpha, error):
    np.testing.assert_allclose(
        state_evolution(GeneralisedLinear(alpha)).classification_error, error, atol=6e-11
    )


@pytest.mark.parametrize("alpha", MAGNITUDES)
def test_magnitudes(alpha):
    found = state_evolution(GeneralisedLinear(alpha, RealLabels("abs"), GaussianPrior()))
    np.testing.assert_allclose(found.overlap, MAGNITUDES[alpha], atol=6e-9)


@pytest.mark.parametrize(
    ("alpha", "overlap"),
    [(0.6, 0.05182027), (1.05, 0.56844931), (1.1, 0.69078878), (1.12, 0.76673377)],
)
def test_magnitudes_next_to_their_transitions(alpha, overlap):
    found = amp_fixed_point(GeneralisedLinear(alpha, RealLabels("abs"), GaussianPrior()))
    np.testing.assert_allclose(found.overlap, overlap, atol=6e-9)


def test_relu_next_to_exact_recovery():
    found = amp_fixed_point(GeneralisedLinear(1.9, RealLabels("relu"), GaussianPrior()))
    np.testing.assert_allclose(found.overlap, 0.99556582, atol=6e-9)


def test_transitions_of_magnitudes():
    found = thresholds(GeneralisedLinear(1.0, RealLabels("abs"), GaussianPrior()))
    np.testing.assert_allclose(found.weak, 0.5, atol=1e-11)
    np.testing.assert_allclose(found.algorithmic, 1.12847141, atol=6e-9)


@pytest.mark.parametrize(
    ("labels", "prior", "expected"),
    [
        (RealLabels("abs"), GaussianPrior(), 1.0),
        (RealLabels("linear"), SparsePrior(0.2), 0.2),
        (RealLabels("linear"), SparsePrior(0.5), 0.5),
    ],
)
def test_information_thresholds_without_noise(labels, prior, expected):
    np.testing.assert_allclose(
        thresholds(GeneralisedLinear(1.0, labels, prior)).information, expected, rtol=1e-5
    )


@pytest.mark.parametrize("alpha", RELU)
def test_relu(alpha):
    found = state_evolution(GeneralisedLinear(alpha, RealLabels("relu"), GaussianPrior()))
    np.testing.assert_allclose(found.overlap, RELU[alpha], atol=6e-9)


def test_linear_labels_with_noise():
    found = state_evolution(GeneralisedLinear(1.5, RealLabels("linear", 0.5)))
    np.testing.assert_allclose(found.error, (np.sqrt(3) - 1) / 2, rtol=1e-10)


@pytest.mark.parametrize(("density", "needed"), [(0.2, 0.355411), (0.5, 0.685698)])
def test_compressed_sensing(density, needed):
    system = GeneralisedLinear(1.0, RealLabels("linear"), SparsePrior(density))
    np.testing.assert_allclose(sparse_thresholds(system).sample_ratio_needed, needed, atol=6e-7)
    found = thresholds(system)
    np.testing.assert_allclose(
        found.algorithmic, sparse_thresholds(system).sample_ratio_needed, rtol=1e-7
    )


def test_the_lasso():
    found = elastic_net(ElasticNet(0.8, 0.2, 0.0, 0.05, SparsePrior(0.2)))
    np.testing.assert_allclose(
        [found.error, found.response], [0.0459832877, 0.6702689162], atol=6e-11
    )
    np.testing.assert_allclose(found.support, 0.32103521, atol=6e-9)


@pytest.mark.parametrize(
    ("alpha", "square"), [(0.45, 0.0), (0.6, 0.0423), (1.0, 0.230624), (2.0, 0.638013)]
)
def test_the_leading_eigenvector_of_magnitudes(alpha, square):
    """Of the matrix whose weights T are cut at -30, as in the source of these numbers; without the
    cut it is a little better."""
    system = GeneralisedLinear(alpha, RealLabels("abs"), GaussianPrior())
    found = spectral(system, least_weight=-30.0)
    assert float(spectral(system).cosine) >= float(found.cosine)
    assert found.converged
    np.testing.assert_allclose(float(found.cosine) ** 2, square, atol=6e-7 if alpha >= 1 else 6e-5)


@pytest.mark.parametrize(
    ("loss", "alpha", "ridge", "wrong"),
    [
        ("square", 1.0, 0.1, 0.27538250),
        ("square", 3.0, 0.1, 0.15350264),
        ("square", 3.0, 1.0, 0.15096416),
        ("square", 1.0, np.pi / 2 - 1, 0.2570754402),
        ("logistic", 1.0, 0.1, 0.25586427),
        ("logistic", 3.0, 0.1, 0.13829800),
        ("logistic", 3.0, 1.0, 0.16706251),
        ("hinge", 1.0, 0.1, 0.2656848895),
        ("hinge", 3.0, 0.1, 0.1401500370),
        ("hinge", 3.0, 1.0, 0.1646983896),
        ("hinge", 2.0, 0.5, 0.1923791355),
    ],
)
def test_penalised_fits_of_signs(loss, alpha, ridge, wrong):
    found = penalised_fit(PenalisedFit(alpha, loss, "sign", 0.0, ridge))
    assert found.converged
    np.testing.assert_allclose(found.classification_error, wrong, atol=6e-9)


@pytest.mark.parametrize(
    ("loss", "alpha", "overlaps"),
    [
        ("square", 1.0, (0.58233109, 0.80625919)),
        ("square", 3.0, (0.76071462, 0.73725583)),
        ("logistic", 1.0, (1.05641261, 2.31738283)),
        ("hinge", 3.0, (2.0250510575, 5.0111058352)),
    ],
)
def test_order_parameters_at_a_ridge_of_a_tenth(loss, alpha, overlaps):
    found = penalised_fit(PenalisedFit(alpha, loss, "sign", 0.0, 0.1))
    np.testing.assert_allclose([found.teacher_overlap, found.self_overlap], overlaps, atol=6e-9)


def test_least_squares_without_ridge_know_nothing_at_one_sample_per_weight():
    found = penalised_fit(PenalisedFit(1.0, "square", "sign", 0.0, 1e-6), max_steps=200_000)
    assert found.converged
    np.testing.assert_allclose(found.classification_error, 0.4811895, atol=6e-8)


def test_the_order_parameters_of_the_hinge():
    found = penalised_fit(PenalisedFit(1.0, "hinge", "sign", 0.0, 0.1))
    np.testing.assert_allclose(
        [found.teacher_overlap, found.self_overlap, found.response],
        [0.8530627491, 1.6142619535, 3.7645202328],
        atol=6e-10,
    )


def test_the_best_ridge_for_signs_is_the_same_at_every_number_of_samples():
    found = best_penalty(PenalisedFit(3.0, "square"))
    np.testing.assert_allclose(
        [found.penalty, found.least_error], [np.pi / 2 - 1, 0.1497962193], atol=1e-6
    )


def test_a_lasso_is_a_penalised_fit():
    found = penalised_fit(
        PenalisedFit(0.8, "square", RealLabels("linear", 0.05), 0.2, 0.0, SparsePrior(0.2))
    )
    np.testing.assert_allclose(
        [found.error, found.response, found.support],
        [0.0459832877, 0.6702689162, 0.32103521],
        atol=6e-9,
    )
