"""Learning curves of kernel regression against independently computed values, to all digits
known."""

import os
from decimal import Decimal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.data import binary, centre, load, normalise, parity
from orderparam.gaussian.activations import activation
from orderparam.kernels.cross_validation import generalized_cross_validation
from orderparam.kernels.effective_ridge import effective_ridge
from orderparam.kernels.spectra import finite_rank, power_law, sphere
from orderparam.kernels.spectrum import Spectrum
from orderparam.networks import fully_connected
from orderparam.systems.kernel_regression import (
    HeteroscedasticRegression,
    KernelRegression,
    PoolRegression,
    annealed,
    cavity,
    equivalent_kernel,
    equivalent_kernel_corrected,
    equivalent_kernel_on_pool,
    heteroscedastic,
    optimal_temperature,
    renormalization_group,
    scaling_law,
    self_consistent,
)
from orderparam.systems.renormalization import DecimatedRegression, decimation_flow


def printed(text):
    """Equality with a number to all the digits it is printed with."""
    return pytest.approx(float(text), rel=0, abs=0.501 * 10.0 ** Decimal(text).as_tuple().exponent)


def compiled(theory):
    return eqx.filter_jit(lambda system: theory(system))


SELF_CONSISTENT = compiled(self_consistent)
EQUIVALENT_KERNEL = compiled(equivalent_kernel)
CAVITY = compiled(cavity)
DECIMATED = eqx.filter_jit(
    lambda system, threshold: renormalization_group(system, threshold=threshold)
)
FLOW = compiled(decimation_flow)
BEST = compiled(optimal_temperature)


def at(system, n_train, temperature, noise=0.0):
    """The system at other numbers, all of them arrays: one compilation serves all."""
    numbers = {"n_train": n_train, "temperature": temperature, "noise": noise}
    return system.with_(**{name: jnp.asarray(float(value)) for name, value in numbers.items()})


# Power law with 1000 modes: lambda_k = k^-1.5, y_k^2 = k^-2

K = np.arange(1.0, 1001)
MODES = KernelRegression(Spectrum(K**-1.5, K**-2), 1.0, 1.0)

# T, P, kappa, gamma, population error, train error, posterior variance, equivalent-kernel error
TABLE = [
    ("1e-3", 20, "0.0358744163", "0.34562938", "0.13230898", "2.570157e-7", "0.716488", "0.000414"),
    (
        "1e-3",
        100,
        "0.0027566922",
        "0.40438159",
        "0.02494521",
        "3.282545e-7",
        "0.274669",
        "0.000036",
    ),
    (
        "1e-3",
        200,
        "0.0008228924",
        "0.45296969",
        "0.01116763",
        "4.123015e-7",
        "0.163578",
        "0.000011",
    ),
    ("0.1", 50, "0.0115559816", "0.30536424", "0.05786633", "1.733294e-3", "0.477799", "0.011809"),
    ("0.1", 100, "0.0042714227", "0.30094469", "0.02893470", "1.585893e-3", "0.327142", "0.007086"),
    ("10", 20, "0.5838313561", "0.03464340", "0.55057514", "4.038144e-1", "1.676627", "0.484429"),
    ("10", 50, "0.2259642518", "0.03371687", "0.30386972", "2.380499e-1", "1.298213", "0.271230"),
    ("10", 100, "0.1104212028", "0.03008357", "0.18919539", "1.551692e-1", "1.042120", "0.171827"),
]


@pytest.mark.parametrize(
    ("temperature", "n_train", "kappa", "gamma", "error", "train", "variance", "ek"), TABLE
)
def test_self_consistent_table(temperature, n_train, kappa, gamma, error, train, variance, ek):
    system = at(MODES, n_train, float(temperature))
    curve = SELF_CONSISTENT(system)
    ridge = eqx.filter_jit(effective_ridge)(system.spectrum, system.n_train, system.temperature)
    assert float(ridge.threshold) == printed(kappa)
    assert float(ridge.spread) == printed(gamma)
    assert float(curve.test_error) == float(curve.population_error) == printed(error)
    assert float(curve.train_error) == printed(train)
    assert float(curve.posterior_variance) == printed(variance)
    assert float(EQUIVALENT_KERNEL(system).test_error) == printed(ek)
    assert curve.converged


