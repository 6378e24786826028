"""Moments near a critical point, in one form for simulations of different models.

In every model M_c is the sum of the order parameter over cluster c. Given the clusters, the signs
(or states) of these sums are independent. Each measurement is averaged over them in closed form
(improved estimators, Wolff 1988).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from orderparam.core.result import Result, with_errors
from orderparam.sampling import estimate
from orderparam.sampling.jackknife import blocked_jackknife


class CriticalMoments(Result):
    """Measured averages near a critical point, with standard errors.

    m is the order parameter per site, N the number of sites, L the length.

    Fields:
        binder, binder_error: Binder's ratio 1 - <|m|^4> / (f <|m|^2>^2), where f = 1 + 2/(q - 1) is
            <|m|^4>/<|m|^2>^2 of a Gaussian order parameter with q - 1 components; f = 3 for Ising
            spins and for the scalar field.
        binder_slope, binder_slope_error: derivative of Binder's ratio with respect to the coupling,
            or to the mass of a scalar field.
        squared_magnetisation, squared_magnetisation_error: <|m|^2>.
        structure_factor, structure_factor_error: S(k) = <|sum_x phi_x e^{ikx}|^2>/N at the smallest
            wave number k = 2 pi/L along an axis.
        relative_length, relative_length_error: xi/L, with the second-moment correlation length
            xi = (S(0)/S(k) - 1)^{1/2} / (2 sin(k/2)).
        converged: whether R-hat of |m|^2 is below 1.05 and there are at least 100 effective
            samples.
    """

    binder: Float[Array, ""]
    binder_error: Float[Array, ""]
    binder_slope: Float[Array, ""]
    binder_slope_error: Float[Array, ""]
    squared_magnetisation: Float[Array, ""]
    squared_magnetisation_error: Float[Array, ""]
    structure_factor: Float[Array, ""]
    structure_factor_error: Float[Array, ""]
    relative_length: Float[Array, ""]
    relative_length_error: Float[Array, ""]
    converged: Bool[Array, ""]


class ClusterMoments(NamedTuple):
    """Values after one sweep, averaged over the states of the clusters: |m|^2, |m|^4, S(2 pi/L)."""

    second: Float[Array, "replica"]
    fourth: Float[Array, "replica"]
    structure: Float[Array, "replica"]


def cluster_moments(
    field: Float[Array, "replica row column"],
    labels: Int[Array, "replica row column"],
    components: int = 1,
) -> ClusterMoments:
    r"""The moments of an order parameter whose cluster sums point to random states.

    With $M_c = \sum_{x \in c} \phi_x$ and states that are the corners of a simplex in
    `components` = q - 1 dimensions,

    $$ |m|^2 = \sum_c \frac{M_c^2}{N^2}, \qquad
       |m|^4 = \sum_c \frac{M_c^4}{N^4}
          + f \Big[ \Big( \sum_c \frac{M_c^2}{N^2} \Big)^2 - \sum_c \frac{M_c^4}{N^4} \Big], \qquad
       f = 1 + \frac{2}{q - 1} . $$

    Args:
        field: modulus of the order parameter at every site; 1 for spins.
        labels: label of every site, numbered through all replicas.
        components: number q - 1 of components of the order parameter; 1 for two signs.
    """
    replicas, length, _ = field.shape
    sites = length**2
    wave = 2 * np.pi * np.arange(length) / length

    def summed(weight: Array) -> Float[Array, "replica cluster"]:
        """Sums over the clusters of each replica."""
        flat = jnp.broadcast_to(weight, field.shape).ravel()
        sums = jnp.zeros(flat.size).at[labels.ravel()].add(flat)
        return sums.reshape(replicas, sites)

    squares = (summed(field) / sites) ** 2
    second, fourth = jnp.sum(squares, axis=1), jnp.sum(squares**2, axis=1)
    axes = (wave[:, None], wave)
    turns = [turn(along) for along in axes for turn in (np.cos, np.sin)]
    waves = jnp.stack([jnp.sum(summed(field * turn) ** 2, axis=1) for turn in turns])
    structure = jnp.sum(waves, axis=0) / (2 * sites)  # the mean of both axes
    ratio = gaussian_ratio(components)
    return ClusterMoments(second, fourth + ratio * (second**2 - fourth), structure)


def gaussian_ratio(components: int) -> float:
    """<|m|^4>/<|m|^2>^2 of a Gaussian order parameter: 1 + 2/components."""
    return 1 + 2 / components


def critical_moments(
    moments: ClusterMoments,
    conjugate: Float[Array, "replica sweep"],
    length: int,
    components: int = 1,
) -> CriticalMoments:
    """Averages over the series of all replicas, with standard errors.

    Args:
        moments: values (replica, sweep) of `ClusterMoments`.
        conjugate: derivative of the logarithm of a configuration's weight with respect to the
            coupling, up to a constant. It must not depend on the states of the clusters.
        length: number L of sites along each direction.
        components: as in `cluster_moments`.
    """
    ratio = gaussian_ratio(components)
    scale = jnp.std(conjugate)
    push = (conjugate - jnp.mean(conjugate)) / scale

    def derived(means: Float[Array, "moment"]) -> Float[Array, "observable"]:
        second, fourth, structure, force, second_force, fourth_force = means
        second_slope = (second_force - second * force) * scale
        fourth_slope = (fourth_force - fourth * force) * scale
        binder = 1 - fourth / (ratio * second**2)
        slope = -(fourth_slope - 2 * fourth * second_slope / second) / (ratio * second**2)
        relative = jnp.sqrt(second * length**2 / structure - 1) / (
            2 * length * jnp.sin(jnp.pi / length)
        )
        return jnp.stack([binder, slope, second, structure, relative])

    second, fourth, structure = moments
    series = jnp.stack([second, fourth, structure, push, second * push, fourth * push], axis=-1)
    value, error = blocked_jackknife(derived, series)
    names = "binder", "binder_slope", "squared_magnetisation", "structure_factor", "relative_length"
    return CriticalMoments(
        **with_errors(**dict(zip(names, zip(value, error)))), converged=estimate(second).reliable
    )


critical_moments = jax.jit(critical_moments, static_argnames=("length", "components"))
