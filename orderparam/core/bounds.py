"""The numbers that a field allows, in words and as a test. JAX is not needed here, so that a number
that is not allowed is refused before anything is imported.
"""

import math
import numbers
import operator
from collections.abc import Callable, Mapping
from typing import Any

LIMITS: dict[str, tuple[str, Callable[[Any, float], Any]]] = {
    "minimum": (">=", operator.ge),
    "above": (">", operator.gt),
    "maximum": ("<=", operator.le),
    "below": ("<", operator.lt),
}


def allowed(limits: Mapping[str, float | None], integer: bool, infinite: bool) -> str:
    """The allowed range in words."""
    words = ["an integer"] if integer else []
    words += [f"{LIMITS[key][0]} {bound:g}" for key, bound in limits.items() if bound is not None]
    return " and ".join(words) or ("a number" if infinite else "a finite number")


def holds(number: float, limits: Mapping[str, float | None], integer: bool, infinite: bool) -> bool:
    """True if this number is allowed."""
    if math.isnan(number) or (math.isinf(number) and not infinite):
        return False
    within = all(
        LIMITS[key][1](number, bound) for key, bound in limits.items() if bound is not None
    )
    return within and (not integer or math.isinf(number) or number.is_integer())


def refusal(name: str, value: str, must_be: str, meaning: str, infinite: bool) -> str:
    """The message about a value that is not allowed."""
    if value in ("inf", "nan") and not any(word in must_be for word in ("number", "integer")):
        must_be = f"{'a number' if infinite else 'finite'} and {must_be}"
    return f"{name} = {value}: must be {must_be} ({meaning})"


def checked_option(
    name: str,
    value: Any,
    hint: str = "",
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    integer: bool = False,
) -> float:
    """The finite number that was given as an option of a function. hint: what else may be given.

    Raises `ValueError` naming the option for anything but one number in this range.

    >>> checked_option("ridge", 0.5, minimum=0)
    0.5
    >>> checked_option("ridge", "a", ", or None for the best one", minimum=0)
    Traceback (most recent call last):
    ValueError: ridge = 'a': must be a finite number >= 0, or None for the best one
    """
    limits = {"minimum": minimum, "maximum": maximum}
    item = value.item() if getattr(value, "shape", None) == () else value
    if (
        isinstance(item, bool)
        or not isinstance(item, numbers.Real)
        or not holds(float(item), limits, integer, infinite=False)
    ):
        kind = "an integer" if integer else "a finite number"
        if minimum is not None and maximum is not None:
            words = f" from {minimum:g} to {maximum:g}"
        else:
            words = "".join(f" {LIMITS[k][0]} {b:g}" for k, b in limits.items() if b is not None)
        shown = " ".join(repr(value).split())
        shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
        raise ValueError(f"{name} = {shown}: must be {kind}{words}{hint}")
    return float(item)
