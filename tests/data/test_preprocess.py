"""Preprocessing does what the theory assumes: mean zero over the pool, |x|^2 = input_dim, and no
noise made from rounding."""

import numpy as np
import pytest
from scipy.sparse.linalg import eigsh

from orderparam.data import (
    Dataset,
    centre,
    load,
    normalise,
    scale_pixels,
    standardise,
    standardise_columns,
)


@pytest.fixture(scope="module")
def digits():
    return load("digits")


def data(inputs):
    return Dataset(np.asarray(inputs, float), np.arange(len(inputs)))


def relu_kernel(inputs):
    """sin t + (pi - t) cos t, over pi: the arc-cosine kernel of first order (Cho, Saul 2009), equal
    to 1 at t = 0."""
    unit = inputs / np.linalg.norm(inputs, axis=1, keepdims=True)
    cosine = np.clip(unit @ unit.T, -1, 1)
    angle = np.arccos(cosine)
    return (np.sin(angle) + (np.pi - angle) * cosine) / np.pi


def test_the_sphere_has_radius_sqrt_input_dim(digits):
    pool = normalise(centre(digits))
    np.testing.assert_allclose((pool.inputs**2).sum(1), 64, rtol=1e-14)


def test_centring_and_normalising_give_the_known_kernel_spectrum_of_the_digits(digits):
    eigenvalues = eigsh(
        relu_kernel(normalise(centre(digits)).inputs) / 1797, k=3, return_eigenvectors=False
    )
    np.testing.assert_allclose(
        np.sort(eigenvalues)[::-1], [0.33075521, 0.07696933, 0.07332557], rtol=1e-7
    )


def test_scaling_the_pixels_before_drops_out(digits):
    raw = Dataset(digits.inputs * 16, digits.labels)
    np.testing.assert_allclose(
        normalise(centre(raw)).inputs, normalise(centre(digits)).inputs, atol=1e-12
    )
    np.testing.assert_array_equal(scale_pixels(raw, 16).inputs, digits.inputs)


def test_a_centred_pool_has_mean_zero_and_constant_columns_are_exactly_zero(digits):
    centred = centre(digits)
    assert abs(centred.inputs.mean(0)).max() < 1e-14
    assert (centred.inputs[:, 0] == 0).all()  # the corner pixel is never lit
    # the rounded mean of three 0.1 is not 0.1
    tenths = centre(data([[0.1, 1.0], [0.1, 2.0], [0.1, 4.0]]))
    assert (tenths.inputs[:, 0] == 0).all()


def test_examples_outside_the_pool_are_moved_as_the_pool_was():
    pool, other = data([[0.0, 2.0], [2.0, 6.0]]), data([[1.0, 4.0]])
    assert centre(other, pool).inputs.tolist() == [[0, 0]]
    assert standardise_columns(data([[2.0, 2.0]]), pool).inputs.tolist() == [[1, -1]]
    assert standardise(data([[2.5, 2.5]]), pool).inputs.tolist() == [[0, 0]]


def test_standardise_uses_one_mean_and_one_deviation(digits):
    whole = standardise(digits).inputs
    assert abs(whole.mean()) < 1e-14
    assert abs(whole.std() - 1) < 1e-14
    fixed = standardise(digits, mean=0.1307, deviation=0.3081).inputs
    np.testing.assert_allclose(fixed, (digits.inputs - 0.1307) / 0.3081)


def test_centred_and_standardised_inputs_have_norm_input_dim_on_average(digits):
    inputs = standardise(centre(digits)).inputs
    assert abs((inputs**2).sum(1).mean() / 64 - 1) < 1e-14


def test_standardised_columns_have_variance_one_or_are_zero(digits):
    inputs = standardise_columns(digits).inputs
    assert inputs.shape == (1797, 64)
    constant = digits.inputs.std(0) == 0
    assert constant.sum() == 3
    np.testing.assert_allclose(inputs.std(0), np.where(constant, 0, 1), atol=1e-13)
    assert (inputs[:, constant] == 0).all()


def test_rounding_of_a_constant_column_is_not_blown_up():
    inputs = standardise_columns(data([[0.1, 1.0], [0.1, 2.0], [0.1, 4.0]])).inputs
    assert (inputs[:, 0] == 0).all()


def test_units_may_be_huge_or_tiny():
    column = np.array([1.0, 2.0, 4.0])
    far = standardise_columns(data(np.stack([1e200 * column, 1e-200 * column], axis=1))).inputs
    np.testing.assert_allclose(
        far, np.stack([(column - 7 / 3) / np.sqrt(14 / 9)] * 2, axis=1), rtol=1e-14
    )


def test_a_column_that_is_constant_in_the_pool_stays_zero_outside():
    assert standardise_columns(
        data([[5.0, 1.0]]), data([[3.0, 0.0], [3.0, 2.0]])
    ).inputs.tolist() == [[0, 0]]


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_sphere_is_reached_from_any_size(scale):
    inputs = normalise(data(np.array([[3.0, 4.0], [1.0, 0.0]]) * scale)).inputs
    np.testing.assert_allclose(inputs, np.sqrt(2) * np.array([[0.6, 0.8], [1.0, 0.0]]), rtol=1e-14)


def test_labels_names_and_shape_are_kept(digits):
    for step in (centre, normalise, standardise, standardise_columns):
        after = step(digits)
        assert (after.name, after.image_shape, after.class_names) == (
            "digits",
            (8, 8),
            tuple("0123456789"),
        )
        assert (after.labels == digits.labels).all()


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda: normalise(data([[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]])), "in rows 0, 2: leave"),
        (lambda: normalise(centre(data([[0.1, 0.3]] * 3))), "in rows 0, 1, 2:"),
        (lambda: normalise(centre(data([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]]))), "in rows 1:"),
        (lambda: normalise(data(np.zeros((20, 2)))), "8, 9, …:"),
        (lambda: standardise(data([[0.1, 0.1]] * 3)), r"deviation = 0.0"),
        (lambda: standardise(data([[0.0, 1.0]]), deviation=-1.0), r"deviation = -1.0"),
        (lambda: standardise(data([[0.0, 1.0]]), mean=np.nan), "mean = nan"),
        (lambda: standardise_columns(data([[0.1, 0.2]] * 3)), "no column changes"),
        (lambda: centre(data([[0.0, 1.0]]), data([[0.0]])), "pool.input_dim = 1: must be 2"),
        (lambda: scale_pixels(data([[0.0, 300.0]])), "they reach 0..300"),
        (lambda: scale_pixels(data([[-1.0, 3.0]])), "they reach -1..3"),
        (lambda: scale_pixels(data([[0.0, 0.0]]), 0.0), "largest = 0.0"),
    ],
)
def test_inputs_without_the_property_needed(step, message):
    with pytest.raises(ValueError, match=message):
        step()
