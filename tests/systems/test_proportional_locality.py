"""When networks without weight sharing gain from a finite number of channels."""

import numpy as np
import pytest

from orderparam.systems.proportional import LocallyConnected, finite_width, infinite_width
from orderparam.systems.proportional.model import patch_teacher
from orderparam.systems.proportional.studies_locality import uneven_teacher, used_patches


@pytest.mark.parametrize(("others", "name"), [(0.0, "one"), (1.0, "shared")])
def test_the_uneven_teacher_ends_at_the_known_ones(others, name):
    found, reference = uneven_teacher(others, 20, 10), patch_teacher(name, 20, 10)
    for field in ("inputs", "targets", "test_targets"):
        np.testing.assert_allclose(found[field], reference[field], rtol=1e-12, atol=1e-13)


def test_the_uneven_teacher_has_unit_power():
    power = np.mean(np.asarray(uneven_teacher(0.4, 20_000, 1)["targets"]) ** 2)
    np.testing.assert_allclose(power, 1, rtol=0.03)


def test_participation_counts_equal_patches():
    assert used_patches(0.0) == 1
    assert used_patches(1.0) == 4
    assert 1 < used_patches(0.3) < used_patches(0.6) < 4


def _network(others):
    fields = uneven_teacher(others, 60, 200)
    return LocallyConnected(**fields, channels=20, mask=10, temperature=0.05)


def test_few_patches_gain_from_a_finite_width_and_equal_ones_lose():
    ratios, scales = [], []
    for others in (0.0, 1.0):
        system = _network(others)
        finite = finite_width(system)
        ratios.append(float(finite.test_error / infinite_width(system).test_error))
        order = np.asarray(finite.order_parameters)[0, :, 0, :, 0]
        scales.append(np.diagonal(order))
    assert ratios[0] < 0.9 < 1 < ratios[1]
    # one patch is enlarged and the others shrink; equal patches change alike
    assert scales[0][0] > 1.5 > 1 > scales[0][1:].max()
    assert np.ptp(scales[1]) < 0.15


def test_the_scales_of_the_patches_change_in_proportion_to_the_inverse_width():
    """Q_i = 1 + (B_i - G_i)/N, B_i = y A K_i A y and G_i = tr(A K_i) with A = (K + T)^-1 and the
    kernels K_i of the patches at infinite width, of erf units."""
    system = _network(0.3).with_(channels=1e5)
    finite = finite_width(system)
    wide = finite_width(system.with_(channels=2e5))
    first = [
        np.diagonal(np.asarray(one.order_parameters)[0, :, 0, :, 0]) - 1 for one in (finite, wide)
    ]
    np.testing.assert_allclose(first[0], 2 * first[1], rtol=5e-3)
    x = np.asarray(system.inputs).reshape(60, 4, 10)
    gram = np.einsum("mia,nia->imn", x, x) / 10
    size = 1 + 2 * np.einsum("imm->im", gram)
    kernels = 2 / np.pi * np.arcsin(2 * gram / np.sqrt(size[:, :, None] * size[:, None, :])) / 4
    inverse = np.linalg.inv(kernels.sum(axis=0) + 0.05 * np.eye(60))
    dual = inverse @ np.ravel(system.targets)
    drive = np.einsum("m,imn,n->i", dual, kernels, dual) - np.einsum("mn,imn->i", inverse, kernels)
    np.testing.assert_allclose(1e5 * first[0], drive, rtol=5e-3)
