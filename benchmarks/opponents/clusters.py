"""The clusters of Swendsen and Wang on the square lattice, in numba.

Every site takes the label of the site to its left or above it, two labels that meet are joined with
the smaller one as the root, and one pass in the order of the sites makes all labels roots. Random
words are those of the package, a function of their number, so that both visit the same spins; words
of sites that are no roots are never made.
"""

import numpy as np


def _root(parent, site):  # type: ignore[no-untyped-def]
    while parent[site] != site:
        parent[site] = parent[parent[site]]
        site = parent[site]
    return site


def _word(number):  # type: ignore[no-untyped-def]
    word = number * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


def compiled_sweeps():  # type: ignore[no-untyped-def]
    """A function of the length L, the replicas, the sweeps, the temperature and the number of the
    first random word that returns the means of the energy, of |m| and of m^2, the last over the
    signs of the clusters."""
    from numba import njit

    root, word = njit(inline="always")(_root), njit(inline="always")(_word)

    @njit
    def bonds(spins, right, down, first, second, level):  # type: ignore[no-untyped-def]
        length = len(spins)
        for x in range(length):
            here, below = spins[x], spins[(x + 1) % length]
            one, other = first + np.uint64(x * length), second + np.uint64(x * length)
            for y in range(length):
                drawn = word(one + np.uint64(y)) >> np.uint64(11)
                down[x, y] = (here[y] == below[y]) & (drawn < level)
            for y in range(length - 1):
                drawn = word(other + np.uint64(y)) >> np.uint64(11)
                right[x, y] = (here[y] == here[y + 1]) & (drawn < level)
            drawn = word(other + np.uint64(length - 1)) >> np.uint64(11)
            right[x, length - 1] = (here[length - 1] == here[0]) & (drawn < level)

    @njit
    def join(parent, site, other):  # type: ignore[no-untyped-def]
        a, b = root(parent, site), root(parent, other)
        if a < b:
            parent[b] = a
        else:
            parent[a] = b

    @njit
    def label(right, down, parent):  # type: ignore[no-untyped-def]
        length = len(right)
        for x in range(length):
            for y in range(length):
                site = x * length + y
                above = x > 0 and down[x - 1, y]
                if y > 0 and right[x, y - 1]:
                    parent[site] = parent[site - 1]
                    if above:
                        join(parent, site, site - length)
                elif above:
                    parent[site] = parent[site - length]
                else:
                    parent[site] = site
        last = length - 1
        for k in range(length):
            if right[k, last]:
                join(parent, k * length, k * length + last)
            if down[last, k]:
                join(parent, k, last * length + k)

    @njit
    def turn(spins, parent, sizes, fresh, first):  # type: ignore[no-untyped-def]
        length = len(spins)
        sizes[:] = 0
        for x in range(length):
            for y in range(length):
                site = x * length + y
                mine = parent[parent[site]]
                parent[site] = mine
                if mine == site:
                    up = word(first + np.uint64(site)) < np.uint64(1 << 63)
                    fresh[site] = 1 if up else -1
                sizes[mine] += 1
                spins[x, y] = fresh[mine]

    @njit
    def observed(spins, sizes):  # type: ignore[no-untyped-def]
        length = len(spins)
        bonds, total, squares = 0, 0, 0
        for x in range(length):
            here, below = spins[x], spins[(x + 1) % length]
            for y in range(length - 1):
                bonds += here[y] * (below[y] + here[y + 1])
                total += here[y]
            bonds += here[length - 1] * (below[length - 1] + here[0])
            total += here[length - 1]
        for k in range(len(sizes)):
            squares += np.int64(sizes[k]) * np.int64(sizes[k])
        return bonds, total, squares

    @njit
    def run(length, replicas, sweeps, level, start):  # type: ignore[no-untyped-def]
        n = length * length
        shape = (length, length)
        right, down = np.empty(shape, np.bool_), np.empty(shape, np.bool_)
        parent, sizes, fresh = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int8)
        energy, magnetisation, second = 0.0, 0.0, 0.0
        for replica in range(replicas):
            spins = np.ones(shape, np.int8)
            for sweep in range(sweeps):
                words = start + np.uint64(3 * replicas * n * sweep + replica * n)
                many = np.uint64(replicas * n)
                bonds(spins, right, down, words, words + many, level)
                label(right, down, parent)
                turn(spins, parent, sizes, fresh, words + many + many)
                joined, total, squares = observed(spins, sizes)
                energy -= joined / n
                magnetisation += abs(total) / n
                second += squares / n**2
        return energy, magnetisation, second

    def measured(
        length: int, replicas: int, sweeps: int, temperature: float, start: np.uint64
    ) -> np.ndarray:
        level = np.uint64(np.ceil(-np.expm1(-2 / temperature) * 2.0**53))
        return np.array(run(length, replicas, sweeps, level, start)) / (replicas * sweeps)

    return measured
