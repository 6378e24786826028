"""One-pass SGD with power-law random features: theory against features and samples that are
drawn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import orderparam as op
from orderparam.kernels import Spectrum
from orderparam.kernels.spectra import power_law_levels
from orderparam.systems.scaling_laws import (
    ComputeBudget,
    ComputeFrontier,
    PowerLawFeatures,
    SpectralStream,
    compute_exponents,
    compute_optimal,
    deterministic_risk,
    drawn_features,
    frontier_exponents,
    one_pass_sgd,
)
from orderparam.systems.scaling_laws.one_pass import theory
from orderparam.systems.scaling_laws.one_pass.frontier_figure import takeover
from orderparam.systems.scaling_laws.one_pass.theory import late_risk, risk_at

SYSTEM = PowerLawFeatures(
    1.0, 0.3, 400, width=100, learning_rate=0.3, batch_size=2, horizon=1000, records=4
)


@pytest.mark.parametrize("modes", [3, 128, 131, 1000])
def test_levels_with_traced_numbers_are_those_modes(modes):
    spectrum = jax.jit(power_law_levels)(0.8, 1.9, float(modes))
    k = np.arange(1.0, modes + 1)
    assert float(spectrum.total) == pytest.approx(np.sum(k**-0.8), rel=1e-12)
    assert float(spectrum.total_power) == pytest.approx(np.sum(k**-1.9), rel=1e-12)


def test_theory_is_the_mean_over_draws():
    """Up to O(1/d): 2 % allowed at d = 100, and the standard error of 30 draws."""
    expected = deterministic_risk(SYSTEM)
    runs = np.array([drawn_features(SYSTEM, jax.random.key(seed)).risk for seed in range(30)])
    error = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    assert (np.abs(runs.mean(axis=0) - expected.risk) < 3 * error + 0.02 * expected.risk).all()


def test_streams_have_the_exact_mean_of_their_features():
    """One draw of the features, 400 streams of samples."""
    system = SYSTEM.with_(width=10, input_dim=40, horizon=100)
    draw = jax.random.key(0)
    features, _ = jax.random.split(draw)
    exact = drawn_features(system, features)

    def stream(key):
        from orderparam.systems.scaling_laws.one_pass.experiment import Features, _stream

        drawn = Features(system, features)
        steps = system.steps.astype(int)
        return _stream(
            drawn.eigenvalues, drawn.best, drawn.irreducible, system.learning_rate, steps, key, 2
        )

    runs = np.array([stream(jax.random.key(seed)) for seed in range(400)])
    deviation = (runs.mean(axis=0) - exact.risk) / (runs.std(axis=0, ddof=1) / 20)
    assert np.abs(deviation).max() < 4
    assert float(one_pass_sgd(system, draw).irreducible_risk) == pytest.approx(
        float(exact.irreducible_risk)
    )


def test_early_and_late_steps_are_one_curve():
    """The power series and the contour where both hold."""
    numbers = (SYSTEM.spectrum, 100.0, 0.3, 2.0, theory.EARLY - 1)
    assert float(late_risk(*numbers)) == pytest.approx(float(risk_at(*numbers)), rel=1e-8)


def test_before_the_first_step_the_risk_is_the_targets_power():
    assert float(risk_at(SYSTEM.spectrum, 100.0, 0.3, 2.0, 0.0)) == pytest.approx(
        float(SYSTEM.spectrum.total_power), rel=1e-10
    )


def test_a_small_learning_rate_ends_where_the_features_do():
    """gamma -> 0: no noise, and the risk that is left is the irreducible one."""
    curve = deterministic_risk(SYSTEM.with_(learning_rate=1e-4, horizon=1e12))
    assert float(curve.noise) < 5e-4
    assert float(curve.risk[-1]) == pytest.approx(float(curve.limit_risk), rel=1e-6)


@pytest.mark.parametrize("rate", [0.7, 3.0])
def test_an_unstable_learning_rate_is_told(rate):
    curve = deterministic_risk(SYSTEM.with_(learning_rate=rate))
    assert not bool(curve.converged)
    assert np.isnan(np.asarray(curve.risk)).all()
    grown = drawn_features(SYSTEM.with_(learning_rate=rate, horizon=300), jax.random.key(1)).risk
    assert not float(grown[-1]) < 10


def test_any_spectrum_streams():
    """A power law given mode by mode is the same system, in theory and in the experiment."""
    j = jnp.arange(1.0, 401)
    system = SpectralStream(
        Spectrum(j**-2.0, j**-2.6),
        width=100,
        learning_rate=0.3,
        batch_size=2,
        horizon=1000,
        records=4,
    )
    np.testing.assert_allclose(
        deterministic_risk(system).risk, deterministic_risk(SYSTEM).risk, rtol=1e-9
    )
    key = jax.random.key(3)
    np.testing.assert_allclose(
        drawn_features(system, key).risk, drawn_features(SYSTEM, key).risk, rtol=1e-9
    )
    with pytest.raises(ValueError, match="single modes without a tail"):
        drawn_features(system.with_(input_spectrum=Spectrum([1.0], [1.0], [5.0])), key)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: PowerLawFeatures(0.4, 0.05, 100, width=10, learning_rate=0.1),
            "target_exponent = 0.05: must be > 1/2",
        ),
        (
            lambda: ComputeFrontier(1e5, 0.4, 0.05),
            "ComputeFrontier.target_exponent = 0.05: must be > 1/2 - spectral",
        ),
        (
            lambda: PowerLawFeatures(0.4, 0.3, width=10, learning_rate=0.1),
            "input_dim = inf: must be finite",
        ),
        (
            lambda: PowerLawFeatures(1.0, 0.3, 10.5, width=10, learning_rate=0.1),
            "input_dim = 10.5: must be a whole number",
        ),
        (lambda: PowerLawFeatures(1.0, 0.3, width=10, learning_rate=0.0), "learning_rate"),
        (
            lambda: drawn_features(SYSTEM.with_(input_dim=jnp.inf), jax.random.key(0)),
            "input_dim = inf: an experiment needs",
        ),
        (lambda: drawn_features(SYSTEM.with_(input_dim=10**6), jax.random.key(0)), "at most 20000"),
        (
            lambda: drawn_features(SYSTEM.with_(input_dim=20000, width=10000), jax.random.key(0)),
            "width = 10000",
        ),
        (lambda: compute_exponents(0.3, 0.1), "no power law"),
        (lambda: ComputeBudget(1e6, 0.5, 0.3), "spectral_exponent"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_budget_without_an_optimum_inside_has_not_converged():
    assert not bool(compute_optimal(ComputeBudget(1e6, 1.0, 0.3, 3.0)).converged)


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.3), (1.1, 1.3)])
def test_two_searches_for_the_best_width_agree(alpha, beta):
    """A root of the derivative for infinitely many inputs, and minima of quartics for very many, at
    the same learning rate."""
    rate, compute = 0.3, 1e7
    total = float(power_law_levels(2 * alpha, 2.0, 1e9).total)
    frontier = frontier_exponents(
        ComputeFrontier(compute, alpha, beta, inputs_per_feature=1e6, share=rate * total)
    )
    low, middle, high = (
        compute_optimal(ComputeBudget(compute * 10**shift, alpha, beta, rate))
        for shift in (-0.5, 0.0, 0.5)
    )
    assert all(bool(found.converged) for found in (frontier, low, middle, high))
    np.testing.assert_allclose(frontier.width, middle.width, rtol=1e-4)
    np.testing.assert_allclose(frontier.risk, middle.risk, rtol=1e-6)
    np.testing.assert_allclose(frontier.width_exponent, np.log10(high.width / low.width), atol=1e-4)
    np.testing.assert_allclose(frontier.risk_exponent, np.log10(low.risk / high.risk), atol=1e-6)


def test_sweeps():
    data = op.sweep(deterministic_risk, SYSTEM, {"width": [50, 100], "learning_rate": [0.1, 0.2]})
    assert data["risk"].dims == ("width", "learning_rate", "time")
    assert (data["status"] == 1).all()


def test_a_width_takes_over_where_two_power_laws_cross():
    """f^-1/2 + 0.1 against 10 f^-1: the crossing is at 10 f^-1 = f^-1/2 + 0.1, f = 38.2."""
    compute = np.geomspace(1, 1e4, 400)
    flat, steep = (compute, compute**-0.5 + 0.1), (compute, 10 / compute)
    crossing = ((np.sqrt(1 + 4) - 1) / 0.2) ** 2
    assert takeover(flat, steep) == pytest.approx(crossing, rel=1e-4)
    assert np.isnan(takeover(steep, flat))
