"""Experiments and theories that end the program, as a person's own code may."""

import jax
from magnet import Magnetisation, Paramagnet, exact, sampled

from orderparam.core.verb import experiment, theory


class Enough(BaseException):
    """An exception of a person's own, of those that `except Exception` does not meet."""


class Wordless(RuntimeError):
    """An exception that cannot be said."""

    def __str__(self):
        raise OSError("no words")


ENDS = {
    "exit": SystemExit(0),
    "generator": GeneratorExit(),
    "own": Enough("enough"),
    "wordless": Wordless(),
}


@experiment
def ending(system: Paramagnet, key: jax.Array, end: str) -> Magnetisation:
    """Ends the program at temperature 2."""
    if system.temperature == 2.0:
        raise ENDS[end]
    return sampled(system, key)


@theory(traced=False)
def ending_by_hand(system: Paramagnet, end: str) -> Magnetisation:
    """As a host algorithm."""
    if system.temperature == 2.0:
        raise ENDS[end]
    return exact(system)


@theory
def ending_as_it_is_traced(system: Paramagnet, end: str) -> Magnetisation:
    """Before anything is compiled."""
    raise ENDS[end]
