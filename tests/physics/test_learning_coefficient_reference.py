"""Learning coefficients: closed forms, an exact running coupling, and the sampler against both."""

import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.observables.approach import LAWS, limit
from orderparam.observables.learning_coefficient import _variances, learning_coefficient
from orderparam.observables.normal_crossing import of_product, running_coefficient_of_product
from orderparam.observables.reduced_rank import aoyagi_watanabe, running_coefficient


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((5, 3, 5), (6.5, 2)),
        ((5, 4, 5), (8.0, 1)),
        ((4, 3, 8), (6.0, 1)),
        ((8, 3, 4), (6.0, 1)),
        ((3, 4, 8), (6.0, 1)),
        ((5, 1, 5), (2.5, 2)),
        ((2, 9, 3), (3.0, 1)),
    ],
)
def test_the_closed_form(sizes, expected):
    """The last has more hidden units than the map needs: MN / 2, a regular model."""
    assert aoyagi_watanabe(*sizes) == expected


def test_one_unit_each_is_an_integral():
    """K = (b a)^2 / 2: Z = E (1 + t a^2)^(-1/2), lambda = 1/2 with multiplicity 2."""
    a = np.linspace(-12, 12, 400_001)
    density = np.exp(-(a**2) / 2)
    for t in (0.5, 20.0, 300.0):
        z = density / np.sqrt(1 + t * a**2)
        exact = 0.5 * np.sum(z * t * a**2 / (1 + t * a**2)) / np.sum(z)
        assert running_coefficient(1, 1, 1, t) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("t", [0.5, 20.0, 300.0])
def test_products_of_powers_are_integrals(t):
    """Three parameters by quadrature over the first two; the third is Gaussian. Fourth powers by
    quadrature over both. One parameter in closed form, a product of two as reduced-rank
    regression."""
    a = np.linspace(-9, 9, 3001)
    weight = np.exp(-(a**2) / 2)
    both, square = np.outer(weight, weight), np.outer(a, a) ** 2
    z = both / np.sqrt(1 + t * square)
    exact = np.sum(z * t * square / (1 + t * square)) / np.sum(z) / 2
    assert running_coefficient_of_product((1, 1, 1), t)[0] == pytest.approx(exact, rel=2e-3)
    loss = np.outer(a**2, a**4) / 2
    z = both * np.exp(-t * loss)
    mean, mean_square = (np.sum(z * (t * loss) ** k) / np.sum(z) for k in (1, 2))
    u, v = running_coefficient_of_product((1, 2), t)
    assert u == pytest.approx(mean, rel=2e-3)
    assert v == pytest.approx(mean_square - mean**2, rel=2e-3)
    exact = t / (1 + t) / 2
    u, v = running_coefficient_of_product((1,), t)
    assert u == pytest.approx(exact, rel=1e-6)
    assert v == pytest.approx(exact - t / (1 + t) ** 2 / 2, rel=1e-6)
    exact = running_coefficient(1, 1, 1, t)
    assert running_coefficient_of_product((1, 1), t)[0] == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("powers", [(1, 1), (1, 1, 1), (2, 2), (1, 1, 2), (1, 3)])
def test_logarithms_have_whole_amplitudes(powers):
    """ln t (lambda - lambda(t)) tends to m - 1, as (m - 1) ln t / (ln t + c); m = 1: to 0."""
    whole, multiplicity = of_product(powers)
    log_t = np.array([40.0, 80.0])
    gap = [whole - running_coefficient_of_product(powers, np.exp(x))[0] for x in log_t]
    if multiplicity == 1:
        assert log_t[1] * gap[1] < 1e-4
        return
    one, two = (multiplicity - 1) / np.array(gap) - log_t
    assert one == pytest.approx(two, rel=0.1)
    amplitude = (log_t[1] - log_t[0]) / (1 / gap[1] - 1 / gap[0])
    assert amplitude == pytest.approx(multiplicity - 1, rel=0.02)


