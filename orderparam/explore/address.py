"""The state of a page from its address.

Nothing that a browser sends is evaluated: every value is read by the declaration of its field,
every name is looked up in the registry, and anything else is refused with a sentence.
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl

from orderparam.explore.first_state import opened
from orderparam.explore.state import (
    MEASURED,
    SEEDS,
    SHOWN,
    PageState,
    checked_range,
    known_name,
    number,
    observables,
    option_of,
    taken,
)
from orderparam.explore.systems import choices_of, experiments_of, theories_of, verbs

LONGEST = 4000  # largest number of characters of an address


def read(query: str) -> PageState:
    """The state that an address holds. Raises `ValueError`, in one sentence, for what does not
    fit."""
    if len(query) > LONGEST:
        raise ValueError(f"the address has {len(query)} characters: at most {LONGEST} are read")
    given = dict(parse_qsl(query.removeprefix("?"), keep_blank_values=True, max_num_fields=100))
    if "system" not in given:
        raise ValueError("the address names no system")
    state = opened(given["system"], given.get("start", ""))
    words = {name: value for name, value in choices_words(state).items() if f"f.{name}" in given}
    changes = {
        name: _choice(name, given[f"f.{name}"], available) for name, available in words.items()
    }
    for key, value in given.items():
        if key.startswith("f.") and key[2:] not in words:
            changes[known_name(key[2:], state.knobs, "number")] = number(key[2:], value)
    if changes:
        state = taken(state.with_(changes={}), changes)
    theory_names, experiment_names = theories_of(state.system), experiments_of(state.system)
    if "theory" in given:
        names = tuple(
            dict.fromkeys(
                known_name(name, theory_names, "theory") for name in given["theory"].split(",")
            )
        )[:SHOWN]
        state = state.with_(theories=names, show=())
    if given.get("experiment"):
        state = state.with_(
            experiment=known_name(given["experiment"], experiment_names, "experiment")
        )
    options = {}
    for key, value in given.items():
        if key.startswith("o."):
            name, _, option = key[2:].rpartition(".")
            verb = verbs()[known_name(name, {**theory_names, **experiment_names}, "theory")]
            options[name, option] = option_of(
                state, name, known_name(option, verb.options, "option"), value
            )
    if "theory" in given or "experiment" in given or options:
        state = state.with_(options=options)
    for letter in ("x", "y"):
        if letter in given:
            name, _, rest = given[letter].partition(":")
            span = checked_range(state, known_name(name, state.knobs, "number"), rest)
            state = state.with_(**{letter: name, "span" if letter == "x" else "y_span": span})
    available = observables(state)
    shown = (
        tuple(known_name(name, available, "observable") for name in given["show"].split(","))[
            :SHOWN
        ]
        if "show" in given
        else ()
    )
    state = state.with_(
        show=shown
        or tuple(name for name in state.show if name in available)
        or tuple(available[:1])
    )
    state = state.with_(log_y=given["log"] == "y" if "log" in given else state.log_y)
    if "order" in given:
        state = state.with_(order=known_name(given["order"], available, "observable"))
    for key, (low, high) in {"measured": MEASURED, "seeds": SEEDS}.items():
        if key in given:
            count = number(key, given[key])
            if not (low <= count <= high and count.is_integer()):
                raise ValueError(f"{key} = {count:g}: must be an integer from {low} to {high}")
            state = state.with_(**{key: int(count)})
    return state


def choices_words(state: PageState) -> dict[str, tuple[Any, Sequence[Any]]]:
    """Every field that is not a number -> its value, and the allowed words (none for a whole number
    or a formula)."""
    return {
        name: (value, _words(declaration))
        for name, declaration, value in choices_of(state.opening.system)
    }


def _words(declaration: Any) -> tuple[str, ...]:
    if bool in declaration.annotations:
        return ("True", "False")
    return tuple(str(word) for word in declaration.choices if "(" not in str(word))


def _choice(name: str, value: str, available: tuple[Any, Sequence[Any]]) -> Any:
    now, words = available
    if isinstance(now, bool) and value in ("True", "False"):
        return value == "True"
    if isinstance(now, int) and not words:
        found = number(name, value)
        return int(found) if found.is_integer() else found  # the field refuses it, with its name
    return value
