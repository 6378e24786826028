"""Progress of long work on standard error: what runs, how far, how fast, how long still, how many failed."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def track(total: int, description: str, show: bool | None = None) -> Iterator[Callable[[int, int], None]]:
    """Yields `advance(points, failed)`. By default the bar is shown when standard error is a terminal."""
    if total == 0 or not (sys.stderr.isatty() if show is None else show):
        yield lambda points, failed: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:<34}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("[red]{task.fields[failures]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        job = bar.add_task(description, total=total, rate="", failures="")
        failures = 0

        def advance(points: int, failed: int) -> None:
            nonlocal failures
            failures += failed
            bar.advance(job, points)
            speed = bar.tasks[0].speed
            bar.update(job, rate=f"{speed:.3g}/s" if speed else "", failures=f"{failures} failed" if failures else "")

        yield advance
