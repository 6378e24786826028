"""Conditions on the system and the options of a theory or an experiment, declared with it:

    @theory(needs={"temperature": above(0, why="this is the limit of high temperatures")})
    def high_temperature(system: ThermalPerceptron) -> Annealed: ...

A system or an option that does not meet a need is refused by name before anything is compiled, and
`orderparam list NAME` and the reference show the needs. What concerns several fields together is a
function, given as `check`.
"""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

import jax
import numpy as np

from orderparam.core.fields import is_number, short


class Need(NamedTuple):
    """One condition on a value.

    Fields:
        words: what the value must be.
        holds: function of the value that is true where the condition is met.
        why: the reason, or where other values are treated.
    """

    words: str
    holds: Callable[[Any], Any]
    why: str = ""

    def __str__(self) -> str:
        return f"must be {self.words}" + (f" ({self.why})" if self.why else "")


def equal(value: Any, *, why: str = "") -> Need:
    """The value is this one, for example a word, a flag or a number.

    >>> str(equal("binary", why="Gaussian weights are never recovered exactly"))
    "must be 'binary' (Gaussian weights are never recovered exactly)"
    """
    return Need(repr(value), lambda x: x == value, why)


def at_least(least: float, *, why: str = "") -> Need:
    """The number is this one or larger.

    >>> str(at_least(2))
    'must be >= 2'
    """
    return Need(f">= {least:g}", lambda x: x >= least, why)


def at_most(most: float, *, why: str = "") -> Need:
    """The number is this one or smaller.

    >>> str(at_most(30, why="all 2^N couplings are tried"))
    'must be <= 30 (all 2^N couplings are tried)'
    """
    return Need(f"<= {most:g}", lambda x: x <= most, why)


def above(bound: float, *, why: str = "") -> Need:
    """The number is larger than this one.

    >>> above(0).holds(0), above(0).holds(0.1)
    (False, True)
    """
    return Need(f"> {bound:g}", lambda x: x > bound, why)


def below(bound: float, *, why: str = "") -> Need:
    """The number is smaller than this one.

    >>> below(0.5).holds(0.5), below(0.5).holds(0.4)
    (False, True)
    """
    return Need(f"< {bound:g}", lambda x: x < bound, why)


def between(least: float, most: float, *, why: str = "") -> Need:
    """The number lies between these two, both included.

    >>> str(between(1, 32))
    'must be between 1 and 32'
    """
    return Need(f"between {least:g} and {most:g}", lambda x: (x >= least) & (x <= most), why)


def inside(low: float, high: float, *, why: str = "") -> Need:
    """The number lies between these two, both excluded.

    >>> inside(0, 1).holds(1), inside(0, 1).holds(0.5)
    (False, True)
    """
    return Need(f"> {low:g} and < {high:g}", lambda x: (x > low) & (x < high), why)


def power_of_two(*, why: str = "") -> Need:
    """The whole number is 2, 4, 8 and so on.

    >>> power_of_two().holds(1024), power_of_two().holds(1000), power_of_two().holds(1)
    (True, False, False)
    """
    return Need("a power of 2 from 2", lambda x: x >= 2 and not x & (x - 1), why)


def iteration(*names: str) -> dict[str, Need]:
    """The needs of an iterative algorithm with these options: "damping", "tolerance", "max_steps".

    >>> {name: str(need) for name, need in iteration("damping", "max_steps").items()}
    {'damping': 'must be >= 0 and < 1', 'max_steps': 'must be >= 1'}
    """
    share = Need(">= 0 and < 1", lambda x: (x >= 0) & (x < 1))
    usual = {"damping": share, "tolerance": above(0), "max_steps": at_least(1)}
    return {name: usual[name] for name in names}


# Options with these names are numbers of things of which there must be one at least.
COUNTS = {
    *("batches", "chains", "data_sets", "draws", "inputs", "leapfrog_steps", "levels"),
    *("networks", "neurons", "noises", "pairs", "particles", "paths", "points"),
    *("quartets", "records", "repeats", "replicas", "runs", "samples", "sequences"),
    *("starts", "test_points", "thin", "trials", "units", "widths"),
}


def check_needs(
    needs: Mapping[str, Need], system: Any, options: Mapping[str, Any], names: Mapping[str, Any]
) -> None:
    """Raises `ValueError` for the first need that is not met.

    Args:
        needs: need by the name of an option or of a field, with dots for a part's own field.
        system: the system.
        options: the options that are given; the others have their defaults, which meet the needs.
        names: all options.
    """
    for name, need in needs.items():
        is_option = name in names
        value = options.get(name) if is_option else attrgetter(name)(system)
        if value is None or isinstance(value, jax.core.Tracer):
            continue
        if not np.all(need.holds(np.asarray(value) if isinstance(value, jax.Array) else value)):
            number = is_number(value) or getattr(value, "ndim", None) == 0
            huge = isinstance(value, int) and abs(value) >= 10**20
            shown = f"{float(value):g}" if number and not huge else short(value)
            owner = "" if is_option else f"{type(system).__name__}."
            raise ValueError(f"{owner}{name.removesuffix('.name')} = {shown}: {need}")
