"""Compiled theories are kept on disk from one command to the next, whole: with JAX's own cache a
theory is compiled once, but traced and lowered again in every process, which takes longer than
running it.

Only the command line turns this on, in whose process nobody exchanges a function of the package. An
entry is found by a digest of everything that the program depends on: the state of all source files,
the versions of the libraries that are traced, JAX's settings, and the structure of the call. It
lies beside the programs that JAX keeps (`compilation_cache`), and a fault of any kind means that
the theory is compiled anew.
"""

import functools
import hashlib
import io
import os
import pickle
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from typing import Any

import jax

from orderparam.core.compilation_cache import kept_for_commands
from orderparam.core.paths import state_of_files
from orderparam.core.registry import source_files
from orderparam.core.sealed_cache import compiled_anew

_TRACED = ("jax", "equinox", "optimistix", "lineax", "diffrax", "numpy", "scipy")
# packages whose objects the state of the files and the versions describe
_DESCRIBED = {"builtins", "collections", "functools", "orderparam", *_TRACED}
_STARTED = time.time()


def stored_or_compiled(
    function: Callable[..., Any], arguments: tuple[Any, ...], structure: Any
) -> Any:
    """The compiled program of `function` for arguments of these shapes, from the disk if it is
    there.

    `structure` is everything besides the shapes on which the program depends, and is pickled.
    """
    cache = kept_for_commands()
    key = "" if cache is None else _key(arguments, structure)
    if cache is not None and key:
        with suppress(Exception):  # an entry of another machine, or nothing stored
            return _loaded(cache.get(key), arguments)
    lowered = jax.jit(function).lower(*arguments)
    if cache is None or not key:
        return lowered.compile()
    with compiled_anew():
        program = lowered.compile()
    with suppress(Exception):  # a program that calls Python, a full disk
        cache.put(key, _text(program, "lapack" in lowered.as_text()))
    return program


def _key(arguments: Any, structure: Any) -> str:
    """The name of this program; empty where it cannot be stored."""
    files = _state()
    if files is None or jax.device_count() > 1:
        return ""
    leaves, tree = jax.tree.flatten(arguments)
    shapes = [(leaf.shape, str(leaf.dtype), bool(leaf.weak_type)) for leaf in map(_typed, leaves)]
    try:
        whole = _pickled((structure, shapes))
    except Exception:  # a person's own function, or one without a name
        return ""
    digest = hashlib.sha256(f"{files} {tree} ".encode() + whole).hexdigest()
    return f"theory-{digest}"


def _typed(leaf: Any) -> Any:
    return jax.typeof(leaf) if isinstance(leaf, jax.Array) else leaf


@functools.cache
def _state() -> str | None:
    """The state of all that programs are traced from; None where a file was changed after this
    process began, which may have imported what it was before."""
    files = source_files()
    if any(file.stat().st_mtime > _STARTED for file in files):
        return None
    settings = sorted((name, repr(value)) for name, value in jax.config.values.items())
    flags = os.environ.get("XLA_FLAGS", ""), os.environ.get("LIBTPU_INIT_ARGS", "")
    versions = [version(name) for name in _TRACED]
    device = jax.devices()[0].device_kind
    return f"{state_of_files(files)} {settings} {flags} {versions} {device}"


class _Pickler(pickle.Pickler):
    """Refuses objects of packages other than those whose state is part of the key."""

    def reducer_override(self, value: Any) -> Any:
        named = value if hasattr(value, "__qualname__") else type(value)
        if (getattr(named, "__module__", None) or "").partition(".")[0] not in _DESCRIBED:
            raise pickle.PicklingError(f"{value!r} belongs to another package")
        return NotImplemented


def _pickled(value: Any) -> bytes:
    file = io.BytesIO()
    _Pickler(file).dump(value)
    return file.getvalue()


def _text(program: Any, uses_lapack: bool) -> bytes:
    """A compiled program, an example of its result and whether it calls LAPACK, as bytes."""
    from jax.experimental.serialize_executable import serialize

    payload, _, tree = serialize(program)
    return _pickled((payload, jax.tree.unflatten(tree, [0] * tree.num_leaves), uses_lapack))


def _loaded(content: bytes | None, arguments: Any) -> Any:
    """The program in these bytes. Raises any exception where it does not fit."""
    from jax.experimental.serialize_executable import deserialize_and_load

    if content is None:
        raise FileNotFoundError
    payload, example, uses_lapack = pickle.loads(content)
    if uses_lapack:
        _find_lapack()
    tree = jax.tree.structure((arguments, {}))
    return deserialize_and_load(payload, tree, jax.tree.structure(example))


@functools.cache
def _find_lapack() -> None:
    """Lets compiled programs call LAPACK: JAX looks for its functions when it lowers the first
    program that needs them, which a process that only loads programs never does; a call would end
    that process with a segmentation fault."""
    jax.jit(jax.lax.linalg.cholesky).lower(jax.ShapeDtypeStruct((1, 1), float))
