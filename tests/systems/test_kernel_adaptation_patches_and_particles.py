"""Networks on patches, the self-consistent ridge, and weights as particles on given data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from orderparam.systems.kernel_adaptation import (
    NetworkOnData,
    PatchNetwork,
    TwoLayerNetwork,
    adapted_weights,
    adapted_weights_on_data,
    gaussian_process,
    gaussian_weights,
    gaussian_weights_on_data,
    hermite_target,
    sampled_on_data,
    sampled_patches,
)
from orderparam.systems.kernel_adaptation.on_data.experiment import Particles
from orderparam.systems.kernel_adaptation.patches.experiment import PatchPosterior


def test_the_density_on_patches_has_one_readout_for_each():
    system = PatchNetwork(3, 2, 4, 6, 0.1, hermite_target({1: 1.0}), 0.3)
    random = np.random.default_rng(0)
    x, y, u = (
        random.standard_normal((6, 2, 3)),
        random.standard_normal(6),
        random.standard_normal((4, 3)),
    )
    kernel = sum(
        0.3 / 8 * (f := special.erf(x[:, i] @ u.T / np.sqrt(3))) @ f.T for i in range(2)
    ) + 0.1 * np.eye(6)
    exact = (
        -(y @ np.linalg.solve(kernel, y) + np.linalg.slogdet(2 * np.pi * kernel)[1] + np.sum(u**2))
        / 2
    )
    assert float(
        PatchPosterior(system.hidden, jnp.asarray(x), jnp.asarray(y))(jnp.asarray(u))
    ) == pytest.approx(exact, rel=1e-10)


def test_self_consistent_ridge_of_erf_units():
    """Infinitely wide: against Gaussian-process regression on drawn data, 0.843(4) over 80 draws,
    where T/n gives 0.90."""
    d, n, temperature = 20, 60, 0.1
    system = TwoLayerNetwork(d, 1e12, n, temperature, hermite_target({1: 1.0}), weight_variance=0.5)
    random, learned = np.random.default_rng(0), []

    def kernel(a, b):
        c, own, other = (
            a @ b.T / (2 * d),
            np.sum(a**2, axis=1) / (2 * d),
            np.sum(b**2, axis=1) / (2 * d),
        )
        return (
            2
            / np.pi
            * np.arcsin(2 * c / np.sqrt((1 + 2 * own)[:, None] * (1 + 2 * other)[None, :]))
        )

    for _ in range(40):
        x, test = random.standard_normal((n, d)), random.standard_normal((1000, d))
        mean = kernel(test, x) @ np.linalg.solve(kernel(x, x) + temperature * np.eye(n), x[:, 0])
        learned.append(mean @ test[:, 0] / (test[:, 0] @ test[:, 0]))
    found = adapted_weights(system, ridge_kind="self-consistent")
    assert bool(found.converged)
    np.testing.assert_allclose(
        gaussian_process(system, ridge_kind="effective").output, found.output, atol=1e-8
    )
    assert abs(float(found.total_learnability) - np.mean(learned)) < 0.02
    eigenvalue = 4 / np.pi * 0.5 / d / 2
    assert eigenvalue / (eigenvalue + temperature / n) - np.mean(learned) > 0.04


@pytest.mark.parametrize("copies", [1, 3])
def test_effective_ridge_of_an_infinitely_wide_linear_network(copies):
    """All d N modes count, that of the target too: n = T/kappa + d N L, L = (s v/(N d))/(s v/(N d)
    + kappa), a quadratic equation. Ridge regression on drawn data learns that much."""
    d, n, temperature = 12, 20, 0.2
    system = PatchNetwork(
        d, copies, 1e9, n, temperature, hermite_target({1: 1.0}), 0.9, 0.7, activation="linear"
    )
    eigenvalue = 0.9 * 0.7 / (copies * d)
    b = n * eigenvalue - temperature - d * copies * eigenvalue
    kappa = (-b + np.sqrt(b**2 + 4 * n * temperature * eigenvalue)) / (2 * n)
    for kind in ("effective", "self-consistent"):
        found = gaussian_process(system, ridge_kind=kind)
        assert float(found.total_learnability) == pytest.approx(
            eigenvalue / (eigenvalue + kappa), rel=1e-9
        )
    random, learned = np.random.default_rng(0), []
    for _ in range(400):
        x = random.standard_normal((n, d * copies))
        target = np.repeat([1.0, 0.0], [1, d - 1])
        target = np.tile(target, copies) / np.sqrt(copies)
        weights = (
            x.T
            @ np.linalg.solve(eigenvalue * x @ x.T + temperature * np.eye(n), x @ target)
            * eigenvalue
        )
        learned.append(weights @ target)
    assert abs(float(found.total_learnability) - np.mean(learned)) < 0.01


def test_self_consistent_ridge_of_gaussian_weights():
    """Weights of linear units stay Gaussian: the same ridge and the same solution as with their
    full distribution."""
    system = PatchNetwork(10, 2, 200, 40, 0.01, hermite_target({1: 1.0}), 0.01, activation="linear")
    found, full = (
        theory(system, ridge_kind="self-consistent")
        for theory in (gaussian_weights, adapted_weights)
    )
    assert bool(found.converged)
    np.testing.assert_allclose(
        [found.total_learnability, found.spread], [full.total_learnability, full.spread], rtol=1e-8
    )
    assert float(found.ridge_ratio) == pytest.approx(float(full.ridge_ratio), rel=1e-8)
    assert float(found.ridge_ratio) > 1.1


def on_data(activation: str) -> NetworkOnData:
    random = np.random.default_rng(3)
    x = random.standard_normal((30, 3))
    parts = (
        jnp.asarray(x[:10]),
        jnp.asarray(x[:10, 0]),
        jnp.asarray(x[10:]),
        jnp.asarray(x[10:, 0]),
    )
    return NetworkOnData(
        *parts, width=20, temperature=0.05, readout_variance=0.1, activation=activation
    )


def test_the_force_on_a_particle_is_that_of_the_self_consistent_action():
    """-grad S with K and t of all particles; one replica is the posterior of the network."""
    system = on_data("erf")
    u = np.random.default_rng(0).standard_normal((60, 3))
    found = np.asarray(jax.grad(Particles(system, 3, single=False))(jnp.asarray(u)))
    x, y, scale = np.asarray(system.inputs), np.asarray(system.targets), np.sqrt(1 / 3)
    phi = special.erf(scale * x @ u.T)
    inverse = np.linalg.inv(0.1 / 60 * phi @ phi.T + 0.05 * np.eye(10))
    dual = inverse @ y
    # of phi with respect to x . u
    slope = scale * 2 / np.sqrt(np.pi) * np.exp(-((scale * x @ u.T) ** 2))
    force = 0.1 / 20 * ((np.outer(dual, dual) - inverse) @ phi * slope).T @ x - u
    np.testing.assert_allclose(found, force, rtol=1e-9, atol=1e-11)
    one, evidence = u[:20], []
    for factor in (1, 2):
        phi = special.erf(factor * scale * x @ one.T)
        covariance = 0.1 / 20 * phi @ phi.T + 0.05 * np.eye(10)
        evidence.append(
            stats.multivariate_normal(np.zeros(10), covariance).logpdf(y)
            - factor**2 * np.sum(one**2) / 2
        )
    density = Particles(system, 1, single=False)
    change = density(jnp.asarray(one)) - density(jnp.asarray(2 * one))
    assert float(change) == pytest.approx(evidence[0] - evidence[1], rel=1e-9)


@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_particles_in_single_precision(activation):
    """The density and the force that the chains use agree with those in double precision, for
    fewer and for more particles than examples."""
    system = on_data(activation)
    for count in (6, 60):
        u = jnp.asarray(np.random.default_rng(1).standard_normal((count, 3)))
        (value, force), (exact, its_force) = (
            jax.value_and_grad(Particles(system, 3, single=single))(u) for single in (True, False)
        )
        assert value.dtype == jnp.float64
        assert float(value) == pytest.approx(float(exact), rel=2e-6)
        np.testing.assert_allclose(force, its_force, atol=2e-5 * np.abs(its_force).max())


@pytest.mark.parametrize("degrees", [(), (-1,), (1.5,), "13", [1, 3], (10**400,), (float("nan"),)])
def test_degrees_that_are_none_are_refused(degrees):
    with pytest.raises(ValueError, match=r"degrees = .*: must be a tuple of integers"):
        adapted_weights_on_data(on_data("erf"), particles=20, degrees=degrees)
    with pytest.raises(ValueError, match=r"degrees = .*: must be a tuple of integers"):
        sampled_on_data(on_data("erf"), jax.random.key(0), degrees=degrees)


def test_cold_particles_keep_double_precision():
    """Below the smallest eigenvalues rounded products of features are no kernel."""
    system = on_data("erf")
    system = system.with_(inputs=0.1 * system.inputs, temperature=1e-12)
    u = jnp.asarray(np.random.default_rng(1).standard_normal((60, 3)))
    rounded, exact = (float(Particles(system, 3, single=single)(u)) for single in (True, False))
    assert np.isfinite(exact)
    assert not abs(rounded - exact) < 1e-2 * abs(exact)
    found = adapted_weights_on_data(system, particles=60, warmup=20, samples=8)
    assert bool(jnp.all(jnp.isfinite(found.mean)))
    assert float(found.residual) < 1


def test_particles_project_their_output_exactly():
    """Components of the output along Hermite polynomials, against averages over many inputs."""
    system, random = on_data("erf"), np.random.default_rng(5)
    x = random.standard_normal((40_000, 3))
    wide = system.with_(test_inputs=jnp.asarray(x), test_targets=jnp.asarray(x[:, 0]))
    found = adapted_weights_on_data(wide, particles=40, warmup=20, samples=10, degrees=(1, 3))
    for degree, component in zip((1, 3), found.modes):
        values = np.asarray(found.mean) * special.eval_hermitenorm(degree, x[:, 0])
        values /= np.sqrt(special.factorial(degree))
        error = values.std() / np.sqrt(len(values))
        assert abs(float(component) - values.mean()) < 4 * error
        assert error < 0.01


@pytest.mark.slow
def test_particles_of_a_linear_network_are_gaussian():
    """exp(-S) is Gaussian for linear units: the variational solution is exact, and many particles
    reach it."""
    system = on_data("linear")
    exact = gaussian_weights_on_data(system)
    found = sampled_on_data(
        system, jax.random.key(0), replicas=24, samples=120, warmup=60, trajectory=1.6
    )
    assert float(found.residual) < 0.01
    assert abs(float(found.spread - exact.spread)) < 5 * float(found.spread_error) + 0.01 * float(
        exact.spread
    )
    assert float(exact.spread) > 1.3
    np.testing.assert_allclose(
        found.projections[0],
        exact.projections[0],
        atol=5 * float(found.projections_error[0]) + 2e-3,
    )


def test_the_theory_by_particles_is_that_of_replicas():
    """Also of a width that is not whole, where the number of replicas is not."""
    system, lengths = on_data("erf"), {"warmup": 20, "samples": 20}
    replicas = sampled_on_data(system, jax.random.key(0), replicas=3, **lengths)
    theory = adapted_weights_on_data(system, particles=60, **lengths)
    np.testing.assert_allclose(theory.mean, replicas.mean, rtol=1e-9)
    between = adapted_weights_on_data(system.with_(width=20.5), particles=60, **lengths)
    assert 0 < float(jnp.max(jnp.abs(between.mean - theory.mean))) < 0.1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: PatchNetwork(10, 2, 20, 10, 0.1, hermite_target({1: 1.0}), activation="relu"),
            "activation",
        ),
        (lambda: PatchNetwork(10, 0, 20, 10, 0.1, hermite_target({1: 1.0})), "patches"),
        (lambda: sampled_on_data(on_data("erf"), jax.random.key(0), replicas=0), "replicas"),
        (lambda: sampled_on_data(on_data("erf"), jax.random.key(0), chains=3), "chains"),
        (
            lambda: adapted_weights_on_data(on_data("erf"), particles=19),
            "width = 20.*: must be at most particles = 19",
        ),
        (
            lambda: sampled_patches(
                PatchNetwork(5, 2, 9, 8, 0.1, hermite_target({1: 1.0})), jax.random.key(0), chains=1
            ),
            "chains",
        ),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"fluctuations": True}, {"ridge_kind": "self-consistent", "fluctuations": True}]
)
def test_fluctuations_on_one_angle_or_in_the_plane(options):
    """Relu units; `within` a bound that no weight reaches is solved in the plane."""
    system = TwoLayerNetwork(
        24, 188, 240, 1.0, hermite_target({1: 1.0}), absolute=0.3, activation="relu"
    ).scaling(30)
    one, two = adapted_weights(system, **options), adapted_weights(system, within=50.0, **options)
    np.testing.assert_allclose(two.output, one.output, atol=2e-8)
    np.testing.assert_allclose(
        [two.spread, two.eigenvalue_ratio], [one.spread, one.eigenvalue_ratio], rtol=1e-6
    )
    assert float(one.action) == pytest.approx(float(two.action), rel=1e-8)
