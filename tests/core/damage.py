"""Random damage to a folder, as disks, people and other programs do it."""

import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import xarray as xr

from orderparam.core.store import StoreError, read

REMEDY = r"move it away|the same command|the command that made it"
KINDS = ("flip", "cut", "empty", "grow", "delete", "delete folder", "swap", "copy", "digit")


def damage(folder: Path, draw: random.Random) -> str:
    """Does one thing to one of its files or folders; returns what."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    kind, file = draw.choice(KINDS), draw.choice(files)
    if draw.random() < 0.5:  # half of the time where there are few files but all depends on them
        file = draw.choice([path for path in files if path.name == "zarr.json"])
    data = bytearray(file.read_bytes())
    other = draw.choice([path for path in files if path != file])
    what = f"{kind}: {file.relative_to(folder)}"
    if kind == "flip" and data:
        for _ in range(draw.choice((1, 1, 8))):
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        file.write_bytes(data)
    elif kind == "cut":
        file.write_bytes(data[: draw.randrange(len(data) or 1)])
    elif kind == "empty":
        file.write_bytes(b"")
    elif kind == "grow":
        file.write_bytes(bytes(data) + draw.randbytes(draw.randrange(1, 20)))
    elif kind == "delete":
        file.unlink()
    elif kind == "delete folder":
        what = f"{kind}: {file.parent.relative_to(folder)}"
        shutil.rmtree(file.parent)
    elif kind == "digit":
        digits = [i for i, byte in enumerate(data) if 48 <= byte < 58]
        if digits:
            data[draw.choice(digits)] = 48 + draw.randrange(10)
        file.write_bytes(data)
    elif kind == "swap":
        what += f" and {other.relative_to(folder)}"
        file.write_bytes(other.read_bytes())
        other.write_bytes(data)
    elif kind == "copy":
        what += f" from {other.relative_to(folder)}"
        file.write_bytes(other.read_bytes())
    return what


def silent(store: Path, pristine: Path, truth: xr.Dataset, resume: Callable[..., xr.Dataset], draw: random.Random) -> str | None:
    """Damages a copy of a finished store, reads it, and runs its sweep again.

    Returns what was done if wrong numbers, or anything but one line that names the store and the remedy, come of it.
    """
    shutil.rmtree(store, ignore_errors=True)
    shutil.copytree(pristine, store)
    what = damage(store, draw)
    for look in (lambda: read(store), lambda: resume(store=store)):
        try:
            found = look()
        except StoreError as error:
            if str(store) in str(error) and re.search(REMEDY, str(error)) and "\n" not in str(error):
                continue
            return f"{what}: {error}"
        except Exception as error:
            return f"{what}: {type(error).__name__}: {error}"
        if not found.drop_attrs().drop_vars("seconds").identical(truth.drop_attrs().drop_vars("seconds")):
            return f"{what}: wrong numbers"
    return None
