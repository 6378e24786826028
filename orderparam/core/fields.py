"""The fields of a System: numbers, arrays, choices and parts, each with its meaning, what is
allowed, and how it is read.

    class Perceptron(System):
        "A perceptron on given data."
        inputs: Float[Array, "train input"] = parameter("training inputs")
        noise: float = parameter("variance of the label noise", minimum=0, default=0.0)
        loss: Literal["square", "hinge"] = structure("loss", default="square")
        activation: Activation = structure("nonlinearity", convert=activation, default="erf")
        spectrum: Spectrum = part("spectrum of the kernel")

The annotation is the schema: `float` is one number, `Float[Array, "train input"]` an array of that
rank, a `Literal` one of its choices, and a class means that the part must be an instance of it. A
value that does not fit is refused when the record is built, in a message that names the field and
what is allowed.
"""

import dataclasses
import functools
import math
import numbers
import types
import typing
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from orderparam.core import bounds
from orderparam.core.kinks import check_kinks
from orderparam.core.names import near

_LARGEST_INTEGER = 2**31 - 1  # of a structure: compiled programs count in 32 bits


class Refused(ValueError):
    """A value that its field does not allow. The class that is being built puts its name in front
    of the message."""


def parameter(
    meaning: str,
    *,
    default: Any = dataclasses.MISSING,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    below: float | None = None,
    integer: bool = False,
    infinite: bool = False,
    convert: Callable[[Any], Any] | None = None,
    kw_only: bool = False,
) -> Any:
    """Declares a field that holds a number or an array of numbers (a leaf).

    Numbers stay as they are; lists and arrays become float64 arrays of the annotation's rank.
    Traced values are not checked. A field of one number may hold an array of numbers (a batch),
    which is checked entry by entry.

    Args:
        meaning: What the number is, in a few words; messages, lists and forms show it.
        default: Value of a field that is not given; without it the field is required.
        minimum, maximum: Every entry x must satisfy minimum <= x <= maximum.
        above, below: Every entry must satisfy above < x < below.
        integer: True if every entry must be a whole number.
        infinite: True if infinite entries are allowed.
        convert: Function applied first, from what a person gives to the number.
        kw_only: True if the field can only be given by name.

    >>> class Magnet(op.System):
    ...     temperature: float = op.parameter("temperature", above=0, default=1.0)
    >>> Magnet().temperature
    1.0
    >>> Magnet(-1)
    Traceback (most recent call last):
    ValueError: Magnet.temperature = -1: must be > 0 (temperature)
    """
    limits = {"minimum": minimum, "maximum": maximum, "above": above, "below": below}
    return Declaration("parameter", meaning, limits, integer, infinite, None, convert).field(
        default, kw_only
    )


def structure(
    meaning: str,
    *,
    default: Any = dataclasses.MISSING,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: Sequence[str] | Callable[[], Sequence[str]] | None = None,
    convert: Callable[[Any], Any] | None = None,
    kw_only: bool = False,
) -> Any:
    """Declares a static field: a change of its value changes the computation.

    A sweep loops over such a field and never batches it. An `int` (or `tuple[int, ...]`) annotation
    asks for whole numbers; a `Literal` annotation, or `choices`, for one of a few words.

    Args:
        meaning: What the field is, in a few words; messages, lists and forms show it.
        default: Value of a field that is not given; without it the field is required.
        minimum, maximum: Range of whole numbers.
        choices: The allowed words; with `convert` the words that it knows.
        convert: Function from what a person may give instead of the object itself (a name, say) to
            the object; it raises `ValueError` if it cannot.
        kw_only: True if the field can only be given by name.

    >>> class Network(op.System):
    ...     depth: int = op.structure("number of hidden layers", minimum=1, default=1)
    >>> Network(2).depth
    2
    """
    limits = {"minimum": minimum, "maximum": maximum, "above": None, "below": None}
    return Declaration("structure", meaning, limits, choices_given=choices, convert=convert).field(
        default, kw_only
    )


