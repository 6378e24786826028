"""A System: the physical parameters of one learning problem, documented, checked, and open to vmap and grad.

Subclass `System`, and declare each number with `parameter`, which keeps its meaning and its allowed range beside it:

    class Ising(System):
        "Mean-field Ising model (Curie-Weiss)."
        temperature: float = parameter("temperature in units of the coupling", above=0)
        spins: int = parameter("number of spins", minimum=1, integer=True, default=1000)

Every number is a pytree leaf (sizes too), so `jax.vmap`, `jax.jit` and `jax.grad` act over it. What changes the structure of
the computation (depth, activation, architecture) is declared with `structure` and is static.
"""

import dataclasses
import difflib
import math
import numbers
from typing import Any, Self

import equinox as eqx
import jax
import numpy as np


def parameter(
    meaning: str,
    *,
    default: Any = dataclasses.MISSING,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    below: float | None = None,
    integer: bool = False,
) -> Any:
    """Field of a `System` that holds a number (a leaf): its meaning and its range.

    minimum <= x <= maximum and above < x < below, as far as they are given. The range is checked whenever a System is built from
    concrete numbers; traced and batched values pass through.
    """
    limits = {"minimum": minimum, "maximum": maximum, "above": above, "below": below, "integer": integer}
    return eqx.field(default=default, metadata={"meaning": meaning, "limits": limits})


def structure(meaning: str, *, default: Any = dataclasses.MISSING) -> Any:
    """Static field of a `System`: a change of it changes the computation, so it is looped over and never batched."""
    return eqx.field(default=default, static=True, metadata={"meaning": meaning})


def _violation(value: float, limits: dict[str, Any]) -> str | None:
    """What is allowed, in words, when `value` is not; otherwise None."""
    allowed = []
    if limits["integer"]:
        allowed.append("an integer")
    for key, word in {"minimum": ">=", "above": ">", "maximum": "<=", "below": "<"}.items():
        if limits[key] is not None:
            allowed.append(f"{word} {limits[key]:g}")
    inside = (
        not math.isnan(value)
        and (not limits["integer"] or value == math.floor(value))
        and (limits["minimum"] is None or value >= limits["minimum"])
        and (limits["maximum"] is None or value <= limits["maximum"])
        and (limits["above"] is None or value > limits["above"])
        and (limits["below"] is None or value < limits["below"])
    )
    return None if inside else " and ".join(allowed) or "a number"


def is_number(value: Any) -> bool:
    """Whether `value` is one concrete real number (Python, NumPy or JAX scalar; a bool is not one)."""
    if isinstance(value, jax.core.Tracer | bool | np.bool_):
        return False
    if isinstance(value, numbers.Real):
        return True
    return isinstance(value, np.ndarray | jax.Array) and value.ndim == 0 and np.issubdtype(value.dtype, np.number)


class System(eqx.Module):
    """Base of all systems: a frozen record whose declared ranges are checked when it is built.

    Raises `ValueError` naming the field, the value and what is allowed.
    """

    def __check_init__(self) -> None:
        for field in dataclasses.fields(self):
            limits = field.metadata.get("limits")
            if limits is None:
                continue
            value = getattr(self, field.name)
            if is_number(value):
                allowed = _violation(float(value), limits)
                if allowed is not None:
                    raise ValueError(
                        f"{type(self).__name__}.{field.name} = {value}: must be {allowed} ({field.metadata['meaning']})"
                    )
            elif not isinstance(value, np.ndarray | jax.Array):  # a traced or batched value passes
                raise ValueError(
                    f"{type(self).__name__}.{field.name} = {value!r}: must be a number ({field.metadata['meaning']})"
                )

    def with_(self, **changes: Any) -> Self:
        """A copy with some fields changed, checked again. A dotted name reaches into a nested module.

        `system.with_(n_train=100, **{"spectrum.tail": 0.1})`. Raises `ValueError` for a name that does not exist.
        """
        return replace(self, changes)


def replace(module: Any, changes: dict[str, Any]) -> Any:
    """A copy of a dataclass with (possibly dotted) fields changed; unknown names raise `ValueError` with the nearest match."""
    direct: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    names = [field.name for field in dataclasses.fields(module) if field.init]
    for path, value in changes.items():
        head, _, rest = path.partition(".")
        if head not in names:
            raise ValueError(f"{type(module).__name__} has no field {head!r}{nearest(head, names)}")
        if rest:
            nested.setdefault(head, {})[rest] = value
        else:
            direct[head] = value
    for head, inner in nested.items():
        base = direct.get(head, getattr(module, head))
        if not dataclasses.is_dataclass(base):
            raise ValueError(f"{type(module).__name__}.{head} has no fields of its own ({', '.join(inner)} asked for)")
        direct[head] = replace(base, inner)
    return dataclasses.replace(module, **direct)


def whole(name: str, value: Any) -> int:
    """The value as an int; `ValueError` when it is none: theories take sizes of any value, experiments do not."""
    if int(value) != value:
        raise ValueError(f"{name} = {value}: an experiment needs a whole number")
    return int(value)


def nearest(word: str, choices: list[str]) -> str:
    """`"; did you mean 'x'?"`, or the choices (twenty of them) when nothing is near. Ends every message about a wrong name."""
    close = difflib.get_close_matches(word, choices, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]!r}?"
    more = f" and {len(choices) - 20} more" if len(choices) > 20 else ""
    return f"; there are: {', '.join(sorted(choices)[:20])}{more}" if choices else ""
