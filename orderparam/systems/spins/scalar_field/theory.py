"""The scalar field: exactly on a ring, by its transfer matrix; in any dimension by the best
Gaussian field.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.root import decreasing_root
from orderparam.systems.spins.scalar_field.model import ScalarField

_POINTS = 200  # of the field
_CLOSE = 1e-9  # residual of the best Gaussian field
_TAIL = 40.0  # the potential at the ends of the grid above its minimum


class FieldMoments(Result):
    """squared_field <phi^2> and fourth_field <phi^4> at a site."""

    squared_field: Float[Array, ""]
    fourth_field: Float[Array, ""]


class GaussianField(Result):
    """squared_field <phi^2>, fourth_field 3 <phi^2>^2, and effective_mass, the mass of the Gaussian
    field.

    residual, converged: of the self-consistent equation, as a share of the sum of its terms, below
    1e-9; not where <phi^4> is beyond the largest number.
    """

    squared_field: Float[Array, ""]
    fourth_field: Float[Array, ""]
    effective_mass: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def _ring(system: ScalarField) -> None:
    if len(system.shape) != 1:
        raise ValueError(
            f"ScalarField.shape = {system.shape}: must have one direction (a ring has a transfer matrix)"
        )


@theory(check=_ring)
def transfer_matrix(system: ScalarField) -> FieldMoments:
    """A ring of L sites: traces of powers of exp(-(a - b)^2/2 - (V(a) + V(b))/2), V = mass a^2/2 +
    u a^4, at equally spaced a.

    The trapezoidal rule is exact to rounding (1e-12) as long as its step, the width of the
    potential over 100, is below the width 1 of the bond: for u above 1e-6 and |mass| below 100
    times sqrt(u).
    """
    mass, coupling = system.mass, system.coupling
    # V(a) - min V = tail at the last point
    lowest = jnp.where(mass < 0, -(mass**2) / (16 * coupling), 0.0)
    bend = mass / (4 * coupling)
    edge = jnp.sqrt(-bend + jnp.sqrt(bend**2 + (lowest + _TAIL) / coupling))
    field = edge * np.linspace(-1, 1, _POINTS)
    potential = mass / 2 * field**2 + coupling * field**4 - lowest
    matrix = jnp.exp(-((field[:, None] - field) ** 2) / 2 - (potential[:, None] + potential) / 2)
    values, vectors = jnp.linalg.eigh(matrix)
    weights = jnp.abs(values / values[-1]) ** system.shape[0] * jnp.where(
        (values < 0) & (system.shape[0] % 2 == 1), -1, 1
    )
    density = vectors**2 @ (weights / jnp.sum(weights))
    return FieldMoments(density @ field**2, density @ field**4)


@theory
def best_gaussian_field(system: ScalarField) -> GaussianField:
    """The Gaussian field of the lowest variational free energy: effective_mass = mass + 12 u
    <phi^2>, <phi^2> the mean of 1/(effective_mass + 2 sum (1 - cos k)) over momenta (Hartree). An
    approximation, exact to first order in u, and symmetric.
    """
    momenta = [2 - 2 * np.cos(2 * np.pi * np.arange(length) / length) for length in system.shape]
    kinetic = np.sum(np.stack(np.meshgrid(*momenta, indexing="ij")), axis=0).ravel()

    def equation(log_mass: Array, args: tuple[Array, Array]) -> Array:
        mass, coupling = args
        effective = jnp.exp(log_mass)
        # 1/x through the logarithm: its derivative overflows at masses below 1e-154.
        pull = 12 * coupling * jnp.mean(jnp.exp(-jnp.log(effective + kinetic)))
        return (mass + pull - effective) / (jnp.abs(mass) + pull + effective)

    mass, coupling = system.mass, system.coupling
    size = jnp.abs(mass) + jnp.sqrt(12 * coupling) + 1e-300
    low = jnp.log(coupling / (size * system.sites * (1 + size)))
    root = decreasing_root(equation, low, jnp.log(4 * size), (mass, coupling))
    effective = jnp.exp(root.value)
    squared = jnp.mean(1 / (effective + kinetic))
    converged = root.converged & (root.residual < _CLOSE) & jnp.isfinite(squared**2)
    return GaussianField(squared, 3 * squared**2, effective, root.residual, converged)
