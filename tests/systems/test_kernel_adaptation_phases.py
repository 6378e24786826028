"""The phases of feature learning: measured densities, and free energies of shares of neurons."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from orderparam.systems.kernel_adaptation import (
    AdaptingNetwork,
    TwoLayerNetwork,
    adapted_weights,
    gaussian_process,
    hermite_target,
    share_free_energy,
    unspecialised_network,
)
from orderparam.systems.kernel_adaptation.two_layers.densities import (
    central_curvature,
    draw_passage,
)
from orderparam.systems.kernel_adaptation.two_layers.experiment import EDGES
from orderparam.systems.kernel_adaptation.two_layers.phase_map import measured_phase

BIN = np.linspace(-2.5, 2.5, 81)


def network(n_train, chi):
    return TwoLayerNetwork(
        10, 50, n_train, 10.0, hermite_target({1: 1.0, 3: -0.4}), 0.15, 0.5
    ).scaling(chi)


@pytest.fixture(scope="module")
def coexistence():
    system = network(700.0, 35.0)
    return share_free_energy(system), adapted_weights(system, ridge_kind="effective")


def test_the_free_energy_of_a_share_is_convex_and_least_at_equilibrium(coexistence):
    found, equilibrium = coexistence
    assert int(equilibrium.phase) == 1  # although the density of a neuron has two kinds of wells
    assert bool(found.converged)
    energy, share = np.asarray(found.free_energy), np.asarray(found.share)
    assert np.all(np.diff(energy, 2) > 0)
    assert np.all(energy >= 0)
    # the two grid points around the equilibrium are the lowest
    lowest = share[np.argsort(energy)[:2]]
    assert lowest.min() < found.equilibrium_share < lowest.max()
    np.testing.assert_allclose(
        np.interp(found.equilibrium_share, share, found.spread), equilibrium.spread, rtol=3e-3
    )


def test_without_adaptation_the_share_is_binomial():
    """At a strength that does not turn the weights, F(c) is N times the divergence of c from the
    prior's share."""
    found = share_free_energy(network(50.0, 1e-6))
    c, p = np.asarray(found.share)[1:-1], float(found.equilibrium_share)
    divergence = c * np.log(c / p) + (1 - c) * np.log((1 - c) / (1 - p))
    np.testing.assert_allclose(found.free_energy[1:-1], 50 * divergence, rtol=1e-6)


def test_the_share_follows_the_density_of_adapted_weights(coexistence):
    found, equilibrium = coexistence
    rho = np.linspace(0.5, 4, 2000)
    density = np.exp(np.interp(rho, equilibrium.overlap, equilibrium.log_density))
    np.testing.assert_allclose(found.equilibrium_share, 2 * np.trapezoid(density, rho), rtol=0.02)


@pytest.mark.parametrize(
    ("strength", "n_train", "phase"), [(105.0, 70.0, 0), (105.0, 180.0, 2), (60.0, 700.0, 1)]
)
def test_the_phase_of_draws_from_a_theory_is_its_phase(strength, n_train, phase):
    """As many draws as a study has: 16 runs of 20,000 neurons."""
    theory = adapted_weights(network(n_train, strength), ridge_kind="effective")
    assert int(theory.phase) == phase
    width = BIN[1] - BIN[0]
    p = np.exp(np.interp(np.abs(BIN), theory.overlap, theory.log_density)) * width
    random = np.random.default_rng(1)
    runs = random.multinomial(20_000, p / p.sum(), size=16) / 20_000 / width
    assert measured_phase(runs) == phase


def test_noise_alone_is_no_well():
    density = np.exp(-(BIN**2))
    random = np.random.default_rng(2)
    found = [
        measured_phase(density * (1 + 0.05 * random.normal(size=(16, 81)))) for _ in range(100)
    ]
    # none of 1000 for 16 runs; 1 to 2 % for two or three
    assert not np.any(found)


@pytest.mark.parametrize("border", [0, -1.0, np.nan, np.inf, 10**400, "wide", np.zeros(0)])
def test_a_border_is_a_positive_number(border):
    with pytest.raises(ValueError, match="border = "):
        share_free_energy(network(700.0, 35.0), border=border)


def test_strength_divides_both_variances_and_leaves_the_infinitely_wide_network():
    base = TwoLayerNetwork(10, 50, 300, 10.0, hermite_target({1: 1.0, 3: 0.15}), 0.15, 0.5)
    strong = AdaptingNetwork(base, 2.0, 30.0)
    by_hand = base.with_(
        input_dim=20.0, width=100.0, n_train=600.0, temperature=1 / 3, readout_variance=0.005
    )
    np.testing.assert_allclose(
        adapted_weights(strong).output, adapted_weights(by_hand).output, rtol=1e-9
    )
    at_one = AdaptingNetwork(base, 2.0)
    np.testing.assert_allclose(
        gaussian_process(strong).output, gaussian_process(at_one).output, rtol=1e-12
    )
    assert strong.drawn.size("n_train") == 600


