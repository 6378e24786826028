"""The inputs and outputs of the layers of a JAX function, found in its program."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Found = tuple[np.ndarray, np.ndarray, np.ndarray]  # inputs, outputs, weight
_INNER = ("jaxpr", "call_jaxpr", "fun_jaxpr")  # parameters that hold the program of a call
_CALLS = ("jit", "pjit", "call", "checkpoint", "remat", "custom_jvp", "custom_vjp")


def products(model: Callable[[Any, Any], Any], parameters: Any, x: np.ndarray) -> list[Found]:
    """The products of activations with weights in the order of computation: for each its inputs
    (examples, channels[, positions]), its outputs in the same form, and the weights (out, in ..).

    The program of the function is run equation by equation. A product is a `dot_general` or a
    convolution of which one operand depends on the inputs and the other does not. The axis of the
    examples is the one whose length changes with their number.
    """
    whole, short = (_run(model, parameters, jnp.asarray(one)) for one in (x, x[:-1]))
    found = []
    for one, fewer in zip(whole, short):
        rows = [_changed(a.shape, b.shape) for a, b in zip(one.arrays[:2], fewer.arrays[:2])]
        if rows[0] is not None and rows[1] is not None:
            found.append(one.ordered(rows[0], rows[1]))
    return found


class _Product:
    """A product in the form of the program. axes: those of the inputs' channels and of the outputs'
    channels."""

    def __init__(self, equation: Any, values: list[Any], depend: list[bool], result: Any) -> None:
        first = depend[0]
        taken, weight = values if first else values[::-1]
        self.arrays = taken, result, weight
        if equation.primitive.name == "conv_general_dilated":
            numbers = equation.params["dimension_numbers"]
            self.channels = [numbers.lhs_spec[1]], [numbers.out_spec[1]]
            self.weight = np.transpose(np.asarray(weight), numbers.rhs_spec)
            return
        contracted = equation.params["dimension_numbers"][0]
        over, of_weight = contracted if first else contracted[::-1]
        rest = [axis for axis in range(weight.ndim) if axis not in of_weight]
        count = result.ndim
        given = range(count - len(rest), count) if first else range(len(rest))
        self.channels = list(over), list(given)
        matrix = np.transpose(np.asarray(weight), [*rest, *of_weight])
        self.weight = matrix.reshape(int(np.prod([weight.shape[axis] for axis in rest])), -1)

    def ordered(self, *rows: int) -> Found:
        """Examples first, channels second, positions last."""
        parts = []
        for array, row, channels in zip(self.arrays, rows, self.channels):
            kept = [axis for axis in range(array.ndim) if axis != row and axis not in channels]
            moved = np.transpose(np.asarray(array), [row, *channels, *kept])
            count = int(np.prod([array.shape[axis] for axis in channels]))
            shape = (len(moved), count, *([-1] if kept else []))
            parts.append(moved.reshape(shape))
        return parts[0], parts[1], self.weight


def _changed(shape: tuple[int, ...], other: tuple[int, ...]) -> int | None:
    axes = [axis for axis, (a, b) in enumerate(zip(shape, other)) if a != b]
    return axes[0] if len(axes) == 1 and len(shape) == len(other) else None


def _run(model: Callable[[Any, Any], Any], parameters: Any, x: Any) -> list[_Product]:
    """Every product in the program of one call."""
    program = jax.make_jaxpr(model)(parameters, x)
    given = [*jax.tree.leaves(parameters), x]
    found: list[_Product] = []
    _evaluate(program, [(value, value is x) for value in given], found)
    return found


def _evaluate(program: Any, given: list[tuple[Any, bool]], found: list[_Product]) -> list[Any]:
    """The outputs of a program, each with a flag that is true if it depends on the inputs."""
    jaxpr, constants = (
        (program.jaxpr, program.consts) if hasattr(program, "consts") else (program, ())
    )
    computed: dict[Any, tuple[Any, bool]] = {}
    computed.update(zip(jaxpr.constvars, ((value, False) for value in constants)))
    computed.update(zip(jaxpr.invars, given))

    def read(variable: Any) -> tuple[Any, bool]:
        return (variable.val, False) if hasattr(variable, "val") else computed[variable]

    for equation in jaxpr.eqns:
        parts = [read(variable) for variable in equation.invars]
        name, depends = equation.primitive.name, any(depend for _, depend in parts)
        inner = next((equation.params[key] for key in _INNER if key in equation.params), None)
        if inner is not None and any(call in name for call in _CALLS):
            results = _evaluate(inner, parts, found)
        else:
            values = [value for value, _ in parts]
            listed = _one(jaxpr, equation, computed)
            results = [(one, depends) for one in listed]
            if name in ("dot_general", "conv_general_dilated"):
                depend = [which for _, which in parts]
                if sum(depend) == 1:
                    found.append(_Product(equation, values, depend, listed[0]))
        computed.update(zip(equation.outvars, results))
    return [read(variable) for variable in jaxpr.outvars]


def _one(jaxpr: Any, equation: Any, computed: dict[Any, tuple[Any, bool]]) -> list[Any]:
    """The outputs of one equation, run as a separate program."""
    needed = [variable for variable in equation.invars if not hasattr(variable, "val")]
    variables = list(dict.fromkeys(needed))
    alone = jaxpr.replace(
        constvars=[],
        invars=variables,
        outvars=equation.outvars,
        eqns=[equation],
        debug_info=jaxpr.debug_info.with_unknown_names(),
    )
    return jax.core.eval_jaxpr(alone, [], *(computed[variable][0] for variable in variables))
