"""Learning with fixed features: identities of the theory, the minimiser, and experiments against
theory."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from orderparam.kernels.spectrum import Spectrum
from orderparam.losses import ClassLabels, RealLabels, SignLabels, fresh_means, loss, minimise
from orderparam.running.sweep import sweep
from orderparam.systems.random_features import (
    ClassPool,
    ExplicitSpectrum,
    FeaturePool,
    GaussianFeatures,
    PoolSpectrum,
    RandomFeatures,
    SpectralFeatures,
    SphereFeatures,
    asymptotics,
    class_asymptotics,
    deterministic_equivalent,
    learn,
    learn_classes,
    learn_on_sphere,
    learn_pool,
    optimal_ridge,
    polynomial_regime,
    spectral_learning,
    state_evolution,
)
from orderparam.systems.random_features.best_ridge import best_ridges
from orderparam.systems.random_features.forecast import forecast_features
from orderparam.systems.random_features.pool import gaussian_clone

THEORY = asymptotics


def arrays(system):
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), system)


def test_iteration_and_closed_form_agree_for_the_square_loss():
    system = arrays(
        RandomFeatures(200, 300, n_train=500, ridge=0.03, activation="relu", labels=SignLabels(0.1))
    )
    closed, iterated = THEORY(system), state_evolution(system)
    for name in type(closed).dims():
        if name not in ("residual", "converged"):
            assert float(getattr(iterated, name)) == pytest.approx(
                float(getattr(closed, name)), rel=1e-9
            ), name


def test_a_mean_penalty_is_a_sum_penalty_times_n():
    mean = arrays(RandomFeatures(200, 300, n_train=500, ridge=0.01, penalty="mean"))
    total = arrays(RandomFeatures(200, 300, n_train=500, ridge=5.0, penalty="sum"))
    assert float(THEORY(mean).test_error) == pytest.approx(
        float(THEORY(total).test_error), rel=1e-13
    )
    key = jax.random.key(0)
    small = {"input_dim": 20, "width": 30, "n_train": 40}
    runs = [
        learn(s.with_(**small, ridge=r), key, test_points=1000)
        for s, r in ((mean, 0.01), (total, 0.4))
    ]
    assert float(runs[0].test_error) == pytest.approx(float(runs[1].test_error), rel=1e-12)


def test_the_error_at_the_peak_grows_as_the_inverse_root_of_the_ridge():
    """At n = p both 1 - df_1/n and 1 - df_2/n vanish, and neither may be a difference of ones."""
    labels = RealLabels(noise=0.1)
    peak = [
        THEORY(arrays(RandomFeatures(200, 300, n_train=300, ridge=r, labels=labels)))
        for r in (1e-12, 1e-16)
    ]
    assert all(curve.converged for curve in peak)
    assert float(peak[1].test_error / peak[0].test_error) == pytest.approx(100, rel=1e-4)
    for curve in peak:
        assert float(curve.cross_validation) == pytest.approx(float(curve.test_error), rel=1e-12)


def test_linear_features_are_ridge_regression_on_the_inputs():
    """sigma(z) = z with p >> d: W^T W / p = 1/d, so that the effective dimension is at most d; the
    peak is at n = d."""
    wide = THEORY(
        arrays(
            RandomFeatures(
                100, 1e7, n_train=300, ridge=1e-9, activation="linear", labels=RealLabels(noise=0.5)
            )
        )
    )
    # Ordinary least squares with n > d: risk = noise * d / (n - d), plus the noise.
    assert float(wide.test_error) == pytest.approx(0.5 * (1 + 100 / 200), rel=1e-6)
    assert float(wide.effective_dimension) == pytest.approx(100, rel=1e-6)


def test_even_features_learn_nothing_odd_and_the_intercept_is_free():
    curve = THEORY(arrays(RandomFeatures(100, 200, n_train=150, ridge=0.1, activation="abs")))
    assert float(curve.teacher_overlap) == 0
    assert float(curve.test_error) >= 1
    # A target of mean 1/sqrt(2 pi): relu features fit the mean, erf features cannot.
    target = RealLabels("relu")
    fitted, missed = (
        THEORY(
            arrays(RandomFeatures(100, 200, n_train=150, ridge=1e9, activation=name, labels=target))
        ).test_error
        for name in ("relu", "erf")
    )
    assert float(missed) == pytest.approx(0.5, rel=1e-6)
    assert float(fitted) == pytest.approx(0.5 - 1 / (2 * np.pi), rel=1e-6)


def test_the_best_ridge_is_a_minimum_for_any_loss_and_objective():
    system = arrays(
        RandomFeatures(
            200,
            300,
            n_train=400,
            ridge=1.0,
            activation="erf",
            labels=SignLabels(0.1),
            loss="logistic",
        )
    )
    best = eqx.filter_jit(lambda s: optimal_ridge(s, "classification_error"))(system)
    assert bool(best.converged)
    for factor in (0.98, 1.02):
        near = THEORY(system.with_(ridge=best.ridge * factor)).classification_error
        assert float(best.classification_error) < float(near)


@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_best_ridges_found_on_the_host_are_those_of_the_theory(loss):
    rng = np.random.default_rng(1)
    matrix = rng.standard_normal((300, 20)) * np.geomspace(1, 0.1, 20)
    y = np.sign(matrix[:, 0] + 0.5 * rng.standard_normal(300))
    pool = FeaturePool.from_data(matrix, y, 10, 1.0, loss=loss)
    objective = "test_error" if loss == "square" else "test_loss"
    found = best_ridges(pool, np.array([40, 100]), objective)
    told = sweep(partial(optimal_ridge, objective=objective), pool, {"n_train": [40, 100]})
    assert found["converged"].all()
    for name in found.data_vars:
        # the bisection of losses that are iterated ends at 1e-9 in ln ridge
        np.testing.assert_allclose(found[name], told[name], rtol=1e-8, atol=1e-9, err_msg=name)


@pytest.mark.parametrize(("examples", "features"), [(120, 40), (40, 120)])
def test_minimisers_are_those_of_scikit_learn(examples, features):
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((examples, features)) / np.sqrt(features)
    y = np.sign(matrix[:, 0] + 0.1 * rng.standard_normal(examples))
    ridge = 0.05
    models = {
        "square": Ridge(alpha=ridge, fit_intercept=False),
        "logistic": LogisticRegression(
            C=1 / ridge, fit_intercept=False, tol=1e-10, max_iter=10_000
        ),
        "hinge": LinearSVC(
            loss="hinge", C=1 / ridge, fit_intercept=False, tol=1e-8, max_iter=1_000_000
        ),
    }
    for name, model in models.items():
        chosen = loss(name)
        mine = minimise(chosen, jnp.asarray(matrix), jnp.asarray(y), jnp.asarray(ridge))
        assert bool(mine.converged)
        theirs = np.ravel(model.fit(matrix, y).coef_)

        def risk(weights, chosen=chosen):
            return float(
                np.sum(chosen(jnp.asarray(y), matrix @ weights)) + ridge / 2 * weights @ weights
            )

        assert risk(mine.weights) <= risk(theirs) * (1 + 1e-12)
        np.testing.assert_allclose(mine.weights, theirs, atol=2e-4 * np.abs(theirs).max())
        np.testing.assert_allclose(mine.fields, matrix @ np.asarray(mine.weights), atol=1e-9)
    on_margin = np.abs(y * np.asarray(mine.fields) - 1) < 1e-6
    assert int(mine.effective_dimension) == on_margin.sum()


CASES = {
    "square, real": (
        RandomFeatures(
            120, 180, n_train=260, ridge=0.01, activation="erf", labels=RealLabels(noise=0.1)
        ),
        "real",
    ),
    "logistic, gaussian": (
        RandomFeatures(
            120,
            180,
            n_train=260,
            ridge=0.05,
            activation="relu",
            labels=SignLabels(0.05),
            loss="logistic",
        ),
        "gaussian",
    ),
    "hinge, real": (
        RandomFeatures(
            120, 180, n_train=260, ridge=0.1, activation="erf", labels=SignLabels(), loss="hinge"
        ),
        "real",
    ),
    "covariates": (
        GaussianFeatures(
            ExplicitSpectrum(1 / np.arange(1, 81), np.arange(1.0, 81) ** -2.5),
            2.5,
            n_train=120,
            ridge=0.01,
        ),
        "gaussian",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_experiments_agree_with_theory(name):
    """Within 5 standard errors over 24 runs and the finite size: relative corrections are (-0.3 to
    0.8)/d for the effective parameters and at most 2/d otherwise, measured over 48 other runs at d
    = 60 and 120 (without an input: at p = 80)."""
    system, features = CASES[name]
    size = getattr(system, "input_dim", system.feature_count)
    expected = THEORY(arrays(system))
    runs = [learn(system, jax.random.key(seed), features, 2000) for seed in range(24)]
    assert all(bool(run.converged) for run in runs)
    for field in type(runs[0]).dims():
        values = np.array([float(getattr(run, field)) for run in runs])
        if field in ("residual", "converged") or np.isnan(values).any():
            continue
        value, error = float(getattr(expected, field)), values.std(ddof=1) / np.sqrt(len(values))
        margin = (1.0 if field == "effective_dimension" else 2.0) / size * abs(value)
        assert abs(values.mean() - value) < 5 * error + margin, (field, values.mean(), error, value)


def test_a_pool_of_gaussian_data_is_predicted_from_its_own_covariance():
    rng = np.random.default_rng(1)
    features = rng.standard_normal((4000, 60)) / np.sqrt(np.arange(1, 61))
    targets = np.sin(features @ rng.standard_normal(60) / 2) + 0.3
    pool = FeaturePool.from_data(features, targets, 90, 0.02)
    runs = sweep(learn_pool, pool, {"n_train": [90]}, seeds=30)
    theory = sweep(asymptotics, pool, {"n_train": [90]})
    for name in ("test_error", "train_error", "effective_dimension"):
        mean, error = float(runs[name].mean()), float(runs[name].std(ddof=1)) / np.sqrt(30)
        # corrections of order 1/p
        assert abs(mean - float(theory[name][0])) < 5 * error + 2 * mean / 60, name


def test_pools_of_few_examples_are_right_in_the_mean():
    """A quarter as many features as examples: the residuals of the pool's own regression are a
    quarter too small."""
    rng, omega = np.random.default_rng(2), 1 / np.arange(1, 61)
    teacher = np.sqrt(omega) * rng.standard_normal(60)
    known = ExplicitSpectrum(omega, (omega * teacher) ** 2)
    right = GaussianFeatures(
        known, omega @ teacher**2, n_train=90, ridge=0.02, labels=RealLabels("linear", 1.0)
    )
    found = []
    for _ in range(40):
        features = rng.standard_normal((240, 60)) * np.sqrt(omega)
        pool = FeaturePool.from_data(
            features, features @ teacher + rng.standard_normal(240), 90, 0.02
        )
        found.append(float(THEORY(pool).test_error))
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    expected = float(THEORY(right).test_error)
    assert abs(np.mean(found) - expected) < 4 * error + 0.02 * expected


@pytest.mark.parametrize(("n", "p"), [(60, 120), (120, 60)])
def test_gaussian_modes_follow_the_deterministic_equivalent(n, p):
    k = np.arange(1.0, 601)
    system = SpectralFeatures(Spectrum(k**-1.5, k**-2.2), n, p, 0.05, 0.1)
    expected = eqx.filter_jit(deterministic_equivalent)(system)
    runs = [spectral_learning(system, jax.random.key(seed)) for seed in range(40)]
    for name in ("excess_risk", "effective_dimension"):
        values = np.array([float(getattr(run, name)) for run in runs])
        error = values.std(ddof=1) / np.sqrt(len(values))
        # effective parameters: 0.1 to 0.5 % off, of the order of 1/(10 p)
        margin = values.mean() / 100
        assert abs(values.mean() - float(getattr(expected, name))) < 5 * error + margin


def test_bad_input_is_refused_in_words():
    with pytest.raises(ValueError, match="penalty = 'avg'"):
        RandomFeatures(10, 20, n_train=30, ridge=0.1, penalty="avg")
    with pytest.raises(ValueError, match="labels -1 and"):
        RandomFeatures(10, 20, n_train=30, ridge=0.1, loss="hinge")
    with pytest.raises(ValueError, match="pools of real data only"):
        RandomFeatures(10, 20, n_train=30, ridge=0.1, labels=ClassLabels(), loss="hinge")
    with pytest.raises(ValueError, match=r"ridge = 0.*must be > 0"):
        RandomFeatures(10, 20, n_train=30, ridge=0)
    with pytest.raises(ValueError, match=r"teacher_variance = 0.5.*>= 1"):
        GaussianFeatures(ExplicitSpectrum([1.0], [1.0]), 0.5, n_train=10, ridge=0.1)
    with pytest.raises(ValueError, match=r"eigenvalues = nan: must be finite and >= 0"):
        GaussianFeatures(ExplicitSpectrum([1.0, np.nan], [0.1, 0.1]), 1.0, n_train=10, ridge=0.1)
    with pytest.raises(ValueError, match=r"objective = 'test_eror'.*'test_error'"):
        optimal_ridge(RandomFeatures(10, 20, n_train=30, ridge=0.1), objective="test_eror")
    with pytest.raises(ValueError, match="0 test examples"):
        fresh_means(
            loss("square"), RealLabels(), jnp.zeros(1), lambda key, count: (), jax.random.key(0), 0
        )
    with pytest.raises(ValueError, match="not symmetric"):
        ExplicitSpectrum.from_covariance([[1.0, 0.5], [0.0, 1.0]], [1.0, 0.0])
    with pytest.raises(ValueError, match="features = 'fake'"):
        learn(RandomFeatures(10, 20, n_train=30, ridge=0.1), jax.random.key(0), features="fake")
    with pytest.raises(ValueError, match="whole number"):
        learn(RandomFeatures(10, 20.5, n_train=30, ridge=0.1), jax.random.key(0))


def population_of_classes(omega, shift):
    """The spectrum of classes with the covariance diag(omega) and a shift between them, known
    exactly."""
    known = ExplicitSpectrum.from_covariance(np.diag(omega) + np.outer(shift, shift), shift)
    return PoolSpectrum(known.eigenvalues, known.projections, 1.0, 1e14, within_classes=True)


def test_two_classes_of_gaussian_features():
    """Logistic loss with unequal classes: theory against the mixture itself, extrapolated to
    infinite size from two sizes."""
    rng = np.random.default_rng(2)
    levels, signs = 1 / (1 + np.arange(20) / 5), np.array([-1.0, 1.0])
    # of the classes, with 30 % and 70 % of the examples
    places = (signs - 0.4) / np.sqrt(1 - 0.4**2)
    spectrum = population_of_classes(levels, np.sqrt(3 * levels / 20))
    pool = {"features": jnp.zeros((1, 20)), "targets": jnp.ones(1)}
    theory = THEORY(
        arrays(
            FeaturePool(
                spectrum,
                n_train=40.0,
                ridge=0.1,
                **pool,
                labels=ClassLabels(0.4),
                loss="logistic",
            )
        )
    )
    found = []
    for width in (40, 80):
        omega = np.repeat(levels, width // 20)
        mean = rng.choice(signs, width) * np.sqrt(3 * omega / width)
        runs = []
        for _ in range(6400 // width):
            y = np.where(rng.random(2 * width) < 0.7, 1, -1)
            x = rng.standard_normal((2 * width, width)) * np.sqrt(omega) + np.outer(
                places[(y + 1) // 2], mean
            )
            fit = LogisticRegression(C=10.0, fit_intercept=False, tol=1e-8, max_iter=1000).fit(
                x / np.sqrt(width), y
            )
            a = fit.coef_[0] / np.sqrt(width)
            wrong = norm.cdf(-places * signs * (a @ mean) / np.sqrt(a**2 @ omega)) @ [0.3, 0.7]
            runs.append((a @ mean, wrong, a @ a))
        found.append((np.mean(runs, axis=0), np.std(runs, axis=0, ddof=1) / np.sqrt(len(runs))))
    (small, first), (large, second) = found
    expected = np.array([theory.teacher_overlap, theory.classification_error, theory.weight_power])
    assert np.all(np.abs(2 * large - small - expected) < 5 * np.hypot(2 * second, first)), (
        small,
        large,
        expected,
    )


def test_classes_of_few_examples_are_no_further_apart_than_in_the_mean():
    """Two Gaussian classes, a quarter as many features as examples: chance alone moves the means of
    the classes of the pool so far apart that a fifth of the error would be missing.
    """
    rng, omega = np.random.default_rng(4), 1 / np.arange(1, 61)
    shift = np.sqrt(omega / 60) * rng.standard_normal(60)
    law = {"n_train": 90.0, "ridge": 0.02, "loss": "logistic"}
    fields = {"features": np.zeros((240, 60)), "targets": np.ones(240)}
    right = FeaturePool(
        population_of_classes(omega, shift), labels=ClassLabels(0.0), **fields, **law
    )
    expected = float(THEORY(arrays(right)).classification_error)
    found = []
    for _ in range(20):
        y = rng.permutation(np.repeat([-1.0, 1.0], 120))
        features = rng.standard_normal((240, 60)) * np.sqrt(omega) + np.outer(y, shift)
        pool = FeaturePool.from_data(features, y, **law)
        found.append(float(THEORY(arrays(pool)).classification_error))
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert abs(np.mean(found) - expected) < 4 * error + 0.02 * expected


def test_sums_of_a_pool_tend_to_those_of_its_population():
    """With endless examples nothing is due to chance: the modes of the pool are the population's,
    and within classes those of Omega - s s^T."""
    omega = 1 / np.arange(1, 31)
    shift = np.sqrt(omega / 30) * np.random.default_rng(0).standard_normal(30)
    plain = ExplicitSpectrum(omega, shift**2)
    whole = ExplicitSpectrum.from_covariance(np.diag(omega) + np.outer(shift, shift), shift)
    for known, within in ((whole, False), (plain, True)):
        pool = PoolSpectrum(whole.eigenvalues, whole.projections, 1.0, 1e14, within_classes=within)
        for penalty, stiffness in ((0.1, 0.0), (0.1, 1.0), (1e-6, 1.0), (1e-4, 30.0)):
            ours, theirs = (one.averages(penalty, stiffness) for one in (pool, known))
            for mine, exact in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
                assert float(mine) == pytest.approx(float(exact), rel=1e-8)


@pytest.mark.parametrize("name", ["square", "logistic"])
def test_a_small_pool_is_predicted_from_its_own_examples(name):
    """Two features for five examples: without the correction for chance the error at half of the
    examples would be a fifth too small."""
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], 500)
    features = rng.standard_normal((500, 200)) + np.outer(y, 1.2 * rng.standard_normal(200) / 14)
    which = "test_error" if name == "square" else "classification_error"
    offset = y.mean() if name == "square" else 0.0
    pool = FeaturePool.from_data(features, y - offset, 250, 0.07, loss=name)
    expected = float(getattr(asymptotics(pool), which))
    runs = [float(getattr(learn_pool(pool, jax.random.key(seed)), which)) for seed in range(32)]
    error = np.std(runs, ddof=1) / np.sqrt(32)
    assert abs(np.mean(runs) - expected) < 4 * error + 0.02 * expected
    known = pool.pool_spectrum
    chance = eqx.tree_at(lambda one: one.examples, known, jnp.asarray(1e12))
    naive = float(
        getattr(asymptotics(eqx.tree_at(lambda one: one.pool_spectrum, pool, chance)), which)
    )
    assert naive < 0.85 * np.mean(runs)


@pytest.mark.parametrize("name", ["square", "logistic"])
def test_the_clone_of_a_pool_has_its_sample_covariance(name):
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], 80)
    features = np.exp(rng.standard_normal((80, 10))) + np.outer(y, np.arange(10) / 10)
    pool = FeaturePool.from_data(
        features, y if name != "square" else y - y.mean(), 40, 0.1, loss=name
    )
    clone = gaussian_clone(pool, jax.random.key(0))
    for of in (
        lambda one: one.features.T @ one.features,
        lambda one: one.features.T @ one.field,
        lambda one: jnp.sum(one.field**2),
    ):
        np.testing.assert_allclose(of(clone), of(pool), rtol=1e-9, atol=1e-9)
    assert np.abs(np.asarray(clone.features - pool.features)).max() > 0.1


def test_wrong_classes_of_least_squares(monkeypatch):
    """Unequal classes: the theory's share of wrong signs of prediction and mean within chance, and
    6 % for what is no limit of many features."""
    rng, omega = np.random.default_rng(5), 1 / np.arange(1, 41)
    y = np.where(rng.random(1200) < 0.3, 1.0, -1.0)
    shift = np.sqrt(omega / 40) * rng.standard_normal(40)
    features = rng.standard_normal((1200, 40)) * np.sqrt(omega) + np.outer(y, shift)
    monkeypatch.setattr("orderparam.systems.random_features.forecast.MEASURED", 2)
    monkeypatch.setattr("orderparam.systems.random_features.forecast.DRAWN", 2)
    found = forecast_features(features, y, "square", ridge=0.05, seeds=8, progress=False)
    late = found.measured.sel(n_train=slice(40, None))["classification_error"]
    mean, error = late.mean("seed").values, late.std("seed", ddof=1).values / np.sqrt(8)
    predicted = found.predicted["classification_error"].sel(n_train=late["n_train"]).values
    assert np.all(np.abs(predicted - mean) < 3 * error + 0.06 * mean)
    assert np.all(mean < 0.25)  # fewer than those of the smaller class
    numbers = FeaturePool.from_data(features, features[:, 0], 600, 0.05)
    assert np.isnan(learn_pool(numbers, jax.random.key(0)).classification_error)


def test_a_pool_takes_labels_of_two_classes_only():
    features = np.random.default_rng(0).standard_normal((50, 3))
    with pytest.raises(ValueError, match="needs labels -1 and \\+1"):
        FeaturePool.from_data(features, features[:, 0], 10, 0.1, loss="logistic")
    balanced = FeaturePool.from_data(
        features, np.where(features[:, 0] > 0, 1.0, -1.0), 10, 0.1, loss="hinge"
    )
    np.testing.assert_array_equal(
        balanced.labels.draw(balanced.field, jax.random.key(0)), balanced.targets
    )
    covariance = np.cov(features.T, bias=True)
    total = np.sum(np.asarray(balanced.spectrum.eigenvalues))
    assert np.trace(covariance) == pytest.approx(total, rel=1e-12)


def test_features_on_the_sphere_learn_as_predicted():
    system = SphereFeatures(12, 150, 300, 1e-2, (0, 0.5, 0.3, 0.2), "relu", -0.5, noise=0.1)
    expected = eqx.filter_jit(polynomial_regime)(system)
    runs = [learn_on_sphere(system, jax.random.key(seed), 2000) for seed in range(16)]
    for name in ("excess_risk", "effective_dimension"):
        values = np.array([float(getattr(run, name)) for run in runs])
        error = values.std(ddof=1) / np.sqrt(len(values))
        # of the order of 1/p
        assert abs(values.mean() - float(getattr(expected, name))) < 5 * error + values.mean() / 150


def _three_classes(seed: int, examples: int):
    rng, omega = np.random.default_rng(seed), 1 / np.arange(1, 41)
    classes = rng.choice(3, examples, p=[0.5, 0.3, 0.2])
    centres = np.sqrt(omega) * rng.standard_normal((3, 40)) / 2
    return rng.standard_normal((examples, 40)) * np.sqrt(omega) + centres[classes], classes


@pytest.mark.parametrize("n", [40, 200])
def test_many_classes_are_predicted_from_the_pool(n):
    features, classes = _three_classes(1, 2000)
    pool = ClassPool.from_data(features, classes, n, 0.05)
    theory = class_asymptotics(pool)
    runs = sweep(learn_classes, pool, {"n_train": [n]}, seeds=40)
    for name in ("test_error", "classification_error", "effective_dimension"):
        mean, error = float(runs[name].mean()), float(runs[name].std(ddof=1)) / np.sqrt(40)
        # corrections of order 1/n, for wrong classes of the tails
        share = 0.1 if name == "classification_error" else 0.02
        assert abs(mean - float(getattr(theory, name))) < 4 * error + share * mean, name
    # the sum of the outputs' errors is that of the Gaussian covariate model
    assert abs(float(asymptotics(pool).test_error) / float(theory.test_error) - 1) < 0.02


def test_all_examples_of_a_pool_give_leave_one_out():
    features, classes = _three_classes(2, 150)
    pool = ClassPool.from_data(features, classes, 150, 0.05)
    theory, shares = class_asymptotics(pool), np.bincount(classes) / 150
    y = (np.eye(3)[classes] - shares) / np.sqrt(np.sum(shares * (1 - shares)))
    x = (features - features.mean(axis=0)) / np.sqrt(40)
    errors, wrong = [], []
    for out in range(150):
        kept = np.arange(150) != out
        gram = x[kept].T @ x[kept] + 0.05 * np.eye(40)
        found = x[out] @ np.linalg.solve(gram, x[kept].T @ y[kept])
        errors.append(np.sum((y[out] - found) ** 2))
        scale = np.sqrt(np.sum(shares * (1 - shares)))
        wrong.append(np.argmax(found + shares / scale) != classes[out])
    np.testing.assert_allclose(theory.test_error, np.mean(errors), rtol=1e-9)
    np.testing.assert_allclose(theory.classification_error, np.mean(wrong), atol=1e-12)


def test_classes_that_cannot_be_learned_are_refused():
    features, classes = _three_classes(3, 60)
    for wrong in (classes + 1, np.zeros(60), np.arange(60)):
        with pytest.raises(ValueError, match="whole numbers 0 to K - 1"):
            ClassPool.from_data(features, wrong, 10, 0.1)
    pool = ClassPool.from_data(features, classes, 10, 0.1)
    with pytest.raises(ValueError, match="at most the 60 examples"):
        class_asymptotics(pool.with_(n_train=61.0))
    with pytest.raises(ValueError, match="many classes take the square loss"):
        pool.with_(loss="logistic")
    with pytest.raises(ValueError, match="3 classes take the square loss"):
        forecast_features(features, np.eye(3)[classes], "logistic")


def test_features_with_many_classes_are_forecast(monkeypatch):
    monkeypatch.setattr("orderparam.systems.random_features.forecast.MEASURED", 2)
    monkeypatch.setattr("orderparam.systems.random_features.forecast.DRAWN", 2)
    features, classes = _three_classes(4, 600)
    found = forecast_features(features, np.eye(3)[classes], ridge=0.05, progress=False)
    assert found.classes == 3
    assert found.error == "test_error"
    late = found.measured.sel(n_train=300)
    for name, share in (("test_error", 0.03), ("classification_error", 0.12)):
        mean, error = float(late[name].mean()), float(late[name].std(ddof=1)) / np.sqrt(8)
        assert abs(float(found.predicted[name].sel(n_train=300)) - mean) < 4 * error + share * mean
    assert np.all(np.diff(found.ahead["test_error"]) <= 0)
