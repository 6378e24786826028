"""Transitions that are known against those that `op.transition`, `op.phase_diagram` and
`op.collapse` find; points of a plane.

    python benchmarks/phases.py
    python benchmarks/phases.py --page docs/howto/phases.md

The first table sets locations beside their closed forms, or beside what special theories of the
topics compute by other equations. The second counts the points that a plane costs beside those of a
grid on which a boundary would be located as well. `--page` writes both between the marks of the
page.
"""

import math
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import orderparam as op
from orderparam.channels import RealLabels
from orderparam.priors import SparsePrior
from orderparam.systems import (
    associative_memory,
    extensive_width,
    generalised_linear,
    perceptron,
    spins,
)


class Case(NamedTuple):
    """A transition: what it is, where it is known to be, where it was found and with which error,
    and its kind."""

    name: str
    known: float
    found: float
    error: float
    kind: str
    points: int


def equilibrium(data: xr.Dataset) -> xr.DataArray:
    """The overlap with the teacher of the binary perceptron, 1 where the teacher has the larger
    free entropy, which is 0."""
    return data["teacher_overlap"].where(data["free_entropy"] > 0, 1.0)


def known_transitions() -> Iterator[Case]:
    """Of theories, each along one line."""
    magnet, potts = (
        spins.MeanFieldMagnet(temperature=1.0),
        spins.RegularPotts(temperature=1.0, degree=4, states=5),
    )
    square, hopfield = spins.IsingLattice(temperature=2.0), associative_memory.Hopfield(load=0.1)
    yield _case(
        "mean-field magnet, $T_c$",
        1.0,
        spins.mean_field,
        magnet,
        {"temperature": (0.4, 1.7)},
        "absolute_magnetisation",
    )
    yield _case(
        "square lattice (Onsager), $T_c$",
        2 / math.log(1 + math.sqrt(2)),
        spins.onsager,
        square,
        {"temperature": (1.5, 3.1)},
        "absolute_magnetisation",
    )
    first_order = 1 / math.log((5 - 2) / ((5 - 1) ** (1 - 2 / 4) - 1))
    over, name = {"temperature": (0.5, 1.6)}, "Potts on a random graph, q = 5, c = 4, $T_c$"
    yield _case(name, first_order, spins.cavity, potts, over, "absolute_magnetisation")
    retrieval = op.transition(
        associative_memory.replica_symmetric, hopfield, {"load": (0.05, 0.2)}, order="overlap",
        branches=("retrieval",)
    )  # fmt: skip
    yield _as_case("Hopfield model, capacity at T = 0", 0.1379055665, retrieval)
    student = perceptron.ThermalPerceptron(sample_ratio=1.0)
    known = float(perceptron.binary_transitions(student).thermodynamic)
    yield _case(
        "binary perceptron, T = 0",
        known,
        perceptron.quenched,
        student,
        {"sample_ratio": (0.9, 1.45)},
        equilibrium,
    )
    sensing = generalised_linear.GeneralisedLinear(0.5, RealLabels("linear"), SparsePrior(0.2))
    known, name = (
        float(generalised_linear.thresholds(sensing).algorithmic),
        "compressed sensing, message passing at density 0.2",
    )
    yield _case(
        name,
        known,
        generalised_linear.amp_fixed_point,
        sensing,
        {"sample_ratio": (0.05, 0.9)},
        "error",
    )
    teacher = extensive_width.HierarchicalTeacher(input_dim=150, width=8, decay=0.8, noise=0.1)
    steps = np.asarray(extensive_width.staircase(teacher).n_train)
    over = {"n_train": (0.5 * steps[0], 1.5 * steps[-1], "log")}
    found = op.transition(extensive_width.bayes_optimal, teacher, over, order="overlap", points=257)
    for number, (known, step) in enumerate(
        zip(steps, sorted((found, *found.others), key=lambda one: one.location)), 1
    ):
        if number in (1, 4, 8):
            yield _as_case(f"feature {number} of 8 of extensive width, samples", known, step)


