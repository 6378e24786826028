"""The conversions that docs/conventions.md marks: what a source minimises or solves gives what the
package does."""

import ast
import dataclasses
import functools
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

import orderparam as op
from orderparam.core.declared import topic_of
from orderparam.kernels import power_law
from orderparam.losses import loss, minimise
from orderparam.systems.committee import Committee
from orderparam.systems.generalised_linear import GeneralisedLinear
from orderparam.systems.kernel_adaptation.network import hermite_target
from orderparam.systems.kernel_regression import KernelRegression, self_consistent
from orderparam.systems.multi_index import LearnedTarget
from orderparam.systems.online_sgd import CommitteeSGD, overlap_flow
from orderparam.systems.perceptron import ThermalPerceptron
from orderparam.systems.scaling_laws import PowerLawFeatures

TESTS = Path(__file__).parent
N, D, P, RIDGE = 30, 20, 25, 0.37
_RNG = np.random.default_rng(0)
RAW = np.tanh(_RNG.standard_normal((N, D)) @ _RNG.standard_normal((D, P)) / np.sqrt(D))
DIVIDED = RAW / np.sqrt(P)
TARGETS = _RNG.standard_normal(N)


@functools.cache
def ours():
    """Predictions by the package, compiled in the tests and not by every worker."""
    return np.asarray(minimise(loss("square"), DIVIDED, TARGETS, RIDGE).fields)


def _fitted(features, error_factor, penalty):
    """Predictions at the minimum of error_factor sum (y - f)^2 + penalty |a|^2, written out and
    searched for."""

    def objective(a):
        rest = TARGETS - features @ a
        gradient = -2 * error_factor * features.T @ rest + 2 * penalty * a
        return error_factor * rest @ rest + penalty * a @ a, gradient

    return (
        features
        @ minimize(
            objective,
            np.zeros(P),
            jac=True,
            method="BFGS",
            options={"gtol": 1e-13, "maxiter": 10_000},
        ).x
    )


@pytest.mark.parametrize(
    ("features", "error_factor", "penalty"),
    [
        pytest.param(DIVIDED, 1 / (2 * N), RIDGE / N / 2, id="mean, halves: T = n lambda"),
        pytest.param(DIVIDED, 1 / N, RIDGE / N, id="mean, no halves: T = n lambda"),
        pytest.param(DIVIDED, 1.0, RIDGE, id="sum, no halves: T = lambda"),
        pytest.param(
            RAW, 1 / (2 * N), RIDGE * P / (2 * N), id="Loureiro 2025: lambda = 2 n lambda' / p"
        ),
        pytest.param(
            RAW, 1 / N, P / D * RIDGE * D / N, id="Mei, Montanari 2019: lambda = n lambda' / d"
        ),
    ],
)
def test_ridges_of_other_objectives(features, error_factor, penalty):
    np.testing.assert_allclose(_fitted(features, error_factor, penalty), ours(), atol=1e-6)


def test_ridges_of_closed_forms_and_of_scikit_learn():
    gram, raw = DIVIDED @ DIVIDED.T, RAW.T @ RAW
    closed = RAW @ np.linalg.solve(raw + P * RIDGE * np.eye(P), RAW.T @ TARGETS)
    np.testing.assert_allclose(closed, ours(), atol=1e-10)
    np.testing.assert_allclose(
        gram @ np.linalg.solve(gram + RIDGE * np.eye(N), TARGETS), ours(), atol=1e-10
    )
    np.testing.assert_allclose(
        Ridge(RIDGE, fit_intercept=False).fit(DIVIDED, TARGETS).predict(DIVIDED), ours(), atol=1e-10
    )
    np.testing.assert_allclose(
        KernelRidge(RIDGE, kernel="precomputed").fit(gram, TARGETS).predict(gram),
        ours(),
        atol=1e-10,
    )


