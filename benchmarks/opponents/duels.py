"""Every piece of work that the package and an opponent both do."""

from collections.abc import Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from opponents import (
    clusters,
    extensive_width,
    gaussian_process,
    hopfield,
    learning_curve,
    message_passing,
    penalised,
    self_consistent_dynamics,
    storage,
)
from opponents import generalised_linear as glm
from opponents.duel import Duel
from orderparam.kernels import Spectrum
from orderparam.kernels.gp import gp_posterior
from orderparam.networks import fully_connected
from orderparam.sampling.lattice.random_words import first_word
from orderparam.systems.associative_memory import Hopfield, recall
from orderparam.systems.extensive_width import TANH_2, HierarchicalTeacher, all_solutions
from orderparam.systems.generalised_linear import (
    GeneralisedLinear,
    PenalisedFit,
    penalised_fit,
    state_evolution,
)
from orderparam.systems.generalised_linear.bayes.experiment import gamp
from orderparam.systems.kernel_regression import KernelRegression, self_consistent
from orderparam.systems.proportional import FullyConnected, finite_width
from orderparam.systems.reused_data import ReusedData, sampled_dynamics
from orderparam.systems.spins import CRITICAL_TEMPERATURE, IsingLattice, swendsen_wang
from orderparam.systems.storage_capacity import SphericalPatterns, volume


def _signs(prior: str) -> Duel:
    ratios = np.linspace(0.05, 1.4, 100)
    system = GeneralisedLinear(1.0, "sign", prior)
    ours = jax.jit(
        jax.vmap(lambda ratio: state_evolution(system.with_(sample_ratio=ratio)).overlap)
    )
    return Duel(
        f"state evolution of signs, {prior} weights, 100 ratios",
        f"NumPy, {glm.NODES} nodes, iterated together",
        lambda: ours(jnp.asarray(ratios)),
        lambda: glm.signs(ratios, prior == "rademacher"),
    )


def _penalised(loss: str, points: int) -> Duel:
    ridges = np.geomspace(10.0, 0.1, points)
    system = PenalisedFit(2.0, loss, "sign", ridge=0.1)

    def at(ridge: jax.Array) -> jax.Array:
        found = penalised_fit(system.with_(ridge=ridge))
        return jnp.stack([found.teacher_overlap, found.self_overlap, found.response])

    ours = jax.jit(jax.vmap(at))
    theirs = penalised.compiled_hinge() if loss == "hinge" else penalised.logistic
    return Duel(
        f"{loss} loss, {points} ridges",
        "numba, 2 x 40 nodes" if loss == "hinge" else "NumPy, 80 nodes",
        lambda: ours(jnp.asarray(ridges)),
        lambda: theirs(2.0, ridges),
    )


def _learning_curve(modes: int, points: int) -> Duel:
    k = np.arange(1.0, modes + 1)
    eigenvalues, power, temperature = k**-2.0, k**-2.6, 1e-6
    grid = np.geomspace(10, modes / 5, points)
    spectrum = Spectrum(eigenvalues, power)

    def at(n_train: jax.Array, spectrum: Spectrum) -> jax.Array:
        return self_consistent(KernelRegression(spectrum, n_train, temperature)).test_error

    batch = jax.jit(jax.vmap(at, in_axes=(0, None)))
    return Duel(
        f"learning curve, {modes} modes, {points} sizes",
        "NumPy, Newton from the neighbour",
        lambda: batch(jnp.asarray(grid), spectrum),
        lambda: learning_curve.errors(eigenvalues, power, temperature, grid),
    )


def _hopfield(n: int, patterns: int, sweeps: int) -> Duel:
    system = Hopfield(patterns / n, spins=n, temperature=0.1, start=0.8)
    theirs = hopfield.compiled_recall()
    return Duel(
        f"Hopfield network, {n} spins, {patterns} patterns, {sweeps} sweeps",
        "numba, one byte for an entry",
        lambda: recall(system, jax.random.key(0), networks=1, sweeps=sweeps).overlap,
        lambda: theirs(n, patterns, 0.1, sweeps, 0.8),
        tolerance=0.05,
    )


def _clusters(length: int, replicas: int, sweeps: int) -> Duel:
    system, key = IsingLattice(CRITICAL_TEMPERATURE, (length, length)), jax.random.key(0)
    start, theirs = np.uint64(first_word(key)), clusters.compiled_sweeps()

    def ours() -> np.ndarray:
        found = swendsen_wang(system, key, replicas=replicas, warmup=0, sweeps=sweeps)
        absolute, square = found.absolute_magnetisation, found.squared_magnetisation
        return np.stack([found.energy, absolute, square])

    return Duel(
        f"Swendsen-Wang, L = {length}, {replicas} replicas, {sweeps} sweeps",
        "numba, union and find",
        ours,
        lambda: theirs(length, replicas, sweeps, CRITICAL_TEMPERATURE, start),
        tolerance=1e-6,  # ours divides whole numbers in single precision
    )


