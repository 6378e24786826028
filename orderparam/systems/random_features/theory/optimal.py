"""The penalty at which a feature map generalises best."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import optimistix
from jaxtyping import Array, Bool, Float

from orderparam.core.system import nearest
from orderparam.core.verb import theory
from orderparam.losses import Square
from orderparam.solve.root import decreasing_root
from orderparam.systems.random_features.model import FeatureRegression
from orderparam.systems.random_features.theory.curve import FeatureCurve
from orderparam.systems.random_features.theory.state_evolution import asymptotics, iterate

Theory = Callable[[FeatureRegression], FeatureCurve]

# The ridge beside the summed loss is looked for at these powers of ten before the best is refined. Other losses than the square
# one are iterated, slowly at small ridges, where their fields grow without bound.
SQUARE, ITERATED = (-8.0, 6.0, 57), (-4.0, 4.0, 25)
HALVINGS = 30


class OptimalRidge(FeatureCurve):
    """The curve at the best ridge; ridge: in the convention of the system; slope: |d error / d log ridge| that is left."""

    ridge: Float[Array, ""]
    slope: Float[Array, ""]


@theory
def optimal_ridge(system: FeatureRegression, *, objective: str = "test_error") -> OptimalRidge:
    """argmin over the ridge of an observable of `FeatureCurve`; the ridge of `system` is not used.

    A scan over log ridge, then the root of the derivative, which follows from implicit differentiation of the saddle point: by
    Newton's method for the square loss (and differentiable), by bisection to 1e-9 in log ridge for others, whose derivative is
    known to the accuracy of the iteration only. Raises `ValueError` for an observable that does not exist.

    `converged` is False when the best ridge lies outside 1e-8 .. 1e6 (square loss; others: 1e-4 .. 1e4), as for a target of which
    nothing can be learned.
    """
    if objective not in FeatureCurve.dims():
        raise ValueError(f"objective = {objective!r}{nearest(objective, list(FeatureCurve.dims()))}")
    square = isinstance(system.loss, Square)
    low, high, points = SQUARE if square else ITERATED
    grid = jnp.log(10.0) * jnp.linspace(low, high, points)
    coarse = asymptotics if square else partial(iterate, tolerance=1e-5, max_steps=300)

    def error(log_ridge: Float[Array, ""], system: FeatureRegression, curve: Theory = asymptotics) -> Float[Array, ""]:
        return getattr(curve(system.with_summed_ridge(jnp.exp(log_ridge))), objective)

    def downhill(log_ridge: Float[Array, ""], system: FeatureRegression) -> Float[Array, ""]:
        return -jax.jvp(lambda u: error(u, system), (log_ridge,), (jnp.ones_like(log_ridge),))[1]

    best = jnp.argmin(jax.vmap(lambda u: error(u, system, coarse))(grid))
    inside: Bool[Array, ""] = (best > 0) & (best < points - 1)
    left, right = grid[jnp.maximum(best - 1, 0)], grid[jnp.minimum(best + 1, points - 1)]
    if square:
        root = decreasing_root(downhill, left, right, system)
        place, slope, found = root.value, root.residual, root.converged
    else:
        still, bisection = jax.lax.stop_gradient(system), optimistix.Bisection(rtol=0, atol=0, flip=True)
        ends = {"lower": left, "upper": right}
        halved = optimistix.root_find(
            downhill, bisection, (left + right) / 2, still, options=ends, max_steps=HALVINGS, throw=False
        )
        place, slope, found = halved.value, halved.state.error, jnp.asarray(True)
    place = jnp.where(inside, place, grid[best])
    at_best = system.with_summed_ridge(jnp.exp(place))
    curve = asymptotics(at_best)
    fields = {name: getattr(curve, name) for name in type(curve).dims()}
    fields["converged"] = curve.converged & inside & found
    return OptimalRidge(**fields, ridge=jnp.asarray(at_best.ridge), slope=jnp.abs(slope))
