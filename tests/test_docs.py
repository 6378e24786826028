"""What the documentation shows is run."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

ROOT = Path(__file__).parent.parent


def _blocks(path: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / path).read_text(), flags=re.DOTALL)


def test_the_readme_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = _blocks("README.md")
    names: dict = {}
    exec(block, names)
    plt.close("all")
    assert (tmp_path / "learning-curve.png").stat().st_size > 5000
    mean = names["runs"]["test_error"].mean("seed")
    expected = names["op"].sweep(names["self_consistent"], names["system"], {"n_train": [20, 50, 100]})["test_error"]
    np.testing.assert_allclose(mean, expected, rtol=0.25)


def test_the_declarations_of_the_page_on_new_systems_are_read():
    names: dict = {"__name__": "page"}
    for block in _blocks("docs/new-system.md"):
        exec(block, names)
    with pytest.raises(ValueError, match=r"Magnet\.spins = 1: must be an integer and >= 2"):
        names["Magnet"](1.0, spins=1)


def test_the_page_on_your_own_data_runs():
    names: dict = {}
    for block in _blocks("docs/your-data.md"):
        exec(block, names)
    assert names["low"] < names["value"] < names["high"]
    assert names["fewest"] < names["rows"]
    assert names["scores"].mean() > 0.3
    assert names["beyond"].examples == 442


def test_the_page_on_phases_runs():
    names: dict = {}
    for block in _blocks("docs/phases.md"):
        exec(block, names)
    assert abs(names["onset"].location - 2 / np.log(1 + np.sqrt(2))) < 1e-9
    assert abs(names["memory"].spinodals["retrieval"][0] - 0.1379055665) < 1e-9
    assert {"jump", "crossover"} <= {one.kind for one in names["diagram"].boundaries}
    plt.close("all")


def test_every_page_that_the_readme_names_is_there():
    for link in re.findall(r"\]\(([\w./-]+)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / link).exists(), link
