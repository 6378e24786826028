"""The penalty at which a feature map generalises best."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.solve.root import decreasing_root
from orderparam.systems.random_features.model import FeatureRegression
from orderparam.systems.random_features.theory.curve import FeatureCurve
from orderparam.systems.random_features.theory.state_evolution import asymptotics

# The ridge beside the summed loss is looked for between these, at so many points before the best is refined.
LOWEST, HIGHEST, SCAN = 1e-8, 1e6, 57


class OptimalRidge(FeatureCurve):
    """The curve at the best ridge; ridge: in the convention of the system; slope: |d error / d log ridge| that is left."""

    ridge: Float[Array, ""]
    slope: Float[Array, ""]


def optimal_ridge(system: FeatureRegression, objective: str = "test_error") -> OptimalRidge:
    """argmin over the ridge of an observable of `FeatureCurve`; the ridge of `system` is not used.

    A scan over log ridge, then Newton's method on the derivative, by implicit differentiation of the saddle point.
    `converged` is False when the best ridge lies outside 1e-8 .. 1e6 (as for a target of which nothing can be learned).
    """
    grid = jnp.linspace(jnp.log(LOWEST), jnp.log(HIGHEST), SCAN)

    def error(log_ridge: Float[Array, ""], system: FeatureRegression) -> Float[Array, ""]:
        return getattr(asymptotics(system.with_summed_ridge(jnp.exp(log_ridge))), objective)

    def downhill(log_ridge: Float[Array, ""], system: FeatureRegression) -> Float[Array, ""]:
        return -jax.jvp(lambda u: error(u, system), (log_ridge,), (jnp.ones_like(log_ridge),))[1]

    best = jnp.argmin(jax.lax.map(lambda u: error(u, system), grid, batch_size=SCAN))
    inside: Bool[Array, ""] = (best > 0) & (best < SCAN - 1)
    root = decreasing_root(downhill, grid[jnp.maximum(best - 1, 0)], grid[jnp.minimum(best + 1, SCAN - 1)], system)
    at_best = system.with_summed_ridge(jnp.exp(jnp.where(inside, root.value, grid[best])))
    curve = asymptotics(at_best)
    fields = {name: getattr(curve, name) for name in type(curve).dims()}
    fields["converged"] = curve.converged & inside & root.converged
    return OptimalRidge(**fields, ridge=jnp.asarray(at_best.ridge), slope=root.residual)
