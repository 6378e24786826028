"""The other observables against closed forms and retraining."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression, Ridge

from orderparam import observables as ob
from orderparam.observables.observable import _freedom, jackknifed
from orderparam.observables.tangent_features import _square


def _held(found, truth):
    return sum(one.low <= truth <= one.high for one in found)


@pytest.mark.parametrize("estimand", ["examples", "neurons"])
def test_the_dimension_of_linear_features(estimand):
    decay, found, plain = 1 / np.arange(1, 51.0), [], []
    truth = decay.sum() ** 2 / (decay @ decay)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(100, 50)) * np.sqrt(decay)
        x = x if estimand == "examples" else x @ rng.normal(size=(50, 200))
        found.append(ob.dimension(x, estimand=estimand))
        spectrum = np.linalg.eigvalsh(np.cov(x.T))
        plain.append(spectrum.sum() ** 2 / np.sum(spectrum**2))
    values = np.array([one.value for one in found])
    assert np.mean(plain) < 0.93 * truth
    assert abs(values.mean() - truth) < 4 * values.std() / 40**0.5 + 0.02 * truth
    assert _held(found, truth) >= 34


def test_a_few_heavy_units_leave_few_degrees_of_freedom():
    """Student's quantile follows the precision of the jackknife's variance: 2 (E s^2)^2 / Var
    s^2."""
    rng = np.random.default_rng(0)
    # 60 numbers show only a part of a heavy tail
    for draw, most in ((rng.standard_normal, 1.2), (rng.standard_exponential, 2.2)):
        many = draw((2000, 60))
        variances = many.var(axis=1, ddof=1)
        measured = 2 * variances.mean() ** 2 / variances.var()
        found = [_freedom(one) for one in many]
        assert max(found) <= 59
        assert 0.8 * measured < np.median(found) < most * measured
    assert np.median(found) < 30
    assert _freedom(np.ones(5)) == 4


def test_the_mean_of_skewed_numbers_is_held():
    rng = np.random.default_rng(0)
    held = narrow = 0
    for _ in range(1000):
        x = rng.standard_normal(40) ** 2 * rng.standard_normal(40) ** 2
        left = (x.sum() - x) / 39
        found = jackknifed("mean", x.mean(), {"examples": left}, unbiased=False)
        held += found.low <= 1 <= found.high
        narrow += abs(x.mean() - 1) < stats.t.ppf(0.975, 39) * x.std(ddof=1) / 40**0.5
    assert narrow < held


def test_kurtosis_of_gaussian_and_uniform_units():
    rng = np.random.default_rng(0)
    shared = [ob.excess_kurtosis(rng.normal(size=(300, 8))) for _ in range(60)]
    assert _held(shared, 0.0) >= 52
    uniform = ob.excess_kurtosis(rng.uniform(size=(4000, 20)))
    assert uniform.low < -1.2 < uniform.high
    starts = [np.random.default_rng(s).normal(size=(200, 8)) for s in range(20)]
    found = ob.excess_kurtosis(rng.laplace(size=(200, 8)), starts)
    assert found.p_value == pytest.approx(1 / 21)
    x = rng.laplace(size=(200, 8))
    scaled = ob.excess_kurtosis(3 * x[:, ::-1] - 1).value
    assert scaled == pytest.approx(ob.excess_kurtosis(x).value, rel=1e-9)


def test_independent_networks_have_no_overlap_however_matched():
    values, p = [], []
    for seed in range(20):
        w, v = np.random.default_rng(seed).normal(size=(2, 24, 60))
        found = ob.overlap(w, v, seed=seed)
        values.append(found.measured.value)
        p.append(found.measured.p_value)
        assert found.agreement < 0.95
    assert abs(np.mean(values)) < 4 * np.std(values) / 20**0.5
    assert np.mean(np.array(p) < 0.1) < 0.4


def test_planted_overlaps_are_found_whatever_the_order_and_scale():
    rng = np.random.default_rng(0)
    w = rng.normal(size=(32, 300))
    v = 0.6 * w + 0.8 * rng.normal(size=w.shape)
    order, scale = rng.permutation(32), rng.uniform(0.1, 5, size=(32, 1))
    found = ob.overlap(w, (scale * v)[order])
    assert found.measured.value == pytest.approx(0.6, abs=0.04)
    assert found.agreement > 0.95
    signed = ob.overlap(w, -v[order], signs=True)
    assert signed.measured.value == pytest.approx(0.6, abs=0.04)
    assert ob.seed_overlap([w, v, w[order]]).low < 0.75


def test_leaving_out_is_retraining_for_ridge():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 4)), rng.normal(size=30)
    found = ob.difficulty(x, y, ridge=2.0)
    inputs = (x - x.mean(axis=0)) / np.sqrt(np.mean((x - x.mean(axis=0)) ** 2))
    for i in range(30):
        rest = np.arange(30) != i
        model = Ridge(alpha=2.0).fit(inputs[rest], y[rest])
        error = (model.predict(inputs[i : i + 1])[0] - y[i]) ** 2
        assert found.examples[i] == pytest.approx(error, rel=1e-6)


def test_leaving_out_is_close_to_retraining_for_the_logistic_loss():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(80, 10))
    y = np.where(x[:, 0] + rng.normal(size=80) > 0, 1, -1)
    found = ob.difficulty(x, y, ridge=1.0, loss="logistic")
    assert found.gradient < 1e-6
    inputs = (x - x.mean(axis=0)) / np.sqrt(np.mean((x - x.mean(axis=0)) ** 2))
    exact = []
    for i in range(80):
        rest = np.arange(80) != i
        model = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(inputs[rest], y[rest])
        exact.append(np.logaddexp(0, -y[i] * model.decision_function(inputs[i : i + 1])[0]))
    fitted = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(inputs, y)
    seen = np.logaddexp(0, -y * fitted.decision_function(inputs))
    wrong = np.array(found.examples - exact)
    assert np.linalg.norm(wrong) < 0.1 * np.linalg.norm(exact - seen)  # of the shift
    assert np.mean(found.examples) == pytest.approx(np.mean(exact), rel=0.02)


def test_a_perfect_classifier_is_calibrated_and_a_sure_one_is_not():
    naive, found = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        stated = rng.uniform(0.5, 1, 300)
        one = ob.calibration(stated, rng.random(300) < stated, seed=seed)
        found.append(one.measured)
        naive.append(one.naive.value)
    values = np.array([one.value for one in found])
    assert abs(values.mean()) < 4 * values.std() / 20**0.5
    assert np.mean(naive) > 0.05  # the plain error of a perfect classifier
    assert _held(found, 0.0) >= 16
    assert np.mean([one.p_value < 0.1 for one in found]) < 0.3
    rng = np.random.default_rng(0)
    sure = ob.calibration(np.full(600, 0.95), rng.random(600) < 0.75).measured
    assert sure.low < 0.04 < sure.high
    assert sure.p_value < 0.01


def test_the_learnability_of_modes():
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(80, 4))
        y = x @ [1, 1, 1, 0] + 0.3 * rng.normal(size=80)
        f = x @ [0.9, 0.5, 0.1, 0.2] + 0.3 * rng.normal(size=80)
        found.append(ob.learnability(f, y, x))
    for mode, truth in enumerate((0.9, 0.5, 0.1)):
        assert _held([one[mode] for one in found], truth) >= 52
    assert sum(np.isnan(one[3].value) for one in found) > 50


def _network(parameters, x):
    return jnp.tanh(x @ parameters["in"]) @ parameters["out"]


def _parameters(seed, width=40, scale=1.0):
    rng = np.random.default_rng(seed)
    return {
        "in": jnp.asarray(rng.normal(size=(5, width)) / 5**0.5),
        "out": jnp.asarray(scale * rng.normal(size=(width, 1)) / width**0.5),
    }


def test_the_tangent_kernel_in_closed_form_and_by_directions():
    x, theta = np.random.default_rng(0).normal(size=(40, 5)), _parameters(1)
    h = np.tanh(x @ theta["in"])
    slope = (1 - h**2) * np.asarray(theta["out"])[:, 0]
    exact = h @ h.T + (slope @ slope.T) * (x @ x.T)
    kernel = ob.tangent_kernel(_network, theta, x)
    assert kernel == pytest.approx(exact, rel=1e-10)
    assert ob.tangent_kernel(_network, theta, x[:7], x) == pytest.approx(exact[:7], rel=1e-10)
    many = ob.tangent_features(_network, theta, x, 64)
    y = np.sign(x[:, 0])
    full = ob.alignment(_columns(kernel), y, estimand="examples", draws=0)
    by_directions = ob.alignment(many, y, draws=0)
    assert by_directions.low < full.value < by_directions.high


def test_the_drift_in_random_directions_is_that_of_the_kernel():
    """Against pairs of directions one by one, and against the exact drift."""
    rng = np.random.default_rng(3)
    old, new = (rng.normal(size=(12, 6, 2)) for _ in range(2))
    new = old + 0.3 * new
    kernels = [
        [now @ now.T - then @ then.T for now, then in zip(new.swapaxes(0, 1), old.swapaxes(0, 1))],
        [then @ then.T for then in old.swapaxes(0, 1)],
    ]

    def square(parts, without=None):
        kept = [
            part if without is None else np.delete(np.delete(part, without, 0), without, 1)
            for part in parts
        ]
        pairs = [np.sum(a * b) for i, a in enumerate(kept) for j, b in enumerate(kept) if i != j]
        return np.mean(pairs)

    for parts, arrays, signs in (
        (kernels[0], (new, old), (1.0, -1.0)),
        (kernels[1], (old,), (1.0,)),
    ):
        total, left = _square(arrays, signs)
        assert total == pytest.approx(square(parts), rel=1e-10)
        assert left["neurons"][2] == pytest.approx(square(parts[:2] + parts[3:]), rel=1e-10)
        assert left["examples"][5] == pytest.approx(square(parts, 5), rel=1e-10)
    theta, x = _parameters(0), rng.normal(size=(40, 5))
    grown = theta["in"] + 0.4 * np.outer(rng.normal(size=5), rng.normal(size=40))
    moved = {"in": grown, "out": theta["out"]}
    exact = ob.kernel_drift(
        *(ob.tangent_kernel(_network, one, x) for one in (theta, moved)), draws=0
    )
    features = [ob.tangent_features(_network, one, x, 400) for one in (theta, moved)]
    found = ob.feature_drift(*features, draws=0)
    assert found.norm.low < exact.norm.value < found.norm.high
    assert found.shape.low < exact.shape.value < found.shape.high
    nothing = ob.feature_drift(features[0], features[0], draws=0)
    assert not nothing.norm.value > 0
    with pytest.raises(ValueError, match="at least 4 directions"):
        ob.feature_drift(features[0][:, :2], features[1][:, :2])


def test_the_interval_of_a_drift_is_that_of_the_value_without_its_bias():
    """Each value without an example has its own bias subtracted, found from pairs left out."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(9, 3))
    start, end = x @ x.T, (x * [1.5, 1.0, 0.7]) @ (x * [1.5, 1.0, 0.7]).T

    def corrected(rows):
        def plain(kept):
            k, late = (one[np.ix_(kept, kept)] for one in (start, end))
            return np.linalg.norm(late - k) / np.linalg.norm(k)

        n = len(rows)
        left = [plain(np.delete(rows, i)) for i in range(n)]
        return n * plain(rows) - (n - 1) * np.mean(left)

    every = np.arange(9)
    found = ob.kernel_drift(start, end, draws=0).norm
    assert found.value == pytest.approx(corrected(every))
    left = [corrected(np.delete(every, i)) for i in every]
    np.testing.assert_allclose(found.without["examples"], left)


