"""Kernels in NumPy: the matrices are those of the architectures, and a forecast needs no JAX."""

import subprocess
import sys

import numpy as np
import pytest

from orderparam.kernels.on_host import ENTRIES, named
from orderparam.networks import parse

ACCURACY = 4e-15  # relative to the largest entry


def inputs(rows: int, columns: int = 7) -> np.ndarray:
    """Random rows, and rows at which the angle is 0 or pi or has no meaning."""
    x = np.random.default_rng(0).normal(size=(rows, columns))
    x[1], x[2], x[3], x[4], x[5] = x[0], -x[0], 2 * x[0], 0, x[0] * (1 + 1e-9)
    return x


@pytest.mark.parametrize("activation", ["relu", "erf"])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_kernel_is_that_of_the_architecture(activation, depth):
    arch = f"fc:{depth}:{activation}"
    x, y = inputs(60), np.concatenate([inputs(20)[:6], np.ones((3, 7))])
    kernel, expected = named(arch), parse(arch).nngp
    for second in (None, y):
        found = kernel(x, second)
        right = np.asarray(expected(x, second))
        assert np.abs(found - right).max() < ACCURACY * np.abs(right).max()


@pytest.mark.parametrize("activation", ["relu", "erf"])
def test_kernel_of_many_rows_is_made_in_blocks_and_symmetric(activation):
    x = inputs(ENTRIES // 100)
    kernel = named(f"fc:2:{activation}")
    whole = kernel(x, None)
    assert np.array_equal(whole, whole.T)
    few = kernel(x[::50], None)
    np.testing.assert_allclose(whole[::50, ::50], few, rtol=0, atol=1e-14)
    np.testing.assert_allclose(kernel(x[::50], x), whole[::50], rtol=0, atol=1e-14)


@pytest.mark.parametrize("kind", [np.float32, np.int64, bool])
def test_inputs_of_every_kind_have_a_kernel_in_double_precision(kind):
    x = (2 * inputs(20)).astype(kind)
    kernel = named("fc:2:relu")
    for second in (None, x[:6]):
        found = kernel(x, second)
        assert found.dtype == np.float64
        other = None if second is None else second.astype(float)
        assert np.array_equal(found, kernel(x.astype(float), other))


@pytest.mark.parametrize("arch", ["fc:2x100:relu", "fc:2:tanh", "fc:0:relu", "relu", "fc:2:relu:"])
def test_other_names_have_no_kernel_here(arch):
    assert named(arch) is None


def test_forecast_of_a_small_table_imports_no_jax():
    program = """if True:
    import sys
    import numpy as np
    import orderparam as op
    x = np.random.default_rng(0).normal(size=(60, 5))
    found = op.forecast(x, x[:, 0] + np.sin(x[:, 1]))
    assert np.isfinite(found.at(120)).all()
    assert found.sentence()
    print(sorted({"jax", "equinox"} & set(sys.modules)))
    """
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"
