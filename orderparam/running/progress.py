"""Progress of long work on standard error: what runs, how much is done, at which rate, the
remaining time, and the number of failures."""

import datetime
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def track(
    total: int, description: str, show: bool | None = None
) -> Iterator[Callable[[int, int], None]]:
    """Yields `advance(points, failed)`. By default the bar is shown when standard error is a
    terminal."""
    if total == 0 or not (sys.stderr.isatty() if show is None else show):
        yield lambda points, failed: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.text import Text

    class Left(ProgressColumn):
        """Called ten times a second; the time grows while a point is unfinished."""

        def render(self, task: Task) -> Text:
            seconds = time_left(
                time.monotonic() - started,
                time.monotonic() - last,
                int(task.completed),
                int(task.total or 0),
            )
            return Text(
                "-:--:--"
                if seconds is None
                else str(datetime.timedelta(seconds=math.ceil(seconds)))
            )

    columns = (
        TextColumn("{task.description:<34}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        Left(),
        TextColumn("[red]{task.fields[failures]}"),
    )
    started = last = time.monotonic()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        job = bar.add_task(description, total=total, rate="", failures="")
        failures = 0

        def advance(points: int, failed: int) -> None:
            nonlocal failures, last
            failures += failed
            last = time.monotonic()
            bar.advance(job, points)
            rate = bar.tasks[0].completed / max(last - started, 1e-9)
            bar.update(job, rate=f"{rate:.3g}/s", failures=f"{failures} failed" if failures else "")

        yield advance


def time_left(elapsed: float, waited: float, done: int, total: int) -> float | None:
    """The remaining time in seconds at the mean rate since the beginning, compilation included;
    None before the first point.

    waited: seconds since the last point. While a point takes longer than the others did, the
    remaining time is at least what it has taken so far.
    """
    if done >= total:
        return 0.0
    return max(elapsed * (total - done) / done, waited) if done else None