def part(
    meaning: str,
    *,
    default: Any = dataclasses.MISSING,
    convert: Callable[[Any], Any] | None = None,
    kw_only: bool = False,
) -> Any:
    """Declares a field that holds a module with numbers of its own, such as a spectrum.

    The module must be of the class (or one of the classes) in the annotation.

    Args:
        meaning: What the module is, in a few words; messages, lists and forms show it.
        default: Module of a field that is not given; without it the field is required.
        convert: Function from what a person may give to the module.
        kw_only: True if the field can only be given by name.

    >>> from orderparam.kernels import Spectrum
    >>> class Regression(op.System):
    ...     spectrum: Spectrum = op.part("spectrum of the kernel")
    >>> Regression(Spectrum([1.0, 0.5], [1.0, 0.0])).spectrum.eigenvalues.shape
    (2,)
    """
    return Declaration("part", meaning, convert=convert).field(default, kw_only)


@dataclasses.dataclass(eq=False)
class Declaration:
    """The declaration of a field. Lists, forms and pages are generated from declarations: see
    `declarations`.

    name, owner: set when the class is made. Calling the declaration with a value returns the value
    to be kept, or raises `Refused`.
    """

    kind: Literal["parameter", "structure", "part"]
    meaning: str
    limits: dict[str, float | None] = dataclasses.field(default_factory=dict)
    integer: bool = False
    infinite: bool = False
    choices_given: Sequence[str] | Callable[[], Sequence[str]] | None = None
    convert: Callable[[Any], Any] | None = None
    name: str = "?"
    owner: type = object
    # Large arrays that were checked once: a copy of the record with another number does not read
    # them again.
    _passed: Any = dataclasses.field(default_factory=weakref.WeakValueDictionary)

    def field(self, default: Any, kw_only: bool) -> Any:
        """The dataclass field with this declaration."""
        static = self.kind == "structure"
        return eqx.field(
            default=default,
            static=static,
            kw_only=kw_only,
            converter=self,
            metadata={"declaration": self},
        )

    def bind(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    @functools.cached_property
    def annotations(self) -> tuple[Any, ...]:
        """The alternatives of the annotation; `float | None` has two."""
        return alternatives(typing.get_type_hints(self.owner).get(self.name, Any))

    @functools.cached_property
    def shapes(self) -> tuple[tuple[str, ...], ...]:
        """The named dimensions that a parameter may have: `()` for one number."""
        return tuple(
            tuple(getattr(kind, "dim_str", "").split())
            for kind in self.annotations
            if kind is not type(None)
        )

    @property
    def choices(self) -> tuple[Any, ...]:
        """The words that are allowed, or known to `convert`; empty where there is no such list."""
        if self.choices_given is not None:
            return tuple(
                self.choices_given() if callable(self.choices_given) else self.choices_given
            )
        return words_of(self.annotations)

    @property
    def allowed(self) -> str:
        """The allowed range of a number, in words."""
        return bounds.allowed(self.limits, self.integer, self.infinite)

    def refuse(self, value: Any, allowed: str) -> Refused:
        return Refused(
            bounds.refusal(self.name, short(value), allowed, self.meaning, self.infinite)
        )

    def _refuse_array(self, fault: str, allowed: str) -> Refused:
        return Refused(f"{self.name} {fault}: must be {allowed} ({self.meaning})")

    def __call__(self, value: Any) -> Any:
        if value is None and type(None) in self.annotations:
            return None
        for leaf in jax.tree.leaves(value) if isinstance(value, list | tuple) else [value]:
            self._check_leaf(leaf)
        if self.convert is not None:
            try:
                converted = self.convert(value)
                check_kinks(converted)
            except (ValueError, TypeError) as error:
                raise Refused(f"{self.name} = {short(value)}: {error} ({self.meaning})") from None
            value = converted
        return getattr(self, f"_{self.kind}")(value)

    def _check_leaf(self, leaf: Any) -> None:
        """Refuses arrays that NumPy would convert into numbers other than those they hold."""
        if isinstance(leaf, memoryview | bytes | bytearray):
            raise self.refuse(leaf, "an array, a list or one value, not bytes of memory")
        if isinstance(leaf, np.ma.MaskedArray) and np.ma.is_masked(leaf):
            raise self._refuse_array(
                "holds masked entries", "whole; fill them in, or leave them out"
            )
        if isinstance(leaf, np.longdouble) or getattr(leaf, "dtype", None) == np.longdouble:
            with np.errstate(over="ignore"):
                beyond = np.isinf(np.asarray(leaf, np.float64)) & ~np.isinf(leaf)
            if np.any(beyond):
                raise self.refuse(np.asarray(leaf)[beyond].flat[0], "a number that float64 holds")

    # -- numbers and arrays -----------------------------------------------------------------------

    def _parameter(self, value: Any) -> Any:
        if is_number(value):
            return self._number(value)
        if isinstance(value, jax.core.Tracer | jax.ShapeDtypeStruct):
            return value
        if isinstance(value, np.ndarray | jax.Array | list | tuple):
            return self._array(value)
        raise self.refuse(value, "a number" if () in self.shapes else "an array of numbers")

    def _number(self, value: Any) -> Any:
        if () not in self.shapes:
            raise self.refuse(value, f"an array of shape ({', '.join(self.shapes[0])})")
        try:
            real = float(value)
        except OverflowError:
            raise self.refuse(value, self.allowed) from None
        if not self._inside(np.float64(real)):
            raise self.refuse(value, self.allowed)
        return value

    def _array(self, value: Any) -> Any:
        if self._passed.get(id(value)) is value:
            return value
        try:
            if isinstance(value, list | tuple) and any(
                isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(value)
            ):
                return jnp.asarray(value, jnp.float64)
            array = np.asarray(value)
        except (ValueError, TypeError):  # lists of unequal length, random keys
            raise self.refuse(value, "an array of numbers") from None
        if array.dtype.kind not in "iuf" or array.size == 0:
            fault = "is empty" if array.size == 0 else f"holds {array.dtype}"
            raise self._refuse_array(fault, "numbers, at least one")
        ranks = [dims for dims in self.shapes if dims]
        batch = () in self.shapes and not isinstance(value, list | tuple)
        if not batch and not any(_fits(dims, array.shape) for dims in ranks):
            wanted = " or ".join(f"({', '.join(dims)})" for dims in ranks) or "one number"
            raise self._refuse_array(f"has shape {array.shape}", wanted)
        inside = self._inside(array)
        if not np.all(inside):
            raise self.refuse(array[~inside].flat[0], f"{self.allowed} in every entry")
        kept = (
            value
            if isinstance(value, jax.Array) and value.dtype == jnp.float64
            else jnp.asarray(array.astype(np.float64))
        )
        if isinstance(kept, jax.Array) and not isinstance(kept, jax.core.Tracer):
            self._passed[id(kept)] = kept
        return kept

    def _inside(self, array: Any) -> Any:
        """True for every entry that is allowed."""
        inside = ~np.isnan(array) if self.infinite else np.isfinite(array)
        for key, bound in self.limits.items():
            if bound is not None:
                inside &= bounds.LIMITS[key][1](array, bound)
        return inside & (np.floor(array) == array) if self.integer else inside

    # -- structure and parts ----------------------------------------------------------------------

    def _structure(self, value: Any) -> Any:
        if self.convert is None and self.choices:
            return self._word(value, self.choices)
        kinds = self.annotations
        several = next((kind for kind in kinds if typing.get_origin(kind) is tuple), None)
        if several is not None and isinstance(value, np.ndarray) and value.ndim == 0:
            raise self.refuse(value, "a list of them")
        if several is not None and isinstance(value, list | tuple | np.ndarray):
            entries = typing.get_args(several)
            if entries[-1] is Ellipsis:
                entries = entries[:1] * len(value)
            if len(entries) != len(value):
                raise self.refuse(value, f"{len(entries)} of them")
            return tuple(self._entry(item, (kind,)) for item, kind in zip(value, entries))
        return self._entry(value, kinds)

    def _entry(self, value: Any, kinds: tuple[Any, ...]) -> Any:
        """One value of one of these kinds: a word, a truth value, a number, or an object."""
        if words := words_of(kinds):
            return self._word(value, words)
        if bool in kinds:
            if not isinstance(value, bool | np.bool_):
                raise self.refuse(value, "True or False")
            return bool(value)
        kind = next((kind for kind in (int, float) if kind in kinds), None)
        if kind is None:
            return self._part(value, kinds)
        bounds = "" if self.allowed == "a finite number" else f" {self.allowed}"
        wanted = ("an integer" if kind is int else "a finite number") + bounds
        largest = _LARGEST_INTEGER if kind is int else 1e300
        if is_number(value) and abs(value) > largest:
            raise self.refuse(value, f"{wanted}, at most {largest:.3g} in size")
        fits = is_number(value) and bool(self._inside(np.float64(float(value))))
        if not fits or (kind is int and float(value) != math.floor(float(value))):
            raise self.refuse(value, wanted)
        return kind(value)

    def _word(self, value: Any, words: Sequence[Any]) -> Any:
        if any(isinstance(value, type(word)) and value == word for word in words):
            return value
        choices = [str(word) for word in words]
        raise self.refuse(
            value,
            f"one of {', '.join(choices)}{near(value, choices) if isinstance(value, str) else ''}",
        )

    def _part(self, value: Any, kinds: tuple[Any, ...] = ()) -> Any:
        """An object of one of these classes, or of the annotation's classes where none are
        given."""
        found = (typing.get_origin(kind) or kind for kind in kinds or self.annotations)
        classes = tuple(kind for kind in found if isinstance(kind, type) and kind is not Any)
        if classes and not isinstance(value, classes):
            raise self.refuse(
                value,
                f"a {' or '.join(kind.__name__ for kind in classes if kind is not type(None))}",
            )
        return value


def _fits(dims: tuple[str, ...], shape: tuple[int, ...]) -> bool:
    """True if an array of this shape can have these dimensions; `*name` stands for any number of
    them, `3` for three entries."""
    fixed = sum(not dim.startswith("*") for dim in dims)
    if fixed < len(dims):
        return len(shape) >= fixed
    return len(shape) == fixed and all(
        not dim.isdigit() or int(dim) == extent for dim, extent in zip(dims, shape)
    )


def alternatives(hint: Any) -> tuple[Any, ...]:
    """The kinds of value that an annotation allows: two of `float | None`."""
    return (
        typing.get_args(hint)
        if typing.get_origin(hint) in (typing.Union, types.UnionType)
        else (hint,)
    )


def words_of(kinds: Sequence[Any]) -> tuple[Any, ...]:
    """The words of those alternatives that are a `Literal`."""
    return tuple(
        word
        for kind in kinds
        if typing.get_origin(kind) is Literal
        for word in typing.get_args(kind)
    )


def declarations(record: Any) -> dict[str, Declaration]:
    """Field -> its declaration, of a record or its class; fields that are not declared are left
    out."""
    fields = {field.name: field.metadata.get("declaration") for field in dataclasses.fields(record)}
    return {name: declaration for name, declaration in fields.items() if declaration is not None}


def is_number(value: Any) -> bool:
    """True if `value` is one concrete real number (Python, NumPy or JAX scalar; a bool is not
    one)."""
    if isinstance(value, jax.core.Tracer | bool | np.bool_):
        return False
    if isinstance(value, numbers.Real):
        return True
    return isinstance(value, np.ndarray | jax.Array) and value.ndim == 0 and is_real(value)


def is_real(array: Any) -> bool:
    """True if an array holds real numbers, and not complex numbers, truth values, texts or random
    keys."""
    return jnp.issubdtype(array.dtype, jnp.integer) or jnp.issubdtype(array.dtype, jnp.floating)


def check_integer(name: str, value: Any, minimum: int, remark: str = "") -> None:
    """Raises `ValueError` naming an argument that is not an integer >= `minimum`."""
    if (
        isinstance(value, bool | np.bool_)
        or not isinstance(value, numbers.Integral)
        or value < minimum
    ):
        raise ValueError(f"{name} = {value!r}: must be an integer >= {minimum}{remark}")


def short(value: Any) -> str:
    """The text of a value in a message, cut where it is long."""
    if isinstance(value, int) and abs(value) >= 10**20:
        return "an integer of more than 20 digits"
    text = str(value) if is_number(value) else " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
