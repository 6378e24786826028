"""Reads and checks the arguments of commands, and chooses the folder of a result."""

import hashlib
import math
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from orderparam.cli.limits import DEPTH, WIDTH
from orderparam.core.outline import SIZES, Size
from orderparam.core.paths import aside_of, expanded

if TYPE_CHECKING:
    from orderparam.networks import Architecture


def setting(text: str) -> tuple[str, str]:
    """The name and the value in "NAME=VALUE"."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ValueError(f"--set {text}: write NAME=VALUE")
    return name.strip(), value.strip()


def changes_of(settings: Sequence[str], seeds: int | None) -> dict[str, str]:
    """The changed parameters, from texts "NAME=VALUE", and the number of repetitions."""
    changes: dict[str, str] = {}
    for name, value in [
        *map(setting, settings),
        *([] if seeds is None else [("seeds", str(seeds))]),
    ]:
        if name in changes:
            raise ValueError(f"{name} is given twice: {changes[name]} and {value}")
        changes[name] = value
    return changes


def widths_of(text: str | None) -> list[float]:
    """The widths in "50,200"."""
    try:
        widths = [int(part) for part in text.split(",")] if text else []
    except ValueError:
        raise ValueError(
            f"--width {text}: write one or more integers, such as 50,200,1000"
        ) from None
    if any(not 1 <= width <= WIDTH for width in widths):
        raise ValueError(f"--width {text}: widths must be at least 1 and at most {WIDTH}")
    return [float(width) for width in widths]


def architecture(text: str) -> "Architecture":
    """`orderparam.networks.parse`, with bounds on its numbers; they are checked before a layer is
    made."""
    from orderparam.networks import parse

    sizes = re.fullmatch(r"[^:]*:([0-9]+)(?:x([0-9]+))?:.*", text)
    for name, digits, limit in zip(
        ("depth", "width"), sizes.groups() if sizes else (), (DEPTH, WIDTH)
    ):
        if digits and (len(digits) > 30 or int(digits) > limit):
            raise ValueError(f"architecture {text!r}: the {name} must be at most {limit}")
    return parse(text)


def check_file(file: str) -> None:
    """Refuses a file that is not there before anything is imported to read it. A name without an
    ending may be that of a data set."""
    from orderparam.core.reading import KINDS, existing

    if Path(file).suffix:
        existing(expanded(file), KINDS)


def check_finite(option: str, value: float | None) -> None:
    """Raise `ValueError` for the value of an option that is NaN or infinite."""
    if value is not None and not math.isfinite(value):
        raise ValueError(f"{option} {value}: must be a finite number")


def chosen_size(size: str, full: bool) -> Size:
    """The size of a study that `--size` and `--full` ask for. Raises `ValueError` for an unknown
    size, and where the two options differ."""
    if full and size not in ("quick", "full"):
        raise ValueError(f"--full and --size {size} exclude one another")
    for allowed in SIZES:
        if allowed == ("full" if full else size):
            return allowed
    raise ValueError(f"--size {size}: must be one of {', '.join(SIZES)}")


def result_folder(name: str, size: str, changes: dict[str, str]) -> str:
    """The folder of a result, which is different for every choice of parameters."""
    parts = [
        name,
        *([] if size == "quick" else [size]),
        *(f"{key}={value}" for key, value in sorted(changes.items())),
    ]
    folder = "-".join(parts).replace("/", "_").replace(" ", "")
    if len(folder.encode()) <= 200:
        return folder
    # file systems allow 255 bytes
    return f"{folder[:150]}-{hashlib.sha256(folder.encode()).hexdigest()[:8]}"


def check_own(folder: Path, results: Sequence[str]) -> None:
    """Raise an error for a folder that is not empty and holds none of these results, so that
    nothing of the user is overwritten.
    """
    try:
        there = {entry.name for entry in folder.iterdir() if not entry.name.startswith(".")}
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise ValueError(f"{folder} is a file; choose another folder with --out") from None
    if there and not there & set(results):
        raise ValueError(
            f"{folder} is not empty and holds no {' or '.join(results)}; move it away, or choose "
            "another folder with --out"
        )


def check_free(out: Path) -> None:
    """Raises `ValueError` for a folder that holds something, and where a file is in its place."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file; choose another folder with --out")
    if out.exists() and any(out.iterdir()):
        raise ValueError(f"{out} is not empty; choose another folder with --out")


@contextmanager
def free_folder(out: Path | None, name: str) -> Iterator[Path]:
    """An empty folder for a result: the requested one, or else results/NAME with the first free
    number.

    The folder is made at once, so that an unwritable place is reported before anything is computed.
    If the command fails or is interrupted the folder is removed, with what was half written.
    """
    from orderparam.core.paths import is_free
    from orderparam.running.signals import cleaned_up

    if out is None:
        candidates = (
            Path("results") / (name if i == 1 else f"{name}-{i}") for i in range(1, 10**6)
        )
        out = next(candidate for candidate in candidates if is_free(candidate))
    else:
        check_free(out)
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"cannot write {out}: {error.strerror or error}") from None

    def remove() -> None:
        shutil.rmtree(aside_of(out), ignore_errors=True)
        with suppress(OSError):  # a folder that is not empty stays
            for folder in made:
                folder.rmdir()

    with cleaned_up(remove):
        yield out
