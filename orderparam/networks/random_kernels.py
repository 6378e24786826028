"""Kernels of finite networks: the tangent kernel of one network, and averages over random networks
of the prior."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.networks.architecture import Architecture, Network


@eqx.filter_jit
def empirical_ntk(
    network: Network,
    x1: Float[Array, "first *input"],
    x2: Float[Array, "second *input"] | None = None,
    *,
    row_batch: int = 16,
) -> Float[Array, "first second"]:
    """Theta(x, x') = (1/outputs) sum_i df_i(x)/dtheta . df_i(x')/dtheta of one finite network,
    with theta its trained weights.

    Each row is the directional derivative of f(x2) along the gradient of f(x) (Novak et al. 2022,
    NTK-vector products), so that no Jacobian is ever stored: memory for `row_batch` gradients and
    `row_batch` forward passes over x2.
    """
    other = x1 if x2 is None else x2

    def outputs(weights: Any, x: Array) -> Array:
        return network.with_weights(weights)(x)

    def row(x: Array) -> Array:
        values, pullback = jax.vjp(lambda w: outputs(w, x[None])[0], network.weights)

        def along(i: Array) -> Array:
            (gradient,) = pullback(jnp.zeros_like(values).at[i].set(1.0))
            return jax.jvp(lambda w: outputs(w, other), (network.weights,), (gradient,))[1][:, i]

        return jax.vmap(along)(jnp.arange(values.shape[0])).mean(axis=0)

    return jax.lax.map(row, x1, batch_size=row_batch)


class RandomKernels(Result):
    """Kernels averaged over random finite networks, with standard errors (over networks) of the
    averages.

    nngp: mean of (1/outputs) sum_i f_i(x) f_i(x'). ntk: mean of the empirical tangent kernel.
    """

    nngp: Float[Array, "first second"]
    nngp_error: Float[Array, "first second"]
    ntk: Float[Array, "first second"]
    ntk_error: Float[Array, "first second"]


def random_kernels(
    architecture: Architecture,
    key: PRNGKeyArray,
    x1: Float[Array, "first *input"],
    x2: Float[Array, "second *input"] | None = None,
    *,
    networks: int = 100,
) -> RandomKernels:
    """Monte-Carlo kernels of an architecture at its finite widths: means over `networks`
    independent draws of the prior.

    Raises `ValueError` for fewer than two networks (no standard error) or a width that is open.
    """
    if networks < 2:
        raise ValueError(f"networks = {networks}: must be at least 2, for a standard error")
    other = x1 if x2 is None else x2

    @jax.jit
    def sample(keys: PRNGKeyArray) -> tuple[Array, Array]:
        def one(key: PRNGKeyArray) -> tuple[Array, Array]:
            network = architecture.network(key, x1.shape[1:])
            f1, f2 = network(x1), network(other)
            return f1 @ f2.T / f1.shape[1], empirical_ntk(network, x1, x2)

        return jax.lax.map(one, keys)

    nngp, ntk = sample(jax.random.split(key, networks))
    root = jnp.sqrt(networks)
    return RandomKernels(
        nngp=nngp.mean(0),
        nngp_error=nngp.std(0, ddof=1) / root,
        ntk=ntk.mean(0),
        ntk_error=ntk.std(0, ddof=1) / root,
    )
