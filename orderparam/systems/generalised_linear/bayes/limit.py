"""Where message passing ends after any number of steps: the first solution of state evolution above its start.

The iteration u -> ln(alpha I(e^u)) of u = ln qh rises from q = 0 to the smallest root of gain(u) = ln(alpha I(e^u)) - u. Close to
a threshold its steps grow without bound; the root does not need them.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from orderparam.core.verb import theory
from orderparam.solve.root import decreasing_root
from orderparam.systems.generalised_linear.bayes.model import GeneralisedLinear
from orderparam.systems.generalised_linear.bayes.theory import TeacherEstimate, at_precision, classification_error, precisions

_GOLDEN = (5**0.5 - 1) / 2
_NARROWED = 45  # times: a bracket to 4e-10, in which a minimum is known to rounding

Scalar = Float[Array, ""]


@theory
def amp_fixed_point(system: GeneralisedLinear, *, points: int = 161) -> TeacherEstimate:
    """What `state_evolution` reaches from q = 0 with `max_steps` = infinity, exactly on either side of a jump.

    gain(u) is looked at on a grid of `points` precisions; the deepest dip before its first zero is followed to its lowest point,
    so that two roots between neighbouring points of the grid are seen. Where no root is left the weights are known (error 0).
    """
    rho = system.prior.power

    def gain(u: Scalar, system: GeneralisedLinear) -> Scalar:
        _, _, information, _ = at_precision(system, jnp.exp(u))
        return jnp.log(system.sample_ratio * information) - u

    fixed = lax.stop_gradient(system)
    u = jnp.log(precisions(points) / lax.stop_gradient(rho))
    gains = lax.map(lambda x: gain(x, fixed), u)
    known = jnp.all(gains > 0)
    first = jnp.where(known, points - 1, jnp.argmax(gains <= 0))
    inner = jnp.clip(jnp.argmin(jnp.where(jnp.arange(points) < first, gains, jnp.inf)), 1, points - 2)
    dip = _lowest(lambda x: gain(x, fixed), u[inner - 1], u[inner + 1])
    dips = (inner < first) & (gain(dip, fixed) <= 0)
    known &= ~dips
    lower, upper = jnp.where(dips, u[inner - 1], u[jnp.maximum(first - 1, 0)]), jnp.where(dips, dip, u[first])
    root = decreasing_root(gain, lower, upper, system)
    nothing = first == 0  # q = 0 is a solution, and the one that is reached
    overlap, error, _, _ = at_precision(system, jnp.exp(jnp.where(nothing, u[0], root.value)))
    overlap, error = jnp.where(known, rho, overlap), jnp.where(known, 0.0, error)
    return TeacherEstimate(
        overlap=overlap,
        error=error,
        cosine=jnp.where(known, 1.0, jnp.sqrt(jnp.where(known, rho, overlap) / rho)),
        classification_error=classification_error(system, overlap),
        converged=root.converged | known | nothing,
    )


def _lowest(function: Callable[[Scalar], Scalar], low: Scalar, high: Scalar) -> Scalar:
    """The minimum between low and high, by golden section."""

    def narrower(_: int, ends: tuple[Scalar, Scalar]) -> tuple[Scalar, Scalar]:
        low, high = ends
        step = _GOLDEN * (high - low)
        left = function(high - step) < function(low + step)
        return jnp.where(left, low, high - step), jnp.where(left, low + step, high)

    return jnp.mean(jnp.stack(lax.fori_loop(0, _NARROWED, narrower, (low, high))))
