"""What is said of the time that is left."""

import time

import pytest

from orderparam.running.progress import time_left, track


def test_the_time_left_has_compilation_in_it_and_grows_while_nothing_comes():
    assert time_left(3.0, 3.0, done=0, total=60) is None
    assert time_left(20.0, 0.0, done=1, total=60) == pytest.approx(20 * 59)
    assert time_left(60.0, 0.0, done=60, total=60) == 0
    # 59 points in ten seconds, and the last takes sixteen: 0.2 s would be left at the mean rate
    said = [time_left(10.0 + waited, waited, done=59, total=60) for waited in (0, 1, 4, 8, 16)]
    assert said == pytest.approx([10 / 59, 1, 4, 8, 16])


def test_the_bar_does_not_promise_the_end_of_a_point_that_takes_long(capsys, monkeypatch):
    """As a terminal shows it; the clock is moved, not waited for."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setenv("COLUMNS", "160")
    with track(10, "sampled", show=True) as advance:
        for _ in range(9):
            now[0] += 0.1
            advance(1, 0)
        now[0] += 16
    shown = capsys.readouterr().err
    assert "left 0:00:16" in shown
    assert "10/s" in shown
