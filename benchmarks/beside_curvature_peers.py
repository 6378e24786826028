"""Curvature beside packages that measure the same, on cases of which the
truth is known.

    pip install torch pyhessian curvlinops-for-pytorch
    python benchmarks/beside_curvature_peers.py --repeats 20

The loss is the mean squared error of a linear model of 100 parameters on 200 Gaussian examples whose
columns have variances 1/k: its Hessian 2 X^T X / n is known. "off" is the mean relative deviation, with
its standard error; "held the truth" how often an interval did, where a package gives one. Seconds are
those of the processor, of one call. A package that is not installed is named.
"""

import argparse
import contextlib
import importlib.util
import io
import time
import warnings
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from orderparam.observables import curvature

INPUTS, EXAMPLES, PROBES = 100, 200, 30

Found = tuple[float, tuple[float, float] | None]  # a value, and an interval where there is one


def _case(seed: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(seed).normal(size=(EXAMPLES, INPUTS))
    x = x / np.arange(1, INPUTS + 1) ** 0.5
    return x, 2 * x.T @ x / EXAMPLES


def _ours(x: np.ndarray) -> tuple[Found, Found]:
    seed = int(abs(x[0, 0]) * 1e6)  # other probes in each case
    found = curvature(lambda w: jnp.mean((x @ w) ** 2), jnp.ones(INPUTS), probes=PROBES, seed=seed)
    top, trace = found.largest, found.trace
    return (top.value, (top.low, top.high)), (trace.value, (trace.low, trace.high))


def _module(x: np.ndarray):
    import torch

    module = torch.nn.Linear(INPUTS, 1, bias=False).double()
    rows = torch.as_tensor(x)
    return module, torch.nn.MSELoss(), rows, torch.zeros(len(x), 1).double()


def _pyhessian(x: np.ndarray) -> tuple[Found, Found]:
    import pyhessian

    module, loss, rows, zeros = _module(x)
    found = pyhessian.hessian(module, loss, data=(rows, zeros), cuda=False)
    top = found.eigenvalues()[0][0]
    return (float(top), None), (float(np.mean(found.trace(maxIter=PROBES))), None)


def _curvlinops(x: np.ndarray) -> tuple[Found, Found]:
    import curvlinops
    from scipy.sparse.linalg import eigsh

    module, loss, rows, zeros = _module(x)
    parameters = list(module.parameters())
    operator = curvlinops.HessianLinearOperator(module, loss, parameters, [(rows, zeros)])
    top = eigsh(operator.to_scipy(), 1, which="LA", return_eigenvectors=False)[0]
    trace = curvlinops.hutchinson_trace(operator, PROBES)
    return (float(top), None), (float(trace), None)


PACKAGES: dict[str, tuple[Callable[[np.ndarray], tuple[Found, Found]], tuple[str, ...]]] = {
    "orderparam": (_ours, ()),
    "pyhessian": (_pyhessian, ("torch", "pyhessian")),
    "curvlinops": (_curvlinops, ("torch", "curvlinops")),
}


def _measured(name: str, repeats: int) -> None:
    measure = PACKAGES[name][0]
    cases = [_case(seed) for seed in range(repeats)]
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        measure(cases[0][0])
        start = time.process_time()
        found = [measure(x) for x, _ in cases]
        seconds = (time.process_time() - start) / repeats
    truths = [(np.linalg.eigvalsh(h)[-1], np.trace(h)) for _, h in cases]
    for place, number in enumerate(("largest eigenvalue", "trace")):
        off = [one[place][0] / truth[place] - 1 for one, truth in zip(found, truths)]
        mean, error = np.mean(off), np.std(off, ddof=1) / repeats**0.5
        spread = float(np.sqrt(np.mean(np.square(off))))
        words = "no interval"
        if found[0][place][1] is not None:
            held = [
                one[place][1][0] - 1e-9 <= truth[place] <= one[place][1][1] + 1e-9
                for one, truth in zip(found, truths)
            ]
            words = f"held the truth in {np.mean(held):.0%}"
        print(
            f"{name}, {number}: off {mean:+.2e} ({error:.0e}), root mean square {spread:.1e}, "
            f"{words}, {seconds:.2f} s",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    for name, (_, needed) in PACKAGES.items():
        absent = [one for one in needed if importlib.util.find_spec(one) is None]
        if absent:
            print(f"{name}: {', '.join(absent)} is not installed")
            continue
        try:
            _measured(name, repeats)
        except Exception as error:  # a package that fails on current versions of others is a result
            print(f"{name}: {type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main()
