"""Prints the results of sweeps, over theories of several kinds and an experiment, as JSON."""

import json

import numpy as np
from magnet import Paramagnet, sampled

import orderparam as op
from orderparam.kernels import finite_rank
from orderparam.systems.generalised_linear import GeneralisedLinear
from orderparam.systems.generalised_linear import state_evolution as of_signs
from orderparam.systems.kernel_regression import KernelRegression, self_consistent
from orderparam.systems.random_features import RandomFeatures
from orderparam.systems.random_features import state_evolution as of_features

CASES = {
    # 5 points: no multiple of the number of devices
    "signs": (of_signs, GeneralisedLinear(1.0), {"sample_ratio": (0.3, 0.7, 1.0, 1.4, 2.0)}),
    "kernel": (
        self_consistent,
        KernelRegression(finite_rank(20, 0.05), n_train=30, temperature=0.1, noise=0.1),
        {"n_train": (10.0, 30.0, 90.0), "temperature": (0.01, 0.1, 1.0)},
    ),
    "features": (
        of_features,
        RandomFeatures(200, 400, n_train=300, ridge=0.01),
        {"ridge": tuple(0.01 * 2**k for k in range(8))},
    ),
}


def results() -> dict[str, list[float]]:
    """The values of every case, and of eight seeds of an experiment."""
    found = {
        name: [
            float(value)
            for observable in op.sweep(theory, system, over, progress=False).data_vars.values()
            if observable.dtype.kind == "f" and observable.name != "seconds"
            for value in observable.values.ravel()
        ]
        for name, (theory, system, over) in CASES.items()
    }
    drawn = op.sweep(sampled, Paramagnet(1.0, 0.3), {}, seeds=8, batch_seeds=True, progress=False)
    return found | {"seeds": [float(value) for value in drawn["magnetisation"].values.ravel()]}


def devices_in_use() -> int:
    """The number of devices that hold the results of one compiled sweep."""
    theory, system, _ = CASES["kernel"]
    program, arrays = theory.batched(system, {}, ("n_train",), 16)
    found = program(arrays, {"n_train": np.linspace(10.0, 90.0, 16)})
    return len(found.test_error.sharding.device_set)


if __name__ == "__main__":
    print(json.dumps({"devices": devices_in_use(), **results()}))
