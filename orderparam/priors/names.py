"""One vocabulary for the laws of weights: synonyms of a law are accepted everywhere."""

from collections.abc import Callable
from typing import Any

# +-1; and Gaussian weights, whose length is sharp in large dimensions, beside a fixed length
SAME = (("binary", "rademacher"), ("gaussian", "spherical"))


def law(*words: str) -> Callable[[Any], Any]:
    """A function that replaces another word for one of these laws by the one in `words`.

    Everything else is returned as it is.

    >>> law("binary", "spherical")("rademacher")
    'binary'
    """

    def read(value: Any) -> Any:
        if not isinstance(value, str) or value in words:
            return value
        alike = (word for pair in SAME if value in pair for word in pair if word in words)
        return next(alike, value)

    return read
