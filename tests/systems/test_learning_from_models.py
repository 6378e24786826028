"""Learning from models: limits, minima, and chains that were drawn."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from orderparam.kernels.effective_ridge import effective_ridge
from orderparam.kernels.spectrum import Spectrum
from orderparam.systems.learning_from_models import (
    ModelChain,
    PoolChain,
    ShiftedPool,
    best_labels,
    best_mixing,
    drawn_generations,
    drawn_labels,
    drawn_shift,
    generation_errors,
    shifted_errors,
)
from orderparam.systems.learning_from_models.experiment import _regular, _ridge_map
from orderparam.systems.learning_from_models.studies import draw_best_ridges

K = np.arange(1, 121)
SPECTRUM = Spectrum(K**-2.0, K**-1.5)
CHAIN = ModelChain(SPECTRUM, n_train=60, ridge=0.1, noise=0.05, generations=3)


def test_one_generation_is_kernel_regression():
    solved = effective_ridge(SPECTRUM, 60, 0.1)
    unlearned = np.sum((1 - np.asarray(solved.learnability)) ** 2 * K**-1.5)
    # without the noise of a test label
    exact = (unlearned + 0.05 * solved.spread) / solved.complement
    np.testing.assert_allclose(generation_errors(CHAIN).test_error[0], exact, rtol=1e-12)


def test_more_examples_than_modes_and_no_ridge_is_least_squares():
    """Bias 0 and the variance s p/(n - p) for every generation, added up."""
    chain = ModelChain(SPECTRUM, n_train=480, ridge=0.0, noise=0.2, generations=4)
    found = generation_errors(chain)
    np.testing.assert_allclose(found.bias, 0, atol=1e-14)
    one = 0.2 * 120 / (480 - 120)
    np.testing.assert_allclose(found.variance, one * np.arange(1, 5), rtol=1e-12)


def test_levels_are_modes_counted():
    counted = Spectrum([2.0, 0.5], [0.6, 0.4], [3, 2])
    separate = Spectrum([2.0] * 3 + [0.5] * 2, [0.2] * 5)
    errors = [
        generation_errors(CHAIN.with_(spectrum=each, n_train=4)).test_error
        for each in (counted, separate)
    ]
    np.testing.assert_allclose(*errors, rtol=1e-12)


def test_true_labels_alone_make_every_generation_the_first():
    found = generation_errors(CHAIN.with_(truth_share=1.0)).test_error
    np.testing.assert_allclose(found, found[0], rtol=1e-12)


def test_errors_grow_with_the_generations():
    for ridge, noise in ((0.0, 0.0), (0.1, 0.0), (1.0, 0.5)):
        chain = CHAIN.with_(ridge=ridge, noise=noise)
        found = generation_errors(chain)
        assert np.all(np.diff(found.test_error) > 0)
        assert found.final_error == found.test_error[-1]


def test_the_law_of_training_as_that_of_tests_changes_nothing():
    same = CHAIN.with_(test_eigenvalues=K**-2.0)
    np.testing.assert_allclose(
        generation_errors(same).test_error, generation_errors(CHAIN).test_error, rtol=1e-12
    )


def test_the_best_mixture_is_the_lowest_of_all():
    chain = CHAIN.with_(teacher_noise=0.5, noise=0.0, teacher_n_train=40.0, generations=2)
    best = best_mixing(chain)
    shares = np.linspace(float(best.truth_share) - 0.5, float(best.truth_share) + 0.5, 11)
    errors = [float(generation_errors(chain.with_(truth_share=w)).test_error[1]) for w in shares]
    assert np.argmin(errors) == 5
    np.testing.assert_allclose(errors[5], best.test_error, rtol=1e-10)
    for share, name in ((0.0, "teacher_error"), (1.0, "truth_error")):
        found = generation_errors(chain.with_(truth_share=share)).test_error[1]
        np.testing.assert_allclose(found, getattr(best, name), rtol=1e-12)


def test_the_best_labels_are_a_minimum_and_masks_lie_between():
    chain = CHAIN.with_(ridge=0.0)
    found = best_labels(chain)
    assert found.optimal_error < found.mask_error < found.truth_error
    np.testing.assert_allclose(jnp.min(found.error_by_kept), found.mask_error, rtol=1e-12)
    np.testing.assert_allclose(found.error_by_kept[-1], found.truth_error, rtol=1e-12)
    silent = best_labels(chain.with_(noise=0.0))
    np.testing.assert_allclose(silent.error_by_kept[0], np.sum(K**-1.5), rtol=1e-12)


def test_gradients_are_those_of_differences():
    def error(ridge, noise, share):
        chain = CHAIN.with_(ridge=ridge, noise=noise, truth_share=share)
        return generation_errors(chain).test_error[-1]

    at = np.array([0.1, 0.05, 0.3])
    slopes = jax.grad(lambda u: error(*u))(jnp.asarray(at))
    for i in range(3):
        shift = np.eye(3)[i] * at[i] * 1e-5
        difference = (error(*(at + shift)) - error(*(at - shift))) / (2e-5 * at[i])
        np.testing.assert_allclose(slopes[i], difference, rtol=1e-6)


def _within(values, exact, most):
    mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))
    assert np.max(error / exact) < most
    assert np.max(np.abs(mean - exact) / error) < 3.7


def test_drawn_chains_meet_the_theory():
    chain = CHAIN.with_(
        teacher_n_train=90, teacher_noise=0.2, truth_share=0.2, test_eigenvalues=K**-1.7
    )
    keys = jax.random.split(jax.random.key(0), 200)
    drawn = jax.vmap(lambda key: drawn_generations(chain, key).test_error)(keys)
    _within(np.asarray(drawn), np.asarray(generation_errors(chain).test_error), 0.02)


@pytest.mark.parametrize("examples", [60, 300])
def test_a_ridge_has_the_same_weights_by_either_factor(examples):
    x = jax.random.normal(jax.random.key(0), (examples, 120)) / K
    labels = jax.random.normal(jax.random.key(1), (examples,))
    found = [np.asarray(_ridge_map(x, 0.3, labels, regular)) for regular in (True, False)]
    np.testing.assert_allclose(*found, atol=1e-10)


def test_a_ridge_that_may_leave_the_gram_matrix_singular_is_not_regular():
    assert _regular(CHAIN, 0.1, 60)
    assert not _regular(CHAIN, 1e-9, 60)
    assert not _regular(CHAIN, 0.0, 60)


def test_drawn_labels_meet_the_theory():
    spectrum = Spectrum(np.arange(1, 201) ** -2.0, np.arange(1, 201) ** -1.5)
    chain = ModelChain(spectrum, n_train=100, ridge=0.01, noise=0.02)
    keys = jax.random.split(jax.random.key(1), 100)
    drawn = jax.vmap(lambda key: drawn_labels(chain, key))(keys)
    best = best_labels(chain)
    for name in ("truth_error", "optimal_error", "mask_error"):
        _within(np.asarray(getattr(drawn, name)), float(getattr(best, name)), 0.02)
    gain = np.asarray(drawn.truth_error - drawn.mask_error)  # on the same inputs
    _within(gain, float(best.truth_error - best.mask_error), 0.1)


def test_a_pool_of_gaussian_features_is_the_chain_of_its_spectrum():
    """A large pool, so that examples seldom meet twice."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((800, 40)) * np.arange(1, 41) ** -1.0
    targets = x @ rng.standard_normal(40)
    pool = PoolChain.from_kernel(x @ x.T, targets, n_train=30, ridge=0.1, noise=0.1)
    assert pool.features.shape == (800, 40)
    np.testing.assert_allclose(pool.features @ pool.coefficients, targets, rtol=1e-7, atol=1e-9)
    keys = jax.random.split(jax.random.key(0), 200)
    drawn = np.asarray(jax.vmap(lambda key: drawn_generations(pool, key).test_error)(keys))
    exact = np.asarray(generation_errors(pool).test_error)
    np.testing.assert_allclose(drawn.mean(axis=0), exact, rtol=0.06)


