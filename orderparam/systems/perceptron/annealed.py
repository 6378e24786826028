"""The perceptron in the annealed approximation and in the limit of high temperature."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import xlogy
from jaxtyping import Array, Bool

from orderparam.core.late import brentq
from orderparam.core.needs import above
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.systems.perceptron.model import ThermalPerceptron
from orderparam.systems.perceptron.theory import Scalar, penalty


class Annealed(Result):
    """First maximum of a free entropy in the overlap R, counted from R = 0 upwards.

    Fields:
        teacher_overlap: overlap R with the teacher at the maximum.
        classification_error: probability of a wrong label on a new input, arccos(R)/pi.
        free_entropy: free entropy per weight at the maximum. For binary weights the teacher itself,
            R = 1, has the free entropy zero.
        valid: whether there is a maximum below R = 1. If there is none, the other fields are NaN.
    """

    teacher_overlap: Scalar
    classification_error: Scalar
    free_entropy: Scalar
    valid: Bool[Array, ""]


class WarmTransitions(Result):
    """Transitions of binary weights at high temperature, as values of alpha/T.

    Fields:
        thermodynamic: alpha/T above which the teacher, R = 1, has the largest free entropy.
        overlap: R of the other maximum of the free entropy (R < 1) at that alpha/T.
        spinodal: alpha/T at which the maximum with R < 1 ends.
        spinodal_overlap: R of this maximum at the spinodal.
    """

    thermodynamic: Scalar
    overlap: Scalar
    spinodal: Scalar
    spinodal_overlap: Scalar


@theory(differentiable=False)
def annealed(system: ThermalPerceptron, *, points: int = 20001) -> Annealed:
    r"""First maximum in the overlap R of the annealed free entropy.

    The annealed free entropy is the logarithm of the mean of the partition function over training
    sets, instead of the mean of its logarithm. Per weight it is the maximum of

    $$ s(R) + \alpha \ln\Big( 1 - (1 - e^{-1/T}) \frac{\arccos R}{\pi} \Big) $$

    with $\alpha$ = `sample_ratio`, T = `temperature` and the entropy $s(R) = -\sum_\pm \frac{1 \pm
    R}{2} \ln \frac{1 \pm R}{2}$ for binary weights, $\frac12 \ln(1 - R^2)$ for spherical weights.
    The largest value over all R is an upper bound of the free entropy.

    Args:
        points: number of values of R on the grid.

    Accuracy: 1e-8, from a parabola through three points of the grid.

    Source: Seung, Sompolinsky, Tishby (1992).

    >>> round(float(annealed(ThermalPerceptron(1.0)).teacher_overlap), 6)
    0.501592
    """

    def gain(error: Array) -> Array:
        return system.sample_ratio * jnp.log1p(-(1 - penalty(system)) * error)

    return _first_maximum(system, gain, points)


@theory(
    differentiable=False,
    needs={"temperature": above(0, why="this is the limit of high temperatures")},
)
def high_temperature(system: ThermalPerceptron, *, points: int = 20001) -> Annealed:
    r"""First maximum in R of the free entropy in the limit of high temperature at fixed alpha/T.

    In this limit every example contributes only its mean error, and the free entropy per weight is
    the maximum of

    $$ s(R) - \frac{\alpha}{T} \frac{\arccos R}{\pi} $$

    with s(R) as in `annealed`; only the ratio of `sample_ratio` and `temperature` matters.

    Args:
        points: number of values of R on the grid.

    Raises:
        ValueError: for temperature 0.

    Accuracy: 1e-8, as for `annealed`.

    Source: Seung, Sompolinsky, Tishby (1992).

    >>> round(float(high_temperature(ThermalPerceptron(1.0, temperature=1.0)).teacher_overlap), 6)
    0.324351
    """
    return _first_maximum(
        system, lambda error: -system.sample_ratio / system.temperature * error, points
    )


@theory(traced=False)
def high_temperature_transitions(system: ThermalPerceptron) -> WarmTransitions:
    r"""Transitions of binary weights in the limit of high temperature, as values of alpha/T.

    The stationary points of the free entropy of `high_temperature` satisfy

    $$ \frac{\alpha}{T} = \pi \sqrt{1 - R^2}\, \mathrm{artanh}\, R $$

    The `spinodal` is the maximum of the right-hand side over R. At `thermodynamic` the free entropy
    of the maximum with R < 1 is zero, which is the free entropy of the teacher. The fields
    `sample_ratio`, `temperature` and `input_dim` of the system are not used.

    Raises:
        ValueError: for spherical weights, which have no transition.

    Accuracy: 1e-9. This theory cannot be differentiated.

    Source: Seung, Sompolinsky, Tishby (1992).

    >>> found = high_temperature_transitions(ThermalPerceptron(1.0))
    >>> round(float(found.thermodynamic), 6), round(float(found.spinodal), 6)
    (1.695933, 2.08207)
    """
    if system.weights != "binary":
        raise ValueError(
            "ThermalPerceptron.weights: spherical weights have no transition; must be binary"
        )

    def ratio(overlap: float) -> float:
        return float(np.pi * np.sqrt(1 - overlap**2) * np.arctanh(overlap))

    def free(overlap: float) -> float:
        up, down = (1 + overlap) / 2, (1 - overlap) / 2
        return float(
            -up * np.log(up) - down * np.log(down) - ratio(overlap) * np.arccos(overlap) / np.pi
        )

    # spinodal: d(alpha/T)/dR = 0
    end = brentq(lambda overlap: overlap * np.arctanh(overlap) - 1, 0.1, 0.999, xtol=1e-14)
    place = brentq(free, 0.01, end, xtol=1e-14)
    return WarmTransitions(
        thermodynamic=jnp.asarray(ratio(place)),
        overlap=jnp.asarray(place),
        spinodal=jnp.asarray(ratio(end)),
        spinodal_overlap=jnp.asarray(end),
    )


def _first_maximum(
    system: ThermalPerceptron, gain: Callable[[Array], Array], points: int
) -> Annealed:
    """First maximum of s(R) + gain(error) as R grows from 0, with error = arccos(R)/pi.

    The maximum is located by a parabola through three neighbouring points of a grid in R, on which
    arcsin R is equally spaced.
    """
    overlap = jnp.sin(np.pi / 2 * jnp.linspace(0.0, 1.0, points)[:-1])
    entropy = jnp.log1p(-(overlap**2)) / 2
    if system.weights == "binary":
        up, down = (1 + overlap) / 2, (1 - overlap) / 2
        entropy = -(xlogy(up, up) + xlogy(down, down))
    value = entropy + gain(jnp.arccos(overlap) / np.pi)
    falls = value[1:] < value[:-1]
    place = jnp.argmax(falls)
    i = jnp.clip(place, 1, points - 3)
    left, middle, right = value[i - 1], value[i], value[i + 1]
    shift = (left - right) / (2 * (left - 2 * middle + right))
    best = jnp.sin(np.pi / 2 * (i + shift) / (points - 1))
    free = middle - (left - right) * shift / 4
    valid = jnp.any(falls) & (place > 0)
    best, free = (jnp.where(valid, one, jnp.nan) for one in (best, free))
    return Annealed(
        teacher_overlap=best,
        classification_error=jnp.arccos(best) / np.pi,
        free_entropy=free,
        valid=valid,
    )
