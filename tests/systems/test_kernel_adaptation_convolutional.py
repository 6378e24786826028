"""Convolutional networks of three layers that learn a teacher."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from orderparam.systems.kernel_adaptation import (
    ConvolutionalOnData,
    convolutional_gaussian_layers,
    convolutional_gaussian_process,
    sampled_convolutional_network,
    teacher_data,
)
from orderparam.systems.kernel_adaptation.convolutional.experiment import ConvolutionalPosterior
from orderparam.systems.kernel_adaptation.convolutional.theory import directions, wide_scale

TAUGHT = teacher_data(6, 5, groups=2, group=3, patch_dim=4)
SYSTEM = ConvolutionalOnData(*TAUGHT, 5, 0.2, 0.7, 1.3, 1.9)


def _kernel(system, u):
    """The kernel of one network, channel by channel."""
    x, groups = np.asarray(system.inputs), system.groups
    first = special.erf(np.sqrt(1.3 / x.shape[2]) * np.einsum("nps,cs->npc", x, u[0]))
    below = first.reshape(len(x), groups, -1)
    second = np.sqrt(1.9 / below.shape[2]) * np.einsum("ngf,jf->ngj", below, u[1])
    phi = special.erf(second)
    kernel = sum(phi[:, g] @ phi[:, g].T for g in range(groups))
    return second, 0.7 / (groups * len(u[1])) * kernel


def test_the_density_is_the_prior_times_the_evidence():
    random = np.random.default_rng(0)
    u = (random.standard_normal((5, 4)), random.standard_normal((5, 15)))
    kernel = _kernel(SYSTEM, u)[1] + 0.2 * np.eye(6)
    y = np.asarray(SYSTEM.targets)
    evidence = y @ np.linalg.solve(kernel, y) + np.linalg.slogdet(2 * np.pi * kernel)[1]
    exact = -(evidence + sum(np.sum(part**2) for part in u)) / 2
    posterior = ConvolutionalPosterior(SYSTEM, wide_scale(SYSTEM))
    assert float(posterior(tuple(map(jnp.asarray, u)))) == pytest.approx(exact, rel=1e-10)


def test_infinite_width_is_the_limit_of_drawn_networks_and_of_gaussian_layers():
    wide = SYSTEM.with_(channels=1e10)
    process, layers = convolutional_gaussian_process(wide), convolutional_gaussian_layers(wide)
    for field in ("total_learnability", "train_learnability", "variance"):
        np.testing.assert_allclose(getattr(layers, field), getattr(process, field), rtol=1e-6)
    # one network of 3,000 channels: filters of unit variance, pre-activations and kernel as in
    # the limit
    random = np.random.default_rng(1)
    u = (random.standard_normal((3000, 4)), random.standard_normal((3000, 9000)))
    second, kernel = _kernel(SYSTEM, u)
    points = np.asarray(directions(SYSTEM)[1])
    flat = second.reshape(12, -1)
    variances = np.mean((points.T @ flat) ** 2, axis=1) / float(wide_scale(SYSTEM))
    np.testing.assert_allclose(process.variance[2:], variances, rtol=0.08)
    y = np.asarray(SYSTEM.targets)
    fit = y @ kernel @ np.linalg.solve(kernel + 0.2 * np.eye(6), y) / (y @ y)
    assert float(process.train_learnability) == pytest.approx(fit, abs=0.01)


def test_the_teacher_is_the_network_with_one_channel():
    x, y, hidden, *_ = TAUGHT
    expected = 1.5 * (special.erf(x[:, :, 0]).reshape(6, 2, 3) @ [1, -1, 1]) / np.sqrt(3)
    np.testing.assert_allclose(hidden, expected, rtol=1e-12)
    raw = special.erf(expected).sum(axis=1)
    np.testing.assert_allclose(y / y[0], raw / raw[0], rtol=1e-12)


def test_networks_before_training_have_the_variances_of_the_process_in_their_order():
    """A network of any number of channels has them in the mean; 512 networks of 20 channels."""
    system = ConvolutionalOnData(
        *teacher_data(20, 5, groups=2, group=2, patch_dim=4), 20, 1e6, hidden_variance=1.5
    )
    process = convolutional_gaussian_process(system)
    found = sampled_convolutional_network(system, jax.random.key(0), samples=150)
    np.testing.assert_allclose(found.variance_before, process.variance, rtol=0.08)
    assert float(process.variance[2]) > 1.5  # the teacher's direction is told from the random one
    # at this temperature the posterior is the prior
    np.testing.assert_allclose(found.variance, process.variance, rtol=0.1)


def test_the_gradient_vanishes_and_filters_turn_to_the_teacher():
    system = ConvolutionalOnData(*teacher_data(20, 5, groups=2, group=2, patch_dim=4), 20, 0.1)
    adapted, wide = convolutional_gaussian_layers(system), convolutional_gaussian_process(system)
    assert bool(adapted.converged)
    assert float(adapted.variance[0]) > 1.05
    assert float(adapted.variance[2]) > 1.05 * float(wide.variance[2])
    assert float(adapted.train_learnability) > float(wide.train_learnability)


def test_groups_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="must divide 6 patches"):
        SYSTEM.with_(teacher=np.ones((6, 4)))
