"""Shared by all tests: the modules beside a test can be imported by name, also in worker processes."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# Imported before JAX: only then are compiled programs kept on disk, whatever JAX's version.
from orderparam.core.verb import forget_programs as forget

BESIDE = [str(Path(__file__).parent / folder) for folder in ("core", "every_theory", "systems")]
sys.path[:0] = BESIDE
os.environ["PYTHONPATH"] = os.pathsep.join([*BESIDE, *filter(None, [os.environ.get("PYTHONPATH")])])
os.environ.setdefault("MPLBACKEND", "agg")

# The same examples in every run: a failure is that of the change. `pytest --hypothesis-profile=default` draws others.
settings.register_profile("same", derandomize=True)
settings.load_profile("same")

SLOW_SECONDS = 1800  # the time limit of a test marked slow or attack that names none; all others have that of pyproject.toml


# Tests that take more than two or three seconds where nothing is compiled yet, by the start of their names:
# `pytest --durations=0` with an empty folder as ORDERPARAM_CACHE measures them.
LONG = tuple((Path(__file__).parent / "long.txt").read_text(encoding="utf-8").splitlines())


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(items):
    for item in items:
        if item.nodeid.removeprefix("tests/").startswith(LONG):
            item.add_marker(pytest.mark.long)
        long = item.get_closest_marker("slow") or item.get_closest_marker("attack")
        if long and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_SECONDS))


@pytest.fixture(autouse=True, scope="module")
def forget_programs():
    """Compiled programs of one file of tests are of no use to the next; kept, they fill the memory (6 GB)."""
    yield
    import jax

    forget()
    jax.clear_caches()
