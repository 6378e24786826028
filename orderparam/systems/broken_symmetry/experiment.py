"""Parallel tempering of the Sherrington-Kirkpatrick model."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.needs import at_least
from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.systems.broken_symmetry.model import SpinGlass

_HOT = 1.4  # the temperature of the hottest copy, at which a sweep forgets the state


class TemperedGlass(Result):
    """Measured equilibrium of the spin glass, averaged over samples of the couplings.

    Fields:
        energy, energy_error: mean energy per spin, including the energy in the field, and its
            standard error over samples.
        overlap_square, overlap_square_error: E <q^2>, with q the overlap of two independent
            replicas of one sample, and its standard error over samples.
        overlap_ratio, overlap_ratio_error: (E <q^2>^2 - (E <q^2>)^2)/(E <q^4> - (E <q^2>)^2). It is
            1/3 where the Ghirlanda-Guerra identities hold and the overlap has a broad distribution.
            The error is the jackknife estimate over samples.
        ground_energy, ground_energy_error: lowest energy per spin that was found in a sample,
            averaged over samples, and its standard error.
        found_twice: fraction of samples in which two independent sets of replicas found the same
            lowest energy.
        identity, identity_error: mean of the coupling energy per spin plus (1 - <q^2>)/(2 T), and
            its standard error over samples. In equilibrium the mean is zero at every number of
            spins.
        converged: whether `identity` is within four standard errors of zero.
    """

    energy: Float[Array, ""]
    energy_error: Float[Array, ""]
    overlap_square: Float[Array, ""]
    overlap_square_error: Float[Array, ""]
    overlap_ratio: Float[Array, ""]
    overlap_ratio_error: Float[Array, ""]
    ground_energy: Float[Array, ""]
    ground_energy_error: Float[Array, ""]
    found_twice: Float[Array, ""]
    identity: Float[Array, ""]
    identity_error: Float[Array, ""]
    converged: Bool[Array, ""]


@experiment(needs={"samples": at_least(3), "sweeps": at_least(4), "copies": at_least(2)})
def tempering(
    system: SpinGlass,
    key: PRNGKeyArray,
    *,
    samples: int = 16,
    sweeps: int = 2000,
    copies: int = 12,
) -> TemperedGlass:
    r"""Equilibrium of the spin glass at the system's temperature, by parallel tempering.

    Replicas run at temperatures that rise geometrically from `temperature` to 1.4, or to 1.3 times
    `temperature` if that is larger. They take heat-bath sweeps; after each sweep neighbouring
    temperatures exchange their states with probability $\min(1, e^{\Delta\beta\, \Delta E})$, where
    $\Delta\beta$ and $\Delta E$ are the differences of their inverse temperatures and energies. For
    every sample of the couplings two independent sets of replicas start from random states. The
    first half of the sweeps is discarded. Integration by parts over the Gaussian couplings gives,
    at every N = `spins`,

    $$ \mathrm{E}\, e_J = -\frac{1}{2T} (1 - \mathrm{E} \langle q^2 \rangle) $$

    for the coupling energy $e_J$ per spin, T = `temperature` and the overlap q of two replicas,
    averaged over couplings (E) and thermally. `identity` is the left-hand side minus the right-hand
    side and tests equilibrium.

    Args:
        samples: number of independent samples of the couplings in one run.
        sweeps: number of sweeps.
        copies: number of temperatures, with one replica of each set at each.

    Raises:
        ValueError: for fewer than 3 samples, 4 sweeps or 2 temperatures.

    Source: Hukushima, Nemoto (1996); Katzgraber, Young (2001) for the test.

    >>> import jax
    >>> found = tempering(SpinGlass(1.0, spins=8), jax.random.key(0), sweeps=200)
    >>> bool(-1 < found.energy < -0.2)
    True
    """
    n, coldest = system.spins, float(system.temperature)
    couplings, beta, run_key = drawn(system, key, samples, copies)
    observed, lowest = temper(couplings, system.field, beta, run_key, sweeps, 2, _of_a_pair)
    energy, (square, fourth) = np.asarray(observed[:2]) / n, np.asarray(observed[2:])
    lowest = np.asarray(lowest) / n
    # energy[0] is the coupling energy e_J per spin, energy[1] includes the energy in the field
    both = energy[0] + (1 - square) / (2 * coldest)
    ground = lowest.min(axis=1)
    same = np.abs(lowest[:, 0] - lowest[:, 1]) < 1e-4 / n
    mean_energy, energy_error = mean_of(energy[1])
    mean_square, square_error = mean_of(square)
    ratio, ratio_error = jackknife(_ratio, square, fourth)
    mean_ground, ground_error = mean_of(ground)
    identity, identity_error = mean_of(both)
    return TemperedGlass(
        energy=jnp.asarray(mean_energy),
        energy_error=jnp.asarray(energy_error),
        overlap_square=jnp.asarray(mean_square),
        overlap_square_error=jnp.asarray(square_error),
        overlap_ratio=jnp.asarray(ratio),
        overlap_ratio_error=jnp.asarray(ratio_error),
        ground_energy=jnp.asarray(mean_ground),
        ground_energy_error=jnp.asarray(ground_error),
        found_twice=jnp.asarray(same.mean()),
        identity=jnp.asarray(identity),
        identity_error=jnp.asarray(identity_error),
        converged=jnp.asarray(abs(identity) <= 4 * identity_error),
    )


def mean_of(values: np.ndarray) -> tuple[float, float]:
    """Mean over samples and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def _ratio(square: np.ndarray, fourth: np.ndarray) -> float:
    """Variance of <q^2> between samples over the total variance of q^2; NaN if q^2 does not vary.

    `square` and `fourth` hold <q^2> and <q^4> of every sample.
    """
    common = square.mean() ** 2
    spread = fourth.mean() - common
    return float((np.mean(square**2) - common) / spread) if spread > 0 else np.nan


