"""Theory of the scalar field: the exact solution of a ring by its transfer matrix, and the best
Gaussian approximation in any dimension.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.root import decreasing_root
from orderparam.systems.spins.scalar_field.model import ScalarField

_POINTS = 200  # values of the field on the grid
_CLOSE = 1e-9  # residual of the best Gaussian field
_TAIL = 40.0  # height of the potential above its minimum at the ends of the grid


class FieldMoments(Result):
    """Moments of the field at a site.

    Fields:
        squared_field: <phi^2>.
        fourth_field: <phi^4>.
    """

    squared_field: Float[Array, ""]
    fourth_field: Float[Array, ""]


class GaussianField(Result):
    """The Gaussian field of lowest variational free energy.

    Fields:
        squared_field: <phi^2>.
        fourth_field: 3 <phi^2>^2.
        effective_mass: mass of the Gaussian field.
        residual: residual of the self-consistent equation, divided by the sum of the moduli of its
            terms.
        converged: whether the residual is below 1e-9 and <phi^4> is finite.
    """

    squared_field: Float[Array, ""]
    fourth_field: Float[Array, ""]
    effective_mass: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def _ring(system: ScalarField) -> None:
    if len(system.shape) != 1:
        raise ValueError(
            f"ScalarField.shape = {system.shape}: must have one direction (a ring has a transfer "
            "matrix)"
        )


@theory(check=_ring)
def transfer_matrix(system: ScalarField) -> FieldMoments:
    r"""Moments of the scalar field on a ring, exactly.

    $$ \langle \phi^k \rangle = \frac{\mathrm{Tr}\, \phi^k\, \mathcal T^L}{\mathrm{Tr}\, \mathcal
          T^L}, \qquad
       \mathcal T(a, b) = e^{-(a - b)^2/2 - (V(a) + V(b))/2}, \quad V(a) = \tfrac r2 a^2 + u a^4 $$

    with r = `mass`, u = `coupling` and L sites (`shape`). The field a takes 200 equally spaced
    values.

    Raises:
        ValueError: for more than one direction.

    Accuracy: 1e-12 for u above 1e-6 and |r| below 100 sqrt(u). In this range the step of the
    trapezoidal rule, which is the width of the potential over 100, is smaller than the width 1 of
    the Gaussian factor of a bond.

    Source: derived here, by the transfer matrix of a chain.

    >>> round(float(transfer_matrix(ScalarField(-1.0, 0.2, (8,))).squared_field), 8)
    0.82012527
    """
    mass, coupling = system.mass, system.coupling
    # The grid ends where V(a) - min V = tail; beyond its ends the density is below exp(-40).
    lowest = jnp.where(mass < 0, -(mass**2) / (16 * coupling), 0.0)
    bend = mass / (4 * coupling)
    edge = jnp.sqrt(-bend + jnp.sqrt(bend**2 + (lowest + _TAIL) / coupling))
    field = edge * np.linspace(-1, 1, _POINTS)
    potential = mass / 2 * field**2 + coupling * field**4 - lowest
    matrix = jnp.exp(-((field[:, None] - field) ** 2) / 2 - (potential[:, None] + potential) / 2)
    # Tr T^L is the sum of the L-th powers of the eigenvalues. The density of the field at a site is
    # the sum of the squared eigenvectors, weighted by these powers.
    values, vectors = jnp.linalg.eigh(matrix)
    weights = jnp.abs(values / values[-1]) ** system.shape[0] * jnp.where(
        (values < 0) & (system.shape[0] % 2 == 1), -1, 1
    )
    density = vectors**2 @ (weights / jnp.sum(weights))
    return FieldMoments(squared_field=density @ field**2, fourth_field=density @ field**4)


@theory
def best_gaussian_field(system: ScalarField) -> GaussianField:
    r"""Moments of the Gaussian field of lowest variational free energy (Hartree), in any dimension.

    $$ r_{\mathrm{eff}} = r + 12 u \langle \phi^2 \rangle, \qquad
       \langle \phi^2 \rangle = \frac{1}{N} \sum_k \frac{1}{r_{\mathrm{eff}} + 2 \sum_i (1 - \cos
          k_i)} $$

    with r = `mass`, u = `coupling`, r_eff = `effective_mass` and k over the N momenta of the
    lattice.

    Accuracy: the equation is solved to 1e-9. The Gaussian field itself is an approximation, exact
    to first order in u; it is symmetric, so that it has no ordered phase.

    Source: derived here, by the variational principle of Gibbs.

    >>> round(float(best_gaussian_field(ScalarField(1.0, 0.1, (8, 8))).effective_mass), 8)
    1.27833267
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
    return GaussianField(
        squared_field=squared,
        fourth_field=3 * squared**2,
        effective_mass=effective,
        residual=root.residual,
        converged=converged,
    )
