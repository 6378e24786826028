"""Makes a table of docs/howto/inspect.md: two-layer networks on digits, from lazy to rich.

    python benchmarks/inspect_lazy_to_rich.py          # some ten minutes on two cores

The network is sum_i a_i tanh(w_i . x / sqrt(d)) / sqrt(N) with all parameters N(0, 1) at the start,
and f = (net - net_0)/gamma is trained by gradient descent on the mean squared error of even
against odd digits, until it is 0.5 (early) and 0.05 (late).
"""

import jax
import jax.numpy as jnp
import numpy as np

from orderparam.data import apply_task, load
from orderparam.observables import (
    alignment,
    kernel_drift,
    lazy_to_rich,
    similarity,
    tangent_kernel,
    weight_spectrum,
)

TRAIN, FRESH, SEEDS = 150, 300, 16
WIDTHS = (64, 256)
SCALES = (0.02, 0.1, 0.5)  # gamma / sqrt(N)
SMALLER = (0.004,)
MOST = 30_000  # steps


def network(theta, x):
    w, a = theta
    return jnp.tanh(x @ w.T / x.shape[1] ** 0.5) @ a / len(a) ** 0.5


def digits(seed):
    pool, targets = apply_task(load("digits"), "even-odd")
    order = np.random.default_rng(seed).permutation(len(pool.inputs))[: TRAIN + FRESH]
    x = pool.inputs[order] - pool.inputs.mean(axis=0)
    x = x / np.sqrt(np.mean(x**2))
    y = np.asarray(targets.values[order]).reshape(-1)
    return x[:TRAIN], y[:TRAIN], x[TRAIN:], y[TRAIN:]


@jax.jit
def trained(start, x, y, gamma, goal, step):
    """Parameters at the first step at which the training error is below the goal, and the steps."""
    zero = network(start, x)

    def error(theta):
        return jnp.mean(((network(theta, x) - zero) / gamma - y) ** 2)

    def descend(state):
        theta, steps, _ = state
        value, gradient = jax.value_and_grad(error)(theta)
        theta = jax.tree.map(lambda w, g: w - step * gamma**2 * g, theta, gradient)
        return theta, steps + 1, value

    def goes_on(state):
        return (state[2] > goal) & (state[1] < MOST)

    return jax.lax.while_loop(goes_on, descend, (start, 0, jnp.inf))


def one(width, scale, seed):
    """The numbers of one network."""
    x, y, fresh, y_fresh = digits(seed)
    gamma = scale * width**0.5
    rng = np.random.default_rng(1000 + seed)
    start = jnp.asarray(rng.normal(size=(width, x.shape[1]))), jnp.asarray(rng.normal(size=width))
    kernel = tangent_kernel(network, start, x)
    step = 0.1 * len(x) / np.linalg.eigvalsh(kernel)[-1]
    found = {}
    hidden = [np.tanh(x @ np.asarray(start[0]).T / x.shape[1] ** 0.5)]
    for when, goal in (("early", 0.5), ("late", 0.05)):
        theta, steps, reached = trained(start, x, y, gamma, goal, step)
        if not reached <= goal:
            return None
        f, f_fresh = ((network(theta, z) - network(start, z)) / gamma for z in (x, fresh))
        found[f"number {when}"] = lazy_to_rich(
            np.zeros(FRESH), f_fresh, tangent_kernel(network, start, fresh, x), kernel,
            np.zeros(TRAIN), f, y, 2 * float(step) / len(x),
        ).value  # fmt: skip
        hidden.append(np.tanh(x @ np.asarray(theta[0]).T / x.shape[1] ** 0.5))
        if when == "late":
            drift = kernel_drift(kernel, tangent_kernel(network, theta, x))
            found["drift"], found["shape"] = drift.norm.value, drift.shape.value
            found["error"] = float(np.mean(np.sign(f_fresh) != y_fresh))
            spectrum = weight_spectrum(np.asarray(theta[0]), np.asarray(start[0]), seed=seed)
            found["outliers"] = len(spectrum.outliers)
            found["steps"] = int(steps)
    for when, h in zip(("start", "early", "late"), hidden):
        found[f"alignment {when}"] = alignment(h, y, estimand="examples", draws=0).value
    found["similarity"] = similarity(hidden[0], hidden[2], draws=0).value
    return found


def measured():
    """For each width and scale the mean and the standard error of each number over networks."""
    table = {}
    for width in WIDTHS:
        for scale in (*SMALLER, *SCALES):
            rows = [row for row in (one(width, scale, seed) for seed in range(SEEDS)) if row]
            if len(rows) < SEEDS:
                print(f"width {width}, scale {scale}: {SEEDS - len(rows)} did not end", flush=True)
            table[width, scale] = {
                name: (
                    float(np.mean([row[name] for row in rows])),
                    float(np.std([row[name] for row in rows], ddof=1) / len(rows) ** 0.5),
                )
                for name in rows[0]
            }
            print(width, scale, len(rows), table[width, scale], flush=True)
    return table


def main():
    table = measured()
    names = (
        "number early",
        "number late",
        "drift",
        "shape",
        "similarity",
        "alignment late",
        "outliers",
        "error",
    )
    from orderparam.core.text import with_error

    for (width, scale), numbers in table.items():
        cells = [with_error(*numbers[name]) for name in names]
        print(f"| {width} | {scale:g} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
