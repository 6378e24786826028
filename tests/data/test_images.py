"""Images that are averaged over blocks."""

import numpy as np
import pytest

from orderparam.data.images import block_means, coarse


def test_block_means_are_those_of_each_square():
    images = np.arange(2 * 4 * 4 * 3, dtype=float).reshape(2, 4, 4, 3)
    found = block_means(images, 2)
    assert found.shape == (2, 2, 2, 3)
    np.testing.assert_allclose(found[1, 0, 1], images[1, :2, 2:].mean(axis=(0, 1)))
    np.testing.assert_array_equal(block_means(images, 4), images)


@pytest.mark.parametrize("side", [3, 0, -2, 8])
def test_blocks_that_do_not_fit_are_refused(side):
    with pytest.raises(ValueError, match=f"side = {side}: must divide 4"):
        block_means(np.zeros((1, 4, 4, 3)), side)


def test_coarse_images_have_a_mean_square_of_one():
    images = np.random.default_rng(0).normal(size=(3, 32 * 32 * 3))
    found = coarse(images)
    assert found.shape == (3, 8, 8, 3)
    np.testing.assert_allclose(np.mean(found**2, axis=(1, 2, 3)), 1)
