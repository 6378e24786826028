"""Two classes of Gaussian features that differ in their mean: the label comes first, and the
features follow it.

With t the label centred and scaled to variance 1, features are v = t b + v', v' Gaussian with the
covariance within classes. The student's field is w = t m + sqrt(q) z, q its variance within a
class. Mignacco, Krzakala, Lu, Urbani, Zdeborová 2020 (arXiv:2002.11544); Loureiro, Sicuro,
Gerbelot, Pacco, Krzakala, Zdeborová 2021 (arXiv:2106.03791).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.channels import Fields, LabelAverages, Labels, SignLabels
from orderparam.channels.base import Average, Entry
from orderparam.core.system import parameter
from orderparam.losses.base import Loss
from orderparam.losses.channel import Channel, ChannelAverages, ChannelErrors


class ClassLabels(Labels):
    """y = ±1 is the class of the example, with mean (N_+ - N_-) / N. The field of an example is its
    t = (y - mean) / scale."""

    mean: float = parameter("mean of the labels", above=-1, below=1, default=0.0)

    @property
    def scale(self) -> Any:
        """Standard deviation of y."""
        return jnp.sqrt(1 - jnp.asarray(self.mean) ** 2)

    def moments(self, mean: Entry, variance: Entry) -> LabelAverages:
        """The moments of y and t, which do not depend on the arguments."""
        return LabelAverages(jnp.asarray(self.mean, jnp.float64), jnp.ones(()), self.scale)

    def draw(self, field: Float[Array, "*batch"], key: PRNGKeyArray) -> Float[Array, "*batch"]:
        return jnp.where(self.scale * field + self.mean > 0, 1.0, -1.0)


class _Known(SignLabels):
    """The law of a known label."""

    value: float = parameter("the label", default=1.0)

    def evidence(self, label: Entry, mean: Entry, variance: Entry) -> tuple[Average, Average]:
        likely = jnp.where(jnp.asarray(label) == self.value, 1.0, 0.0) + 0 * mean
        return likely, jnp.zeros_like(likely)


class ClassChannel(eqx.Module):
    """A loss of labels -1 and +1 on two classes; methods as those of `Channel`, where `Fields`
    holds q within a class as the student's variance and m as the covariance."""

    loss: Loss
    labels: ClassLabels

    def averages(self, variance: Entry, fields: Fields) -> ChannelAverages:
        """alignment is E t g."""
        parts, shares, places = self._classes("averages", variance, fields)
        mean, power, stiffness = (
            sum(share * getattr(part, name) for share, part in zip(shares, parts))
            for name in ("mean", "power", "stiffness")
        )
        return ChannelAverages(
            mean,
            power,
            stiffness,
            sum(s * t * part.mean for s, t, part in zip(shares, places, parts)),
        )

    def errors(self, variance: Entry, fields: Fields) -> ChannelErrors:
        parts, shares, _ = self._classes("errors", variance, fields)
        return jax.tree.map(lambda first, second: shares[0] * first + shares[1] * second, *parts)

    def _classes(self, what: str, variance: Entry, fields: Fields) -> tuple[list, list, list]:
        """The averages, the share of the examples, and t, for both classes."""
        shares = [(1 + y * self.labels.mean) / 2 for y in (-1.0, 1.0)]
        places = [(y - self.labels.mean) / self.labels.scale for y in (-1.0, 1.0)]
        parts = []
        for y, t in zip((-1.0, 1.0), places):
            law = Fields(fields.student_variance, 1.0, 0.0, student_mean=t * fields.covariance)
            parts.append(getattr(Channel(self.loss, _Known(0.0, y)), what)(variance, law))
        return parts, shares, places
