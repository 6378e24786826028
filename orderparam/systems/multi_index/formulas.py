"""Targets as fields of systems: text that is equal where it is the same, so that it compiles once."""

import functools
from typing import Any

from orderparam.gaussian.target import Target, target

read = functools.cache(target)


def formula(what: Any) -> str | Target:
    """What a field keeps of a target: its text, or a `Target` for a Python function. Raises `ValueError` for what is none."""
    return read(what.strip()).name if isinstance(what, str) else target(what)
