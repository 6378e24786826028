"""The spectrum of a kernel: exact sums, levels, and bad input refused by name."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orderparam.kernels.spectrum import Spectrum


def pool(size=30, outputs=(), seed=0):
    random = np.random.default_rng(seed)
    features = random.normal(size=(size, 2 * size))
    return features @ features.T / size, random.normal(size=(size, *outputs))


def test_pool_eigenvalues_sum_to_the_mean_diagonal_and_the_power_to_the_mean_square():
    kernel, targets = pool()
    spectrum = Spectrum.from_pool(kernel, targets)
    assert float(spectrum.total) == pytest.approx(np.trace(kernel) / 30, rel=1e-13)
    assert float(spectrum.total_power) == pytest.approx(np.mean(targets**2), rel=1e-13)
    assert np.all(np.diff(spectrum.eigenvalues) <= 0)


def test_a_target_that_is_an_eigenvector_has_all_its_power_in_one_mode():
    kernel, _ = pool()
    vectors = np.linalg.eigh(kernel)[1]
    power = Spectrum.from_pool(kernel, 3 * vectors[:, -2]).target_power
    np.testing.assert_allclose(power, 9 / 30 * np.eye(30)[1], atol=1e-12)


def test_outputs_add_up():
    kernel, targets = pool(outputs=(3,))
    together = Spectrum.from_pool(kernel, targets).target_power
    apart = sum(Spectrum.from_pool(kernel, targets[:, c]).target_power for c in range(3))
    np.testing.assert_allclose(together, apart, atol=1e-14)


def test_a_singular_kernel_has_null_modes_and_no_negative_ones():
    features = np.random.default_rng(1).normal(size=(40, 5))
    spectrum = Spectrum.from_pool(features @ features.T, features[:, 0])
    assert np.all(spectrum.eigenvalues >= 0)
    assert float(spectrum.target_power[5:].sum()) == pytest.approx(0, abs=1e-25)


def test_rank_counts_modes_and_not_levels():
    spectrum = Spectrum([1.0, 0.5, 0.0], [1.0, 1.0, 1.0], [2.0, 3.5, 100.0])
    assert float(spectrum.rank) == 5.5
    assert float(spectrum.total) == 3.75


def test_lower_precision_is_raised_to_float64():
    spectrum = Spectrum(np.ones(3, np.float32), np.ones(3, np.int64))
    assert spectrum.eigenvalues.dtype == spectrum.target_power.dtype == jnp.float64


ONE = [1.0, 0.5]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, -0.1], ONE), r"Spectrum.eigenvalues = -0.1: must be >= 0 in every entry"),
        (([1.0, np.nan], ONE), "eigenvalues = nan: must be finite and >= 0"),
        ((ONE, [1.0, np.inf]), "target_power = inf: must be finite and >= 0"),
        ((ONE, ONE, [1.0, -2.0]), "multiplicities = -2.0: must be >= 0"),
        ((ONE, ONE, None, -1.0), "Spectrum.tail = -1.0: must be >= 0"),
        ((ONE, ONE, None, 0.0, np.nan), "Spectrum.tail_power = nan: must be finite and >= 0"),
        (
            (ONE, [1.0]),
            r"target_power has shape \(1,\), \(level\): must have level = 2, as eigenvalues has",
        ),
        ((ONE, ONE, [1.0] * 3), r"multiplicities has shape \(3,\)"),
        (([], []), r"eigenvalues is empty"),
        ((np.eye(2), np.eye(2)), r"eigenvalues has shape \(2, 2\)"),
        ((["a", "b"], ONE), "eigenvalues holds <U1: must be numbers"),
        (([1j, 1.0], ONE), "eigenvalues holds complex128: must be numbers"),
        (
            ([[1.0], [1.0, 2.0]], ONE),
            r"Spectrum.eigenvalues = \[\[1.0\], \[1.0, 2.0\]\]: must be an array of numbers",
        ),
    ],
)
def test_bad_spectra_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Spectrum(*arguments)


@pytest.mark.parametrize(
    ("kernel", "targets", "message"),
    [
        (np.ones((3, 2)), np.ones(3), r"kernel has shape \(3, 2\)"),
        (np.eye(3), np.ones(4), r"targets has shape \(4,\): must be \(3,\) or \(3, outputs\)"),
        (
            np.array([[1.0, 0.5], [0.2, 1.0]]),
            np.ones(2),
            "differs from its transpose by 0.3: must be symmetric",
        ),
        (
            np.diag([1.0, -1.0]),
            np.ones(2),
            "has the eigenvalue -1 .*must be positive semi-definite",
        ),
        (np.diag([1.0, np.nan]), np.ones(2), "kernel contains NaN or infinity"),
        (np.eye(2), np.array([1.0, np.inf]), "targets contains NaN or infinity"),
        ([[10**400, 0], [0, 1]], np.ones(2), "kernel has an entry that is too large: integers"),
        ([[10**5000, 0.5], [0.5, 1]], np.ones(2), "kernel has an entry that is too large"),
        (np.eye(2), [2**63, 1], r"targets has an entry that is too large: .* below 2\^63"),
    ],
)
def test_bad_pools_are_refused(kernel, targets, message):
    with pytest.raises(ValueError, match=message):
        Spectrum.from_pool(kernel, targets)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(width=32), min_size=1, max_size=4), st.integers(1, 4))
def test_any_list_of_numbers_is_a_spectrum_or_is_refused(values, size):
    good = len(values) == size and all(np.isfinite(v) and v >= 0 for v in values)
    if good:
        assert Spectrum(values, np.ones(size)).eigenvalues.tolist() == values
    else:
        with pytest.raises(ValueError, match=r"Spectrum\."):
            Spectrum(values, np.ones(size))
