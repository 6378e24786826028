"""A compressed spectrum has the learning curves of the full one."""

import numpy as np
import pytest

from orderparam.kernels import Spectrum, compress
from orderparam.kernels.compression import gathers
from orderparam.kernels.effective_ridge import effective_ridge
from orderparam.systems.kernel_regression import KernelRegression, self_consistent
from orderparam.systems.kernel_regression.spectrum.theory import from_ridge


@pytest.mark.parametrize(("modes", "capacity"), [(3000, 1.2), (100_000, 4.0)])
def test_learning_curves_survive_compression(modes, capacity):
    k = np.arange(1.0, modes + 1)
    full = Spectrum(k**-capacity, k ** (-1 - 0.4 * capacity), tail=1e-9, tail_power=0.01)
    small = compress(full)
    assert len(small.eigenvalues) < 750
    for temperature in (0.0, 1e-6, 1.0):
        for n_train in (0.5, 30.0, modes / 5):
            exact, found = (
                self_consistent(KernelRegression(s, n_train, temperature, 0.1))
                for s in (full, small)
            )
            for name in ("test_error", "train_error", "effective_dimension"):
                np.testing.assert_allclose(
                    getattr(found, name), getattr(exact, name), rtol=1e-11, atol=1e-300
                )


@pytest.mark.parametrize("capacity", [1.2, 3.0, 8.0])
def test_many_levels_are_gathered_without_a_change_of_the_curve(capacity):
    """Also the steepest, which reach too far down to be gathered, and are summed one by one."""
    k = np.arange(1.0, 6001)
    full = Spectrum(k**-capacity, k ** (-1 - 0.4 * capacity), tail=1e-12, tail_power=0.01)
    assert bool(gathers(full)) == (capacity < 7)
    for temperature in (0.0, 1e-6):
        for n_train in (0.5, 30.0, 1200.0):
            system = KernelRegression(full, n_train, temperature, 0.1)
            exact = from_ridge(system, effective_ridge(full, n_train, temperature))
            found = self_consistent(system)
            for name in ("test_error", "train_error", "effective_dimension", "squared_discrepancy"):
                np.testing.assert_allclose(
                    getattr(found, name), getattr(exact, name), rtol=3e-12, atol=1e-300
                )


def test_few_levels_and_null_modes_are_kept():
    spectrum = Spectrum([1.0, 1.0, 0.5, 0.0], [0.3, 0.2, 0.0, 0.1], [1, 2, 5, 7])
    small = compress(spectrum)
    assert float(small.rank) == 8
    np.testing.assert_allclose(
        [small.total, small.total_power], [spectrum.total, spectrum.total_power], rtol=1e-14
    )
    assert float(small.eigenvalues[-1]) == 0
    assert float(small.target_power[-1]) == 0.1
    assert float(compress(Spectrum([0.0, 0.0], [1.0, 2.0])).total_power) == 3
