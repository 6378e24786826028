"""Every theory against itself with everything numerical finer: what moves by more than its
documented accuracy is a fault.
"""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import orderparam as op

HERE = Path(__file__).parent
TOPICS = sorted({name.split(".")[0] for name in op.theories()})
USUAL = 1e-8  # of the largest entry of an observable
SMALLEST = 1e-3  # entries below are compared with this: where a zero is expected there is rounding
# What docstrings say where that is not it; observables that are places of extrema or small
# differences have errors of their own.
DOCUMENTED = {
    "perceptron.binary_transitions spinodal_overlap": 1e-7,
    "generalised_linear.best_penalty penalty": 1e-6,
}
BOOKKEEPING = ("residual", "steps")


def test_a_theory_is_told_from_a_finer_one():
    """The comparison can fail: one digit in the ninth place is seen, and a NaN."""
    usual = [[({}, {"error": np.array([1.0, 2.0])}, False)]]
    for wrong in ([1.0, 2.0 + 3e-8], [1.0, np.nan], [1.0]):
        finer = [[({}, {"error": np.array(wrong)}, False)]]
        assert moved("topic.theory", usual, finer)
    assert not moved("topic.theory", usual, usual)
    flagged = [[({}, {"error": np.array([1.0, 2.0])}, True)]]
    assert not moved("topic.theory", flagged, [[({}, {}, True)]])


@pytest.mark.attack
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("topic", TOPICS)
def test_nothing_moves_by_more_than_its_accuracy(topic, tmp_path):
    for how in ([], ["--refined"]):
        subprocess.run([sys.executable, HERE / "refined.py", tmp_path, *how, topic], check=True)
    faults = []
    for path in sorted((tmp_path / "usual").iterdir()):
        usual, finer = (
            pickle.loads((tmp_path / side / path.name).read_bytes())
            for side in ("usual", "refined")
        )
        faults += moved(path.name, usual, finer)
    assert not faults, "\n".join(faults)


def moved(name, usual, finer):
    """What moved by too much, of draws that the theory believes."""
    faults = []
    for before, after in zip(usual, finer):
        for (changes, coarse, doubted), (_, fine, _) in zip(before, after):
            for field, value in coarse.items():
                if doubted or field in BOOKKEEPING:
                    continue
                other = fine.get(field)
                allowed = DOCUMENTED.get(f"{name} {field}", DOCUMENTED.get(name, USUAL))
                by = np.inf if other is None else distance(value, other)
                if by > allowed:
                    faults.append(f"{name} {field} moves by {by:.1e} at {changes}")
    return faults


def distance(one, other):
    """The largest difference over the largest entry, infinite where only one is a number."""
    if one.shape != other.shape or np.any(np.isnan(one) != np.isnan(other)):
        return np.inf
    finite = np.isfinite(one) & np.isfinite(other)
    if np.any(one[~finite & ~np.isnan(one)] != other[~finite & ~np.isnan(one)]):
        return np.inf
    scale = np.max(np.abs(one), initial=SMALLEST, where=finite)
    gap = np.max(np.abs(np.where(finite, one, 0) - np.where(finite, other, 0)), initial=0.0)
    return float(gap / scale)
