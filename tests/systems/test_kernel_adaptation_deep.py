"""Deep networks: the stationarity of every layer, the infinitely wide limit, and the density that
is sampled."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from orderparam.systems.kernel_adaptation import (
    DeepNetworkOnData,
    deep_adapted_layers,
    deep_gaussian_layers,
    deep_gaussian_process,
    gaussian_weights_on_data,
    sampled_deep_network,
)
from orderparam.systems.kernel_adaptation.deep.experiment import DeepPosterior


def network(**changes) -> DeepNetworkOnData:
    random = np.random.default_rng(1)
    x = random.standard_normal((45, 12))
    y = x[:, 0] - 0.1 * (x[:, 0] ** 3 - 3 * x[:, 0])
    given = {
        "width": 40,
        "temperature": 0.02,
        "readout_variance": 0.2,
        "weight_variance": 0.7,
        "hidden_variance": 2.0,
        **changes,
    }
    return DeepNetworkOnData(
        jnp.asarray(x[:40]), jnp.asarray(y[:40]), jnp.asarray(x[40:]), jnp.asarray(y[40:]), **given
    )


def erf_kernel(c):
    root = jnp.sqrt(1 + 2 * jnp.diagonal(c))
    return 2 / jnp.pi * jnp.arcsin(2 * c / root[:, None] / root[None, :])


def test_every_layer_feels_the_next_one():
    """H^{-1} = Q^{-1} + (1/N) sum A dK/dH, A = (K+T)^{-1} - t t^T, and the trace of the same
    equation for the input weights: N (tr d Sigma/v - d) = -sum A' tr(Sigma dQ/dSigma), A' = N
    (Q^{-1} - Q^{-1} H Q^{-1})."""
    system = network()
    found = deep_gaussian_layers(system)
    assert bool(found.converged)
    h, c = found.preactivations[0], 0.7 / 12 * system.inputs @ found.covariance @ system.inputs.T
    q, k = 2.0 * erf_kernel(c), 0.2 * erf_kernel(h)
    inverse = jnp.linalg.inv(k + 0.02 * jnp.eye(40))
    pull = inverse - jnp.outer(inverse @ system.targets, inverse @ system.targets)
    slope = jax.grad(lambda h: jnp.sum(pull * 0.2 * erf_kernel((h + h.T) / 2)))(h)
    gap = jnp.linalg.inv(h) - jnp.linalg.inv(q) - slope / 40
    assert float(jnp.linalg.norm(gap)) < 1e-5 * float(jnp.linalg.norm(jnp.linalg.inv(q)))
    above = 40 * (jnp.linalg.inv(q) - jnp.linalg.solve(q, jnp.linalg.solve(q, h).T))
    grown = jax.jvp(lambda e: jnp.sum(above * 2.0 * erf_kernel((1 + e) * c)), (0.0,), (1.0,))[1]
    assert 40 * (float(jnp.trace(found.covariance)) - 12) == pytest.approx(-float(grown), rel=1e-4)


def test_infinitely_wide():
    wide, process = deep_gaussian_layers(network(width=1e11)), deep_gaussian_process(network())
    np.testing.assert_allclose(wide.mean, process.mean, atol=1e-8)
    np.testing.assert_allclose(wide.preactivations, process.preactivations, atol=1e-8)


def test_minimised_theories_have_derivatives():
    """Of the action with respect to the temperature: at a minimum it is the explicit one, (tr A^-1
    - |A^-1 y|^2)/(2N); of what is learned: against differences."""
    system = network(relative_widths=(1.0,), activation="linear")

    def learned(temperature):
        return gaussian_weights_on_data(system.with_(temperature=temperature)).total_learnability

    def action(temperature):
        return gaussian_weights_on_data(system.with_(temperature=temperature)).action

    step = 1e-4 * 0.02
    difference = (learned(0.02 + step) - learned(0.02 - step)) / (2 * step)
    assert float(jax.grad(learned)(0.02)) == pytest.approx(float(difference), rel=1e-5)
    covariance = 0.7 / 12 * gaussian_weights_on_data(system).covariance
    inverse = jnp.linalg.inv(
        0.2 * system.inputs @ covariance @ system.inputs.T + 0.02 * jnp.eye(40)
    )
    dual = inverse @ system.targets
    assert float(jax.grad(action)(0.02)) == pytest.approx(
        float(jnp.trace(inverse) - dual @ dual) / 80, rel=1e-6
    )


@pytest.mark.slow
def test_one_hidden_layer_and_relu():
    one = network(relative_widths=(1.0,))
    found, known = deep_gaussian_layers(one), gaussian_weights_on_data(one)
    np.testing.assert_allclose(found.mean, known.mean, atol=1e-6)
    np.testing.assert_allclose(found.covariance, known.covariance, atol=1e-6)
    assert bool(
        deep_gaussian_layers(network(activation="relu", relative_widths=(1.0, 2.0, 0.5))).converged
    )


def test_the_sampled_density_is_that_of_the_network():
    system = network(width=5, relative_widths=(1.0, 1.4))
    random = np.random.default_rng(0)
    x, y = np.asarray(system.inputs), np.asarray(system.targets)

    def exact(first, second):
        h = special.erf(np.sqrt(0.7 / 12) * x @ first.T) @ second.T * np.sqrt(2.0 / 5)
        covariance = 0.2 / 7 * special.erf(h) @ special.erf(h).T + 0.02 * np.eye(40)
        prior = -(np.sum(first**2) + np.sum(second**2)) / 2
        return stats.multivariate_normal(np.zeros(40), covariance).logpdf(y) + prior

    posterior = DeepPosterior(system)
    a, b = ((random.standard_normal((5, 12)), random.standard_normal((7, 5))) for _ in range(2))
    change = posterior(tuple(map(jnp.asarray, a))) - posterior(tuple(map(jnp.asarray, b)))
    assert float(change) == pytest.approx(exact(*a) - exact(*b), rel=1e-8)


@pytest.mark.slow
def test_sampled_layers_are_those_of_the_theory_and_not_of_the_prior():
    found = sampled_deep_network(network(), jax.random.key(0))
    assert float(found.deviation[0]) < 0.15 < 3 * 0.15 < float(found.prior_deviation[0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: network(relative_widths=(1.0, -1.0)), "relative_widths"),
        (lambda: network(hidden_variance=0.0), "hidden_variance"),
        (lambda: network().with_(targets=jnp.ones(3)), "DeepNetworkOnData.targets"),
        (
            lambda: sampled_deep_network(network(relative_widths=(1.0,)), jax.random.key(0)),
            "relative_widths",
        ),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_theories_of_two_layers_refuse_deeper_networks():
    with pytest.raises(
        ValueError, match=r"^DeepNetworkOnData\.relative_widths = \(1\.0, 2\.0\): must be \(1\.0,\)"
    ):
        gaussian_weights_on_data(network(relative_widths=(1.0, 2.0)))


def small(activation: str) -> DeepNetworkOnData:
    random = np.random.default_rng(3)
    x = random.standard_normal((30, 3))
    parts = (
        jnp.asarray(x[:10]),
        jnp.asarray(x[:10, 0]),
        jnp.asarray(x[10:]),
        jnp.asarray(x[10:, 0]),
    )
    return DeepNetworkOnData(
        *parts, width=8, temperature=0.05, readout_variance=0.1, activation=activation
    )


def test_as_many_particles_as_units_are_the_network():
    lengths = {"warmup": 20, "samples": 30}
    theory = deep_adapted_layers(small("erf"), particles=8, **lengths)
    network = sampled_deep_network(small("erf"), jax.random.key(0), **lengths)
    np.testing.assert_allclose(theory.on_target, network.on_target, rtol=1e-9)
    np.testing.assert_allclose(theory.mean, network.mean, rtol=1e-9)


@pytest.mark.slow
def test_particles_of_a_linear_network_have_gaussian_layers():
    """Every unit feels a quadratic action if phi is linear: Gaussian layers are exact, and many
    particles reach them."""
    system = small("linear")
    exact, found = (
        deep_gaussian_layers(system),
        deep_adapted_layers(system, particles=160, samples=200),
    )
    process = deep_gaussian_process(system)
    for name in ("spread", "on_target", "total_learnability"):
        mean, expected = np.ravel(getattr(found, name)), np.ravel(getattr(exact, name))
        error = np.ravel(getattr(found, f"{name}_error"))
        np.testing.assert_array_less(np.abs(mean - expected), 5 * error + 0.015 * np.abs(expected))
    assert float(exact.on_target[0]) > 1.3 * float(process.on_target[0])


def test_fewer_particles_than_units_are_refused():
    with pytest.raises(ValueError, match=r"width = .*at most particles = 7"):
        deep_adapted_layers(small("erf"), particles=7)
