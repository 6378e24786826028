"""How near the dearest programs are to what one core can do: their share of the operations of a
large matrix product, or of the bytes of a large copy, both measured in the same run.

    python benchmarks/limits.py [WORD ...]                  (only programs that a word occurs in)

Operations are those that the compiler counts, once per turn of a loop, times the turns of the loop
that contains nearly all of them; of random-feature ridge and of spectra the turns are not known, so
that these shares are lower bounds. Matrix products, factorisations and generators inside loops are
counted by hand. Exponentials, logarithms, roots and the like are counted apart, beside the rate of
an exponential alone. Bytes are what has to be read and written once per turn if nothing but the
data itself leaves the cache. The part is a piece of the program that is run alone on data of the
same size, with its share of the whole time.
"""

import os
import sys

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[threads] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

from collections.abc import Callable, Iterator  # noqa: E402
from typing import Any, NamedTuple  # noqa: E402

import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from opponents.duel import processor_seconds  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import orderparam as op  # noqa: E402
from orderparam.gaussian.arctangent import arctan2  # noqa: E402
from orderparam.kernels import Spectrum  # noqa: E402
from orderparam.kernels.gp import gp_posterior  # noqa: E402
from orderparam.losses import RealLabels  # noqa: E402
from orderparam.networks import fully_connected  # noqa: E402
from orderparam.sampling.lattice.clusters import cluster_labels, random_bonds  # noqa: E402
from orderparam.sampling.lattice.random_words import (  # noqa: E402
    binary_digits,
    first_word,
    random_bits,
)
from orderparam.systems.generalised_linear import GeneralisedLinear, state_evolution  # noqa: E402
from orderparam.systems.generalised_linear.bayes.experiment import gamp  # noqa: E402
from orderparam.systems.kernel_regression import KernelRegression, self_consistent  # noqa: E402
from orderparam.systems.online_sgd import CommitteeSGD, trained_network  # noqa: E402
from orderparam.systems.online_sgd.experiment import _normals  # noqa: E402
from orderparam.systems.proportional import FullyConnected  # noqa: E402
from orderparam.systems.proportional.posterior import Full, PosteriorProblem  # noqa: E402
from orderparam.systems.random_features import RandomFeatures, asymptotics  # noqa: E402
from orderparam.systems.spins import (  # noqa: E402
    CRITICAL_TEMPERATURE,
    IsingLattice,
    metropolis,
    swendsen_wang,
)

ROUNDS = 3
COPIED, COPIES, PRODUCT, FUNCTIONS = 2**23, 8, 1500, 2**14


class Program(NamedTuple):
    """One program, and what it has to do.

    flops, bytes, functions: see the module (functions are exponentials and the like); zero where
    they are not counted.
    part, alone: a piece of it, by name, and its call on data of the same size.
    """

    name: str
    run: Callable[[], Any]
    flops: float = 0.0
    bytes: float = 0.0
    functions: float = 0.0
    part: str = ""
    alone: Callable[[], Any] | None = None


def counted(run: Callable[..., Any], *inputs: Any, turns: float = 1.0) -> dict[str, float]:
    """The operations and functions that the compiler counts, with every loop turned once, times the
    turns."""
    found = jax.jit(run).lower(*inputs).compile().cost_analysis()
    return {
        "flops": turns * found["flops"],
        "functions": turns * found.get("transcendentals", 0.0),
    }


def _normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape)


