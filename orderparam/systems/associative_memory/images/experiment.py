"""Recall of pictures by Hebb's couplings, pseudo-inverse couplings, polynomial energies, and
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

_TIE = 1e-12  # a field of smaller modulus counts as zero: the pixel keeps its value

Rule = Literal["Hebb", "pseudo-inverse", "degree 3", "degree 10", "attention"]


class Restored(Result):
    """Recall of damaged pictures, averaged over trials.

    Fields:
        damaged_overlap: mean over trials and pixels of the damaged picture times the original.
        overlap: mean over trials and pixels of the final state times the original.
        recognised: fraction of the trials whose final state has no larger overlap with another
            stored picture than with the original.
        exact: fraction of the trials whose final state equals the original in every pixel.
    """

    damaged_overlap: Float[Array, ""]
    overlap: Float[Array, ""]
    recognised: Float[Array, ""]
    exact: Float[Array, ""]


class Picture(Result):
    """One picture before and after its recall.

    Fields:
        stored: pixels of the original, +1 or -1.
        damaged: pixels from which the recall starts.
        retrieved: pixels of the final state.
        overlap: overlap of the final state with the original.
    """

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
    r"""Recall of damaged pictures by one of several memories, averaged over random pictures.

    In each trial one of the stored pictures is drawn and damaged. The memory starts from the
    damaged picture and takes `sweeps` sweeps; a sweep updates each pixel once, in a random order.

    Args:
        rule: the memory. "Hebb" and "pseudo-inverse" update $s_i \leftarrow \mathrm{sign} \sum_{j
            \ne i} J_{ij} s_j$. For "Hebb" J is the sum of the outer products of the stored pictures
            divided by the number of pixels; for "pseudo-inverse" it is the projection on the span
            of the stored pictures (Personnaz, Guyon, Dreyfus 1985). "degree n" gives each pixel the
            sign of lower energy $-\sum_\mu (\xi^\mu \cdot s)^n$, where $\xi^\mu$ are the stored
            pictures (Krotov, Hopfield 2016). "attention" updates all pixels at once, $s \leftarrow
            X^T \mathrm{softmax}(X s)$ with the stored pictures as rows of X, keeps real values of s
            between the sweeps, and takes the sign at the end (Ramsauer et al. 2020).
        trials: number of pictures that are drawn, with replacement.
        sweeps: number of updates of every pixel.

    Source: Hopfield (1982) for Hebb's rule; the others as given above.

    >>> import jax
    >>> import numpy as np
    >>> system = StoredImages(np.sign(np.random.default_rng(0).normal(size=(4, 64))), count=4)
    >>> found = restored(system, jax.random.key(0), trials=5, sweeps=2)
    >>> bool(found.overlap > found.damaged_overlap)
    True
    """
    count, choice, damage = system.size("count"), *jax.random.split(key)
    index = jax.random.randint(choice, (trials,), 0, count)
    start, end = _retrieve(system.patterns[:count], index, system.damage, damage, rule, sweeps)
    picture = system.patterns[index]
    overlaps = end @ system.patterns[:count].T / picture.shape[1]
    own = jnp.mean(end * picture, axis=1)
    exact = jnp.all(end == picture, axis=1)  # pixels are compared: an overlap of 1 may be rounded
    recognised = own >= jnp.max(overlaps, axis=1) - 1e-12
    return Restored(
        damaged_overlap=jnp.mean(start * picture),
        overlap=jnp.mean(own),
        recognised=jnp.mean(recognised),
        exact=jnp.mean(exact),
    )


@experiment
def one_picture(
    system: StoredImages,
    key: PRNGKeyArray,
    *,
    rule: Rule = "Hebb",
    which: int = 0,
    sweeps: int = 20,
) -> Picture:
    """One stored picture, damaged and retrieved as in `restored`.

    With the same key every rule starts from the same damaged picture, so that rules can be
    compared.

    Args:
        rule: the memory, see `restored`.
        which: number of the picture among the stored ones, from 0.
        sweeps: number of updates of every pixel.

    Raises:
        ValueError: for a picture that is not stored.

    Source: Hopfield (1982); see `restored` for the other rules.

    >>> import jax
    >>> import numpy as np
    >>> system = StoredImages(np.sign(np.random.default_rng(0).normal(size=(4, 64))), count=4)
    >>> one_picture(system, jax.random.key(0), rule="attention", sweeps=2).retrieved.shape
    (64,)
    """
    count = system.size("count")
    if not 0 <= which < count:
        raise ValueError(
            f"one_picture: which = {which}: must be from 0 to {count - 1} (StoredImages.count = "
            f"{count})"
        )
    start, end = _retrieve(
        system.patterns[:count], jnp.asarray([which]), system.damage, key, rule, sweeps
    )
    return Picture(
        stored=system.patterns[which],
        damaged=start[0],
        retrieved=end[0],
        overlap=jnp.mean(end[0] * system.patterns[which]),
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
    """Damage the stored pictures `index`, run the memory `rule` from them for `sweeps` sweeps, and
    return the damaged pictures and the final states.
    """
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
        # Overlaps are divided by the number of pixels, so that high powers do not overflow.
        degree = int(rule.removeprefix("degree "))
        unit = float(pixels)

        def field(state: Array, pixel: Array) -> Array:
            """Energy of a pixel at -1 minus its energy at +1, for every trial.

            A positive value means that +1 has the lower energy. Overlaps are in units of the number
            of pixels.
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