def test_a_kernel_is_the_same_in_blocks_of_any_size(monkeypatch):
    rng = np.random.default_rng(4)
    theta, x = _parameters(0), rng.normal(size=(11, 5))
    whole = ob.tangent_kernel(_network, theta, x)
    module = sys.modules["orderparam.observables.tangent_kernel"]
    monkeypatch.setattr(module, "BLOCK", 8 * 240 * 3)  # three examples
    assert ob.tangent_kernel(_network, theta, x) == pytest.approx(whole, rel=1e-12)
    assert ob.tangent_kernel(_network, theta, x[:5], x) == pytest.approx(whole[:5], rel=1e-12)


def _columns(kernel):
    from orderparam.observables.tangent_kernel import factor

    return factor(kernel)


def test_the_gauss_newton_matrix_has_the_eigenvalues_of_the_kernel():
    x, theta = np.random.default_rng(2).normal(size=(12, 5)), _parameters(3, width=6)
    flat, restored = jax.flatten_util.ravel_pytree(theta)
    jacobian = jax.jacobian(lambda w: _network(restored(w), x)[:, 0])(flat)
    kernel = np.linalg.eigvalsh(ob.tangent_kernel(_network, theta, x))
    assert np.linalg.eigvalsh(jacobian.T @ jacobian)[-12:] == pytest.approx(kernel, rel=1e-8)


