"""A hundred interrupts at random moments, while it imports, compiles, computes, writes and ends."""

import os
import random
import shutil
import signal
import sys

import pytest
from cluster import cluster
from interrupts import check_goes_on, check_interrupt

pytestmark = [pytest.mark.attack, pytest.mark.timeout(900)]


@pytest.mark.parametrize(("executor", "times"), [("here", 40), ("2", 30), ("dask", 30)])
def test_interrupts(tmp_path, monkeypatch, executor, times):
    monkeypatch.setenv("ORDERPARAM_TEST_SECONDS", "0.03")
    draw = random.Random(executor)
    store, interrupted = tmp_path / "s.zarr", 0
    with cluster(tmp_path) as dask:
        if executor == "dask":
            pytest.importorskip("distributed")
            dask.start_scheduler()
            for _ in range(2):
                dask.start_worker()
        command = [
            sys.executable,
            "sweeping.py",
            str(store),
            dask.address if executor == "dask" else executor,
        ]
        for _ in range(times):
            number = draw.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
            begun = store / "status" / "c.0.0.0" if draw.random() < 0.5 else None
            if check_interrupt(command, number, draw.uniform(0, 3), store, begun):
                interrupted += 1
            elif os.path.exists(store):
                shutil.rmtree(store)  # it was finished: once more from the beginning
        monkeypatch.setenv("ORDERPARAM_TEST_SECONDS", "0")
        check_goes_on(command, store)
    assert interrupted >= times // 2
