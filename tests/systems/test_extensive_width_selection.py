"""The state that an extensive-width student selects: free energies of both states against
quadrature and against the theory, and the posterior by replica exchange."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from orderparam.systems.extensive_width import (
    HierarchicalTeacher,
    bayes_optimal,
    competing_states,
    exchanged_posterior,
    staircase,
    walled_posterior,
)
from orderparam.systems.extensive_width.channel import channel
from orderparam.systems.extensive_width.exchange import Averages, misfit, of_all
from orderparam.systems.extensive_width.selection import _drawn
from orderparam.systems.extensive_width.studies_selection import half_height, zero_of_difference

ONE_WEIGHT = HierarchicalTeacher(1, 1, decay=1.0, noise=0.3, n_train=6)
KEY = jax.random.key(3)


def _likelihood(key):
    """exp(-E(w)) of the data of a run with one weight, and the teacher's weight."""
    data_key, prior_key, *_ = jax.random.split(key, 4)
    drawn = _drawn(ONE_WEIGHT, data_key, prior_key, 4)
    of_one = jax.jit(
        lambda w: jnp.exp(-misfit(ONE_WEIGHT.activation, drawn.problem, w.reshape(1, 1)))
    )
    return lambda w: float(of_one(jnp.asarray(w, jnp.float32))), drawn


def test_free_energies_of_one_weight_against_quadrature():
    likelihood, drawn = _likelihood(KEY)
    sign, place = float(drawn.problem.truth[0, 0]), float(drawn.middle)

    def log_z(low, high):
        # q = w w^0 with |w^0| = 1
        value = quad(lambda q: norm.pdf(q) * likelihood(q * sign), low, high, limit=200)[0]
        return np.log(value)

    found = walled_posterior(ONE_WEIGHT, KEY, weights=8, sweeps=6000)
    exact = log_z(-8.0, place) - log_z(place, 8.0)
    np.testing.assert_allclose(found.free_energy_difference, exact, atol=0.15)

    whole = exchanged_posterior(ONE_WEIGHT, KEY, weights=8, sweeps=6000)
    information = -float(drawn.best) - log_z(-8.0, 8.0)
    np.testing.assert_allclose(whole.mutual_information, information, atol=0.08)
    np.testing.assert_allclose(whole.learned, expit(-exact), atol=0.05)


def test_both_methods_agree_on_the_weight_of_the_state():
    """The odds of the feature in the posterior are those of the two free energies."""
    teacher = HierarchicalTeacher(8, 4, decay=1.0, noise=0.1, n_train=24)
    keys = jax.random.split(jax.random.key(0), 6)
    walled = jax.vmap(lambda key: walled_posterior(teacher, key, weights=10, sweeps=1500))(keys)
    free = jax.vmap(lambda key: exchanged_posterior(teacher, key, weights=10, sweeps=1500))(keys)
    expected = expit(-np.asarray(walled.free_energy_difference))
    np.testing.assert_allclose(free.learned, expected, atol=0.15)
    assert np.ptp(expected) > 0.3
    assert np.all(np.abs(free.start_difference) < 0.25)
    np.testing.assert_allclose(free.off_diagonal, 1.0, atol=0.25)


@pytest.mark.parametrize("dim", [16, 64])
def test_free_energies_cross_at_the_first_jump_of_the_staircase(dim):
    teacher = HierarchicalTeacher(dim, dim // 2, decay=1.0, noise=0.04)
    jump = float(staircase(teacher).n_train[0])
    at, below, above = (
        competing_states(teacher.with_(n_train=jump * factor)) for factor in (1.0, 0.9, 1.1)
    )
    np.testing.assert_allclose(at.free_energy_difference, 0.0, atol=1e-9)
    assert below.free_energy_difference > 0 > above.free_energy_difference
    # at the wall, where the learned state does not exist
    lost = competing_states(teacher.with_(n_train=0.5 * jump))
    # half of the overlap with which a feature appears, a stored number
    np.testing.assert_allclose(lost.learned_overlap, 0.375414, atol=1e-6)
    # -ln Z of the state without features is that of noise of its whole variance
    teacher = teacher.with_(n_train=1.1 * jump)
    whole = channel(teacher.activation).total * np.sum(np.asarray(teacher.readout) ** 2)
    without = teacher.n_train / 2 * np.log1p(whole / teacher.noise)
    learned = dim * (dim // 2) * float(bayes_optimal(teacher).mutual_information)
    np.testing.assert_allclose(above.free_energy_difference, learned - without, rtol=1e-8)


def test_derivative_of_the_learned_overlap():
    teacher = HierarchicalTeacher(64, 32, decay=1.0, noise=0.04, n_train=300.0)

    def overlap(samples):
        return competing_states(teacher.with_(n_train=samples)).learned_overlap

    step = 0.05
    difference = (overlap(300 + step) - overlap(300 - step)) / (2 * step)
    np.testing.assert_allclose(jax.grad(overlap)(300.0), difference, rtol=1e-5)


def test_halves_of_a_run_make_up_the_whole():
    """Averages and variances of both halves give those of all draws."""
    draws = np.random.default_rng(0).normal(3.0, 2.0, 40)
    halves = [draws[:20], draws[20:]]
    none = np.zeros(2)
    parts = Averages(
        np.array([[np.mean(one)] for one in halves]),
        np.array([[np.var(one)] for one in halves]),
        *[none] * (len(Averages._fields) - 2),
    )
    whole = of_all(parts)
    np.testing.assert_allclose([whole.misfit[0], whole.spread[0]], [draws.mean(), draws.var()])


def test_a_run_that_is_too_short_is_not_converged():
    """The learned state is left in the first sweeps, and both halves differ."""
    teacher = HierarchicalTeacher(16, 8, decay=1.0, noise=0.04, n_train=64)
    keys = jax.random.split(jax.random.key(1), 4)
    short, long = (
        jax.vmap(partial(walled_posterior, teacher, weights=12, sweeps=sweeps))(keys)
        for sweeps in (6, 3000)
    )
    assert not np.all(short.converged)
    assert np.all(long.converged)


def test_places_of_the_jump():
    ratio = np.linspace(2, 6, 9)
    assert zero_of_difference(ratio, 12 - ratio - ratio**2) == pytest.approx(3.0)
    assert np.isnan(zero_of_difference(ratio, 1 + ratio))
    assert half_height(ratio, expit((ratio - 4.2) / 0.3)) == pytest.approx(4.2)
    assert np.isnan(half_height(ratio, np.full(9, 0.01)))


def test_refusals():
    with pytest.raises(ValueError, match="weights"):
        exchanged_posterior(ONE_WEIGHT, KEY, weights=2)
    with pytest.raises(ValueError, match="sweeps"):
        walled_posterior(ONE_WEIGHT, KEY, sweeps=1)
