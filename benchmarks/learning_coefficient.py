"""`op.observables.learning_coefficient` against exact running coefficients.

    python benchmarks/learning_coefficient.py [--runs 16] [--repeats 200]

The sampler, for each case of reduced-rank regression: lambda(t) and v(t) of many runs of 12
ensembles, as deviations from the exact values in units of the standard error of each run (rms;
Student with 11 degrees of freedom has 1.10), how often their intervals held the exact value, and
the coefficient's mean, scatter and how often its interval held the closed form. All ensembles are
drawn at once.

The extrapolation, on exact curves u(t) and v(t) of reduced-rank regression and of products of
powers with the noise of 300 effective draws an ensemble: how often the interval held the closed
form, its width, and the mean deviation of the value, for the default t, for those of `inspect` up
to n / ln n, and for t up to 1e9, which only a loss without noise allows.
"""

import argparse
import time
from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats
from scipy.interpolate import CubicSpline

from orderparam.observables.approach import limit as limit_of
from orderparam.observables.learning_coefficient import TIMES, _exchange, _variances
from orderparam.observables.normal_crossing import of_product, running_coefficient_of_product
from orderparam.observables.reduced_rank import aoyagi_watanabe, running_coefficient

SAMPLED = ((5, 3, 5), (5, 4, 5), (4, 3, 8), (5, 1, 5))
CASES = (*SAMPLED, (1, 1, 1), (2, 9, 3), (3, 2, 3), (6, 2, 4), (3, 3, 3), (4, 2, 5), (4, 4, 5))
ENSEMBLES, DRAWS, BURN_IN, FIRST = 12, 600, 300, 2
EFFECTIVE = 300
LADDERS = {
    "default": np.array(TIMES),
    "n = 1000": np.geomspace(1, 1000 / np.log(1000), 6),
    "n = 10000": np.geomspace(1, 10000 / np.log(10000), 6),
    "to 1e9": np.geomspace(1, 1e9, 10),
}
# exponents k of the product of w_i^(2k), with multiplicity 1, 2, 3, 4, 1, 2, 1
PRODUCTS = ((1,), (1, 1), (1, 1, 1), (1, 1, 1, 1), (1, 2), (2, 2), (1, 3))
Sizes = tuple[int, int, int]
Curves = tuple[np.ndarray, ...]


def _weights(sizes: Sizes) -> int:
    inputs, hidden, outputs = sizes
    return hidden * (inputs + outputs)


def sampled(sizes: Sizes, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """u and v of each run, ensemble and t."""
    inputs, hidden, outputs = sizes

    def above(w: jax.Array) -> jax.Array:
        b, a = w[: outputs * hidden], w[outputs * hidden :]
        return jnp.sum((b.reshape(outputs, hidden) @ a.reshape(hidden, inputs)) ** 2) / 2

    t = jnp.asarray(TIMES)
    run = jax.jit(partial(_exchange, above, _weights(sizes), ENSEMBLES * runs, BURN_IN, DRAWS))
    energy = np.asarray(run(t, jax.random.key(0))[0])
    times = np.array(TIMES)
    parts = np.split(energy, runs, axis=1)
    return (
        np.array([times * one.mean(axis=0) for one in parts]),
        np.array([times**2 * _variances(one) for one in parts]),
    )


def exact(sizes: Sizes, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """u and v = u - du / d ln t."""
    log_t = np.linspace(-0.5, 22.0, 110)
    curve = CubicSpline(log_t, [running_coefficient(*sizes, float(np.exp(x))) for x in log_t])
    return curve(np.log(times)), curve(np.log(times)) - curve(np.log(times), 1)


def of_the_sampler(sizes: Sizes, runs: int) -> str:
    times, quantile = np.array(TIMES), stats.t.ppf(0.975, ENSEMBLES - 1)
    limit, multiplicity = aoyagi_watanabe(*sizes)
    words = [f"{sizes}: limit {limit:g}, multiplicity {multiplicity}"]
    for order, (each, truth) in enumerate(zip(sampled(sizes, runs), exact(sizes, times))):
        z = (each.mean(axis=1) - truth) / (each.std(axis=1, ddof=1) / ENSEMBLES**0.5)
        size = _weights(sizes)
        ends = np.array([limit_of(times[FIRST:], one[:, FIRST:], order, size)[:3] for one in each])
        held = np.mean((ends[:, 0] <= limit) & (limit <= ends[:, 2]))
        words.append(
            f"{'uv'[order]}: rms z {np.mean(z**2) ** 0.5:.2f}, held "
            f"{np.mean(np.abs(z) < quantile):.3f}; coefficient {ends[:, 1].mean():.3f}, scatter "
            f"{ends[:, 1].std():.3f}, held {held:.2f}"
        )
    return "; ".join(words)


def of_exact_curves(words: str, curves: Curves, limit: float, size: int, repeats: int) -> str:
    """`curves`: u and v at each t; `size`: the number of parameters."""
    t, *truths = curves
    rng, found = np.random.default_rng(0), [words]
    for order, truth in enumerate(truths):
        # K is close to a gamma variable of the shape u, whose variance has the kurtosis 3 + 6 / u
        noise = np.sqrt((2 + 6 / truth if order else 1 / truth) / EFFECTIVE)
        draws = truth * (1 + noise * rng.normal(size=(repeats, ENSEMBLES, len(t))))
        ends = np.array([limit_of(t, each, order, size)[:3] for each in draws]) / limit
        held = np.mean((ends[:, 0] <= 1) & (ends[:, 2] >= 1))
        found.append(
            f"{'uv'[order]}: held {held:.3f}, interval {np.median(ends[:, 2] - ends[:, 0]):.0%} "
            f"wide, off {ends[:, 1].mean() - 1:+.1%}"
        )
    return "; ".join(found)


def of_all_curves(name: str, repeats: int) -> Iterator[str]:
    t = LADDERS[name][FIRST:]
    for powers in PRODUCTS:
        limit, _ = of_product(powers)
        curves = np.array([running_coefficient_of_product(powers, one) for one in t]).T
        words = f"powers {powers}, {name}"
        yield of_exact_curves(words, (t, *curves), limit, len(powers), repeats)
    for sizes in CASES:
        limit, _ = aoyagi_watanabe(*sizes)
        curves = exact(sizes, t)
        yield of_exact_curves(f"{sizes}, {name}", (t, *curves), limit, _weights(sizes), repeats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=200)
    asked = parser.parse_args()
    for sizes in SAMPLED if asked.runs else ():
        start = time.perf_counter()
        print(
            f"{of_the_sampler(sizes, asked.runs)}; {time.perf_counter() - start:.0f} s", flush=True
        )
    for name in LADDERS if asked.repeats else ():
        for line in of_all_curves(name, asked.repeats):
            print(line, flush=True)


if __name__ == "__main__":
    main()
