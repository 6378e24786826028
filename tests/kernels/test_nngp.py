"""Facts about infinite-width kernel matrices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.networks.fully_connected import fully_connected

RELU = fully_connected(2, None, "relu", 2.0, 0.1)
ERF = fully_connected(2, None, "erf", 1.5, 0.05)


@pytest.fixture(scope="module")
def points():
    return jax.random.normal(jax.random.key(1), (30, 5))


@pytest.mark.parametrize("architecture", [RELU, ERF])
def test_kernels_are_symmetric_positive_and_carry_their_diagonal(architecture, points):
    # repeated inputs: singular, but never negative beyond rounding
    doubled = jnp.concatenate([points, points])
    kernels = architecture.kernel(doubled)
    for matrix, diagonal in [
        (kernels.nngp, kernels.nngp_diagonal),
        (kernels.ntk, kernels.ntk_diagonal),
    ]:
        assert (matrix == matrix.T).all()
        assert (jnp.diagonal(matrix) == diagonal).all()
        assert jnp.linalg.eigvalsh(matrix)[0] > -1e-7 * jnp.linalg.eigvalsh(matrix)[-1]


def test_relu_at_the_edge_of_chaos_keeps_its_variance(points):
    """For weight variance 2 and no bias K(x, x) = 2 |x|^2 / d at every depth, and Theta(x, x) =
    (depth + 1) K(x, x)."""
    for depth in (1, 4):
        kernels = fully_connected(depth, None, "relu", 2.0).kernel(points)
        norm = 2 * jnp.sum(points**2, axis=1) / 5
        np.testing.assert_allclose(kernels.nngp_diagonal, norm, rtol=1e-14)
        np.testing.assert_allclose(kernels.ntk_diagonal, (depth + 1) * norm, rtol=1e-14)


def test_rows_in_batches_equal_the_whole(points):
    whole, parts = ERF.kernel(points), ERF.kernel(points, row_batch=7)
    for one, other in zip(jax.tree.leaves(whole), jax.tree.leaves(parts)):
        np.testing.assert_allclose(one, other, rtol=1e-13)
    np.testing.assert_allclose(
        ERF.nngp(points[:4], points, row_batch=3), whole.nngp[:4], rtol=1e-12
    )
    cross = ERF.kernel(points[:4], points)
    np.testing.assert_allclose(cross.ntk_diagonal, whole.ntk_diagonal[:4], rtol=1e-14)
    assert (parts.ntk == parts.ntk.T).all()
    assert (jnp.diagonal(parts.ntk) == parts.ntk_diagonal).all()


@pytest.mark.parametrize("rows", [1, 2, 16, 17, 33])
def test_a_matrix_with_itself_is_that_with_a_copy(rows):
    """One tile up to 16 rows; more above, of which the last may be filled up."""
    points = np.random.default_rng(2).normal(size=(rows, 5))
    own, other = RELU.kernel(points), RELU.kernel(points, points.copy())
    for name in ("nngp", "ntk"):
        matrix = np.asarray(getattr(own, name))
        np.testing.assert_allclose(matrix, getattr(other, name), rtol=1e-12, atol=1e-15)
        assert np.array_equal(matrix, matrix.T)
        assert np.array_equal(np.diag(matrix), getattr(own, f"{name}_diagonal"))


def test_gradient_passes_through_tiles(points):
    def total(row_batch):
        return jax.grad(lambda x: jnp.sum(jnp.sin(ERF.nngp(x, row_batch=row_batch))))(points[:5])

    np.testing.assert_allclose(total(2), total(5), rtol=1e-11)


@pytest.mark.parametrize("architecture", [RELU, ERF])
def test_gradient_is_finite_and_right_at_coincident_inputs(architecture, points):
    x, step = points[0], 1e-5 * jnp.eye(5)

    @jax.jit
    def variance(x):
        return architecture.nngp(x[None])[0, 0]

    def entry(x, z):
        kernels = architecture.kernel(x[None], z[None])
        return kernels.nngp[0, 0], kernels.ntk[0, 0]

    finite = jnp.array([(variance(x + e) - variance(x - e)) / 2e-5 for e in step])
    np.testing.assert_allclose(jax.grad(variance)(x), finite, rtol=1e-8)
    (nngp_x, nngp_z), (ntk_x, ntk_z) = jax.jit(jax.jacrev(entry, argnums=(0, 1)))(x, x)
    np.testing.assert_allclose(nngp_x, finite / 2, rtol=1e-8)
    np.testing.assert_allclose(nngp_z, finite / 2, rtol=1e-8)
    assert jnp.isfinite(ntk_x).all()
    assert jnp.isfinite(ntk_z).all()


def test_sign_has_an_nngp_kernel_and_no_tangent_kernel(points):
    architecture = fully_connected(1, None, "sign")
    assert jnp.isfinite(architecture.nngp(points)).all()
    np.testing.assert_allclose(jnp.diagonal(architecture.nngp(points)), 1.0, rtol=1e-15)
