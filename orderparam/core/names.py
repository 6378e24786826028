"""The nearest match of a name that does not exist."""

import difflib
from collections.abc import Sequence


def near(word: str, choices: Sequence[str], alike: float = 0.5) -> str:
    """The text `"; did you mean 'x'?"`, empty where no name is near: for a message that lists all
    choices itself. alike: least similarity, from 0 to 1.

    >>> near("ERFF", ["erf", "relu"]), near("zzz", ["erf", "relu"])
    ("; did you mean 'erf'?", '')
    """
    spelling = {choice.lower(): choice for choice in choices}
    close = difflib.get_close_matches(word.lower(), spelling, n=1, cutoff=alike)
    return f"; did you mean {spelling[close[0]]!r}?" if close else ""


def nearest(word: str, choices: Sequence[str]) -> str:
    """The text `"; did you mean 'x'?"`, or the first twenty choices where no name is near, for a
    message that does not list the choices."""
    if found := near(word, choices):
        return found
    more = f" and {len(choices) - 20} more" if len(choices) > 20 else ""
    return f"; there are: {', '.join(sorted(choices)[:20])}{more}" if choices else ""