def test_slope_of_the_threshold():
    slope = eqx.filter_jit(jax.grad(lambda t: effective_ridge(MODES.spectrum, 100.0, t).threshold))(
        0.1
    )
    assert float(slope) == printed("0.0143050197932555")


@pytest.mark.parametrize(
    ("n_train", "error"), [(20, "0.2273757568"), (100, "0.1150350967"), (200, "0.0966040999")]
)
def test_label_noise(n_train, error):
    assert float(SELF_CONSISTENT(at(MODES, n_train, 0.1, 0.2)).test_error) == printed(error)


@pytest.mark.parametrize(("n_train", "error"), [(20, "0.55142"), (100, "0.18892")])
def test_first_correction_to_the_equivalent_kernel(n_train, error):
    assert float(equivalent_kernel_corrected(at(MODES, n_train, 10.0)).test_error) == printed(error)


# T, P, threshold, modes kept, renormalised ridge, error, exact renormalised ridge
DECIMATION = [
    ("1e-3", 20, 0.01, 196, "0.08044541", "0.13230244", "0.08010044"),
    ("1e-3", 20, 0.1, 39, "0.25598680", "0.13390691", None),
    ("0.1", 20, 0.01, 173, "0.18860802", "0.14062658", "0.18823718"),
    ("10", 20, 0.01, 30, "10.29890108", "0.55082894", "10.29798686"),
    ("10", 100, 0.01, 92, "10.14471959", "0.18928178", "10.14419797"),
]


@pytest.mark.parametrize(
    ("temperature", "n_train", "threshold", "modes", "ridge", "error", "exact"), DECIMATION
)
def test_decimation(temperature, n_train, threshold, modes, ridge, error, exact):
    system = at(MODES, n_train, float(temperature))
    curve = DECIMATED(system, jnp.asarray(threshold))
    assert int(curve.mode_count) == modes
    assert float(curve.renormalized_ridge) == printed(ridge)
    assert float(curve.test_error) == printed(error)
    flow = FLOW(DecimatedRegression(system.spectrum, system.n_train, system.temperature))
    assert float(flow.ridge[modes - 1]) == printed(ridge)
    assert exact is None or float(flow.exact_ridge[modes - 1]) == printed(exact)


def test_the_equivalent_kernel_after_decimation_is_far_too_optimistic():
    curve = renormalization_group(at(MODES, 20, 1e-3), residual="equivalent_kernel")
    assert float(curve.test_error) == printed(".01972662")


@pytest.mark.parametrize(
    ("n_train", "error", "ridge"), [(50, ".0356", ".484"), (100, ".0158", ".302")]
)
def test_annealed_theory_enlarges_the_ridge_and_misses_the_variance(n_train, error, ridge):
    curve = annealed(at(MODES, n_train, 1e-3))
    assert float(curve.test_error) == printed(error)
    assert float(curve.effective_ridge) == printed(ridge)
    assert curve.converged


@pytest.mark.parametrize(
    ("n_train", "error", "uniform"),
    [(40, ".0392922", ".122255"), (80, ".00123278", ".0292004"), (160, "1.195589e-4", ".00658019")],
)
def test_position_dependent_ridge_after_decimation_of_a_patchy_sector(n_train, error, uniform):
    spectrum = Spectrum(1 / K[:20], np.full(20, 1 / 20))
    patchy = HeteroscedasticRegression(
        spectrum,
        n_train,
        1e-3,
        weights=jnp.array([0.5, 0.5]),
        extra_temperature=jnp.array([0.05, 1.95]),
        extra_noise=jnp.zeros(2),
    )
    assert float(heteroscedastic(patchy).test_error) == printed(error)
    assert float(SELF_CONSISTENT(KernelRegression(spectrum, n_train, 1.001)).test_error) == printed(
        uniform
    )


