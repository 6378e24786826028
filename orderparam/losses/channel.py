"""Averages of a loss over Gaussian fields: the terms of the self-consistent equations of a convex
learner, and its errors.

The student's field without an example, w, and the teacher's field nu there are jointly Gaussian.
Given w, nu has mean M(w) = E nu + m (w - E w) / q and variance S = rho - m^2 / q, and the label y
the probability Z(y, w) = E P(y | nu). Gerace, Loureiro, Krzakala, Mézard, Zdeborová 2020; Loureiro
et al. 2021 (arXiv:2102.08127).
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from orderparam.channels import Fields, Labels, Likelihood, RealLabels, SignLabels, labelled_nodes
from orderparam.channels.base import Average, Entry
from orderparam.gaussian.polynomials import Linear
from orderparam.gaussian.quadrature import (
    centred_loss,
    centred_rule,
    panelled_rule,
    standard_normal_rule,
)
from orderparam.losses.base import Loss
from orderparam.losses.residual import Residual
from orderparam.losses.square import Square

_NODES = 160  # number of nodes for smooth losses
_DIGITS = 30.0  # -ln of the allowed error
_WIDEST, _SHARPEST = 1.6, 0.07  # range of scales for which panels of 14 nodes are enough


class ChannelAverages(eqx.Module):
    """Averages of g(y, w) = -l'(y, prox): mean E g, power E g^2, stiffness -E dg/dw, alignment E
    sum_y (dZ/dM) g."""

    mean: Average
    power: Average
    stiffness: Average
    alignment: Average


class ChannelErrors(eqx.Module):
    """Errors of a new example (field w) and of a training example (field prox(y, w)).

    test_error, train_error: mean of (y - f)^2, without 1/2; test_loss, train_loss: mean of l(y, f).
    classification_error: P(sign f != y) of a new example; NaN for labels that are not signs.
    """

    test_error: Average
    train_error: Average
    test_loss: Average
    train_loss: Average
    classification_error: Average


class Channel(eqx.Module):
    """A loss and the law of the labels. The square loss allows any labels, in closed form; binary
    losses need labels -1 and +1, and losses of residuals (Huber, quantile) linear labels.

    Averages by quadrature are accurate to 1e-11 of the mean of the absolute value. Raises
    `ValueError` when the two do not fit.
    """

    loss: Loss
    labels: Labels

    def __check_init__(self) -> None:
        if isinstance(self.loss, Residual):
            if not (isinstance(self.labels, RealLabels) and isinstance(self.labels.link, Linear)):
                raise ValueError(
                    f"loss = {self.loss.name!r}: needs linear labels, not "
                    f"{type(self.labels).__name__}"
                )
        elif not isinstance(self.loss, Square) and not self.labels.binary:
            raise ValueError(
                f"loss = {self.loss.name!r}: needs labels -1 and +1, not "
                f"{type(self.labels).__name__}"
            )

    def averages(self, variance: Entry, fields: Fields) -> ChannelAverages:
        """The averages over training examples with response variance V."""
        if isinstance(self.loss, Square):
            labels = self.labels.moments(fields.teacher_mean, fields.teacher_variance)
            shrink = 1 / (1 + jnp.asarray(variance))
            return ChannelAverages(
                (labels.mean - fields.student_mean) * shrink,
                self._squared(fields) * shrink**2,
                shrink,
                labels.slope * shrink,
            )
        if isinstance(self.loss, Residual):
            r, weight = self._residuals(self.loss, variance, fields)
            g, change = (
                part(r, 0.0, jnp.asarray(variance)[..., None])
                for part in (self.loss.denoiser, self.loss.denoiser_slope)
            )
            stiffness = -jnp.sum(weight * change, axis=-1)
            return ChannelAverages(
                jnp.sum(weight * g, axis=-1), jnp.sum(weight * g**2, axis=-1), stiffness, stiffness
            )
        quick = self._quick(variance, fields)
        if quick is not None:
            return jax.lax.cond(quick[0], quick[1], lambda: self._of_labels(variance, fields))
        return self._of_labels(variance, fields)

    def _of_labels(self, variance: Entry, fields: Fields) -> ChannelAverages:
        """The averages by quadrature nodes for each label, for any law of the labels."""
        sums = []
        for label in (-1.0, 1.0):
            w, weight, evidence, change = self._nodes(label, variance, fields)
            seen, spread = weight * evidence, jnp.asarray(variance)[..., None]
            g, slope = (
                part(label, w, spread) for part in (self.loss.denoiser, self.loss.denoiser_slope)
            )
            sums.append(
                [
                    jnp.sum(part, axis=-1)
                    for part in (seen * g, seen * g**2, -seen * slope, weight * change * g)
                ]
            )
        return ChannelAverages(*(one + other for one, other in zip(*sums)))

    def _quick(
        self, variance: Entry, fields: Fields
    ) -> tuple[Array, Callable[[], ChannelAverages]] | None:
        """True if a few nodes are enough for one centred pair of fields and labels that are signs,
        and the averages from these nodes. Both labels contribute equally.

        In units of its deviation the student's field z has the evidence flip + (1 - 2 flip)
        Phi(steepness z).
        """
        variance = jnp.asarray(variance, jnp.float64)
        numbers = (variance, fields.student_variance, fields.teacher_variance, fields.covariance)
        if not (
            isinstance(self.labels, SignLabels)
            and _is_centred(fields)
            and all(jnp.ndim(number) == 0 for number in numbers)
        ):
            return None
        labels = self.labels
        deviation = jnp.sqrt(jnp.asarray(fields.student_variance, jnp.float64))
        gain = fields.covariance / deviation
        rest = jnp.maximum(fields.teacher_variance - gain**2, 1e-30)
        sharp = 1 / jnp.maximum(jnp.abs(gain) / jnp.sqrt(rest + labels.blur), 1e-3)
        poles = self.loss.poles(variance)
        if poles is None:
            scale = jnp.minimum(sharp, _WIDEST)
            enough = scale > _SHARPEST
        else:
            scale = jnp.minimum(jnp.minimum(sharp, 1.0), np.pi / 2 / deviation)
            # Phi grows beyond an angle of pi/4.
            turned = scale * jnp.sinh(0.25j * np.pi)
            places = jnp.concatenate([poles / deviation, turned[None]])
            enough = centred_loss(scale, _NODES, places) > _DIGITS

        def averages() -> ChannelAverages:
            if poles is None:
                cuts = [cut / deviation for cut in self.loss.cuts(variance)]
                z, weight = panelled_rule(scale, cuts, self.loss.ends(variance) / deviation)
            else:
                z, weight = centred_rule(scale, _NODES)
            evidence, change = labels.evidence(1.0, gain * z, rest)
            g = self.loss.denoiser(1.0, deviation * z, variance)
            slope = self.loss.denoiser_slope(1.0, deviation * z, variance)
            terms = (evidence * g**2, -evidence * slope, change * g)
            power, stiffness, alignment = (2 * jnp.sum(weight * term) for term in terms)
            return ChannelAverages(jnp.zeros_like(power), power, stiffness, alignment)

        return enough, averages

    def errors(self, variance: Entry, fields: Fields) -> ChannelErrors:
        """The errors of new examples and of training examples with response variance V."""
        classification = self._classification_error(fields)
        if isinstance(self.loss, Square):
            test = self._squared(fields)
            train = test / (1 + jnp.asarray(variance)) ** 2
            return ChannelErrors(test, train, test / 2, train / 2, classification)
        if isinstance(self.loss, Residual):
            r, weight = self._residuals(self.loss, variance, fields)
            spread = jnp.asarray(variance)[..., None]
            left = r - spread * self.loss.denoiser(r, 0.0, spread)
            parts = (r**2, left**2, self.loss(r, 0.0), self.loss(left, 0.0))
            test, train, test_loss, train_loss = (jnp.sum(weight * part, axis=-1) for part in parts)
            return ChannelErrors(test, train, test_loss, train_loss, classification)
        sums = []
        for label in (-1.0, 1.0):
            w, weight, evidence, _ = self._nodes(label, variance, fields)
            prox = self.loss.prox(label, w, jnp.asarray(variance)[..., None])
            parts = (
                (label - w) ** 2,
                (label - prox) ** 2,
                self.loss(label, w),
                self.loss(label, prox),
            )
            sums.append([jnp.sum(weight * evidence * part, axis=-1) for part in parts])
        test, train, test_loss, train_loss = (one + other for one, other in zip(*sums))
        return ChannelErrors(test, train, test_loss, train_loss, classification)

    def _squared(self, fields: Fields) -> Average:
        """The average E (y - w)^2."""
        labels = self.labels.moments(fields.teacher_mean, fields.teacher_variance)
        mean, variance = fields.student_mean, fields.student_variance
        return (
            labels.power
            - 2 * (mean * labels.mean + labels.slope * fields.covariance)
            + mean**2
            + variance
        )

    def _residuals(
        self, loss: Residual, variance: Entry, fields: Fields
    ) -> tuple[Average, Average]:
        """Nodes y - w with weights: a Gaussian, for linear labels."""
        mean = jnp.asarray(fields.teacher_mean) - fields.student_mean
        deviation = jnp.sqrt(self._squared(fields) - mean**2)
        z, weight = standard_normal_rule(
            [(turn - mean) / deviation for turn in loss.turns(jnp.asarray(variance))]
        )
        return mean[..., None] + deviation[..., None] * z, weight

    def _classification_error(self, fields: Fields) -> Average:
        if isinstance(self.labels, RealLabels):
            return jnp.full_like(jnp.asarray(fields.student_variance, jnp.float64), jnp.nan)
        if _is_centred(fields) and isinstance(self.labels, SignLabels):
            cosine = fields.covariance / jnp.sqrt(
                fields.student_variance * jnp.asarray(fields.teacher_variance)
            )
            return self.labels.disagreement(cosine, fields.teacher_variance)
        total: Average = jnp.zeros(())
        for label in (-1.0, 1.0):
            w, weight, evidence, _ = self._nodes(label, 1.0, fields)
            total = total + jnp.sum(weight * evidence * (label * w < 0), axis=-1)
        return total

    def _nodes(
        self, label: float, variance: Entry, fields: Fields
    ) -> tuple[Average, Average, Average, Average]:
        """Nodes w with weights, and Z(y, w) and dZ/dM there."""
        assert isinstance(self.labels, Likelihood)
        return labelled_nodes(
            self.labels, label, fields, self.loss.cuts(jnp.asarray(variance, jnp.float64))
        )


def _is_centred(fields: Fields) -> bool:
    """True if both means are known to be zero before anything is computed."""
    return all(
        isinstance(mean, float) and mean == 0 for mean in (fields.student_mean, fields.teacher_mean)
    )
