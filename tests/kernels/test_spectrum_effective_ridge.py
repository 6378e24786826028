"""The effective ridge: its equation, its derivatives, and the corners where solvers fail."""

from decimal import Decimal, localcontext

import jax
import jax.numpy as jnp
import jax.test_util
import numpy as np
import pytest

from orderparam.kernels.effective_ridge import at_threshold, effective_ridge
from orderparam.kernels.spectra import finite_rank
from orderparam.kernels.spectrum import Spectrum

K = np.arange(1.0, 1001)
POWER_LAW = Spectrum(K**-1.5, K**-2)
solve = jax.jit(effective_ridge)


def exact(spectrum, n_train, temperature):
    """kappa by bisection of its logarithm in 40 digits."""
    eigenvalues = [Decimal(float(x)) for x in spectrum.eigenvalues]
    multiplicities = [Decimal(float(x)) for x in spectrum.multiplicities]
    with localcontext() as context:
        context.prec = 40
        low, high = Decimal(-800), Decimal(800)
        for _ in range(100):
            u = (low + high) / 2
            kappa = u.exp()
            samples = Decimal(temperature) / kappa + sum(
                m * x / (x + kappa) for x, m in zip(eigenvalues, multiplicities)
            )
            low, high = (u, high) if samples > Decimal(n_train) else (low, u)
        return float(low.exp())


STEEP = np.arange(1.0, 61)
HARD = {
    "steep power law, hardly any ridge": (Spectrum(STEEP**-12, STEEP**0), 20.0, 1e-30),
    "exponential, no ridge": (Spectrum(10.0 ** -(5 * STEEP), STEEP**0), 30.0, 0.0),
    "one sample below the rank, no ridge": (Spectrum(STEEP**-4, STEEP**0), 59.0, 0.0),
    "far above the rank, tiny ridge": (Spectrum(STEEP**-2, STEEP**0), 1e4, 1e-200),
    "fraction of a sample": (Spectrum(STEEP**-1.5, STEEP**0), 1e-3, 0.1),
    "huge ridge": (Spectrum(STEEP**-1.5, STEEP**0), 10.0, 1e250),
    "levels of 1e12 modes": (Spectrum([1.0, 1e-9], [1.0, 1.0], [10.0, 1e12]), 1e6, 0.0),
    "null modes": (Spectrum([1.0, 0.5, 0.0], [1.0, 1.0, 1.0]), 1.5, 0.0),
}


@pytest.mark.parametrize("name", HARD)
def test_hard_spectra_to_ten_digits(name):
    spectrum, n_train, temperature = HARD[name]
    found = solve(spectrum, n_train, temperature)
    assert float(found.threshold) == pytest.approx(exact(spectrum, n_train, temperature), rel=1e-10)
    assert found.converged
    assert found.residual < 1e-13


def test_a_steep_spectrum_that_newton_without_a_bracket_gets_wrong():
    spectrum = Spectrum(np.arange(1.0, 3001) ** -4, np.ones(3000))
    assert float(solve(spectrum, 1000.0, 1e-12).threshold) == pytest.approx(1.4732958e-12, rel=5e-8)


def test_samples_are_shared_between_the_modes_and_the_ridge():
    found = solve(POWER_LAW, 50.0, 0.1)
    assert float(found.unused + found.learnability.sum()) == pytest.approx(50, rel=1e-13)
    assert float(found.unused) == pytest.approx(0.1 / float(found.threshold), rel=1e-13)
    assert float(found.spread + found.complement) == pytest.approx(1, rel=1e-13)


def test_derivative_with_respect_to_the_ridge():
    found = solve(POWER_LAW, 50.0, 0.1)
    slope = jax.jit(jax.grad(lambda t: effective_ridge(POWER_LAW, 50.0, t).threshold))(0.1)
    assert float(slope) == pytest.approx(1 / (50 * float(found.complement)), rel=1e-12)


def test_all_derivatives_against_finite_differences():
    def threshold(eigenvalues, n_train, temperature):
        return effective_ridge(Spectrum(eigenvalues, jnp.ones(4)), n_train, temperature).threshold

    at = (jnp.array([1.0, 0.5, 0.1, 0.02]), 2.2, 0.03)
    jax.test_util.check_grads(
        jax.jit(threshold), at, order=1, modes=["rev"], atol=0, rtol=1e-8, eps=1e-6
    )


@pytest.mark.parametrize("n_train", [50.0, 60.0, 1e3])
def test_without_ridge_and_with_samples_to_spare_every_mode_is_fixed(n_train):
    found = solve(finite_rank(50, 0.02), n_train, 0.0)
    assert float(found.threshold) == 0
    assert found.learnability.tolist() == [1]
    assert float(found.unused) == n_train - 50
    assert float(found.complement) == pytest.approx(1 - 50 / n_train, rel=1e-13)
    assert found.converged


def test_the_limit_of_vanishing_ridge_is_the_ridgeless_solution():
    for n_train in (30.0, 80.0):
        limit, ridgeless = (
            solve(finite_rank(50, 0.02), n_train, 1e-14),
            solve(finite_rank(50, 0.02), n_train, 0.0),
        )
        for name in ("threshold", "learnability", "unused", "complement"):
            np.testing.assert_allclose(getattr(limit, name), getattr(ridgeless, name), atol=1e-10)


def test_derivatives_survive_in_the_ridgeless_corner():
    def threshold(n_train, temperature):
        return effective_ridge(finite_rank(50, 0.02), n_train, temperature).threshold

    gradient = jax.jit(jax.grad(threshold, (0, 1)))
    slopes = gradient(80.0, 0.0)
    assert [float(slope) for slope in slopes] == pytest.approx([0, 1 / 30])
    slopes = gradient(30.0, 0.0)
    # kappa = lambda (r - P)/P, and dkappa/dT = 1/(P (1 - P/r))
    assert [float(slope) for slope in slopes] == pytest.approx(
        [-0.02 * 50 / 900, 1 / (30 * 0.4)], rel=1e-12
    )


def test_one_level_is_the_solution_of_a_quadratic():
    rank, eigenvalue, n_train, temperature = 50, 0.02, 40.0, 0.1
    q = n_train * eigenvalue - rank * eigenvalue - temperature
    exact_value = (-q + np.sqrt(q**2 + 4 * n_train * temperature * eigenvalue)) / (2 * n_train)
    found = solve(finite_rank(rank, eigenvalue), n_train, temperature)
    assert float(found.threshold) == pytest.approx(exact_value, rel=1e-13)


def test_a_batch_over_samples_and_ridges():
    n_train, temperature = (
        jnp.array([1.0, 20.0, 400.0, 1000.0, 5000.0]),
        jnp.array([0.0, 1e-6, 3.0]),
    )
    batch = jax.jit(
        jax.vmap(jax.vmap(effective_ridge, in_axes=(None, None, 0)), in_axes=(None, 0, None))
    )(POWER_LAW, n_train, temperature)
    assert batch.converged.all()
    for i, p in enumerate(n_train):
        for j, t in enumerate(temperature):
            one = solve(POWER_LAW, p, t)
            np.testing.assert_allclose(batch.threshold[i, j], one.threshold, rtol=1e-12)


def test_the_ridge_that_belongs_to_a_threshold():
    solved = solve(POWER_LAW, 50.0, 0.1)
    back = at_threshold(POWER_LAW, 50.0, solved.threshold)
    assert float(back.threshold * back.unused) == pytest.approx(0.1, rel=1e-12)
