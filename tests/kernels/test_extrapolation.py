"""A learning curve continued beyond its measured part: against the exact theory of the spectrum it
came from."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.kernels import Spectrum, power_law
from orderparam.kernels.extrapolation import Tabulated, extrapolate
from orderparam.systems.kernel_regression import KernelRegression, self_consistent


def exact(spectrum, sizes, ridge, noise=0.0):
    system = KernelRegression(spectrum, 1.0, ridge, noise)
    curve = jax.vmap(lambda n: self_consistent(system.with_(n_train=n)))(jnp.asarray(sizes, float))
    return np.asarray(curve.test_error) + noise


def pool(capacity, decay, modes, population=1_000_000):
    """A pool's view of k^-capacity: its first modes are those of the population, the trace of all
    others is spread over the last as a finite pool has it; and the power of the target on them."""
    k = np.arange(1.0, modes + 1)
    values = k**-capacity
    beyond = np.sum(np.arange(modes + 1.0, population) ** -capacity)
    values[modes // 2 :] += beyond / (modes - modes // 2)
    return np.sort(values)[::-1], k**-decay


@pytest.mark.parametrize("ridge", [1e-6, 1e-2, 1.0])
def test_the_table_is_the_theory_of_its_spectrum(ridge):
    """All modes are resolved here: no continuation."""
    k = np.arange(1.0, 301)
    values, power = k**-1.5, k**-2.0
    theory = Tabulated(values, 600, ridge)
    assert theory.capacity == np.inf
    sizes = np.array([5.0, 20.0, 80.0, 200.0])
    found = theory.at(sizes, theory.unlearned @ power)
    # between 400 thresholds
    assert np.allclose(found, exact(Spectrum(values, power), sizes, ridge), rtol=2e-3)


def test_a_power_law_without_noise_goes_on():
    """Measured up to 360, predicted at 3600: the exact error of the population is within the
    spread, which is some per cent."""
    spectrum = power_law(1.5, 1 / 3)
    values, power = pool(1.5, 2.0, 400)
    sizes = np.unique(np.geomspace(8, 360, 14).astype(int)).astype(float)
    ahead = np.array([720.0, 3600.0])
    error = exact(spectrum, np.append(sizes, ahead), 1e-4)
    law = extrapolate(values, power, 1e-4, sizes, error[: len(sizes)], ahead)
    wrong = law.log_change - np.log(error[len(sizes) :] / error[len(sizes) - 1])
    assert np.all(np.abs(wrong) < 2 * law.spread)
    assert np.all(law.spread < np.array([0.2, 0.6]))
    assert law.floor_interval[0] == 0  # nothing tells that there is a floor


def test_a_curve_that_has_reached_its_floor_stays_there():
    """A floor, or a power law so slow that it makes no difference: which of the two is not known,
    and not asserted."""
    spectrum = power_law(2.5, 1.0)
    values, power = pool(2.5, 6.0, 400)
    sizes = np.unique(np.geomspace(8, 360, 14).astype(int)).astype(float)
    ahead = np.array([3600.0])
    error = exact(spectrum, np.append(sizes, ahead), 0.3, noise=0.3)
    law = extrapolate(values, power + 0.3 / 400, 0.3, sizes, error[: len(sizes)], ahead)
    assert abs(law.log_change[0] - np.log(error[-1] / error[-2])) < 0.1
    assert law.spread[0] < 0.2
    assert law.floor_interval[1] > 0.9


def test_what_the_theory_does_not_explain_widens_the_interval():
    values, power = pool(1.5, 2.0, 400)
    sizes = np.unique(np.geomspace(8, 360, 14).astype(int)).astype(float)
    smooth = exact(power_law(1.5, 1 / 3), sizes, 1e-4)
    rough = smooth * np.exp(0.3 * np.random.default_rng(0).normal(size=len(sizes)))
    ahead = np.array([3600.0])
    spread = [
        extrapolate(values, power, 1e-4, sizes, error, ahead).spread[0] for error in (smooth, rough)
    ]
    assert spread[1] > 2 * spread[0]


def test_a_kernel_of_ten_modes_ends_where_least_squares_ends():
    """Ten features, hardly a ridge, noise 1: s2 (1 + p/(n - p - 1)) exactly."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 10))
    y = 0.3 * x @ rng.normal(size=10) + rng.normal(size=400)
    values, vectors = np.linalg.eigh(x.T @ x)
    values, along = values[::-1], ((x @ vectors[:, ::-1]).T @ y) ** 2
    sizes, ahead = np.array([12.0, 25, 50, 100, 200]), np.array([400.0, 4000.0])
    law = extrapolate(
        values / 400, along / values / 400, 1e-3, sizes, 1 + 10 / (sizes - 11), ahead, 400
    )
    assert np.allclose(np.exp(law.log_change) * (1 + 10 / 189), 1 + 10 / (ahead - 11), rtol=2e-3)
    assert law.floor == pytest.approx(189 / 199, rel=2e-3)
    assert law.floor_interval[0] == pytest.approx(law.floor)
