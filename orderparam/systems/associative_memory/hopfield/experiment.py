"""Simulations of Hopfield networks at any temperature. Spins are updated one after another or all
at once.

The matrix of couplings is never formed. With the overlaps M^mu = sum_i xi_i^mu s_i of all P
patterns the field of spin i is (sum_mu xi_i^mu M^mu - P s_i)/N; the second term removes the
coupling of the spin to itself. A spin that flips to the new value s_i changes M by 2 xi_i s_i. Each
entry of a pattern takes one byte, so that all patterns take load N^2 bytes.
"""

from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int8, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.systems.associative_memory.hopfield.model import Hopfield

RECALLED = 0.9  # overlap from which on a pattern counts as recalled
# The number of patterns is padded with empty ones to a multiple of this, so that similar loads
# share one compiled program.
_BLOCK = 64


class Recall(Result):
    """Recall in independent networks.

    At T = 0 the numbers are those of the last state; at T > 0 they are averages over the second
    half of the sweeps. Errors are standard errors from the scatter over networks. The error of the
    overlap is at least the change of the average that one reversed spin in one of the averaged
    states would cause.

    Fields:
        overlap, overlap_error: overlap (1/N) sum xi s with the first pattern, and its error.
        energy, energy_error: energy per spin, of H without the diagonal.
        success, success_error: fraction of the networks whose overlap is at least 0.9.
        converged: whether all networks reached a fixed point at T = 0; always true at T > 0.
    """

    overlap: Float[Array, ""]
    overlap_error: Float[Array, ""]
    energy: Float[Array, ""]
    energy_error: Float[Array, ""]
    success: Float[Array, ""]
    success_error: Float[Array, ""]
    converged: Bool[Array, ""]


