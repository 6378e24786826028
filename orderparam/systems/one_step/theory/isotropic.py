"""Exact asymptotics of spiked features with an isotropic bulk, for any groups of neurons and any of the losses.

The answer of a bulk of independent rows on the unit sphere, beta = p/d, fractions pi_s. Gamma_s, the mean of (D^-1)_jj over
group s times pi_s, solves

    Gamma_s = pi_s / (L_s + K_ss),    K = M (1 + beta diag(Gamma) M)^-1,

and V2 = Gamma, V1 = (diag(1/Gamma) + beta M)^-1, zeta_s = beta Gamma_s zh_s, psi = beta V1 ph. The powers are minus the
derivatives of V1 and V2 as M changes by qh1 + beta ph ph^T and L by qh2 + beta zh^2.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.verb import theory
from orderparam.systems.one_step.model import SpikedFeatures
from orderparam.systems.one_step.theory.conditional import moments
from orderparam.systems.one_step.theory.curve import ReadoutCurve, curve
from orderparam.systems.one_step.theory.saddle import Bulk, FeatureLaw, Pull, data, solve

_INNER_STEPS = 3


class IsotropicBulk(eqx.Module):
    """beta and pi_s."""

    aspect: Float[Array, ""] | float
    fractions: Float[Array, "group"]


@theory
def spiked_asymptotics(system: SpikedFeatures) -> ReadoutCurve:
    """Errors and order parameters of the read-out as d, p, n grow in proportion. `converged` is False where iteration failed."""
    problem = spiked_data(system)
    bulk = IsotropicBulk(system.width_ratio, system.shares)
    found = solve(problem, answer, bulk.fractions, bulk)
    return curve(problem, found, system.labels, system.overlap, system.spikes, system.norms)


def spiked_data(system: SpikedFeatures) -> FeatureLaw:
    """The features of the system at nodes of k, with its labels and penalties."""
    spikes, norms = (part[:, None] for part in (system.spikes, system.norms))
    return data(
        system.loss,
        system.labels,
        system.overlap,
        system.load,
        system.summed_ridge,
        lambda k: moments(system.activation, spikes * k, norms),
    )


def answer(asked: Pull, before: Bulk, features: Any) -> Bulk:
    """One step of the equation for Gamma, and everything else from it."""
    beta, fractions = features.aspect, features.fractions
    stiffness, identity = asked.stiffness, jnp.eye(fractions.size)
    gamma = before.rest_response
    for _ in range(_INNER_STEPS):
        screened = jnp.linalg.solve(identity + beta * stiffness * gamma, stiffness)  # (1 + beta M diag(Gamma))^-1 M
        gamma = fractions / (asked.penalty + jnp.diag(screened))
    propagator = jnp.linalg.inv(identity + beta * gamma[:, None] * stiffness)
    screened = stiffness @ propagator
    response = propagator * gamma  # (diag(1/Gamma) + beta M)^-1
    reach = identity + beta * gamma[:, None] * asked.spike_stiffness
    spike = jnp.linalg.solve(reach, beta * gamma * (asked.spike + asked.spike_stiffness @ before.spike))
    spike_pull = spike / (beta * gamma)
    change = asked.power + beta * jnp.outer(asked.teacher, asked.teacher)
    rest_change = asked.rest_power + beta * spike_pull**2
    squares = gamma**2 / fractions
    fed_back = identity - beta * squares[:, None] * screened**2
    rest_power = jnp.linalg.solve(fed_back, squares * (rest_change + jnp.diag(propagator.T @ change @ propagator)))
    return Bulk(
        response=response,
        rest_response=gamma,
        spike=spike,
        teacher=beta * response @ asked.teacher,
        power=response @ (jnp.diag(rest_power / gamma**2) + beta * change) @ response,
        rest_power=rest_power,
    )
