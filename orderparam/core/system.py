"""A System: the physical parameters of one learning problem, documented, checked, and open to vmap
and grad.

Subclass `System`, and declare each field with `parameter`, `structure` or `part` (see
`orderparam.core.fields`):

    class Ising(System):
        "Mean-field Ising model (Curie-Weiss)."
        temperature: float = parameter("temperature in units of the coupling", above=0)
        spins: int = parameter("number of spins", minimum=1, integer=True, default=1000)

Every number is a pytree leaf (sizes too), so `jax.vmap`, `jax.jit` and `jax.grad` act over it. A
field that changes the structure of the computation (depth, activation, architecture) is declared
with `structure` and is static.
"""

import dataclasses
import functools
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from orderparam.core.fields import (
    Refused,
    declarations,
    is_number,
    is_real,
    parameter,
    part,
    short,
    structure,
)
from orderparam.core.names import nearest

__all__ = [
    "Record",
    "System",
    "as_arrays",
    "is_number",
    "nearest",
    "parameter",
    "part",
    "replace",
    "structure",
]


class _Named(type(eqx.Module)):  # type: ignore[misc]
    """Puts the name of the class that is being built in front of the messages of its fields."""

    def __call__(cls, *args: Any, **fields: Any) -> Any:
        try:
            return super().__call__(*args, **fields)
        except Refused as error:
            raise ValueError(f"{cls.__name__}.{error}") from None


class Record(eqx.Module, metaclass=_Named):
    """A frozen record of declared fields: a System, or a part of one (a spectrum, a distribution of
    labels).

    Raises `ValueError` naming the class, the field, the value and what is allowed; also for arrays
    whose dimensions of the same name differ.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, field in list(cls.__dict__.items()):
            if isinstance(field, dataclasses.Field) and "declaration" in field.metadata:
                field.metadata["declaration"].bind(cls, name)
        # checks of several fields may rely on consistent shapes
        if "__check_init__" in cls.__dict__:
            own = cls.__dict__["__check_init__"]

            @functools.wraps(own)
            def check(self: Any) -> None:
                _same_dimensions(self)
                try:
                    own(self)
                except ValueError as error:
                    batches = _batches(self) if "truth value of an array" in str(error) else []
                    if not batches:
                        raise
                    raise Refused(
                        f"{', '.join(batches)} must be one number each: what is allowed depends on "
                        "it here"
                    ) from None

            cls.__check_init__ = check  # type: ignore[method-assign]

    def __check_init__(self) -> None:
        _same_dimensions(self)

    def with_(self, **changes: Any) -> Self:
        """A copy with some fields changed, checked again. A dotted name reaches into a nested
        module.

        `system.with_(n_train=100, **{"spectrum.tail": 0.1})`. Raises `ValueError` for a name that
        does not exist.
        """
        return replace(self, changes)


class System(Record):
    """Base of all systems: the physical parameters of one learning problem."""

    def size(self, name: str) -> int:
        """The value of a field as an int. Theories take sizes of any value, experiments only whole
        ones that float64 holds exactly.

        Raises `ValueError` when it is not a whole number from 0 to 2^53.
        """
        value = getattr(self, name)
        if not is_number(value) or not float(value).is_integer() or float(value) < 0:
            raise ValueError(
                f"{type(self).__name__}.{name} = {short(value)}: an experiment needs a whole "
                "number >= 0"
            )
        if float(value) > 2**53:
            raise ValueError(
                f"{type(self).__name__}.{name} = {short(value)}: an experiment needs a whole "
                "number <= 2^53"
            )
        return int(value)


def _same_dimensions(record: Any) -> None:
    """Refuses arrays of one record whose dimensions of the same name differ in length."""
    extents: dict[str, tuple[int, str]] = {}
    for name, declaration in declarations(record).items():
        array = getattr(record, name)
        if declaration.kind != "parameter" or not hasattr(array, "shape"):
            continue
        for dims in declaration.shapes:
            if len(dims) != len(array.shape) or any(dim.startswith(("*", "#")) for dim in dims):
                continue
            for dim, extent in zip(dims, array.shape):
                first, where = extents.setdefault(dim, (extent, name))
                if extent != first:
                    raise Refused(
                        f"{name} has shape {tuple(array.shape)}, ({', '.join(dims)}): must have "
                        f"{dim} = {first}, as {where} has"
                    )


def _batches(record: Any) -> list[str]:
    """The names of the fields of one number that hold an array of numbers."""
    numbers = [
        name for name, declaration in declarations(record).items() if () in declaration.shapes
    ]
    return [
        f"{name} = {short(getattr(record, name))}"
        for name in numbers
        if np.ndim(getattr(record, name)) > 0
    ]


def as_arrays(module: Any) -> Any:
    """The system with every number as a float64 array, so that a change of a value never compiles
    again; other leaves stay as they are.

    Arrays of integers with dimensions may be indices and stay integers.
    """

    def convert(leaf: Any) -> Any:
        if isinstance(leaf, jax.Array) and leaf.dtype == jnp.float64 and not leaf.weak_type:
            return leaf
        if is_number(leaf):
            with jax.ensure_compile_time_eval():  # sizes are concrete even where a key is traced
                return jnp.asarray(np.float64(leaf))
        if isinstance(leaf, np.ndarray):
            return jnp.asarray(leaf.astype(np.float64) if leaf.dtype.kind == "f" else leaf)
        if (
            isinstance(leaf, jax.Array)
            and is_real(leaf)
            and (leaf.ndim == 0 or jnp.issubdtype(leaf.dtype, jnp.floating))
        ):
            return jax.lax.convert_element_type(leaf, jnp.float64)
        return leaf

    return jax.tree.map(convert, module)


def replace(module: Any, changes: dict[str, Any]) -> Any:
    """A copy of a dataclass with (possibly dotted) fields changed; unknown names raise `ValueError`
    with the nearest match."""
    direct: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    names = [field.name for field in dataclasses.fields(module) if field.init]
    for path, value in changes.items():
        head, _, rest = str(path).partition(".")
        if head not in names:
            raise ValueError(f"{type(module).__name__} has no field {head!r}{nearest(head, names)}")
        if rest:
            nested.setdefault(head, {})[rest] = value
        else:
            direct[head] = value
    for head, inner in nested.items():
        base = direct.get(head, getattr(module, head))
        if not dataclasses.is_dataclass(base):
            raise ValueError(
                f"{type(module).__name__}.{head} has no fields of its own ({', '.join(inner)} "
                "asked for)"
            )
        direct[head] = replace(base, inner)
    return dataclasses.replace(module, **direct)
