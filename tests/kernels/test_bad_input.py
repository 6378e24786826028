"""Kernel matrices, targets and inputs as users bring them: what is wrong is refused by name, what
is odd but legal works."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from orderparam.kernels import Spectrum, condition, diagonalise, gp_posterior
from orderparam.networks import fully_connected
from orderparam.systems.kernel_regression import PoolRegression

SIZE = 6  # one size, so that everything is compiled once
RELU = fully_connected(2, None, "relu")

ENTRY_POINTS = {
    "spectrum of a pool": lambda kernel, targets: Spectrum.from_pool(kernel, targets).eigenvalues,
    "regression on a pool": lambda kernel, targets: (
        PoolRegression.from_kernel(kernel, targets, 2, 0.1).kernel
    ),
    "conditioning": lambda kernel, targets: condition(kernel, targets, 0.1).fitted,
    "posterior": lambda kernel, targets: (
        gp_posterior(kernel, kernel, np.ones(SIZE), targets, 0.1).mean
    ),
    "eigenbasis": lambda kernel, targets: diagonalise(kernel, targets).eigenvalues,
}
everywhere = pytest.mark.parametrize("use", ENTRY_POINTS.values(), ids=ENTRY_POINTS)
seeds = st.integers(0, 10**6)
few = settings(max_examples=15, deadline=None)


def problem(seed, rank=2 * SIZE):
    random = np.random.default_rng(seed)
    features = random.normal(size=(SIZE, rank))
    return features @ features.T, random.normal(size=SIZE)


@everywhere
@few
@given(seeds, st.sampled_from([np.nan, np.inf, -np.inf]), st.integers(0, SIZE - 1), st.booleans())
def test_numbers_that_are_not_finite_are_refused(use, seed, bad, where, in_kernel):
    kernel, targets = problem(seed)
    if in_kernel:
        kernel[where, 0] = kernel[0, where] = bad
    else:
        targets[where] = bad
    with pytest.raises(
        ValueError, match="kernel.* contains NaN" if in_kernel else "targets contains NaN"
    ):
        use(kernel, targets)


@everywhere
@few
@given(st.lists(st.integers(0, 4), max_size=3), st.lists(st.integers(0, 4), max_size=3))
def test_shapes_that_do_not_belong_together_are_refused(use, kernel_shape, target_shape):
    fits = (
        len(kernel_shape) == 2
        and kernel_shape[0] == kernel_shape[1] > 0
        and target_shape == kernel_shape[:1]
    )
    assume(not fits)  # as 1 x 1 does to one row of SIZE outputs
    kernel, targets = np.ones(kernel_shape), np.ones([*target_shape, SIZE])
    with pytest.raises(ValueError, match="shape"):
        use(kernel, targets)


@everywhere
@few
@given(seeds, st.floats(0.01, 10))
def test_a_matrix_that_is_no_kernel_is_refused(use, seed, depth):
    kernel, targets = problem(seed)
    values, vectors = np.linalg.eigh(kernel)
    values[0] = -0.2 - depth * values[-1]
    negative = (vectors * values) @ vectors.T
    with pytest.raises(ValueError, match=r"eigenvalue|not positive definite"):
        use((negative + negative.T) / 2, targets)
    lopsided = kernel.copy()
    lopsided[0, 1] += depth
    with pytest.raises(ValueError, match="transpose"):
        use(lopsided, targets)


@everywhere
@few
@given(seeds, st.integers(1, SIZE - 1))
def test_zero_rows_and_repeated_rows_are_legal_at_a_positive_temperature(use, seed, count):
    kernel, targets = problem(seed)
    keep = np.arange(SIZE) >= count
    assert np.all(np.isfinite(use(kernel * keep[:, None] * keep, targets)))
    repeated = np.maximum(np.arange(SIZE) - count, 0)
    assert np.all(np.isfinite(use(kernel[np.ix_(repeated, repeated)], targets)))


@few
@given(seeds, st.integers(1, SIZE - 1))
def test_zero_rows_and_repeated_rows_at_zero_temperature_are_refused(seed, count):
    kernel, targets = problem(seed)
    keep = np.arange(SIZE) >= count
    repeated = np.maximum(np.arange(SIZE) - count, 0)
    with pytest.raises(ValueError, match="not positive definite"):
        condition(kernel * keep[:, None] * keep, targets, 0.0)
    with pytest.raises(ValueError, match="training points 0 and 1 are the same input"):
        condition(kernel[np.ix_(repeated, repeated)], targets, 0.0)


@few
@given(seeds, st.integers(1, SIZE - 1))
def test_the_rank_of_a_pool_counts_different_inputs(seed, count):
    kernel, targets = problem(seed)
    repeated = np.maximum(np.arange(SIZE) - count, 0)
    eigenvalues = np.asarray(
        Spectrum.from_pool(kernel[np.ix_(repeated, repeated)], targets).eigenvalues
    )
    assert np.sum(eigenvalues > 1e-12 * eigenvalues[0]) == SIZE - count


@everywhere
@few
@given(seeds)
def test_single_precision_is_computed_in_double(use, seed):
    kernel, targets = problem(seed)
    single = use(kernel.astype(np.float32), targets.astype(np.float32))
    assert single.dtype == jnp.float64
    double = use(kernel.astype(np.float32).astype(float), targets.astype(np.float32).astype(float))
    np.testing.assert_array_equal(single, double)


@few
@given(seeds, st.integers(0, SIZE - 1), st.integers(0, SIZE - 1))
def test_network_kernels_of_odd_inputs(seed, zero, same):
    """A zero input, two equal ones, and single precision: finite, positive semi-definite, with
    finite derivatives."""
    inputs = np.random.default_rng(seed).normal(size=(SIZE, 3))
    inputs[same] = inputs[0]
    inputs[zero] = 0.0
    kernels = RELU.kernel(inputs)
    for matrix in (kernels.nngp, kernels.ntk):
        assert np.all(np.isfinite(matrix))
        assert np.linalg.eigvalsh(matrix)[0] > -1e-7 * np.linalg.eigvalsh(matrix)[-1]
    assert not np.any(np.asarray(kernels.nngp)[zero])
    gradient = jax.grad(lambda x: jnp.sum(jnp.sin(RELU.nngp(x))))(jnp.asarray(inputs))
    assert np.all(np.isfinite(gradient))
    single = RELU.nngp(inputs.astype(np.float32))
    assert single.dtype == jnp.float64
    np.testing.assert_allclose(single, kernels.nngp, atol=1e-5)


@few
@given(
    st.sampled_from([np.nan, np.inf, -np.inf]),
    st.integers(0, SIZE - 1),
    st.lists(st.integers(0, 3), max_size=3),
)
def test_network_kernels_refuse_bad_inputs(bad, where, shape):
    inputs = np.ones((SIZE, 3))
    inputs[where, 1] = bad
    for kernel in (RELU.nngp, RELU.kernel):
        with pytest.raises(ValueError, match="x1 contains NaN or infinity"):
            kernel(inputs)
    other = np.ones(shape)
    if other.ndim != 2 or other.shape[1] != 3 or 0 in other.shape:
        with pytest.raises(ValueError, match="shape"):
            RELU.nngp(np.ones((SIZE, 3)), other)


@pytest.mark.parametrize("form", [np.asarray, jnp.asarray, np.ndarray.tolist])
def test_network_kernels_refuse_complex_inputs(form):
    inputs = form(np.ones((SIZE, 3)) + 1j)
    for kernel in (RELU.nngp, RELU.kernel, RELU.variance):
        with pytest.raises(ValueError, match=r"x1? holds complex numbers"):
            kernel(inputs)
    with pytest.raises(ValueError, match="x2 holds complex numbers"):
        RELU.nngp(np.ones((SIZE, 3)), inputs)
