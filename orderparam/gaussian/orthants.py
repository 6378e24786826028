"""Probabilities of the sign patterns of Gaussian vectors of a few components."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr, ndtri
from jaxtyping import Array, ArrayLike, Float


def patterns(count: int) -> np.ndarray:
    """All patterns (pattern, component) of -1 and 1, the last component changing fastest.

    >>> patterns(2).tolist()
    [[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]
    """
    return np.array(list(itertools.product((-1.0, 1.0), repeat=count)))


def orthant_probabilities(
    mean: Float[Array, "component"],
    covariance: Float[Array, "component other_component"],
    signs: Float[ArrayLike, "pattern component"],
    samples: int = 4096,
    runs: int = 4,
    seed: int = 0,
) -> tuple[Float[Array, "pattern"], Float[Array, "pattern"]]:
    """P(sign of every component is that of the pattern) and its standard error over the runs.

    One component after another is integrated along the Cholesky factor (Genz 1992) at scrambled
    Sobol points, a power of 2 of them in each of the runs. To a singular covariance 1e-12 of its
    mean variance is added.

    >>> import numpy as np
    >>> found, _ = orthant_probabilities(np.zeros(2), np.array([[1, 0.5], [0.5, 1]]), patterns(2))
    >>> round(float(found[3]), 4)
    0.3333
    """
    from scipy.stats import qmc  # slow to import, and used only here

    size = len(mean)
    points = np.stack(
        [
            qmc.Sobol(
                max(size - 1, 1), scramble=True, seed=np.random.default_rng([seed, run])
            ).random_base2(samples.bit_length() - 1)
            for run in range(runs)
        ]
    )
    jitter = 1e-12 * jnp.trace(covariance) / size

    def one(pattern: Array) -> Array:
        turned = pattern[:, None] * covariance * pattern
        lower = jnp.linalg.cholesky(turned + jitter * jnp.eye(size))
        below = pattern * mean
        probability, drawn = jnp.ones(points.shape[:2]), jnp.zeros((*points.shape[:2], 0))
        for i in range(size):
            # z_i > -(m_i + L_i . z)/L_ii
            least = -(below[i] + drawn @ lower[i, :i]) / lower[i, i]
            share = ndtr(-least)
            probability = probability * share
            if i + 1 < size:
                # in the upper tail, where it is accurate
                upper = jnp.clip(share * points[..., i], 1e-300, 1 - 1e-16)
                drawn = jnp.concatenate([drawn, -ndtri(upper)[..., None]], axis=-1)
        return jnp.mean(probability, axis=1)

    found = jax.lax.map(one, jnp.asarray(signs))  # (pattern, run)
    return jnp.mean(found, axis=1), jnp.std(found, axis=1, ddof=1) / runs**0.5
