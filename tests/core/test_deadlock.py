"""No program waits for itself: batched factorisations on the installed JAX, and the warning of the
versions that hang."""

import os
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import jaxlib
import pytest
from packaging.requirements import Requirement

from orderparam.core.jax_setup import warn_of_deadlock

SECONDS = 150  # 8 on an idle core


def test_independent_batched_factors_end():
    program = Path(__file__).with_name("batched_factors.py")
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
    try:
        subprocess.run([sys.executable, program], env=environment, timeout=SECONDS, check=True)
    except subprocess.TimeoutExpired:
        pytest.fail(
            f"jaxlib {jaxlib.__version__} stood still for {SECONDS} s in batched Cholesky factors "
            "and triangular solves"
        )


@pytest.mark.parametrize("version", ["0.10.0", "0.10.2"])
@pytest.mark.parametrize("platforms", ["", "cpu", "cpu,cuda"])
def test_a_version_that_hangs_is_named_with_the_remedy(version, platforms, monkeypatch):
    monkeypatch.setattr(jaxlib, "__version__", version)
    monkeypatch.setenv("JAX_PLATFORMS", platforms)
    with pytest.warns(
        UserWarning, match=rf"jaxlib {version} can stand still .*pip install 'jax!=0\.10\.\*'"
    ) as caught:
        warn_of_deadlock()
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("version", "platforms"),
    [("0.9.2", ""), ("0.11.1", ""), ("0.12.0.1", "cpu"), ("0.10.2", "cuda")],
)
def test_nothing_is_said_of_the_others(version, platforms, monkeypatch):
    monkeypatch.setattr(jaxlib, "__version__", version)
    monkeypatch.setenv("JAX_PLATFORMS", platforms)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_deadlock()


def test_the_project_installs_with_none_of_them():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    needed = {
        requirement.name: requirement for requirement in map(Requirement, project["dependencies"])
    }
    for name in ("jax", "jaxlib"):
        assert not any(needed[name].specifier.contains(version) for version in ("0.10.0", "0.10.2"))
        assert all(
            needed[name].specifier.contains(version) for version in ("0.9.2", "0.11.1", "0.12.0.1")
        )
