"""Memory and time of the observables of a large network: ten million parameters on the ten thousand
test images of MNIST.

    python benchmarks/inspect_size.py [--directions 16] [--examples 10000] [--widths 3072 2500]

The network is fully connected, in single precision. "Trained" is a few steps of gradient descent
on 200 of the images. Peak memory is that of the whole process.
"""

import argparse
import resource
import time

import jax
import jax.numpy as jnp
import numpy as np

from orderparam.data import apply_task, load
from orderparam.observables import alignment, feature_drift, similarity, tangent_features


def network(theta, x):
    for w in theta[:-1]:
        x = jax.nn.relu(x @ w.T * (2 / w.shape[1]) ** 0.5)
    return x @ theta[-1] / len(theta[-1]) ** 0.5


def report(name, start):
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{name}: {time.perf_counter() - start:.1f} s, peak so far {peak:.2f} GiB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--directions", type=int, default=16)
    parser.add_argument("--examples", type=int, default=10_000)
    parser.add_argument("--widths", type=int, nargs="+", default=[3072, 2500])
    options = parser.parse_args()
    pool, targets = apply_task(load("mnist", "test", count=options.examples), "even-odd")
    x = pool.inputs - pool.inputs.mean(axis=0)
    x = (x / np.sqrt(np.mean(x**2))).astype(np.float32)
    y = np.asarray(targets.values, np.float32).reshape(-1)
    rng = np.random.default_rng(0)
    shapes = list(zip(options.widths, (x.shape[1], *options.widths)))
    theta = [jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in shapes]
    theta.append(jnp.asarray(rng.normal(size=options.widths[-1]), jnp.float32))
    count = sum(leaf.size for leaf in theta)
    print(f"{count} parameters, {len(x)} examples, {options.directions} directions")

    @jax.jit
    def step(theta):
        def error(theta):
            return jnp.mean((network(theta, x[:200]) - network(start, x[:200]) - y[:200]) ** 2)

        return jax.tree.map(lambda w, g: w - 5.0 * g, theta, jax.grad(error)(theta))

    start, clock = list(theta), time.perf_counter()
    for _ in range(5):
        theta = step(theta)
    report("five steps", clock)
    clock = time.perf_counter()
    features = [tangent_features(network, one, x, options.directions) for one in (start, theta)]
    report("derivatives in random directions, of two networks", clock)
    clock = time.perf_counter()
    for one in feature_drift(*features, draws=0):
        print(one)
    print(alignment(features[1], y, draws=0))
    report("drift and alignment of the tangent kernel", clock)
    clock = time.perf_counter()
    hidden = [
        np.asarray(jax.nn.relu(x @ one[0].T * (2 / x.shape[1]) ** 0.5)) for one in (start, theta)
    ]
    print(similarity(*hidden))
    report("similarity of the first layer to its start", clock)


if __name__ == "__main__":
    main()
