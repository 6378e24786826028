"""The time in which neurons cross their barrier: integrals, limits, and Langevin dynamics."""

import jax
import numpy as np
import pytest
from scipy.integrate import cumulative_simpson
from scipy.interpolate import CubicSpline

from orderparam.systems.kernel_adaptation import (
    TwoLayerNetwork,
    escape_time,
    escaping_network,
    escaping_neurons,
    hermite_target,
    unspecialised_network,
)
from orderparam.systems.kernel_adaptation.two_layers.escape import held_at

WIDTH = 320


def network(temperature, input_dim=100):
    """A network of erf units on a cubic target, in mean-field scaling."""
    cubic = hermite_target({3: 1.0}, normalised=True)
    return TwoLayerNetwork(
        input_dim, WIDTH, 1000, temperature / WIDTH, cubic, readout_variance=0.032 / WIDTH
    )


def test_the_time_is_the_double_integral_over_the_density():
    system = network(0.4)
    found = escape_time(system, ridge_kind="bare")
    rho, log_density, _ = (
        np.asarray(part) for part in held_at(system.hidden, system.hidden.ridge).free.along
    )
    near = rho < 2 * float(found.crossed)
    potential = CubicSpline(rho[near], log_density[0] - log_density[near])
    x = np.linspace(0, float(found.crossed), 100_001)
    inner = cumulative_simpson(np.exp(-potential(x)), x=x, initial=0)
    passage = cumulative_simpson(np.exp(potential(x)) * inner, x=x, initial=0)[-1]
    assert float(found.time * found.recrossing) == pytest.approx(100 * passage, rel=1e-4)


def test_the_barrier_is_that_of_a_network_before_specialisation():
    system = network(0.4).with_(n_train=400, temperature=0.055, width=80, readout_variance=0.04)
    found, before = escape_time(system), unspecialised_network(system)
    assert float(found.barrier) == pytest.approx(float(before.escape), rel=1e-12)
    assert float(found.border) == pytest.approx(float(before.border), rel=1e-12)
    assert found.border < found.crossed < 2 * found.border


def test_kramers_is_the_limit_of_high_barriers():
    found = [escape_time(network(t), ridge_kind="bare") for t in (0.4, 0.8, 1.6)]
    missing = [1 - float(one.kramers_time / one.time) for one in found]
    barriers = [float(one.barrier) for one in found]
    assert barriers[-1] > 9
    assert 0.12 > missing[0] > missing[1] > missing[2] > 0
    assert missing[2] < 0.05


def test_slow_weights_of_many_inputs_do_not_cross_back():
    factors = [
        float(escape_time(network(t, d), hidden_rate=rate, ridge_kind="bare").recrossing)
        for t, d, rate in ((0.4, 100, 1.0), (0.4, 100, 0.1), (0.4, 100, 1e-4), (4e-3, 10_000, 1e-4))
    ]
    assert factors == sorted(factors)
    assert factors[0] < 0.5
    assert 0.97 < factors[-1] < 1


def test_a_centre_without_maximum_is_flagged_and_a_sound_one_is_never_left():
    linear = hermite_target({1: 1.0})
    assert not bool(escape_time(network(1e-3).with_(target=linear)).converged)
    assert float(escape_time(network(1e4)).time) == np.inf


def test_independent_neurons_cross_in_the_time_of_the_theory():
    system = network(0.4)
    theory = escape_time(system, hidden_rate=0.1, ridge_kind="bare")
    options = {"hidden_rate": 0.1, "crossings": 100, "step": 0.1}
    times = [
        float(escaping_neurons(system, jax.random.key(seed), **options).time) for seed in range(6)
    ]
    # 600 crossings: 4 % of statistical error; Langer's factor is that of high barriers
    assert np.mean(times) == pytest.approx(float(theory.time), rel=0.16)


def test_the_neurons_of_a_network_cross_in_the_time_of_the_theory():
    system = network(0.27)
    theory = escape_time(system, hidden_rate=0.1, ridge_kind="bare")
    options = {"hidden_rate": 0.1, "crossings": 32, "returned": True}
    runs = [escaping_network(system, jax.random.key(seed), **options) for seed in range(4)]
    assert all(bool(run.converged) for run in runs)
    # 128 crossings: 9 % of statistical error
    assert np.mean([float(run.time) for run in runs]) == pytest.approx(float(theory.time), rel=0.3)


@pytest.mark.parametrize(
    ("call", "options", "named"),
    [
        (escape_time, {"hidden_rate": 0.0}, "hidden_rate"),
        (escaping_neurons, {"key": jax.random.key(0), "step": -1.0}, "step"),
        (escaping_neurons, {"key": jax.random.key(0), "longest": np.inf}, "longest"),
        (escaping_neurons, {"key": jax.random.key(0), "neurons": 0}, "neurons"),
        (escaping_network, {"key": jax.random.key(0), "step": np.inf}, "step"),
        (escaping_network, {"key": jax.random.key(0), "crossings": 0.5}, "crossings"),
    ],
)
def test_impossible_options_are_refused(call, options, named):
    with pytest.raises(ValueError, match=named):
        call(network(0.4), **options)


def test_a_network_without_closed_form_is_refused():
    with pytest.raises(ValueError, match="activation"):
        escaping_network(network(0.4).with_(activation="relu"), jax.random.key(0))
