"""The decorators `theory` and `experiment`: what a function takes and gives is read from its
signature, it is compiled once for a shape, and it is found by name.

    @theory def self_consistent(system: KernelRegression, *, branch: Literal["upper", "lower"] =
    "upper") -> LearningCurve: ...

    @experiment def gaussian_design(system: KernelRegression, key: PRNGKeyArray, *, test_points: int
    = 1000) -> LearningCurve: ...

The decorated function is called as before. It refuses a system of another type and options that do
not exist, makes every number of the system a float64 array, and runs a compiled program that is
kept: the same call with other numbers compiles nothing.
"""

import functools
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from orderparam.core.declared import topic_of
from orderparam.core.devices import over_devices
from orderparam.core.fields import alternatives, is_number, short, words_of
from orderparam.core.names import near, nearest
from orderparam.core.needs import COUNTS, Need, check_needs
from orderparam.core.own_code import state_of_own_code
from orderparam.core.registry import experiments_made, theories_made
from orderparam.core.result import Result
from orderparam.core.stored_programs import stored_or_compiled
from orderparam.core.system import System, as_arrays, replace

_NOTHING: Mapping[str, Need] = {}
PROGRAMS = 64  # compiled programs that a theory keeps for its sweeps; each takes some MB


class Verb:
    """The common base of theories and experiments. Made by the decorators `theory` and
    `experiment`.

    name:    `topic.function`, the name in the registry.
    systems: the classes of systems it takes; results: the classes of what it returns.
    options: the other arguments, name -> `inspect.Parameter` (annotation and default).
    needs: what it needs of the fields of its system and of its options, by name.
    own_code: the state of a person's own code, empty for a verb of this package.
    """

    first: int = 1  # arguments before the options
    __qualname__: str
    __call__: Callable[..., Any]

    def __init__(
        self, fn: Callable[..., Any], check: Callable[..., None] | None, needs: Mapping[str, Need]
    ) -> None:
        functools.update_wrapper(self, fn)
        self.fn, self.check, self.needs = fn, check, dict(needs)
        self._signature = inspect.signature(fn)
        self.options: dict[str, inspect.Parameter] = dict(
            list(self._signature.parameters.items())[self.first :]
        )
        self.name = f"{topic_of(fn.__module__)}.{fn.__name__}"
        # of the code that runs: the file may be edited while this process goes on
        self.own_code = state_of_own_code(fn)

    @functools.cached_property
    def _hints(self) -> dict[str, Any]:
        return typing.get_type_hints(self.fn)

    @functools.cached_property
    def _numbers(self) -> tuple[str, ...]:
        """The options that are numbers."""
        return tuple(name for name in self.options if float in self.kinds(name))

    @functools.cached_property
    def systems(self) -> tuple[type[System], ...]:
        return _classes(self._hints.get(next(iter(self._signature.parameters)), System))

    @functools.cached_property
    def results(self) -> tuple[type[Result], ...]:
        return _classes(self._hints.get("return", Result))

    def kinds(self, option: str) -> tuple[Any, ...]:
        """The kinds of value that an option may have: two for `float | None`."""
        return alternatives(self._hints.get(option, Any))

    def choices(self, option: str) -> tuple[Any, ...]:
        """The words that an option may have; empty where its annotation names none."""
        return words_of(self.kinds(option))

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} {self.name}{self._signature}>"

    def __reduce__(self) -> str:
        return self.fn.__qualname__  # found by the name of the function, in any process

    def accept(self, system: Any, options: Mapping[str, Any]) -> dict[str, Any]:
        """The values of all options as the function receives them, `float` ones as `np.float64`.
        Raises `ValueError` for a system or an option that does not fit."""
        if not isinstance(system, self.systems):
            wanted = " or ".join(kind.__name__ for kind in self.systems)
            raise ValueError(f"{self.name} takes a {wanted}, not a {type(system).__name__}")
        for name, value in options.items():
            if name not in self.options:
                raise ValueError(
                    f"{self.name} has no option {name!r}{nearest(name, list(self.options))}"
                )
            kinds = self.kinds(name)
            if not any(_may_be(value, kind) for kind in kinds):
                wanted = " or ".join(_WORDS[kind] for kind in kinds if kind in _WORDS)
                words = [str(word) for word in self.choices(name)]
                listed = f"one of {', '.join(words)}" if words else ""
                hint = near(value, words) if words and isinstance(value, str) else ""
                allowed = " or ".join(filter(None, (listed, wanted)))
                raise ValueError(f"{self.name}: {name} = {short(value)}: must be {allowed}{hint}")
            # none of these may be empty, whatever else a function needs of them
            counts = name in COUNTS and name not in self.needs
            if counts and is_number(value) and not value >= 1:
                raise ValueError(f"{self.name}: {name} = {short(value)}: must be >= 1")
        # With the defaults, so that a call that gives them, or another number, runs the same
        # program.
        defaults = {
            name: option.default
            for name, option in self.options.items()
            if option.default is not option.empty
        }
        read = {**defaults, **options}
        return read | {
            name: np.float64(read[name]) for name in self._numbers if is_number(read.get(name))
        }

    def judge(self, system: Any, options: Mapping[str, Any]) -> None:
        """Raises `ValueError` for a system to which this theory or experiment does not apply.
        Traced numbers are not checked."""
        if not self.judges or any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(system)):
            return
        check_needs(self.needs, system, options, self.options)
        if self.check is not None:
            self.check(system, **options)

    @property
    def judges(self) -> bool:
        """True if it refuses some systems of the right type."""
        return bool(self.needs) or self.check is not None

    def _read(
        self, system: Any, arguments: tuple[Any, ...], options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The values of all options, from those given by position and those given by name; refuses
        options that do not fit."""
        if len(arguments) > len(self.options):
            raise ValueError(
                f"{self.name} takes at most {len(self.options)} options, not {len(arguments)}"
            )
        placed = dict(zip(self.options, arguments))
        if twice := placed.keys() & options.keys():
            raise ValueError(f"{self.name}: {', '.join(sorted(twice))} is given twice")
        given = {**placed, **options}
        read = self.accept(system, given)
        self.judge(system, given)
        return read

    def _arrays(self, read: Mapping[str, Any]) -> dict[str, jax.Array]:
        """The options that are numbers, as arrays."""
        return {
            name: jnp.asarray(read[name])
            for name in self._numbers
            if isinstance(read.get(name), np.float64)
        }


class Theory(Verb):
    """A pure function of a system, compiled once for a shape; `jax.grad`, `jax.vmap` and `jax.jit`
    work over it.

    traced: False for a host algorithm, which is neither compiled nor batched. differentiable: True
    if `jax.grad` gives the derivative.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        check: Callable[..., None] | None,
        traced: bool,
        differentiable: bool,
        needs: Mapping[str, Need] = _NOTHING,
    ) -> None:
        super().__init__(fn, check, needs)
        self.traced, self.differentiable = traced, traced and differentiable
        self._compiled = eqx.filter_jit(fn)
        self._batched: dict[Any, Any] = {}  # the one used last comes last

    def __call__(self, system: Any, *arguments: Any, **options: Any) -> Any:
        read = self._read(system, arguments, options)
        if not self.traced:
            return self.fn(as_arrays(system), **read)
        return self._compiled(as_arrays(system), **{**read, **self._arrays(read)})

    def at_one_point(self, system: Any, **options: Any) -> Any:
        """The result of a call, computed by the program of a sweep of one point, which the command
        line finds on the disk."""
        if not self.traced:
            return self(system, **options)
        self.judge(system, options)
        program, arrays = self.batched(system, options, (), 1)
        return program(arrays, {})

    def batched(
        self, system: Any, options: Mapping[str, Any], columns: tuple[str, ...], size: int
    ) -> tuple[Any, Any]:
        """The compiled program for `size` points that differ in the numbers `columns`, and the
        arrays to call it with.

        program(arrays, {column: (size,) array}) -> Result with a leading dimension (none without
        columns); the arrays are the system's and the options'. The last `PROGRAMS` programs of a
        theory are kept, so that another sweep over the same columns of a system of the same
        structure compiles nothing.
        """
        read = self.accept(system, options)
        arrays, rest = eqx.partition(
            (as_arrays(system), {**read, **self._arrays(read)}), eqx.is_array
        )
        leaves, tree = jax.tree.flatten(arrays)
        static = jax.tree.flatten(rest)
        shapes = tuple((leaf.shape, leaf.dtype.name) for leaf in leaves)
        key: Any = (tree, shapes, tuple(static[0]), static[1], columns, size)
        try:
            if key in self._batched:
                self._batched[key] = self._batched.pop(key)
                return self._batched[key], arrays
        except (
            TypeError,
            ValueError,
        ):  # a part that cannot be compared with others: compiled for this sweep only
            key = None

        def at(arrays: Any, column: Mapping[str, jax.Array]) -> Result:
            whole, words = eqx.combine(arrays, rest)
            result = self.fn(replace(whole, dict(column)), **words)
            if not isinstance(result, Result):
                raise TypeError(f"{self.name} returned {type(result).__name__}, not a Result")
            return result

        column = jax.ShapeDtypeStruct((size,), jnp.float64, sharding=over_devices(size))
        inputs = dict.fromkeys(columns, column)
        function = jax.vmap(at, in_axes=(None, 0)) if columns else at
        program = stored_or_compiled(function, (arrays, inputs), (self, rest, columns, size))
        if key is not None:
            self._batched[key] = program
            if len(self._batched) > PROGRAMS:
                del self._batched[next(iter(self._batched))]
        return program, arrays