def _kernel(activation: str) -> Program:
    examples, dimension = 1500, 784
    x = jnp.asarray(_normal(examples, dimension))
    network = fully_connected(1, None, activation, weight_variance=2.0, bias_variance=0.1)
    values = jnp.asarray(_normal(examples, examples // 2))
    angle = jax.jit(lambda v: arctan2(jnp.abs(v), 1 + v))
    return Program(
        f"kernel matrix, {activation}, P = {examples}",
        lambda: network.nngp(x),
        flops=examples**2 * dimension,  # one half of a symmetric matrix
        part="angles",
        alone=lambda: angle(values),
    )


def _regression() -> Program:
    train, test = 1500, 300
    x = _normal(train + test, 784)
    network = fully_connected(1, None, "erf", weight_variance=2.0, bias_variance=0.1)
    whole = network.nngp(jnp.asarray(x))
    inside, across, own = whole[:train, :train], whole[train:, :train], jnp.diag(whole)[train:]
    targets, raised = jnp.tanh(x[:train, 0]), inside + 0.1 * jnp.eye(train)
    factor = jax.jit(jnp.linalg.cholesky)

    def run() -> Any:
        found = gp_posterior(inside, across, own, targets, 0.1)
        return found.mean, found.variance, found.log_evidence

    return Program(
        f"Cholesky regression, P = {train}",
        run,
        flops=train**3 / 3 + train**2 * test,
        part="factorisation",
        alone=lambda: factor(raised),
    )


def _gradient() -> Program:
    train, dimension, width = 1000, 400, 1000
    x = _normal(train + 10, dimension)
    y = np.tanh(x[:, 0])
    system = FullyConnected(
        x[:train], y[:train], x[train:], y[train:], width=width, temperature=0.1 * train
    )
    posterior = Full(PosteriorProblem.of(system))
    weights = posterior.problem.draw(jax.random.key(0))
    gradient = eqx.filter_jit(lambda density, at: eqx.filter_grad(lambda w: density(w))(at))
    activated = jax.jit(jax.scipy.special.erf)
    fields = jnp.asarray(_normal(train, width))
    return Program(
        f"posterior gradient, P = N = {width}",
        lambda: gradient(posterior, weights),
        flops=4 * train * dimension * width,
        part="erf of all fields",
        alone=lambda: activated(fields),
    )


def _message_passing() -> Program:
    size, steps, kind = 6000, 4, np.float32
    matrix = jnp.asarray(_normal(size, size) / size**0.5, kind)
    weights = jnp.asarray(_normal(size), kind)
    system = GeneralisedLinear(1.0, "sign", "gaussian", size)
    labels, seen = jnp.sign(matrix @ weights), jnp.ones(size, kind)
    numbers = [jnp.asarray(x, kind) for x in (1.0, 0.0, 1e-30, 1e-7)]
    products = jax.jit(lambda m, a: jax.lax.fori_loop(0, steps, lambda _, a: (m @ a) @ m, a))

    def run() -> Any:
        start = weights / 100
        return gamp(matrix, labels, seen, system.labels, system.prior, start, *numbers, steps)

    return Program(
        f"step of message passing, d = {size}, float32",
        run,
        bytes=2 * 4 * size**2 * steps,
        part="the two products",
        alone=lambda: products(matrix, weights),
    )


def _online() -> Program:
    dim, width, teacher, steps = 2000, 8, 4, 1000
    system = CommitteeSGD(
        input_dim=dim, width=width, teacher_width=teacher, horizon=steps / dim, records=2
    )
    normals = jax.jit(lambda key: _normals(key, (steps, dim)))
    # fields of both networks, the Gram matrix of 32 inputs at a time, and the update
    return Program(
        f"steps of one-pass SGD, d = {dim}, float32",
        lambda: trained_network(system, jax.random.key(0)).test_error,
        flops=steps * dim * (4 * width + 2 * teacher + 64),
        part="random inputs",
        alone=lambda: normals(jax.random.key(0)),
    )


def _random_features() -> Program:
    points = 10_240
    sizes = jnp.asarray(np.geomspace(10.0, 1e4, points))
    system = jax.tree.map(
        jnp.asarray,
        RandomFeatures(200.0, 400.0, n_train=300.0, ridge=0.01, labels=RealLabels(noise=0.1)),
    )

    def many(sizes: jax.Array) -> jax.Array:
        return jax.vmap(lambda n: asymptotics(system.with_(n_train=n)).test_error)(sizes)

    compiled = jax.jit(many)
    return Program(
        f"random-feature ridge, {points} sizes", lambda: compiled(sizes), **counted(many, sizes)
    )


def _metropolis() -> Program:
    length, replicas, sweeps = 256, 64, 40
    system = IsingLattice(CRITICAL_TEMPERATURE, (length, length))
    digits = binary_digits(jnp.exp(-4 / jnp.asarray(CRITICAL_TEMPERATURE)))

    @jax.jit
    def drawn(start: jax.Array) -> jax.Array:
        def sweep(start: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
            start, words = random_bits(start, 2 * length**2, digits)
            return start, jnp.sum(words)

        return jax.lax.scan(sweep, start, length=sweeps)[1]

    return Program(
        f"Metropolis sweep, L = {length}, 64 replicas",
        lambda: (
            metropolis(
                system, jax.random.key(0), replicas=replicas, warmup=0, sweeps=sweeps, every=5
            ).energy
        ),
        bytes=2 * 8 * length**2 * sweeps,
        part="random bits",
        alone=lambda: drawn(first_word(jax.random.key(0))),
    )


def _clusters() -> Program:
    length, replicas, sweeps = 256, 4, 16
    system = IsingLattice(CRITICAL_TEMPERATURE, (length, length))
    spins = jnp.ones((replicas, length, length), jnp.int8)
    _, bonds = random_bonds(first_word(jax.random.key(0)), spins, jnp.asarray(2.9))
    many = jax.jit(lambda b: jax.lax.map(cluster_labels, jnp.broadcast_to(b, (sweeps, *b.shape))))
    return Program(
        f"clusters of a lattice, L = {length}",
        lambda: (
            swendsen_wang(
                system, jax.random.key(0), replicas=replicas, warmup=0, sweeps=sweeps
            ).energy
        ),
        bytes=(1 + 1 + 2 + 4 + 4) * replicas * length**2 * sweeps,  # spins, bonds, labels
        part="labels",
        alone=lambda: many(bonds),
    )


def _state_evolution() -> Program:
    ratios = jnp.asarray(np.linspace(0.05, 1.4, 512))
    system = GeneralisedLinear(1.0, "sign", "rademacher")

    def many(ratios: jax.Array) -> Any:
        found = jax.vmap(lambda a: state_evolution(system.with_(sample_ratio=a)))(ratios)
        return found.overlap, found.steps

    compiled = jax.jit(many)
    turns = float(jnp.mean(compiled(ratios)[1]))
    return Program(
        "state evolution of signs, 512 ratios",
        lambda: compiled(ratios),
        **counted(many, ratios, turns=turns),
    )


def _spectrum() -> Program:
    modes, points = 100_000, 40
    k = np.arange(1.0, modes + 1)
    spectrum = Spectrum(k**-2.0, k**-2.6)
    sizes = jnp.asarray(np.geomspace(10, modes / 5, points))

    def many(sizes: jax.Array, spectrum: Spectrum) -> jax.Array:
        def one(n: jax.Array) -> jax.Array:
            return self_consistent(KernelRegression(spectrum, n, 1e-6)).test_error

        return jax.vmap(one)(sizes)

    compiled = jax.jit(many)
    return Program(
        f"integrals over a spectrum, {modes} modes",
        lambda: compiled(sizes, spectrum),
        **counted(many, sizes, spectrum),
    )


_PROGRAMS: dict[str, Callable[[], Program]] = {
    "kernel relu": lambda: _kernel("relu"),
    "kernel erf": lambda: _kernel("erf"),
    "regression": _regression,
    "gradient": _gradient,
    "message passing": _message_passing,
    "SGD": _online,
    "random-feature ridge": _random_features,
    "Metropolis": _metropolis,
    "clusters": _clusters,
    "state evolution": _state_evolution,
    "spectrum": _spectrum,
}


def limits() -> dict[str, Callable[[], Any]]:
    """Calls of a matrix product of each precision, of copies and of exponentials."""
    product, exponential = jax.jit(jnp.matmul), jax.jit(jnp.exp)
    # again and again into the same memory: fresh pages cost more than the copy
    copy = jax.jit(lambda x: jax.lax.fori_loop(0, COPIES, lambda _, x: x + 1, x))
    double = jnp.asarray(_normal(PRODUCT, PRODUCT))
    single, copied = double.astype(jnp.float32), jnp.zeros(COPIED)
    few = double.ravel()[:FUNCTIONS]
    return {
        "product": lambda: product(double, double),
        "product float32": lambda: product(single, single),
        "copy": lambda: copy(copied),
        "exponential": lambda: exponential(few),
    }


class Measured(NamedTuple):
    """Least processor seconds of a program and of its part, and the rates of the limits: operations
    and bytes a second, and exponentials a second."""

    program: Program
    own: float
    part: float
    flops: float
    bytes: float
    functions: float


def measured(words: list[str]) -> Iterator[Measured]:
    """Each program with what was found in rounds that alternate with the limits."""
    bounds = limits()
    for name, make in _PROGRAMS.items():
        if words and not any(word in name for word in words):
            continue
        program = make()
        kind = "product float32" if "float32" in program.name else "product"
        calls = [program.run, program.alone or (lambda: None)]
        calls += [bounds[kind], bounds["copy"], bounds["exponential"]]
        rounds = [[processor_seconds(call) for call in calls] for _ in range(ROUNDS + 1)][1:]
        own, part, product, copy, exponential = (min(column) for column in zip(*rounds))
        rates = 2 * PRODUCT**3 / product, 16 * COPIED * COPIES / copy, FUNCTIONS / exponential
        yield Measured(program, own, part, *rates)


def main() -> None:
    table = Table(title=f"orderparam {op.__version__}: shares of the limits of one core")
    shares = ("of a product", "of copies", "of exponentials")
    for column in ("program", "ms", *shares, "part", "of the time"):
        table.add_column(column, justify="left" if column in ("program", "part") else "right")
    found = None
    for found in measured(sys.argv[1:]):
        program, own = found.program, found.own
        counts = ((getattr(program, k), getattr(found, k)) for k in ("flops", "bytes", "functions"))
        table.add_row(
            program.name,
            f"{1e3 * own:.3g}",
            *(f"{count / own / rate:.2g}" if count else "" for count, rate in counts),
            program.part,
            f"{found.part / own:.2f}" if program.alone else "",
        )
    if found is None:
        raise SystemExit("no program has such a word in its name")
    console = Console(width=130)
    console.print(table)
    console.print(
        f"beside the last program, a second: {found.flops:.2g} operations of a product, "
        f"{found.bytes:.2g} bytes of copies, {found.functions:.2g} exponentials"
    )


if __name__ == "__main__":
    main()
