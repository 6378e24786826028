"""Calibration of `op.transition`: does what it states of transitions that are known hold?

    python benchmarks/transitions.py
    python benchmarks/transitions.py --page docs/howto/phases.md

Every row is a transition whose place, kind and exponent are known in closed form, or from other
equations. "covered" says whether place and exponent lie within the stated errors. `--page` writes
the table between its marks on the page.
"""

import math
import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import orderparam as op
from orderparam.channels import RealLabels
from orderparam.priors import SparsePrior
from orderparam.systems import (
    associative_memory,
    generalised_linear,
    random_features,
    spins,
    storage_capacity,
)


class Known(NamedTuple):
    """A transition: what is asked, and the answer. exponent: None for a jump or an end."""

    name: str
    theory: Any
    system: Any
    over: dict[str, Any]
    order: str
    place: float
    kind: str
    exponent: float | None = None


def known() -> Iterator[Known]:
    magnet, square = spins.MeanFieldMagnet(temperature=1.0), spins.IsingLattice(temperature=2.0)
    cold, onsager = magnet.with_(temperature=0.7), 2 / math.log(1 + math.sqrt(2))
    lowest = partial(spins.mean_field, branch="stable")
    temperature, field = {"temperature": (0.3, 1.65)}, {"field": (-0.3, 0.4)}
    yield Known(
        "Curie-Weiss, magnetisation",
        lowest,
        magnet,
        temperature,
        "absolute_magnetisation",
        1,
        "continuous",
        1 / 2,
    )
    yield Known(
        "Curie-Weiss, critical isotherm",
        lowest,
        magnet,
        field,
        "magnetisation",
        0,
        "continuous",
        1 / 3,
    )
    yield Known(
        "Curie-Weiss, susceptibility",
        lowest,
        magnet,
        temperature,
        "susceptibility",
        1,
        "divergence",
        -1,
    )
    yield Known(
        "Curie-Weiss, susceptibility along the field",
        lowest,
        magnet,
        field,
        "susceptibility",
        0,
        "divergence",
        -2 / 3,
    )
    yield Known(
        "Curie-Weiss, heat capacity", lowest, magnet, temperature, "heat_capacity", 1, "jump"
    )
    yield Known("Curie-Weiss, field at T = 0.7", lowest, cold, field, "magnetisation", 0, "jump")
    end = math.sqrt(0.3) - 0.7 * math.atanh(math.sqrt(0.3))
    against = partial(spins.mean_field, branch="metastable")
    yield Known(
        "Curie-Weiss, metastable state at T = 0.7",
        against,
        cold,
        {"field": (0.01, 0.4)},
        "magnetisation",
        end,
        "end",
    )
    yield Known(
        "Curie-Weiss, spinodal field",
        spins.spinodal,
        magnet,
        temperature,
        "spinodal_field",
        1,
        "continuous",
        3 / 2,
    )
    yield Known(
        "Curie-Weiss, spinodal magnetisation",
        spins.spinodal,
        magnet,
        temperature,
        "magnetisation",
        1,
        "continuous",
        1 / 2,
    )
    over = {"temperature": (1.5, 3.1)}
    yield Known(
        "Onsager, magnetisation",
        spins.onsager,
        square,
        over,
        "absolute_magnetisation",
        onsager,
        "continuous",
        1 / 8,
    )
    yield Known(
        "Onsager, heat capacity",
        spins.onsager,
        square,
        over,
        "heat_capacity",
        onsager,
        "divergence",
        0,
    )
    for degree in (3, 4, 5):
        graph, place = (
            spins.RegularPotts(temperature=1.0, degree=degree),
            1 / math.log(degree / (degree - 2)),
        )
        name, over = f"Bethe lattice, degree {degree}", {"temperature": (0.5, 2.5)}
        yield Known(
            name, spins.cavity, graph, over, "absolute_magnetisation", place, "continuous", 1 / 2
        )
    potts = spins.RegularPotts(temperature=1.0, degree=4, states=5)
    first = 1 / math.log((5 - 2) / ((5 - 1) ** (1 - 2 / 4) - 1))
    name, over = "Potts model, 5 states, degree 4", {"temperature": (0.5, 1.6)}
    yield Known(name, spins.cavity, potts, over, "absolute_magnetisation", first, "jump")
    patterns, load = storage_capacity.SphericalPatterns(load=1.0), {"load": (1, 4)}
    yield Known(
        "Gardner, fewest errors",
        storage_capacity.minimal_error,
        patterns,
        load,
        "error_fraction",
        2,
        "continuous",
        1,
    )
    yield Known(
        "Gardner, largest margin",
        storage_capacity.largest_margin,
        patterns,
        load,
        "margin",
        2,
        "continuous",
        1,
    )
    memory, glass = associative_memory.Hopfield(load=0.05, temperature=0.1), 1 + math.sqrt(0.05)
    theory, over = associative_memory.replica_symmetric, {"temperature": (0.6, 1.7)}
    yield Known(
        "Hopfield, spin glass", theory, memory, over, "self_overlap", glass, "continuous", 1
    )
    retrieval = partial(theory, branch="retrieval")
    cold = associative_memory.Hopfield(load=0.1)
    yield Known(
        "Hopfield, capacity", retrieval, cold, {"load": (0.05, 0.2)}, "overlap", 0.1379055665, "end"
    )
    features = random_features.RandomFeatures(
        input_dim=100, width=300, n_train=150, ridge=1e-12, labels=RealLabels(noise=0.1)
    )
    theory, over = random_features.asymptotics, {"width": (75, 300)}
    yield Known(
        "random features, train error", theory, features, over, "train_error", 150, "continuous", 1
    )
    yield Known(
        "random features, test error", theory, features, over, "test_error", 150, "divergence", -1
    )
    sensing = generalised_linear.GeneralisedLinear(0.5, RealLabels("linear"), SparsePrior(0.2))
    place = float(generalised_linear.thresholds(sensing).algorithmic)
    theory, over = generalised_linear.amp_fixed_point, {"sample_ratio": (0.05, 0.9)}
    yield Known(
        "compressed sensing, message passing", theory, sensing, over, "error", place, "jump"
    )


