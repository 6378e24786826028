"""Independent batched Cholesky factors and triangular solves in one loop: on two cores jaxlib
0.10.* never gets through this."""

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

jax.config.update("jax_enable_x64", True)


@jax.jit
@jax.vmap
def relax(left, right):
    def step(_, pair):
        roots = [jnp.linalg.cholesky(matrix @ matrix.T + 40 * jnp.eye(40)) for matrix in pair]
        changes = [
            sum(solve_triangular(root, matrix, lower=True) for matrix in pair) for root in roots
        ]
        return left + 1e-3 * changes[0], right + 1e-3 * changes[1]

    return jax.lax.fori_loop(0, 200, step, (left, right))


if __name__ == "__main__":
    pair = jax.random.normal(jax.random.key(0), (2, 21, 40, 40))
    for _ in range(20):
        jax.block_until_ready(relax(*pair))
