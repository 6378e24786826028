"""Overlaps of three replicas of a spin glass: ultrametric below the transition, independent above
it.

Three replicas have three overlaps. If the states are arranged on a tree, the two smaller overlaps
are equal (Mézard, Parisi, Sourlas, Toulouse, Virasoro 1984).
"""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.needs import at_least, equal
from orderparam.core.result import Result
from orderparam.core.verb import experiment, theory
from orderparam.gaussian.rules import panel_rule
from orderparam.systems.broken_symmetry.experiment import drawn, jackknife, mean_of, temper
from orderparam.systems.broken_symmetry.model import SpinGlass


class OverlapTriples(Result):
    """Overlaps of three replicas in the limit of many spins.

    Fields:
        defect: E(q_mid - q_min)/E(q_max - q_min) of the ordered overlaps q_min <= q_mid <= q_max; 0
            if the overlaps are ultrametric.
        triple_ratio: (E q_12^2 q_13^2 - (E q^2)^2)/(E q^4 - (E q^2)^2).
    """

    defect: Float[Array, ""]
    triple_ratio: Float[Array, ""]


class MeasuredTriples(Result):
    """Measured overlaps of three replicas, averaged over samples of the couplings.

    Fields:
        defect, defect_error: E(q_mid - q_min)/E(q_max - q_min) of the ordered overlaps, and its
            jackknife error over samples.
        independent_defect, independent_defect_error: the defect of the moduli of three overlaps
            that come from different samples of the couplings, and its error. These overlaps have
            the same distribution and are independent.
        triple_ratio, triple_ratio_error: (E q_12^2 q_13^2 - (E q^2)^2)/(E q^4 - (E q^2)^2), and its
            jackknife error.
        converged: whether the mean of the coupling energy per spin plus (1 - <q^2>)/(2 T) is within
            four standard errors of zero, its value in equilibrium.
    """

    defect: Float[Array, ""]
    defect_error: Float[Array, ""]
    independent_defect: Float[Array, ""]
    independent_defect_error: Float[Array, ""]
    triple_ratio: Float[Array, ""]
    triple_ratio_error: Float[Array, ""]
    converged: Bool[Array, ""]


@theory(needs={"field": equal(0.0, why="reversing all spins is a symmetry only without a field")})
def overlap_triples(system: SpinGlass) -> OverlapTriples:
    r"""Overlaps of three replicas of the spin glass without a field, for many spins.

    Below T = 1 the overlaps are ultrametric, and the identities of Ghirlanda and Guerra hold:

    $$ q_\mathrm{mid} = q_\mathrm{min}, \qquad
       \mathrm{E} \langle q_{12}^2 q_{13}^2 \rangle = \frac12 \mathrm{E} \langle q^4 \rangle
       + \frac12 (\mathrm{E} \langle q^2 \rangle)^2 $$

    so that `defect` is 0 and `triple_ratio` is 1/2. Above T = 1 the overlaps are independent
    Gaussian numbers. `triple_ratio` is then 0, and `defect` is the mean of the second largest of
    their three moduli divided by the mean of the largest modulus.

    Without a field all spins of a replica may be reversed. Replicas are reversed such that the two
    overlaps of largest modulus are positive. The overlap of smallest modulus then has the sign of
    $q_{12} q_{13} q_{23}$, which reversals do not change.

    Accuracy: 1e-12.

    Source: Ghirlanda, Guerra (1998); the defect is defined here.

    >>> float(overlap_triples(SpinGlass(0.5)).triple_ratio)
    0.5
    """
    x, weights = panel_rule(np.linspace(0.0, 10.0, 11), 20)
    below = erf(x / np.sqrt(2))  # probability that a modulus is below x
    # The mean of a positive variable is the integral of the probability to exceed x. The smallest
    # overlap has either sign with equal probability, so that its mean is zero in both gaps.
    largest = jnp.sum(weights * (1 - below**3))
    second = jnp.sum(weights * (1 - 3 * below**2 + 2 * below**3))
    glass = system.temperature < 1
    return OverlapTriples(
        defect=jnp.where(glass, 0.0, second / largest),
        triple_ratio=jnp.where(glass, 0.5, 0.0),
    )


