"""CIFAR-10 in its usual formats: the authors' Python batches (files or the tar
archive), and one .npz file.

The authors' batches are pickles. They are read by an unpickler that can only build an array of
bytes: no class or function named in the file is ever looked up, so a malicious file cannot run
anything.
"""

import io
import pickle
import pickletools
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64, UInt8

from orderparam.core.reading import read_bytes, read_npz, reading

CLASS_NAMES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
FOLDER = "cifar-10-batches-py"  # folder inside the archive, and of the unpacked files
BATCHES = {"train": tuple(f"data_batch_{i}" for i in range(1, 6)), "test": ("test_batch",)}

Images = UInt8[np.ndarray, "examples 32 32 3"]
Labels = Int64[np.ndarray, "examples"]


class _Name:
    """Stands for the class `numpy.ndarray` where a pickled array names it."""

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("unexpected state")


class _Dtype:
    """Stands for `numpy.dtype`; only unsigned bytes are accepted."""

    def __init__(self, code: Any, *flags: Any) -> None:
        if code not in ("u1", b"u1"):
            raise pickle.UnpicklingError(f"array of type {code!r}: must be unsigned bytes")

    def __setstate__(self, state: Any) -> None:
        """Ignores byte order and alignment, which have no effect on bytes."""


class _Array:
    """Stands for the function that makes an empty `numpy.ndarray`, and for the array that its state
    then fills."""

    def __init__(self, *arguments: Any) -> None:
        self.value: np.ndarray | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, column_major, raw = state
        if not isinstance(dtype, _Dtype) or not isinstance(raw, bytes):
            raise pickle.UnpicklingError("not an array of bytes")
        self.value = np.frombuffer(raw, np.uint8).reshape(shape, order="F" if column_major else "C")


_KNOWN = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): _Name,
    ("numpy", "dtype"): _Dtype,
}


class _BatchUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _KNOWN:
            raise pickle.UnpicklingError(
                f"it asks for {module}.{name}, which no CIFAR-10 batch contains: refused"
            )
        return _KNOWN[module, name]


def read_batch(raw: bytes) -> tuple[Images, Labels]:
    """One Python batch: a dictionary with `data`, bytes (examples, 3072) in the order (channel,
    row, column), and `labels`."""
    try:
        for opcode, argument, _ in pickletools.genops(raw):
            # The unpickler allocates its table of remembered objects up to the largest index in the
            # file.
            if opcode.name.endswith("PUT") and (argument or 0) > len(raw):
                raise pickle.UnpicklingError("remembers more objects than it has bytes")
        content = _BatchUnpickler(io.BytesIO(raw), encoding="bytes").load()
    except (
        Exception
    ) as error:  # a damaged pickle stream raises anything; none of this package's code runs in it
        raise ValueError(f"not a CIFAR-10 batch: {error or type(error).__name__}") from None
    if not isinstance(content, dict):
        raise ValueError(
            f"not a CIFAR-10 batch: holds a {type(content).__name__}, not a dictionary"
        )
    entries = {
        key.decode("latin1") if isinstance(key, bytes) else key: value
        for key, value in content.items()
    }
    for key in ("data", "labels"):
        if key not in entries:
            raise ValueError(f"not a CIFAR-10 batch: has no entry {key!r}")
    pixels = entries["data"].value if isinstance(entries["data"], _Array) else None
    if pixels is None or pixels.ndim != 2 or pixels.shape[1] != 3072:
        raise ValueError(
            "not a CIFAR-10 batch: data must be an array of bytes with shape (examples, 3072)"
        )
    labels = entries["labels"]
    if not isinstance(labels, list) or not all(type(label) is int for label in labels):
        raise ValueError("not a CIFAR-10 batch: labels must be a list of integers")
    return _checked(
        pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), np.asarray(labels, dtype=object)
    )


def _checked(images: np.ndarray, labels: np.ndarray) -> tuple[Images, Labels]:
    if (
        images.dtype != np.uint8
        or images.ndim != 4
        or images.shape[1:] != (32, 32, 3)
        or len(images) == 0
    ):
        raise ValueError(
            f"images are {images.dtype} {images.shape}: must be uint8 (examples, 32, 32, 3)"
        )
    if labels.shape != (len(images),):
        raise ValueError(
            f"labels have shape {labels.shape} for {len(images)} images: must be one per image"
        )
    if labels.min() < 0 or labels.max() > 9:
        raise ValueError(
            f"label {labels.max() if labels.max() > 9 else labels.min()}: must be 0..9"
        )
    return images, labels.astype(np.int64)


def _joined(parts: list[tuple[Images, Labels]]) -> tuple[Images, Labels]:
    return np.concatenate([images for images, _ in parts]), np.concatenate(
        [labels for _, labels in parts]
    )


def read_batches(folder: Path, split: str) -> tuple[Images, Labels]:
    """The unpacked batch files in `folder`. Raises `ValueError` when some of them are missing or
    damaged."""
    parts = []
    for name in BATCHES[split]:
        if not (folder / name).exists():
            raise ValueError(
                f"{folder}: {name} is missing; the {split} set needs {', '.join(BATCHES[split])}"
            )
        raw = read_bytes(folder / name)
        with reading(folder / name):
            parts.append(read_batch(raw))
    return _joined(parts)


def read_archive(path: Path, split: str) -> tuple[Images, Labels]:
    """The authors' archive `cifar-10-python.tar.gz`, read in place: nothing is unpacked to disk."""
    parts = []
    with reading(path), tarfile.open(path, "r:gz") as archive:
        for name in BATCHES[split]:
            try:
                member = archive.extractfile(f"{FOLDER}/{name}")
            except KeyError:
                member = None
            if member is None:
                raise ValueError(f"holds no file {FOLDER}/{name}")
            parts.append(read_batch(member.read()))
    return _joined(parts)


def read_arrays(path: Path, split: str) -> tuple[Images, Labels]:
    """An `.npz` file with `x_train, y_train, x_test, y_test`: uint8 images (examples, 32, 32, 3)
    and labels."""
    arrays = read_npz(path)
    with reading(path):
        for name in (f"x_{split}", f"y_{split}"):
            if name not in arrays:
                raise ValueError(
                    f"has no array {name!r}; there are: {', '.join(sorted(arrays)) or 'none'}"
                )
        labels = arrays[f"y_{split}"]
        if labels.dtype.kind not in "iu":
            raise ValueError(f"y_{split} has dtype {labels.dtype}: must be integers")
        return _checked(arrays[f"x_{split}"], labels.reshape(-1))