class Experiment(Verb):
    """A function of a system and a key that runs the network or the algorithm itself. Its system is
    never traced."""

    first = 2

    def __call__(self, system: Any, key: jax.Array, *arguments: Any, **options: Any) -> Any:
        return self.fn(as_arrays(system), key, **self._read(system, arguments, options))


@overload
def theory(fn: Callable[..., Any]) -> Theory: ...
@overload
def theory(
    *,
    traced: bool = True,
    differentiable: bool = True,
    check: Callable[..., None] | None = None,
    needs: Mapping[str, Need] = _NOTHING,
) -> Callable[[Callable[..., Any]], Theory]: ...
def theory(
    fn: Callable[..., Any] | None = None,
    *,
    traced: bool = True,
    differentiable: bool = True,
    check: Callable[..., None] | None = None,
    needs: Mapping[str, Need] = _NOTHING,
) -> Any:
    """Registers the decorated function `(system, *, options) -> Result` as a theory: see `Theory`.

    Args:
        fn: The function, when the decorator is used without brackets.
        traced: False for a host algorithm, which is neither compiled nor batched.
        differentiable: False if `jax.grad` does not give the derivative.
        check: Called with the concrete system and the options before anything is compiled; raises
            `ValueError` for a system to which the theory does not apply.
        needs: What the theory needs of single fields and options, by name, with the conditions of
            `orderparam.core.needs`.

    Raises:
        ValueError: where another theory or experiment has the same name.

    A theory is called with a system, and JAX differentiates it:

    >>> import jax
    >>> from orderparam.systems.spins import MeanFieldMagnet, mean_field
    >>> magnet = MeanFieldMagnet(temperature=0.5)
    >>> round(float(mean_field(magnet).magnetisation), 6)
    0.957504
    >>> round(
    ...     float(jax.grad(lambda t: mean_field(magnet.with_(temperature=t)).magnetisation)(0.5)), 6
    ... )
    -0.38219
    """

    def register(fn: Callable[..., Any]) -> Theory:
        made = Theory(fn, check, traced, differentiable, needs)
        return _enter(theories_made, made)

    return register if fn is None else register(fn)


