"""What every registered theory must do, whatever its physics; the files beside this one name an
example system of each kind.

    globals().update(checks("kernel_regression", [KernelRegression(...), PoolRegression(...)]))

- Called again, with the same or with other numbers, it compiles nothing.
- It refuses a system of another type by name.
- Every field of its systems is declared, and refuses by name what nobody can mean.
- Over random legal parameters it returns finite numbers of a possible sign, or says that it did not
converge, or refuses by name.
- So it does with any of its options.
- `jax.grad`, `jax.vmap` and `jax.jit` work over it, as far as the registry says so.
"""

import dataclasses
import importlib
import inspect
import math
import os
import re
import sys
import time
import typing
import zlib
from collections import Counter
from pathlib import Path as File

import jax
import numpy as np
import pytest
from derivatives import Path, wrong_derivatives
from unchanged import Reached

import orderparam as op
from orderparam.core.fields import declarations, is_number
from orderparam.core.result import Result
from orderparam.core.system import System

sys.path.insert(0, str(File(__file__).parents[2] / "docs"))
draws_of = importlib.import_module("_site.draws")
state_of = importlib.import_module("_site.state").state_of

DRAWS = 200
WITH_OPTIONS = 60  # of a theory, with any of its options
ALIKE = 5  # consecutive draws with the same options: a theory is compiled for each choice of them
SECONDS = float(os.environ.get("ORDERPARAM_TEST_SECONDS_EACH", "inf"))  # for these, of an example
# what a result says of itself when its other fields mean nothing
FLAGS = ("converged", "valid", "reliable", "first_order")
NOT_NEGATIVE = ("error", "variance", "risk", "loss", "ridge", "dimension", "effective_width")


class Other(System):
    """A system that no theory takes."""

    number: float = op.parameter("a number", default=1.0)


def accepts(theory, system, words):
    """Whether the theory takes this example, and does not refuse it by a field."""
    try:
        theory(system, **words)
    except ValueError:
        return False
    return True