def test_what_is_refused():
    key = jax.random.key(0)
    with pytest.raises(ValueError, match="tail"):
        ModelChain(Spectrum([1.0], [1.0], tail=0.1), n_train=3, ridge=0.1)
    with pytest.raises(ValueError, match="eigenvalues that are 0"):
        ModelChain(Spectrum([1.0, 0.0], [1.0, 1.0]), n_train=3, ridge=0.1)
    with pytest.raises(ValueError, match=r"ModelChain.test_eigenvalues has 2"):
        ModelChain(Spectrum([1.0], [1.0]), [1.0, 2.0], n_train=3, ridge=0.1)
    with pytest.raises(ValueError, match=r"n_train = 60\.5"):
        drawn_generations(CHAIN.with_(n_train=60.5), key)
    with pytest.raises(ValueError, match="must be 1"):
        drawn_labels(CHAIN.with_(spectrum=Spectrum([1.0], [1.0], [3])), key)


def test_a_student_of_many_labels_helps_if_its_teacher_scatters():
    """dE/dkappa at kappa = 0 is 2 sum [(beta - m) m - v], m and v of the teacher's weights."""
    modes = np.arange(1, 41)
    spectrum, count = Spectrum(modes**-2.0, modes**-2.5), 1e9
    solved = effective_ridge(spectrum, 30, 0.05)
    learned, threshold = np.asarray(solved.learnability), float(solved.threshold)
    error = (np.sum(modes**-2.5 * (1 - learned) ** 2) + 0.1) / float(solved.complement)
    scatter = modes**-2.0 / (modes**-2.0 + threshold) ** 2 * error / 30
    beta = modes**-0.25
    slope = 2 * np.sum((1 - learned) * learned * beta**2 - scatter)
    chain = ModelChain(
        spectrum,
        n_train=count,
        ridge=0.0,
        teacher_n_train=30,
        teacher_ridge=0.05,
        teacher_noise=0.1,
    )

    def at(kappa):
        return float(generation_errors(chain.with_(ridge=count * kappa)).test_error[1])

    found = (4 * at(1e-5) - at(2e-5) - 3 * at(0.0)) / 2e-5
    assert found == pytest.approx(slope, rel=1e-3)