def test_large_output_scales_are_lazy():
    rng = np.random.default_rng(0)
    x, fresh = rng.normal(size=(20, 5)), rng.normal(size=(50, 5))
    y = np.sign(x[:, 0] * x[:, 1])[:, None]
    numbers = []
    for gamma in (0.03, 3.0):
        start = _parameters(0, width=60)
        zero = {side: _network(start, side_x) for side, side_x in (("t", x), ("f", fresh))}
        theta, step = start, 0.02 * gamma**2

        @jax.jit
        def descend(theta, gamma=gamma, zero=zero["t"], step=step):
            def loss(w):
                return jnp.sum(((_network(w, x) - zero) / gamma - y) ** 2) / len(x)

            return jax.tree.map(lambda w, g: w - step * g, theta, jax.grad(loss)(theta))

        for _ in range(1500):
            theta = descend(theta)
        outputs = [
            (_network(theta, one) - z) / gamma for one, z in ((fresh, zero["f"]), (x, zero["t"]))
        ]
        k = ob.tangent_kernel(_network, start, x) / gamma**2
        across = ob.tangent_kernel(_network, start, fresh, x) / gamma**2
        found = ob.lazy_to_rich(np.zeros(50), outputs[0], across, k, np.zeros(20), outputs[1], y)
        numbers.append(found.value)
        drift = ob.kernel_drift(k, ob.tangent_kernel(_network, theta, x) / gamma**2)
        assert drift.shape.value < numbers[-1]
    assert numbers[0] < 0.1
    assert numbers[1] > 0.3


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="one for each"):
        ob.difficulty(np.eye(9), np.ones(8))
    with pytest.raises(ValueError, match="from 0 to 1"):
        ob.calibration(np.full(99, 2.0), np.ones(99))
    with pytest.raises(ValueError, match="must be equal"):
        ob.overlap(np.eye(4), np.eye(5))
    with pytest.raises(ValueError, match="at least three"):
        ob.seed_overlap([np.eye(4)] * 2)
    with pytest.raises(ValueError, match="fewer than half"):
        ob.learnability(np.ones(4), np.ones(4), np.eye(4))
    zero, one = np.zeros(8), np.ones(8)
    with pytest.raises(ValueError, match="after training"):
        ob.lazy_to_rich(zero, one, np.eye(8), np.eye(8), zero, zero, one)
