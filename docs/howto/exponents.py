"""Writes the table of docs/howto/exponents.md: fitted exponents of the package's theories beside
the predicted ones. The words above the table are those of the page.

    python docs/howto/exponents.py [--page FILE]

Every theory is swept like any other, and `orderparam.analysis.scaling_law.regimes` fits its curve,
which knows neither the theory nor the prediction. The exit status is 1 where a fitted exponent is
further from the predicted one than the row allows.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import xarray as xr

import orderparam as op
from orderparam.analysis.scaling_law import Regimes, regimes
from orderparam.kernels import power_law
from orderparam.systems.extensive_width import HierarchicalTeacher, bayes_optimal
from orderparam.systems.kernel_adaptation.network import hermite_target
from orderparam.systems.kernel_adaptation.patches.studies import linear_patches
from orderparam.systems.kernel_adaptation.two_layers.examples_needed import examples_needed
from orderparam.systems.kernel_adaptation.two_layers.fixed_shape import gaussian_process
from orderparam.systems.kernel_adaptation.two_layers.model import TwoLayerNetwork
from orderparam.systems.kernel_adaptation.two_layers.theory import adapted_weights
from orderparam.systems.kernel_regression import KernelRegression, self_consistent
from orderparam.systems.proportional.model import dense
from orderparam.systems.proportional.theory import finite_width, infinite_width
from orderparam.systems.scaling_laws import (
    ComputeBudget,
    ParameterBudget,
    ScaleFreeFeatures,
    compute_exponents,
    compute_optimal,
    joint_law,
    limit_exponents,
    optimal_ridge,
)

HEAD = (
    "| theory | system | y against x | fitted | crossover | predicted |\n"
    "| --- | --- | --- | --- | --- | --- |\n"
)


@dataclass(frozen=True)
class Row:
    """A curve of a theory, fitted, and the exponents that it should have, to within `allowed`."""

    theory: str
    system: str
    axes: str
    fitted: Regimes
    predicted: tuple[float, ...]
    allowed: float

    @property
    def agrees(self) -> bool:
        found = [exponent.value for exponent in self.fitted.exponents]
        return len(found) == len(self.predicted) and all(
            abs(a - b) <= self.allowed for a, b in zip(found, self.predicted)
        )

    def __str__(self) -> str:
        found = ", then ".join(
            f"{e.value:.3f} [{e.low:.3f}, {e.high:.3f}]" for e in self.fitted.exponents
        )
        at = "" if self.fitted.crossover is None else f"{self.fitted.crossover.value:.3g}"
        predicted = ", ".join(f"{p:.4g}" for p in self.predicted)
        return f"| `{self.theory}` | {self.system} | {self.axes} | {found} | {at} | {predicted} |"


def curve(fn, system, x: str, values: np.ndarray) -> xr.Dataset:
    return op.sweep(fn, system, {x: values.tolist()}, progress=False)


def kernels() -> Iterator[Row]:
    n = np.geomspace(1e2, 1e5, 31)
    for capacity, source in ((1.5, 0.4), (1.5, 1.5)):
        system = KernelRegression(power_law(capacity, source, 1e12), 100.0, 0.0)
        error = curve(self_consistent, system, "n_train", n)["test_error"]
        where = f"eigenvalues k^-{capacity}, source {source}, no ridge, no noise"
        yield Row(
            "kernel_regression.self_consistent",
            where,
            "test error against n",
            regimes(n, error, number=1),
            (2 * capacity * min(source, 1),),
            0.03,
        )
    n = np.geomspace(10, 1e10, 91)
    system = KernelRegression(power_law(2.0, 0.4, 1e15), 100.0, 1e-4)
    error = curve(self_consistent, system, "n_train", n)["test_error"]
    where = "eigenvalues k^-2, source 0.4, ridge 1e-4 beside the summed loss, no noise"
    yield Row(
        "kernel_regression.self_consistent",
        where,
        "test error against n",
        regimes(n, error),
        (1.6, 0.8),
        0.1,
    )


def random_features() -> Iterator[Row]:
    large = np.geomspace(1e2, 1e5, 31)
    for a, b in ((1.5, 2.0), (1.5, 3.0)):
        limit, where = limit_exponents(a, b), f"eigenvalues k^-{a}, target power k^-{b:g}, no noise"
        wide = ScaleFreeFeatures(1e2, np.inf, spectral_decay=a, target_decay=b, ridge=1e-12)
        error = curve(joint_law, wide, "n_train", large)["test_error"]
        yield Row(
            "scaling_laws.joint_law",
            f"{where}, N infinite",
            "test error against n",
            regimes(large, error, number=1),
            (limit.data,),
            0.03,
        )
        many = ScaleFreeFeatures(1e12, 1e2, spectral_decay=a, target_decay=b, ridge=1e-2)
        error = curve(joint_law, many, "width", large)["test_error"]
        yield Row(
            "scaling_laws.joint_law",
            f"{where}, n = 1e12",
            "test error against N",
            regimes(large, error, number=1),
            (limit.width,),
            0.03,
        )
        together = ParameterBudget(200.0, spectral_decay=a, target_decay=b)
        error = curve(optimal_ridge, together, "total", 2 * large)["test_error"]
        yield Row(
            "scaling_laws.optimal_ridge",
            f"{where}, N = n, best ridge",
            "test error against n",
            regimes(large, error, number=1),
            (limit.together,),
            0.03,
        )
    beyond = np.geomspace(1e4, 1e6, 21)
    for x, fixed in (("width", "n_train"), ("n_train", "width")):
        numbers = {x: 1e4, fixed: 100.0}
        system = ScaleFreeFeatures(**numbers, spectral_decay=1.5, target_decay=2.0, ridge=1e-2)
        name = "above_infinite_width" if x == "width" else "above_infinite_data"
        error = curve(joint_law, system, x, beyond)[name]
        axes = f"error less its limit against {'N' if x == 'width' else 'n'}"
        yield Row(
            "scaling_laws.joint_law",
            f"eigenvalues k^-1.5, {fixed} = 100",
            axes,
            regimes(beyond, error, number=1),
            (1.0,),
            0.01,
        )


def one_pass() -> Iterator[Row]:
    compute = np.geomspace(1e8, 1e10, 9)
    for alpha, beta in ((1.0, 0.3), (0.8, 0.65), (0.8, 1.2)):
        data, limit = (
            curve(compute_optimal, ComputeBudget(1e8, alpha, beta), "compute", compute),
            compute_exponents(alpha, beta),
        )
        where = f"one-pass SGD, phase {limit.phase}: alpha = {alpha}, beta = {beta}"
        yield Row(
            "scaling_laws.compute_optimal",
            where,
            "lowest risk against compute",
            regimes(compute, data["risk"], number=1),
            (limit.risk,),
            0.01,
        )
        yield Row(
            "scaling_laws.compute_optimal",
            where,
            "best width against compute",
            regimes(compute, data["width"], number=1),
            (-limit.width,),
            0.02,
        )


def extensive_width() -> Iterator[Row]:
    for decay, dim, last in ((1.0, 20_000, 1e5), (1.5, 2000, 1e8)):
        n = np.geomspace(0.3, last, 60) * float(dim) ** 2
        error = curve(bayes_optimal, HierarchicalTeacher(dim, dim // 2, decay, 0.01), "n_train", n)[
            "error"
        ]
        where = f"hierarchical teacher, decay {decay}, d = {dim}, k = d/2"
        yield Row(
            "extensive_width.bayes_optimal",
            where,
            "error against n",
            regimes(n, error, number=2),
            (1 - 1 / (2 * decay), 1.0),
            0.1,
        )


def proportional() -> Iterator[Row]:
    width = np.geomspace(1e3, 1e5, 13)
    system = dense("digits", 40, 100, 1e3, 0.1)
    error, limit = (
        curve(fn, system, "width", width)["test_error"] for fn in (finite_width, infinite_width)
    )
    where = "erf network on 40 digits, T = 0.1"
    yield Row(
        "proportional.finite_width",
        where,
        "test error less that of infinite width against N",
        regimes(width, abs(error - limit), number=1),
        (1.0,),
        0.03,
    )


def adaptation() -> Iterator[Row]:
    dims = np.array([64.0 * 2**k for k in range(7)])
    system = TwoLayerNetwork(20, 100, 100, 0.2, hermite_target({1: 1.0, 3: -0.3}), 0.015, 0.5)
    for words, more, power in (
        ("adapted weights", {}, 1.0),
        ("infinitely wide", {"theory": gaussian_process, "power": 3.0}, 3.0),
    ):
        needed = partial(examples_needed, threshold=0.15, units_per_input=5.0, **more)
        examples = curve(needed, system, "input_dim", dims)["examples"]
        where = f"erf network, y = He_1 - 0.3 He_3, {words}"
        yield Row(
            "kernel_adaptation.examples_needed",
            where,
            "examples for the cubic part against d",
            regimes(dims, examples, number=1),
            (-power,),
            0.05,
        )
    sizes = np.geomspace(2.0, 64.0, 6)
    for words, fn, power in (
        ("adapted weights", adapted_weights, 0.75),
        ("infinitely wide", gaussian_process, 1.0),
    ):
        examples = [half_learned(fn, linear_patches(size, 100.0)) for size in sizes]
        where = f"linear convolutional network, {words}"
        fitted = regimes(500 * sizes**2, examples, number=1)
        yield Row(
            f"kernel_adaptation.{fn.fn.__name__}",
            where,
            "examples for half of the target against d",
            fitted,
            (-power,),
            0.05,
        )


def half_learned(fn, system) -> float:
    """n at which half of the target is learned, interpolated."""
    n = float(system.critical_examples) * np.geomspace(0.5, 1e3, 101)
    learned = np.maximum.accumulate(curve(fn, system, "n_train", n)["total_learnability"].values)
    return float(np.exp(np.interp(0.5, learned, np.log(n))))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", type=Path, default=Path(__file__).with_suffix(".md"))
    page = parser.parse_args().page
    words, table, _ = page.read_text(encoding="utf-8").partition(HEAD)
    if not table:
        parser.error(f"{page} has no table to replace")
    rows = []
    for part in (kernels, random_features, one_pass, extensive_width, proportional, adaptation):
        for row in part():
            rows.append(row)
            print(row if row.agrees else f"{row}   DIFFERS", flush=True)
    page.write_text(words + HEAD + "\n".join(map(str, rows)) + "\n", encoding="utf-8")
    return 0 if all(row.agrees for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
