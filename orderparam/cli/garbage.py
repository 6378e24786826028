"""When a command looks for garbage: Python searches all objects for cycles again and again while
libraries are imported, and once more at the end, which takes a sixth of a short command."""

import gc
from typing import Any

# that exist before the first search; a command that solves one point makes 140,000
_OBJECTS = 300_000
_USUAL = gc.get_threshold()


def collect_late() -> None:
    """Lets Python search for garbage for the first time when there are many objects, and as usual
    from then on, without those that exist by then."""
    if _settled not in gc.callbacks:
        gc.callbacks.append(_settled)
        gc.set_threshold(_OBJECTS, *_USUAL[1:])


def _settled(phase: str, _: dict[str, Any]) -> None:
    if phase == "stop":
        gc.callbacks.remove(_settled)
        gc.freeze()
        gc.set_threshold(*_USUAL)


def leave_to_the_end() -> None:
    """Lets the process end without a search: its memory is given back whole."""
    gc.freeze()
