"""Facts about Bayesian networks of finite width: limits, symmetries, gradients, theory against
sampling, and bad input."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import orderparam as op
from orderparam.systems.proportional import (
    Convolutional,
    FullyConnected,
    LocallyConnected,
    branches,
    finite_width,
    infinite_width,
    integrated_width,
    kernel_corrected,
    langevin_training,
    predict_width,
    renormalised_kernel,
    sampled_network,
    sampled_similarity,
    similarity,
)
from orderparam.systems.proportional.model import (
    as_images,
    dense,
    flat,
    image_data,
    patch_teacher,
    patches,
)
from orderparam.systems.proportional.posterior import Collapsed

SMALL = dense("digits", 40, 60, width=30, temperature=0.1)
PATCHES = patch_teacher("shared", 40, 30)


def convolutional(fields=PATCHES, kind=Convolutional, **options):
    return kind(**(fields | {"channels": 20, "temperature": 0.1, "mask": 10} | options))


def test_infinite_width_is_the_limit():
    wide, limit = finite_width(SMALL.with_(width=1e8)), infinite_width(SMALL)
    assert abs(wide.order_parameters.item() - 1) < 1e-6
    assert wide.test_error == pytest.approx(float(limit.test_error), rel=1e-6)


def test_finite_width_is_infinite_width_with_another_readout_variance():
    """Aiudi et al. 2025: one scalar only rescales the prior of the last layer."""
    result = finite_width(SMALL)
    same = infinite_width(SMALL.with_(readout_variance=result.order_parameters.item()))
    assert result.test_error == pytest.approx(float(same.test_error), rel=1e-12)
    assert np.allclose(result.mean, same.mean, rtol=0, atol=1e-12)


def test_zero_temperature_has_a_closed_form():
    """Q = [1 - P/N + sqrt((1 - P/N)^2 + 4 y^T K^{-1} y / N)] / 2."""
    from orderparam.systems.proportional.deep import prior_kernels

    system = SMALL.with_(temperature=1e-9)
    kernel = np.asarray(prior_kernels(system)[0])
    y = np.asarray(system.train[1])[:, 0]
    ratio, power = 40 / 30, y @ np.linalg.solve(kernel, y) / 30
    expected = (1 - ratio + np.sqrt((1 - ratio) ** 2 + 4 * power)) / 2
    assert finite_width(system).order_parameters.item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
def test_closures_agree_for_homogeneous_activations():
    """Nested treats the mean of relu apart, which on balanced labels changes little."""
    system = SMALL.with_(depth=2, activation="relu", temperature=0.05)
    common, linear, nested = (
        finite_width(system, closure=closure) for closure in ("common", "linear", "nested")
    )
    assert linear.test_error == pytest.approx(float(common.test_error), rel=1e-10)
    assert nested.converged
    assert nested.test_error == pytest.approx(float(common.test_error), rel=1e-3)


def test_one_output_is_a_special_case_of_several():
    column = SMALL.with_(
        targets=SMALL.targets[:, None], test_targets=SMALL.test_targets[:, None], depth=2
    )
    several, one = (
        finite_width(column, closure="common"),
        finite_width(SMALL.with_(depth=2), closure="common"),
    )
    assert several.action == pytest.approx(float(one.action), rel=1e-11)
    assert several.test_error == pytest.approx(float(one.test_error), rel=1e-9)


def test_the_action_of_several_outputs_with_a_mean_is_stationary():
    """-tr Q (kappa^{-1} - 1) - log det kappa + (1/N) [..] with the whole matrix of examples and
    outputs, by differences."""
    rng = np.random.default_rng(0)
    x, y, n, temperature = rng.normal(size=(12, 5)), rng.normal(size=(12, 2)) + 1, 9.0, 0.2
    system = FullyConnected(
        x,
        y,
        x[:2],
        y[:2],
        width=n,
        temperature=temperature,
        activation="relu",
        readout_variance=0.7,
    )
    result = finite_width(system)
    lengths = np.linalg.norm(x, axis=1)
    cosine = np.clip(x @ x.T / np.outer(lengths, lengths), -1, 1)
    shape = np.sqrt(1 - cosine**2) + cosine * (np.pi - np.arccos(cosine))
    kernel = 0.7 / 5 * np.outer(lengths, lengths) / (2 * np.pi) * shape
    along = 0.7 / 5 * np.outer(lengths, lengths) / (2 * np.pi)

    def action(scale, kappa):
        noisy = temperature * np.eye(24) + np.kron(scale, kernel - along) + np.kron(kappa, along)
        flat = y.T.reshape(-1)
        prior = (
            np.trace(scale) - np.trace(scale @ np.linalg.inv(kappa)) - np.linalg.slogdet(kappa)[1]
        )
        return n * prior + np.linalg.slogdet(noisy)[1] + flat @ np.linalg.solve(noisy, flat)

    scale, kappa = (
        np.asarray(result.order_parameters).squeeze(),
        np.asarray(result.mean_scales).squeeze(),
    )
    assert result.action == pytest.approx(action(scale, kappa), rel=1e-10)
    for entries in ([(0, 0)], [(1, 1)], [(0, 1), (1, 0)]):
        step = np.zeros((2, 2))
        step[tuple(zip(*entries))] = 1e-4
        for change in ((step, 0 * step), (0 * step, step)):
            up, down = (
                action(scale + sign * change[0], kappa + sign * change[1]) for sign in (1, -1)
            )
            assert abs(up - down) / 2e-4 < 1e-5
    assert abs(scale - kappa).max() > 1e-3


def test_rotated_labels_rotate_the_order_parameter():
    rng = np.random.default_rng(0)
    y, rotation = rng.normal(size=(40, 3)), np.linalg.qr(rng.normal(size=(3, 3)))[0]
    system = SMALL.with_(targets=y, test_targets=rng.normal(size=(60, 3)))
    q = finite_width(system).order_parameters.squeeze()
    rotated = finite_width(system.with_(targets=y @ rotation)).order_parameters.squeeze()
    assert np.allclose(rotated, rotation.T @ q @ rotation, atol=1e-9)


def test_one_patch_of_an_activation_with_a_mean_is_a_fully_connected_network():
    fields = flat(PATCHES) | {k: PATCHES[k] for k in ("inputs", "test_inputs")}
    whole = finite_width(convolutional(fields, mask=40, activation="relu"))
    same = finite_width(
        FullyConnected(**flat(PATCHES), width=20, temperature=0.1, activation="relu")
    )
    twice = fields | {
        name: np.concatenate([PATCHES[name]] * 2, axis=1) for name in ("inputs", "test_inputs")
    }
    pooled = finite_width(convolutional(twice, mask=40, activation="relu", readout="average"))
    for local in (whole, pooled):
        assert local.mean_scales.item() == pytest.approx(same.mean_scales.item(), rel=1e-9)
        assert local.log_evidence == pytest.approx(float(same.log_evidence), rel=1e-9)
        assert local.test_error == pytest.approx(float(same.test_error), rel=1e-9)


def test_patches_with_one_output_are_a_special_case_of_several():
    targets = {name: PATCHES[name] + 1 for name in ("targets", "test_targets")}
    one = finite_width(convolutional(activation="relu", **targets))
    several = finite_width(
        convolutional(activation="relu", **{name: y[:, None] for name, y in targets.items()})
    )
    assert np.allclose(several.order_parameters, one.order_parameters, atol=1e-9)
    assert np.allclose(several.mean_scales, one.mean_scales, atol=1e-9)
    assert several.log_evidence == pytest.approx(float(one.log_evidence), rel=1e-10)
    assert several.test_error == pytest.approx(float(one.test_error), rel=1e-9)


@pytest.mark.parametrize(
    "kind", [LocallyConnected, pytest.param(Convolutional, marks=pytest.mark.slow)]
)
def test_predictions_are_regression_with_the_renormalised_kernel(kind):
    """With the mean of relu apart."""
    system = convolutional(kind=kind, activation="relu")
    kernel, found = renormalised_kernel(system), finite_width(system)
    weights = np.linalg.solve(kernel.train + 0.1 * np.eye(40), PATCHES["targets"])
    assert np.allclose(kernel.rows @ weights, found.mean[:, 0], atol=1e-9)


def test_permuted_patches_permute_the_order_parameter():
    order = np.array([2, 0, 3, 1])

    def permute(x):
        return x.reshape(len(x), 4, 10, 1)[:, order].reshape(len(x), 40, 1)

    swapped = PATCHES | {name: permute(PATCHES[name]) for name in ("inputs", "test_inputs")}
    q, permuted = (
        finite_width(convolutional(fields)).order_parameters.squeeze()
        for fields in (PATCHES, swapped)
    )
    assert np.allclose(permuted, q[np.ix_(order, order)], atol=1e-9)


def test_weight_sharing_can_only_lower_the_action():
    assert (
        finite_width(convolutional()).action
        < finite_width(convolutional(kind=LocallyConnected)).action
    )


def test_order_parameter_is_positive_definite_and_stationary():
    result = finite_width(convolutional(temperature=1e-3, channels=5))
    q = result.order_parameters.squeeze()
    assert np.linalg.eigvalsh(q)[0] > 0
    assert result.converged
    assert np.allclose(q, q.T, atol=1e-13)


def test_train_error_is_the_derivative_of_the_evidence():
    """<sum (y - f)^2> = -2 d log Z / d beta with log Z = log p(y) + (P/2) log(2 pi T), also along
    the saddle."""

    def partition(beta):
        return finite_width(SMALL.with_(temperature=1 / beta)).log_evidence - 20 * jnp.log(beta)

    derivative = jax.grad(partition)(jnp.asarray(10.0))
    assert -2 * derivative / 40 == pytest.approx(float(finite_width(SMALL).train_error), rel=1e-8)


@pytest.mark.parametrize(
    "system",
    [
        pytest.param(SMALL, id="one layer"),
        pytest.param(SMALL.with_(depth=2), id="two layers", marks=pytest.mark.slow),
        pytest.param(convolutional(), id="patches", marks=pytest.mark.slow),
    ],
)
def test_implicit_derivatives(system):
    @eqx.filter_jit
    def error(temperature):
        return finite_width(system.with_(temperature=temperature)).test_error

    at, step = jnp.asarray(0.1), 1e-4
    expected = (error(at + step) - error(at - step)) / (2 * step)
    assert jax.grad(error)(at) == pytest.approx(float(expected), rel=2e-5)


def test_saddle_point_of_a_linear_network_is_off_by_order_one_over_width():
    linear = SMALL.with_(activation="linear")
    gaps = [
        float(abs(integrated_width(one).train_error - finite_width(one).train_error))
        for one in (linear.with_(width=100), linear.with_(width=400))
    ]
    assert 2.5 < gaps[0] / gaps[1] < 5.5


def test_sweep_equals_single_points():
    swept = op.sweep(finite_width, SMALL, {"width": [10, 100], "temperature": [0.01, 1.0]})
    one = finite_width(SMALL.with_(width=100, temperature=0.01))
    assert float(swept["test_error"].sel(width=100, temperature=0.01)) == pytest.approx(
        float(one.test_error), rel=1e-12
    )


def test_patches_of_any_mask_stride_and_padding():
    image = jnp.arange(2 * 5 * 6 * 3.0).reshape(2, 5, 6, 3)
    found = patches(image, (2, 3), (3, 2), (1, 0))
    assert found.shape == (2, 2 * 2, 2 * 3 * 3)
    padded = jnp.pad(image, [(0, 0), (1, 1), (0, 0), (0, 0)])
    assert np.array_equal(found[1, 3], padded[1, 3:5, 2:5].ravel())


def test_the_sampled_network_sees_the_patches_of_the_theory():
    """Features of the real network from the same filter at every patch: the kernel of one channel
    is sum_i phi(w.x_i)^2."""
    system = Convolutional(
        jnp.arange(2 * 5 * 6 * 3.0).reshape(2, 5, 6, 3) / 90, jnp.ones(2), jnp.ones((1, 5, 6, 3)),
        jnp.ones(1),
        channels=1, temperature=0.1, mask=(2, 3), stride=(3, 2), padding=(1, 0),
        activation="linear",
    )  # fmt: skip
    potential = Collapsed.of(system)
    hidden = potential.draw(jax.random.key(0))
    phi = potential.features(hidden, potential.problem.x)
    filters = hidden[0].weight.reshape(-1)
    expected = system.patches(system.inputs) @ filters / np.sqrt(18) / np.sqrt(system.patch_count)
    assert np.allclose(phi, expected, atol=1e-13)


def test_learning_aligns_the_hidden_kernel_with_the_targets():
    result = similarity(SMALL)
    assert result.posterior_alignment > result.prior_alignment


def test_similarity_of_patches_is_that_of_gaussian_units_with_the_readout_of_the_theory():
    """As many channels as patches, v^T v / N_c = Q: the units given the targets are Gaussian, of 4
    channels x 4 patches x P."""
    system = convolutional(channels=4)
    result, scale = (
        similarity(system, units="gaussian"),
        finite_width(system).order_parameters.squeeze(),
    )
    x = np.moveaxis(PATCHES["inputs"].reshape(40, 4, 10), 1, 0).reshape(160, 10)
    norms = 1 + np.sum(x**2, 1) / 5
    kernel = 2 / np.pi * np.arcsin(x @ x.T / 5 / np.sqrt(np.outer(norms, norms)))
    prior = np.kron(np.eye(4), kernel)  # (channel, patch, example)
    readout = np.linalg.cholesky(4 * scale).T
    assert np.allclose(readout.T @ readout / 4, scale)
    sums = np.kron(readout.reshape(1, 16) / 4, np.eye(40))  # f = sum v phi / sqrt(N_c N_p)
    gain = np.linalg.solve(sums @ prior @ sums.T + 0.1 * np.eye(40), sums @ prior).T
    mean = gain @ PATCHES["targets"]
    moments = (prior - gain @ sums @ prior + np.outer(mean, mean)).reshape(16, 40, 16, 40)
    assert np.allclose(result.posterior, np.einsum("umun->mn", moments) / 16, atol=1e-9)
    assert np.allclose(result.renormalised, sums @ prior @ sums.T, atol=1e-9)


def measured_change(system, draws=2**17, batch=2**12):
    """N (<K_emp> - K) of real networks and its standard error: draws from the prior, weighted by
    the evidence of each."""
    potential, prior = Collapsed.of(system), similarity(system, units="gaussian").prior
    y = potential.problem.y[:, 0]

    @jax.jit
    def weighted(key):
        hidden = jax.vmap(potential.draw)(jax.random.split(key, batch))
        phi = jax.vmap(lambda weights: potential.features(weights, potential.problem.x))(hidden)
        kernels = phi @ jnp.swapaxes(phi, 1, 2)
        noisy = kernels + system.temperature * jnp.eye(y.size)
        weights = jnp.exp(
            -jnp.linalg.slogdet(noisy)[1] / 2
            - jnp.einsum("a,zab,b->z", y, jnp.linalg.inv(noisy), y) / 2
        )
        return jnp.mean(weights), jnp.mean(weights[:, None, None] * (kernels - prior), axis=0)

    weights, changes = jax.lax.map(weighted, jax.random.split(jax.random.key(1), draws // batch))
    mean = jnp.mean(changes, axis=0) / jnp.mean(weights)
    error = (
        jnp.std(changes - weights[:, None, None] * mean, axis=0)
        / np.sqrt(weights.size)
        / jnp.mean(weights)
    )
    return system.widths[0] * mean, system.widths[0] * error


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (FullyConnected, {"activation": "erf"}),
        (FullyConnected, {"activation": "relu"}),
        (Convolutional, {"activation": "relu"}),
        pytest.param(LocallyConnected, {"activation": "relu"}, marks=pytest.mark.slow),
        pytest.param(
            Convolutional, {"activation": "relu", "readout": "average"}, marks=pytest.mark.slow
        ),
    ],
)
def test_similarity_is_of_first_order_and_gaussian_units_are_not(kind, options):
    """Every entry against the posterior of real networks with 40 units on three examples. What is
    left is of order 1/N^2."""
    x, y = np.random.default_rng(0).normal(size=(3, 4, 2)), np.array([1.0, -0.7, 0.4])
    fixed = {"temperature": 0.5} | options
    if kind is FullyConnected:
        system = FullyConnected(x.reshape(3, 8), y, x.reshape(3, 8), y, width=40, **fixed)
    else:
        system = kind(x, y, x, y, channels=40, mask=2, **fixed)
    measured, error = measured_change(system)
    actual, gaussian = similarity(system), similarity(system, units="gaussian")
    first, wick = (40 * (one.posterior - one.prior) for one in (actual, gaussian))
    allowed = 4 * error + 40 * actual.numerical_error + 2 / 40 * jnp.max(jnp.abs(first))
    assert np.all(np.abs(first - measured) < allowed)
    assert np.max(np.abs(wick - measured) / allowed) > 2


def test_gaussian_units_are_exact_for_linear_ones():
    system = SMALL.with_(activation="linear")
    assert np.allclose(
        similarity(system).posterior,
        similarity(system, units="gaussian").posterior,
        rtol=0,
        atol=1e-13,
    )


@pytest.mark.slow
def test_the_matrix_of_sampled_networks_is_that_of_first_order():
    """Digits, 30 channels at four patches: entries and not one average, in which diagonal and
    off-diagonal ones cancel."""
    fields, shape = image_data("digits", 40, 10)
    system = Convolutional(**as_images(fields, shape), channels=30, temperature=0.1, mask=4)
    actual, gaussian = similarity(system), similarity(system, units="gaussian")
    runs = [sampled_similarity(system, jax.random.key(seed), samples=400) for seed in range(2)]
    measured = np.mean([run.posterior for run in runs], axis=0) - actual.prior
    first, wick = (np.asarray(one.posterior - one.prior) for one in (actual, gaussian))
    assert np.corrcoef(first.ravel(), measured.ravel())[0, 1] > 0.95
    assert np.sqrt(np.mean((first - measured) ** 2)) < 0.5 * np.sqrt(
        np.mean((wick - measured) ** 2)
    )


@pytest.mark.parametrize(
    "theory",
    [
        finite_width,
        infinite_width,
        integrated_width,
        kernel_corrected,
        partial(similarity, units="gaussian"),
    ],
)
def test_no_noise_and_a_singular_kernel_is_no_result(theory):
    """More examples than features at T = 0: numbers, or converged is False."""
    rng = np.random.default_rng(0)
    system = FullyConnected(
        rng.normal(size=(12, 5)), rng.normal(size=12), rng.normal(size=(3, 5)), np.ones(3),
        width=8, temperature=0.0, activation="linear",
    )  # fmt: skip
    found = theory(system)
    assert not found.converged or all(
        np.isfinite(getattr(found, name)).all() for name in type(found).dims()
    )
    assert theory(system.with_(temperature=0.1)).converged


def test_a_maximum_of_the_action_lies_between_its_minima():
    one = np.ones((1, 1))
    system = FullyConnected(
        one,
        np.array([np.sqrt(1e7 * 50)]),
        one,
        np.ones(1),
        width=50,
        temperature=1e4,
        depth=2,
        activation="linear",
    )
    found = branches(system)
    assert found.barrier_order_parameters[0] == pytest.approx([9.03993448] * 2, rel=1e-8)
    assert found.barrier_action[0] > found.action[1]
    assert np.isnan(found.barrier_action[1])
    assert np.isnan(branches(SMALL).barrier_action).all()


@pytest.fixture(scope="module")
def linear_posterior():
    system = SMALL.with_(activation="linear", width=10)
    return integrated_width(system), sampled_network(
        system, jax.random.key(1), warmup=120, samples=300
    )


def test_sampling_a_linear_network_gives_the_exact_posterior(linear_posterior):
    exact, measured = linear_posterior
    assert measured.converged
    assert measured.train_error == pytest.approx(float(exact.train_error), rel=0.04)
    assert measured.test_error == pytest.approx(float(exact.test_error), rel=0.04)


def test_the_order_parameter_is_the_length_of_the_readout(linear_posterior):
    exact, measured = linear_posterior
    assert measured.order_parameters.item() == pytest.approx(float(exact.scale), rel=0.08)


@pytest.mark.slow
def test_langevin_samples_the_same_posterior(linear_posterior):
    exact, _ = linear_posterior
    system = SMALL.with_(activation="linear", width=10)
    measured = langevin_training(system, jax.random.key(0), burn_in=4000, samples=400, thin=60)
    assert measured.train_error == pytest.approx(float(exact.train_error), rel=0.1)


@pytest.mark.slow
def test_sampled_patches_agree_with_local_renormalisation():
    system = convolutional()
    theory, measured = (
        finite_width(system),
        sampled_network(system, jax.random.key(0), warmup=120, samples=200),
    )
    assert measured.test_error == pytest.approx(float(theory.test_error), rel=0.15)
    upper = np.triu_indices(4)
    assert (
        np.abs((theory.order_parameters - measured.order_parameters).squeeze()[upper]).max() < 0.15
    )


def test_prediction_on_data():
    from orderparam.data import apply_task, load, standardise

    report = predict_width(
        *apply_task(standardise(load("digits")), "even-odd"), [20, 1e7], n_train=60, n_test=50
    )
    assert float(report["gain"][1]) == pytest.approx(0, abs=1e-5)
    assert "width" in report.attrs["verdict"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 0}, "width"),
        ({"temperature": -1.0}, "temperature"),
        ({"depth": 0}, "depth"),
        ({"n_train": 41}, "n_train"),
        ({"activation": "erff"}, "erf"),
        ({"width": np.array([3.0, 4.0])}, "width"),
        ({"targets": np.ones(39)}, "targets"),
        ({"inputs": np.full((40, 64), np.nan)}, "inputs"),
    ],
)
def test_bad_dense_systems_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        SMALL.with_(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"mask": 41}, "mask"), ({"stride": 0}, "stride"), ({"padding": -1}, "padding")],
)
def test_bad_patches_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        convolutional(**changes)


def test_half_a_unit_cannot_be_sampled():
    with pytest.raises(ValueError, match=r"width = 3.5.*whole number"):
        sampled_network(SMALL.with_(width=3.5), jax.random.key(0))


def test_unknown_closure_is_refused():
    with pytest.raises(ValueError, match="nested"):
        finite_width(SMALL, closure="nestd")
