"""The scalar field: exact solutions against one another, simulations against them, and refusals."""

import jax
import numpy as np
import pytest
from deviations import deviations

from orderparam.systems.spins import (
    ScalarField,
    best_gaussian_field,
    field_clusters,
    transfer_matrix,
)


@pytest.mark.parametrize(("mass", "coupling"), [(-1.0, 0.2), (1.0, 0.5)])
def test_a_field_on_a_ring_against_its_transfer_matrix(mass, coupling):
    system = ScalarField(mass, coupling, (6,))
    found = deviations(
        lambda key: field_clusters(system, key),
        transfer_matrix(system),
        ("squared_field", "fourth_field"),
    )
    assert max(map(abs, found.values())) < 4, found


def test_the_transfer_matrix_of_two_sites_is_a_double_integral():
    mass, coupling = -0.7, 0.3
    phi = np.linspace(-6, 6, 1201)
    potential = mass / 2 * phi**2 + coupling * phi**4
    # two bonds join them
    weight = np.exp(-((phi[:, None] - phi) ** 2) - potential[:, None] - potential)
    wanted = np.sum(weight * phi**2) / np.sum(weight)
    np.testing.assert_allclose(
        transfer_matrix(ScalarField(mass, coupling, (2,))).squared_field, wanted, rtol=1e-10
    )


def test_the_best_gaussian_field_is_right_at_weak_coupling():
    """To first order in u: <phi^2> falls by 12 u <phi^2> sum_k 1/(r + k^2)^2 / N."""
    mass, coupling, n = 1.0, 1e-6, 8
    momenta = mass + 2 - 2 * np.cos(2 * np.pi * np.arange(n) / n)
    free = np.mean(1 / momenta)
    wanted = free - 12 * coupling * free * np.mean(1 / momenta**2)
    found = best_gaussian_field(ScalarField(mass, coupling, (n,)))
    np.testing.assert_allclose(found.squared_field, wanted, rtol=1e-9)
    np.testing.assert_allclose(
        transfer_matrix(ScalarField(mass, 1e-4, (n,))).squared_field,
        best_gaussian_field(ScalarField(mass, 1e-4, (n,))).squared_field,
        rtol=1e-5,
    )


@pytest.mark.parametrize("coupling", [1e-10, 1e-140, 1e-170])
def test_a_nearly_free_field_in_its_ordered_phase_is_held_by_one_mode(coupling):
    """12 u / (N effective_mass) = -mass; at u = 1e-170 the answer was six per cent off and said to
    be right."""
    found = best_gaussian_field(ScalarField(-1.0, coupling))
    np.testing.assert_allclose(
        found.effective_mass, 12 * coupling / 256, rtol=1e-11 + 10 * coupling
    )
    assert found.residual < 1e-9
    assert bool(found.converged) == bool(np.isfinite(found.fourth_field))


def test_signs_of_a_field_are_symmetric():
    found = field_clusters(ScalarField(-2.0, 0.25, (4, 4)), jax.random.key(0))
    assert found.absolute_magnetisation > 1
    assert 0.6 < found.binder < 2 / 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: transfer_matrix(ScalarField(1.0, 0.1)),
            r"ScalarField.shape = \(16, 16\): must have one direction",
        ),
        (
            lambda: field_clusters(ScalarField(1.0, 0.1, (3, 4)), jax.random.key(0)),
            r"ScalarField.shape = \(3, 4\): must be even",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
