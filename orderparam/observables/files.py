"""Activations and weights from files that were saved by other programs."""

import importlib
import inspect
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from orderparam.core.names import nearest
from orderparam.core.paths import expanded
from orderparam.core.reading import existing, read_npy, read_npz
from orderparam.core.registry import load_file
from orderparam.data.safetensors import read_safetensors

KINDS = (".npy", ".npz", ".safetensors")
_BEGINNINGS = {".npy": (b"\x93NUMPY",), ".npz": (b"PK", b"\x93NUMPY")}
_PICKLES = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle", ".joblib")


def read_arrays(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The arrays of a `.npy`, `.npz` or `.safetensors` file by name; the array of a `.npy` file has
    the file's name.

    Raises `ValueError` in one line for every fault; files that could run code when
    they are loaded (pickles) are refused by their ending and by their content.
    """
    found = existing(expanded(path), KINDS)
    ending = found.suffix.lower()
    if ending in _PICKLES:
        raise ValueError(
            f"{found}: may hold a pickle, which could run code, and is not loaded; save the arrays "
            "as .safetensors or .npz"
        )
    if ending == ".py":
        raise ValueError(f"{found}: name the model in it, as in {found.name}:network")
    if ending in _BEGINNINGS:
        with found.open("rb") as opened:
            if not opened.read(6).startswith(_BEGINNINGS[ending]):
                raise ValueError(f"{found}: is not an {ending} file, whatever its name says")
    if ending == ".npy":
        return {found.stem: read_npy(found)}
    if ending == ".npz":
        return read_npz(found)
    if ending == ".safetensors":
        return read_safetensors(found)
    raise ValueError(f"{found}: unknown format {ending!r}; must be one of {', '.join(KINDS)}")


def model_at(place: str) -> Any:
    """The model at "FILE.py:NAME" or "package.module:NAME": the object of this name, or what it
    returns where it is a function or a class that needs no arguments.

    The file is run as a program, so it must be one that the user trusts.
    """
    where, _, name = place.rpartition(":")
    if where.endswith(".py"):
        module = load_file(expanded(where))
    else:
        try:
            module = importlib.import_module(where)
        except (ImportError, ValueError) as error:
            raise ValueError(f"{place}: there is no module {where!r} ({error})") from None
    if not hasattr(module, name):
        public = [one for one in vars(module) if not one.startswith("_")]
        raise ValueError(f"{place}: there is no {name!r}{nearest(name, public)}")
    found = getattr(module, name)
    if inspect.isfunction(found) or inspect.isclass(found):
        needed = [
            one
            for one in inspect.signature(found).parameters.values()
            if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        ]
        return found if needed else found()
    return found


def is_model(place: str) -> bool:
    """True if the text names a model in a program rather than a file of arrays."""
    where, colon, name = place.rpartition(":")
    return bool(colon) and name.isidentifier() and Path(where).suffix.lower() not in KINDS


def read_all(paths: Sequence[str | os.PathLike[str]]) -> dict[str, np.ndarray]:
    """The arrays of several files. A name that occurs twice gets the file's name in front."""
    arrays: dict[str, np.ndarray] = {}
    for path in paths:
        for name, array in read_arrays(path).items():
            arrays[f"{Path(path).stem}/{name}" if name in arrays else name] = array
    return arrays


def target_of(
    arrays: Mapping[str, np.ndarray], target: str | os.PathLike[str] | None
) -> tuple[str | None, np.ndarray | None]:
    """The name and the values of the target: an array of the files, or a `.npy` file of its own."""
    if target is None:
        return None, None
    name = os.fspath(target)
    if name in arrays:
        return name, arrays[name]
    if Path(name).suffix.lower() == ".npy":
        return None, next(iter(read_arrays(name).values()))
    raise ValueError(f"there is no array {name!r}{nearest(name, list(arrays))}")