def test_a_product_of_two_in_closed_form():
    """Z = e^x K_0(x) / sqrt(2 pi t) with x = 1 / 4t, and c = ln 8 - Euler's constant."""
    t = 1e6
    expected = 0.5 - 1 / (np.log(t) + np.log(8) - np.euler_gamma)
    assert running_coefficient_of_product((1, 1), t)[0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("wrong", [(), (0,), (1.5,), ((1, 1), (1, 1))])
def test_powers_that_are_refused(wrong):
    with pytest.raises(ValueError, match="must be whole numbers of at least 1"):
        of_product(wrong)


def test_the_running_coefficient_tends_to_the_closed_form():
    assert running_coefficient(5, 4, 5, 1e10) == pytest.approx(8.0, rel=1e-3)
    assert running_coefficient(4, 3, 8, 1e8) == pytest.approx(6.0, rel=1e-5)
    steps = [running_coefficient(5, 3, 5, t) for t in (1e6, 1e8)]
    c = [1 / (6.5 - value) - np.log(t) for value, t in zip(steps, (1e6, 1e8))]
    assert c[0] == pytest.approx(c[1], rel=0.1)  # multiplicity 2: 1 / (ln t + c)
    orders = [running_coefficient(*sizes, 300.0) for sizes in ((4, 3, 8), (8, 3, 4), (3, 4, 8))]
    np.testing.assert_allclose(orders, orders[0], rtol=1e-6)


def test_a_regular_minimum():
    """d / 2 less the share of the prior, at every t: sum of t a / (t a + 1) / 2."""
    stiff = jnp.asarray([0.3, 1.0, 4.0])
    found = learning_coefficient(lambda w: jnp.sum(stiff * w**2) / 2, jnp.zeros(3), draws=300)
    exact = [float(jnp.sum(t * stiff / (t * stiff + 1))) / 2 for t in found.times]
    errors = np.array([(one.high - one.low) / 4.4 for one in found.energy])
    z = (np.array([one.value for one in found.energy]) - exact) / errors
    assert np.max(np.abs(z)) < 4
    assert found.coefficient.low < 1.5 < found.coefficient.high
    assert found.coefficient.value == pytest.approx(1.5, rel=0.05)
    assert found.coefficient.p_value > 0.01
    assert found.converged.all()


@pytest.mark.parametrize("sizes", [pytest.param((5, 3, 5), marks=pytest.mark.long), (5, 1, 5)])
def test_reduced_rank_regression(sizes):
    """The curve within its errors at every t, its limit within 5 %."""
    inputs, hidden, outputs = sizes
    start = {"a": jnp.zeros((hidden, inputs)), "b": jnp.zeros((outputs, hidden))}
    found = learning_coefficient(lambda p: jnp.sum((p["b"] @ p["a"]) ** 2) / 2, start)
    exact = [running_coefficient(*sizes, t) for t in found.times]
    errors = np.array([(one.high - one.low) / 4.4 for one in found.energy])
    z = (np.array([one.value for one in found.energy]) - exact) / errors
    assert np.max(np.abs(z)) < 4.5  # Student, 11 degrees of freedom
    limit = aoyagi_watanabe(*sizes)[0]
    assert found.coefficient.value == pytest.approx(limit, rel=0.05)
    assert found.coefficient.low - 0.05 * limit < limit < found.coefficient.high + 0.05 * limit
    assert found.coefficient.p_value < 0.01
    assert found.converged[1:].all()


def _held(truth, whole, times, order=0, size=np.inf, repeats=60):
    """How often the interval held the limit with the noise of 300 effective draws, and the values
    over the limit."""
    noise = np.sqrt((2 + 6 / truth if order else 1 / truth) / 300)
    shape = (repeats, 12, len(times))
    draws = truth * (1 + noise * np.random.default_rng(0).normal(size=shape))
    found = [limit(times, each, order, size) for each in draws]
    assert all(one.low < one.middle < one.high for one in found)
    held = sum(one.low <= whole <= one.high for one in found)
    return held, np.array([one.middle for one in found]) / whole


@pytest.mark.parametrize(("sizes", "order"), [((5, 3, 5), 0), ((5, 3, 5), 1), ((6, 2, 4), 0)])
def test_intervals_hold_the_limit_of_exact_curves(sizes, order):
    """An average over all laws of approach holds 6.5 in 72 % where it is approached as 1 / ln t."""
    t, h = np.array([1e2, 1e3, 1e4, 1e5]), 1e-3
    u, after, before = (
        np.array([running_coefficient(*sizes, one * np.exp(shift)) for one in t])
        for shift in (0.0, h, -h)
    )
    truth = u - order * (after - before) / (2 * h)
    held, values = _held(truth, aoyagi_watanabe(*sizes)[0], t, order, sizes[1] * 10)
    assert held >= 54  # 95 % less three errors
    assert np.mean(values) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("powers", [(1,), (1, 1, 1), (1, 1, 1, 1), (1, 2), (2, 2), (1, 3)])
def test_intervals_hold_the_limit_of_products(powers):
    """Multiplicities 1 to 4, and the corrections t^(-1/4) and t^(-1/3). Without the laws of
    multiplicity 3 and 4, of x below 1/2, and of large c the limits of the last five are held in 0
    to 75 %."""
    t = np.array([1e2, 1e3, 1e4, 1e5])
    truth = np.array([running_coefficient_of_product(powers, one)[0] for one in t])
    assert _held(truth, of_product(powers)[0], t, 0, len(powers))[0] >= 54


def test_large_times_tell_a_logarithm_from_a_constant():
    """A product of two parameters has the limit 1/2 and approaches it as 1 / ln t, which is 9 %
    of it even at t = 1e9."""
    t = np.geomspace(100, 1e9, 8)
    u = np.array([running_coefficient(1, 1, 1, one) for one in t])
    assert u[-1] < 0.92 * 0.5
    held, values = _held(u, 0.5, t, 0, 2)
    assert np.mean(values) == pytest.approx(1, abs=0.05)
    assert held >= 54


def test_the_multiplicity_is_at_most_the_number_of_parameters():
    t = np.geomspace(100, 1e5, 4)
    each = 0.5 * (1 + 0.01 * np.random.default_rng(0).normal(size=(12, 4)))
    few, many = (limit(t, each, 0, size) for size in (1, 10))
    assert len(few.multiplicity) == 1
    assert len(many.multiplicity) == max(law.multiplicity for law in LAWS)
    assert many.multiplicity.sum() == pytest.approx(1)
    assert few.high <= many.high


def test_the_variance_of_correlated_chains():
    """A chain of 600 draws with 20 effective ones has a variance that is 5 % too small."""
    rng, keep = np.random.default_rng(0), 1 - 20 / 300
    x = np.zeros((600, 12 * 50, 1))
    x[0] = rng.normal(size=x[0].shape)
    for k in range(1, 600):
        x[k] = keep * x[k - 1] + (1 - keep**2) ** 0.5 * rng.normal(size=x[0].shape)
    each = np.array([_variances(one) for one in np.split(x, 50, axis=1)])
    assert x.var(axis=0).mean() < 0.97
    assert abs(each.mean() - 1) < 4 * each.mean(axis=1).std() / 50**0.5
    assert each.mean(axis=1).std() / 50**0.5 < 0.01
    z = (each.mean(axis=1) - 1) / (each.std(axis=1, ddof=1) / 12**0.5)
    assert np.mean(np.abs(z) < 2.2) > 0.85


def test_a_coupling_that_still_rises_has_no_plateau():
    times = (0.01, 0.03, 0.1, 0.3)
    found = learning_coefficient(lambda w: jnp.sum(w**2) / 2, jnp.zeros(2), times=times)
    assert np.isnan(found.coefficient.value)
    assert "no plateau: it rises from" in found.coefficient.note


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"times": (1, 1, 10, 100)}, "must be at least 4, positive, and increase"),
        ({"ensembles": 3}, "ensembles = 3: must be at least 4"),
        ({"window": (10, 100)}, "holds fewer than 3 of the times"),
        ({"by": "mean"}, "must be 'energy' or 'fluctuation'"),
        ({"prior_width": 0.0}, "prior_width = 0: must be > 0"),
        ({"loss": lambda w: w}, "must be one finite number"),
    ],
)
def test_what_is_refused(words, message):
    given = {"loss": lambda w: jnp.sum(w**2), "parameters": jnp.zeros(2)} | words
    with pytest.raises(ValueError, match=message):
        learning_coefficient(given.pop("loss"), given.pop("parameters"), **given)
