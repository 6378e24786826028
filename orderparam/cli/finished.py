"""Finds a finished run: from the part of its folder's name that a person remembers, and what the
same command printed about it."""

import hashlib
import json
from importlib.metadata import version
from pathlib import Path

from orderparam.cli.terminal import console
from orderparam.core.compilation_cache import kept_for_commands
from orderparam.core.names import nearest
from orderparam.core.paths import state_of_files
from orderparam.core.registry import source_files


def finished_run(wanted: Path) -> Path:
    """The folder that a person means: the given folder if it exists. Otherwise, in the same parent
    folder (for a bare name in `results`), it is the newest finished run of the study of that name,
    or the newest one whose folder's name begins with the given text.

    Raises `ValueError` with the nearest finished runs.
    """
    if wanted.exists():
        return wanted
    root = Path("results") if wanted.parent == Path() else wanted.parent
    runs = (
        sorted(root.glob("*/summary.json"), key=lambda file: file.stat().st_mtime, reverse=True)
        if root.is_dir()
        else []
    )
    names = [file.parent.name for file in runs]
    chosen = [file for file in runs if _study(file) == wanted.name] or [
        file for file, name in zip(runs, names) if wanted.name and name.startswith(wanted.name)
    ]
    if not chosen:
        there = nearest(wanted.name, names) or f"; {root} holds no finished run"
        raise ValueError(f"there is no result {wanted}{there}")
    return chosen[0].parent


def _study(summary: Path) -> str | None:
    try:
        return json.loads(summary.read_text()).get("study")
    except (OSError, ValueError, AttributeError, RecursionError):
        return None


_DRAWING = ("matplotlib", "numpy", "xarray", "zarr")  # libraries on which figure and table depend


def printed_before(folder: Path, asked: str) -> str | None:
    """The text that a command printed about a finished run, if neither the package nor any file of
    the run has changed since. `asked` is what the person asked for.

    Such a run need not be compared and drawn again, which takes longer than everything else.
    """
    cache = kept_for_commands()
    content = None if cache is None else cache.get(_name(folder, asked))
    return None if content is None else content.decode()


def keep_printed(folder: Path, asked: str, text: str) -> None:
    """Keeps what was printed about a finished run for `printed_before`."""
    cache = kept_for_commands()
    if cache is not None:
        cache.put(_name(folder, asked), text.encode())


def _name(folder: Path, asked: str) -> str:
    inside = sorted(
        file for file in folder.rglob("*") if file.is_file() and not file.name.startswith(".")
    )
    out = console()
    terminal = out.width, out.is_terminal, out.color_system
    versions = [version(name) for name in _DRAWING]
    state = state_of_files([*source_files(), *inside])
    words = f"{folder.absolute()} {asked} {state} {terminal} {versions}"
    return f"printed-{hashlib.sha256(words.encode()).hexdigest()}"
