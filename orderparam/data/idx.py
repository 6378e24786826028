"""The IDX format of MNIST and its relatives (Fashion-MNIST, KMNIST): images and labels as bytes
behind a short header.

Header, big-endian: two zero bytes, the type of the entries (0x08: unsigned byte), the number of
dimensions, then the extent of each dimension as 4-byte integers. Files are read plain or
gzip-compressed.
"""

import math
import struct
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from orderparam.core.reading import read_bytes, reading

UNSIGNED_BYTE = 0x08


def read_idx(path: Path, ndim: int) -> np.ndarray:
    """The uint8 array of an IDX file. Raises `ValueError` naming the file for a wrong header or a
    wrong length."""
    raw = read_bytes(path)
    with reading(path):
        if len(raw) < 4:
            raise ValueError(f"only {len(raw)} bytes: not an IDX file")
        magic, expected = struct.unpack(">I", raw[:4])[0], UNSIGNED_BYTE << 8 | ndim
        if magic != expected:
            raise ValueError(
                f"magic number 0x{magic:08x}: must be 0x{expected:08x}, an IDX file of bytes with "
                f"{ndim} dimensions"
            )
        start = 4 + 4 * ndim
        if len(raw) < start:
            raise ValueError(f"truncated: only {len(raw)} bytes of its header")
        shape = struct.unpack(f">{ndim}I", raw[4:start])
        if len(raw) != start + math.prod(shape):
            raise ValueError(
                f"truncated or damaged: {len(raw) - start} bytes where shape {shape} needs "
                f"{math.prod(shape)}"
            )
        return np.frombuffer(raw, np.uint8, offset=start).reshape(shape)


def read_images_and_labels(
    images_path: Path, labels_path: Path
) -> tuple[UInt8[np.ndarray, "examples height width"], UInt8[np.ndarray, "examples"]]:
    """A pair of IDX files with ten classes. Raises `ValueError` when they do not belong
    together."""
    images, labels = read_idx(images_path, 3), read_idx(labels_path, 1)
    if len(images) != len(labels):
        raise ValueError(
            f"{labels_path}: {len(labels)} labels for the {len(images)} images of "
            f"{images_path.name}"
        )
    if images.size == 0:
        raise ValueError(f"{images_path}: shape {images.shape} holds no pixels")
    if labels.max() > 9:
        raise ValueError(
            f"{labels_path}: label {labels.max()} at entry {labels.argmax()}: must be 0..9"
        )
    return images, labels
