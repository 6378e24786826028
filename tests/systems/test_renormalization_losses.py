"""Corrections of losses to the learning curve, and their exponents."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.kernels.spectrum import Spectrum
from orderparam.systems.renormalization import (
    HuberLoss,
    InteractingRegression,
    loss_correction,
    measured_loss_correction,
)

K = np.arange(1.0, 400_001)
WHOLE = Spectrum(K**-2, K**-2)
DENSITIES = (1e2, 1e3, 1e4, 1e5)
LOSSES = {
    "quartic": {"quartic": 0.01},
    "sextic": {"loss": "z**2 + 0.01*z**6"},
    "cosh": {"loss": "2*log(exp(z) + exp(-z))"},
    "huber": {"loss": HuberLoss()},
}


def corrections(name, densities=DENSITIES):
    return np.array(
        [
            float(
                loss_correction(InteractingRegression(WHOLE, rho, 1.0, **LOSSES[name])).correction
            )
            for rho in densities
        ]
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("quartic", (-6.656009e-3, -2.193194e-3, -7.026222e-4, -2.231038e-4)),
        ("sextic", (-1.125092e-2, -1.218786e-3, -1.240378e-4, -1.245717e-5)),
        ("cosh", (9.868167e-2, 3.496690e-2, 1.153360e-2, 3.700033e-3)),
    ],
)
def test_corrections_of_smooth_losses(name, expected):
    """Values of an independent solution of the gap equation."""
    np.testing.assert_allclose(corrections(name), expected, rtol=2e-6)


@pytest.mark.parametrize(("name", "dimension"), [("quartic", 0.5), ("sextic", 1.0)])
def test_dimensions_of_operators_add(name, dimension):
    first, last = np.abs(corrections(name, (1e4, 1e5)))
    assert np.log10(first / last) == pytest.approx(dimension, abs=0.005)


def test_huber_has_no_power():
    """1 - stiffness is the probability that a deviation lies beyond the kink."""
    found = corrections("huber", (1e2, 1e3, 1e4))
    np.testing.assert_allclose(found[:2], (1.974842e-2, 1.178049e-4), rtol=2e-6)
    assert 0 < found[2] < 1e-10
    huber, q = HuberLoss(), jnp.asarray(0.7)
    assert float(jax.grad(huber.average)(q)) == pytest.approx(float(huber.stiffness(q)), rel=1e-12)
    z, step = np.linspace(-12, 12, 400_001, retstep=True)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * step
    average = float(np.sum(density * np.asarray(huber(jnp.sqrt(q) * z))))
    assert float(huber.average(q)) == pytest.approx(average, rel=1e-9)


def test_the_measured_change_is_paired():
    """On the same examples with the same random numbers the change scatters far less than either
    error."""
    k = np.arange(1.0, 41)
    system = InteractingRegression(Spectrum(k**-2, k**-2), 900, 30.0, quartic=0.1)
    runs = [
        measured_loss_correction(system, jax.random.key(seed), chains=4, samples=100)
        for seed in range(4)
    ]
    change = np.array([float(run.correction) for run in runs])
    own = np.array([float(run.square_deviation) for run in runs])
    assert np.std(change) < 0.5 * np.std(own / own.mean())
    # at this temperature one training set is nearly the average over inputs
    averaged = measured_loss_correction(
        system, jax.random.key(9), examples="averaged", chains=16, samples=400
    )
    error = np.std(change, ddof=1) / 2
    assert error < 0.03 * abs(change.mean())
    assert abs(change.mean() - float(averaged.correction)) < 4 * error
    with pytest.raises(ValueError, match="one of drawn, averaged"):
        measured_loss_correction(system, jax.random.key(0), examples="none")


def test_a_fluctuating_error_adds_to_the_change():
    """Without any training set the change exceeds the theory, which neglects that Q fluctuates; the
    excess falls where more modes share in Q."""
    k, excess = np.arange(1.0, 201), {}
    for decay in (2.0, 1.3):
        spectrum = Spectrum(k**-decay / np.sum(k**-decay), k**-decay / np.sum(k**-decay))
        system = InteractingRegression(spectrum, 900, 30.0, quartic=0.1)
        runs = [
            measured_loss_correction(system, jax.random.key(seed), examples="averaged", chains=8)
            for seed in range(3)
        ]
        change = np.mean([float(run.correction) for run in runs])
        excess[decay] = change / float(loss_correction(system).correction) - 1
    assert 0.02 < excess[2.0] < 0.15
    assert abs(excess[1.3]) < 0.5 * excess[2.0]
