"""Memory and time of the observables of a large network: ten million parameters on the ten thousand
test images of MNIST, beside the same numbers from the whole tangent kernel.

    python benchmarks/inspect_size.py [--directions 8 64] [--examples 10000] [--widths 3072 2500]

The network is fully connected, in single precision. "Trained" is a few steps of gradient descent
on 200 of the images. Of 64 random directions the first 8, then all are used, so that the error
is seen to fall. In a fully connected network the tangent kernel is a sum over layers of products of
two kernels, those of the layer's inputs and of the derivatives by its outputs: by this formula,
which no other network has, the whole kernel is summed a block of rows at a time. Peak memory is
that of the whole process.
"""

import argparse
import resource
import time
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from orderparam.data import apply_task, load
from orderparam.observables import alignment, feature_drift, similarity, tangent_features
from orderparam.observables.hsic import combined

BLOCK = 1000  # rows of the kernel


def network(theta, x):
    for w in theta[:-1]:
        x = jax.nn.relu(x @ w.T * (2 / w.shape[1]) ** 0.5)
    return x @ theta[-1] / len(theta[-1]) ** 0.5


def signals(theta, x):
    """The inputs of each layer, and the derivatives of the output by the layer's outputs."""
    inputs, slopes = [x], []
    for w in theta[:-1]:
        scale = (2 / w.shape[1]) ** 0.5
        z = inputs[-1] @ w.T * scale
        slopes.append((z > 0) * scale)
        inputs.append(jax.nn.relu(z))
    scale = len(theta[-1]) ** -0.5
    back = [jnp.full((len(x), 1), scale)]
    # the derivative by the activations of a layer, then by the product of weights and inputs
    down = jnp.broadcast_to(theta[-1] * scale, (len(x), len(theta[-1])))
    for w, slope in zip(theta[-2::-1], slopes[::-1]):
        back.append(down * slope)
        down = back[-1] @ w
    return list(zip(inputs, back[::-1]))


def rows(theta, x) -> Iterator[np.ndarray]:
    """The tangent kernel, a block of rows at a time."""
    pairs = jax.jit(signals)(theta, x)
    for top in range(0, len(x), BLOCK):
        block = sum((h[top : top + BLOCK] @ h.T) * (d[top : top + BLOCK] @ d.T) for h, d in pairs)
        yield np.array(block, np.float64)


def whole(start, theta, x, y):
    """Drift, its shape, and the alignment of the trained kernel with the targets."""
    n, place = len(x), 0
    squares = np.zeros(2)  # of the kernel before, and of its change
    products = {name: 0.0 for name in ("kk", "ll", "kl", "ly")}  # without the diagonals
    k, l = np.zeros(n), np.zeros(n)  # row sums
    y = np.asarray(y, np.float64) - np.mean(y)
    for early, late in zip(rows(start, x), rows(theta, x)):
        squares += np.sum(early**2), np.sum((late - early) ** 2)
        block = slice(place, place + len(early))
        here = np.arange(len(early)), np.arange(place, place + len(early))
        early[here], late[here] = 0, 0
        k[block], l[block] = early.sum(axis=1), late.sum(axis=1)
        products["kk"] += np.sum(early**2)
        products["ll"] += np.sum(late**2)
        products["kl"] += np.sum(early * late)
        products["ly"] += y[block] @ late @ y
        place += len(early)
    label = y * y.sum() - y**2
    labels = np.sum(y**2) ** 2 - np.sum(y**4)

    def h(product, a, b):
        return combined(n, product, a.sum(), b.sum(), a @ b)

    kk, ll, kl = (h(products[name], *sums) for name, sums in
                  (("kk", (k, k)), ("ll", (l, l)), ("kl", (k, l))))  # fmt: skip
    aligned = h(products["ly"], l, label) / np.sqrt(ll * h(labels, label, label))
    return np.sqrt(squares[1] / squares[0]), 1 - kl / np.sqrt(kk * ll), aligned


def clocks():
    return time.perf_counter(), time.process_time()


def report(name, start):
    wall, processor = (now - then for now, then in zip(clocks(), start))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{name}: {wall:.1f} s, {processor:.1f} s of the processors, peak so far {peak:.2f} GiB",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--directions", type=int, nargs="+", default=[8, 64])
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
    print(f"{count} parameters, {len(x)} examples")

    @jax.jit
    def step(theta, x, goal):
        def error(theta):
            return jnp.mean((network(theta, x) - goal) ** 2)

        return jax.tree.map(lambda w, g: w - 5.0 * g, theta, jax.grad(error)(theta))

    start, clock = list(theta), clocks()
    goal = network(start, x[:200]) + y[:200]
    for _ in range(5):
        theta = step(theta, x[:200], goal)
    report("five steps", clock)
    clock = clocks()
    most = max(options.directions)
    features = [tangent_features(network, one, x, most) for one in (start, theta)]
    report(f"derivatives in {most} random directions, of two networks", clock)
    for some in options.directions:
        clock = clocks()
        early, late = (one[:, :some] for one in features)
        for found in (*feature_drift(early, late, draws=0), alignment(late, y, draws=0)):
            print(found)
        report(f"drift and alignment of the tangent kernel from {some} directions", clock)
    clock = clocks()
    hidden = [
        np.asarray(jax.nn.relu(x @ one[0].T * (2 / x.shape[1]) ** 0.5)) for one in (start, theta)
    ]
    print(similarity(*hidden))
    report("similarity of the first layer to its start", clock)
    clock = clocks()
    print("the whole kernel: drift {:.5f}, in shape {:.6f}, alignment {:.5f}".format(
        *whole(start, theta, x, y)
    ))  # fmt: skip
    report("the same from the whole kernel of both networks", clock)


if __name__ == "__main__":
    main()
