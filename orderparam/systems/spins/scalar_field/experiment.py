"""Simulations of the scalar field by local Metropolis updates and by cluster updates that change
the sign of whole clusters.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from orderparam.core.result import Result, with_errors
from orderparam.core.verb import experiment
from orderparam.sampling import estimate
from orderparam.sampling.jackknife import blocked_jackknife
from orderparam.sampling.lattice.clusters import cluster_labels
from orderparam.sampling.lattice.random_words import Counter, below, first_word, random_words
from orderparam.systems.spins.scalar_field.model import ScalarField

_WIDTH = 1.2  # largest proposed step, in units of the width of a single site's density


class MeasuredField(Result):
    """Measured equilibrium averages of the scalar field, with standard errors.

    Fields:
        squared_field, squared_field_error: <phi^2> at a site.
        fourth_field, fourth_field_error: <phi^4> at a site.
        absolute_magnetisation, absolute_magnetisation_error: <|m|>, with m the mean of the field
            over the lattice.
        binder, binder_error: Binder's ratio 1 - <m^4>/(3 <m^2>^2).
        acceptance_rate: fraction of the proposed local updates that were accepted.
        converged: whether R-hat of phi^2 is below 1.05 and there are at least 100 effective
            samples.
    """

    squared_field: Float[Array, ""]
    squared_field_error: Float[Array, ""]
    fourth_field: Float[Array, ""]
    fourth_field_error: Float[Array, ""]
    absolute_magnetisation: Float[Array, ""]
    absolute_magnetisation_error: Float[Array, ""]
    binder: Float[Array, ""]
    binder_error: Float[Array, ""]
    acceptance_rate: Float[Array, ""]
    converged: Bool[Array, ""]


def even_lengths(system: ScalarField, **_: object) -> None:
    """Raise `ValueError` for a lattice with an odd length."""
    if any(length % 2 for length in system.shape):
        raise ValueError(
            f"ScalarField.shape = {system.shape}: must be even (colours of a checkerboard are "
            "updated in turn)"
        )


@experiment(check=even_lengths)
def field_clusters(
    system: ScalarField,
    key: PRNGKeyArray,
    *,
    replicas: int = 8,
    warmup: int = 100,
    sweeps: int = 1000,
) -> MeasuredField:
    r"""Equilibrium averages of the scalar field, simulated with local updates and clusters.

    In every sweep one new value is proposed for each site and is accepted by Metropolis' rule. Then
    neighbours of equal sign are joined with probability $1 - e^{-2 \phi \phi'}$, and every cluster
    takes a random sign. The field starts at zero.

    Args:
        replicas: number of independent runs that are simulated together.
        warmup: sweeps of each replica before anything is measured.
        sweeps: measured sweeps of each replica; at least 8.

    Raises:
        ValueError: for a lattice with an odd length.

    Source: Brower, Tamayo (1989).

    >>> import jax
    >>> runs = field_clusters(ScalarField(1.0, 0.25, (4,)), jax.random.key(0), sweeps=200)
    >>> bool(abs(runs.squared_field - 0.34) < 0.1)
    True
    """
    moments, accepted = field_series(
        system.mass, system.coupling, key, system.shape, replicas, warmup, sweeps
    )

    def derived(means: Float[Array, "moment"]) -> Float[Array, "observable"]:
        squared, fourth, absolute, second, power = means
        return jnp.stack([squared, fourth, absolute, 1 - power / (3 * second**2)])

    value, error = blocked_jackknife(derived, moments)
    names = "squared_field", "fourth_field", "absolute_magnetisation", "binder"
    return MeasuredField(
        **with_errors(**dict(zip(names, zip(value, error)))),
        acceptance_rate=accepted,
        converged=estimate(moments[..., 0]).reliable,
    )


class Sweep(NamedTuple):
    """A sweep of local and cluster updates, applied to all replicas of the field."""

    mass: Float[Array, ""]
    coupling: Float[Array, ""]
    shape: tuple[int, ...]

    def __call__(
        self, field: Float[Array, "replica *shape"], words: Counter
    ) -> tuple[Array, Counter, Int[Array, "replica *shape"], Float[Array, ""]]:
        """The new field and random words, the label of the cluster of every site, and the share of
        accepted local updates.
        """
        axes, stiffness = tuple(range(1, field.ndim)), self.mass + 2 * len(self.shape)
        colour = np.sum(np.indices(self.shape), axis=0) % 2
        step = (
            2
            * _WIDTH
            / jnp.sqrt(
                jnp.maximum(stiffness, 0)
                + 2 * jnp.abs(jnp.minimum(stiffness, 0))
                + 3 * jnp.sqrt(self.coupling)
            )
        )

        def uniform(words: Counter) -> tuple[Counter, Array]:
            words, drawn = random_words(words, field.size)
            return words, ((drawn >> np.uint64(11)).astype(float) * 2.0**-53).reshape(field.shape)

        accepted = jnp.zeros(())
        for own in (0, 1):
            around = sum(jnp.roll(field, shift, axis) for axis in axes for shift in (1, -1))
            words, change = uniform(words)
            words, chance = uniform(words)
            new = field + step * (2 * change - 1)
            rise = (
                stiffness / 2 * (new**2 - field**2)
                + self.coupling * (new**4 - field**4)
                - around * (new - field)
            )
            taken = (chance < jnp.exp(-rise)) & (colour == own)
            field, accepted = jnp.where(taken, new, field), accepted + jnp.mean(taken)
        joined = jnp.stack([field * jnp.roll(field, -1, axis) for axis in axes])
        words, drawn = random_words(words, joined.size)
        bonds = below(drawn.reshape(joined.shape), -jnp.expm1(-2 * jnp.maximum(joined, 0)))
        labels = cluster_labels(bonds)
        words, drawn = random_words(words, field.size)
        field = jnp.where((drawn & 1).astype(bool)[labels], field, -field)
        return field, words, labels, accepted


@partial(jax.jit, static_argnames=("shape", "replicas", "warmup", "sweeps"))
def field_series(
    mass: Float[Array, ""],
    coupling: Float[Array, ""],
    key: PRNGKeyArray,
    shape: tuple[int, ...],
    replicas: int,
    warmup: int,
    sweeps: int,
) -> tuple[Float[Array, "replica sweep moment"], Float[Array, ""]]:
    """Values of phi^2, phi^4, |m|, m^2 and m^4 after each sweep, and the fraction of proposed
    values that were accepted.
    """
    axes, update = tuple(range(1, 1 + len(shape))), Sweep(mass, coupling, shape)

    def sweep(
        carry: tuple[Array, Counter], _: None
    ) -> tuple[tuple[Array, Counter], tuple[Array, Array]]:
        field, words, _labels, accepted = update(*carry)
        m = jnp.mean(field, axis=axes)
        kept = jnp.stack(
            [jnp.mean(field**2, axis=axes), jnp.mean(field**4, axis=axes), jnp.abs(m), m**2, m**4],
            axis=-1,
        )
        return (field, words), (kept, accepted)

    _, (kept, accepted) = jax.lax.scan(
        sweep, (jnp.zeros((replicas, *shape)), first_word(key)), length=warmup + sweeps
    )
    return jnp.swapaxes(kept[warmup:], 0, 1), jnp.mean(accepted[warmup:])
