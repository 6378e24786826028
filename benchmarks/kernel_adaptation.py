"""Kernel adaptation beside the straightforward NumPy and SciPy way: averaged over data, Gaussian
weights on given data, and the samplers by effective samples a second.

    python benchmarks/kernel_adaptation.py
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import minimize
from scipy.special import erf, logsumexp

import orderparam as op
from orderparam.core.text import with_error
from orderparam.sampling import Samples, estimate, sample
from orderparam.systems.kernel_adaptation import (
    DeepNetworkOnData,
    NetworkOnData,
    PatchNetwork,
    TwoLayerNetwork,
    adapted_weights,
    draw_network,
    gaussian_weights_on_data,
    hermite_target,
    sampled_deep_network,
    sampled_network,
    sampled_on_data,
    sampled_patches,
)
from orderparam.systems.kernel_adaptation.two_layers.experiment import (
    TwoLayerPosterior,
    training_set,
)

SYSTEM = TwoLayerNetwork(
    20, 100, 400, 0.2, hermite_target({1: 1.0, 3: -0.3}), 0.015, 0.5, modes=(1, 3)
)


def straightforward(system: TwoLayerNetwork) -> np.ndarray:
    """f_1, f_3 by BFGS on the same convex function, on a fixed grid in rho and log q_perp."""
    d, v, s, n = (
        float(x)
        for x in (system.input_dim, system.weight_variance, system.readout_variance, system.width)
    )
    rho = np.linspace(-4, 4, 1501)[:, None]
    width = np.sqrt(2 / (d - 1))
    log_q = np.arange(np.log(v) - 8 * width - 3, np.log(v) + 8 * width + 0.5, 0.3 * width)
    q = np.exp(log_q)
    log_weight = -d * rho**2 / (2 * v) + (d - 1) / 2 * log_q - d * q / (2 * v)
    log_weight -= logsumexp(log_weight)
    t = rho / np.sqrt(1 + 2 * (rho**2 + q))
    m = np.stack([2 / np.sqrt(np.pi) * t, -4 / np.sqrt(np.pi) / np.sqrt(6) * t**3])
    y, lam = np.asarray(system.hidden.y), float(system.hidden.ridge)

    def dual(u: np.ndarray) -> tuple[float, np.ndarray]:
        tau = u / lam
        log_p = log_weight + s / (2 * n) * np.tensordot(tau, m, 1) ** 2
        log_z = logsumexp(log_p)
        output = s * np.tensordot(m, np.exp(log_p - log_z) * np.tensordot(tau, m, 1), 2)
        return float(-tau @ y + lam / 2 * tau @ tau + n * log_z), (output - y + u) / lam

    return y - minimize(dual, np.zeros(2), jac=True, method="BFGS", options={"gtol": 1e-6}).x


def gaussian_by_hand(system: NetworkOnData) -> tuple[float, int]:
    """F/N of Gaussian weights with full covariance, by SciPy's L-BFGS with the gradient worked out
    on paper; its evaluations."""
    x, y = np.asarray(system.inputs), np.asarray(system.targets)
    (count, d), n, temperature = x.shape, float(system.width), float(system.temperature)
    x = x * np.sqrt(float(system.weight_variance) / d)
    lower = np.tril_indices(d)

    def action(entries: np.ndarray) -> tuple[float, np.ndarray]:
        factor = np.zeros((d, d))
        factor[lower] = entries
        c = (x @ factor) @ (x @ factor).T
        root = np.sqrt(1 + 2 * np.diag(c))
        ratio = 2 * c / np.outer(root, root)
        kernel = float(system.readout_variance) * 2 / np.pi * np.arcsin(ratio)
        inverse = np.linalg.inv(kernel + temperature * np.eye(count))
        dual = inverse @ y
        fit = y @ dual + np.linalg.slogdet(kernel + temperature * np.eye(count))[1]
        slope = (
            (inverse - np.outer(dual, dual))
            * float(system.readout_variance)
            * 2
            / np.pi
            / np.sqrt(1 - ratio**2)
        )
        to_c = slope * 2 / np.outer(root, root) - 2 * np.diag(
            np.sum(slope * ratio, axis=1) / root**2
        )
        gradient = factor + x.T @ to_c @ x @ factor / n - np.diag(1 / np.diag(factor))
        return np.sum(entries**2) / 2 - np.sum(np.log(np.diag(factor))) + fit / (2 * n), gradient[
            lower
        ]

    found = minimize(
        action,
        np.eye(d)[lower],
        jac=True,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-8, "maxiter": 600},
    )
    return float(found.fun), found.nfev


def hmc_by_hand(system: TwoLayerNetwork, draws: int = 300, steps: int = 10) -> float:
    """Effective samples of f_1 by HMC over both whitened layers in NumPy, 10 leapfrog steps a draw,
    as many draws of burn-in."""
    random = np.random.default_rng(0)
    d, n, units = int(system.input_dim), int(system.n_train), int(system.width)
    x = random.standard_normal((n, d))
    y = np.asarray(system.hidden.target(jnp.asarray(x[:, 0])))
    w_scale, a_scale = (
        np.sqrt(float(system.weight_variance) / d),
        np.sqrt(float(system.readout_variance) / units),
    )
    temperature = float(system.temperature)

    def potential(u: np.ndarray, v: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        h = w_scale * x @ u.T
        phi = erf(h)
        gap = a_scale * phi @ v - y
        force_v = v + a_scale * phi.T @ gap / temperature
        force_u = (
            u
            + ((2 / np.sqrt(np.pi) * np.exp(-(h**2)) * np.outer(gap, v)).T @ x)
            * a_scale
            * w_scale
            / temperature
        )
        return (np.sum(u**2) + np.sum(v**2) + gap @ gap / temperature) / 2, force_u, force_v

    u, v, step = random.standard_normal((units, d)), random.standard_normal(units), 0.1
    energy, force_u, force_v = potential(u, v)
    first = []
    for draw in range(2 * draws):
        old, p, q = (
            (u, v, energy, force_u, force_v),
            random.standard_normal(u.shape),
            random.standard_normal(units),
        )
        start, length = energy + (np.sum(p**2) + np.sum(q**2)) / 2, step * random.uniform(0.8, 1.2)
        for _ in range(steps):
            p, q = p - length / 2 * force_u, q - length / 2 * force_v
            u, v = u + length * p, v + length * q
            energy, force_u, force_v = potential(u, v)
            p, q = p - length / 2 * force_u, q - length / 2 * force_v
        acceptance = min(
            1.0, float(np.exp(min(0.0, start - energy - (np.sum(p**2) + np.sum(q**2)) / 2)))
        )
        if random.uniform() > acceptance:
            u, v, energy, force_u, force_v = old
        if draw < draws:
            step *= np.exp((acceptance - 0.85) / np.sqrt(draw + 1))
        else:
            w = w_scale * u
            first.append(
                a_scale * v @ (2 / np.sqrt(np.pi) * w[:, 0] / np.sqrt(1 + 2 * np.sum(w**2, axis=1)))
            )
    return float(estimate(jnp.asarray(first)[None, :, None]).effective_samples[0])


def timed(function: Callable[[], object], repetitions: int = 3) -> tuple[float, float]:
    """CPU seconds (of all threads) of the first call, and the median of the following ones."""
    seconds = []
    for _ in range(repetitions + 1):
        start = time.process_time()
        jax.block_until_ready(function())
        seconds.append(time.process_time() - start)
    return seconds[0], median(seconds[1:])


def samplers() -> dict[str, Callable[[], Any]]:
    """One run of each sampler, with the effective samples of its slowest observable in the
    result."""
    key = jax.random.key(0)
    relu = TwoLayerNetwork(
        16, 100, 48, 0.1, hermite_target({1: 1.0}), absolute=0.3, activation="relu"
    ).scaling(16)
    given = draw_network(relu, key)
    x = jax.random.normal(key, (40, 12))
    deep = DeepNetworkOnData(
        x,
        x[:, 0],
        x[:5],
        x[:5, 0],
        width=80,
        temperature=0.005,
        readout_variance=0.05,
        hidden_variance=2.0,
    )
    patches = PatchNetwork(
        10, 2, 200, 20, 0.01, hermite_target({1: 1.0}), 0.01, activation="linear"
    )
    return {
        "two layers, erf, d = 20, N = 100, n = 400": lambda: sampled_network(
            SYSTEM, key, samples=60, warmup=60
        ),
        "relu on given data, d = 16, N = 100, n = 48": lambda: sampled_on_data(
            given, key, samples=60, warmup=60
        ),
        "the same, 4 N particles": lambda: sampled_on_data(
            given, key, replicas=4, samples=60, warmup=60
        ),
        "three layers, d = 12, N = 80, n = 40": lambda: sampled_deep_network(
            deep, key, samples=60, warmup=60
        ),
        "2 patches of 10, C = 200, P = 20": lambda: sampled_patches(
            patches, key, samples=60, warmup=60
        ),
    }


METHODS: dict[str, dict[str, Any]] = {
    "hmc": {"warmup": 100, "samples": 300, "trajectory": 2.0},
    "mala": {"warmup": 1000, "samples": 300, "thin": 10},
    "langevin": {"warmup": 1000, "samples": 300, "thin": 10},
}


def by_method(method: str, **options: Any) -> Samples:
    """The posterior of the erf network, two chains from the prior; 3000 gradients or a few more a
    chain."""
    key = jax.random.key(0)
    posterior = TwoLayerPosterior(SYSTEM.hidden, *training_set(SYSTEM, key))
    return sample(
        posterior,
        posterior.starts(2, 0, key),
        key,
        method=method,
        observe=posterior.record,
        **options,
    )


Row = tuple[str, tuple[float, float], str]


def averaged_over_data() -> Iterator[Row]:
    yield (
        "adapted weights, one point",
        timed(lambda: adapted_weights(SYSTEM).output),
        "d = 20, N = 100, n = 400",
    )
    gap = float(
        np.max(np.abs(straightforward(SYSTEM) - np.asarray(adapted_weights(SYSTEM).output)))
    )
    yield (
        "the same in NumPy and SciPy",
        timed(lambda: straightforward(SYSTEM)),
        f"BFGS; differs by {gap:.0e}",
    )
    many = jax.jit(jax.vmap(lambda n: adapted_weights(SYSTEM.with_(n_train=n))))
    grid = jnp.geomspace(30, 1e4, 100)
    seconds = timed(lambda: many(grid), 1)
    yield (
        "adapted weights, 100 points vmapped",
        seconds,
        f"n = 30 .. 1e4, {int(jnp.sum(many(grid).converged))} converged",
    )


def on_given_data() -> Iterator[Row]:
    wide = TwoLayerNetwork(50, 1000, 500, 0.1, hermite_target({1: 1.0, 3: -0.1}), 0.1, 0.5)
    data = draw_network(wide, jax.random.key(0), 500)
    seconds = timed(lambda: gaussian_weights_on_data(data).mean, 1)
    yield "Gaussian weights on data", seconds, "n = 500, d = 50, full covariance"
    (action, evaluations), spent = once(lambda: gaussian_by_hand(data))
    gap = abs(action - float(gaussian_weights_on_data(data).action))
    yield (
        "the same in NumPy and SciPy",
        (spent, spent),
        f"gradient by hand, {evaluations} evaluations; F/N differs by {gap:.0e}",
    )


def of_samplers() -> Iterator[Row]:
    for name, run in samplers().items():
        (_, first), (found, then) = once(run), once(run)
        rate = float(found.effective_samples) / then
        yield (
            f"HMC: {name}",
            (first, then),
            f"{rate:.3g} effective samples/s of the slowest observable",
        )
    for method, options in METHODS.items():
        run = partial(by_method, method, **options)
        (_, first), (found, then) = once(run), once(run)
        f_1 = jax.tree.map(lambda part: float(part[0]), found.estimates.output)
        remark = (
            f"f_1 = {with_error(f_1.mean, f_1.standard_error)}, {f_1.effective_samples / then:.3g} "
            "effective samples/s of it"
        )
        if method == "langevin":
            remark += (
                f", variances up to {100 * float(jnp.max(found.variance_inflation)) - 100:.1f} % "
                "too large"
            )
        yield f"{method}: two layers, erf", (first, then), remark
    samples, spent = once(lambda: hmc_by_hand(SYSTEM))
    yield (
        "two layers, erf, in NumPy",
        (spent, spent),
        f"both layers sampled; {samples / spent:.3g} effective samples/s of f_1",
    )


def once(function: Callable[[], Any]) -> tuple[Any, float]:
    """The value, and the CPU seconds that it took."""
    start = time.process_time()
    value = jax.block_until_ready(function())
    return value, time.process_time() - start


def main() -> None:
    console = Console(width=150)
    console.print(
        f"orderparam {op.__version__}, jax {jax.__version__}, {jax.devices()[0].device_kind}"
    )
    parts = {
        "averaged over data": averaged_over_data,
        "on given data": on_given_data,
        "samplers": of_samplers,
    }
    for title, part in parts.items():
        table = Table(title=f"Kernel adaptation, {title}: CPU seconds")
        for column in ("what", "first call", "then", "remark"):
            table.add_column(column)
        for what, (first, then), remark in part():
            table.add_row(what, f"{first:.3g} s", f"{then:.3g} s", remark)
        console.print(table)


if __name__ == "__main__":
    main()
