"""Facts about linear networks of any depth: the closed form beside the general solver, the exact
averages beside the prior itself, limits, sampled networks, and bad input."""

import jax
import numpy as np
import pytest

from orderparam.systems.proportional import (
    FullyConnected,
    finite_width,
    integrated_width,
    linear_layers,
    sampled_layers,
    similarity,
    zero_temperature_layers,
)
from orderparam.systems.proportional.deep_linear.studies import linear_teacher


def network(signal=1.0, n_train=12, input_dim=20, **options):
    given = {"width": 9.0, "temperature": 0.1, "depth": 2} | options
    return linear_teacher(signal, n_train, input_dim, 10, **given)


@pytest.mark.parametrize("signal", [0.1, 3.0])
@pytest.mark.parametrize("widths", [[9.0], [30.0], [9.0, 9.0], [7.0, 30.0, 15.0]])
def test_closed_form_is_the_general_solution_at_zero_temperature(widths, signal):
    system = network(signal, width=widths, depth=len(widths), temperature=0.0)
    found, general = zero_temperature_layers(system), finite_width(system, closure="common")
    parameters = np.asarray(general.order_parameters).ravel()
    assert found.scales == pytest.approx(np.cumprod(parameters[::-1])[::-1], rel=1e-8)
    for name in ("test_bias", "test_variance", "test_error"):
        assert getattr(found, name) == pytest.approx(float(getattr(general, name)), rel=1e-8)


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_equal_widths_solve_the_polynomial_of_li_and_sompolinsky(depth):
    system = network(depth=depth)
    x, y = (np.asarray(part) for part in system.train)
    fit = float(y[:, 0] @ np.linalg.solve(x @ x.T / x.shape[1], y[:, 0])) / len(y)
    ratio = len(y) / 9
    roots = np.roots([1, ratio - 1, *[0] * (depth - 1), -ratio * fit])
    (u,) = (root.real for root in roots if abs(root.imag) < 1e-9 and root.real > 0)
    assert zero_temperature_layers(system).scales == pytest.approx(
        u ** np.arange(depth, 0, -1), rel=1e-8
    )


def test_variances_of_the_prior_enter_the_fit_alone():
    """Prior variances v multiply K, so that r_0 is divided by their product."""
    scaled = network(0.5, readout_variance=0.4, weight_variance=[2.0, 0.5])
    plain = np.asarray(zero_temperature_layers(network(0.5 / np.sqrt(0.4))).scales)
    assert zero_temperature_layers(scaled).scales == pytest.approx(plain, rel=1e-10)


def test_mean_prediction_does_not_depend_on_the_width_at_zero_temperature():
    narrow, wide = (zero_temperature_layers(network(width=width)) for width in (5.0, 500.0))
    assert narrow.test_bias == pytest.approx(float(wide.test_bias), rel=1e-12)
    assert narrow.test_variance / narrow.scales[0] == pytest.approx(
        float(wide.test_variance / wide.scales[0]), rel=1e-10
    )


def test_exact_layers_have_the_predictions_of_the_integral_over_the_scale():
    system = network(width=[4.0, 9.0])
    layers, whole = linear_layers(system), integrated_width(system)
    assert layers.scales[0] == pytest.approx(float(whole.scale), rel=1e-10)
    assert layers.test_error == pytest.approx(float(whole.test_error), rel=1e-10)


