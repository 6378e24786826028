"""Random damage to a folder, as disks, people and other programs do it."""

import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import xarray as xr

from orderparam.running.store import StoreError, read

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


def contents(folder: Path) -> dict[Path, bytes]:
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def put_back(folder: Path, files: dict[Path, bytes]) -> None:
    """The folder as it was."""
    for name in contents(folder):
        if name not in files:
            (folder / name).unlink()
    for name, data in files.items():
        path = folder / name
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def silent(
    store: Path, truth: xr.Dataset, resume: Callable[..., xr.Dataset], draw: random.Random
) -> str | None:
    """Damages a finished store, reads it, runs its sweep again, and puts it back.

    Returns what was done if wrong numbers, or anything but one line that names the store and the
    remedy, come of it.
    """
    whole = contents(store)
    what, found = damage(store, draw), ""
    for look in (lambda: read(store), lambda: resume(store=store)):
        try:
            data = look()
        except StoreError as error:
            if not (
                str(store) in str(error)
                and re.search(REMEDY, str(error))
                and "\n" not in str(error)
            ):
                found = f"{what}: {error}"
        except Exception as error:
            found = f"{what}: {type(error).__name__}: {error}"
        else:
            if (
                not data.drop_attrs()
                .drop_vars("seconds")
                .identical(truth.drop_attrs().drop_vars("seconds"))
            ):
                found = f"{what}: wrong numbers"
    put_back(store, whole)
    return found or None