@overload
def experiment(fn: Callable[..., Any]) -> Experiment: ...
@overload
def experiment(
    *, check: Callable[..., None] | None = None, needs: Mapping[str, Need] = _NOTHING
) -> Callable[[Callable[..., Any]], Experiment]: ...
def experiment(
    fn: Callable[..., Any] | None = None,
    *,
    check: Callable[..., None] | None = None,
    needs: Mapping[str, Need] = _NOTHING,
) -> Any:
    """Registers the decorated function `(system, key, *, options) -> Result` as an experiment.

    An experiment is never traced over its system: see `Experiment`.

    Args:
        fn: The function, when the decorator is used without brackets.
        check: Called with the system and the options before anything runs; raises `ValueError` for
            a system to which the experiment does not apply.
        needs: What the experiment needs of single fields and options, by name, with the conditions
            of `orderparam.core.needs`.

    Raises:
        ValueError: where another theory or experiment has the same name.

    >>> import jax
    >>> from orderparam.systems.spins import MeanFieldMagnet, glauber
    >>> run = glauber(MeanFieldMagnet(temperature=0.5, spins=50), jax.random.key(0))
    >>> bool(0.9 < run.magnetisation < 1)
    True
    """

    def register(fn: Callable[..., Any]) -> Experiment:
        return _enter(experiments_made, Experiment(fn, check, needs))

    return register if fn is None else register(fn)


