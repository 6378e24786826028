"""The largest curvature of a potential, and the bias of a Langevin step of given size in the mode
with that curvature."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

LANCZOS_STEPS = 32


@eqx.filter_jit
def largest_curvature(
    log_density: Callable[[PyTree], Float[Array, ""]], position: PyTree, key: PRNGKeyArray
) -> Float[Array, ""]:
    """Largest eigenvalue of the Hessian of U = -log_density at `position`, by Lanczos on
    Hessian-vector products.

    Only three vectors of the size of the position are in memory. The Lanczos method of matfree
    keeps all 32, which is too much because positions are networks, vmapped over chains. Without
    reorthogonalisation the extreme Ritz values stay correct (Paige 1972, J. Inst. Math. Appl. 10,
    373). After min(32, number of parameters) steps an isolated top eigenvalue is exact to rounding;
    a dense upper edge is approached from below, to about a percent.

    `log_density` must allow forward-over-reverse derivatives. Pure; vmappable over `position` and
    `key`.
    """
    flat, unravel = ravel_pytree(position)
    gradient = jax.grad(lambda x: -log_density(unravel(x)))
    start = jax.random.normal(key, flat.shape, flat.dtype)

    def lanczos(carry, _):
        previous, current, coupling = carry
        _, image = jax.jvp(gradient, (flat,), (current,))
        diagonal = current @ image
        image = image - diagonal * current - coupling * previous
        norm = jnp.linalg.norm(image)
        # The norm vanishes when the Krylov space is exhausted; the vectors after that are zero.
        following = jnp.where(norm > 0, image / jnp.where(norm > 0, norm, 1.0), 0.0)
        return (current, following, norm), (diagonal, norm, jnp.any(current != 0))

    initial = (jnp.zeros_like(flat), start / jnp.linalg.norm(start), jnp.zeros((), flat.dtype))
    _, (diagonal, couplings, alive) = jax.lax.scan(
        lanczos, initial, length=min(LANCZOS_STEPS, flat.size)
    )
    # a zero vector must not add an eigenvalue 0
    diagonal = jnp.where(alive, diagonal, diagonal[0])
    above = jnp.diag(couplings[:-1], 1)
    return jnp.linalg.eigvalsh(jnp.diag(diagonal) + above + above.T)[-1]


def variance_inflation(
    step_size: Float[Array, "*shape"], curvature: Float[Array, "*shape"]
) -> Float[Array, "*shape"]:
    """Factor by which an unadjusted Langevin step dt inflates the variance of a mode of curvature
    A: 1/(1 - dt A/2).

    Exact in a Gaussian model, where x' = (1 - dt A) x + sqrt(2 dt) xi is a first-order
    autoregression with stationary variance 2 dt/(1 - (1 - dt A)^2) = (1/A)/(1 - dt A/2). Infinite
    where dt A >= 2: the step is unstable.
    """
    margin = 1 - jnp.asarray(step_size) * curvature / 2
    # A margin that is NaN (a chain that diverged) must stay NaN.
    return jnp.where(margin <= 0, jnp.inf, 1 / jnp.where(margin <= 0, 1.0, margin))
