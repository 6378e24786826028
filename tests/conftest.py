"""Shared by all tests: the modules beside a test can be imported by name, also in worker processes."""

import os
import sys
from pathlib import Path

import jax
import pytest

CORE = str(Path(__file__).parent / "core")
sys.path.insert(0, CORE)
os.environ["PYTHONPATH"] = os.pathsep.join([CORE, *filter(None, [os.environ.get("PYTHONPATH")])])
os.environ.setdefault("MPLBACKEND", "agg")


@pytest.fixture(autouse=True, scope="module")
def forget_programs():
    """Compiled programs of one file of tests are of no use to the next; kept, they fill the memory (6 GB)."""
    yield
    jax.clear_caches()