def jackknife(statistic: Callable[..., float], *columns: np.ndarray) -> tuple[float, float]:
    """A statistic of columns that have one row for each sample, and its jackknife error.

    The statistic is computed again without each of the samples in turn; the scatter of these values
    gives the error.
    """
    count = len(columns[0])
    left = (np.delete(np.arange(count), sample) for sample in range(count))
    each = np.array([statistic(*(column[rest] for column in columns)) for rest in left])
    return statistic(*columns), float(np.sqrt((count - 1) * np.mean((each - each.mean()) ** 2)))


def drawn(
    system: SpinGlass, key: PRNGKeyArray, samples: int, copies: int
) -> tuple[Float[Array, "sample n n"], Float[Array, "copy"], PRNGKeyArray]:
    """Couplings of every sample, the inverse temperatures of the copies, and the key of the run.

    Copy 0 has the system's temperature; the temperatures rise geometrically.
    """
    n, coldest = system.spins, float(system.temperature)
    temperatures = np.geomspace(coldest, max(_HOT, 1.3 * coldest), copies)
    coupling_key, run_key = jax.random.split(key)
    upper = jnp.triu(jax.random.normal(coupling_key, (samples, n, n)), 1) / np.sqrt(n)
    return upper + jnp.swapaxes(upper, 1, 2), jnp.asarray(1 / temperatures), run_key


def _of_a_pair(
    cold: Float[Array, "n sample set"],
    coupled: Float[Array, "sample set"],
    whole: Float[Array, "sample set"],
) -> Float[Array, "observable sample"]:
    """Coupling energy and total energy, averaged over both sets, and q^2 and q^4 of their overlap
    q.

    `coupled` is the coupling energy and `whole` the energy including that in the field.
    """
    square = jnp.mean(cold[:, :, 0] * cold[:, :, 1], axis=0) ** 2
    return jnp.stack([jnp.mean(coupled, 1), jnp.mean(whole, 1), square, square**2])


