"""The package's main compiled programs, each as one call on data that NumPy draws.

A program gives the sizes at which it is worth an accelerator, and small ones. Counts of operations
and bytes are those of its matrix products, factorisations and passes over a matrix; what else it
does is left out, so that a share of the peak is a lower bound.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from orderparam.kernels.gp import gp_posterior
from orderparam.kernels.spectrum import Spectrum
from orderparam.losses import RealLabels
from orderparam.networks import fully_connected
from orderparam.sampling import sample
from orderparam.systems.associative_memory import Hopfield, recall
from orderparam.systems.attention import SeenSequence, recovered_vector
from orderparam.systems.features_in_time import FeatureDescent, particle_dynamics
from orderparam.systems.generalised_linear import GeneralisedLinear, state_evolution
from orderparam.systems.generalised_linear.bayes.experiment import gamp
from orderparam.systems.in_context import LinearAttention, trained_attention
from orderparam.systems.kernel_regression import KernelRegression, self_consistent
from orderparam.systems.online_sgd import CommitteeSGD, trained_network
from orderparam.systems.proportional import FullyConnected
from orderparam.systems.proportional.posterior import Full, PosteriorProblem
from orderparam.systems.random_features import RandomFeatures, asymptotics
from orderparam.systems.spins import CRITICAL_TEMPERATURE, IsingLattice, metropolis, swendsen_wang

Call = Callable[[], Any]


class Work(NamedTuple):
    """One call, and what it is known to do.

    flops: floating-point operations. words: numbers read and written in memory.
    """

    run: Call
    flops: float = 0.0
    words: float = 0.0


class Program(NamedTuple):
    """A program: its name, the large size, the call at either size, and what is expected of its
    answers.

    accuracy: largest difference of the answers on two devices in float64, in units of the largest
    answer. same_numbers: whether float64 and float32 see the same random numbers; if not, their
    difference is that of two random samples. single: whether it runs in float32 at all; programs
    whose state is spins, or weights in float32 by themselves, do not.
    """

    name: str
    size: str
    at: Callable[[bool], Work]
    accuracy: float = 1e-8
    same_numbers: bool = True
    single: bool = True


def _inputs(examples: int, dimension: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((examples, dimension))


def _kernels(activation: str, depth: int, tile: int | None = None) -> Callable[[bool], Work]:
    def at(small: bool) -> Work:
        examples, dimension = (300, 64) if small else (8000, 784)
        x = jnp.asarray(_inputs(examples, dimension))
        network = fully_connected(depth, None, activation, weight_variance=2.0, bias_variance=0.1)

        def run() -> Any:
            found = network.kernel(x, row_batch=tile)
            return found.nngp, found.ntk

        # Both matrices are written, and half of each is computed.
        return Work(run, examples**2 * dimension, 2 * examples**2)

    return at


def _regression(small: bool) -> Work:
    train, test = (200, 50) if small else (8000, 2000)
    x = _inputs(train + test, 784)
    network = fully_connected(1, None, "erf", weight_variance=2.0, bias_variance=0.1)
    whole = network.nngp(jnp.asarray(x))
    gram, cross, diagonal = whole[:train, :train], whole[train:, :train], jnp.diag(whole)[train:]
    targets = jnp.asarray(np.tanh(x[:train, 0]))

    def run() -> Any:
        found = gp_posterior(gram, cross, diagonal, targets, 0.1)
        return found.mean, found.variance, found.log_evidence

    return Work(run, train**3 / 3 + train**2 * test)


def _two_layers(small: bool) -> tuple[Full, Any, int, int, int]:
    train, dimension, width = (100, 20, 30) if small else (4000, 784, 4096)
    x = _inputs(train + 10, dimension)
    y = np.tanh(x[:, 0])
    system = FullyConnected(
        x[:train], y[:train], x[train:], y[train:], width=width, temperature=0.1 * train
    )
    posterior = Full(PosteriorProblem.of(system))
    shapes = jax.eval_shape(posterior.problem.draw, jax.random.key(0))
    rng = np.random.default_rng(1)
    weights = jax.tree.map(lambda leaf: jnp.asarray(rng.standard_normal(leaf.shape)), shapes)
    return posterior, weights, train, dimension, width


def _gradient(small: bool) -> Work:
    posterior, weights, train, dimension, width = _two_layers(small)
    gradient = eqx.filter_jit(lambda density, at: eqx.filter_grad(lambda w: density(w))(at))
    # Forward, and backward to the weights of the first layer.
    return Work(lambda: gradient(posterior, weights), 4 * train * dimension * width)


def _monte_carlo(small: bool) -> Work:
    posterior, weights, train, dimension, width = _two_layers(small)
    steps, draws = 4, 4
    begin = jax.tree.map(lambda leaf: leaf[None], weights)
    density = jax.tree_util.Partial(lambda given, at: given(at), posterior)

    def run() -> Any:
        found = sample(
            density,
            begin,
            jax.random.key(0),
            warmup=0,
            samples=draws,
            step_size=1e-3,
            leapfrog_steps=steps,
        )
        return found.log_density

    return Work(run, 4 * train * dimension * width * steps * draws)


def _message_passing(small: bool) -> Work:
    size, steps = (200, 5) if small else (16384, 10)
    rng = np.random.default_rng(0)
    kind = jnp.zeros(()).dtype
    matrix = jnp.asarray(
        rng.standard_normal((size, size), np.float32) / np.float32(size**0.5), kind
    )
    weights = jnp.asarray(rng.standard_normal(size), kind)
    system = GeneralisedLinear(1.0, "sign", "gaussian", size)
    labels = jnp.sign(matrix @ weights)
    start = 0.01 * jnp.asarray(rng.standard_normal(size), kind)
    numbers = [jnp.asarray(x, kind) for x in (1.0, 0.0, 1e-30, 1e-7)]

    def run() -> Any:
        found = gamp(
            matrix,
            labels,
            jnp.ones(size, kind),
            system.labels,
            system.prior,
            start,
            *numbers,
            steps,
        )
        return found.weights, found.variance

    return Work(run, 4 * size**2 * steps, 2 * size**2 * steps)


def _ising(small: bool) -> Work:
    length, sweeps = (16, 40) if small else (1024, 40)
    system = IsingLattice(CRITICAL_TEMPERATURE, (length, length))
    return Work(
        lambda: (
            metropolis(
                system, jax.random.key(0), replicas=64, warmup=0, sweeps=sweeps, every=5
            ).energy
        )
    )


def _clusters(small: bool) -> Work:
    length, sweeps = (16, 16) if small else (512, 8)
    system = IsingLattice(CRITICAL_TEMPERATURE, (length, length))
    return Work(
        lambda: swendsen_wang(system, jax.random.key(0), replicas=8, warmup=0, sweeps=sweeps).energy
    )


def _hopfield(small: bool) -> Work:
    spins = 200 if small else 5000
    system = Hopfield(0.1, spins=spins, temperature=0.1, start=0.8)
    return Work(lambda: recall(system, jax.random.key(0), networks=4, sweeps=2).overlap)


def _parallel_hopfield(small: bool) -> Work:
    spins, networks, steps = (200, 2, 5) if small else (10_000, 8, 20)
    system = Hopfield(0.1, spins=spins, temperature=0.1, start=0.8)
    return Work(
        lambda: (
            recall(
                system, jax.random.key(0), update="parallel", networks=networks, sweeps=steps
            ).overlap
        ),
        4 * 0.1 * spins**2 * networks * steps,
    )


def _online(small: bool) -> Work:
    dim, width, seeds, steps = (50, 4, 2, 100) if small else (10_000, 8, 16, 2000)
    system = CommitteeSGD(
        input_dim=dim, width=width, teacher_width=4, horizon=steps / dim, records=2
    )

    def run() -> Any:
        keys = jax.random.split(jax.random.key(0), seeds)
        return jax.vmap(lambda key: trained_network(system, key).test_error)(keys)

    # Fields of students and teachers, the Gram matrix of blocks of 32 inputs, and the update.
    return Work(run, seeds * steps * dim * (4 * width + 8 + 64))


def _learning_curve(small: bool) -> Work:
    modes, points = (100, 10) if small else (100_000, 256)
    k = np.arange(1.0, modes + 1)
    spectrum = Spectrum(k**-2.0, k**-2.6)
    sizes = jnp.asarray(np.geomspace(10, modes / 5, points))

    def one(n_train: jax.Array, spectrum: Spectrum) -> jax.Array:
        return self_consistent(KernelRegression(spectrum, n_train, 1e-6)).test_error

    many = jax.jit(jax.vmap(one, in_axes=(0, None)))
    return Work(lambda: many(sizes, spectrum))


def _state_evolution(small: bool) -> Work:
    ratios = jnp.asarray(np.linspace(0.05, 1.4, 20 if small else 4000))
    system = GeneralisedLinear(1.0, "sign", "rademacher")
    many = jax.jit(jax.vmap(lambda a: state_evolution(system.with_(sample_ratio=a)).overlap))
    return Work(lambda: many(ratios))


def _attention_theory(small: bool) -> Work:
    ratios = jnp.asarray(np.linspace(0.2, 0.48, 10 if small else 4096))
    system = SeenSequence(0.3, 2, input_dim=1000)
    many = jax.jit(jax.vmap(lambda a: recovered_vector(system.with_(sample_ratio=a)).overlap))
    return Work(lambda: many(ratios))


def _random_features(small: bool) -> Work:
    sizes = jnp.asarray(np.geomspace(10.0, 1e4, 64 if small else 100_000))
    system = jax.tree.map(
        jnp.asarray,
        RandomFeatures(200.0, 400.0, n_train=300.0, ridge=0.01, labels=RealLabels(noise=0.1)),
    )
    many = eqx.filter_jit(
        lambda sizes: jax.vmap(lambda n: asymptotics(system.with_(n_train=n)).test_error)(sizes)
    )
    return Work(lambda: many(sizes))


def _kernel_in_time(small: bool) -> Work:
    train, samples, steps = (20, 64, 3) if small else (500, 4096, 40)
    x = _inputs(2 * train, 100)
    y = np.tanh(x[:, 0])
    system = FeatureDescent(
        x[:train], y[:train], x[train:], y[train:], learning_rate=0.2 / train, steps=steps
    )

    def run() -> Any:
        return particle_dynamics(system, samples=samples, runs=2).test_error

    # Two runs; in a step the force on pairs of units at the training points times the kernel.
    return Work(run, 2 * steps * 2 * (2 * samples) * train * (2 * train))


def _trained_attention(small: bool) -> Work:
    system = LinearAttention(
        1.0, 1.0, 2.0 if small else 4.0, 0.1, 0.1, input_dim=6 if small else 40
    )
    return Work(lambda: trained_attention(system, jax.random.key(0)).icl_error)


PROGRAMS = (
    Program("NNGP and NTK, relu, depth 3", "P = 8000", _kernels("relu", 3), 1e-10),
    Program("NNGP and NTK, erf, depth 3", "P = 8000", _kernels("erf", 3), 1e-10),
    Program("the same, in tiles of 1024 rows", "P = 8000", _kernels("erf", 3, 1024), 1e-10),
    Program("Gaussian-process regression", "P = 8000", _regression),
    Program("posterior gradient, two layers", "P = 4000, N = 4096", _gradient, 1e-10),
    Program("Hamiltonian Monte Carlo", "16 gradients", _monte_carlo, same_numbers=False),
    Program("message passing", "d = 16384, 10 steps", _message_passing),
    Program("Metropolis", "L = 1024, 64 replicas", _ising, 1e-12, single=False),
    Program("Swendsen-Wang", "L = 512, 8 replicas", _clusters, 1e-12, single=False),
    Program("Hopfield network, one by one", "N = 5000", _hopfield, 1e-2, single=False),
    Program("Hopfield network, parallel", "N = 10000", _parallel_hopfield, 1e-2, single=False),
    Program("one-pass SGD", "d = 10000, 16 runs", _online, 1e-3, single=False),
    Program("learning curve", "1e5 modes, 256 sizes", _learning_curve),
    Program("state evolution of signs", "4000 ratios", _state_evolution),
    Program("attention theory", "4096 ratios", _attention_theory),
    Program("random-feature ridge", "100000 sizes", _random_features),
    Program("features in time", "8192 particles", _kernel_in_time),
    Program("linear attention trained", "d = 40", _trained_attention, 1e-4, same_numbers=False),
)
