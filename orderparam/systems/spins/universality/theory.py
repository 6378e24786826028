"""Universal numbers of the critical Ising model on a large square torus."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.rules import unit_rule
from orderparam.systems.spins.lattice.conformal import torus_correlator
from orderparam.systems.spins.scalar_field.model import ScalarField
from orderparam.systems.spins.universality.model import PottsLattice

_BINDER = 0.61069014  # Salas, Sokal 2000, by numerical integration of the four-point function
_NODES = 48


class IsingUniversality(Result):
    """Numbers that all models of the Ising class share at the critical point of a large square
    torus, whatever their Hamiltonian.

    Fields:
        binder: Binder's ratio.
        relative_length: xi/L, with xi the second-moment correlation length.
        magnetisation_exponent: exponent -eta of <m^2> against L.
        structure_exponent: exponent 2 - eta of S(2 pi/L) against L.
        slope_exponent: exponent 1/nu of the derivative of Binder's ratio against L.
        valid: whether the model belongs to the class: two states, or a scalar field.
    """

    binder: Float[Array, ""]
    relative_length: Float[Array, ""]
    magnetisation_exponent: Float[Array, ""]
    structure_exponent: Float[Array, ""]
    slope_exponent: Float[Array, ""]
    valid: Bool[Array, ""]


def _square(system: PottsLattice | ScalarField) -> None:
    if isinstance(system, ScalarField):
        system.check_square()


@theory(check=_square)
def ising_universality(system: PottsLattice | ScalarField) -> IsingUniversality:
    r"""Universal numbers of the Ising class on a large square torus at the critical point.

    The correlation length follows from the correlation G of the critical torus of length 1, which
    conformal invariance gives:

    $$ \frac{\xi}{L} = \frac{1}{2\pi} \sqrt{\frac{\int G}{\int G \cos 2\pi x} - 1} , \qquad
       \eta = \frac14 , \quad \nu = 1 . $$

    The numbers do not depend on the couplings; those of the system are not used.

    Raises:
        ValueError: for a field on another lattice than a square.

    Accuracy: 1e-9 for xi/L, 1e-8 for Binder's ratio. A lattice of length L differs by about
    L^-1.75 to L^-2.

    Source: Onsager (1944) and Di Francesco, Saleur, Zuber (1987); Salas, Sokal (2000) for Binder's
    ratio, which is their number.

    >>> found = ising_universality(PottsLattice(0.88, 64))
    >>> round(float(found.relative_length), 7), round(float(found.binder), 5)
    (0.9050488, 0.61069)
    """
    member = isinstance(system, ScalarField) or system.states == 2
    return IsingUniversality(
        binder=jnp.asarray(_BINDER),
        relative_length=jnp.asarray(relative_length()),
        magnetisation_exponent=jnp.asarray(-0.25),
        structure_exponent=jnp.asarray(1.75),
        slope_exponent=jnp.asarray(1.0),
        valid=jnp.asarray(member),
    )


def relative_length() -> float:
    """xi/L of the critical square torus.

    An eighth of the torus is integrated in the coordinates x = u^4/2, y = x t, in which the
    singularity r^(-1/4) is smooth.
    """
    t, weight = unit_rule(_NODES)
    u = t[:, None]
    x = u**4 / 2
    y = x * t
    area = weight[:, None] * weight * 2 * u**3 * x
    correlation = area * torus_correlator(x + 1j * y)
    wave = (np.cos(2 * np.pi * x) + np.cos(2 * np.pi * y)) / 2
    return float(np.sqrt(np.sum(correlation) / np.sum(correlation * wave) - 1) / (2 * np.pi))