@experiment(
    needs={
        "samples": at_least(3),
        "sweeps": at_least(4),
        "copies": at_least(2),
        "field": equal(0.0, why="reversing all spins is a symmetry only without a field"),
    }
)
def tempered_triples(
    system: SpinGlass,
    key: PRNGKeyArray,
    *,
    samples: int = 16,
    sweeps: int = 2000,
    copies: int = 12,
) -> MeasuredTriples:
    r"""Overlaps of three replicas at the system's temperature, by parallel tempering.

    Three independent sets of replicas are run on every sample of the couplings, as in `tempering`.
    After each sweep of the second half the overlaps of the three coldest replicas,

    $$ q_{ab} = \frac1N \sum_i s_i^a s_i^b $$

    are ordered as in `overlap_triples`.

    Args:
        samples: number of independent samples of the couplings in one run.
        sweeps: number of sweeps.
        copies: number of temperatures, with one replica of each set at each.

    Raises:
        ValueError: for a field, and for fewer than 3 samples, 4 sweeps or 2 temperatures.

    Source: Hukushima, Nemoto (1996) for the algorithm; the defect is defined here.

    >>> import jax
    >>> found = tempered_triples(SpinGlass(1.0, spins=8), jax.random.key(0), sweeps=200)
    >>> bool(0 < found.defect < 1)
    True
    """
    couplings, beta, run_key = drawn(system, key, samples, copies)
    observed, _ = temper(couplings, system.field, beta, run_key, sweeps, 3, _of_three)
    energy, square, fourth, common, *gaps = np.asarray(observed)
    identity, identity_error = mean_of(
        energy / system.spins + (1 - square) / (2 * float(system.temperature))
    )
    defect, defect_error = jackknife(_share, *gaps[:2])
    independent, independent_error = jackknife(_share, *gaps[2:])
    ratio, ratio_error = jackknife(_triple_ratio, square, fourth, common)
    return MeasuredTriples(
        defect=jnp.asarray(defect),
        defect_error=jnp.asarray(defect_error),
        independent_defect=jnp.asarray(independent),
        independent_defect_error=jnp.asarray(independent_error),
        triple_ratio=jnp.asarray(ratio),
        triple_ratio_error=jnp.asarray(ratio_error),
        converged=jnp.asarray(abs(identity) <= 4 * identity_error),
    )


def _share(part: np.ndarray, whole: np.ndarray) -> float:
    return float(part.mean() / whole.mean())


def _triple_ratio(square: np.ndarray, fourth: np.ndarray, common: np.ndarray) -> float:
    """Ratio (E q_12^2 q_13^2 - (E q^2)^2)/(E q^4 - (E q^2)^2) from samples of q^2, q^4 and q_12^2
    q_13^2; NaN if q^2 does not vary."""
    independent = square.mean() ** 2
    spread = fourth.mean() - independent
    return float((common.mean() - independent) / spread) if spread > 0 else np.nan


def _of_three(
    cold: Float[Array, "n sample set"],
    coupled: Float[Array, "sample set"],
    whole: Float[Array, "sample set"],
) -> Float[Array, "observable sample"]:
    """Observables of three replicas: coupling energy, <q^2>, <q^4>, <q_12^2 q_13^2>, and the gaps
    of their ordered overlaps; then the gaps of the moduli of three overlaps of different
    samples."""
    a, b, c = jnp.moveaxis(cold, 2, 0)
    overlaps = jnp.stack([jnp.mean(x * y, axis=0) for x, y in ((a, b), (a, c), (b, c))])
    # The three overlaps are shifted by 0, 1 and 2 samples, so that they come from three different
    # samples. Only their moduli are used: on a tree the product of three overlaps is never
    # negative, and a sign alone shall not tell independent overlaps from a tree.
    mixed = jnp.stack([jnp.roll(abs(one), shift, axis=0) for shift, one in enumerate(overlaps)])
    squares = overlaps**2
    common = jnp.mean(squares * jnp.roll(squares, 1, axis=0), axis=0)
    moments = [jnp.mean(squares, axis=0), jnp.mean(squares**2, axis=0), common]
    return jnp.stack([jnp.mean(coupled, 1), *moments, *_gaps(overlaps), *_gaps(mixed)])


def _gaps(
    overlaps: Float[Array, "pair sample"],
) -> tuple[Float[Array, "sample"], Float[Array, "sample"]]:
    """The gaps q_mid - q_min and q_max - q_min; q_min has the sign of the product of all three."""
    moduli = jnp.sort(jnp.abs(overlaps), axis=0)
    least = moduli[0] * jnp.sign(jnp.prod(overlaps, axis=0))
    return moduli[1] - least, moduli[2] - least
