"""Trained networks: the theory of infinite width, and networks that are trained and inspected."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.networks.convolutional import convolutional
from orderparam.networks.fully_connected import fully_connected
from orderparam.observables import alignment
from orderparam.observables.tangent_kernel import factor, linearised
from orderparam.systems.trained_networks import (
    InspectedTraining,
    infinite_width,
    inspected_network,
    permuted_targets,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5))
Y = X[:, 0] + 0.5 * X[:, 1] * X[:, 2]
DENSE = fully_connected(2, None, "erf_scaled", weight_variance=1.5, readout_variance=1.0)


def _system(width=64, **fields):
    return InspectedTraining(X[:30], Y[:30], X[30:], Y[30:], DENSE, width, **fields)


def test_the_alignment_of_infinite_width_is_that_of_its_kernel():
    """From whole kernels here, from activations in `alignment`."""
    found = infinite_width(_system()).alignment[0]
    for depth, value in enumerate(found, 1):
        kernel = fully_connected(depth, None, "erf_scaled", weight_variance=1.5).nngp(X[:30])
        columns = factor(np.asarray(kernel))
        same = alignment(columns, Y[:30], estimand="examples", draws=0)
        assert float(value) == pytest.approx(same.plain, rel=1e-8)


def test_the_outputs_of_infinite_width_are_those_of_the_linearised_network():
    system = _system(levels=(0.3,))
    kernel = DENSE.kernel(X[:30]).ntk
    across = DENSE.kernel(X[30:], X[:30]).ntk
    y, nothing = Y[:30, None], np.zeros((30, 1))
    left = y * (1 - 0.3**0.5)  # any outputs with the training error of the level
    outputs = linearised(nothing, across, kernel, nothing, left, y)[:, 0]
    expected = np.mean((outputs - Y[30:]) ** 2)
    assert float(infinite_width(system).test_error[1]) == pytest.approx(expected, rel=1e-8)


def test_chance_is_exceeded_by_one_permutation_in_a_hundred():
    system = _system()
    edge = np.asarray(permuted_targets(system, draws=2000).wide_alignment)
    other = np.random.default_rng(1)
    for layer in range(2):
        above = 0
        for _ in range(400):
            turned = system.with_(targets=other.permutation(Y[:30]))
            above += float(infinite_width(turned).alignment[0, layer]) > edge[layer]
        assert above / 400 < 0.03


@pytest.mark.long
def test_lazy_networks_approach_infinite_width_and_rich_ones_leave_it():
    keys = jax.random.split(jax.random.key(0), 8)
    wide = infinite_width(_system())

    def runs(width, richness):
        system = _system(width, richness=richness, levels=(0.3,))
        found = [inspected_network(system, key) for key in keys]
        return jax.tree.map(lambda *parts: np.stack(parts), *found)

    lazy, rich = runs(64, 0.02), runs(64, 2.0)
    assert lazy.converged.all()
    assert lazy.lazy_to_rich[:, 1].max() < 0.1 < rich.lazy_to_rich[:, 1].min()
    assert lazy.shape_drift[:, 1].mean() < 0.02 * rich.shape_drift[:, 1].mean()
    first = lazy.wide_alignment[:, :, 0]
    error = first.std(axis=0, ddof=1) / 8**0.5
    assert np.all(np.abs(first.mean(axis=0) - float(wide.alignment[0, 0])) < 4 * error)
    assert np.all(lazy.similarity[:, 1] > 0.999)
    assert np.all(rich.alignment[:, 1].mean(axis=0) > rich.alignment[:, 0].mean(axis=0))


def test_a_convolutional_network_has_channels_for_neurons():
    images = RNG.normal(size=(20, 4, 4, 2))
    network = convolutional(2, 6, 3, "relu", strides=2)
    system = InspectedTraining(images[:14], Y[:14], images[14:], Y[14:20], network, levels=(0.6,))
    found = inspected_network(system, jax.random.key(0))
    assert found.alignment.shape == (2, 2)
    assert float(found.train_error[1]) <= 0.6 * np.mean(Y[:14] ** 2)
    assert jnp.isfinite(found.alignment).all()
    wide = infinite_width(system)
    assert wide.alignment.shape == (2, 2)


def test_the_start_alone_is_looked_at_without_levels():
    found = inspected_network(_system(levels=(1.0,)), jax.random.key(0))
    assert found.lazy_to_rich.tolist() == [0.0]
    assert infinite_width(_system(levels=(1.0,))).test_error.shape == (1,)


def test_what_is_refused():
    with pytest.raises(ValueError, match="must fall"):
        _system(levels=(0.1, 0.5))
    with pytest.raises(ValueError, match="must fall"):
        _system(levels=())
    standard = fully_connected(1, None, "erf", scaling="standard")
    with pytest.raises(ValueError, match="must be 'ntk'"):
        InspectedTraining(X[:30], Y[:30], X[30:], Y[30:], standard)
