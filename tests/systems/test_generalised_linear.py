"""Generalised linear models: state evolution against limits, message passing against state
evolution, refusals."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from orderparam.channels import LogisticLabels, RealLabels, SignLabels
from orderparam.core.grid import point_key
from orderparam.losses import Huber, Quantile
from orderparam.priors import GaussianPrior, MixturePrior, Rademacher, SparsePrior
from orderparam.systems.generalised_linear import (
    ElasticNet,
    GeneralisedLinear,
    InvariantDesign,
    PenalisedFit,
    amp_fixed_point,
    elastic_net,
    fitted_elastic_net,
    fitted_estimator,
    leading_eigenvector,
    message_passing,
    penalised_fit,
    solutions,
    sparse_thresholds,
    spectral,
    state_evolution,
    thresholds,
    vector_message_passing,
    vector_state_evolution,
)

SEEDS = range(4)


def measured(system, name, **options):
    values = [
        float(getattr(message_passing(system, jax.random.key(seed), **options), name))
        for seed in SEEDS
    ]
    return np.mean(values), np.std(values, ddof=1) / np.sqrt(len(values))


@pytest.mark.parametrize("design", ["dense", "sparse"])
@pytest.mark.parametrize(
    ("labels", "prior"),
    [
        (SignLabels(), Rademacher()),
        (LogisticLabels(3.0), SparsePrior(0.3, 3.0)),
        (RealLabels("relu", 0.1), "gaussian"),
    ],
)
def test_message_passing_follows_state_evolution(labels, prior, design):
    system = GeneralisedLinear(1.0, labels, prior, 1000)
    theory = state_evolution(system)
    for name in ("overlap", "error"):
        mean, error = measured(system, name, design=design)
        assert abs(mean - float(getattr(theory, name))) < 4 * error + 0.01
    assert all(
        message_passing(system, jax.random.key(seed), design=design).converged for seed in SEEDS
    )


def test_damping_finds_weights_where_undamped_estimates_grow():
    """On this problem far above the threshold undamped estimates come within 6e-5 and then grow to
    1e32, because the believed variance falls below the error."""
    system = GeneralisedLinear(0.75, RealLabels("linear"), SparsePrior(0.3), 1000)
    key = point_key(11, {"prior.density": 0.3, "sample_ratio": 0.75})
    found = message_passing(system, key, damping=0.3, max_steps=600)
    assert bool(found.converged)
    assert float(found.error) < 1e-10


def test_weights_are_recovered_where_theory_says_so():
    system = GeneralisedLinear(0.45, RealLabels("linear"), SparsePrior(0.2), 1000)
    found = message_passing(system, jax.random.key(0))
    assert found.converged
    assert float(found.error) < 1e-9
    assert float(message_passing(system.with_(sample_ratio=0.3), jax.random.key(0)).error) > 0.01
    binary = GeneralisedLinear(1.7, SignLabels(), Rademacher(), 1000)
    assert float(message_passing(binary, jax.random.key(1)).error) < 1e-6
    assert float(state_evolution(binary).error) == 0.0


def test_an_even_law_hides_the_sign():
    system = GeneralisedLinear(1.35, RealLabels("abs"), GaussianPrior(), 1000)
    found = message_passing(system, jax.random.key(2), damping=0.1, max_steps=1000)
    assert float(found.cosine) > 0.999
    below = message_passing(
        system.with_(sample_ratio=0.3), jax.random.key(2), damping=0.1, max_steps=200
    )
    assert float(below.cosine) < 0.2
    assert not below.converged or float(below.overlap) < 0.05


def test_magnitudes_are_at_rest_from_a_spectral_start_and_hard_to_find():
    """Between n/d = 1 and 1.128 weights are determined: message passing stays next to them, and
    does not come from elsewhere."""
    system = GeneralisedLinear(1.05, RealLabels("abs"), GaussianPrior(), 1000)
    options = {"damping": 0.3, "max_steps": 800}
    for seed in range(3):
        key = jax.random.key(seed)
        found, known = (
            message_passing(system, key, start=start, **options)
            for start in ("spectral", "informed")
        )
        assert float(found.residual) < 1e-4
        assert known.converged
        assert float(known.error) < 1e-9
        assert 0.3 < float(found.error) < 0.7  # 1 - 0.568 by state evolution
    with pytest.raises(ValueError, match="size of a field"):
        message_passing(GeneralisedLinear(1.0, "sign"), jax.random.key(0), start="spectral")


def test_single_precision_finds_the_same():
    system = GeneralisedLinear(1.2, SignLabels(), GaussianPrior(), 600)
    single, double = (
        message_passing(system, jax.random.key(3), precision=p).overlap
        for p in ("single", "double")
    )
    theory = float(state_evolution(system).overlap)
    assert abs(float(single) - theory) < 0.06
    assert abs(float(double) - theory) < 0.06


def test_informed_and_uninformed_starts_differ_between_the_transitions():
    system = GeneralisedLinear(1.4, SignLabels(), Rademacher())
    low, high = (state_evolution(system, start=start) for start in ("uninformed", "informed"))
    assert float(low.overlap) < 0.8
    assert float(high.overlap) == pytest.approx(1.0, abs=1e-12)
    assert float(high.free_entropy) > float(low.free_entropy)


def test_the_free_entropy_of_what_is_known():
    found = state_evolution(GeneralisedLinear(1.4, SignLabels(), Rademacher()), start="informed")
    np.testing.assert_allclose(found.free_entropy, -np.log(2), atol=1e-9)


def test_the_curve_of_solutions_holds_the_fixed_points():
    system = GeneralisedLinear(0.9, SignLabels(0.05), SparsePrior(0.3))
    curve, point = solutions(system), state_evolution(system)
    order = np.argsort(np.asarray(curve.sample_ratio))
    found = np.interp(0.9, np.asarray(curve.sample_ratio)[order], np.asarray(curve.overlap)[order])
    np.testing.assert_allclose(found, point.overlap, rtol=0.02)
    assert np.all(np.asarray(curve.stable)[5:-5])


def test_free_entropy_has_the_slope_of_its_labels():
    """d(free entropy)/d alpha = E ln Z at the solution: nothing else depends on alpha there."""
    step, system = (
        1e-5,
        GeneralisedLinear(0.9, SignLabels(0.02), MixturePrior([0.5, 0.5], [-1.0, 0.5], [0.1, 0.2])),
    )
    free = [
        float(state_evolution(system.with_(sample_ratio=0.9 + s)).free_entropy)
        for s in (-step, step)
    ]
    point = state_evolution(system)
    labels = system.labels.averages(point.overlap, point.error)
    np.testing.assert_allclose((free[1] - free[0]) / (2 * step), labels.free_entropy, rtol=1e-7)


def test_state_evolution_has_the_derivatives_of_its_branch():
    """Linear labels and Gaussian weights: V + q = 1 with V = 1 / (1 + qh), qh = alpha / (noise +
    V) is a quadratic equation.
    """
    ratio, noise = 0.8, 0.3

    def overlap(ratio):
        system = GeneralisedLinear(ratio, RealLabels("linear", noise))
        return state_evolution(system).overlap

    b = ratio + noise - 1
    root = np.sqrt(b**2 + 4 * noise)
    np.testing.assert_allclose(overlap(ratio), 1 - (root - b) / 2, rtol=1e-9)
    np.testing.assert_allclose(jax.grad(overlap)(ratio), (1 - b / root) / 2, rtol=1e-8)


def test_a_branch_that_begins_nowhere_says_so():
    """Binary weights are known at every sample ratio, if they are known at all; Gaussian ones
    not."""
    assert thresholds(GeneralisedLinear(1.0, SignLabels(), Rademacher())).informed_always
    assert not thresholds(GeneralisedLinear(1.0, RealLabels("linear", 0.3))).informed_always


def test_a_smooth_problem_has_no_transition():
    found = thresholds(GeneralisedLinear(1.0, RealLabels("linear", 0.3)))
    assert not found.first_order
    assert float(found.weak) == 0.0
    assert np.isinf(float(found.algorithmic))


def test_thresholds_of_sparse_weights_are_ordered():
    for density in (0.1, 0.5):
        system = GeneralisedLinear(1.0, RealLabels("linear"), SparsePrior(density))
        ways = ("determined", "message passing", "l1 norm")
        needed = [float(sparse_thresholds(system, way=way).sample_ratio_needed) for way in ways]
        assert needed == sorted(needed)
        assert needed[0] == density
    full = GeneralisedLinear(1.0, RealLabels("linear"), SparsePrior(1.0))
    np.testing.assert_allclose(
        sparse_thresholds(full, way="l1 norm").sample_ratio_needed, 1.0, rtol=1e-8
    )


def test_what_cannot_be_done_is_refused_by_name():
    with pytest.raises(ValueError, match=r"GeneralisedLinear\.labels = 'sgn'"):
        GeneralisedLinear(1.0, "sgn")
    with pytest.raises(ValueError, match=r"GeneralisedLinear\.prior"):
        sparse_thresholds(GeneralisedLinear(1.0, "linear"))
    with pytest.raises(ValueError, match=r"GeneralisedLinear\.labels"):
        sparse_thresholds(GeneralisedLinear(1.0, "sign", "sparse"))
    with pytest.raises(ValueError, match="sample_ratio"):
        message_passing(GeneralisedLinear(1e-4, "sign", "gaussian", 100), jax.random.key(0))


@pytest.mark.parametrize(("l1", "ridge"), [(0.2, 0.0), (0.1, 0.2), (0.0, 0.3)])
def test_estimators_of_scikit_learn_follow_state_evolution(l1, ridge):
    system = ElasticNet(0.8, l1, ridge, 0.05, SparsePrior(0.2), 400)
    theory, runs = (
        elastic_net(system),
        [fitted_elastic_net(system, jax.random.key(seed)) for seed in range(8)],
    )
    assert all(run.converged for run in runs)
    for name in ("error", "overlap", "support", "train_error"):
        values = [float(getattr(run, name)) for run in runs]
        error = np.std(values, ddof=1) / np.sqrt(len(values))
        assert abs(np.mean(values) - float(getattr(theory, name))) < 4 * error + 0.003, name


def test_ridge_of_gaussian_weights_is_optimal_at_the_noise_and_nowhere_else():
    best = state_evolution(GeneralisedLinear(1.5, RealLabels("linear", 0.5)))
    found = [
        float(elastic_net(ElasticNet(1.5, 0.0, ridge, 0.5, GaussianPrior())).error)
        for ridge in (0.3, 0.5, 0.8)
    ]
    np.testing.assert_allclose(found[1], best.error, rtol=1e-9)
    assert min(found[0], found[2]) > found[1]


def test_no_penalised_fit_beats_the_optimal_estimator():
    best = float(
        state_evolution(GeneralisedLinear(0.8, RealLabels("linear", 0.05), SparsePrior(0.2))).error
    )
    for l1, ridge in ((0.1, 0.0), (0.2, 0.05), (0.0, 0.1)):
        assert float(elastic_net(ElasticNet(0.8, l1, ridge, 0.05, SparsePrior(0.2))).error) > best
    nothing = elastic_net(ElasticNet(0.8, 50.0, 0.0, 0.05, SparsePrior(0.2)))
    assert nothing.converged
    np.testing.assert_allclose([nothing.error, nothing.support], [0.2, 0.0], atol=1e-12)


def test_a_fit_without_penalties_is_refused():
    with pytest.raises(ValueError, match=r"ElasticNet\.l1 = 0"):
        ElasticNet(0.8, 0.0, 0.0)


@pytest.mark.parametrize("labels", ["relu", "abs"])
def test_the_leading_eigenvector_is_where_theory_puts_it(labels):
    system = GeneralisedLinear(2.0, labels, GaussianPrior(), 1000)
    theory, runs = (
        spectral(system),
        [leading_eigenvector(system, jax.random.key(seed)) for seed in range(6)],
    )
    for name in ("cosine", "eigenvalue"):
        values = [float(getattr(run, name)) for run in runs]
        error = np.std(values, ddof=1) / np.sqrt(len(values))
        assert abs(np.mean(values) - float(getattr(theory, name))) < 4 * error + 0.01, name
    assert float(theory.eigenvalue) > float(theory.edge)


@pytest.mark.parametrize(("labels", "weak"), [("relu", 1.0), ("abs", 0.5)])
def test_with_few_samples_the_bulk_ends_at_the_sample_of_the_largest_weight(labels, weak):
    """T tends to one, so that a single sample has the eigenvalue |x|^2 / n = d / n. The quadrature
    has no such label."""
    for ratio in (0.05, 0.13, 0.4, weak):
        found = spectral(GeneralisedLinear(ratio, labels))
        assert found.converged
        assert float(found.edge) == pytest.approx(1 / ratio, rel=1e-9)
        assert float(found.cosine) == 0
    seen = 1.02 * weak
    assert float(spectral(GeneralisedLinear(seen, labels)).edge) < (1 - 1e-5) / seen


def test_the_eigenvector_stands_out_from_weak_recovery_on():
    weak = 0.5
    for ratio, out in ((0.98 * weak, False), (1.02 * weak, True)):
        assert (float(spectral(GeneralisedLinear(ratio, "abs")).cosine) > 0) is out
    with pytest.raises(ValueError, match="size of a field"):
        spectral(GeneralisedLinear(1.0, "sign"))


@pytest.mark.parametrize(
    "system",
    [
        PenalisedFit(3.0, "hinge", "sign", 0.0, 0.1, "gaussian", 300),
        PenalisedFit(2.0, "logistic", "logistic", 0.3, 0.1, SparsePrior(0.3, 9.0), 300),
        PenalisedFit(2.0, Huber(0.5), RealLabels("linear", 0.3), 0.0, 0.2, "gaussian", 300),
        PenalisedFit(
            2.0, Quantile(0.5), RealLabels("linear", 0.3), 0.1, 0.0, SparsePrior(0.3), 300
        ),
    ],
)
def test_estimators_follow_the_theory_of_their_loss(system):
    theory, runs = (
        penalised_fit(system),
        [fitted_estimator(system, jax.random.key(seed)) for seed in range(8)],
    )
    assert theory.converged
    assert all(run.converged for run in runs)
    for name in (
        "teacher_overlap",
        "self_overlap",
        "support",
        "test_error",
        "train_error",
        "test_loss",
        "train_loss",
    ):
        values, expected = [float(getattr(run, name)) for run in runs], float(getattr(theory, name))
        error = np.std(values, ddof=1) / np.sqrt(len(values))
        assert abs(np.mean(values) - expected) < 4.5 * error + 0.01 * max(1, abs(expected)), name


def test_a_huber_loss_without_limit_is_the_square_loss():
    labels = RealLabels("linear", 0.3)
    square, huber = (
        penalised_fit(PenalisedFit(2.0, loss, labels, 0.1, 0.2)) for loss in ("square", Huber(1e3))
    )
    np.testing.assert_allclose(huber.test_error, square.test_error, rtol=1e-8)


def test_fits_that_do_not_fit_are_refused_by_name():
    with pytest.raises(ValueError, match=r"PenalisedFit\.loss.*hubert"):
        PenalisedFit(1.0, "hubert")
    with pytest.raises(ValueError, match="needs linear labels"):
        PenalisedFit(1.0, "huber", "sign")
    with pytest.raises(ValueError, match="needs labels -1 and"):
        PenalisedFit(1.0, "hinge", "linear")
    with pytest.raises(ValueError, match=r"PenalisedFit\.ridge = 0"):
        PenalisedFit(1.0, "square", "sign", 0.0, 0.0)
    with pytest.raises(ValueError, match="there is no estimator"):
        fitted_estimator(PenalisedFit(1.0, "hinge", "sign", 0.1, 0.1), jax.random.key(0))


@pytest.mark.parametrize("condition", [1.0, 10.0])
def test_vamp_follows_its_state_evolution_where_gamp_diverges(condition):
    system = InvariantDesign(1.5, condition, 0.05, SparsePrior(0.2), 800)
    theory, runs = (
        vector_state_evolution(system),
        [vector_message_passing(system, jax.random.key(seed)) for seed in range(6)],
    )
    assert theory.converged
    assert all(run.converged for run in runs)
    for name in ("error", "overlap"):
        values = [float(getattr(run, name)) for run in runs]
        error = np.std(values, ddof=1) / np.sqrt(len(values))
        assert abs(np.mean(values) - float(getattr(theory, name))) < 4.5 * error + 0.001, name
    if condition > 1:
        assert not vector_message_passing(system, jax.random.key(0), algorithm="gamp").converged


def test_gaussian_weights_make_vamp_ridge_regression():
    """One row for every weight, all singular values one: E = noise / (1 + noise)."""
    found = vector_state_evolution(InvariantDesign(1.0, 1.0, 0.3, GaussianPrior()))
    np.testing.assert_allclose(found.error, 0.3 / 1.3, rtol=1e-9)


@pytest.mark.parametrize(
    "system",
    [
        GeneralisedLinear(0.3, RealLabels("linear"), SparsePrior(0.2)),
        GeneralisedLinear(1.3, "sign", "rademacher"),
        GeneralisedLinear(1.6, "sign", "rademacher"),
        GeneralisedLinear(0.4, RealLabels("abs"), "gaussian"),
        GeneralisedLinear(0.9, RealLabels("abs"), "gaussian"),
    ],
    ids=["sparse", "signs", "signs known", "phase retrieval below", "phase retrieval"],
)
def test_the_first_root_is_where_the_iteration_ends(system):
    found, iterated = amp_fixed_point(system), state_evolution(system, max_steps=20_000)
    assert found.converged
    np.testing.assert_allclose(
        [found.overlap, found.error], [iterated.overlap, iterated.error], rtol=1e-8, atol=2e-8
    )


@pytest.mark.parametrize("sample_ratio", [0.6, 1.02])
def test_the_last_root_is_where_the_informed_iteration_ends(sample_ratio):
    system = GeneralisedLinear(sample_ratio, RealLabels("linear", 1e-3), SparsePrior(0.2))
    found, iterated = (
        amp_fixed_point(system, start="informed"),
        state_evolution(system, start="informed"),
    )
    assert found.converged
    np.testing.assert_allclose(
        [found.overlap, found.error], [iterated.overlap, iterated.error], rtol=1e-8
    )


def test_informed_magnitudes_are_known_from_one_sample_per_weight_on():
    """Between 1 and 1.128 from an informed start only; below 1 both starts end at the same
    solution."""
    below, above = (
        GeneralisedLinear(ratio, RealLabels("abs"), "gaussian") for ratio in (0.98, 1.02)
    )
    np.testing.assert_allclose(
        amp_fixed_point(below, start="informed").error, amp_fixed_point(below).error, rtol=1e-8
    )
    assert amp_fixed_point(above).error > 0.3
    assert amp_fixed_point(above, start="informed").error == 0


def test_the_first_root_ends_at_the_algorithmic_threshold():
    system = GeneralisedLinear(0.5, RealLabels("linear"), SparsePrior(0.2))
    threshold = float(thresholds(system).algorithmic)
    below, above = (
        amp_fixed_point(replace(system, sample_ratio=threshold * (1 + step)))
        for step in (-1e-9, 1e-9)
    )
    assert below.error > 0.02
    assert above.error == 0


def test_slope_of_the_first_root():
    system = GeneralisedLinear(0.3, RealLabels("linear"), SparsePrior(0.2))

    def overlap(alpha):
        return amp_fixed_point(replace(system, sample_ratio=alpha)).overlap

    step = 1e-4
    np.testing.assert_allclose(
        jax.grad(overlap)(0.3), (overlap(0.3 + step) - overlap(0.3 - step)) / (2 * step), rtol=1e-6
    )


def test_the_overlap_of_the_spectral_estimate_is_that_of_its_best_multiple():
    """E w <w> = cosine^2 E w^2, in theory and measured."""
    system = GeneralisedLinear(2.0, "abs", GaussianPrior(4.0), input_dim=300)
    found = spectral(system)
    assert float(found.overlap) == pytest.approx(float(found.cosine) ** 2 * 4.0, rel=1e-12)
    run = leading_eigenvector(system, jax.random.key(0))
    assert float(run.overlap) == pytest.approx(float(run.cosine) ** 2 * 4.0, rel=1e-12)
