"""One number on cases of known truth, measured by several packages: how far each is off, how often
it raises a false alarm, how often its interval holds the truth, and its processor time."""

import contextlib
import importlib.metadata
import importlib.util
import io
import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np


class Answer(NamedTuple):
    """What a package says of one case.

    value: its number, NaN where it says that there is none. low, high: its interval, NaN where it
    has none. alarm: True if it says that there is something; None where it has no test.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    alarm: bool | None = None


class Package(NamedTuple):
    """measure: from the arrays of a case to an `Answer`. distribution: the name under which it is
    installed. call: what of it is called, in words. modules: what it needs. interval: a word on its
    interval, where the answers have none."""

    measure: Callable[..., Answer]
    distribution: str
    call: str = ""
    modules: tuple[str, ...] = ()
    interval: str = "none"


class Contest(NamedTuple):
    """number, case: in words. draw: the arrays of a case, from its seed. truth: the number for
    these arrays. nothing: there is nothing to find, so that every alarm is false."""

    number: str
    case: str
    draw: Callable[[int], tuple[Any, ...]]
    truth: Callable[..., float]
    packages: Sequence[Package]
    nothing: bool = False
    repeats: int = 1000


# off: the mean deviation with its standard error, in units of the truth where it is not 0
HEADERS = ("number", "case", "package", "off", "false alarms", "interval held it", "seconds")


def rows(contest: Contest, repeats: int) -> Iterator[tuple[str, ...]]:
    """A row of the table for each package; of one that is not installed or fails, the reason."""
    cases = [contest.draw(seed) for seed in range(min(repeats, contest.repeats))]
    truths = np.array([contest.truth(*case) for case in cases])
    for package in contest.packages:
        head = contest.number, contest.case, _titled(package)
        absent = [one for one in package.modules if importlib.util.find_spec(one) is None]
        if absent:
            yield (*head, f"{', '.join(absent)} is not installed", "", "", "")
            continue
        try:
            answers, seconds = _answers(package.measure, cases)
        except Exception as error:  # a package that fails on current versions of others is a result
            yield (*head, f"fails: {type(error).__name__}: {str(error)[:60]}", "", "", "")
            continue
        yield (*head, *_cells(contest, package, answers, truths), f"{seconds:.3g}")


def _titled(package: Package) -> str:
    try:
        name = f"{package.distribution} {importlib.metadata.version(package.distribution)}"
    except importlib.metadata.PackageNotFoundError:
        name = package.distribution
    return f"{name}, {package.call}" if package.call else name


def _answers(
    measure: Callable[..., Answer], cases: list[tuple[Any, ...]]
) -> tuple[list[Answer], float]:
    """The answers, and the processor seconds of a call; the first call, which may compile, is not
    timed."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        measure(*cases[0])
        start = time.process_time()
        answers = [measure(*case) for case in cases]
        return answers, (time.process_time() - start) / len(cases)


def _cells(
    contest: Contest, package: Package, answers: list[Answer], truths: np.ndarray
) -> tuple[str, str, str]:
    value, low, high = (np.array([one[k] for one in answers]) for k in range(3))
    known = np.isfinite(value) & np.isfinite(truths)
    words = "no number"
    if known.sum() > 1:
        off = (value - truths)[known] / np.where(truths == 0, 1, np.abs(truths))[known]
        words = f"{off.mean():+.2g} ({off.std(ddof=1) / known.sum() ** 0.5:.1g})"
    if 0 < known.sum() < len(answers):
        words += f", {known.sum()} of {len(answers)}"
    alarms = ""
    if contest.nothing:
        said = [one.alarm for one in answers]
        alarms = "none: no test" if said[0] is None else f"{sum(map(bool, said))} of {len(said)}"
    with_interval = known & np.isfinite(low) & np.isfinite(high)
    held = package.interval
    if with_interval.any():
        slack = 1e-9 * np.abs(truths)
        inside = (low - slack <= truths) & (truths <= high + slack)
        held = f"{np.sum(inside & with_interval)} of {np.sum(with_interval)}"
    return words, alarms, held
