"""Memories of pictures: Hebb's couplings, those of the pseudo-inverse, polynomial energies,
attention.
"""

from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.systems.associative_memory.images.model import StoredImages

_TIE = 1e-12  # of a field that vanishes but for rounding: the pixel stays

Rule = Literal["Hebb", "pseudo-inverse", "degree 3", "degree 10", "attention"]


class Restored(Result):
    """Means over the stored pictures that were tried.

    damaged_overlap, overlap: with the picture, before and after. recognised: the share of pictures
    to which the final state is nearer than to any other that is stored. exact: the share that came
    back without a wrong pixel.
    """

    damaged_overlap: Float[Array, ""]
    overlap: Float[Array, ""]
    recognised: Float[Array, ""]
    exact: Float[Array, ""]


class Picture(Result):
    """One picture: stored, damaged, and what was retrieved."""

    stored: Float[Array, "pixel"]
    damaged: Float[Array, "pixel"]
    retrieved: Float[Array, "pixel"]
    overlap: Float[Array, ""]


@experiment
def restored(
    system: StoredImages,
    key: PRNGKeyArray,
    *,
    rule: Rule = "Hebb",
    trials: int = 50,
    sweeps: int = 20,
) -> Restored:
    """Pictures drawn from the stored ones are damaged and retrieved, a sweep being one update of
    each pixel in a random order.

    rule: "Hebb" and "pseudo-inverse" (Personnaz, Guyon, Dreyfus 1985) are s_i <- sign(sum_j J_ij
    s_j) without self-coupling, J the sum of outer products or the projection on all pictures;
    "degree n" the sign that lowers -sum_mu (xi^mu . s)^n (Krotov, Hopfield 2016); "attention" s <-
    X^T softmax(X s) of all pixels at once (Ramsauer et al. 2020), with the sign taken at the end.
    """
    count, choice, damage = system.size("count"), *jax.random.split(key)
    index = jax.random.randint(choice, (trials,), 0, count)
    start, end = _retrieve(system.patterns[:count], index, system.damage, damage, rule, sweeps)
    picture = system.patterns[index]
    overlaps = end @ system.patterns[:count].T / picture.shape[1]
    own = jnp.mean(end * picture, axis=1)
    exact = jnp.all(end == picture, axis=1)  # not from the overlap, which rounds
    recognised = own >= jnp.max(overlaps, axis=1) - 1e-12
    return Restored(jnp.mean(start * picture), jnp.mean(own), jnp.mean(recognised), jnp.mean(exact))


@experiment
def one_picture(
    system: StoredImages,
    key: PRNGKeyArray,
    *,
    rule: Rule = "Hebb",
    which: int = 0,
    sweeps: int = 20,
) -> Picture:
    """The picture `which` of the stored ones, as `restored` would retrieve it; the damage depends
    on the key alone.
    """
    count = system.size("count")
    if not 0 <= which < count:
        raise ValueError(
            f"one_picture: which = {which}: must be from 0 to {count - 1} (StoredImages.count = {count})"
        )
    start, end = _retrieve(
        system.patterns[:count], jnp.asarray([which]), system.damage, key, rule, sweeps
    )
    return Picture(
        system.patterns[which], start[0], end[0], jnp.mean(end[0] * system.patterns[which])
    )


@partial(jax.jit, static_argnames=("rule", "sweeps"))
def _retrieve(
    stored: Float[Array, "image pixel"],
    index: Array,
    damage: Float[Array, ""],
    key: PRNGKeyArray,
    rule: str,
    sweeps: int,
) -> tuple[Float[Array, "trial pixel"], Float[Array, "trial pixel"]]:
    """The damaged pictures and what became of them."""
    pixels = stored.shape[1]
    where, what, order = jax.random.split(key, 3)
    picture = stored[index]
    drawn = jnp.argsort(jax.random.uniform(where, picture.shape), axis=1) < jnp.round(
        damage * pixels
    )
    start = jnp.where(drawn, jax.random.rademacher(what, picture.shape, float), picture)
    if rule == "attention":
        state = start
        for _ in range(sweeps):
            state = jax.nn.softmax(state @ stored.T, axis=1) @ stored
        return start, jnp.where(state < 0, -1.0, 1.0)
    if rule.startswith("degree"):
        degree = int(rule.removeprefix("degree "))
        unit = float(pixels)

        def field(state: Array, pixel: Array) -> Array:
            """The energy up less that down, for every trial; overlaps in units of the number of
            pixels.
            """
            entries = stored[:, pixel]
            others = (state @ stored.T - state[:, pixel, None] * entries) / unit
            return ((others + 1 / unit) ** degree - (others - 1 / unit) ** degree) @ entries

    else:
        hebb = stored.T @ stored / pixels
        couplings = (hebb if rule == "Hebb" else jnp.linalg.pinv(stored) @ stored) * (
            1 - jnp.eye(pixels)
        )

        def field(state: Array, pixel: Array) -> Array:
            return state @ couplings[pixel]

    def update(state: Array, pixel: Array) -> tuple[Array, None]:
        value = field(state, pixel)
        return state.at[:, pixel].set(
            jnp.where(jnp.abs(value) < _TIE, state[:, pixel], jnp.sign(value))
        ), None

    def sweep(state: Array, key: PRNGKeyArray) -> tuple[Array, None]:
        return jax.lax.scan(update, state, jax.random.permutation(key, pixels))[0], None

    return start, jax.lax.scan(sweep, start, jax.random.split(order, sweeps))[0]