def test_scaling_with_a_matched_target():
    # lambda ~ k^-(1+a), y^2 ~ lambda: E ~ P^-a/(1+a) at fixed ridge and P^-a without
    system = KernelRegression(power_law(1.5, 1 / 6, 10**6, infinite=False), 1.0, 1.0)
    for temperature, slope in ((1.0, "-.373"), (0.0, "-.525")):
        errors = [float(SELF_CONSISTENT(at(system, p, temperature)).test_error) for p in (1e3, 1e4)]
        assert np.log10(errors[1] / errors[0]) == printed(slope)


# Sphere in 20 dimensions, arcsine kernel, linear and cubic target


def test_staircase():
    erf = activation("erf")
    spectrum = sphere(20, lambda t: erf.two_point(1.0, t, 1.0), [0.0, 0.8, 0.0, 0.2], 15)
    system = KernelRegression(
        Spectrum(spectrum.eigenvalues, spectrum.target_power, spectrum.multiplicities), 1.0, 1e-4
    )
    errors = {20: "0.56985582", 40: "0.35376915", 200: "0.19662868", 1000: "0.08843239",
    2000: "0.02505089",
              5000: "0.00178207", 20000: "4.711735e-5"}  # fmt: skip
    for n_train, error in errors.items():
        assert float(SELF_CONSISTENT(at(system, n_train, 1e-4)).test_error) == printed(error)
    learned = {n: effective_ridge(system.spectrum, n, 1e-4).learnability for n in (40, 1000)}
    assert float(learned[40][1]) == printed(".928438918")
    assert float(learned[40][3]) == printed(".0115962")
    assert float(learned[1000][3]) == printed(".46215997")


# Double descent: 50 equal modes, label noise 1/4

DESCENT = KernelRegression(finite_rank(50, 1 / 50), 1.0, 1.0, 0.25)
DESCENT_ERRORS = {
    "1e-8": (".74999998", "1249.87505", ".24999999"),
    "0.01": (".73199705", "1.17962024", ".24061769"),
    "0.1": (".65952248", ".44112989", ".19266455"),
    "0.5": (".65533009", ".41666667", ".19355773"),
    "0.05": (".68652866", ".55555556", ".21288146"),
}


@pytest.mark.parametrize("temperature", DESCENT_ERRORS)
def test_double_descent(temperature):
    for n_train, error in zip((25, 50, 100), DESCENT_ERRORS[temperature]):
        assert float(
            SELF_CONSISTENT(at(DESCENT, n_train, float(temperature), 0.25)).test_error
        ) == printed(error)


def test_double_descent_train_errors():
    for n_train, error in zip((25, 50, 100), (".020012", ".050442", ".130142")):
        assert float(SELF_CONSISTENT(at(DESCENT, n_train, 0.1, 0.25)).train_error) == printed(error)


@pytest.mark.parametrize(
    ("weight", "errors"),
    [
        (0.05, (".68654715", ".55588908", ".21411655")),
        (0.5, (".65554154", ".41712977", ".19460462")),
    ],
)
def test_double_descent_with_many_tiny_modes(weight, errors):
    spectrum = Spectrum([1 / 50, weight / 20000], [1.0, 0.0], [50.0, 20000.0])
    for n_train, error in zip((25, 50, 100), errors):
        curve = SELF_CONSISTENT(at(KernelRegression(spectrum, 1.0, 1.0), n_train, 1e-8, 0.25))
        assert float(curve.test_error) == printed(error)


def test_optimal_ridge_removes_the_peak():
    for n_train, error in ((25, ".6403882032"), (50, ".3903882032")):
        found = BEST(at(DESCENT, n_train, 1.0, 0.25))
        assert float(found.temperature) == pytest.approx(0.25, rel=1e-8)
        assert float(found.test_error) == printed(error)


# Source and capacity

# capacity, source: errors at n = 100, 1000, 10000 without ridge, for a million modes
RIDGELESS = [
    (1.5, 0.5, (".00369023084837", "1.16774192766e-4", "3.558090723754e-6")),
    (2.0, 0.3, (".00894485683", "5.698420396e-4", "3.586542693e-5")),
    (1.5, 1 / 3, (".0288727305", ".00289532545", "2.83099414e-4")),
    (2.0, 1.5, ("1.42481554e-7", "1.458170941e-11", "1.44550644e-15")),
]


