"""Laws of labels, and the posterior of the Gaussian field of an example given its label.

The field nu of an example is known up to a Gaussian: nu ~ N(w, V). Its label then has the evidence
Z(y, w, V) = E P(y | nu), and moves the field by the denoiser g = d ln Z / dw = (E[nu | y] - w) / V,
with dg/dw = (Var[nu | y] / V - 1) / V.
"""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.system import Record
from orderparam.gaussian.quadrature import LEAN, centred_rule, standard_normal_rule

Entry = Float[Array, "*#batch"] | float
Average = Float[Array, "*batch"]

# A field that is nearly known has a remaining deviation of sqrt(V/q): these panels resolve it down
# to 4e-9.
SHARP = LEAN._replace(gradings=14)
_AT_ONCE = 2**22  # numbers in memory at a time in averages over fields and labels


class LabelAverages(eqx.Module):
    """Averages of labels y of a Gaussian field nu: mean E y, power E y^2, and slope E[y (nu - E
    nu)] / Var nu."""

    mean: Average
    power: Average
    slope: Average


class LikelihoodAverages(eqx.Module):
    """Averages over fields w ~ N(0, q) and labels of nu ~ N(w, V): information E g^2 = -E dg/dw,
    and free entropy E ln Z."""

    information: Average
    free_entropy: Average


class Labels(Record):
    """The law P(y | nu) of labels given the teacher's field. binary: True if labels are -1 and
    +1."""

    binary: ClassVar[bool] = False

    @abc.abstractmethod
    def moments(self, mean: Entry, variance: Entry) -> LabelAverages:
        """Moments of the labels over nu ~ N(mean, variance), elementwise. Least squares depend on
        the labels only through these."""

    @abc.abstractmethod
    def draw(self, field: Float[Array, "*batch"], key: PRNGKeyArray) -> Float[Array, "*batch"]:
        """One label per field, independent given the fields."""


class Likelihood(Labels):
    """Labels with a known evidence Z. All functions are elementwise and broadcast; V > 0
    throughout.

    field_nodes: number of quadrature nodes in averages over the field, if the law of the labels
    changes only at zero.
    """

    field_nodes: ClassVar[int] = 192

    @property
    def kinks(self) -> tuple[float, ...]:
        """Fields at which the law of the labels changes abruptly."""
        return (0.0,)

    @property
    def nodes(self) -> int:
        """Quadrature nodes needed for the evidence of one label."""
        return 8

    @property
    def determined(self) -> Float[Array, ""]:
        """Probability that the label of a centred field determines the field up to finitely many
        values: lim V E g^2 as V -> 0."""
        return jnp.zeros(())

    @abc.abstractmethod
    def log_evidence(self, label: Entry, mean: Entry, variance: Entry) -> Average:
        """ln Z(y, w, V), where Z is a probability for discrete labels and a density for real
        ones."""

    @abc.abstractmethod
    def denoiser(self, label: Entry, field: Entry, variance: Entry) -> Average:
        """g(y, w, V)."""

    @abc.abstractmethod
    def denoiser_slope(self, label: Entry, field: Entry, variance: Entry) -> Average:
        """dg/dw."""

    def evidence(self, label: Entry, mean: Entry, variance: Entry) -> tuple[Average, Average]:
        """Z and dZ/dw."""
        value = jnp.exp(self.log_evidence(label, mean, variance))
        return value, value * self.denoiser(label, mean, variance)

    def label_rule(
        self, field: Entry, variance: Entry
    ) -> tuple[Float[Array, "*batch label"], Float[Array, "*batch label"]]:
        """Labels y and weights p with sum p h(y) = E h(y) over labels of nu ~ N(field, variance):
        here -1 and +1."""
        label = jnp.asarray([-1.0, 1.0])
        evidence, _ = self.evidence(
            label, jnp.asarray(field)[..., None], jnp.asarray(variance)[..., None]
        )
        return jnp.broadcast_to(label, evidence.shape), evidence

    def averages(
        self, self_overlap: Float[Array, "*batch"], variance: Float[Array, "*batch"]
    ) -> LikelihoodAverages:
        """`LikelihoodAverages` for q = known >= 0 and V = variance > 0, elementwise: the
        information in labels about fields known up to the variance V."""
        self_overlap, variance = jnp.broadcast_arrays(
            jnp.asarray(self_overlap, jnp.float64), jnp.asarray(variance, jnp.float64)
        )
        field, weight = _fields(self_overlap, variance, self.kinks, self.field_nodes)
        spread = jnp.broadcast_to(variance[..., None], field.shape)

        def line(field: Array, variance: Array) -> tuple[Array, Array]:
            label, weight = self.label_rule(field, variance)
            kept = weight > 0
            g = jnp.where(kept, self.denoiser(label, field, variance), 0.0)
            free = jnp.where(kept, self.log_evidence(label, field, variance), 0.0)
            return jnp.sum(weight * g**2), jnp.sum(weight * free)

        held = jax.eval_shape(self.label_rule, 0.0, 1.0)[0].size * self.nodes
        flat = (field.ravel(), spread.ravel())
        found = jax.lax.map(
            lambda node: line(*node), flat, batch_size=min(flat[0].size, max(1, _AT_ONCE // held))
        )
        information, free = (jnp.sum(weight * part.reshape(field.shape), axis=-1) for part in found)
        return LikelihoodAverages(information, free)


def _fields(
    self_overlap: Array, variance: Array, kinks: tuple[float, ...], nodes: int
) -> tuple[Array, Array]:
    """Nodes and weights of w ~ N(0, known) for what changes around the kinks within sqrt(variance).

    If zero is the only kink: equal steps of t in w = sqrt(variance) sinh(t), which are exact to
    rounding for analytic integrands.
    """
    deviation = jnp.sqrt(jnp.maximum(self_overlap, 1e-30))[..., None]
    if kinks != (0.0,):
        z, weight = standard_normal_rule([kink / deviation[..., 0] for kink in kinks], SHARP)
        return deviation * z, weight
    z, weight = centred_rule(jnp.sqrt(variance) / deviation[..., 0], nodes)
    return deviation * z, weight