def row(case: Known) -> str:
    try:
        found = op.transition(case.theory, case.system, case.over, order=case.order)
    except ValueError as error:
        return f"| {case.name} | {case.place:.10g} | {case.kind} | {error} | | no |"
    own = min((found, *found.others), key=lambda one: abs(one.location - case.place))
    covered = (
        abs(own.location - case.place) <= max(own.error, 1e-10 * abs(case.place))
        and own.kind == case.kind
    )
    told = "" if case.exponent is None else "not determined"
    if case.exponent is not None and np.isfinite(own.exponent):
        told = f"{own.exponent:.6g} ± {own.exponent_error:.1g}" + (
            " beside a logarithm" if own.logarithm else ""
        )
        covered &= abs(own.exponent - case.exponent) <= own.exponent_error
    wanted = case.kind if case.exponent is None else f"{case.kind}, {case.exponent:.4g}"
    place = f"{own.kind}, {own.location - case.place:+.0e} ± {own.error:.0e}"
    return (
        f"| {case.name} | {case.place:.10g} | {wanted} | {place} | {told} | "
        f"{'yes' if covered else 'no'} |"
    )


def main() -> None:
    lines = [
        "| transition | known place | kind, exponent | found: off by | exponent | covered |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for case in known():
        lines.append(row(case))
        print(lines[-1], flush=True)
    text = "\n".join(lines)
    if sys.argv[1:2] == ["--page"]:
        page = Path(sys.argv[2])
        begin, end = "<!-- made by benchmarks/transitions.py -->", "<!-- end of transitions -->"
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