@pytest.mark.parametrize(("capacity", "source", "errors"), RIDGELESS)
def test_ridgeless_power_laws(capacity, source, errors):
    system = KernelRegression(power_law(capacity, source, 10**6, infinite=False), 1.0, 0.0)
    for n_train, error in zip((1e2, 1e3, 1e4), errors):
        assert float(SELF_CONSISTENT(at(system, n_train, 0.0)).test_error) == printed(error)


@pytest.mark.parametrize(
    ("capacity", "source", "errors"),
    [
        (1.5, 0.5, (".0037609016", "1.1893e-4", "3.76090e-6")),
        (2.0, 0.3, (".00904372590", "5.70620528e-4", "3.60037213e-5")),
    ],
)
def test_asymptotes_of_ridgeless_power_laws(capacity, source, errors):
    law = scaling_law(np.array([1e2, 1e3, 1e4]), capacity, source)
    for found, error in zip(law.test_error, errors):
        assert float(found) == printed(error)


def test_a_steep_power_law_without_ridge():
    spectrum = power_law(2.0, 1.5, 10**5, infinite=False)
    assert float(SELF_CONSISTENT(KernelRegression(spectrum, 1e4, 0.0)).test_error) == printed(
        "1.2878374719e-15"
    )


def test_threshold_of_a_power_law():
    spectrum = power_law(2.0, 0.5, 10**6, infinite=False)
    for n_train, kappa in zip(
        (1e2, 1e3, 1e4), ("2.442711909e-4", "2.4629361436e-6", "2.4471148018e-8")
    ):
        assert float(effective_ridge(spectrum, n_train, 0.0).threshold) == printed(kappa)


def test_optimal_ridge_of_power_laws():
    smooth = at(
        KernelRegression(power_law(1.5, 0.5, 10**6, infinite=False), 1.0, 1.0), 1e3, 1.0, 0.1
    )
    found = BEST(smooth), BEST(at(smooth, 1e4, 1.0, 0.1))
    for one, error, temperature in zip(
        found, (".00598142855", ".00147217252"), ("3.2594", "8.6375")
    ):
        assert float(one.test_error) == printed(error)
        assert float(one.temperature) == printed(temperature)
        assert one.converged
    assert np.log10(float(found[1].test_error / found[0].test_error)) == printed("-.609")
    easy = at(KernelRegression(power_law(2.0, 1.5, 10**6, infinite=False), 1.0, 1.0), 1e3, 1.0, 0.1)
    found = BEST(easy), BEST(at(easy, 1e4, 1.0, 0.1))
    assert float(found[0].test_error) == printed(".000835892069")
    assert float(found[1].test_error) == printed("1.35502812e-4")
    assert np.log10(float(found[1].test_error / found[0].test_error)) == printed("-.790")


# Pools of real images


def pool(dataset, targets, depth=1, nonlinearity="relu"):
    """Kernel of a deep network on centred images with |x|^2 = input_dim, and targets +-1."""
    inputs = normalise(centre(dataset)).inputs
    return PoolRegression.from_kernel(
        fully_connected(depth, None, nonlinearity).kernel(inputs).nngp, targets, 1.0, 1.0
    )


@pytest.fixture(scope="module")
def digits():
    data = load("digits")
    return pool(data, parity(data.labels).values)


@pytest.fixture(scope="module")
def few_digits():
    data = load("digits", count=500)
    return pool(data, parity(data.labels).values)


DIGITS = [
    (
        1e-8,
        {20: ".54279310", 50: ".35317452", 100: ".23769018", 200: ".15023176", 400: ".08938717"},
    ),
    (0.1, {20: ".55285031", 50: ".36539459", 100: ".26229127", 400: ".12830811"}),
]


@pytest.mark.parametrize(("temperature", "errors"), DIGITS)
def test_digits(digits, temperature, errors):
    for n_train, error in errors.items():
        assert float(SELF_CONSISTENT(at(digits, n_train, temperature)).population_error) == printed(
            error
        )


def test_digits_by_the_equivalent_kernel(digits):
    for n_train, error in {20: ".2855", 50: ".2073", 100: ".1609", 400: ".0922"}.items():
        assert float(EQUIVALENT_KERNEL(at(digits, n_train, 0.1)).population_error) == printed(error)


