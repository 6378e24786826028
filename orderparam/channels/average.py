"""Averages over the field of a student and the labels of a teacher, whose fields are jointly
Gaussian.

The student's field without an example, w, and the teacher's field nu there are jointly Gaussian.
Given w, nu has mean M(w) = E nu + m (w - E w) / q and variance S = rho - m^2 / q, and the label y
the evidence Z(y, M, S).
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.channels.base import Average, Likelihood
from orderparam.gaussian.quadrature import LEAN, Panels, standard_normal_rule

Entry = Float[Array, "*#batch"] | float


class Fields(eqx.Module):
    """The Gaussian law of the student's field w (variance q > 0) and the teacher's nu (variance
    rho), m = Cov(w, nu)."""

    student_variance: Entry
    teacher_variance: Entry
    covariance: Entry
    student_mean: Entry = 0.0
    teacher_mean: Entry = 0.0


def labelled_nodes(
    labels: Likelihood,
    label: float,
    fields: Fields,
    cuts: Sequence[Entry] = (),
    panels: Panels = LEAN,
) -> tuple[Average, Average, Average, Average]:
    """Nodes w with weights, and Z(y, M, S) and dZ/dM there, on a last axis.

    cuts: margins y w at which the integrand is not smooth.
    """
    mean, power, covariance = (
        jnp.asarray(part, jnp.float64)
        for part in (fields.student_mean, fields.student_variance, fields.covariance)
    )
    deviation = jnp.sqrt(power)
    gain = covariance / deviation
    steep = jnp.where(gain == 0, 1.0, gain)
    places = [
        # where the teacher's mean changes its sign
        jnp.where(gain == 0, 0.0, -jnp.asarray(fields.teacher_mean) / steep),
        -mean / deviation,
        *((label * cut - mean) / deviation for cut in cuts),
    ]
    z, weight = standard_normal_rule(places, panels)
    w = mean[..., None] + deviation[..., None] * z
    centre = jnp.asarray(fields.teacher_mean)[..., None] + gain[..., None] * z
    rest = jnp.maximum(fields.teacher_variance - gain**2, 1e-30)
    evidence, change = labels.evidence(label, centre, rest[..., None])
    return w, weight, evidence, change
