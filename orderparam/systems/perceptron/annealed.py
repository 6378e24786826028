"""The annealed approximation and the limit of high temperature."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import xlogy
from jaxtyping import Array, Bool
from scipy.optimize import brentq

from orderparam.core.needs import above
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.systems.perceptron.model import ThermalPerceptron
from orderparam.systems.perceptron.theory import Scalar, penalty


class Annealed(Result):
    """Maximum of the annealed free entropy that is reached from R = 0.

    Fields:
        teacher_overlap: R at the maximum.
        classification_error: arccos(R)/pi.
        free_entropy: annealed free entropy at the maximum; for binary weights it is zero at R = 1.
        valid: whether there is a maximum below R = 1, without which the numbers are NaN.
    """

    teacher_overlap: Scalar
    classification_error: Scalar
    free_entropy: Scalar
    valid: Bool[Array, ""]


class WarmTransitions(Result):
    """Transitions of binary weights at high temperature, as values of alpha/T.

    Fields:
        thermodynamic: alpha/T at which R = 1 becomes the state of largest free entropy.
        overlap: R of the competing state at that alpha/T.
        spinodal: alpha/T at which the competing state ends.
        spinodal_overlap: R of the competing state at the spinodal.
    """

    thermodynamic: Scalar
    overlap: Scalar
    spinodal: Scalar
    spinodal_overlap: Scalar


@theory(differentiable=False)
def annealed(system: ThermalPerceptron, *, points: int = 20001) -> Annealed:
    r"""First maximum in R of the annealed free entropy, the logarithm of the mean of Z.

    $$ s(R) + \alpha \ln\Big( 1 - (1 - e^{-1/T}) \frac{\arccos R}{\pi} \Big) $$

    with $\alpha$ = `sample_ratio`, T = `temperature` and $s(R) = -\sum_\pm \frac{1 \pm R}{2} \ln
    \frac{1 \pm R}{2}$ for binary weights, $\frac12 \ln(1 - R^2)$ for spherical weights. It is an
    upper bound of the free entropy.

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

    Every example then contributes only its mean error, and the free entropy is

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

    The `spinodal` is the maximum of the right-hand side, and `thermodynamic` the point where the
    free entropy is zero. No number of the system is used.

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
    return WarmTransitions(*(jnp.asarray(x) for x in (ratio(place), place, ratio(end), end)))


def _first_maximum(
    system: ThermalPerceptron, gain: Callable[[Array], Array], points: int
) -> Annealed:
    """First maximum of s(R) + gain(error) as R grows from 0."""
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