def checks(
    topic,
    systems,
    fewer=None,
    options=None,
    infinite=(),
    decades=2.0,
    sloping=None,
    still=(),
    silent=(),
):
    """The tests of a topic as a dictionary of functions.

    fewer: slow theory -> draws of the everyday test; 200 for others, 20 for host algorithms. All
    get 200 in an attack. options: theory -> those it needs. infinite: observables that may be +inf,
    by their docstring. decades: how far numbers are drawn from those of the example, up and down.
    sloping: theory -> examples for its derivatives instead of `systems`. still: numbers that
    derivatives leave alone, as they are rounded. silent: theories of whose derivatives differences
    say nothing.
    """
    theories = [pytest.param(theory, id=theory.fn.__name__) for theory in of_topic(topic)]
    given, fewer = options or {}, fewer or {}

    def usual_draws(theory):
        return fewer.get(theory.fn.__name__, DRAWS if theory.traced else DRAWS // 10)

    def keeps_its_word(theory, draws):
        words, sound = given.get(theory.fn.__name__, {}), 0
        for system in systems:
            if isinstance(system, theory.systems):
                sound += hold(theory, system, words, draws, infinite, decades)
        assert sound, f"{theory.name}: no example for which it says that it is right"

    @pytest.mark.parametrize("theory", theories)
    def test_another_system_is_refused_by_name(theory):
        with pytest.raises(ValueError, match=rf"^{theory.name} takes an? .*, not an? Other$"):
            theory(Other())

    def reached(theory):
        """Its code, the example systems, and what asks them here."""
        examples = File(__file__).with_name(f"test_{topic}.py")
        code = (File(inspect.getfile(theory.fn)), theory.fn.__name__)
        return Reached([code, (File(__file__), "hold")], examples.read_text(encoding="utf-8"))

    @pytest.mark.reaches(by=reached)
    @pytest.mark.parametrize("theory", theories)
    def test_any_legal_parameters(theory):
        keeps_its_word(theory, usual_draws(theory))

    @pytest.mark.attack  # gradients of all theories take the compiler twenty minutes
    @pytest.mark.timeout(1200)
    @pytest.mark.parametrize("theory", [theory for theory in theories if theory.values[0].traced])
    def test_grad_vmap_and_jit(theory):
        words = given.get(theory.fn.__name__, {})
        near = (sloping or {}).get(theory.fn.__name__, systems)
        fitting = [
            system
            for system in reversed(near)
            if isinstance(system, theory.systems) and accepts(theory, system, words)
        ]
        first = {type(system): system for system in fitting}  # of each class
        paths = (
            Path.through(one, [number for number in numbers(one) if number[0] not in still])
            for one in first.values()
        )
        said = [wrong_derivatives(theory, path, words, flagged) for path in paths]
        assert not any(said), said
        assert ("" in said) != (theory.fn.__name__ in silent), (
            "nothing can be said at these examples, or it is no longer silent"
        )

    if dear := [theory for theory in theories if usual_draws(theory.values[0]) < DRAWS]:

        @pytest.mark.attack
        @pytest.mark.timeout(7200)
        @pytest.mark.parametrize("theory", dear)
        def test_two_hundred_legal_parameters(theory):
            keeps_its_word(theory, DRAWS)

    @pytest.mark.attack
    @pytest.mark.timeout(7200)
    @pytest.mark.parametrize("theory", theories)
    def test_legal_parameters_with_any_option(theory, pytestconfig):
        words = given.get(theory.fn.__name__, {})
        fitting = [system for system in systems if isinstance(system, theory.systems)]
        for place, system in enumerate(fitting):
            draws = WITH_OPTIONS // len(fitting) + (place < WITH_OPTIONS % len(fitting))
            again = sum(type(system) is type(other) for other in fitting[:place])
            book = Book.of(theory, system, again, words, draws, pytestconfig)
            hold_with_options(theory, system, book, words, infinite, decades)

    fields = [
        pytest.param(system, name, id=f"{type(system).__name__}-{name}")
        for system in systems
        for name in declarations(system)
    ]

    @pytest.mark.parametrize(
        "system", [pytest.param(system, id=type(system).__name__) for system in systems]
    )
    def test_every_field_is_declared(system):
        assert set(declarations(system)) == {field.name for field in dataclasses.fields(system)}

    @pytest.mark.parametrize(("system", "field"), fields)
    def test_wrong_values_are_refused_by_name(system, field):
        for value in wrong_values(system, field):
            with pytest.raises(ValueError, match=rf"^\w+\.{field}\b"):
                system.with_(**{field: value})

    return {
        name: function
        for name, function in locals().items()
        if inspect.isfunction(function) and name.startswith("test_")
    }


def hold(theory, system, words, draws, infinite, decades):
    """Asserts that a theory keeps its word at random parameters around those of a system; returns
    how often it gave it."""
    name = f"{theory.name} {type(system).__name__}"
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    usual = outcome(theory, system, {}, words)
    if isinstance(usual, ValueError):
        assert names_a_field(usual, system), f"{name}: {usual}"
        return 0
    assert isinstance(usual, theory.results)
    before, answered, sound = compiled["programs"], 0, not flagged(usual)
    for _ in range(draws):
        changes = draw(system, rng, decades)
        found = outcome(theory, system, changes, words)
        if isinstance(found, ValueError):
            assert names_a_field(found, system), f"{name} with {changes}: {found}"
            continue
        answered += 1
        sound += not flagged(found)
        fault = faults(found, usual, infinite)
        assert not fault, f"{name} with {changes}: {fault}"
    assert answered >= draws / 20, f"{name}: hardly any parameters are legal"
    again = compiled["programs"] - before
    assert again == 0 or not theory.traced, f"{name} compiled {again} programs for other numbers"
    return sound


@dataclasses.dataclass
class Book:
    """The draws around one example that were right, in tests/drawn.txt (docs/_site/draws.py).

    `pytest --changed` goes on where the last run with `--remember` stopped, if the code is the
    same.
    """

    name: str
    draws: draws_of.Draws
    writes: bool

    @classmethod
    def of(cls, theory, system, again, words, draws, config):
        """again: how many examples of the same class came before."""
        name = f"{theory.name} {type(system).__name__}{f' {again + 1}' if again else ''}"
        roots = [(File(inspect.getfile(theory.fn)), theory.fn.__name__)]
        now = draws_of.Draws(state_of(roots, words=f"{system!r} {words}"), 0, draws)
        known = draws_of.known().get(name)
        if (
            config.getoption("--changed")
            and known
            and (known.state, known.of) == (now.state, draws)
        ):
            now = known
        return cls(name, now, config.getoption("--remember"))

    def right(self, number):
        """A draw was right; one after a wrong one is not counted."""
        if number == self.draws.right:
            self.draws = self.draws._replace(right=number + 1)
        if self.writes:
            draws_of.remember(self.name, self.draws)


def hold_with_options(theory, system, book, words, infinite, decades):
    """Asserts that a theory keeps its word at random parameters and with random options. Each draw
    has a key of its own, so that a run that was stopped goes on where it was."""
    choices = [
        {**options, **words}
        for options in draw_options(theory, book.name, math.ceil(book.draws.of / ALIKE))
    ]
    name = f"{book.name} options"
    wrong, missing = [], range(book.draws.right, book.draws.of)
    usual = outcome(theory, system, {}, words) if missing else None
    begin = time.monotonic()
    for number in missing:
        if number != missing[0] and time.monotonic() - begin > SECONDS:
            break  # after one at least
        rng = np.random.default_rng([zlib.crc32(name.encode()), number])
        changes, options = draw(system, rng, decades), choices[number // ALIKE]
        found = outcome(theory, system, changes, options)
        if isinstance(found, ValueError):
            named = names_a_field(found, system, theory.options)
            fault = "" if named else f"refused without a name: {found}"
        else:
            fault = faults(found, found if isinstance(usual, ValueError) else usual, infinite)
        if fault:
            wrong.append(f"draw {number}, {changes} and {options}: {fault}")
        else:
            book.right(number)
    assert not wrong, f"{name}, {len(wrong)} draws: " + "\n".join(wrong)


def draw_options(theory, key, count):
    """`count` random choices of values for all options. An option has its usual value in about half
    of them, and in the others each of its values about equally often."""
    rng = np.random.default_rng(zlib.crc32(f"{key} choices".encode()))
    chosen = [{} for _ in range(count)]
    for name, option in theory.options.items():
        values = [{name: value} for value in option_values(theory, name, option, rng)]
        deck = [*values, *({} for _ in values)]
        for place, options in zip(rng.permutation(count), chosen if deck else (), strict=False):
            options.update(deck[place % len(deck)])
    return chosen


def option_values(theory, name, option, rng):
    """Values that an option may take: its words, both truth values, or four numbers around the
    usual one."""
    kinds, words = theory.kinds(name), theory.choices(name)
    if words:
        return [words[place] for place in rng.permutation(len(words))]
    if bool in kinds:
        return [False, True]
    if is_number(option.default) and option.default:
        numbers = option.default * 10.0 ** rng.uniform(-1, 0.5, 4)
        return list(numbers) if float in kinds else [max(1, round(one)) for one in numbers]
    return []


def names_a_field(error, system, further=()):
    return any(re.search(rf"\b{field}\b", str(error)) for field in (*field_names(system), *further))


def of_topic(topic):
    """Its theories."""
    return [theory for name, theory in op.theories().items() if name.startswith(f"{topic}.")]


def outcome(theory, system, changes, words):
    """The result, or the error that refuses."""
    try:
        return theory(system.with_(**changes), **words)
    except ValueError as error:
        return error


def field_names(record):
    """The names of the fields of a record and of its parts."""
    for name in declarations(record):
        yield name
        yield from (
            field_names(getattr(record, name)) if declarations_of(getattr(record, name)) else ()
        )


def wrong_values(system, field):
    """What nobody can mean by a field."""
    declaration, value = declarations(system)[field], getattr(system, field)
    wrong = [
        object(),
        "no such thing",
        1j,
        np.array([]),
        [[]],
        ["a"],
        np.array([1.0 + 1j]),
        memoryview(np.ones(2)),
        np.ma.masked,
    ]
    if declaration.kind == "parameter":
        infinite = [] if declaration.infinite else [math.inf]
        wrong += [10**400, *infinite, -math.inf, math.nan, True, {}, {"a": 1}]
        shape = np.shape(value) or (2,)
        for bad in (np.nan, *infinite):
            spoiled = np.ones(shape)
            spoiled.flat[-1] = bad
            wrong.append(spoiled)
        wrong += [np.full(shape, "x"), np.full(shape, 1.0, complex)]
        wrong += [
            np.ma.masked_less(np.arange(np.prod(shape)).reshape(shape), 1.0),
            [memoryview(np.ones(2))],
        ]
        if np.finfo(np.longdouble).max > np.finfo(np.float64).max:
            wrong.append(np.full(shape, np.longdouble("1e4000")))
        for key, step in (("minimum", -1.0), ("above", 0.0), ("maximum", 1.0), ("below", 0.0)):
            bound = declaration.limits[key]
            if bound is not None:
                beyond = bound + step * max(1.0, abs(bound))
                wrong += [beyond, np.full(shape, beyond)]
    elif any(typing.get_origin(kind) is tuple for kind in declaration.annotations):
        wrong.append(np.array(1.0))
    elif declaration.kind == "structure" and int in declaration.annotations:
        wrong += (
            [10**400, math.nan, 1.5, True, None]
            if type(None) not in declaration.annotations
            else [math.nan, 1.5, True]
        )
    elif (
        declaration.kind == "structure" and declaration.convert is None and not declaration.choices
    ):
        return []  # anything goes
    return wrong


def numbers(record, path=""):
    """Path, value and declaration of every number of a record and of its parts."""
    for name, declaration in declarations(record).items():
        value = getattr(record, name)
        if declaration.kind == "parameter" and is_number(value):
            yield f"{path}{name}", float(value), declaration
        elif declaration.kind == "part" and declarations_of(value):
            yield from numbers(value, f"{path}{name}.")


def declarations_of(value):
    try:
        return declarations(value)
    except TypeError:
        return {}


def draw(system, rng, decades=2.0):
    """New values for about two thirds of the numbers: near, far, and at the ends of what is
    allowed."""
    changes = {}
    for path, value, declaration in numbers(system):
        kind = rng.uniform()
        if kind < 0.35:
            continue
        limits = declaration.limits
        lowest = limits["minimum"] if limits["minimum"] is not None else limits["above"]
        highest = limits["maximum"] if limits["maximum"] is not None else limits["below"]
        scale = abs(value) or 1.0
        new = scale * 10.0 ** (
            rng.uniform(-decades, decades) if kind < 0.9 else rng.uniform(-4 * decades, 0)
        )
        if lowest is None and rng.uniform() < 0.5:
            new = -new
        if kind > 0.95 and limits["minimum"] is not None:
            new = limits["minimum"]
        if lowest is not None and new < lowest:
            new = lowest + abs(scale) * rng.uniform(0.01, 1)
        if highest is not None and new > highest:
            new = (lowest or 0.0) + (highest - (lowest or 0.0)) * rng.uniform(0.01, 0.99)
        changes[path] = float(max(1, round(new))) if declaration.integer else float(new)
    return changes


def flagged(result: Result) -> bool:
    """Whether a result says that it is not to be believed."""
    return any(
        name in type(result).dims() and not np.all(np.asarray(getattr(result, name)))
        for name in FLAGS
    )


def faults(result: Result, usual: Result, infinite=()) -> str:
    """What is wrong with a result, in words; empty when it is sound or says itself that it is
    not."""
    if flagged(result):
        return ""
    for name in type(result).dims():
        value, known = np.asarray(getattr(result, name)), np.asarray(getattr(usual, name))
        if not np.issubdtype(value.dtype, np.floating):
            continue
        undefined = (
            ~np.isfinite(known) if known.shape == value.shape else np.zeros(value.shape, bool)
        )
        if not np.all(np.isfinite(value) | undefined | (np.isposinf(value) & (name in infinite))):
            return f"{name} = {value} is said to be right"
        rounding = 1e-9 * np.max(np.abs(value), initial=1.0, where=np.isfinite(value))
        positive = any(word in name.split("_") for word in NOT_NEGATIVE) and "exponent" not in name
        if positive and np.any(value < -rounding):
            return f"{name} = {value} has an impossible sign"
    return ""


compiled = Counter()


def _count(event, seconds, **_):
    compiled["programs"] += event == "/jax/core/compile/backend_compile_duration"


jax.monitoring.register_event_duration_secs_listener(_count)
