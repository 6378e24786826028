"""Storage capacity: the tables of Gardner's, Gardner and Derrida's, and Krauth and Mezard's
theories; Cover's count."""

from math import comb

import numpy as np
import pytest

from orderparam.systems.storage_capacity import (
    BinaryPatterns,
    SphericalPatterns,
    at_line_gardner_derrida,
    binary_capacity,
    capacity,
    cover,
    largest_margin,
    minimal_error,
    solutions,
)

CAPACITY = {  # margin -> alpha_c
    -1.0: 13.2731998370,
    -0.5: 4.7700988826,
    0.0: 2.0,
    0.5: 0.9612050528,
    1.0: 0.5195722296,
    1.5: 0.3098706517,
    2.0: 0.2002310156,
}
BIASED = {  # margin, bias -> alpha_c
    (0.0, 0.2): 2.05272398,
    (0.0, 0.5): 2.40587060,
    (0.0, 0.8): 3.91290185,
    (0.0, 0.9): 6.08284521,
    (0.5, 0.2): 0.97465721,
    (0.5, 0.5): 1.05817209,
    (0.5, 0.8): 1.32661130,
}
ERRORS = {  # load, margin -> gap, error fraction
    (2.5, 0.0): (2.15444370, 0.01560270),
    (3.0, 0.0): (1.84518460, 0.03250534),
    (4.0, 0.0): (1.53817225, 0.06200325),
    (6.0, 0.0): (1.25219895, 0.10524869),
    (2.0, 0.5): (1.75476009, 0.10478293),
    (2.0, 1.0): (1.58850373, 0.27809711),
    (1.0, 1.0): (2.12295528, 0.13072824),
}
INSTABILITY = {0.0: 2.0, 0.2: 1.7746063, 0.5: 1.6081994, 1.0: 1.6658448, 2.0: 3.7065110}
# margin -> alpha_c, by the trapezoidal rule on 40001 points and a bracketing root finder
BINARY = {
    0.0: 0.833078599740,
    0.2: 0.647404033857,
    0.5: 0.455664564542,
    1.0: 0.270700092294,
    -0.5: 1.678841112917,
}
ENTROPY = {  # load -> entropy, overlap
    0.2: (0.5501201065, 0.1268646739),
    0.5: (0.3143900669, 0.3223853632),
    0.7: (0.1353996687, 0.4625705198),
    0.8: (0.0353057206, 0.5379421598),
}


def digits(found, wanted, decimals):
    """Equal to so many printed decimals."""
    np.testing.assert_allclose(
        np.asarray(found, float), wanted, rtol=0, atol=0.51 * 10.0**-decimals
    )


@pytest.mark.parametrize("margin", CAPACITY)
def test_capacity_and_its_inverse(margin):
    found = capacity(SphericalPatterns(margin=margin))
    digits(found.capacity, CAPACITY[margin], 10)
    assert found.converged
    assert bool(found.exact) == (margin >= 0)
    np.testing.assert_allclose(
        largest_margin(SphericalPatterns(found.capacity)).margin, margin, atol=1e-10
    )


@pytest.mark.parametrize(("margin", "bias"), BIASED)
def test_biased_patterns(margin, bias):
    found = capacity(SphericalPatterns(margin=margin, bias=bias))
    digits(found.capacity, BIASED[margin, bias], 8)
    if (margin, bias) == (0.0, 0.2):
        digits(found.alignment, 0.79195681, 8)


@pytest.mark.parametrize(("load", "margin"), ERRORS)
def test_the_fewest_errors(load, margin):
    found = minimal_error(SphericalPatterns(load, margin))
    digits([found.gap, found.error_fraction], ERRORS[load, margin], 8)


@pytest.mark.parametrize("margin", INSTABILITY)
def test_the_line_of_instability(margin):
    digits(at_line_gardner_derrida(SphericalPatterns(margin=margin)).load, INSTABILITY[margin], 6)


@pytest.mark.parametrize("margin", BINARY)
def test_the_capacity_of_binary_couplings(margin):
    found = binary_capacity(BinaryPatterns(margin=margin))
    digits(found.capacity, BINARY[margin], 11)
    if margin == 0:
        digits([found.capacity, found.overlap], (0.83307859974, 0.563949), 6)


@pytest.mark.parametrize("load", ENTROPY)
def test_the_entropy_of_binary_couplings(load):
    found = solutions(BinaryPatterns(load))
    digits([found.entropy, found.overlap], ENTROPY[load], 10)


@pytest.mark.parametrize(("inputs", "patterns"), [(2, 7), (20, 30), (20, 40), (50, 45), (50, 101)])
def test_cover_counts_separations(inputs, patterns):
    wanted = 2.0 ** (1 - patterns) * sum(comb(patterns - 1, k) for k in range(inputs))
    np.testing.assert_allclose(
        cover(SphericalPatterns(patterns / inputs, input_dim=inputs)).success_fraction,
        wanted,
        rtol=1e-11,
    )
