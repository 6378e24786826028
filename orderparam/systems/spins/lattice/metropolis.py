"""Metropolis updates of 64 replicas at once: every bit of a word is the spin of another replica
(multi-spin coding).

Given the spins of one colour of the checkerboard, the spins of the other colour are independent,
and they are updated together. Sums over neighbours and decisions are logical operations on words;
every replica draws random bits of its own, so that replicas are independent.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Int8, PRNGKeyArray, UInt64

from orderparam.sampling.lattice.random_words import (
    Counter,
    Words,
    binary_digits,
    first_word,
    random_bits,
    random_words,
)
from orderparam.systems.spins.measurement import Series

REPLICAS = 64  # bits of a word

_ONES = np.uint64(2**64 - 1)

# The two colours are stored separately, with half as many columns: site (x, j) of colour c is in
# column 2 j + (sum x + c) % 2.
Half = UInt64[Array, "word *half"]


class State(NamedTuple):
    """Spins of both colours (a bit 1 is a spin up), the counter at which the next random words
    start, and the random decisions of the next sweep."""

    even: Half
    odd: Half
    counter: Counter
    accepted: Words


class Updates(NamedTuple):
    """Metropolis updates of one lattice, all of whose lengths must be even.

    All fields but the first two are static. `tilted` is true if there is a field, and `coins` is
    true if flips that cost no energy are made with probability 1/2. A flip is accepted with
    probability min(1, exp(-dE/T)) for the bonds and, where there is a field, independently with
    min(1, exp(-dE/T)) for the field: detailed balance holds for each factor (Michel, Kapfer, Krauth
    2014).
    """

    temperature: Float[Array, ""]
    field: Float[Array, ""]
    shape: tuple[int, ...]
    replicas: int
    tilted: bool
    coins: bool = False

    @property
    def half(self) -> tuple[int, ...]:
        """The shape of one colour."""
        return (self.replicas // REPLICAS, *self.shape[:-1], self.shape[-1] // 2)

    @property
    def shifted(self) -> np.ndarray:
        """True for the rows whose first site has the second colour."""
        return np.sum(np.indices(self.half[1:])[:-1], axis=0) % 2 == 1

    def begin(self, even: Half, odd: Half, counter: Counter) -> State:
        return State(even, odd, *self._draw(counter))

    def sweep(self, state: State) -> tuple[State, list[Half]]:
        """Update both colours once. The second value is the number of unequal neighbours of the
        spins of the second colour, as binary digits.

        Random bits are drawn one sweep ahead, because the compiler does not vectorise their
        generation in one loop with the shifts of arrays.
        """
        counter, drawn = self._draw(state.counter)
        accepted = state.accepted.reshape(-1, 2, *self.half)
        even = self._update(state.even, self.neighbours(state.odd, self.shifted), accepted[:, 0])
        around = self.neighbours(even, ~self.shifted)
        odd = self._update(state.odd, around, accepted[:, 1])
        return State(even, odd, counter, drawn), added([odd ^ neighbour for neighbour in around])

    def _draw(self, counter: Counter) -> tuple[Counter, Words]:
        """Random decisions for both colours: for the bonds (a word for each parallel neighbour
        beyond half of them), for the field and for the coins.
        """
        size = 2 * int(np.prod(self.half))
        counter, accepted = random_bits(
            counter, len(self.shape) * size, binary_digits(jnp.exp(-4 / self.temperature))
        )
        drawn = [accepted]
        if self.tilted:
            pull = binary_digits(jnp.exp(-2 * jnp.abs(self.field) / self.temperature))
            counter, pulled = random_bits(counter, size, pull)
            drawn.append(pulled)
        if self.coins:
            counter, tossed = random_words(counter, size)
            drawn.append(tossed)
        return counter, jnp.concatenate(drawn)

    def neighbours(self, other: Half, shifted: np.ndarray) -> list[Half]:
        """The spins of the neighbours, which all have the other colour; in `shifted` rows this
        colour has the odd columns.
        """
        rows = [
            jnp.roll(other, step, axis) for axis in range(1, len(self.shape)) for step in (1, -1)
        ]
        return [*rows, other, jnp.where(shifted, jnp.roll(other, -1, -1), jnp.roll(other, 1, -1))]

    def _update(self, spins: Half, around: list[Half], accepted: Words) -> Half:
        directions = len(self.shape)
        parallel = added([~(spins ^ other) for other in around])
        flip = jnp.full_like(spins, _ONES)
        # each parallel neighbour beyond half of the neighbours costs an energy of 4
        for excess in range(1, directions + 1):
            flip = flip & (accepted[excess - 1] | ~at_least(parallel, directions + excess))
        if self.tilted:
            # ones where the spin is against the field
            against = spins ^ jnp.where(self.field > 0, _ONES, np.uint64(0))
            flip = flip & (accepted[directions] | against)
        if self.coins:
            tie = at_least(parallel, directions) & ~at_least(parallel, directions + 1)
            flip = flip & (accepted[-1] | ~tie)
        return spins ^ flip


@partial(jax.jit, static_argnames=("shape", "replicas", "warmup", "sweeps", "tilted", "every"))
def metropolis_series(
    temperature: Float[Array, ""],
    field: Float[Array, ""],
    key: PRNGKeyArray,
    shape: tuple[int, ...],
    replicas: int,
    warmup: int,
    sweeps: int,
    tilted: bool,
    every: int = 1,
) -> Series:
    """Energy and moments of independent replicas that start with all spins up, measured once in
    `every` sweeps.
    """
    updates, n, directions = (
        Updates(temperature, field, shape, replicas, tilted),
        int(np.prod(shape)),
        len(shape),
    )

    def unseen(_: int, state: State) -> State:
        return updates.sweep(state)[0]

    def look(state: State, _: None) -> tuple[State, Array]:
        state, unequal = updates.sweep(jax.lax.fori_loop(0, every - 1, unseen, state))
        one, two, *digits = replica_totals(jnp.stack([state.even, state.odd, *unequal]))
        return state, jnp.stack([sum(2**k * digit for k, digit in enumerate(digits)), one + two])

    up = jnp.full(updates.half, _ONES)
    begin = jax.lax.fori_loop(0, warmup, unseen, updates.begin(up, up, first_word(key)))
    _, kept = jax.lax.scan(look, begin, length=sweeps // every)
    broken, ones = jnp.moveaxis(kept, (0, 1, 2), (2, 0, 1))
    # every bond has one end of either colour
    bonds, m = directions - 2 * broken / n, 2 * ones / n - 1
    return Series(-bonds - field * m, m, jnp.abs(m), m**2, m**4)


@partial(jax.jit, static_argnames=("shape",))
def quenched_series(
    temperature: Float[Array, ""],
    key: PRNGKeyArray,
    shape: tuple[int, ...],
    times: Int[Array, "time"],
) -> tuple[Float[Array, "time replica"], Int8[Array, "time *shape"]]:
    """Energies per spin of 64 replicas after the given numbers of sweeps from random spins, and
    the spins of the first replica.
    """
    updates = Updates(temperature, jnp.zeros(()), shape, REPLICAS, tilted=False, coins=True)
    counter, words = random_words(first_word(key), int(np.prod(shape)))
    even, odd = words.reshape(2, *updates.half)

    def wait(state: State, sweeps: Array) -> tuple[State, tuple[Array, Array]]:
        state = jax.lax.fori_loop(0, sweeps, lambda _, state: updates.sweep(state)[0], state)
        around = updates.neighbours(state.even, ~updates.shifted)
        digits = replica_totals(jnp.stack(added([state.odd ^ neighbour for neighbour in around])))
        broken = sum(2**k * digit for k, digit in enumerate(digits))
        return state, (
            2 * broken / np.prod(shape) - len(shape),
            jnp.stack([state.even[0], state.odd[0]]) & 1,
        )

    gaps = jnp.diff(times, prepend=0)
    _, (energies, halves) = jax.lax.scan(wait, updates.begin(even, odd, counter), gaps)
    own, other = 2 * jnp.moveaxis(halves, 1, 0).astype(jnp.int8) - 1
    first, second = jnp.where(updates.shifted, other, own), jnp.where(updates.shifted, own, other)
    return energies, jnp.stack([first, second], axis=-1).reshape(len(times), *shape)


def added(planes: list[Half]) -> list[Half]:
    """The number of words in which each bit is 1, as binary digits, the lowest digit first."""
    digits: list[Half] = []
    for count, carry in enumerate(planes, start=1):
        for k, digit in enumerate(digits):
            digits[k], carry = digit ^ carry, digit & carry
        if count.bit_length() > len(digits):
            digits.append(carry)
    return digits


def at_least(digits: list[Half], threshold: int) -> Half:
    """Ones where the number with these binary digits is at least the threshold."""
    found = jnp.full_like(digits[0], _ONES)
    for k, digit in enumerate(digits):
        found = digit & found if threshold >> k & 1 else digit | found
    return found


def replica_totals(words: UInt64[Array, "kind word *half"]) -> Int[Array, "kind replica"]:
    """Number of sites of each replica whose bit is one. Words are added in pairs as long as this is
    cheaper than unpacking their bits.
    """
    rows = words.reshape(*words.shape[:2], -1)
    rounds = min(4, rows.shape[-1].bit_length() - 1)
    digits = [jnp.pad(rows, ((0, 0), (0, 0), (0, -rows.shape[-1] % 2**rounds)))]
    for _ in range(rounds):
        middle = digits[0].shape[-1] // 2
        carry = jnp.zeros_like(digits[0][..., :middle])
        for k, digit in enumerate(digits):
            one, two = digit[..., :middle], digit[..., middle:]
            digits[k], carry = one ^ two ^ carry, (one & two) | (carry & (one | two))
        digits.append(carry)
    places = jnp.arange(REPLICAS, dtype=jnp.uint64)
    columns = [
        jnp.sum((digit[..., None] >> places) & 1, axis=2, dtype=jnp.int32) for digit in digits
    ]
    return sum(2**k * column for k, column in enumerate(columns)).reshape(len(words), -1)
