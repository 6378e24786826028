"""Random networks: identities of the cumulants, networks really drawn against them, and
refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import orderparam as op
from orderparam.gaussian import activation
from orderparam.systems.random_networks import (
    AngledPair,
    DeepNetwork,
    NetworkKernels,
    RandomNetwork,
    angle_kernel,
    correlation_chain,
    correlation_networks,
    covariance,
    cumulants,
    deep_cumulants,
    deep_networks,
    deep_networks_with_weights,
    density,
    exact_density,
    homogeneous_cumulants,
    integrated_marginals,
    kernel_spread,
    marginals,
    one_hidden_layer_spread,
    one_input_spread,
    order_chaos,
    sample,
    sampled_cumulants,
    sampled_density,
    sampled_marginals,
    sixth_cumulant,
)

PROBES = jnp.array([[1.0, 0.5], [-0.3, 2.0]])
UNIFORM = RandomNetwork(PROBES, width=4)
GAUSSIAN = RandomNetwork(PROBES, width=4, prior="gaussian")
ERF = activation("erf")


def within(mean, value, runs, errors=5.0):
    """Whether a mean over runs is within so many standard errors."""
    error = np.std(runs, axis=0, ddof=1) / np.sqrt(len(runs))
    return np.all(np.abs(mean - value) <= errors * error)


# -------------------------------------------------------------------------------------------------
# exact cumulants


@pytest.mark.parametrize("name", ["relu", "tanh"])
def test_quadrature_of_gaussian_weights_against_closed_forms(name):
    """The polar rule behind the fourth cumulant gives the kernel of the two-point function, with or
    without a kink."""
    from orderparam.systems.random_networks.unit_averages import unit_average

    system = GAUSSIAN.with_(activation=activation(name), weight_variance=1.7)
    u, weights = unit_average(system)
    phi = system.activation(u)
    np.testing.assert_allclose(
        system.readout_variance * (phi.T * weights) @ phi, covariance(system).kernel, rtol=1e-11
    )


def test_uniform_relu_on_an_axis_is_elementary():
    """x = (1, 0): u is uniform on [-h, h], E relu^2 = h^2/6, E relu^4 = h^4/10, so that the
    kurtosis is (9/5)(18/5) - 3."""
    system = RandomNetwork(
        jnp.array([[1.0, 0.0], [0.6, 0.8]]), width=1, activation=activation("relu")
    )
    found = cumulants(system)
    h = np.sqrt(1 / 2)
    np.testing.assert_allclose(found.kernel[0, 0], h**2 / 18, rtol=1e-12)
    np.testing.assert_allclose(
        found.fourth_cumulant[0, 0, 0, 0], (1.8 * 3.6 - 3) * (h**2 / 18) ** 2, rtol=1e-11
    )
    # E relu(u1) relu(u2) with u = h (t, 0.6 t + 0.8 s) over t in [0, 1], 0.6 t + 0.8 s > 0:
    # polynomials on two pieces
    t, w = np.polynomial.legendre.leggauss(20)
    t, w = (1 + t) / 2, w / 2
    top = 0.6 * t + 0.8
    inner = np.where(0.6 * t - 0.8 > 0, 0.6 * t * 2, top**2 / 1.6)
    np.testing.assert_allclose(found.kernel[0, 1], h**2 / 3 * np.sum(w * t * inner) / 4, rtol=1e-11)


def test_cumulants_fall_with_the_width_and_are_symmetric():
    for system in (UNIFORM, GAUSSIAN):
        narrow, wide = (cumulants(system.with_(width=n)) for n in (1, 50))
        np.testing.assert_allclose(narrow.kernel, wide.kernel, rtol=1e-14)
        np.testing.assert_allclose(narrow.fourth_cumulant, 50 * wide.fourth_cumulant, rtol=1e-12)
        tensor = np.asarray(narrow.fourth_cumulant)
        for order in ((1, 0, 2, 3), (0, 2, 1, 3), (3, 1, 2, 0)):
            np.testing.assert_allclose(tensor, tensor.transpose(order), atol=1e-16)
        diagonal = marginals(system.with_(width=1)).fourth_cumulant
        np.testing.assert_allclose([tensor[i, i, i, i] for i in range(2)], diagonal, rtol=1e-10)


def test_signs_as_read_out_add_nothing_but_the_hidden_layer():
    """sign(w.x) with a Rademacher read-out: one unit is a fair coin, kurtosis (1 - 3)/N and kappa6
    = 16/N^2."""
    coin = RandomNetwork(
        PROBES,
        width=5,
        readout_variance=1.0,
        readout_prior="rademacher",
        activation=activation("sign"),
    )
    np.testing.assert_allclose(marginals(coin).kurtosis, -2 / 5, rtol=1e-12)
    np.testing.assert_allclose(sixth_cumulant(coin), 16 / 25, rtol=1e-12)


def test_rotated_inputs_do_not_matter_to_gaussian_weights_in_any_dimension():
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.normal(size=(7, 7)))[0]
    x = jnp.asarray(PROBES @ rotation[:2] * np.sqrt(7 / 2))
    one, other = cumulants(GAUSSIAN), cumulants(GAUSSIAN.with_(inputs=x))
    np.testing.assert_allclose(one.fourth_cumulant, other.fourth_cumulant, rtol=1e-10)
    assert (
        marginals(GAUSSIAN.with_(inputs=jnp.asarray(rng.normal(size=(9, 40))))).kurtosis.min() > 0
    )


# ---------------------------------------------------------------------------------------- densities


def moments(found, system):
    width = np.diff(system.edges)
    value = np.asarray(found.value)
    return [float(np.sum(np.asarray(found.density)[0] * width * value**k)) for k in (0, 2, 4)]


def test_densities_have_the_exact_cumulants():
    system = UNIFORM.with_(inputs=PROBES[:1], half_range=3.0, bins=1500)
    known = marginals(system)
    for found in (density(system, 1), density(system, 2), exact_density(system)):
        total, second, fourth = moments(found, system)
        step = 6.0 / 1500  # the middle of a bin stands for all of it: Sheppard's corrections
        second -= step**2 / 12
        assert total == pytest.approx(1, abs=1e-9)
        assert second == pytest.approx(float(known.variance[0]), rel=1e-5)
        fourth -= step**2 / 2 * second
        assert fourth - 3 * second**2 == pytest.approx(float(known.fourth_cumulant[0]), rel=2e-3)


def test_edgeworth_approaches_the_exact_density():
    wide = UNIFORM.with_(inputs=PROBES[:1], width=40)
    exact = exact_density(wide).density
    errors = [float(jnp.abs(density(wide, order).density - exact).max()) for order in (0, 1, 2)]
    assert errors[0] > 20 * errors[1] > 100 * errors[2]


# -------------------------------------------------------------------------------------------------
# networks drawn


@pytest.mark.parametrize("prior", ["uniform", "gaussian"])
def test_drawn_networks_have_the_exact_cumulants(prior):
    system = RandomNetwork(PROBES, width=2, prior=prior)
    runs = [sampled_cumulants(system, jax.random.key(i), 20_000) for i in range(24)]
    exact = cumulants(system)
    for name in ("kernel", "fourth_cumulant"):
        values = np.array([getattr(run, name) for run in runs])
        assert within(values.mean(axis=0), getattr(exact, name), values)


def test_drawn_and_averaged_read_outs_agree():
    for law in ("uniform", "rademacher"):
        system = RandomNetwork(PROBES, width=3, readout_prior=law)
        exact = marginals(system).width_kurtosis
        for experiment in (sampled_marginals, integrated_marginals):
            values = np.array(
                [experiment(system, jax.random.key(i), 10_000).width_kurtosis for i in range(24)]
            )
            assert within(values.mean(axis=0), exact, values)


def test_histograms_follow_the_exact_density():
    system = UNIFORM.with_(inputs=PROBES[:1], width=2, bins=20)
    values = np.array(
        [sampled_density(system, jax.random.key(i), 10_000).density for i in range(24)]
    )
    error = values.std(axis=0, ddof=1) / np.sqrt(24)
    exact = np.asarray(exact_density(system).density)
    shown = exact > 0.05
    assert np.all(np.abs(values.mean(axis=0) - exact)[shown] < 5.5 * error[shown])


def test_one_network_is_a_sum_of_its_units():
    drawn = op.sweep(sample, RandomNetwork(PROBES), {"width": [1, 50]}, seeds=3)
    assert drawn["value"].dims == ("width", "seed", "input")
    assert np.abs(drawn["value"].sel(width=1)).max() <= 1  # |a erf(w.x)| <= N^(-1/2)


# ------------------------------------------------------------------------------------ deep networks


def test_deep_networks_without_their_weight_matrices():
    system = DeepNetwork(width=8, depth=2)
    exact = homogeneous_cumulants(system)
    for experiment, networks in ((deep_networks, 4000), (deep_networks_with_weights, 1000)):
        runs = [experiment(system, jax.random.key(i), networks) for i in range(8)]
        for name in ("mean_kernel", "vertex"):
            values = np.array([getattr(run, name) for run in runs])
            assert within(values.mean(axis=0), getattr(exact, name), values, errors=7)


def test_depth_corrections_of_erf():
    """Mean and variance of Khat at n = 64 to first order; what is left is of order 1/n^2."""
    system = DeepNetwork(64, 1.5, 0.05, 1.0, depth=3, activation=ERF)
    theory = deep_cumulants(system)
    runs = [deep_networks(system, jax.random.key(i), 10_000) for i in range(12)]
    np.testing.assert_allclose(
        np.mean([run.mean_kernel for run in runs], axis=0), theory.mean_kernel, rtol=2e-3
    )
    np.testing.assert_allclose(
        np.mean([run.kurtosis for run in runs], axis=0), theory.kurtosis, rtol=0.03
    )


# ------------------------------------------------------------------------------------------ kernels


def test_correlations_layer_by_layer_are_those_of_the_architecture():
    pair = AngledPair(angle=1.1, depth=4, weight_variance=1.7, bias_variance=0.1, activation=ERF)
    chain = correlation_chain(pair).correlation
    np.testing.assert_allclose(chain[-1], angle_kernel(pair).nngp_correlation, rtol=1e-12)
    measured = [
        correlation_networks(pair.with_(width=2000), jax.random.key(i), 8).correlation
        for i in range(8)
    ]
    assert within(np.mean(measured, axis=0), chain, measured, errors=6)


def test_order_and_chaos():
    pair = AngledPair(angle=1.0, bias_variance=0.05, activation=ERF, depth=400)
    found = op.sweep(order_chaos, pair, {"weight_variance": [0.5, 4.0]})
    assert float(found["slope"][0]) < 1 < float(found["slope"][1])
    np.testing.assert_allclose(found["correlation"][0], 1.0)
    chaotic = pair.with_(weight_variance=4.0)
    np.testing.assert_allclose(
        correlation_chain(chaotic).correlation[-1], found["correlation"][1], rtol=1e-10
    )
    relu = order_chaos(AngledPair())
    np.testing.assert_allclose([relu.slope, relu.correlation], 1.0, rtol=1e-12)
    no_bias = order_chaos(AngledPair(weight_variance=4.0, activation=ERF))
    assert float(no_bias.correlation) == 0
    assert bool(no_bias.converged)


def test_finite_kernels_fluctuate_as_predicted():
    x = jnp.asarray(np.random.default_rng(0).normal(size=(3, 4)))
    shallow = NetworkKernels(x, width=16, weight_variance=1.5, bias_variance=0.05, activation=ERF)
    runs = [kernel_spread(shallow, jax.random.key(i), 2**12) for i in range(12)]
    theory = one_hidden_layer_spread(shallow)
    for name in ("nngp_fluctuation", "ntk_fluctuation", "nngp_bias", "ntk_bias"):
        values = np.array([getattr(run, name) for run in runs])
        assert within(values.mean(), getattr(theory, name), values, errors=6), name


# ----------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"inputs": np.zeros(3)}, "must be"),
        ({"inputs": np.array([[np.nan, 1.0]])}, "finite"),
        ({"inputs": [["a"]]}, "RandomNetwork.inputs"),
        ({"prior": "unifrom"}, "uniform"),
        ({"readout_prior": "sign"}, "RandomNetwork.readout_prior"),
        ({"width": 2.5}, "RandomNetwork.width"),
        ({"activation": "erff"}, "RandomNetwork.activation"),
        ({"bins": 0}, "RandomNetwork.bins"),
    ],
)
def test_wrong_values_are_named(change, words):
    with pytest.raises(ValueError, match=words):
        UNIFORM.with_(**change)


def test_integrals_that_there_are_not():
    with pytest.raises(ValueError, match="4 dimensions"):
        cumulants(RandomNetwork(jnp.ones((1, 4))))
    with pytest.raises(ValueError, match="kink"):
        cumulants(RandomNetwork(jnp.eye(3), activation=activation("relu")))
    with pytest.raises(ValueError, match="order"):
        density(UNIFORM, order=3)
    with pytest.raises(ValueError, match="rademacher"):
        exact_density(UNIFORM.with_(readout_prior="rademacher"))
    with pytest.raises(ValueError, match="one input"):
        one_input_spread(NetworkKernels(jnp.ones((2, 3))))
