"""Targets, their refusals, and the dynamics of one neuron against the equations that describe
it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orderparam.systems.multi_index import (
    SphericalSGD,
    drift_and_spread,
    exit_time,
    exponents,
    overlap_chain,
    overlap_flow,
    table,
    target,
    trained_neuron,
)


@pytest.mark.parametrize(
    "text",
    ["__import__('os')", "z1.real", "z1[0]", "lambda z: z", "z1 if z1 else 2", "open('x')",
    "z1 > 0", "(z1, z2)", "z1 +", "2", "",
     "z5", "zz", "sign(z1, z2)", "z1**z2", "z + z1", "sin(z=1)", "1/0*z", "log(z)", "'z'",
     "z1 @ z2", "He0(z)", "z" * 500],
)  # fmt: skip
def test_only_formulas_are_read(text):
    with pytest.raises(ValueError, match="target"):
        target(text)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_a_target_or_a_clear_refusal(text):
    try:
        found = target(text)
    except ValueError as error:
        found = None
        message = str(error)
    assert "target" in message if found is None else 1 <= found.dimension <= 4


def test_formulas_mean_the_same_in_numpy_and_jax():
    z = np.random.default_rng(0).standard_normal((50, 3))
    for text in (
        "sign(z1*z2) + He3(z3)",
        "relu(z1) - abs(z2)**3/2 + erf(z3)",
        "maximum(z1, z2) * exp(-z3**2) + pi",
    ):
        g = target(text)
        np.testing.assert_allclose(g(z), g(jnp.asarray(z)), rtol=1e-13, atol=1e-13)


def test_python_functions_and_formulas_agree():
    found = exponents(lambda z: z[..., 0] * z[..., 1], 2, highest=4)
    assert (found.information, found.leap, found.generative) == (2, 2, 2)
    assert found.label_eigenvalues[1] == pytest.approx(
        exponents("z1*z2").label_eigenvalues[1], abs=found.label_tolerance
    )
    kinked = exponents(lambda z: jnp.abs(z[..., 0] - 0.5), kinks=(0.5,))
    assert kinked.hermite == pytest.approx(exponents("abs(z - 0.5)").hermite, abs=1e-11)


def test_rotated_targets_have_the_same_exponents():
    """(u + v)(u - v) / 2 is u^2 - v^2, rotated by 45 degrees it is 2 u v."""
    plain, turned = exponents("z1*z2", highest=4), exponents("(z1**2 - z2**2)/2", highest=4)
    assert (plain.information, plain.leap, plain.generative) == (
        turned.information,
        turned.leap,
        turned.generative,
    )
    assert plain.hermite == pytest.approx(turned.hermite, abs=1e-10)
    assert turned.label_eigenvalues[1] == pytest.approx(
        plain.label_eigenvalues[1], abs=turned.label_tolerance
    )


def test_staircases():
    assert exponents("z1 + z1*z2 + z1*z2*z3", highest=4).stages == ((1, 1), (1, 1), (1, 1))
    assert exponents("z1 + z2*z3", highest=4).stages == ((1, 1), (2, 2))
    # one direction, not a coordinate axis
    assert exponents("(z1 + z2)**3", highest=4).stages == ((1, 1),)
    assert exponents("z1 + z1*He3(z2)", highest=4).leap == 3


def test_staircases_of_the_best_algorithm():
    """z1^2 shows z1, and with z1 known the sign of z2 z3; both thresholds are known (0.5751663526,
    pi^2 / 4)."""
    found = exponents("z1**2 + sign(z1*z2*z3)", highest=4)
    assert found.generative_leap == 2
    assert [(order, new) for order, new, _ in found.generative_stages] == [(2, 1), (2, 2)]
    assert [seen for *_, seen in found.generative_stages] == pytest.approx(
        [0.5751663526, np.pi**2 / 4], rel=0.01
    )


def test_a_stair_higher_than_the_first():
    """z1 is free, and given z1 the other two are in z2 z3 (order 2) or in a sign of three (order
    3)."""
    found = exponents("z1 + z2*z3", highest=4)
    assert (found.generative, found.generative_leap) == (1, 2)
    assert found.generative_stages[1][2] == pytest.approx(0.5937510982, rel=0.02)
    found = exponents("He2(z1) + 3*sign(z2*z3*z4)", highest=4)
    assert (found.generative, found.generative_leap) == (2, 3)
    assert found.row()["best algorithm"] == "d^(3/2)"


def test_kinks_of_python_functions_are_found():
    """A jump at 0.3 and a kink at -1, told or not told."""

    def g(z):
        return jnp.sign(z[..., 0] - 0.3) + jnp.abs(z[..., 0] + 1)

    told, found = exponents(g, kinks=(0.3, -1.0), highest=4), exponents(g, highest=4)
    assert found.label_power == pytest.approx(told.label_power, abs=1e-7)


def test_report_and_table():
    found = exponents("z1*z2*z3")
    assert "leap exponent         3" in str(found)
    assert "2.56518" in str(found)
    assert table([found]).row_count == 1
    with pytest.raises(ValueError, match="constant"):
        exponents("0*z1")
    with pytest.raises(ValueError, match="highest"):
        exponents("z", highest=1)


def test_drift_is_the_hermite_sum():
    """rate (1 - m^2) sum_k k c_k(g) c_k(sigma) m^(k-1), less the spherical correction."""
    system = SphericalSGD(
        target="z + He2(z)/2 + He3(z)/5", student="z + He2(z)/3 + He3(z)/7", learning_rate=0.3
    )
    c, s = (1.0, np.sqrt(2) / 2, np.sqrt(6) / 5), (1.0, np.sqrt(2) / 3, np.sqrt(6) / 7)
    for m in (0.0, 0.2, -0.6):
        drift, _ = drift_and_spread(system, jnp.asarray([m]))
        small, _ = drift_and_spread(system.with_(learning_rate=1e-9), jnp.asarray([m]))
        expected = (1 - m**2) * sum(k * c[k - 1] * s[k - 1] * m ** (k - 1) for k in (1, 2, 3))
        assert float(small[0]) / 1e-9 == pytest.approx(expected, rel=1e-7)
        assert float(drift[0]) < 0.3 * expected or m <= 0


def test_reuse_makes_a_drift_where_one_look_has_none():
    """-He3 / sqrt 6 with an erf student at m = 0: values by a trapezoidal sum over 6001^2
    points."""
    system = SphericalSGD(target="-He3(z)/sqrt(6)", student="erf(z/sqrt(2))", learning_rate=1.0)
    for rho, value in (
        (0.0, 0.0),
        (0.3, 0.06270808458),
        (1.0, 0.12468506656),
        (3.0, 0.09139301344),
    ):
        drift, _ = drift_and_spread(system.with_(repetition=rho), jnp.zeros(1))
        assert float(drift[0]) == pytest.approx(value, abs=4e-5 if rho > 1 else 1e-6)


def test_implicit_steps_follow_the_same_flow_and_one_that_explicit_ones_cannot():
    """A strong second look at noisy samples erases the overlap at a rate of 1e6 per sample and
    dimension."""
    system = SphericalSGD(64, loss="squared", repetition=0.2, horizon=4.0, records=5)
    plain, implicit = (overlap_flow(system, stiff=stiff) for stiff in (False, True))
    assert bool(plain.converged)
    assert bool(implicit.converged)
    np.testing.assert_allclose(implicit.overlap, plain.overlap, rtol=1e-6)
    strong = overlap_flow(system.with_(repetition=1.5, noise=1.5), stiff=True)
    assert bool(strong.converged)
    np.testing.assert_allclose(strong.overlap, 0.0, atol=1e-9)


def test_chain_network_and_flow_agree():
    """Two indices, a squared loss, noise and batches: d = 200, 200 runs of each."""
    system = SphericalSGD(
        input_dim=200, target="z1 + z1*z2", student="tanh(z)", loss="squared", noise=0.1,
        batch_size=2, learning_rate=0.4,
        first_overlap=0.2, first_record=0.5, horizon=4.0, records=3,
    )  # fmt: skip
    keys = jax.random.split(jax.random.key(0), 200)
    runs = [
        np.asarray(jax.vmap(lambda k, f=f: f(system, k).overlap)(keys))
        for f in (overlap_chain, trained_neuron)
    ]
    means, errors = [x.mean(0) for x in runs], [x.std(0, ddof=1) / np.sqrt(200) for x in runs]
    assert np.all(np.abs(means[0] - means[1]) < 4 * np.hypot(*errors))
    theory = np.asarray(overlap_flow(system).overlap)
    assert np.all(np.abs(means[0] - theory) < 4 * errors[0] + 0.01)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"target": "import os"}, "target"),
        ({"student": "z1*z2"}, "student"),
        ({"loss": "hinge"}, "loss"),
        ({"repetition": 1.0, "batch_size": 2}, "repetition"),
        ({"exit_overlap": 1.0}, "exit_overlap"),
        ({"horizon": 0.01}, "first_record"),
        ({"target": "z1*z2", "first_overlap": 0.8}, "first_overlap"),
    ],
)
def test_refusals_name_the_field(arguments, field):
    with pytest.raises(ValueError, match=field):
        SphericalSGD(**arguments)


def test_a_target_without_a_mean_has_no_exponents():
    with pytest.raises(ValueError, match="grows too fast"):
        exponents("exp(exp(z1**2))")


def test_exit_time_is_for_one_index():
    with pytest.raises(ValueError, match="one hidden index"):
        exit_time(SphericalSGD(target="z1*z2"))
