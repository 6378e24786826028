"""The recipes of docs/howto/clusters.md are run, the one for SLURM with jobs that start on this
machine."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from magnet import Paramagnet, sampled

import orderparam as op
from orderparam.running.store import read

HERE = Path(__file__).parent
PAGE = (HERE.parent.parent / "docs" / "howto" / "clusters.md").read_text()
SWEEP = (
    'from magnet import *; op.sweep(sampled, Paramagnet(1.0), {"field": [0.1, 0.2]}, seeds=5, '
    'store="s.zarr", '
)


def test_the_recipe_for_slurm_runs(tmp_path):
    pytest.importorskip("dask_jobqueue")
    (recipe,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    # to local jobs, small ones, which need no virtual environment, and to a small sweep
    changes = {
        "from dask_jobqueue import SLURMCluster": "from dask_jobqueue.local import LocalCluster as "
        "SLURMCluster",
        "cores=4": "cores=1",
        'memory="16GB"': 'memory="2GB"',
        "maximum=50": "maximum=2",
    }
    for old, new in changes.items():
        assert old in recipe, old
        recipe = recipe.replace(old, new)
    recipe = re.sub(r"\n *job_script_prologue=.*", "", recipe)
    comparison = (
        r'op\.compare\(\s*"digits-learning-curve",\s*size="full",\s*out="results/digits-full",\s*'
    )
    recipe, swapped = re.subn(comparison, lambda _: SWEEP, recipe)
    assert swapped == 1
    script = tmp_path / "sweep_on_slurm.py"
    script.write_text(recipe)
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, env=environment, check=True, timeout=200
    )
    truth = op.sweep(sampled, Paramagnet(1.0), {"field": [0.1, 0.2]}, seeds=5)
    np.testing.assert_array_equal(
        read(tmp_path / "s.zarr")["magnetisation"], truth["magnetisation"]
    )
