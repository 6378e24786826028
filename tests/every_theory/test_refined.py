"""Every theory against itself with everything numerical finer: what moves by more than its
documented accuracy is a fault.

`tests/refined.txt` holds a line for each theory that did not move: a hash of its code and of its
examples, and its name. `pytest --changed` leaves out those whose line is still true, `--remember`
writes the lines, as for the draws in `tests/drawn.txt`.
"""

import importlib
import inspect
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import orderparam as op

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
HERE = Path(__file__).parent
REFINED = HERE.parent / "refined.txt"
TOPICS = sorted({name.split(".")[0] for name in op.theories()})
USUAL = 1e-8  # of the largest entry of an observable
SMALLEST = 1e-3  # entries below are compared with this: where a zero is expected there is rounding
# What docstrings say where that is not it; observables that are places of extrema or small
# differences have errors of their own.
DOCUMENTED = {
    **{
        f"attention.attention_state {name}": 1e-5
        for name in (
            "self_overlap",
            "positional_overlap",
            "teacher_overlap",
            "cavity_variance",
            "free_energy",
            "test_error",
        )
    },
    "perceptron.binary_transitions spinodal_overlap": 1e-7,
    "generalised_linear.best_penalty penalty": 1e-6,
    "one_step.feature_spectrum density": 1e-7,
    # Next to the transition the minimum is flat; the free energy moves by less than 1e-9.
    "broken_symmetry.equilibrium largest_overlap": 1e-4,
    "broken_symmetry.equilibrium mean_overlap": 1e-7,
    "broken_symmetry.equilibrium overlap_square": 1e-7,
    # Without label noise the fixed points are a continuum, of which one is found.
    "online_sgd.steady_state self_overlap": 1e-6,
    "online_sgd.steady_state teacher_overlap": 1e-6,
    "storage_capacity.broken_capacity overlaps": 1e-6,
    "storage_capacity.broken_capacity heights": 1e-6,
}
# Distances from a solution, which are smaller where everything is finer.
BOOKKEEPING = ("residual", "stationarity", "steps")


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
def test_nothing_moves_by_more_than_its_accuracy(topic, tmp_path, pytestconfig):
    states = states_of(topic)
    if pytestconfig.getoption("--changed"):
        still = known()
        states = {name: state for name, state in states.items() if still.get(name) != state}
    for how in ([], ["--refined"]) if states else ():
        words = [sys.executable, HERE / "refined.py", tmp_path, *how, *states]
        subprocess.run(words, check=True)
    faults = compared(tmp_path, states)
    if pytestconfig.getoption("--remember"):
        remember(states, {fault.split(" ", 1)[0] for fault in faults})
    assert not faults, "\n".join(faults)


def test_what_did_not_move_is_remembered(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "REFINED", tmp_path / "refined.txt")
    states = states_of("spins")
    assert set(states) == {name for name in op.theories() if name.startswith("spins.")}
    remember(states, set())
    assert known() == states
    remember(states, {"spins.cavity"})
    assert known() == {name: state for name, state in states.items() if name != "spins.cavity"}


def compared(folder, names):
    """What moved by too much, of these theories, between the two folders of `refined.py`."""
    faults = []
    for name in names:
        usual, finer = (
            pickle.loads((folder / side / name).read_bytes()) for side in ("usual", "refined")
        )
        faults += moved(name, usual, finer)
    return faults


def states_of(topic):
    """Theory -> a hash of its code and of its examples, for the theories of a topic."""
    state_of = importlib.import_module("_site.state").state_of
    examples = "".join((HERE / name).read_text() for name in (f"test_{topic}.py", "refined.py"))
    return {
        name: state_of([(Path(inspect.getfile(theory.fn)), theory.fn.__name__)], words=examples)
        for name, theory in op.theories().items()
        if name.startswith(f"{topic}.")
    }


def known():
    lines = REFINED.read_text(encoding="utf-8").splitlines() if REFINED.is_file() else []
    return {name: state for state, name in (line.split(" ", 1) for line in lines)}


def remember(states, wrong):
    """Writes the lines of theories that did not move, and drops those that did."""
    lines = known() | states
    kept = {name: state for name, state in sorted(lines.items()) if name not in wrong}
    REFINED.write_text(
        "".join(f"{state} {name}\n" for name, state in kept.items()), encoding="utf-8"
    )


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
