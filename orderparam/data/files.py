"""Reads a user's own data: `.npz`, `.npy`, `.csv`, `.tsv`. Reading a file never runs code from
it."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from orderparam.core import reading as files
from orderparam.core.names import near
from orderparam.core.reading import read_npy, read_npz, reading
from orderparam.core.text import counted
from orderparam.data.dataset import Dataset, real_array
from orderparam.data.locate import DataNotFound, expanded
from orderparam.data.table import read_table

SUFFIXES = (".npz", ".npy", ".csv", ".tsv")


def load_file(
    path: str | os.PathLike[str], target: str | int | os.PathLike[str] | None = None
) -> Dataset:
    """Reads a data set from a file; numbers are not rescaled.

    path: decides by its ending. `.npz`: `target` names the array of labels (default "y"); the
        inputs are the array "x" or "X", or the only other array with at least two dimensions.
        `.npy`: `target` is a second `.npy` file with the labels, or the index of the column that
        holds them (default: the last). `.csv`, `.tsv`: `target` is a column's name or its index,
        counted from 0, from the end if negative (default: "y" if there is such a column, otherwise
        the last). Every other column is an input and must be numeric.
    Arrays (examples, input_dim) are features; (examples, height, width) and (examples, height,
    width, channels) images.

    Labels written as whole numbers or booleans become int64, other numbers float64, and words
    become classes 0, 1, .. in alphabetical order with their `class_names`. The name of the data set
    is "file/target".

    Raises `DataNotFound` for a file that does not exist, with the nearest name in the same folder,
    and `ValueError` naming the file and the place in it for every other fault: a damaged or unknown
    format, an unknown target, pickled objects, words among the inputs, missing or non-finite
    values, whole numbers beyond 2^53, ragged rows, repeated columns, fewer than two examples, or a
    target that never changes.
    """
    path = existing(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(
            f"{path}: unknown format {path.suffix!r}; must be one of {', '.join(SUFFIXES)}"
        )
    if suffix == ".npz":
        return _from_npz(path, target)
    if suffix == ".npy":
        return _from_npy(path, target)
    return _from_table(path, target)


def load_design(path: str | os.PathLike[str]) -> Float[np.ndarray, "row column"]:
    """Rows of numbers without labels: a `.npy` array (rows, columns), the only array of an `.npz`
    file or the one named "x" or "X", or all columns of a `.csv` or `.tsv` file. Raises the errors
    of `load_file`."""
    path = existing(path)
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        table = read_table(path)
        with reading(path):
            return np.stack([table.numbers(name) for name in table.names], axis=1)
    if suffix == ".npy":
        name, array = "the array", read_npy(path)
    elif suffix == ".npz":
        arrays = read_npz(path)
        with reading(path):
            named = [name for name in arrays if name in ("x", "X")] or list(arrays)
            if len(named) != 1:
                raise ValueError(
                    "which array holds the rows? name it 'x'; there are: "
                    f"{', '.join(arrays) or 'none'}"
                )
        name, array = named[0], arrays[named[0]]
    else:
        raise ValueError(
            f"{path}: unknown format {path.suffix!r}; must be one of {', '.join(SUFFIXES)}"
        )
    with reading(path):
        if array.ndim != 2:
            raise ValueError(f"{name} has shape {array.shape}: must be (rows, columns)")
        return real_array(name, array)


def existing(path: str | os.PathLike[str]) -> Path:
    """The path of an existing file: see `core.reading.existing`. Raises `DataNotFound` with the
    nearest name in the same folder."""
    return files.existing(expanded(path), files.KINDS, DataNotFound)


def _from_npz(path: Path, target: str | int | os.PathLike[str] | None) -> Dataset:
    arrays = read_npz(path)
    with reading(path):
        if target is None and "y" not in arrays:
            raise ValueError(f"name the target; it {_unknown('array', 'y', list(arrays))}")
        target = "y" if target is None else target
        if not isinstance(target, str) or target not in arrays:
            raise ValueError(_unknown("array", target, list(arrays)))
        others = [name for name in arrays if name != target]
        named = [name for name in others if name in ("x", "X")] or [
            name for name in others if arrays[name].ndim >= 2
        ]
        if len(named) != 1:
            found = ", ".join(f"{name} {arrays[name].shape}" for name in others) or "none"
            raise ValueError(
                "which array holds the inputs? name it 'x', with shape (examples, input_dim); "
                f"besides {target!r} there are: {found}"
            )
        return _from_arrays(path.stem, named[0], arrays[named[0]], target, arrays[target])


def _from_npy(path: Path, target: str | int | os.PathLike[str] | None) -> Dataset:
    array = read_npy(path)
    if isinstance(target, str | os.PathLike) and not _is_index(target):
        labels_path = existing(target)
        if labels_path.suffix.lower() != ".npy":
            raise ValueError(
                f"target = {os.fspath(target)!r}: must be a .npy file, or the index of a column of "
                f"{path}"
            )
        labels = read_npy(labels_path)
        with reading(labels_path):
            _check_labels(labels_path.stem, labels)
        with reading(path):
            return _from_arrays(path.stem, "the array", array, labels_path.stem, labels)
    with reading(path):
        if array.ndim != 2:
            raise ValueError(
                f"has shape {array.shape}: without a separate target file it must be (examples, "
                "columns)"
            )
        column = _column(-1 if target is None else int(str(target)), array.shape[1])
        inputs = np.delete(array, column, axis=1)
        return _from_arrays(path.stem, "the array", inputs, f"column {column}", array[:, column])


def _from_table(path: Path, target: str | int | os.PathLike[str] | None) -> Dataset:
    table = read_table(path)
    with reading(path):
        name = target_column(table.names, target)
        features = [other for other in table.names if other != name]
        if not features:
            raise ValueError(f"has no column besides the target {name!r}")
        if table.is_text(name):
            labels = np.asarray(table.cells(name))
        else:
            labels = table.numbers(name)
            if table.is_whole(name):
                labels = labels.astype(np.int64)
        inputs = np.stack([table.numbers(feature) for feature in features], axis=1)
        return _from_arrays(path.stem, "the columns", inputs, name, labels)


def target_column(names: Sequence[str], target: str | int | os.PathLike[str] | None) -> str:
    """The name of the target column: given by name or by index; by default "y" if there is one,
    else the last column."""
    if target is None:
        return "y" if "y" in names else names[-1]
    if isinstance(target, str) and target in names:
        return target
    if _is_index(target):
        return names[_column(int(str(target)), len(names))]
    raise ValueError(_unknown("column", target, names))


def _unknown(what: str, target: object, names: Sequence[str], shown: int = 30) -> str:
    more = ", …" if len(names) > shown else ""
    hint = near(str(target), names)
    return f"has no {what} {str(target)!r}: there are {', '.join(names[:shown])}{more}{hint}"


def _is_index(target: object) -> bool:
    if isinstance(target, bool):
        return False
    return isinstance(target, int) or (
        isinstance(target, str) and target.removeprefix("-").isdecimal()
    )


def _column(index: int, columns: int) -> int:
    if not -columns <= index < columns:
        raise ValueError(
            f"target = {index}: must be the index of a column, {-columns}..{columns - 1}"
        )
    return index % columns


def _check_labels(target: str, labels: np.ndarray) -> None:
    """Raises `ValueError` for labels that are not one finite number or one word for each example,
    and for labels that never change."""
    if not (labels.ndim == 1 or (labels.ndim == 2 and labels.shape[1] == 1)):
        raise ValueError(
            f"{target} has shape {labels.shape}: must be one label per example, shape (examples,)"
        )
    if labels.dtype.kind not in "US":
        real_array(target, labels)
    if len(labels) > 1 and (labels == labels[0]).all():
        value = labels.flat[0]
        raise ValueError(f"{target} is {value} for every example: there is nothing to learn")


def _from_arrays(
    stem: str, input_name: str, inputs: np.ndarray, target: str, labels: np.ndarray
) -> Dataset:
    if not 2 <= inputs.ndim <= 4:
        raise ValueError(
            f"{input_name} has shape {inputs.shape}: must be (examples, input_dim), or images "
            "(examples, height, width[, channels])"
        )
    _check_labels(target, labels)
    labels = labels.reshape(-1)
    if len(labels) != len(inputs):
        raise ValueError(
            f"{target} has {len(labels)} labels for {len(inputs)} examples: must be one per example"
        )
    if len(inputs) < 2:
        raise ValueError(f"{counted(len(inputs), 'example')}: there must be at least two")
    inputs = real_array(input_name, inputs)
    class_names = None
    if labels.dtype.kind in "US":
        words, labels = np.unique(labels.astype(str), return_inverse=True)
        class_names = tuple(words.tolist())
    return Dataset(
        inputs=inputs.reshape(len(inputs), -1),
        labels=labels,
        name=f"{stem}/{target}",
        image_shape=inputs.shape[1:] if inputs.ndim > 2 else None,
        class_names=class_names,
    )
