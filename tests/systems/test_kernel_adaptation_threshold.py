"""Numbers of examples at which nearly all of a component is learned."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

from orderparam.gaussian import activation, hermite
from orderparam.systems.kernel_adaptation import (
    TwoLayerNetwork,
    examples_needed,
    gaussian_process,
    gaussian_process_all_modes,
    hermite_target,
    measured_examples_needed,
)
from orderparam.systems.kernel_adaptation.network import HermiteTarget, HiddenLayer
from orderparam.systems.kernel_adaptation.two_layers.all_modes import projections
from orderparam.systems.kernel_adaptation.two_layers.examples_needed import (
    regressed,
    sampled_hidden,
)
from orderparam.systems.kernel_adaptation.two_layers.experiment import training_set
from orderparam.systems.kernel_adaptation.two_layers.studies_complexity import one_unit

LINEAR = TwoLayerNetwork(20, 60, 100, 0.5, hermite_target({1: 1.0}), 0.7, 0.4, activation="linear")


def learned(share, converged=True):
    """A learner whose share of the mode that is not learned is share(n)."""
    return lambda system, key: SimpleNamespace(
        learnability=jnp.asarray([1 - share(system.n_train)]), converged=converged
    )


def test_a_power_law_of_the_share_not_learned_is_found():
    options = {"mode": 0, "threshold": 0.9, "power": 1.5, "ratios": (2.0, 4.0, 8.0)}
    found = measured_examples_needed(
        LINEAR, jax.random.key(0), learner=learned(lambda n: 30.0 / n), **options
    )
    assert bool(found.converged)
    # n = round(ratio 20^1.5) is within 0.3 % of the ratio that is reported
    np.testing.assert_allclose(found.examples, 300, rtol=0.01)
    np.testing.assert_allclose(found.per_dimension, found.examples / 20)


@pytest.mark.parametrize(
    "learner",
    [
        learned(lambda n: 3000.0 / n**1.2),  # reached far beyond the measured points
        learned(lambda n: 0.1 + 1e-4 * n),  # learns less from more
        learned(lambda n: 4.0 / n, converged=False),
    ],
)
def test_a_threshold_that_is_not_measured_is_not_converged(learner):
    options = {"mode": 0, "threshold": 0.9, "ratios": (2.0, 4.0)}
    found = measured_examples_needed(LINEAR, jax.random.key(0), learner=learner, **options)
    assert not bool(found.converged)


ONE_UNIT = TwoLayerNetwork(
    4, 8, 384, 0.005, hermite_target(one_unit(0.3), normalised=True), 0.05, 0.5
)


def test_projections_of_the_kernel_are_averages_over_inputs():
    x, drawn = (
        jax.random.normal(jax.random.key(k), (count, 4)) for k, count in ((3, 2), (4, 200_000))
    )
    kernel = 0.05 * activation("erf").two_point(
        0.125 * jnp.sum(drawn**2, 1)[:, None], 0.125 * drawn @ x.T, 0.125 * jnp.sum(x**2, 1)
    )
    terms = jnp.stack([hermite(k, drawn[:, 0]) for k in (1, 3, 5, 7)])[:, :, None] * kernel
    off = (projections(ONE_UNIT, x) - terms.mean(1)) / (terms.std(1) / np.sqrt(len(drawn)))
    assert np.all(np.abs(off) < 4.5)


def test_regression_agrees_with_the_theory_of_all_modes():
    runs = [regressed(ONE_UNIT, key) for key in jax.random.split(jax.random.key(0), 24)]
    assert all(bool(run.converged) for run in runs)
    found = np.asarray([run.learnability for run in runs])
    error = found.std(0, ddof=1) / np.sqrt(len(runs))
    theory = gaussian_process_all_modes(ONE_UNIT)
    assert bool(theory.converged)
    assert np.all(error < 0.01)
    assert np.all(np.abs(found.mean(0) - theory.learnability) < 3 * error + 0.01)


def test_all_modes_are_hermite_polynomials_in_the_limit_of_many_inputs():
    """The eigenvalue of degree k is s c_k^2 k! / d^k there, d^k / k! times."""
    d, phi = 3000.0, activation("erf")
    wide = ONE_UNIT.with_(input_dim=d, n_train=12 * d**3)
    power = np.asarray(phi.hermite_coefficients(4, 0.5))[[1, 3]] ** 2
    counts = np.array([d, d**3 / 6])
    levels = 0.05 * power / counts
    ridge = 0.005 + 0.05 * (float(phi.moment(2, 0.5)) - power.sum())
    kappa = brentq(
        lambda k: ridge / k + counts @ (levels / (levels + k)) - 12 * d**3, 1e-20, 1.0, xtol=1e-30
    )
    found = gaussian_process_all_modes(wide)
    np.testing.assert_allclose(found.learnability[:2], levels / (levels + kappa), rtol=2e-3)


def test_linear_units_have_linear_modes_at_any_number_of_inputs():
    """Their kernel is s v x.x'/d, whose only eigenfunctions are the inputs themselves; the theory
    of all modes is one of erf units and refuses them."""
    with pytest.raises(ValueError, match="activation"):
        gaussian_process_all_modes(LINEAR)
    x = training_set(LINEAR, jax.random.key(1))[0]
    np.testing.assert_allclose(projections(LINEAR, x)[0], 0.7 * 0.4 / 20 * x[:, 0], rtol=1e-9)


def test_measured_regression_agrees_with_the_average_over_data():
    """Linear units, of which a fixed kernel is exactly a ridge: theory with the effective ridge."""
    options = {"mode": 0, "threshold": 0.8, "units_per_input": 3.0}
    theory = examples_needed(
        LINEAR,
        theory=lambda system: gaussian_process(system, ridge_kind="effective"),
        **options,
    )
    ratio = float(theory.per_dimension)
    runs = [
        measured_examples_needed(
            LINEAR, key, learner=regressed, ratios=(0.5 * ratio, 2 * ratio), **options
        )
        for key in jax.random.split(jax.random.key(0), 16)
    ]
    found = np.asarray([float(run.examples) for run in runs])
    error = found.std(ddof=1) / np.sqrt(len(found))
    assert error < 0.03 * float(theory.examples)
    assert abs(found.mean() - float(theory.examples)) < 3 * error + 0.02 * float(theory.examples)


def test_smaller_training_sets_are_parts_of_larger_ones():
    (x, y), (more, z) = (training_set(LINEAR.with_(n_train=n), jax.random.key(5)) for n in (7, 20))
    np.testing.assert_array_equal(x, more[:7])
    np.testing.assert_array_equal(y, z[:7])


def test_a_network_of_one_patch_is_the_two_layer_network():
    """With very many units the read-out that is integrated out leaves regression."""
    system = LINEAR.with_(input_dim=5, width=400, n_train=30)
    key = jax.random.key(2)
    sampled = sampled_hidden(system, key, warmup=40, samples=40)
    assert sampled.learnability.shape == (1,)
    same_data = float(regressed(system, key).learnability[0])
    assert abs(float(sampled.learnability[0]) - same_data) < 0.01


def test_coefficients_of_one_unit():
    """erf(rho z): the overlaps of a neuron with weight rho w_* that the theories use."""
    rho = 0.8
    x = rho**2 / (1 + 2 * rho**2)
    layer = HiddenLayer(
        9.0, 1.0, 1.0, 1.0, 1.0, 1.0, HermiteTarget(jnp.zeros(1)), activation("erf"), (1, 3, 5, 7)
    )
    z, weight = np.polynomial.hermite_e.hermegauss(80)
    values = np.asarray(layer.phi(rho * z))
    found = []
    for k in layer.degrees:
        series = np.zeros(k + 1)
        series[k] = 1 / np.sqrt(float(np.prod(np.arange(1.0, k + 1))))
        found.append(weight @ (values * np.polynomial.hermite_e.hermeval(z, series)))
    wanted = one_unit(x)
    np.testing.assert_allclose(
        np.asarray(found) / found[0], [wanted[k] for k in layer.degrees], rtol=1e-6
    )
