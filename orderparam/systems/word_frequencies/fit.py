"""Fit of the law of Zipf and Mandelbrot to the counts of words, within a window of ranks."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.solve.minimum import lbfgs_minimum
from orderparam.systems.word_frequencies.model import Method

Scalar = Float[Array, ""]


class FittedLaw(NamedTuple):
    """A fitted law: exponent a, offset b, divergence of the counts from it, and convergence of the
    fit."""

    exponent: Scalar
    offset: Scalar
    divergence: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


def fitted(counts: Float[Array, "rank"], window: Scalar, method: Method) -> FittedLaw:
    r"""The law $(r + b)^{-a}$ on the ranks 1 to `window` that fits `counts` best.

    Let f be the shares of the counts in the window. The method "likelihood" minimises the
    divergence $\sum_r f_r \ln(f_r/p_r)$. The method "squares" minimises the mean square of $\ln f_r
    - \ln p_r$ over the ranks with a count, up to a free additive constant and with the weight 1/r,
    so that every octave of ranks has the same weight. `divergence` is that of the fitted law for
    both methods.
    """
    ranks = jnp.arange(1, len(counts) + 1, dtype=float)
    counted = counts > 0
    inside = (ranks <= window) & (counted | (method == "likelihood"))
    share = jnp.where(inside, counts, 0.0)
    share = share / share.sum()
    logs = jnp.log(jnp.where(inside & counted, share, 1.0))
    even = jnp.where(inside, 1 / ranks, 0.0)
    even = even / even.sum()

    def log_law(unknown: Array) -> Array:
        # b = exp(u) - 1 > -1
        slopes = -unknown[0] * jnp.log(ranks + jnp.expm1(unknown[1]))
        norm = jax.scipy.special.logsumexp(jnp.where(inside, slopes, -jnp.inf))
        return jnp.where(inside, slopes - norm, 0.0)

    def divergence(unknown: Array) -> Scalar:
        return jnp.sum(share * (logs - log_law(unknown)))

    def squares(unknown: Array) -> Scalar:
        differences = logs - log_law(unknown)
        return jnp.sum(even * (differences - jnp.sum(even * differences)) ** 2)

    function = divergence if method == "likelihood" else squares
    found = lbfgs_minimum(function, jnp.array([1.0, 1.0]), tolerance=1e-8, max_steps=300)
    exponent, shift = found.value
    return FittedLaw(
        exponent, jnp.expm1(shift), divergence(found.value), found.residual, found.converged
    )
