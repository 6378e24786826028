"""Normalised Hermite polynomials h_n = He_n / sqrt(n!), orthonormal under the standard normal law:
E h_n(z) h_m(z) = delta_nm."""

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from orderparam.gaussian.quadrature import safe_sqrt, scaled_cuts, standard_normal_rule


def hermite(degree: int, z: Float[ArrayLike, "*batch"]) -> Float[Array, "*batch"]:
    """h_degree(z), by the recursion sqrt(n+1) h_{n+1} = z h_n - sqrt(n) h_{n-1}."""
    z = jnp.asarray(z, jnp.float64)
    previous, current = jnp.zeros_like(z), jnp.ones_like(z)
    for n in range(degree):
        previous, current = current, (z * current - np.sqrt(n) * previous) / np.sqrt(n + 1)
    return current


def hermite_coefficients(
    f: Callable[[Array], Array],
    count: int,
    variance: Float[ArrayLike, "*batch"] = 1.0,
    kinks: Sequence[float] = (),
) -> Float[Array, "*batch {count}"]:
    """c_n = E f(sqrt(variance) z) h_n(z) for n < count, so that f(sqrt(variance) z) = sum_n c_n
    h_n(z).

    kinks: see `quadrature.expectation`. Accurate to 1e-14 of the root mean square of f. The
    recursion runs on the Hermite functions h_n(z) exp(-z^2/4), which stay bounded where the
    polynomials overflow.
    """
    deviation = safe_sqrt(jnp.asarray(variance, jnp.float64))
    # h_n oscillates with wave number sqrt(n)
    z, weight = standard_normal_rule(
        scaled_cuts(kinks, deviation), refine=1 + int(np.sqrt(count) / 15)
    )
    return _projections(weight * jnp.exp(z**2 / 4) * f(deviation[..., None] * z), z, count)


# compiled once a shape, also when called outside of other compiled code
@partial(jax.jit, static_argnames="count")
def _projections(
    values: Float[Array, "*batch node"], z: Float[Array, "*batch node"], count: int
) -> Float[Array, "*batch {count}"]:
    """Sums of values * h_n(z) exp(-z^2/4) over the nodes, for n < count."""

    def step(carry, n):
        previous, current = carry
        following = (z * current - jnp.sqrt(n) * previous) / jnp.sqrt(n + 1)
        return (current, following), jnp.sum(values * current, axis=-1)

    start = (jnp.zeros_like(z), jnp.exp(-(z**2) / 4))
    _, coefficients = jax.lax.scan(step, start, jnp.arange(count, dtype=jnp.float64))
    return jnp.moveaxis(coefficients, 0, -1)
