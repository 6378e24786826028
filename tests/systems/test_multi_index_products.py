"""Products of powers of more than four indices: the closed forms are those of the rules for any
target where both exist."""

import numpy as np
import pytest

from orderparam.gaussian.target import target
from orderparam.systems.multi_index import exponents, threshold
from orderparam.systems.multi_index.exponents import _of_product


@pytest.mark.parametrize("formula", ["-3*z1*z2*z3", "z1**2*z2", "z1**2*z2**2", "z1**3*z2*z3**2"])
def test_the_closed_form_is_the_general_rule(formula):
    general, closed = exponents(formula, highest=5), _of_product(target(formula), 5)
    for name in ("information", "leap", "generative", "generative_leap", "stages", "degree"):
        assert getattr(closed, name) == getattr(general, name), name
    np.testing.assert_allclose(closed.hermite, general.hermite, atol=1e-9)
    np.testing.assert_allclose(closed.label_power, general.label_power, atol=1e-12)
    np.testing.assert_allclose(closed.threshold, general.threshold, rtol=1e-12)
    for (order, count, ratio), (other, number, wanted) in zip(
        closed.generative_stages, general.generative_stages, strict=True
    ):
        assert (order, count) == (other, number)
        assert ratio == pytest.approx(wanted, rel=1e-8)


@pytest.mark.parametrize("size", [5, 6])
def test_a_product_of_many(size):
    """Known of z1 ... zr: SGD needs the degree r, the best algorithm moments of order 2."""
    found = exponents("*".join(f"z{place + 1}" for place in range(size)))
    assert (found.information, found.leap, found.degree) == (size, size, size)
    assert found.stages == ((size, size),)
    assert (found.generative, found.generative_leap) == (2, 2)
    assert found.hermite[size] == pytest.approx(1.0)
    assert found.row()["one-pass SGD"] == f"d^{size - 1}"
    fewer = exponents("*".join(f"z{place + 1}" for place in range(size - 1)))
    assert found.threshold > fewer.threshold  # more factors hide each other better


def test_the_operator_of_a_product_of_five_by_sampling():
    """G = E[z z^T - 1 | y] is diagonal for r > 2, so that X -> E[G X G] multiplies X_ij by E G_ii
    G_jj, which is largest for i = j."""
    rng, size = np.random.default_rng(0), 5
    z = rng.standard_normal((2_000_000, size))
    order = np.argsort(np.prod(z, axis=1))
    found = exponents("z1*z2*z3*z4*z5", highest=3)
    halves = (z[order] ** 2 - 1).reshape(-1, 2000, size)
    one, other = halves[:, ::2].mean(axis=1), halves[:, 1::2].mean(axis=1)
    sampled = np.mean(one * other)
    assert found.label_eigenvalues[1] == pytest.approx(sampled, rel=0.01)


def test_powers_that_differ_are_found_one_after_the_other():
    found = exponents("z1**2*z2*z3*z4*z5")
    assert found.leap == 4
    assert found.stages == ((4, 4), (2, 1))
    assert found.generative_leap == 2
    assert threshold("z1**2*z2*z3*z4*z5").sample_ratio == pytest.approx(found.threshold, rel=1e-9)
    as_function = exponents(lambda z: -2 * z[..., 0] ** 2 * z[..., 1:].prod(-1), 5)
    assert as_function.threshold == pytest.approx(found.threshold, rel=1e-12)


def test_what_is_no_product_is_refused_with_what_is_possible():
    with pytest.raises(ValueError, match=r"has 5 indices; more than 4, up to 6, only in a product"):
        exponents("z1*z2*z3*z4 + z5")
    with pytest.raises(ValueError, match="z7 is beyond z4, the last variable, and beyond z6"):
        threshold("z1*z2*z3*z4*z5*z6*z7")
    with pytest.raises(ValueError, match="from 1 to 4"):
        exponents(lambda z: z.prod(-1), 7)
