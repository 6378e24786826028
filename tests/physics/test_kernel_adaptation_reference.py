"""Reference values of kernel adaptation, computed by an independent prototype (another quadrature,
another optimiser)."""

import math
from functools import partial

import numpy as np
import pytest

from orderparam.systems.kernel_adaptation import (
    NetworkOnData,
    TwoLayerNetwork,
    adapted_weights,
    gaussian_process,
    gaussian_process_on_data,
    gaussian_weights,
    gaussian_weights_on_data,
    hermite_target,
    kernel_scaling_on_data,
)

CUBIC = hermite_target({1: 1.0, 3: -0.3})
SMALL = TwoLayerNetwork(20, 100, 400, 0.2, CUBIC, 0.015, 0.5, modes=(1, 3))
RELU = TwoLayerNetwork(24, 188, 240, 1.0, hermite_target({1: 1.0}), absolute=0.3, activation="relu")


def scaled(beta: float, reduced: float) -> TwoLayerNetwork:
    root = math.sqrt(beta)
    return TwoLayerNetwork(
        150 * root, 700 * beta, 3000 * beta, reduced * root / 20, CUBIC, 0.05, 0.5, modes=(1, 3)
    )


def test_erf_network_before_and_after_specialisation():
    one = adapted_weights(SMALL)
    np.testing.assert_allclose(one.output, [0.747618925, -0.092005904], atol=1e-9)
    np.testing.assert_allclose([one.spread, one.norm], [5.839878154, 0.574030027], atol=1e-9)
    assert float(one.action) == pytest.approx(-894.887277986, abs=1e-8)
    assert int(one.phase) == 0
    later = adapted_weights(SMALL.with_(n_train=1600))
    np.testing.assert_allclose(later.output, [1.006069454, -0.282494775], atol=1e-9)
    np.testing.assert_allclose([later.spread, later.norm], [10.102813937, 0.676246630], atol=1e-8)
    assert int(later.phase) == 1
    assert float(later.well) == pytest.approx(1.227, abs=5e-3)


def test_two_modes_are_not_enough_for_specialised_neurons():
    four = adapted_weights(SMALL.with_(n_train=1600, modes=None))
    np.testing.assert_allclose(
        four.output, [0.997496001, -0.251182004, 0.107617074, -0.053798040], atol=2e-9
    )
    assert float(four.spread) == pytest.approx(9.420354737, abs=1e-8)
    two = adapted_weights(SMALL.with_(n_train=1600))
    assert float(two.omitted) > 0.1
    assert not bool(two.reliable)  # says so itself


def test_few_inputs_and_many_examples():
    """On wide grids of 10^6 nodes. With many examples the central maximum itself has split, while
    others have specialised."""
    few = adapted_weights(SMALL.with_(input_dim=3, width=15, n_train=60, modes=None))
    np.testing.assert_allclose(
        few.output, [0.641612847, -0.153122598, 0.064246194, -0.032316358], atol=5e-9
    )
    np.testing.assert_allclose([few.spread, few.norm], [4.720564177, 0.990576871], rtol=3e-7)
    many = adapted_weights(SMALL.with_(n_train=1e4, modes=None))
    np.testing.assert_allclose(
        many.output, [1.033190805, -0.424796972, 0.200104113, -0.105150674], atol=2e-9
    )
    assert int(many.phase) == 1
    np.testing.assert_allclose([many.well, many.barrier_position], [1.162, 0.697], atol=5e-3)
    assert float(many.specialised) == pytest.approx(24.69, abs=0.05)


def test_the_limits_of_the_integration_are_known():
    system = SMALL.with_(modes=None)
    # wells too sharp
    assert not bool(adapted_weights(system.with_(input_dim=1e5, n_train=8e6, width=5e5)).converged)
    assert not bool(adapted_weights(system.with_(temperature=1e-6)).converged)
    for width in (1e8, 1e10):
        wide, process = adapted_weights(system.with_(width=width)), gaussian_process(system)
        assert bool(wide.converged)
        np.testing.assert_allclose(wide.output, process.output, atol=1e-4 * 1e6 / width)


def test_frozen_norm_of_the_landau_action():
    found = adapted_weights(SMALL, norm="prior")
    np.testing.assert_allclose(found.output, [0.723530647, -0.074053371], atol=1e-9)
    assert float(found.spread) == pytest.approx(6.011989925, abs=1e-8)


def test_scaling_set():
    """beta, reduced temperature -> f_1, f_3, spread, position of the well."""
    expected = {
        (1, 8): (0.727849002, -0.011940660, 3.289325255, 0),
        (1, 5): (0.856299897, -0.107790632, 4.121991982, 0.922),
        (1, 1): (1.029005962, -0.403507518, 8.709570266, 1.434),
        (4, 5): (0.768700073, -0.004259535, 2.581343814, 0.77),
        (4, 4): (0.828587859, -0.055176595, 2.869186300, 0.91),
        (4, 1): (1.017399452, -0.341731341, 5.320297269, 1.345),
    }
    for (beta, reduced), (first, third, spread, well) in expected.items():
        found = adapted_weights(scaled(beta, reduced))
        np.testing.assert_allclose([*found.output, found.spread], [first, third, spread], atol=2e-9)
        assert float(found.well) == pytest.approx(well, abs=6e-3)


def test_small_adaptation_at_large_width():
    system = TwoLayerNetwork(
        50, 10_000, 400, 0.01, hermite_target({1: 1.0, 3: -0.05}), 0.01, 0.5, modes=(1, 3)
    )
    found = adapted_weights(system)
    np.testing.assert_allclose(
        [*found.output, found.spread], [0.803550046, -0.014861987, 1.620642141], atol=1e-9
    )


