"""Transitions of the package's theories that are known from elsewhere: place, kind and exponent lie
within what is stated."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Bool, Float

import orderparam as op
from orderparam.channels import RealLabels
from orderparam.core.verb import Theory
from orderparam.systems.associative_memory import Hopfield, replica_symmetric
from orderparam.systems.random_features import RandomFeatures, asymptotics
from orderparam.systems.spins import (
    IsingLattice,
    MeanFieldMagnet,
    RegularPotts,
    cavity,
    mean_field,
    onsager,
)
from orderparam.systems.storage_capacity import SphericalPatterns, minimal_error, volume

MAGNET = MeanFieldMagnet(temperature=1.0)


def near(found, place, exponent=None):
    """The place and the exponent lie within their stated errors."""
    assert abs(found.location - place) <= max(found.error, 1e-14 * abs(place)), (found, place)
    if exponent is not None:
        assert abs(found.exponent - exponent) <= found.exponent_error < 0.1, found


@pytest.mark.parametrize(("degree", "place"), [(3, 1 / np.log(3)), (5, 1 / np.log(5 / 3))])
def test_the_bethe_lattice(degree, place):
    """Two states order at 1/T = ln(c/(c - 2)), continuously."""
    found = op.transition(
        cavity,
        RegularPotts(1.0, degree=degree),
        {"temperature": (0.5, 2.5)},
        order="absolute_magnetisation",
    )
    assert found.kind == "continuous"
    near(found, place, 0.5)
    assert found.error < 1e-10


def test_the_mean_field_magnet_along_temperature_and_field():
    along_temperature = op.transition(
        mean_field, MAGNET, {"temperature": (0.3, 1.7)}, order="absolute_magnetisation"
    )
    assert along_temperature.kind == "continuous"
    near(along_temperature, 1.0, 0.5)
    along_field = op.transition(mean_field, MAGNET, {"field": (-0.3, 0.4)}, order="magnetisation")
    assert along_field.kind == "continuous"
    near(along_field, 0.0, 1 / 3)
    diverging = op.transition(
        mean_field, MAGNET, {"temperature": (0.3, 1.65)}, order="susceptibility"
    )
    assert diverging.kind == "divergence"
    near(diverging, 1.0, -1.0)


def test_what_begins_at_the_end_of_the_range_is_no_transition():
    with pytest.raises(
        ValueError,
        match=r"no transition between field = 0 and 0\.3: absolute_magnetisation is 0 to 0\.80",
    ):
        op.transition(mean_field, MAGNET, {"field": (0, 0.3)}, order="absolute_magnetisation")
    asked = op.transition(
        mean_field,
        MAGNET.with_(temperature=1.3),
        {"field": (0, 0.3)},
        order="magnetisation",
        level="middle",
    )
    assert asked.kind == "crossover"
    assert 0 < asked.location < 0.15


def test_a_smooth_order_parameter_that_passes_zero_is_no_transition():
    with pytest.raises(ValueError, match=r"no transition between field = -0\.3"):
        op.transition(
            mean_field, MAGNET.with_(temperature=1.3), {"field": (-0.3, 0.3)}, order="magnetisation"
        )


def test_onsager():
    over = {"temperature": (1.5, 3.0)}
    magnetisation = op.transition(onsager, IsingLattice(2.0), over, order="absolute_magnetisation")
    near(magnetisation, 2 / np.log(1 + np.sqrt(2)), 1 / 8)
    heat = op.transition(onsager, IsingLattice(2.0), over, order="heat_capacity")
    assert (heat.kind, heat.logarithm) == ("divergence", True)
    near(heat, 2 / np.log(1 + np.sqrt(2)), 0.0)


def test_gardners_capacity_has_a_logarithm():
    found = op.transition(
        minimal_error, SphericalPatterns(load=1.0), {"load": (1, 4)}, order="error_fraction"
    )
    assert (found.kind, found.logarithm) == ("continuous", True)
    near(found, 2.0, 1.0)


def test_the_overlap_of_stored_solutions_has_no_transition_below_the_capacity():
    with pytest.raises(
        ValueError,
        match=r"no transition .* evaluations did not converge and are not used \(load = 2\.0",
    ):
        op.transition(volume, SphericalPatterns(load=1.0), {"load": (0.5, 3)}, order="overlap")


def test_interpolation():
    """The train error of ridgeless features vanishes linearly at p = n, where the test error
    diverges like 1/|p - n|."""
    ridgeless = RandomFeatures(
        input_dim=100, width=300, n_train=150, ridge=1e-12, labels=RealLabels(noise=0.1)
    )
    onset = op.transition(asymptotics, ridgeless, {"width": (75, 300)}, order="train_error")
    assert onset.kind == "continuous"
    near(onset, 150.0, 1.0)
    peak = op.transition(asymptotics, ridgeless, {"width": (75, 300)}, order="test_error")
    assert (peak.kind, peak.others) == ("divergence", ())
    assert abs(peak.location - 150) < 1e-6
    assert abs(peak.exponent + 1) <= peak.exponent_error
    with pytest.raises(ValueError, match="no transition"):
        op.transition(
            asymptotics, ridgeless.with_(ridge=1e-3), {"width": (75, 300)}, order="test_error"
        )


def test_the_spin_glass_of_the_hopfield_model_along_all_branches():
    """T_g = 1 + sqrt(alpha), although the free energy of the unstable paramagnet is lower below
    it."""
    memory = Hopfield(load=0.05, temperature=0.1)
    found = op.transition(
        replica_symmetric, memory, {"temperature": (0.6, 1.7)}, order="self_overlap"
    )
    assert (found.kind, found.branch) == ("continuous", "stable")
    near(found, 1 + np.sqrt(0.05), 1.0)
    alone = op.transition(
        replica_symmetric,
        memory,
        {"temperature": (0.6, 1.7)},
        order="self_overlap",
        branches=("spin glass",),
    )
    assert alone.kind == "continuous"
    near(alone, 1 + np.sqrt(0.05), 1.0)


class Ordered(op.Result):
    order: Float[Array, ""]
    converged: Bool[Array, ""]


def stuck(system: MeanFieldMagnet) -> Ordered:
    """The square root of 1 - T, which does not converge within 1e-4 of the transition."""
    distance = 1 - system.temperature
    converged = jnp.abs(distance) > 1e-4
    return Ordered(
        order=jnp.where(converged, jnp.sqrt(jnp.maximum(distance, 0.0)), 0.3), converged=converged
    )


def test_points_that_did_not_converge_are_not_used_and_widen_the_error():
    found = op.transition(
        Theory(stuck, None, True, True), MAGNET, {"temperature": (0.3, 1.65)}, order="order"
    )
    assert found.kind == "continuous"
    assert abs(found.location - 1) <= found.error < 1e-3
    assert "did not converge and are not used (temperature = 0.99" in repr(found)
    assert not np.any(found.data["order"] == 0.3)
    plane = op.phase_diagram(
        Theory(stuck, None, True, True),
        MAGNET,
        {"temperature": (0.3, 1.65), "field": (-1, 1)},
        order="order",
        resolution=8,
    )
    assert np.max(np.abs(plane.boundaries[0].x - 1)) < 1e-3
    assert "did not converge" in repr(plane)


def test_the_cavity_field_at_its_critical_point_and_its_derivative():
    places = 1 / np.log(3) * (1 - 10.0 ** -np.arange(4, 13))
    found = [cavity(RegularPotts(place)) for place in places]
    assert all(bool(one.converged) for one in found)
    scaled = np.array([float(one.absolute_magnetisation) for one in found]) / np.sqrt(
        10.0 ** -np.arange(4, 13)
    )
    np.testing.assert_allclose(scaled, scaled[3], rtol=3e-4)
    slope = jax.grad(lambda t: cavity(RegularPotts(t)).absolute_magnetisation)(0.8)
    steps = [float(cavity(RegularPotts(0.8 + d)).absolute_magnetisation) for d in (1e-5, -1e-5)]
    np.testing.assert_allclose(slope, (steps[0] - steps[1]) / 2e-5, rtol=1e-6)