@pytest.mark.parametrize(
    ("temperature", "ek", "exact", "homogeneous", "full"),
    [
        (0.5, ".394468", ".505416", ".505423", ".500851"),
        (2.0, ".633084", ".684676", ".685657", ".682701"),
    ],
)
def test_digits_with_the_first_correction(digits, temperature, ek, exact, homogeneous, full):
    system = at(digits, 40, temperature)
    assert float(EQUIVALENT_KERNEL(system).population_error) == printed(ek)
    assert float(compiled(equivalent_kernel_on_pool)(system).population_error) == printed(exact)
    assert float(equivalent_kernel_corrected(system).population_error) == printed(homogeneous)
    assert float(SELF_CONSISTENT(system).population_error) == printed(full)


def test_cavity_on_few_digits(few_digits):
    curve = CAVITY(at(few_digits, 100, 0.1))
    assert float(curve.test_error) == printed(".218126758")
    assert float(curve.train_error) == printed(".05124845584")
    for error, value in zip(curve.point_error, (".134573435", ".227953042", ".093586873")):
        assert float(error) == printed(value)
    assert float(curve.point_variance[0]) == printed(".0697595321")
    assert float(curve.point_variance.mean()) == printed(".0973613701")

    ridgeless = CAVITY(at(few_digits, 100, 1e-8))
    assert float(ridgeless.test_error) == printed(".196792306")
    assert float(ridgeless.point_variance[0]) == printed(".0382896506")
    assert float(ridgeless.point_variance.mean()) == printed(".0579621077")

    noisy = CAVITY(at(few_digits, 250, 0.1, 0.2))
    assert float(noisy.test_error) == printed(".181757028")
    assert float(noisy.train_error) == printed(".1440556437")


def regress(kernel, targets, chosen, temperature):
    """Squared error of kernel regression on the chosen points, at all points."""
    dual = np.linalg.solve(
        kernel[np.ix_(chosen, chosen)] + temperature * np.eye(len(chosen)), targets[chosen]
    )
    return (kernel[:, chosen] @ dual - targets) ** 2


@pytest.mark.parametrize(("n_train", "temperature"), [(50, 0.1), (100, 1e-8)])
def test_theories_agree_with_twenty_runs_on_digits(few_digits, n_train, temperature):
    random = np.random.default_rng(0)
    kernel, targets = np.asarray(few_digits.kernel), np.asarray(few_digits.targets)
    pool_errors, held_out, per_point, counts = [], [], np.zeros(500), np.zeros(500)
    for _ in range(20):
        chosen = random.choice(500, n_train, replace=False)
        squared = regress(kernel, targets, chosen, temperature)
        outside = np.setdiff1d(np.arange(500), chosen)
        pool_errors.append(squared.mean())
        held_out.append(squared[outside].mean())
        per_point[outside] += squared[outside]
        counts[outside] += 1
    system = at(few_digits, n_train, temperature)
    assert float(SELF_CONSISTENT(system).population_error) == pytest.approx(
        np.mean(pool_errors), rel=0.1
    )
    curve = CAVITY(system)
    assert float(curve.test_error) == pytest.approx(np.mean(held_out), rel=0.1)
    assert np.corrcoef(curve.point_error, per_point / counts)[0, 1] > 0.9


def test_cross_validation_is_too_low_on_images_the_more_so_the_smaller_the_ridge(digits):
    random = np.random.default_rng(1)
    kernel, targets = np.asarray(digits.kernel), np.asarray(digits.targets)
    theory = eqx.filter_jit(generalized_cross_validation)
    for n_train, temperature, low, high in ((400, 0.1, 0.8, 0.9), (100, 1e-8, 0.5, 0.75)):
        estimates, measured = [], []
        for _ in range(5):
            chosen = random.choice(1797, n_train, replace=False)
            estimates.append(
                theory(kernel[np.ix_(chosen, chosen)], targets[chosen], temperature).test_error
            )
            measured.append(np.delete(regress(kernel, targets, chosen, temperature), chosen).mean())
        assert low < np.mean(estimates) / np.mean(measured) < high


