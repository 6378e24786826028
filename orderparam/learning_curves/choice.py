"""The choice of kernel and ridge: all requested kernels are tried on the same examples, and the one
with the largest evidence is chosen."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orderparam.learning_curves.learners import Exact, Large, Learner, learner
from orderparam.learning_curves.problem import Problem

TRIED = tuple(f"fc:{depth}:{activation}" for activation in ("relu", "erf") for depth in (1, 2, 3))
COMPARED_ROWS = 600  # number of examples on which several kernels are compared


@dataclass(frozen=True)
class Candidate:
    """A kernel with its log evidence per example, its smallest leave-one-out error (share of the
    variance), the ridge of that error, and the number of examples on which it was tried."""

    arch: str
    log_evidence: float
    leave_one_out: float
    ridge: float
    examples: int


def best_ridge(found: Learner, problem: Problem | None = None) -> tuple[float, float]:
    """The ridge with the smallest leave-one-out error (with groups: leave-group-out), and that
    error. Of many rows only a pool of 2000 is used."""
    groups = None if problem is None else problem.groups
    if isinstance(found, Large):
        groups = None if groups is None else groups[found.rows]
        found = found.pool
    if groups is not None:
        errors = [np.sum(found.leave_group_out(ridge, groups) ** 2) for ridge in found.ridges[::5]]
        best = int(np.nanargmin(errors))
        return float(found.ridges[::5][best]), float(errors[best]) / found.examples
    errors = found.left_out_errors().tolist()
    best = int(np.nanargmin(errors))
    return float(found.ridges[best]), float(errors[best]) / found.examples


def compare(problem: Problem, archs: Sequence[str]) -> list[Candidate]:
    """Candidates for every kernel, fitted to the same examples (at most 600, drawn at random) and
    sorted by decreasing evidence."""
    rows = np.random.default_rng(0).permutation(len(problem.inputs))[:COMPARED_ROWS]
    found = []
    for arch in archs:
        one = learner(arch, problem.inputs[rows], problem.targets[rows])
        assert isinstance(one, Exact)
        ridge, error = best_ridge(one)
        found.append(Candidate(arch, one.log_evidence(), error, ridge, len(rows)))
    return sorted(found, key=lambda candidate: -candidate.log_evidence)