@experiment
def recall(
    system: Hopfield,
    key: PRNGKeyArray,
    *,
    update: Literal["asynchronous", "parallel"] = "asynchronous",
    networks: int = 8,
    sweeps: int = 100,
) -> Recall:
    r"""Recall of one pattern in independent Hopfield networks, by heat-bath dynamics.

    A spin is drawn from its conditional law,

    $$ P(s_i = +1) = \frac{1}{1 + e^{-2 h_i/T}}, \qquad h_i = \sum_{j \ne i} J_{ij} s_j $$

    with T = `temperature`; at T = 0 it takes the sign of its field. Each network has its own random
    patterns and starts in a random state of overlap `start` with the first pattern. The number of
    patterns is `load` * `spins`, rounded and at least 1.

    Args:
        update: "asynchronous" updates one site after the other, in a fixed order (the patterns are
            random, so that no order differs from a random one); "parallel" updates all sites at
            once, and at T = 0 the run may end in a cycle of two states.
        networks: number of independent networks in one run.
        sweeps: number of updates of every spin; at T = 0 the run ends earlier if all spins are at
            rest.

    Cost: `load` N^2 operations and as many bytes for one sweep of one network.

    Source: Amit, Gutfreund, Sompolinsky (1985), for the model and its states.

    >>> import jax
    >>> found = recall(Hopfield(0.05, spins=200), jax.random.key(0), networks=4)
    >>> bool(found.overlap > 0.9), bool(found.converged)
    (True, True)
    """
    n = system.size("spins")
    patterns = max(1, round(float(system.load) * n))
    held = _BLOCK * -(-patterns // _BLOCK)
    return _recall(
        system.temperature,
        system.start,
        jnp.float64(patterns),
        key,
        n,
        held,
        update == "parallel",
        networks,
        sweeps,
    )


@partial(jax.jit, static_argnames=("n", "held", "parallel", "networks", "sweeps"))
def _recall(
    temperature: Float[Array, ""],
    start: Float[Array, ""],
    patterns: Float[Array, ""],
    key: PRNGKeyArray,
    n: int,
    held: int,
    parallel: bool,
    networks: int,
    sweeps: int,
) -> Recall:
    for_patterns, for_start, for_sweeps = jax.random.split(key, 3)
    eight = jax.random.bits(for_patterns, (n, networks, held // 8, 1), jnp.uint8)
    bits = ((eight >> jnp.arange(8, dtype=jnp.uint8)) & 1).reshape(n, networks, held)
    stored: Int8[Array, "site network pattern"] = jnp.where(
        jnp.arange(held) < patterns, 2 * bits.astype(jnp.int8) - 1, 0
    )
    rank = jnp.argsort(jax.random.uniform(for_start, (n, networks)), axis=0)
    first = stored[:, :, 0].astype(jnp.float32)
    spins = jnp.where(rank < jnp.round((1 - start) / 2 * n), -first, first)
    warmup, diagonal = sweeps // 2, patterns.astype(jnp.float32)

    def thermal(key: PRNGKeyArray) -> Float[Array, "site network"]:
        """Random threshold of each spin: the new spin is +1 if its field exceeds the threshold.

        A logistic threshold of scale T/2 gives the heat bath; at T = 0 the threshold is 0.
        """
        return (temperature / 2).astype(jnp.float32) * jax.random.logistic(
            key, (n, networks), jnp.float32
        )

    def site(total: Array, row: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        entries, spin, threshold = row
        entries = entries.astype(jnp.float32)
        # N times the local field (xi_i . M - P s_i)/N, without the spin's coupling to itself
        field = jnp.einsum("rp,rp->r", entries, total) - diagonal * spin
        new = aligned(field / n - threshold, spin)
        return total + entries * (new - spin)[:, None], new

    def sweep(state: tuple) -> tuple:
        spins, total, count, _, sums = state
        threshold = thermal(jax.random.fold_in(for_sweeps, count))
        if parallel:
            new = aligned((fields(stored, total) - diagonal * spins) / n - threshold, spins)
            total = totals(stored, new)
        else:
            total, new = jax.lax.scan(site, total, (stored, spins, threshold))
        turned = jnp.any(new != spins)
        sums = jnp.where(count >= warmup, sums + _observed(total, n, patterns), sums)
        return new, total, count + 1, turned, sums

    def unfinished(state: tuple) -> Bool[Array, ""]:
        return (state[2] < sweeps) & (state[3] | (temperature > 0))

    begin = (
        spins,
        totals(stored, spins),
        jnp.asarray(0),
        jnp.asarray(True),
        jnp.zeros((2, networks)),
    )
    _, total, count, turned, sums = jax.lax.while_loop(unfinished, sweep, begin)
    last = _observed(total, n, patterns)
    averaged = (temperature > 0) & (count > warmup)
    counted = jnp.where(averaged, count - warmup, 1)  # sweeps
    overlap, energy = jnp.where(averaged, sums / counted, last)
    success = (overlap >= RECALLED).astype(float)
    return Recall(
        overlap=jnp.mean(overlap),
        # Where no network had a wrong spin the scatter is zero. The error is therefore at least the
        # effect of one reversed spin among all the counted ones.
        overlap_error=jnp.maximum(_error(overlap), 2 / (n * networks * counted)),
        energy=jnp.mean(energy),
        energy_error=_error(energy),
        success=jnp.mean(success),
        success_error=_error(success),
        converged=~turned | (temperature > 0),
    )


def aligned(field: Array, spin: Array) -> Array:
    """Sign of the field; a spin whose field is zero keeps its value."""
    return jnp.where(field == 0, spin, jnp.sign(field))


def totals(
    stored: Int8[Array, "site network pattern"], spins: Float[Array, "site network"]
) -> Float[Array, "network pattern"]:
    """Overlaps sum_i xi_i s_i of all patterns with the state of each network."""

    def add(total: Array, row: tuple[Array, Array]) -> tuple[Array, None]:
        entries, spin = row
        return total + entries.astype(jnp.float32) * spin[:, None], None

    # Sites are added one by one: all patterns as floats would take four times their memory.
    none = jnp.zeros(stored.shape[1:], jnp.float32)
    return jax.lax.scan(add, none, (stored, spins))[0]


def fields(
    stored: Int8[Array, "site network pattern"], total: Float[Array, "network pattern"]
) -> Float[Array, "site network"]:
    """N times the local fields, sum_mu xi_i^mu M^mu, including each spin's coupling to itself."""
    return jax.lax.map(
        lambda entries: jnp.einsum("rp,rp->r", entries.astype(jnp.float32), total), stored
    )


def _observed(
    total: Float[Array, "network pattern"], n: int, patterns: Float[Array, ""]
) -> Float[Array, "observable network"]:
    """Overlap m_1 with the first pattern, and energy per spin -(1/2) sum_mu m_mu^2 + P/(2N).

    The term P/(2N) removes the diagonal of the couplings from the energy.
    """
    overlaps = total.astype(float) / n
    return jnp.stack([overlaps[:, 0], (patterns / n - jnp.sum(overlaps**2, axis=1)) / 2])


def _error(values: Float[Array, "network"]) -> Float[Array, ""]:
    return (
        jnp.std(values, ddof=1) / jnp.sqrt(values.size) if values.size > 1 else jnp.asarray(jnp.nan)
    )
