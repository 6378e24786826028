"""The numbers that a field allows, in words and as a test. JAX is not needed here, so that a number
that is not allowed is refused before anything is imported.
"""

import math
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