@partial(jax.jit, static_argnames=("sweeps", "sets", "observe"))
def temper(
    couplings: Float[Array, "sample n n"],
    field: Float[Array, ""],
    beta: Float[Array, "copy"],
    key: PRNGKeyArray,
    sweeps: int,
    sets: int,
    observe: Callable[[Array, Array, Array], Float[Array, "observable sample"]],
) -> tuple[Float[Array, "observable sample"], Float[Array, "sample set"]]:
    """Parallel tempering of independent sets of replicas. A set has one replica at every
    temperature.

    `observe` gives the observables that are averaged over the second half of the sweeps. Its
    arguments are the spins of the coldest replicas, their coupling energies, and their energies
    including the energy in the field.

    Returns the averages, and the lowest energy that each set found.
    """
    samples, n, _ = couplings.shape
    shape = (samples, sets, beta.size)
    # The chains run in single precision. Rounding errors do not accumulate, because the fields are
    # computed afresh in every sweep.
    rows = jnp.moveaxis(couplings, 1, 0).astype(jnp.float32)  # (n, sample, n)
    beta, h = beta.astype(jnp.float32), jnp.asarray(field, jnp.float32)

    def turn(fields: Array, site: tuple[Array, ...]) -> tuple[Array, Array]:
        number, row, spin, chance = site
        # heat bath: the spin is +1 with probability 1/(1 + exp(-2 beta (field + h)))
        up = jax.nn.sigmoid(2 * beta * (fields[number] + h))
        new = jnp.where(chance < up, 1.0, -1.0).astype(jnp.float32)
        # A spin has no coupling to itself: its own field does not change when it flips.
        change = row.T[:, :, None, None] * (new - spin)[None]
        return fields + change, new

    def sweep(state: tuple, step: tuple[Array, Array]) -> tuple[tuple, None]:
        spins, sums, lowest = state
        key, number = step
        flip_key, swap_key = jax.random.split(key)
        chances = jax.random.uniform(flip_key, (n, *shape), jnp.float32)
        fields = jnp.einsum("isj,jscr->iscr", rows, spins)
        fields, spins = lax.scan(turn, fields, (jnp.arange(n), rows, spins, chances))
        coupled = -jnp.sum(spins * fields, axis=0) / 2
        whole = coupled - h * jnp.sum(spins, axis=0)
        lowest = jnp.minimum(lowest, jnp.min(whole, axis=2))

        # Even and odd sweeps exchange the pairs (0, 1), (2, 3), ... and (1, 2), (3, 4), ... .
        rung = jnp.arange(beta.size)
        partner = jnp.where((rung + number) % 2 == 0, rung + 1, rung - 1)
        partner = jnp.where((partner < 0) | (partner >= beta.size), rung, partner)
        gain = (beta[partner] - beta) * (whole[..., partner] - whole)
        drawn = jnp.log(jax.random.uniform(swap_key, shape, jnp.float32))
        drawn = drawn[..., jnp.minimum(rung, partner)]  # both partners use the same random number
        source = jnp.where(drawn < gain, partner, rung)
        spins = jnp.take_along_axis(spins, source[None], axis=3)
        coupled, whole = (jnp.take_along_axis(x, source, axis=2) for x in (coupled, whole))

        now = observe(spins[..., 0], coupled[..., 0], whole[..., 0])
        kept = jnp.where(number >= sweeps // 2, now.astype(jnp.float64), 0.0)
        return (spins, sums + kept, lowest), None

    start_key, run_key = jax.random.split(key)
    spins = jax.random.rademacher(start_key, (n, *shape), jnp.float32)
    none = jnp.zeros(jax.eval_shape(observe, spins[..., 0], *2 * [jnp.zeros(shape[:2])]).shape)
    initial = spins, none, jnp.full(shape[:2], jnp.inf, jnp.float32)
    steps = jax.random.split(run_key, sweeps), jnp.arange(sweeps)
    (_, sums, lowest), _ = lax.scan(sweep, initial, steps)
    return sums / (sweeps - sweeps // 2), lowest.astype(jnp.float64)
