"""Fixed point of message passing, found without iterating."""

from collections.abc import Callable
from typing import Literal

import jax.numpy as jnp
from jax import lax

from orderparam.core.verb import theory
from orderparam.solve.root import decreasing_root
from orderparam.systems.generalised_linear.bayes.model import GeneralisedLinear
from orderparam.systems.generalised_linear.bayes.theory import (
    Scalar,
    TeacherEstimate,
    at_precision,
    classification_error,
    precisions,
)

# Message passing ends at the first solution of state evolution that it reaches from its start.
#
# Let u = ln qh. The iteration u -> ln(alpha I(e^u)) rises from q = 0 to the smallest root of
# gain(u) = ln(alpha I(e^u)) - u, and it falls from known weights to the largest root. Close to a
# threshold the number of steps of this iteration grows without bound, so that the root is found by
# bracketing and not by iteration.

_GOLDEN = (5**0.5 - 1) / 2
_NARROWED = 26  # steps: a bracket of 3e-6, in which the height of a minimum is known to 1e-11


@theory
def amp_fixed_point(
    system: GeneralisedLinear,
    *,
    start: Literal["uninformed", "informed"] = "uninformed",
    points: int = 161,
) -> TeacherEstimate:
    r"""Fixed point that message passing reaches after any number of steps.

    With $u = \ln \hat q$ the iteration of `state_evolution` is $u \to \ln[\alpha I(e^u)]$. It rises
    from $q = 0$ to the smallest root of

    $$ \ln[\alpha I(e^u)] - u = 0 , $$

    and falls from known weights to the largest root. The root is found without this iteration, so
    that it is exact on either side of a jump. If there is no such root the weights are known
    exactly (error 0).

    Args:
        start: "uninformed" (the default) or "informed", as in `state_evolution`.
        points: number of precisions at which the sign of the gain is tested; 161 by default. The
            smallest gain before the first change of sign is refined, so that two roots between
            neighbouring points are found.

    Source: Barbier, Krzakala, Macris, Miolane, Zdeborová (2019); the root is derived here.

    >>> found = amp_fixed_point(GeneralisedLinear(1.5, "sign", "rademacher"))
    >>> float(found.error) < 1e-20
    True
    """
    rho = system.prior.power
    up = start == "uninformed"

    def gain(u: Scalar, system: GeneralisedLinear) -> Scalar:
        _, _, information, _ = at_precision(system, jnp.exp(u))
        return jnp.log(system.sample_ratio * information) - u

    fixed = lax.stop_gradient(system)
    u = jnp.log(precisions(points) / lax.stop_gradient(rho))
    drive = lax.map(lambda x: gain(x, fixed), u)  # positive: the iteration goes on in its direction
    if not up:
        u, drive = u[::-1], -drive[::-1]
    through = jnp.all(drive > 0)
    first = jnp.where(through, points - 1, jnp.argmax(drive <= 0))
    inner = jnp.clip(
        jnp.argmin(jnp.where(jnp.arange(points) < first, drive, jnp.inf)), 1, points - 2
    )
    sign = 1.0 if up else -1.0
    dip, lowest = _lowest(
        lambda x: sign * gain(x, fixed), u[inner - 1], u[inner], u[inner + 1], drive[inner]
    )
    dips = (inner < first) & (lowest <= 0)
    through &= ~dips
    before = jnp.where(
        dips, u[inner - 1], u[jnp.where(through, points - 1, jnp.maximum(first - 1, 0))]
    )
    after = jnp.where(dips, dip, u[first])
    root = decreasing_root(gain, jnp.minimum(before, after), jnp.maximum(before, after), system)
    stays = first == 0  # the start is a solution, and the one that is reached
    recovered, nothing = (through, stays) if up else (stays, through)
    overlap, error, _, _ = at_precision(system, jnp.exp(jnp.where(nothing, jnp.min(u), root.value)))
    overlap, error = jnp.where(recovered, rho, overlap), jnp.where(recovered, 0.0, error)
    return TeacherEstimate(
        overlap=overlap,
        error=error,
        cosine=jnp.where(recovered, 1.0, jnp.sqrt(jnp.where(recovered, rho, overlap) / rho)),
        classification_error=classification_error(system, overlap),
        converged=root.converged | recovered | nothing,
    )


def _lowest(
    function: Callable[[Scalar], Scalar], one: Scalar, middle: Scalar, other: Scalar, lowest: Scalar
) -> tuple[Scalar, Scalar]:
    """Position and value of the minimum of a function between two points, by golden-section search
    from its value at a point between them. Each step evaluates the function once.
    """

    def narrower(_: int, state: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
        one, middle, other, lowest = state
        longer = jnp.where(jnp.abs(other - middle) > jnp.abs(one - middle), other, one)
        new = middle + (1 - _GOLDEN) * (longer - middle)
        height = function(new)
        lower, towards_other = height < lowest, longer == other
        # The new point lies in the longer of the two intervals. It or the middle becomes an end.
        one = jnp.where(towards_other, jnp.where(lower, middle, one), jnp.where(lower, one, new))
        other = jnp.where(
            towards_other, jnp.where(lower, other, new), jnp.where(lower, middle, other)
        )
        return one, jnp.where(lower, new, middle), other, jnp.where(lower, height, lowest)

    _, place, _, height = lax.fori_loop(0, _NARROWED, narrower, (one, middle, other, lowest))
    return place, height
