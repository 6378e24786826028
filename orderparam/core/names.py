"""The nearest match of a name that does not exist."""

import difflib
from collections.abc import Sequence


def near(word: str, choices: Sequence[str]) -> str:
    """The text `"; did you mean 'x'?"`, empty where no name is near: for a message that lists all
    choices itself.

    >>> near("erff", ["erf", "relu"]), near("zzz", ["erf", "relu"])
    ("; did you mean 'erf'?", '')
    """
    close = difflib.get_close_matches(word, choices, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def nearest(word: str, choices: Sequence[str]) -> str:
    """The text `"; did you mean 'x'?"`, or the first twenty choices where no name is near. Every
    message about a wrong name ends with it."""
    if found := near(word, choices):
        return found
    more = f" and {len(choices) - 20} more" if len(choices) > 20 else ""
    return f"; there are: {', '.join(sorted(choices)[:20])}{more}" if choices else ""
