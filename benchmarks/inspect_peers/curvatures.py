"""Curvature of the mean squared error of a linear model of 100 parameters on 200 Gaussian examples
whose columns have variances 1/k: its Hessian 2 X^T X / n is known."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from inspect_peers.contest import Answer, Contest, Package
from orderparam.observables import curvature

INPUTS, EXAMPLES, PROBES = 100, 200, 30


def _case(seed: int) -> tuple[np.ndarray]:
    x = np.random.default_rng(seed).normal(size=(EXAMPLES, INPUTS))
    return (x / np.arange(1, INPUTS + 1) ** 0.5,)


def _hessian(x: np.ndarray) -> np.ndarray:
    return 2 * x.T @ x / EXAMPLES


def _ours(which: str) -> Callable[[np.ndarray], Answer]:
    def measure(x: np.ndarray) -> Answer:
        seed = int(abs(x[0, 0]) * 1e6)  # other probes in each case
        found = curvature(
            lambda w: jnp.mean((x @ w) ** 2), jnp.ones(INPUTS), probes=PROBES, seed=seed
        )
        one = getattr(found, which)
        return Answer(one.value, one.low, one.high)

    return measure


def _module(x: np.ndarray):
    import torch

    module = torch.nn.Linear(INPUTS, 1, bias=False).double()
    rows = torch.as_tensor(x)
    return module, torch.nn.MSELoss(), rows, torch.zeros(len(x), 1).double()


def _pyhessian(which: str) -> Callable[[np.ndarray], Answer]:
    def measure(x: np.ndarray) -> Answer:
        import pyhessian

        module, loss, rows, zeros = _module(x)
        found = pyhessian.hessian(module, loss, data=(rows, zeros), cuda=False)
        if which == "largest":
            return Answer(float(found.eigenvalues()[0][0]))
        return Answer(float(np.mean(found.trace(maxIter=PROBES))))

    return measure


def _curvlinops(which: str) -> Callable[[np.ndarray], Answer]:
    def measure(x: np.ndarray) -> Answer:
        import curvlinops
        from scipy.sparse.linalg import eigsh

        module, loss, rows, zeros = _module(x)
        parameters = list(module.parameters())
        operator = curvlinops.HessianLinearOperator(module, loss, parameters, [(rows, zeros)])
        if which == "largest":
            found = eigsh(operator.to_scipy(), 1, which="LA", return_eigenvectors=False)[0]
            return Answer(float(found))
        return Answer(float(curvlinops.hutchinson_trace(operator, PROBES)))

    return measure


def contests() -> list[Contest]:
    truths = {
        "largest": lambda x: float(np.linalg.eigvalsh(_hessian(x))[-1]),
        "trace": lambda x: float(np.trace(_hessian(x))),
    }
    return [
        Contest(
            "curvature", f"{which}{' eigenvalue' if which == 'largest' else ''}", _case, truth,
            (
                Package(_ours(which), "orderparam"),
                Package(_pyhessian(which), "PyHessian", modules=("torch", "pyhessian")),
                Package(
                    _curvlinops(which), "curvlinops-for-pytorch",
                    "eigsh of SciPy" if which == "largest" else "", ("torch", "curvlinops"),
                ),
            ),
        )
        for which, truth in truths.items()
    ]  # fmt: skip
