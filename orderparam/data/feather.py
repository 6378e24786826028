"""The number of bytes into which a `.feather` file unpacks, found before any of it is unpacked.

The file is a sequence of messages of Apache Arrow, each a header (a FlatBuffer) and a body, which
is cut into buffers. A buffer that is compressed begins with the number of bytes that it unpacks
into; that number is -1 where it is stored as it is.
"""

import struct
from pathlib import Path
from typing import Any

_MAGIC = b"ARROW1\0\0"  # files of the first version, FEA1, are not compressed
_DICTIONARY, _BATCH = 2, 3  # kinds of header
_HEADER_TYPE, _HEADER = 1, 2  # fields of a message, numbered by their place in its schema
_DATA = 1  # field of a dictionary: its batch
_BUFFERS, _COMPRESSION = 2, 3  # fields of a batch


def unpacked_bytes(path: Path) -> int:
    """The number of bytes of all buffers of the file. A damaged file may raise anything."""
    import pyarrow

    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            return path.stat().st_size
    with pyarrow.memory_map(str(path)) as source:
        source.seek(len(_MAGIC))
        return sum(map(_bytes_of, pyarrow.ipc.MessageReader.open_stream(source)))


def _bytes_of(message: Any) -> int:
    """The number of bytes of one message."""
    header, body = memoryview(message.metadata), message.body
    root = _target(header, 0)
    kind, table = _field(header, root, _HEADER_TYPE), _field(header, root, _HEADER)
    if kind is None or table is None or header[kind] not in (_DICTIONARY, _BATCH):
        return 0
    batch = _target(header, table)
    if header[kind] == _DICTIONARY:
        inner = _field(header, batch, _DATA)
        if inner is None:
            return 0
        batch = _target(header, inner)
    if _field(header, batch, _COMPRESSION) is None:
        return len(body)
    place = _field(header, batch, _BUFFERS)
    if place is None:
        return 0
    vector, content = _target(header, place), memoryview(body)
    (count,) = struct.unpack_from("<I", header, vector)
    found = 0
    for k in range(count):
        offset, length = struct.unpack_from("<qq", header, vector + 4 + 16 * k)
        if length >= 8:
            (size,) = struct.unpack_from("<q", content, offset)
            found += length if size < 0 else size
    return found


def _target(header: memoryview, place: int) -> int:
    """The position to which the offset at this place points."""
    (offset,) = struct.unpack_from("<I", header, place)
    return int(place + offset)


def _field(header: memoryview, table: int, number: int) -> int | None:
    """The position of a field of a table; None where it has its default value."""
    (back,) = struct.unpack_from("<i", header, table)
    directory = table - back
    (size,) = struct.unpack_from("<H", header, directory)
    entry = 4 + 2 * number
    if entry >= size:
        return None
    (offset,) = struct.unpack_from("<H", header, directory + entry)
    return int(table + offset) if offset else None
