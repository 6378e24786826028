"""The spin glass: derivatives of its theories, tempering against enumeration, and bad input."""

import itertools

import jax
import numpy as np
import pytest

from orderparam.systems.broken_symmetry import (
    SpinGlass,
    equilibrium,
    ground_state,
    overlap_triples,
    tempered_triples,
    tempering,
)
from orderparam.systems.broken_symmetry.experiment import drawn


def test_derivatives_of_the_free_energy_are_entropy_and_magnetisation():
    def free(temperature, field):
        return equilibrium(SpinGlass(temperature, field), steps=1).free_energy

    slope = jax.grad(free, (0, 1))(0.5, 0.2)
    found = equilibrium(SpinGlass(0.5, 0.2), steps=1)
    np.testing.assert_allclose(-slope[0], found.entropy, rtol=1e-6)
    change = (free(0.5, 0.201) - free(0.5, 0.199)) / 0.002
    np.testing.assert_allclose(slope[1], change, rtol=1e-5)


def test_the_ground_state_in_a_field_has_its_magnetisation():
    def energy(field):
        return ground_state(SpinGlass(field=field), steps=1).ground_energy

    slope = jax.grad(energy)(0.3)
    np.testing.assert_allclose(slope, (energy(0.301) - energy(0.299)) / 0.002, rtol=1e-5)
    # spins follow a strong field
    np.testing.assert_allclose(jax.grad(energy)(5.0), -1, atol=1e-3)


def test_tempering_meets_what_enumeration_says():
    """Energy, <q^2> and ground states of the very couplings that the run draws."""
    n, temperature, field, samples = 8, 0.6, 0.3, 12
    key = jax.random.key(3)
    found = tempering(SpinGlass(temperature, field, n), key, samples=samples, sweeps=4000, copies=6)
    drawn = jax.random.normal(jax.random.split(key)[0], (samples, n, n))
    upper = np.triu(np.asarray(drawn), 1) / np.sqrt(n)
    spins = np.array(list(itertools.product((-1, 1), repeat=n)))
    energies, squares, grounds = [], [], []
    for couplings in upper:
        level = -np.einsum("ai,ij,aj->a", spins, couplings, spins) - field * spins.sum(1)
        weight = np.exp(-(level - level.min()) / temperature)
        weight /= weight.sum()
        pairs = np.einsum("a,ai,aj->ij", weight, spins, spins)
        energies.append(weight @ level / n)
        squares.append(np.mean(pairs**2))
        grounds.append(level.min() / n)
    # the scatter of the chains is some thousandths; that of the samples cancels
    np.testing.assert_allclose(found.energy, np.mean(energies), atol=0.006)
    np.testing.assert_allclose(found.overlap_square, np.mean(squares), atol=0.012)
    np.testing.assert_allclose(found.ground_energy, np.mean(grounds), atol=1e-6)
    assert found.found_twice == 1


def test_the_identity_of_equilibrium_fails_for_chains_that_are_too_short():
    system = SpinGlass(0.15, spins=48)
    short = tempering(system, jax.random.key(0), samples=64, sweeps=4, copies=4)
    assert not short.converged
    assert short.identity > 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: ground_state(SpinGlass(), steps=33),
        lambda: equilibrium(SpinGlass(), steps=7),
        lambda: tempering(SpinGlass(), jax.random.key(0), samples=1),
        lambda: SpinGlass(temperature=0.0),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(ValueError, match=r"must be|temperature"):
        call()


def test_triples_of_replicas_meet_what_enumeration_says():
    """Gaps and moments of all triples of states, of the very couplings that the run draws."""
    n, temperature, samples = 6, 0.7, 6
    key = jax.random.key(5)
    system = SpinGlass(temperature, spins=n)
    found = tempered_triples(system, key, samples=samples, sweeps=8000, copies=6)
    couplings = np.asarray(drawn(system, key, samples, 6)[0])
    spins = np.array(list(itertools.product((-1, 1), repeat=n)))
    q = spins @ spins.T / n
    triple = np.stack(np.broadcast_arrays(q[:, :, None], q[:, None, :], q[None, :, :]))
    moduli = np.sort(np.abs(triple), axis=0)
    least = moduli[0] * np.sign(triple.prod(axis=0))
    sums, laws = np.zeros(5), []
    for matrix in couplings:
        energy = -np.einsum("ai,ij,aj->a", spins, matrix, spins) / 2
        law = np.exp(-(energy - energy.min()) / temperature)
        law /= law.sum()
        laws.append(np.array([law @ (q == value) @ law for value in np.unique(q)]))
        sums += [
            np.einsum("abc,a,b,c", one, law, law, law)
            for one in (
                moduli[1] - least,
                moduli[2] - least,
                triple[0] ** 2 * triple[1] ** 2,
                triple[0] ** 2,
                triple[0] ** 4,
            )
        ]
    middle, whole, common, square, fourth = sums / samples
    np.testing.assert_allclose(found.defect, middle / whole, rtol=0.05)
    ratio = (common - square**2) / (fourth - square**2)
    np.testing.assert_allclose(found.triple_ratio, ratio, atol=0.03)
    # independent moduli: one from each of three samples
    triple = np.stack(np.meshgrid(*3 * [np.unique(q)], indexing="ij"))
    least, *moduli = np.sort(np.abs(triple), axis=0)
    middle, whole = (
        sum(np.einsum("abc,a,b,c", gap, laws[s], laws[s - 1], laws[s - 2]) for s in range(samples))
        for gap in (moduli[0] - least, moduli[1] - least)
    )
    np.testing.assert_allclose(found.independent_defect, middle / whole, rtol=0.05)


def test_independent_overlaps_are_those_of_gaussian_numbers():
    found = overlap_triples(SpinGlass(1.2))
    moduli = np.sort(np.abs(np.random.default_rng(0).normal(size=(400_000, 3))), axis=1)
    mean = moduli.mean(axis=0)
    np.testing.assert_allclose(found.defect, mean[1] / mean[2], rtol=3e-3)
    assert float(overlap_triples(SpinGlass(0.9)).defect) == 0
    with pytest.raises(ValueError, match="field"):
        overlap_triples(SpinGlass(0.9, 0.1))
