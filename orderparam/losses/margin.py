"""The shortest vector that keeps every pattern on its side by a margin, by coordinate ascent of the dual problem."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

TOLERANCE = 1e-6  # of the optimality conditions


def margin_dual(
    gram: Float[Array, "problem pattern pattern"], demand: Float[Array, "problem pattern"], max_sweeps: int = 3000
) -> tuple[Float[Array, "problem pattern"], Bool[Array, "problem"]]:
    """a >= 0 that minimises a.G a/2 - demand.a, for many problems at once, and whether its optimality conditions hold to 1e-6.

    With signed patterns z_mu = y_mu x_mu and G_mu,nu = z_mu . z_nu, w = sum_mu a_mu z_mu is the shortest vector with
    w . z_mu >= demand_mu for all mu (demand 1: the largest margin, 1/|w|); w = w_0 + sum_mu a_mu z_mu with demand_mu =
    -w_0 . z_mu is the point nearest to w_0 with w . z_mu >= 0. One multiplier after the other is set to its optimum (Anlauf,
    Biehl 1989). Where no vector meets the demands the multipliers grow without bound, and `max_sweeps` ends it.
    """
    diagonal = jnp.diagonal(gram, axis1=1, axis2=2)

    def one(state: tuple[Array, Array], index: Array) -> tuple[tuple[Array, Array], None]:
        dual, excess = state
        change = jnp.maximum(-dual[:, index], -excess[:, index] / diagonal[:, index])
        return (dual.at[:, index].add(change), excess + change[:, None] * gram[:, index]), None

    def sweep(state: tuple) -> tuple:
        found, count = state
        return jax.lax.scan(one, found, jnp.arange(demand.shape[1]))[0], count + 1

    def violation(dual: Array, excess: Array) -> Float[Array, "problem"]:
        return jnp.max(jnp.where(dual > 0, jnp.abs(excess), jnp.maximum(-excess, 0.0)), axis=1)

    def unfinished(state: tuple) -> Bool[Array, ""]:
        return jnp.any(violation(*state[0]) > TOLERANCE) & (state[1] < max_sweeps)

    start = (jnp.zeros_like(demand), -demand)
    (dual, excess), _ = jax.lax.while_loop(unfinished, sweep, (start, jnp.asarray(0)))
    return dual, violation(dual, excess) <= TOLERANCE
