"""Random damage to the folders of `solve` and `phases`: the same command again is right, or says in
one line what is wrong."""

import csv
import random
import re

import numpy as np
import pytest
import xarray as xr
from damage import contents, damage, put_back
from typer.testing import CliRunner

from orderparam.cli.commands import app
from orderparam.running.store import read

pytestmark = [pytest.mark.attack, pytest.mark.timeout(7200)]

REMEDY = r"move it away|the same command|the command that made it"
COMMANDS = {
    "solve": ("solve", "onsager", "--over", "temperature=1:4:7"),
    "two fields": (
        "solve",
        "mean_field",
        "--over",
        "temperature=0.2,0.7,1.2",
        "--over",
        "field=0.1,0.2",
    ),
    "against": ("solve", "kaufman", "shape=4,4", "--over", "temperature=2,3", "--against", "wolff"),
    "plane": ("phases", "mean_field", "temperature=0.5:1.5", "field=-0.2:0.2", "--resolution", "8"),
    "line": ("phases", "mean_field", "field=0", "temperature=0.5:1.5"),
}
TIMES = 60  # each


def found_in(folder):
    """All numbers of a folder but how long they took."""
    found = {}
    for path in sorted(folder.rglob("*.zarr")):
        if path.name == "diagram.zarr":
            with xr.open_zarr(path, consolidated=False) as data:
                found[path.name] = data.load().drop_attrs()
        else:
            found[str(path.relative_to(folder))] = read(path).drop_vars("seconds").drop_attrs()
    for path in sorted(folder.glob("*.csv")):
        with open(path, newline="") as opened:
            rows = list(csv.DictReader(opened))
        found[path.name] = xr.Dataset(
            {"row": ("line", [str({**row, "seconds": ""}) for row in rows])}
        )
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_damaged_folders(tmp_path, monkeypatch, name):
    # so that batches are kept
    monkeypatch.setattr("orderparam.analysis.phases.points.WORTH_KEEPING", 0.0)
    folder, draw = tmp_path / "r", random.Random(name)

    def command():
        return CliRunner().invoke(app, [*COMMANDS[name], "--out", str(folder)])

    first = command()
    assert first.exit_code == 0, first.output
    truth, whole = found_in(folder), contents(folder)
    assert truth
    wrong, refused = [], 0
    for _ in range(TIMES):
        what = "; ".join(damage(folder, draw) for _ in range(draw.choice((1, 1, 2))))
        again = command()
        if isinstance(again.exception, Exception):
            wrong.append(f"{what}: {again.exception!r}")
        elif again.exit_code == 2:
            refused += 1
            lines = [line for line in again.stderr.splitlines() if not line.startswith("warning:")]
            if len(lines) != 1 or str(folder) not in lines[0] or not re.search(REMEDY, lines[0]):
                wrong.append(f"{what}: {lines}")
        elif again.exit_code != 0 or again.stdout != first.stdout:
            wrong.append(f"{what}: exit status {again.exit_code}, {again.output[-300:]}")
        else:
            after = found_in(folder)
            if after.keys() != truth.keys() or any(
                not after[key].identical(truth[key]) for key in truth
            ):
                wrong.append(f"{what}: other numbers")
            figures = [path.stat().st_size > 5000 for path in folder.glob("figure.*")]
            if not np.all(figures):
                wrong.append(f"{what}: no figure")
        put_back(folder, whole)
    assert wrong == []
    assert refused > TIMES / 20
