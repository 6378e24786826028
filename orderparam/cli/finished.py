"""Finds a finished run from the part of its folder's name that a person remembers."""

import json
from pathlib import Path

from orderparam.core.names import nearest


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
