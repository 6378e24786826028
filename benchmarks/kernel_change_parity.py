"""Which part of the change of a tangent kernel is odd in the targets, and which is even.

    python benchmarks/kernel_change_parity.py [--seeds 8]

Networks of three layers of odd units on 100 digits are trained twice from one start, on the targets
and on the targets with the other sign. With the kernels K(+) and K(-) after it and K at the start,
the odd part of the change is [K(+) - K(-)] / 2, and the even part [K(+) + K(-)] / 2 - K. The first
is of order richness / sqrt(width), because its mean over starts is zero: a start with other signs
of the read-outs learns the other targets with the same kernel. The second is of order richness^2 at
every width. Both are given as relative norms, and as 1 - similarity of the kernel with this part of
the change added.
"""

import argparse

import jax
import numpy as np

from orderparam.observables import kernel_drift, tangent_kernel
from orderparam.systems.trained_networks import InspectedTraining
from orderparam.systems.trained_networks.experiment import _trained
from orderparam.systems.trained_networks.studies import dense, split

CASES = ((64, 0.1), (256, 0.1), (64, 0.03), (256, 0.03))  # width, richness
LEVEL = 0.1  # of the training error at the start
LEARNING_RATE = 0.02


def parts(system: InspectedTraining, seed: int) -> list[float]:
    """1 - similarity with the whole change, its odd and its even part; norms of the last two."""
    network = system.network()
    x, y = np.asarray(system.inputs), np.asarray(system.targets)
    start, model = network.draw(jax.random.key(seed), x.shape[1:]), network.apply
    gamma = float(system.richness) * system.width**0.5
    kernel = tangent_kernel(model, start, x)
    step = LEARNING_RATE * gamma**2 / np.linalg.eigvalsh(kernel)[-1]
    goal = LEVEL * np.mean(y**2)
    plus, minus = (
        _trained(network, (x, sign * y), system.steps, start, start, gamma, step, goal)
        for sign in (1, -1)
    )
    changes = [tangent_kernel(model, theta, x) - kernel for theta in (plus, minus)]
    odd, even = (changes[0] - changes[1]) / 2, (changes[0] + changes[1]) / 2
    shapes = [
        kernel_drift(kernel, kernel + change, draws=0).shape.value
        for change in (changes[0], odd, even)
    ]
    return shapes + [float(np.linalg.norm(one) / np.linalg.norm(kernel)) for one in (odd, even)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=8)
    seeds = parser.parse_args().seeds
    data = split("digits", "even-odd", 100, 300)
    for width, richness in CASES:
        system = InspectedTraining(*data, dense(3), width, richness)
        found = np.array([parts(system, 1000 + seed) for seed in range(seeds)])
        errors = found.std(axis=0, ddof=1) / seeds**0.5
        words = ("1 - U", "odd", "even", "norm odd", "norm even")
        print(
            f"{width} units, richness {richness:g}: "
            + ", ".join(f"{w} {m:.3g} +- {e:.2g}" for w, m, e in zip(words, found.mean(0), errors)),
            flush=True,
        )


if __name__ == "__main__":
    main()
