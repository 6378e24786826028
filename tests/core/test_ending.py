"""What ends the program inside a theory or an experiment is the failure of its point, and never
success."""

from functools import partial

import numpy as np
import pytest
from ending import ENDS, ending, ending_as_it_is_traced, ending_by_hand
from magnet import Paramagnet, exact
from typer.testing import CliRunner

import orderparam as op
from orderparam.cli.commands import app
from orderparam.comparison import Curve, study
from orderparam.comparison.registry import _registry
from orderparam.core.errors import SweepError

GRID = {"temperature": [1.0, 2.0]}
SYSTEM = Paramagnet(1.0)
CURVE = Curve("exact", exact, SYSTEM, GRID)
SAID = {
    "exit": "temperature = 2.0, seed 0: SystemExit: 0",
    "generator": "temperature = 2.0, seed 0: GeneratorExit: no message",
    "own": "temperature = 2.0, seed 0: Enough: enough",
    "wordless": "temperature = 2.0, seed 0: Wordless: its message cannot be made (OSError)",
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("batch", [False, True])
def test_a_point_whose_experiment_ends_the_program_has_failed(end, batch):
    with pytest.warns(UserWarning, match="of 2 points 1 failed"):
        data = op.sweep(partial(ending, end=end), SYSTEM, GRID, seeds=1, batch_seeds=batch)
    assert data["status"].values.ravel().tolist() == [1, 3]
    assert data.attrs["failures"] == [SAID[end]]
    with pytest.warns(UserWarning, match="1 failed"):
        by_hand = op.sweep(partial(ending_by_hand, end=end), SYSTEM, GRID)
    assert np.isnan(by_hand["magnetisation"].values).tolist() == [False, True]
    with pytest.raises(SweepError, match="every point failed"):
        op.sweep(partial(ending_as_it_is_traced, end=end), SYSTEM, GRID)


def test_in_a_worker_it_is_the_same():
    with pytest.warns(UserWarning, match="of 2 points 1 failed"):
        data = op.sweep(partial(ending, end="exit"), SYSTEM, GRID, seeds=1, executor=1)
    assert data.attrs["failures"] == [SAID["exit"]]


def test_an_interrupt_is_none_of_these(monkeypatch):
    monkeypatch.setitem(ENDS, "interrupt", KeyboardInterrupt())
    for verb, seeds in ((ending, 1), (ending_by_hand, None)):
        with pytest.raises(KeyboardInterrupt):
            op.sweep(partial(verb, end="interrupt"), SYSTEM, GRID, seeds=seeds)


def test_a_study_that_ends_the_program_has_failed(tmp_path):
    """As its curves are made, and as its figure is drawn: no summary, one line."""

    def leave(comparison=None):
        raise SystemExit(0)

    for number, build in enumerate((leave, lambda: [CURVE])):
        made = study(f"test-ending-{number}", title="", source="", seconds=(1, 1), draw=leave)(
            build
        )
        try:
            result = CliRunner().invoke(app, ["run", made.name, "--out", str(tmp_path / made.name)])
        finally:
            _registry.pop(made.name)
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
        assert "the code that was run ended with SystemExit (0) before it was done" in result.stderr
        assert not (tmp_path / made.name / "summary.json").exists()
