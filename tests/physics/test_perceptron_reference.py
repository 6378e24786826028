"""The teacher-student perceptron: overlaps, errors, entropies and transitions known to many
digits."""

import numpy as np
import pytest

from orderparam.systems.perceptron import (
    BatchPerceptron,
    OnlinePerceptron,
    ThermalPerceptron,
    annealed,
    batch_rule,
    binary_transitions,
    high_temperature,
    high_temperature_transitions,
    online_rule,
    quenched,
)

SPHERICAL = {  # alpha -> q, Gibbs error, Bayes error
    0.5: (0.2803257344, 0.4095575194, 0.3223953396),
    1.0: (0.4862636370, 0.3383594684, 0.2543729703),
    2.0: (0.7282981740, 0.2403115941, 0.1745341856),
    5.0: (0.9320642457, 0.1180060333, 0.0839351698),
    10.0: (0.9813780850, 0.0615252741, 0.0435732040),
    20.0: (None, 0.0311126782, 0.0220087611),
    50.0: (None, 0.0124854196, 0.0088290910),
}
BINARY = {
    0.5: (0.2930890301, 0.3721327777),
    1.0: (0.5607147371, 0.1061082678),
    1.2: (0.6686613799, 0.0179650086),
}
BINARY |= {1.4: (0.7896990395, -0.0564266309)}  # alpha -> q, S
WARM = {  # alpha, T -> q, R, free entropy, train error, test error, entropy
    (1.0, 0.5): (0.3468250, 0.4211615, 0.2060077, 0.0891043, 0.3616226, 0.3842163),
    (1.3, 0.2): (0.6946960, 0.7072898, -0.0138849, None, None, 0.0201600),
    (1.35, 0.5): (0.4763113, 0.5586147, 0.0728309, None, None, None),
    (1.4, 0.2): (None, None, None, None, None, -0.0158018),
    (1.5, 1.0): (0.2652694, 0.3992013, None, 0.1915697, 0.3692875, None),
    (2.0, 1.0): (None, 0.5293221, None, None, 0.3224463, None),
}
STABILITY = {
    0.5: (0.5121484694, 1.2563803390, 0.3288497530),
    1.0: (0.6713576482, 0.7865498417, 0.2657114699),
}
# alpha -> R, kappa, error
STABILITY |= {2.0: (0.8297576432, None, 0.1884786103), 3.0: (None, None, 0.1428356400)}
STABILITY |= {
    5.0: (None, None, 0.0938270078),
    10.0: (None, None, 0.0491833963),
    20.0: (None, None, 0.0249132759),
}


def agree(found, wanted, digits):
    for value, known in zip(found, wanted):
        if known is not None:
            np.testing.assert_allclose(float(value), known, rtol=0, atol=0.6 * 10.0**-digits)


@pytest.mark.parametrize("alpha", SPHERICAL)
def test_spherical_students_without_errors(alpha):
    found = quenched(ThermalPerceptron(alpha, 0.0, "spherical"))
    assert found.converged
    agree((found.self_overlap, found.classification_error, found.bayes_error), SPHERICAL[alpha], 10)
    np.testing.assert_allclose(found.teacher_overlap, found.self_overlap, rtol=1e-10)


@pytest.mark.parametrize("alpha", BINARY)
def test_binary_students_without_errors(alpha):
    found = quenched(ThermalPerceptron(alpha))
    agree((found.self_overlap, found.entropy), BINARY[alpha], 10)


@pytest.mark.parametrize(("alpha", "temperature"), WARM)
def test_binary_students_at_a_temperature(alpha, temperature):
    found = quenched(ThermalPerceptron(alpha, temperature))
    names = (
        "self_overlap",
        "teacher_overlap",
        "free_entropy",
        "mistakes",
        "classification_error",
        "entropy",
    )
    agree([getattr(found, name) for name in names], WARM[alpha, temperature], 7)


def test_transitions_of_binary_weights():
    found = binary_transitions(ThermalPerceptron(1.0))
    agree((found.thermodynamic, found.spinodal), (1.244683989851, 1.492631818230), 8)
    agree((found.overlap,), (0.6937602197,), 7)


@pytest.mark.parametrize(
    ("temperature", "alpha"),
    [(0.2604213, 1.30), (0.3172556, 1.35), (0.3644488, 1.40), (0.4069912, 1.45)],
)
def test_the_first_order_line(temperature, alpha):
    found = quenched(ThermalPerceptron(alpha, temperature))
    assert abs(float(found.free_entropy)) < 3e-7  # the temperature is known to seven digits