def test_a_cubic_part_of_positive_sign_is_learned_with_the_wrong_sign():
    found = {}
    for cubic in (-0.15, 0.15):
        base = TwoLayerNetwork(10, 50, 300, 10.0, hermite_target({1: 1.0, 3: cubic}), 0.15, 0.5)
        found[cubic] = adapted_weights(AdaptingNetwork(base, 1.0, 200.0)).learnability
    assert found[-0.15][1] > 0.3 > 0 > -0.1 > found[0.15][1]
    assert found[-0.15][0] > found[0.15][0] + 0.1  # it costs linear learning as well


def cubic(temperature, n_train, input_dim=50):
    target = hermite_target({3: 1.0}, normalised=True)
    return TwoLayerNetwork(
        input_dim, 80, n_train, temperature, target, readout_variance=0.04, modes=(1, 3)
    )


def test_the_barrier_of_a_cubic_target_at_large_dimension():
    """Where the linear output is small, log p = -d rho^2 / 2 + B rho^6 has its minimum at rho^4 =
    d / 6B, a depth of d rho^2 / 3."""
    found = unspecialised_network(cubic(0.01, 1500.0, 1000))
    assert int(found.state) == 1
    assert 2 < found.escape < 30
    np.testing.assert_allclose(found.escape, 1000 * found.border**2 / 3, rtol=0.02)


def test_a_network_is_stable_then_metastable_behind_a_falling_barrier_as_noise_falls():
    found = [unspecialised_network(cubic(t, 2000.0)) for t in (3.0, 0.2, 0.012, 0.011, 0.003)]
    assert [int(one.state) for one in found] == [0, 1, 1, 1, 1]
    assert all(bool(one.converged) for one in found)
    assert np.isinf(found[0].escape)
    assert found[1].log_odds < 0
    escapes = np.array([one.escape for one in found[1:]])
    assert np.all(np.diff(escapes) < 0)
    # no jump between temperatures that are near each other
    np.testing.assert_allclose(escapes[2], escapes[1], rtol=0.1)


def test_a_linear_part_leaves_no_barrier():
    found = [unspecialised_network(network(n, 60.0)) for n in (70.0, 250.0, 700.0)]
    assert [int(one.state) for one in found] == [0, 2, 2]


def test_an_unspecialised_network_without_other_wells_is_the_equilibrium():
    found = unspecialised_network(network(70.0, 20.0))
    assert int(found.state) == 0
    assert np.isinf(found.border)
    equilibrium = adapted_weights(network(70.0, 20.0), ridge_kind="effective")
    np.testing.assert_allclose(found.spread, equilibrium.spread, rtol=1e-8)
    np.testing.assert_allclose(found.learnability, equilibrium.learnability, rtol=1e-8)


CENTRES = (EDGES[1:] + EDGES[:-1]) / 2


def passage(examples, stretch=1.0):
    """A theory and four equal runs, whose density is exp(-stretch rho^2/2 - rho^4)."""
    rho = np.linspace(0, 3, 601)

    def density(rho):
        return np.exp(-stretch * rho**2 / 2 - rho**4)

    norm = 2 * np.trapezoid(density(rho), rho)
    n_train = {"n_train": examples}
    theory = xr.Dataset(
        {
            "log_density": (("n_train", "node"), [np.log(density(rho) / norm)] * len(examples)),
            "overlap": (("n_train", "node"), [rho] * len(examples)),
            "spread": ("n_train", np.ones(len(examples))),
        },
        n_train,
    )
    bins = density(CENTRES) / norm
    runs = xr.Dataset(
        {
            "density": (
                ("n_train", "seed", "direction", "bin"),
                np.tile(bins, (len(examples), 4, 1, 1)),
            ),
            "bin_centre": (("n_train", "seed", "bin"), np.tile(CENTRES, (len(examples), 4, 1))),
            "converged": (("n_train", "seed"), np.ones((len(examples), 4), bool)),
        },
        n_train,
    )
    return theory, runs


@pytest.mark.parametrize("stretch", [1.0, -0.5])
def test_the_curvature_at_the_centre_is_that_of_the_density(stretch):
    theory, runs = passage([46.0, 84.0], stretch)
    np.testing.assert_allclose(central_curvature(theory, 0.5), 0.5 * stretch, atol=5e-3)
    np.testing.assert_allclose(central_curvature(runs, 0.5), 0.5 * stretch, atol=5e-3)


def test_densities_are_drawn_where_no_network_was_measured():
    theory, _ = passage([46.0, 60.0, 84.0])
    _, runs = passage([46.0, 84.0])
    comparison = SimpleNamespace(
        parameters={"shown": (46, 60)},
        theories=lambda: {"theory": theory},
        experiments=lambda: {"runs": runs},
    )
    _, axes = plt.subplots()
    draw_passage(axes, comparison)
    assert [text.get_text() for text in axes.texts] == ["$n$ = 46", "$n$ = 60"]
    assert len(axes.containers) == 1
    plt.close("all")
