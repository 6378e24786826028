"""Shared by all tests: the modules beside a test can be imported by name, also in worker processes."""

import os
import sys
from pathlib import Path

CORE = str(Path(__file__).parent / "core")
sys.path.insert(0, CORE)
os.environ["PYTHONPATH"] = os.pathsep.join([CORE, *filter(None, [os.environ.get("PYTHONPATH")])])
os.environ.setdefault("MPLBACKEND", "agg")
