"""The catalogue of activation functions: a name, a Python function or an `Activation` -> the
`Activation`."""

import dataclasses
import re
from collections.abc import Callable
from typing import Any

from orderparam.core.system import nearest
from orderparam.gaussian.arccosine import Abs, LeakyRelu, Relu, Sign, Step
from orderparam.gaussian.arcsine import Erf, ErfGain, ErfScaled, Gelu
from orderparam.gaussian.base import Activation
from orderparam.gaussian.exponentials import Cos, Exp, Gaussian, Rbf, Sin
from orderparam.gaussian.numerical import Numerical, sigmoid, swish, tanh
from orderparam.gaussian.polynomials import Hermite, Linear, Monomial, Polynomial

__all__ = ["Activation", "activation", "activation_names"]

_FAMILIES: dict[str, type[Activation]] = {
    kind.family: kind
    for kind in (
        *(Linear, Monomial, Polynomial, Hermite),
        *(Erf, ErfScaled, ErfGain, Gelu),
        *(Relu, LeakyRelu, Abs, Sign, Step),
        *(Exp, Sin, Cos, Rbf, Gaussian),
    )
}
_INSTANCES: dict[str, Activation] = {
    "quadratic": Monomial(2),
    "cubic": Monomial(3),
    "tanh": Numerical(tanh, parity="odd"),
    "sigmoid": Numerical(sigmoid),
    "swish": Numerical(swish),
}


def activation_names() -> list[str]:
    """Every name that `activation` knows, with its parameters: `erf`, `leaky_relu(negative_slope,
    positive_slope)`, ..."""
    families = [
        f"{name}({', '.join(_fields(kind))})" if _fields(kind) else name
        for name, kind in _FAMILIES.items()
    ]
    return sorted([*families, *_INSTANCES])


def activation(which: str | Activation | Callable[..., Any], **parameters: Any) -> Activation:
    """The `Activation` called `which`.

    which: a name, with parameters in brackets if it has any: `"relu"`, `"leaky_relu(0.1)"`,
        `"leaky_relu(negative_slope=0.1)"`, `"hermite(3)"`, `"polynomial(0, 1, 0, 0.5)"`
        (coefficients of 1, z, z^2, z^3); or an elementwise function that JAX can trace, with
        `kinks=` (where it is not smooth), `name=` and `parity=`; or an `Activation`, which is
        returned as it is.
    parameters: the same parameters by name.

    Raises `ValueError` for an unknown name (with the nearest one), an unknown, missing or repeated
    parameter, or a wrong value.
    """
    if isinstance(which, Activation):
        if parameters:
            raise ValueError(
                f"activation {which.name!r} is complete: it takes no parameter "
                f"{', '.join(parameters)}"
            )
        return which
    if callable(which):
        unknown = [name for name in parameters if name not in ("name", "kinks", "parity")]
        if unknown:
            raise ValueError(
                "a function has no parameter "
                f"{unknown[0]!r}{nearest(unknown[0], ['name', 'kinks', 'parity'])}"
            )
        return Numerical(which, **parameters)
    if not isinstance(which, str):
        raise ValueError(f"activation = {which!r}: must be a name, a function or an Activation")
    name, values, named = _parse(which)
    if name not in _FAMILIES and name not in _INSTANCES:
        raise ValueError(f"unknown activation {name!r}{nearest(name, [*_FAMILIES, *_INSTANCES])}")
    repeated = [key for key in named if key in parameters]
    if repeated:
        raise ValueError(f"activation {which!r}: {repeated[0]} is given twice")
    return _build(name, values, {**named, **parameters})


def _fields(kind: type[Activation]) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]


def _number(text: str, whole: str) -> float | int:
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    raise ValueError(f"activation {whole!r}: {text.strip()!r} is not a number")


def _parse(text: str) -> tuple[str, list[float | int], dict[str, float | int]]:
    """`"name(1, key=2)"` -> name, [1], {key: 2}."""
    match = re.fullmatch(r"\s*([^()\s]+)\s*(?:\(([^()]*)\))?\s*", text)
    if match is None:
        raise ValueError(
            f"activation {text!r}: must be a name, or a name with numbers in brackets such as "
            "'leaky_relu(0.1)'"
        )
    values: list[float | int] = []
    named: dict[str, float | int] = {}
    for part in (match[2] or "").split(",") if (match[2] or "").strip() else []:
        key, equals, value = part.rpartition("=")
        if not equals:
            values.append(_number(value, text))
        elif key.strip() in named:
            raise ValueError(f"activation {text!r}: {key.strip()} is given twice")
        else:
            named[key.strip()] = _number(value, text)
    return match[1], values, named


def _build(name: str, values: list[float | int], named: dict[str, Any]) -> Activation:
    kind = _FAMILIES.get(name)
    fields = _fields(kind) if kind else []
    if not fields and (values or named):
        raise ValueError(f"activation {name!r} has no parameters")
    if kind is None:
        return _INSTANCES[name]
    unknown = [key for key in named if key not in fields]
    if unknown:
        raise ValueError(
            f"activation {name!r} has no parameter {unknown[0]!r}{nearest(unknown[0], fields)}"
        )
    if kind is Polynomial and "coefficients" not in named:
        named, values = {"coefficients": values}, []
    if len(values) > len(fields):
        raise ValueError(
            f"activation {name!r} takes {len(fields)} parameters ({', '.join(fields)}), not "
            f"{len(values)}"
        )
    repeated = [key for key in fields[: len(values)] if key in named]
    if repeated:
        raise ValueError(f"activation {name!r}: {repeated[0]} is given twice")
    complete = {**dict(zip(fields, values)), **named}
    required = [f.name for f in dataclasses.fields(kind) if f.default is dataclasses.MISSING]
    missing = [key for key in required if key not in complete]
    if missing:
        raise ValueError(f"activation {name!r} needs its {missing[0]}, such as {name}(3)")
    return kind(**complete)