def test_gaussian_weights():
    found = gaussian_weights(SMALL, branch="uninformed")
    np.testing.assert_allclose(found.output, [0.735379082, -0.082187108], atol=1e-8)
    np.testing.assert_allclose(
        [found.spread, found.perpendicular], [5.893622, 0.88771884], atol=1e-6
    )
    assert float(found.action) + (math.log(40) + 20) / 2 == pytest.approx(20.911356227, abs=1e-8)
    found = gaussian_weights(SMALL.with_(n_train=1600), branch="uninformed")
    np.testing.assert_allclose(found.output, [1.015697847, -0.205683869], atol=1e-8)


def test_hysteresis_of_gaussian_weights():
    low, high = (partial(gaussian_weights, branch=branch) for branch in ("uninformed", "informed"))
    system = scaled(4, 0.36)
    a, b = low(system), high(system)
    np.testing.assert_allclose([a.spread, b.spread], [4.6077, 33.2762], atol=1e-4)
    assert float(a.action - b.action) == pytest.approx(186.215346 - 184.800307, abs=2e-6)
    a, b = low(scaled(4, 0.30)), high(scaled(4, 0.30))
    np.testing.assert_allclose([a.spread, b.spread], [38.6328, 38.6328], atol=1e-4)
    a, b = low(scaled(4, 0.40)), high(scaled(4, 0.40))  # metastable up to 0.41
    np.testing.assert_allclose([a.spread, b.spread], [4.2261, 27.9018], atol=1e-4)
    assert float(a.action) < float(b.action)
    assert float(high(scaled(4, 0.42)).spread) < 5


def test_relu_network():
    found = adapted_weights(RELU.scaling(30))
    np.testing.assert_allclose(
        found.output, [0.006704195, 0.915563853, 0.139670595, -0.030052092], atol=1e-9
    )
    np.testing.assert_allclose([found.spread, found.norm], [4.148946373, 1.130786110], atol=1e-8)
    standard = adapted_weights(RELU.with_(n_train=960))
    np.testing.assert_allclose(
        standard.output, [0.004867819, 0.935725356, 0.084148748, -0.008518680], atol=1e-9
    )


def test_relu_network_of_infinite_width_and_with_an_effective_ridge():
    process = gaussian_process(RELU)
    np.testing.assert_allclose(
        process.output, [0.004627984, 240 / (240 + 4 * 24), 0.009673133, -0.000597255], atol=1e-9
    )
    better = adapted_weights(RELU.scaling(30), ridge_kind="effective")
    np.testing.assert_allclose(better.learnability[1:3], [0.90190995, 0.79675285], atol=1e-8)
    np.testing.assert_allclose(
        [better.spread, better.ridge_ratio], [4.095651125, 1.1624282897], atol=1e-8
    )


def on_data(target, **changes) -> NetworkOnData:
    random = np.random.default_rng(0)
    x, test = random.standard_normal((60, 12)), random.standard_normal((500, 12))
    return NetworkOnData(
        x, target(x[:, 0]), test, target(test[:, 0]), width=100, readout_variance=0.1, **changes
    )


def test_erf_network_on_data():
    system = on_data(lambda z: z - 0.1 * (z**3 - 3 * z), temperature=0.05, weight_variance=0.5)
    process = gaussian_process_on_data(system)
    np.testing.assert_allclose(
        [process.total_learnability, process.test_error], [0.7359533374, 0.1025978905], atol=1e-9
    )
    for fluctuations, scale, learned in (
        (True, 2.258509396, 0.857860216),
        (False, 2.346796180, 0.862169220),
    ):
        found = kernel_scaling_on_data(system, fluctuations)
        np.testing.assert_allclose(
            [found.kernel_scale, found.total_learnability], [scale, learned], rtol=5e-8
        )
    found = gaussian_weights_on_data(system)
    assert bool(found.converged)
    assert float(found.action) == pytest.approx(6.3558400495, abs=1e-9)
    np.testing.assert_allclose(
        [found.total_learnability, found.test_error], [0.85498023, 0.04508593], atol=1e-7
    )
    np.testing.assert_allclose(found.eigenvalues[:2], [2.2882768, 0.9846005], atol=1e-6)


def test_relu_network_on_data():
    system = on_data(
        lambda z: z + 0.3 * (abs(z) - np.sqrt(2 / np.pi)), temperature=0.01, activation="relu"
    )
    assert float(gaussian_process_on_data(system).total_learnability) == pytest.approx(
        0.8590990648, abs=1e-9
    )
    found = gaussian_weights_on_data(system, fluctuations=False)
    assert float(found.action) == pytest.approx(7.4390113430, abs=1e-9)
    np.testing.assert_allclose(
        [found.total_learnability, found.covariance[0, 0]], [0.93537730, 2.8196687], atol=1e-7
    )


def test_linear_network_on_data_only_scales_its_kernel():
    """Without fluctuations Sigma has one outlier, the scale of the rescaled kernel, and both
    predict the same."""
    system = on_data(lambda z: z, temperature=0.01, activation="linear")
    scale, full = (
        f(system, fluctuations=False) for f in (kernel_scaling_on_data, gaussian_weights_on_data)
    )
    assert float(scale.kernel_scale) == pytest.approx(1.690957801, rel=2e-8)
    np.testing.assert_allclose(
        full.eigenvalues, [float(scale.kernel_scale), *np.ones(11)], atol=1e-7
    )
    np.testing.assert_allclose(full.mean, scale.mean, atol=1e-8)