@pytest.mark.parametrize(("temperature", "alpha"), [(0.1701688, 1.30), (0.2403133, 1.45)])
def test_the_freezing_line(temperature, alpha):
    np.testing.assert_allclose(
        binary_transitions(ThermalPerceptron(1.0, temperature)).freezing, alpha, atol=6e-7
    )
    assert abs(float(quenched(ThermalPerceptron(alpha, temperature)).entropy)) < 3e-7


@pytest.mark.parametrize(("temperature", "alpha"), [(0.1975126, 1.35), (0.2198518, 1.40)])
def test_the_entropy_vanishes_on_the_freezing_line(temperature, alpha):
    assert abs(float(quenched(ThermalPerceptron(alpha, temperature)).entropy)) < 3e-7


def test_binary_students_next_to_the_spinodal():
    np.testing.assert_allclose(
        quenched(ThermalPerceptron(1.49)).self_overlap, 0.8795564933, atol=6e-10
    )


def test_annealed_binary_students():
    found = annealed(ThermalPerceptron(1.0))
    agree((found.free_entropy,), (0.156872,), 6)
    agree((found.teacher_overlap,), (0.5015924564,), 8)  # root of the derivative, by Brent's method
    below, above = (
        float(annealed(ThermalPerceptron(1.447966440 + shift)).free_entropy)
        for shift in (-1e-6, 1e-6)
    )
    assert below > 0 > above
    assert annealed(ThermalPerceptron(1.730)).valid
    beyond = annealed(ThermalPerceptron(1.7302))
    assert not beyond.valid
    assert np.isnan([beyond.teacher_overlap, beyond.free_entropy]).all()
    last = annealed(ThermalPerceptron(1.730111815 * (1 - 1e-8)))
    # a square root away from the spinodal
    np.testing.assert_allclose(last.teacher_overlap, 0.886263, atol=2e-4)


@pytest.mark.parametrize("alpha", STABILITY)
def test_maximal_stability(alpha):
    found = batch_rule(BatchPerceptron(alpha, "maximal stability"))
    assert found.converged
    wanted = STABILITY[alpha]
    agree((found.teacher_overlap, found.stability), wanted[:2], 7)
    agree((found.classification_error,), wanted[2:], 10)


def test_how_errors_fall_in_the_end():
    """alpha times the error: 0.5005 (maximal stability; Opper et al. 1990), 0.883 (best online;
    Kinouchi, Caticha 1992)."""
    largest = batch_rule(BatchPerceptron(1000.0, "maximal stability"))
    np.testing.assert_allclose(1000 * largest.classification_error, 0.5005, atol=2e-4)
    online = online_rule(OnlinePerceptron(400.0, "optimal"))
    np.testing.assert_allclose(400 * online.classification_error, 0.883, rtol=0.01)


def test_transitions_at_high_temperature():
    found = high_temperature_transitions(ThermalPerceptron(1.0, 1.0))
    np.testing.assert_allclose(
        [found.thermodynamic, found.spinodal], [1.695932643, 2.082069857], atol=6e-10
    )
    np.testing.assert_allclose(
        [found.overlap, found.spinodal_overlap], [0.580237, 0.833557], atol=6e-7
    )


@pytest.mark.parametrize("weights", ["binary", "spherical"])
def test_students_at_high_temperature(weights):
    """alpha/T = pi sqrt(1 - R^2) artanh(R) for binary weights, pi R / sqrt(1 - R^2) for spherical
    ones."""
    found = high_temperature(ThermalPerceptron(3.0, 2.0, weights))
    overlap = float(found.teacher_overlap)
    slope = np.arctanh(overlap) * (1 - overlap**2) if weights == "binary" else overlap
    np.testing.assert_allclose(np.pi * slope / np.sqrt(1 - overlap**2), 1.5, rtol=1e-6)
    hot = annealed(ThermalPerceptron(1.5e6, 1e6, weights))
    np.testing.assert_allclose(hot.teacher_overlap, overlap, rtol=1e-5)
    with pytest.raises(ValueError, match="temperature = 0"):
        high_temperature(ThermalPerceptron(1.0, 0.0))


@pytest.mark.parametrize("alpha", [8.0, 12.0, 20.0])
def test_cold_spherical_students_make_no_mistakes(alpha):
    """At T = 0 no student makes a mistake, so that the entropy is the free entropy."""
    found = quenched(ThermalPerceptron(alpha, 0.0, "spherical"))
    assert float(found.mistakes) == 0.0
    assert float(found.entropy) == float(found.free_entropy)


def test_almost_cold_spherical_students_at_many_examples():
    """The student's evidence of a label bends far below zero field, where a rule for the teacher's
    sign alone has no nodes."""
    found = quenched(ThermalPerceptron(12.0, 0.2, "spherical"))
    np.testing.assert_allclose(found.classification_error, 0.0538052378, atol=1e-10)
    np.testing.assert_allclose(found.mistakes, 0.00137109618, atol=1e-11)
