"""`op.observables.learning_coefficient` against exact running coefficients.

    python benchmarks/learning_coefficient.py [--runs 16] [--repeats 200]

The sampler, for each case of reduced-rank regression: lambda(t) and v(t) of many runs of 12 ensembles, as
deviations from the exact values in units of the standard error of each run (rms; Student with 11
degrees of freedom has 1.10), how often their intervals held the exact value, and the coefficient's
mean, scatter and how often its interval held the closed form. All ensembles are drawn at once.

The extrapolation, on exact curves u(t) and v(t) with the noise of 300 effective draws an ensemble:
how often the interval held the closed form, its width, and the mean deviation of the value, for the
default t, for those of `inspect` up to n / ln n, and for t up to 1e9, which only a loss without noise
allows.
"""

import argparse
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats
from scipy.interpolate import CubicSpline

from orderparam.observables.learning_coefficient import TIMES, _exchange, _plateau, _variances
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
Sizes = tuple[int, int, int]


def sampled(sizes: Sizes, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """u and v of each run, ensemble and t."""
    inputs, hidden, outputs = sizes

    def above(w: jax.Array) -> jax.Array:
        b, a = w[: outputs * hidden], w[outputs * hidden :]
        return jnp.sum((b.reshape(outputs, hidden) @ a.reshape(hidden, inputs)) ** 2) / 2

    size, t = hidden * (inputs + outputs), jnp.asarray(TIMES)
    run = jax.jit(partial(_exchange, above, size, ENSEMBLES * runs, BURN_IN, DRAWS))
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


def limits(t: np.ndarray, each: np.ndarray, order: int) -> tuple[float, float, float]:
    laws, middle, _ = _plateau(t, each, order)
    ends = np.array([law.quantiles((0.025, 0.975)) for law in laws])
    return ends[:, 0].min(), middle, ends[:, 1].max()


def of_the_sampler(sizes: Sizes, runs: int) -> str:
    times, quantile = np.array(TIMES), stats.t.ppf(0.975, ENSEMBLES - 1)
    limit, multiplicity = aoyagi_watanabe(*sizes)
    words = [f"{sizes}: limit {limit:g}, multiplicity {multiplicity}"]
    for order, (each, truth) in enumerate(zip(sampled(sizes, runs), exact(sizes, times))):
        z = (each.mean(axis=1) - truth) / (each.std(axis=1, ddof=1) / ENSEMBLES**0.5)
        ends = np.array([limits(times[FIRST:], one[:, FIRST:], order) for one in each])
        held = np.mean((ends[:, 0] <= limit) & (limit <= ends[:, 2]))
        words.append(
            f"{'uv'[order]}: rms z {np.mean(z**2) ** 0.5:.2f}, held {np.mean(np.abs(z) < quantile):.3f}; "
            f"coefficient {ends[:, 1].mean():.3f}, scatter {ends[:, 1].std():.3f}, held {held:.2f}"
        )
    return "; ".join(words)


def of_exact_curves(sizes: Sizes, name: str, repeats: int) -> str:
    t, rng, words = LADDERS[name][FIRST:], np.random.default_rng(0), [f"{sizes}, {name}"]
    limit = aoyagi_watanabe(*sizes)[0]
    for order, truth in enumerate(exact(sizes, t)):
        # K is close to a gamma variable of the shape u, whose variance has the kurtosis 3 + 6 / u
        noise = np.sqrt((2 + 6 / truth if order else 1 / truth) / EFFECTIVE)
        draws = truth * (1 + noise * rng.normal(size=(repeats, ENSEMBLES, len(t))))
        ends = np.array([limits(t, each, order) for each in draws]) / limit
        held = np.mean((ends[:, 0] <= 1) & (ends[:, 2] >= 1))
        words.append(
            f"{'uv'[order]}: held {held:.3f}, interval {np.median(ends[:, 2] - ends[:, 0]):.0%} wide, "
            f"off {ends[:, 1].mean() - 1:+.1%}"
        )
    return "; ".join(words)


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
        for sizes in CASES:
            print(of_exact_curves(sizes, name, asked.repeats), flush=True)


if __name__ == "__main__":
    main()
