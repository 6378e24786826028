"""Numbers of examples that linear convolutional networks on patches need."""

from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.systems.kernel_adaptation import (
    PatchNetwork,
    adapted_weights,
    gaussian_process,
    hermite_target,
    measured_patch_examples,
    patch_examples_needed,
)
from orderparam.systems.kernel_adaptation.patches.examples_needed import regressed_patches
from orderparam.systems.kernel_adaptation.patches.studies import linear_patches

LINEAR = PatchNetwork(10, 2, 200, 20, 1.0, hermite_target({1: 1.0}), activation="linear")
CHI = LINEAR.scaling(100.0)


def test_a_large_network_needs_the_power_three_quarters_of_its_inputs():
    """Learnability max(0, 1 - P_c/P) of a large system: one half at P = 2 P_c."""
    found = patch_examples_needed(CHI.with_(patch_dim=1000.0))
    grown = CHI.with_(patch_dim=1000.0, patches=200.0, channels=20000.0)
    np.testing.assert_allclose(found.examples, 2 * grown.critical_examples, rtol=0.05)
    assert bool(found.converged)
    larger = patch_examples_needed(CHI.with_(patch_dim=2000.0))
    exponent = np.log(larger.examples / found.examples) / np.log(larger.dimension / found.dimension)
    np.testing.assert_allclose(exponent, 0.75, atol=0.01)


def test_regression_agrees_with_the_average_over_data():
    system = CHI.with_(patch_dim=20, patches=4, n_train=90)
    theory = gaussian_process(system, ridge_kind="self-consistent").learnability[0]
    runs = [
        float(regressed_patches(system, key).learnability[0])
        for key in jax.random.split(jax.random.key(0), 64)
    ]
    error = np.std(runs, ddof=1) / 8
    assert error < 0.03
    assert abs(np.mean(runs) - float(theory)) < 3 * error


def test_sizes_grow_with_the_patch():
    seen = []

    def learner(system, key):
        sizes = ("patch_dim", "patches", "channels", "n_train")
        seen.append([float(getattr(system, name)) for name in sizes])
        share = 30.0 / system.n_train
        return SimpleNamespace(learnability=jnp.asarray([1 - share]), converged=True)

    run = partial(measured_patch_examples, learner=learner, power=1.0, ratios=(1.0, 2.0))
    found = run(CHI.with_(patch_dim=15), jax.random.key(0))
    assert seen == [[15, 3, 300, 45], [15, 3, 300, 90]]
    np.testing.assert_allclose([found.examples, found.dimension], [60, 45])


@pytest.mark.parametrize("examples", [3.0, 10.0])
def test_the_trace_that_is_not_learned_doubles_the_critical_number(examples):
    """1 - (1 + s v / T) P_c / P is the limit of large linear networks with the effective ridge;
    here s v = T."""
    system = linear_patches(2000.0, 100.0)
    at = system.with_(n_train=examples * system.critical_examples)
    found = adapted_weights(at, ridge_kind="self-consistent")
    np.testing.assert_allclose(found.ridge_ratio, 2, rtol=0.01)
    np.testing.assert_allclose(found.total_learnability, 1 - 2 / examples, atol=0.006)