MNIST = pytest.mark.skipif(
    "ORDERPARAM_DATA" not in os.environ, reason="set ORDERPARAM_DATA to a folder with MNIST"
)


@MNIST
@pytest.mark.slow
def test_parity_of_mnist():
    data = load("mnist", "test", count=3000)
    system = pool(data, parity(data.labels).values)
    eigenvalues = system.spectrum.eigenvalues
    for value, text in zip(eigenvalues, (".16222558", ".0270975", ".01990262", ".01418766")):
        assert float(value) == printed(text)
    assert float(eigenvalues[-1]) == printed("3.96e-7")
    curve = {10: (".85252178", ".31524881"), 20: (".72087248", ".26640378"), 50: (".57698264",
    ".19933216"),
             100: (".48094193", ".15166224"), 200: (".37464549", ".11064264"), 400: (".26637074",
             ".07635054"),
             800: (".16866728", ".04687625")}  # fmt: skip
    for n_train, (error, ridge) in curve.items():
        found = SELF_CONSISTENT(at(system, n_train, 1e-8))
        assert float(found.population_error) == printed(error)
        assert float(found.effective_ridge) == printed(ridge)
    for n_train, error in {10: "1.0e-9", 100: "1.0e-11", 800: "1.6e-13"}.items():
        assert float(EQUIVALENT_KERNEL(at(system, n_train, 1e-8)).population_error) == printed(
            error
        )


@MNIST
@pytest.mark.slow
def test_parity_of_mnist_with_erf():
    data = load("mnist", "test", count=3000)
    system = pool(data, parity(data.labels).values, nonlinearity="erf")
    errors = (
        ".79109141",
        ".71590226",
        ".65376158",
        ".60950861",
        ".52230110",
        ".38800301",
        ".23455870",
    )
    for n_train, error in zip((10, 20, 50, 100, 200, 400, 800), errors):
        assert float(SELF_CONSISTENT(at(system, n_train, 1e-8)).population_error) == printed(error)


def two_classes(positive, negative):
    data = load("mnist", "test")
    task = binary(data.labels, positive, negative)
    subset = type(data)(data.inputs[task.rows], data.labels[task.rows])
    return pool(subset, task.values, nonlinearity="erf")


@MNIST
@pytest.mark.slow
def test_three_against_eight():
    system = two_classes(3, 8)
    assert system.pool_size == 1984
    errors = {
        20: ".39532190",
        50: ".31743744",
        100: ".28373400",
        200: ".24034858",
        400: ".17478270",
    }
    for n_train, error in errors.items():
        assert float(SELF_CONSISTENT(at(system, n_train, 1e-8)).population_error) == printed(error)
    held_out = {100: ".2988", 200: ".2673", 400: ".2189"}
    for n_train, error in held_out.items():
        assert float(SELF_CONSISTENT(at(system, n_train, 1e-8)).test_error) == printed(error)
    for temperature, error, ek in ((1e-3, ".28281691", ".011"), (0.1, ".25382248", ".168")):
        assert float(SELF_CONSISTENT(at(system, 100, temperature)).population_error) == printed(
            error
        )
        assert float(EQUIVALENT_KERNEL(at(system, 100, temperature)).population_error) == printed(
            ek
        )
    decimated = {20: (188, ".39632594"), 50: (None, ".31862385"), 100: (1326, ".28378307")}
    for n_train, (modes, error) in decimated.items():
        curve = DECIMATED(at(system, n_train, 1e-8), jnp.asarray(0.01))
        assert float(curve.population_error) == printed(error)
        assert modes is None or int(curve.mode_count) == modes
    assert float(DECIMATED(at(system, 20, 1e-8), jnp.asarray(0.01)).renormalized_ridge) == printed(
        ".04323"
    )


@MNIST
@pytest.mark.slow
def test_four_against_nine():
    system = two_classes(4, 9)
    assert system.pool_size == 1991
    errors = {
        20: ".51051753",
        50: ".35999450",
        100: ".30122479",
        200: ".24885790",
        400: ".18312980",
    }
    for n_train, error in errors.items():
        assert float(SELF_CONSISTENT(at(system, n_train, 1e-8)).population_error) == printed(error)