def _message_passing(size: int, steps: int) -> Duel:
    rng = np.random.default_rng(0)
    kind = np.float32
    drawn = rng.standard_normal((size, size), kind) / kind(np.sqrt(size))
    weights, start = rng.standard_normal(size, kind), rng.standard_normal(size, kind) / 100
    matrix = jnp.asarray(drawn)
    labels, system = jnp.sign(matrix @ weights), GeneralisedLinear(1.0, "sign", "gaussian", size)
    seen, begin = jnp.ones(size, kind), jnp.asarray(start)
    numbers = [jnp.asarray(x, kind) for x in (1.0, 0.0, 1e-30, 1e-7)]

    def ours() -> np.ndarray:
        found = gamp(matrix, labels, seen, system.labels, system.prior, begin, *numbers, steps)
        return np.append(found.weights, found.variance)

    view, signs = np.asarray(matrix), np.asarray(labels)
    return Duel(
        f"message passing, {size} weights and signs, {steps} steps, float32",
        "NumPy, the matrix read once a step",
        ours,
        lambda: np.append(*message_passing.estimates(view, signs, start, steps)),
        tolerance=1e-4,
    )


def _all_solutions(width: int, n_train: float) -> Duel:
    system = HierarchicalTeacher(1000, width, decay=0.8, noise=0.1, n_train=n_train)
    power = np.asarray(system.readout) ** 2
    theirs = extensive_width.compiled_solutions(TANH_2)

    def ours() -> np.ndarray:
        found = all_solutions(system)
        return np.sort(np.asarray(found.error)[np.asarray(found.stable)])

    return Duel(
        f"all solutions at extensive width, {width} features",
        "numba, all intervals enumerated",
        ours,
        lambda: np.sort(theirs(power, 0.1, n_train / 1000)),
        tolerance=1e-8,
    )


def _data(examples: int, test: int, dimension: int = 50) -> tuple[np.ndarray, ...]:
    """Gaussian inputs and a noisy quadratic target: x, y, test x, test y."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(examples + test, dimension))
    y = x @ rng.normal(size=dimension) / np.sqrt(dimension) + 0.3 * x[:, 0] * x[:, 1]
    return x[:examples], y[:examples], x[examples:], y[examples:]


def _regression(examples: int, test: int) -> Duel:
    x, y, other, _ = _data(examples, test)
    network = fully_connected(1, None, "erf", weight_variance=2.0, bias_variance=0.1)

    def ours() -> np.ndarray:
        found = gp_posterior(
            network.nngp(x), network.nngp(other, x), network.variance(other), y, 0.1
        )
        return np.concatenate([found.mean, found.variance, [found.log_evidence]])

    def theirs() -> np.ndarray:
        return gaussian_process.posterior(gaussian_process.erf_kernels(x, other, 2.0, 0.1), y, 0.1)

    return Duel(
        f"regression with the kernel of erf, P = {examples}", "NumPy and SciPy", ours, theirs
    )


def _finite_widths(examples: int, points: int) -> Duel:
    x, y, other, test_y = _data(examples, 300)
    widths = np.geomspace(20, 5000, points)
    system = jax.tree.map(
        jnp.asarray, FullyConnected(x, y, other, test_y, width=100, temperature=0.1)
    )
    many = eqx.filter_jit(
        lambda one, widths: jax.vmap(lambda n: finite_width(one.with_(width=n)).test_error)(widths)
    )
    return Duel(
        f"finite width, P = {examples}, {points} widths",
        "NumPy, one eigh, brentq",
        lambda: many(system, jnp.asarray(widths)),
        lambda: gaussian_process.finite_widths(
            gaussian_process.erf_kernels(x, other, 1.0, 0.0), y, test_y, 0.1, widths
        ),
    )


def _volumes(points: int) -> Duel:
    loads = np.linspace(0.02, 1.8, points)

    def at(load: jax.Array) -> jax.Array:
        found = volume(SphericalPatterns(load=load))
        return jnp.stack([found.overlap, found.entropy])

    many = jax.jit(jax.vmap(at))
    return Duel(
        f"volume of perceptrons, {points} loads",
        f"NumPy, {storage.NODES} nodes, Newton together",
        lambda: many(jnp.asarray(loads)),
        lambda: storage.volumes(loads),
    )


def _reused_data(steps: int, samples: int) -> Duel:
    system = ReusedData(3.0, 0.5, weight_decay=0.1, task="logistic", steps=steps)
    return Duel(
        f"logistic regression on re-used data, {steps} steps, {samples} samples",
        "NumPy, kernels iterated",
        lambda: sampled_dynamics(system, samples=samples // 4, runs=4).overlap,
        lambda: self_consistent_dynamics.logistic(3.0, 0.5, 0.1, steps, samples)[0],
        tolerance=0.05,
    )


_DUELS = {
    "re-used data": lambda: _reused_data(50, 4000),
    "regression": lambda: _regression(1000, 300),
    "finite width": lambda: _finite_widths(1000, 50),
    "volume of perceptrons": lambda: _volumes(100),
    "Swendsen-Wang": lambda: _clusters(256, 4, 32),
    "message passing": lambda: _message_passing(10_000, 5),
    "all solutions": lambda: _all_solutions(1000, 3e7),
    "Hopfield network": lambda: _hopfield(10_000, 1024, 5),
    "learning curve of many modes": lambda: _learning_curve(100_000, 40),
    "learning curve of few modes": lambda: _learning_curve(1000, 200),
    "hinge": lambda: _penalised("hinge", 32),
    "logistic": lambda: _penalised("logistic", 64),
    "state evolution of signs, rademacher weights": lambda: _signs("rademacher"),
    "state evolution of signs, gaussian weights": lambda: _signs("gaussian"),
}


def duels(words: list[str]) -> Iterator[Duel]:
    """Those in whose name one of the words occurs; all of them without words."""
    for name, make in _DUELS.items():
        if not words or any(word in name for word in words):
            try:
                yield make()
            except ImportError as missing:
                print(f"{name}: left out ({missing})")
