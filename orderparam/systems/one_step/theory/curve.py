"""What the theories of a read-out on spiked features predict."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.losses import Labels
from orderparam.losses.fitted import FittedErrors
from orderparam.solve.solved import Solved
from orderparam.systems.one_step.theory.saddle import FeatureLaw, errors


class FittedReadout(FittedErrors):
    """What theories and experiments of the read-out have in common.

    effective_share:         (1/n) tr F (F^T H F + ridge)^-1 F^T H, H = diag l'': effective parameters per training example.
    spike_overlap:           v.theta; spikes, bulk_norms: u_s and c_s of the groups of neurons.
    mean_weight:             m_s = sum over the group of a_j/sqrt(p).
    spike_weight:            zeta_s = sum of a_j w_j.v/sqrt(p), teacher_weight: psi_s = sum of a_j w_j.t/sqrt(p), with w_j the
                             bulk in units of its norm and t the direction of the teacher orthogonal to v.
    residual, converged:     of the equations that were solved, or of the minimisation.
    """

    effective_share: Float[Array, ""]
    spike_overlap: Float[Array, ""]
    spikes: Float[Array, "group"]
    bulk_norms: Float[Array, "group"]
    mean_weight: Float[Array, "group"]
    spike_weight: Float[Array, "group"]
    teacher_weight: Float[Array, "group"]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class ReadoutCurve(FittedReadout):
    """A theory's. linear_response, rest_response, linear_power, rest_power: V1, V2, q1, q2 of `saddle`."""

    linear_response: Float[Array, "group other"]
    rest_response: Float[Array, "group"]
    linear_power: Float[Array, "group other"]
    rest_power: Float[Array, "group"]


def curve(data: FeatureLaw, found: Solved, labels: Labels, overlap: Any, spikes: Any, bulk_norms: Any) -> ReadoutCurve:
    """The result at a fixed point of `saddle.solve`."""
    level, bulk = found.value
    of = errors(data, found.value, labels)
    return ReadoutCurve(
        **vars(of.errors),
        teacher_overlap=of.teacher_overlap,
        self_overlap=of.self_overlap,
        weight_power=jnp.sum(bulk.rest_power),
        effective_share=of.effective_share,
        spike_overlap=jnp.asarray(overlap, jnp.float64),
        spikes=jnp.asarray(spikes, jnp.float64),
        bulk_norms=jnp.asarray(bulk_norms, jnp.float64),
        mean_weight=data.coefficients @ level,
        spike_weight=bulk.spike,
        teacher_weight=bulk.teacher,
        linear_response=bulk.response,
        rest_response=bulk.rest_response,
        linear_power=bulk.power,
        rest_power=bulk.rest_power,
        residual=found.residual,
        converged=found.converged,
    )
