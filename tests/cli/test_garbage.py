"""When a command looks for garbage."""

import gc

import pytest

from orderparam.cli.garbage import collect_late


@pytest.fixture
def usual():
    """Python's own way of looking for garbage, before and after a test."""
    thresholds, callbacks = gc.get_threshold(), list(gc.callbacks)
    yield thresholds
    gc.set_threshold(*thresholds)
    gc.callbacks[:] = callbacks
    gc.unfreeze()


def test_python_looks_for_garbage_late_and_then_as_usual(usual):
    collect_late()
    assert gc.get_threshold()[0] > 100 * usual[0]
    searches = []
    gc.callbacks.append(lambda phase, _: searches.append(phase))
    kept = [[] for _ in range(400_000)]
    assert searches
    assert gc.get_threshold() == usual
    assert gc.get_freeze_count() > 100_000
    assert len(kept) == 400_000