def test_the_inverse_penalties_of_scikit_learn():
    signs = np.sign(TARGETS)
    logistic = LogisticRegression(C=1 / RIDGE, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(
        DIVIDED, signs
    )
    np.testing.assert_allclose(
        logistic.coef_[0], minimise(loss("logistic"), DIVIDED, signs, RIDGE).weights, atol=1e-5
    )
    hinge = LinearSVC(
        C=1 / RIDGE, loss="hinge", fit_intercept=False, tol=1e-10, max_iter=10**6
    ).fit(DIVIDED, signs)
    np.testing.assert_allclose(
        hinge.coef_[0], minimise(loss("hinge"), DIVIDED, signs, RIDGE).weights, atol=1e-5
    )


def test_thresholds_of_kernel_regression():
    system = KernelRegression(power_law(1.5, 0.5), n_train=50, temperature=0.3, noise=0.2)
    curve, s = self_consistent(system), system.spectrum
    canatar = float(curve.effective_ridge)  # their kappa
    eigenvalue, count = s.eigenvalues, s.multiplicities
    assert canatar == pytest.approx(
        0.3 + float(count @ (canatar * eigenvalue / (canatar + 50 * eigenvalue)) + s.tail),
        rel=1e-10,
    )
    kappa = canatar / 50  # that of Simon et al., delta = 0.3
    learned = eigenvalue / (eigenvalue + kappa)
    assert float(count @ learned + s.tail / kappa) + 0.3 / kappa == pytest.approx(50, rel=1e-10)
    overfitting = 50 / (50 - float(count @ learned**2))  # their E_0 = 1/(1 - gamma)
    error = overfitting * (float(s.target_power @ (1 - learned) ** 2) + float(s.tail_power) + 0.2)
    assert float(curve.test_error) + 0.2 == pytest.approx(error, rel=1e-9)


def test_saad_and_solla_beside_veiga():
    units, rate, noise = 2, 2.0, 0.01
    sizes = {"width": units, "teacher_width": units, "horizon": 20.0}
    veiga = overlap_flow(CommitteeSGD(learning_rate=rate, noise=noise, **sizes))
    saad = overlap_flow(
        CommitteeSGD(learning_rate=rate / units**2, noise=units**2 * noise, readout="sum", **sizes)
    )
    np.testing.assert_allclose(saad.test_error, units**2 * np.asarray(veiga.test_error), rtol=1e-8)
    np.testing.assert_allclose(saad.teacher_overlap, veiga.teacher_overlap, rtol=1e-8)


def test_exponents_of_power_laws():
    source = power_law(1.5, 0.4)
    assert float(source.eigenvalues[1]) == pytest.approx(2**-1.5, rel=1e-12)
    assert float(source.target_power[1]) == pytest.approx(2 ** -(1 + 2 * 0.4 * 1.5), rel=1e-12)
    paquette = PowerLawFeatures(
        spectral_exponent=0.8, target_exponent=0.3, input_dim=1000.0, width=100.0, learning_rate=0.1
    ).spectrum
    assert float(paquette.eigenvalues[1]) == pytest.approx(2**-1.6, rel=1e-12)
    assert float(paquette.target_power[1]) == pytest.approx(2**-2.2, rel=1e-12)


def test_hermite_coefficients():
    np.testing.assert_allclose(
        hermite_target({1: 1.0, 3: -0.3}), [0, 1, 0, -0.3 * np.sqrt(6)], rtol=1e-14
    )


def _names(file):
    """The names that a file gives to variables, arguments, functions and classes, without leading
    underscores.
    """
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id.strip("_")
        elif isinstance(node, ast.arg):
            yield node.arg.strip("_")
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name.strip("_")


def test_private_words_are_no_names():
    """A line of old_names.txt goes when the last such name of its file does."""
    page = (TESTS.parent / "docs" / "conventions.md").read_text(encoding="utf-8")
    rows = page.partition("| instead of | write |\n| --- | --- |\n")[2].splitlines()
    words = {row.split("`")[1] for row in rows if row.startswith("| `")}
    assert len(words) >= 9
    package = TESTS.parent / "orderparam"
    found = {
        f"{word} {file.relative_to(package).as_posix()}"
        for file in package.rglob("*.py")
        for word in words.intersection(_names(file))
    }
    allowed = set((TESTS / "old_names.txt").read_text(encoding="utf-8").split("\n")) - {""}
    assert sorted(found - allowed) == []
    assert sorted(allowed - found) == []


def test_no_module_imports_a_private_name_of_another():
    package = TESTS.parent / "orderparam"
    found = [
        f"{file.relative_to(package)}: {name.name} of {node.module}"
        for file in package.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        and (node.level or (node.module or "").startswith("orderparam"))
        for name in node.names
        if name.name.startswith("_") and not name.name.startswith("__")
    ]
    assert found == []


def test_load_is_said_of_stored_patterns_alone():
    """Examples for each weight are the sample ratio; see the table of sizes."""
    topics = {"associative_memory", "storage_capacity"}
    for theory in op.theories().values():
        for system in theory.systems:
            has = {field.name for field in dataclasses.fields(system)}
            assert "load" not in has or topic_of(system.__module__) in topics, system
            assert not {"load", "sample_ratio"} <= has, system


def test_what_ignores_the_sample_ratio_does_not_ask_for_it():
    """Thresholds are read off systems that give none."""
    for system in (GeneralisedLinear(), ThermalPerceptron(), Committee(), LearnedTarget()):
        assert system.sample_ratio == 1


def test_the_ridge_of_linear_attention_does_not_depend_on_the_scale_of_its_columns():
    """One training, by hand with columns h/sqrt(d) and lambda/d: errors of many tasks are those of
    the theory to a few per cent."""
    from orderparam.systems.in_context import LinearAttention, linear_attention

    d, noise, ridge, rng = 16, 0.2, 0.5, np.random.default_rng(0)
    n, length, errors = 3 * d**2, 2 * d, []
    for _ in range(6):
        w = rng.standard_normal((n, d))
        x = rng.standard_normal((n, length, d)) / np.sqrt(d)
        y = np.einsum("nld,nd->nl", x, w) + np.sqrt(noise) * rng.standard_normal((n, length))
        query = rng.standard_normal((n, d)) / np.sqrt(d)
        label = np.sum(query * w, axis=1) + np.sqrt(noise) * rng.standard_normal(n)
        columns = d / length * np.einsum("nl,nld->nd", y, x) / np.sqrt(d)
        features = np.einsum("na,nb->nab", query, columns).reshape(n, -1)
        gram = features.T @ features + n / d * (ridge / d) * np.eye(d**2)
        errors.append(np.mean((features @ np.linalg.solve(gram, features.T @ label) - label) ** 2))
    theory = linear_attention(LinearAttention(2.0, np.inf, 3.0, noise, ridge))
    assert np.mean(errors) == pytest.approx(float(theory.train_error), rel=0.06)
    other = linear_attention(LinearAttention(2.0, np.inf, 3.0, noise, ridge / d))
    assert np.mean(errors) != pytest.approx(float(other.train_error), rel=0.06)


def test_the_time_of_gradient_flow_is_n_times_that_on_the_summed_loss():
    """The flow on the summed loss of ten drawn sets, by its exponential: at t/n it is where the
    theory is at t, to a few per cent."""
    from orderparam.kernels.spectrum import Spectrum
    from orderparam.systems.training_in_time import FeatureTraining, gradient_flow_error

    n, d, time, noise, rng = 300, 200, 1.5, 0.3, np.random.default_rng(0)
    errors = []
    for _ in range(10):
        x, theta = rng.standard_normal((n, d)), rng.standard_normal(d) / np.sqrt(d)
        y = x @ theta + np.sqrt(noise) * rng.standard_normal(n)
        rates, modes = np.linalg.eigh(x.T @ x)
        w = modes @ (-np.expm1(-rates * time / n) / rates * (modes.T @ (x.T @ y)))
        errors.append(np.sum((w - theta) ** 2))
    theory = gradient_flow_error(FeatureTraining(Spectrum([1.0], [1.0], [d]), n, time, noise))
    assert np.mean(errors) == pytest.approx(float(theory.test_error), rel=0.05)


def test_the_rate_of_the_mean_loss_is_the_ratio_times_that_of_the_summed_loss():
    from orderparam.systems.reused_data import ReusedData, closed_dynamics
    from orderparam.systems.training_in_time import IsotropicTraining, descent_error

    ratio, rate, ridge = 1.6, 0.1, 0.3
    summed = closed_dynamics(ReusedData(ratio, rate, 0.2, ridge, self_overlap=0.0, steps=5))
    mean = descent_error(
        IsotropicTraining(ratio, ratio * rate, noise=0.2, weight_decay=ridge / ratio, steps=5)
    )
    np.testing.assert_allclose(summed.test_error, mean.test_error, rtol=1e-11)


def test_the_heavy_ball_steps_on_the_mean_loss_and_a_network_on_the_summed_loss():
    import jax

    from orderparam.networks.fully_connected import fully_connected
    from orderparam.systems.training_in_time import (
        IsotropicTraining,
        NetworkDescent,
        descent_error,
        frozen_kernel,
    )

    # one small step: the error falls by 2 eta, whatever the number of examples
    for ratio in (0.5, 4.0):
        path = descent_error(IsotropicTraining(ratio, 1e-6, steps=1)).test_error
        assert (path[0] - path[1]) / 1e-6 == pytest.approx(2.0, rel=1e-4)
    # and of the outputs on the training set themselves, by eta Theta (y - f)
    x = np.asarray(jax.random.normal(jax.random.key(0), (5, 3)))
    network = fully_connected(1, None, "erf")
    system = NetworkDescent(x, x[:, 0], x, x[:, 0], network, learning_rate=0.1, steps=1)
    left = x[:, 0] - 0.1 * np.asarray(network.kernel(x).ntk) @ x[:, 0]
    assert frozen_kernel(system).train_error[1] == pytest.approx(np.mean(left**2), rel=1e-12)