def _enter(registry: dict[str, Any], verb: Any) -> Any:
    other: Verb | None = theories_made.get(verb.name) or experiments_made.get(verb.name)
    if other is not None and (other.__module__ != verb.__module__ or type(other) is not type(verb)):
        raise ValueError(
            f"two are called {verb.name!r}: in {other.__module__} and in {verb.__module__}"
        )
    registry[verb.name] = verb
    return verb


def forget_programs() -> None:
    """Drops the compiled programs of all sweeps, which are otherwise kept as long as the process
    lives."""
    for made in theories_made.values():
        made._batched.clear()


def unwrap(fn: Callable[..., Any]) -> tuple[Any, dict[str, Any]]:
    """A theory or an experiment and the options bound to it by `functools.partial`; `(fn, {})` for
    any other function."""
    options: dict[str, Any] = {}
    inner = fn
    while isinstance(inner, functools.partial):
        options = {**inner.keywords, **options}
        if inner.args:
            return fn, {}
        inner = inner.func
    return (inner, options) if isinstance(inner, Verb) else (fn, {})


_WORDS = {float: "a number", int: "an integer", bool: "True or False", type(None): "None"}


def _may_be(value: Any, kind: Any) -> bool:
    """True if an option may have this value, by one alternative of its annotation, or if the
    annotation does not decide it.

    Not beartype's `is_bearable`, which goes by Python's types: it takes True for an integer, and
    refuses 3, a JAX number and, for an integer, 3.0 and NumPy's, which all are numbers here.
    """
    if typing.get_origin(kind) is Literal:
        return any(
            isinstance(value, type(word)) and value == word for word in typing.get_args(kind)
        )
    if kind is float:
        if isinstance(value, jax.Array | np.ndarray):
            return value.size > 0
        return is_number(value) and not _overflows(value)
    if kind is int:
        return is_number(value) and value == value // 1
    return isinstance(value, kind) if kind in (bool, type(None)) else True


def _overflows(value: Any) -> bool:
    """True for an integer without a double, which begin near 1.8e308."""
    return isinstance(value, int) and abs(value) > sys.float_info.max


def _classes(hint: Any) -> tuple[Any, ...]:
    """The classes of an annotation; those of a type variable are its bounds."""
    if isinstance(hint, typing.TypeVar):
        hint = hint.__bound__ or typing.Union[hint.__constraints__]  # noqa: UP007
    kinds = (typing.get_origin(kind) or kind for kind in alternatives(hint))
    return tuple(object if kind is Any else kind for kind in kinds if isinstance(kind, type))
