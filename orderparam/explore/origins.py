"""Reads the names under which a browser may open the page; a malformed name is refused before the
server is imported."""

import re
from collections.abc import Sequence

# a name or four numbers, and a port
ORIGIN = re.compile(r"([a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?)(?::([0-9]{1,5}))?")


def checked_origins(origins: Sequence[str]) -> tuple[str, ...]:
    """The names, with or without a port, in lower case. Raises `ValueError` for a text that is not
    a name."""
    for origin in origins:
        if not ORIGIN.fullmatch(origin.lower()):
            raise ValueError(
                f"--allow-origin {origin[:80]!r}: write a NAME or NAME:PORT, such as "
                "explorer.example.org"
            )
    return tuple(origin.lower() for origin in origins)