def _case(
    name: str, known: float, theory: Any, system: Any, over: dict[str, Any], order: Any
) -> Case:
    return _as_case(name, known, op.transition(theory, system, over, order=order))


def _as_case(name: str, known: float, found: Any) -> Case:
    kind = (
        f"continuous, exponent {found.exponent:.4f}" if found.kind == "continuous" else found.kind
    )
    return Case(name, known, found.location, found.error, kind, found.data.sizes["point"])


def measured_transition(lengths: tuple[int, ...] = (16, 32, 64), seeds: int = 6) -> Case:
    """Onsager's temperature from Binder's ratios of sampled lattices, by their collapse with 1/nu =
    1."""
    # so near that a polynomial of degree 4 is the scaling function
    temperatures = np.linspace(2.25, 2.29, 7).tolist()
    data = [
        op.sweep(
            spins.wolff,
            spins.IsingLattice(2.0, (length, length)),
            {"temperature": temperatures},
            seeds=seeds,
        )
        for length in lengths
    ]
    table = xr.concat(
        [one["binder"] for one in data],
        xr.Variable("length", [float(length) for length in lengths]),
    )
    found = op.collapse(
        table.to_dataset(), "temperature", "binder", "length", power=0, inverse_nu=1
    )
    exact = 2 / math.log(1 + math.sqrt(2))
    points = len(temperatures) * len(lengths) * seeds
    return Case(
        "square lattice, Binder ratios of Monte Carlo",
        exact,
        found.critical,
        found.critical_error,
        "collapse",
        points,
    )


class Plane(NamedTuple):
    """Points and seconds of a diagram, and the points of a grid whose spacing is the accuracy of
    its boundaries."""

    name: str
    points: int
    grid: int
    seconds: float


def planes(resolution: int = 32, accuracy: float = 1e-3) -> Iterator[Plane]:
    magnet = spins.MeanFieldMagnet(temperature=1.0)
    cases = {
        "mean-field magnet, temperature and field": (
            spins.mean_field, magnet,
            {"temperature": (0.3, 1.7), "field": (-0.5, 0.61)}, {"order": "magnetisation",
            "level": 0.0}),
        "Hopfield model, load and temperature": (
            associative_memory.replica_symmetric, associative_memory.Hopfield(load=0.1),
            {"load": (0.002, 0.16), "temperature": (0.02, 1.45)}, {"order": ("overlap",
            "self_overlap")}),
    }  # fmt: skip
    for name, (theory, system, over, options) in cases.items():
        begun = time.perf_counter()
        found = op.phase_diagram(
            theory, system, over, resolution=resolution, accuracy=accuracy, **options
        )
        yield Plane(name, found.points, round(1 / accuracy + 1) ** 2, time.perf_counter() - begun)


def row(case: Case) -> str:
    found = (
        f"{case.found:.11g}"
        if case.error < 1e-8 * abs(case.known)
        else f"{case.found:.6g} ± {case.error:.1g}"
    )
    return (
        f"| {case.name} | {case.known:.11g} | {found} | {case.found - case.known:.1g} | "
        f"{case.kind} | {case.points} |"
    )


def tables() -> str:
    """Both tables, as the page has them."""
    lines = [
        "| transition | known | found | off by | kind | points |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [row(case) for case in (*known_transitions(), measured_transition())]
    lines += [
        "",
        "| plane | points | grid | fewer by | seconds |",
        "| --- | --- | --- | --- | --- |",
    ]
    for plane in planes():
        lines.append(
            f"| {plane.name} | {plane.points} | {plane.grid} | {plane.grid / plane.points:.0f} | "
            f"{plane.seconds:.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    text = tables()
    print(text)
    if sys.argv[1:2] == ["--page"]:
        page = Path(sys.argv[2])
        begin, end = "<!-- made by benchmarks/phases.py -->", "<!-- end -->"
        page.write_text(
            re.sub(
                f"{begin}.*?{end}",
                lambda _: f"{begin}\n{text}\n{end}",
                page.read_text(),
                flags=re.DOTALL,
            )
        )


if __name__ == "__main__":
    main()
