"""Boolean functions against numbers computed elsewhere, with other programs."""

import numpy as np
import pytest

from orderparam.systems.boolean_functions import (
    label_posterior,
    regression_posterior,
    tangent_kernel_law,
)
from orderparam.systems.boolean_functions.studies import three_bits

# probabilities of the four patterns that are most frequent, by Genz's method
LAWS = {
    label_posterior: (0.1993, 0.1243, 0.1109, 0.0687),
    regression_posterior: (0.2347, 0.1317, 0.0946, 0.0864),
    tangent_kernel_law: (0.2809, 0.1341, 0.0830, 0.0659),
}


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.fn.__name__)
def test_three_laws_on_three_bits(law):
    found = law(three_bits(64))
    np.testing.assert_allclose(found.probability[np.array([1, 3, 7, 15])], LAWS[law], atol=1.1e-4)
    assert float(found.uncertainty.max()) < 5e-5


def test_total_variations_of_the_laws():
    names = (label_posterior, regression_posterior, tangent_kernel_law)
    laws = [np.asarray(law(three_bits(64)).probability) for law in names]
    pairs = ((0, 1, 0.0752), (0, 2, 0.1110), (1, 2, 0.0553))
    for i, j, exact in pairs:
        assert abs(np.sum(np.abs(laws[i] - laws[j])) / 2 - exact) < 1.5e-4
