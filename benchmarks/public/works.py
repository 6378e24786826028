"""The works that peers do too: what goes in, and how this package answers."""

from collections.abc import Callable
from typing import NamedTuple

import gaussian
import jax
import numpy as np

from orderparam.kernels.gp import gp_posterior
from orderparam.networks import convolutional, fully_connected
from orderparam.systems.spins import IsingLattice, metropolis, swendsen_wang

TEMPERATURE = 2.6  # of the lattice: sweeps from any start reach equilibrium soon
REPLICAS, SWEEPS, CLUSTER_SWEEPS = 64, 2000, 200
SCALE = {"weight_variance": 2.0, "bias_variance": 0.1}


class Work(NamedTuple):
    """words: what is computed. run: our answer as one array. units: sweeps of a lattice in it.
    random: whether two answers differ by chance."""

    words: str
    run: Callable[[], np.ndarray]
    units: int = 1
    random: bool = False


def inputs() -> dict[str, np.ndarray]:
    """The same for all peers."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1300, 50))
    y = x @ rng.normal(size=50) / np.sqrt(50) + 0.3 * x[:, 0] * x[:, 1]
    return {
        "vectors": rng.normal(size=(300, 100)),
        "images": rng.normal(size=(12, 8, 8, 3)),
        "x": x[:1000],
        "y": y[:1000],
        "test_x": x[1000:],
        "temperature": np.array(TEMPERATURE),
    }


def works(given: dict[str, np.ndarray]) -> dict[str, Work]:
    """Every work by the name that peers answer to."""
    return {
        "erf-kernels": Work("NNGP and NTK of 3 layers of erf, 300 vectors", _deep("erf", given)),
        "relu-kernels": Work("NNGP and NTK of 3 layers of ReLU, 300 vectors", _deep("relu", given)),
        "image-kernels": Work(
            "NNGP and NTK of 2 convolutions, mean, 12 images of 8 x 8", _images(given)
        ),
        "regression": Work(
            "Gaussian process, erf kernel, 1000 rows: mean, variance, evidence", _regression(given)
        ),
        "local-updates": Work(
            "a sweep of single spins, Ising 64 x 64", _local, REPLICAS * SWEEPS, True
        ),
        "cluster-updates": Work(
            "a sweep of clusters, Ising 64 x 64", _clusters, 16 * CLUSTER_SWEEPS, True
        ),
    }


def _both(network, x):  # type: ignore[no-untyped-def]
    def run() -> np.ndarray:
        found = network.kernel(x)
        return np.stack([np.asarray(found.nngp), np.asarray(found.ntk)])

    return run


def _deep(activation: str, given: dict[str, np.ndarray]) -> Callable[[], np.ndarray]:
    return _both(fully_connected(3, None, activation, **SCALE), given["vectors"])


def _images(given: dict[str, np.ndarray]) -> Callable[[], np.ndarray]:
    network = convolutional(2, None, 3, "relu", readout="global_average", **SCALE)
    return _both(network, given["images"])


def _regression(given: dict[str, np.ndarray]) -> Callable[[], np.ndarray]:
    network = fully_connected(
        1, None, "erf", weight_variance=gaussian.WEIGHT, bias_variance=gaussian.BIAS
    )
    x, y, other = (given[name] for name in ("x", "y", "test_x"))

    def run() -> np.ndarray:
        found = gp_posterior(
            network.nngp(x),
            network.nngp(other, x),
            network.variance(other),
            y,
            gaussian.TEMPERATURE,
        )
        return np.concatenate([found.mean, found.variance, [found.log_evidence]])

    return run


def _lattice() -> IsingLattice:
    return IsingLattice(TEMPERATURE, (64, 64))


def _local() -> np.ndarray:
    found = metropolis(
        _lattice(), jax.random.key(0), replicas=REPLICAS, warmup=0, sweeps=SWEEPS, every=1
    )
    return np.asarray(found.energy)


def _clusters() -> np.ndarray:
    found = swendsen_wang(
        _lattice(), jax.random.key(0), replicas=16, warmup=0, sweeps=CLUSTER_SWEEPS
    )
    return np.asarray(found.energy)
