"""Arrays of a `.safetensors` file, read without the library of that name and without running
code."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from orderparam.core.reading import reading

_LONGEST_HEADER = 100_000_000  # bytes, as the format allows
_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4",
    "I16": "<i2",
    "I8": "i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """The arrays of the file by name; 16-bit floats of both kinds become float32.

    Raises `ValueError` naming the file for a header that is damaged, too long, or describes bytes
    that do not exist.
    """
    with reading(path):
        raw = path.read_bytes()
        length = int.from_bytes(raw[:8], "little")
        if len(raw) < 8 or length > min(_LONGEST_HEADER, len(raw) - 8):
            raise ValueError("is not a .safetensors file: its header is longer than the file")
        try:
            header = json.loads(raw[8 : 8 + length].decode())
        except ValueError:
            raise ValueError("is not a .safetensors file: its header is not JSON") from None
        if not isinstance(header, dict):
            raise ValueError("is not a .safetensors file: its header contains no names")
        data = memoryview(raw)[8 + length :]
        return {
            name: _array(name, entry, data)
            for name, entry in header.items()
            if name != "__metadata__"
        }


def _array(name: str, entry: Any, data: memoryview) -> np.ndarray:
    try:
        kind, shape, (start, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        whole = [*shape, start, end]
        wrong = not all(isinstance(x, int) and x >= 0 for x in whole) or kind not in _TYPES
    except (TypeError, KeyError, ValueError):
        wrong = True
    if wrong:
        raise ValueError(f"array {name!r}: its entry in the header cannot be read")
    expected = math.prod(shape) * np.dtype(_TYPES[kind]).itemsize
    if not start <= end <= len(data) or end - start != expected:
        raise ValueError(f"array {name!r}: the header describes bytes that are not there")
    array = np.frombuffer(data[start:end], _TYPES[kind]).reshape(shape)
    if kind == "BF16":
        return (array.astype("<u4") << 16).view("<f4")
    return array.astype("<f4") if kind == "F16" else array
