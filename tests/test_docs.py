"""What the documentation shows is run: README, and the complete small system of the page on new systems."""

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


def test_the_example_of_a_new_system_runs_and_agrees_with_its_theory():
    from orderparam.core.study import compare
    from orderparam.core.study.registry import _registry

    names: dict = {"__name__": "example.curie_weiss.studies"}
    for block in _blocks("docs/new-system.md"):
        exec(block, names)
    try:
        comparison = compare("curie-weiss", settings={"spins": "300"})
    finally:
        _registry.pop("curie-weiss")
    plt.close(comparison.figure())
    deviation = comparison.agreement["Glauber dynamics"]["magnetisation"]["relative_deviation"]
    assert float(np.abs(deviation).max()) < 0.1  # finite-size corrections of order 1/n below T = 1
    theory = names["theory"]["magnetisation"]
    assert float(theory.sel(temperature=0.5)) == pytest.approx(0.9575040241, abs=1e-9)


def test_every_page_that_the_readme_names_is_there():
    for link in re.findall(r"\]\(([\w./-]+)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / link).exists(), link