@pytest.mark.parametrize("decay", [1.5, 2.0, 2.5])
def test_a_shift_sets_the_exponent_of_the_learning_curve(decay):
    """Error ~ n^(1 - p') with lambda' beta^2 ~ k^-p', here p' = decay, at a vanishing ridge."""
    modes = np.arange(1, 200_001)
    chain = ModelChain(
        Spectrum(modes**-2.0, modes**-2.0), modes**-decay, n_train=200, ridge=1e-12, generations=1
    )
    errors = [float(generation_errors(chain.with_(n_train=n)).test_error[0]) for n in (200, 800)]
    assert np.log(errors[1] / errors[0]) / np.log(4) == pytest.approx(1 - decay, abs=0.03)


def _shifted_pool(laws=None, **numbers):
    """A pool of 60 inputs of 12 features, tested on itself and on 40 others with larger inputs."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((100, 12)) * np.arange(1, 13) ** -1.0
    x[60:] *= 1.5
    y = x @ rng.standard_normal(12)
    if laws is None:
        laws = np.zeros((2, 100))
        laws[0, :60], laws[1, 60:] = 1 / 60, 1 / 40
    numbers = {"n_train": 20, "ridge": 0.5, "noise": 0.1} | numbers
    return ShiftedPool.from_kernels(x[:60] @ x[:60].T, x @ x[:60].T, y[:60], y, laws, **numbers)


def test_tests_on_the_pool_itself_are_no_shift():
    shifted = _shifted_pool()
    found = shifted_errors(shifted)
    own = generation_errors(shifted.with_(generations=1))
    np.testing.assert_allclose(found.test_error[0], own.test_error[0], rtol=1e-9)
    np.testing.assert_allclose(found.bias[0], own.bias[0], rtol=1e-9)


def test_a_mixture_of_laws_has_the_mean_of_their_errors():
    one = _shifted_pool()
    mixed = one.with_(laws=np.array([[0.25, 0.75]]) @ one.laws)
    np.testing.assert_allclose(
        shifted_errors(mixed).test_error[0],
        np.array([0.25, 0.75]) @ shifted_errors(one).test_error,
        rtol=1e-12,
    )


def test_a_law_with_the_eigenvectors_of_training_is_that_of_other_variances():
    spectrum = Spectrum([2.0, 0.5, 0.1], [0.6, 0.3, 0.1])
    rng = np.random.default_rng(3)
    basis = np.linalg.qr(rng.standard_normal((30, 3)))[0] * np.sqrt(30)
    x = basis * np.sqrt(spectrum.eigenvalues)
    y = x @ np.sqrt(spectrum.target_power / spectrum.eigenvalues)
    other = np.array([3.0, 0.2, 0.4])
    new = basis * np.sqrt(other)
    truth = new @ np.sqrt(spectrum.target_power / spectrum.eigenvalues)
    laws = np.full((1, 30), 1 / 30)
    shifted = ShiftedPool.from_kernels(x @ x.T, new @ x.T, y, truth, laws, n_train=5, ridge=0.2)
    chain = ModelChain(spectrum, other, n_train=5, ridge=0.2, generations=1)
    np.testing.assert_allclose(
        shifted_errors(shifted).test_error, generation_errors(chain).test_error, rtol=1e-9
    )


def test_regressions_on_gaussian_features_meet_the_theory_of_a_shift():
    shifted = _shifted_pool(n_train=40)
    keys = jax.random.split(jax.random.key(4), 400)
    drawn = jax.vmap(lambda key: drawn_shift(shifted, key, gaussian=True).test_error)(keys)
    _within(np.asarray(drawn), np.asarray(shifted_errors(shifted).test_error), 0.03)


def test_regression_on_the_pool_is_kernel_regression():
    """By the kernel matrix, with all inputs of the pool as one training set."""
    shifted = _shifted_pool(noise=0.0)
    x = np.asarray(shifted.features)[:20]
    weights = _ridge_map(jnp.asarray(x), 0.5, x @ shifted.coefficients, True)
    rng = np.random.default_rng(2)
    z = rng.standard_normal((100, 12)) * np.arange(1, 13) ** -1.0
    z[60:] *= 1.5
    y = z @ rng.standard_normal(12)
    alpha = np.linalg.solve(z[:20] @ z[:20].T + 0.5 * np.eye(20), y[:20])
    np.testing.assert_allclose(shifted.new_features @ weights, z @ z[:20].T @ alpha, atol=1e-10)


def test_laws_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="must sum to 1"):
        _shifted_pool(laws=np.full((1, 100), 0.02))
    with pytest.raises(ValueError, match="must have new = 100"):
        _shifted_pool(laws=np.full((1, 50), 0.02))
    for value in ("text", 10**400):
        with pytest.raises(ValueError, match=r"ShiftedPool\.laws"):
            _shifted_pool(laws=value)


@pytest.mark.parametrize(
    "beside", ["text", 10**400, np.nan, [], np.ones((4, 59)), [[np.inf] * 60]], ids=range(6)
)
def test_a_kernel_beside_the_pool_that_does_not_fit_is_refused_by_name(beside):
    one, targets, laws = np.eye(60), np.ones(4), np.full((1, 4), 0.25)
    with pytest.raises(ValueError, match=r"^beside "):
        ShiftedPool.from_kernels(one, beside, np.ones(60), targets, laws, n_train=9, ridge=1.0)


@pytest.mark.parametrize(("best", "marked"), [(0.1, ["$T$ = 0.10"]), (1e-4, []), (100.0, [])])
def test_the_best_ridge_is_marked_unless_it_is_at_an_end_of_the_line(best, marked):
    ridge = np.geomspace(1e-3, 10, 41)
    error = 1 + np.log(ridge / best) ** 2
    line = xr.Dataset({"test_error": (("ridge", "generation"), error[:, None])}, {"ridge": ridge})
    runs = line.isel(ridge=[0, 20]).expand_dims(seed=4)
    comparison = SimpleNamespace(
        theories=lambda panel: {"theory": line}, experiments=lambda panel: {"runs": runs}
    )
    _, axes = plt.subplots()
    draw_best_ridges(axes, comparison)
    assert [text.get_text() for text in axes.texts] == marked
    plt.close("all")
