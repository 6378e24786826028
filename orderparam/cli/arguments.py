"""What is typed behind a command, read and checked; and the folder that a result goes to."""

import hashlib
from pathlib import Path


def setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ValueError(f"--set {text}: write NAME=VALUE")
    return name.strip(), value.strip()


def widths_of(text: str | None) -> list[float]:
    try:
        widths = [float(int(part)) for part in text.split(",")] if text else []
    except ValueError:
        raise ValueError(f"--width {text}: write one or more integers, such as 50,200,1000") from None
    if any(width < 1 for width in widths):
        raise ValueError(f"--width {text}: widths must be at least 1")
    return widths


def result_folder(name: str, full: bool, changes: dict[str, str]) -> str:
    """A folder of its own for every choice of parameters."""
    parts = [name, *(["full"] if full else []), *(f"{key}={value}" for key, value in sorted(changes.items()))]
    folder = "-".join(parts).replace("/", "_").replace(" ", "")
    if len(folder.encode()) <= 200:
        return folder
    return f"{folder[:150]}-{hashlib.sha256(folder.encode()).hexdigest()[:8]}"  # file systems allow 255 bytes


def free_folder(out: Path | None, name: str) -> Path:
    """An empty folder for a result: the one asked for, else results/NAME, with the first number that is free.

    It is made at once: what cannot be written is refused before anything is computed.
    """
    if out is None:
        candidates = (Path("results") / (name if i == 1 else f"{name}-{i}") for i in range(1, 10**6))
        out = next(candidate for candidate in candidates if _is_free(candidate))
    elif not _is_free(out):
        raise ValueError(f"{out} is not empty; choose another folder with --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"cannot write {out}: {error.strerror or error}") from None
    return out


def _is_free(folder: Path) -> bool:
    return not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