def test_exact_layers_are_averages_over_the_weighted_prior():
    """Networks from the prior with the weight of their likelihood, and no theory."""
    system = network(1.5, n_train=2, input_dim=3, width=[3.0, 4.0], temperature=0.5)
    x, y = (np.asarray(part) for part in system.train)
    y = y[:, 0]
    random, blocks = np.random.default_rng(0), []
    for _ in range(10):
        first, second, readout = (
            random.standard_normal((40_000, *shape)) for shape in ((3, 3), (4, 3), (4,))
        )
        one = np.einsum("nij,mj->nim", first, x) / np.sqrt(3)
        two = np.einsum("nij,njm->nim", second, one) / np.sqrt(3)
        f = np.einsum("ni,nim->nm", readout, two) / 2
        weight = np.exp(-np.sum((f - y) ** 2, axis=1) / 2 / 0.5)
        last = np.sum(readout**2, axis=1) / 4
        whole = np.sum(np.einsum("nij,ni->nj", second, readout) ** 2, axis=1) / 12
        kernels = [np.einsum("nim,m->ni", h, y) for h in (one, two)]
        rows = [
            whole,
            last,
            *(np.sum(h**2, axis=1) / h.shape[1] for h in kernels),
            *(np.sum(h**2, axis=(1, 2)) / h.shape[1] for h in (one, two)),
        ]
        blocks.append([weight @ row / weight.sum() for row in rows])
    mean, error = np.mean(blocks, axis=0), np.std(blocks, axis=0, ddof=1) / np.sqrt(10)
    exact, kernel = linear_layers(system), x @ x.T / 3
    on_target, trace = y @ kernel @ y, np.trace(kernel)
    expected = np.concatenate([exact.scales, exact.on_target * on_target, exact.trace * trace])
    assert np.max(error / mean) < 0.01
    assert np.max(np.abs(mean - expected) / error) < 4.8  # 3 deviations of Student's t, 9


def test_first_order_in_one_over_width_is_the_similarity_of_gaussian_units():
    """N (<K_1> - K) of the exact average, against the response of Gaussian units."""
    system = network(width=1e6, depth=1)
    y = np.asarray(system.train[1])[:, 0]
    moved = similarity(system, units="gaussian")
    change = y @ np.asarray(moved.posterior - moved.prior) @ y / (y @ np.asarray(moved.prior) @ y)
    assert linear_layers(system).on_target[0] - 1 == pytest.approx(change, rel=1e-4)


def test_wide_networks_keep_their_kernels():
    found = linear_layers(network(width=1e8))
    for values in (found.scales, found.on_target, found.trace):
        assert values == pytest.approx(np.ones(2), abs=1e-5)


def test_wide_networks_that_adapt_strongly_have_the_scale_of_the_saddle_point():
    """In mean-field scaling the scale keeps its distance from one, and becomes sharp."""
    system = network(width=1e5, depth=1, readout_variance=2e-4, temperature=2e-5)
    expected = float(np.ravel(finite_width(system, closure="common").order_parameters)[0])
    assert expected > 1.1
    assert integrated_width(system).scale == pytest.approx(expected, rel=1e-4)


def test_closed_form_is_the_limit_of_large_sizes():
    """At fixed P/N the exact scale at a low temperature goes to the closed form as 1/N."""
    gaps = []
    for n_train in (12, 48):
        system = network(
            n_train=n_train, input_dim=2 * n_train, width=0.75 * n_train, temperature=1e-6
        )
        exact, limit = linear_layers(system), zero_temperature_layers(system)
        gaps.append(abs(float(exact.scales[0] / limit.scales[0]) - 1))
    assert gaps[1] < 0.4 * gaps[0]
    assert gaps[1] < 0.02


@pytest.mark.slow
def test_sampled_networks_have_the_exact_layers():
    system = network(width=6, temperature=0.2)
    exact = linear_layers(system)
    runs = [
        sampled_layers(system, jax.random.key(seed), samples=400, leapfrog_steps=12)
        for seed in range(16)
    ]
    assert all(run.converged for run in runs)
    for name in ("scales", "on_target", "trace", "test_bias", "test_variance"):
        values = np.array([getattr(run, name) for run in runs])
        error = values.std(axis=0, ddof=1) / 4
        assert np.all(error < 0.02 * values.mean(axis=0))
        assert np.all(np.abs(values.mean(axis=0) - getattr(exact, name)) < 3.6 * error), name


def test_what_the_theory_does_not_hold_for_is_refused():
    erf = network().with_(activation="erf")
    for function in (linear_layers, zero_temperature_layers):
        with pytest.raises(ValueError, match=r"FullyConnected\.activation = 'erf'"):
            function(erf)
    with pytest.raises(ValueError, match="30 examples of 20 inputs"):
        zero_temperature_layers(network(n_train=30))
    two = FullyConnected(
        np.eye(3), np.eye(3)[:, :2], np.eye(3), np.eye(3)[:, :2], width=4, temperature=0.1,
        activation="linear",
    )  # fmt: skip
    with pytest.raises(ValueError, match="one output"):
        linear_layers(two)
