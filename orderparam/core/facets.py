"""Facets: what a curve stands for, as name -> number or text."""

from collections.abc import Mapping
from typing import Any


def key(label: str, facets: Mapping[str, Any]) -> str:
    """Label and facets as one text: numbers as "name value", texts as they are."""
    return ", ".join([label, *(spelled(name, value) for name, value in facets.items())])


def spelled(name: str, value: Any) -> str:
    """The text of a facet: a word as it is, a number with the name of the facet."""
    if isinstance(value, str):
        return value
    return (
        f"{name.replace('_', ' ')} {value:g}"
        if isinstance(value, float)
        else f"{name.replace('_', ' ')} {value}"
    )


def agree(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """True if two sets of facets agree on all names that both carry."""
    return all(one[name] == other[name] for name in one.keys() & other.keys())
