"""Attacks on data files: random damage, pickles that act when they are loaded, files that claim to
be enormous."""

import csv
import gzip
import os
import pickle
import random
import resource
import zipfile
from pathlib import Path

import numpy as np
import pytest

from orderparam.data.dataset import Dataset
from orderparam.data.files import load_file

pytestmark = [pytest.mark.attack, pytest.mark.timeout(300)]


class Payload:
    """A pickle that leaves a file behind when it is loaded."""

    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


def pristine(folder: Path) -> list[Path]:
    rng = np.random.default_rng(0)
    inputs, labels = rng.normal(size=(12, 3)), np.arange(12) % 3
    np.savez(folder / "a.npz", inputs=inputs, labels=labels)
    np.savez_compressed(folder / "b.npz", inputs=inputs, labels=labels)
    np.save(folder / "c.npy", np.column_stack([inputs, labels]))
    for name, delimiter in (("d.csv", ","), ("e.tsv", "\t")):
        with open(folder / name, "w", newline="") as file:
            rows = [
                ["x", "y", "z", "label"],
                *([*row, label] for row, label in zip(inputs.tolist(), labels.tolist())),
            ]
            csv.writer(file, delimiter=delimiter).writerows(rows)
    return sorted(folder.iterdir())


def read_or_refused(path: Path) -> bool:
    """Whether it is read; a refusal must name the file."""
    try:
        return isinstance(load_file(path), Dataset)
    except ValueError as error:
        if path.name not in str(error) or "\n" in str(error):
            raise
        return False


def test_random_damage_to_data_files(tmp_path):
    """Read as some numbers, or refused with a ValueError; memory stays small."""
    draw, files = random.Random(5), pristine(tmp_path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused = 0
    for i in range(1500):
        source = files[i % len(files)]
        data = bytearray(source.read_bytes())
        for _ in range(draw.choice((1, 1, 3, 10))):
            kind = draw.randrange(4)
            if kind == 0:
                data[draw.randrange(len(data))] = draw.randrange(256)
            elif kind == 1:
                del data[max(1, draw.randrange(len(data))) :]
            elif kind == 2:
                at = draw.randrange(len(data))
                data[at:at] = draw.randbytes(draw.randrange(1, 9))
            else:
                at, size = draw.randrange(len(data)), draw.randrange(1, 9)
                del data[at : at + size]
            data = data or bytearray(b"\0")
        place = tmp_path / f"damaged{source.suffix}"
        place.write_bytes(data)
        refused += not read_or_refused(place)
    assert refused > 300
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000


def test_pickles_are_never_loaded(tmp_path):
    marker = tmp_path / "marker"
    objects = np.asarray([[Payload(marker)], [Payload(marker)]], dtype=object)
    np.save(tmp_path / "a.npy", objects)
    np.savez(tmp_path / "b.npz", inputs=objects, labels=objects[:, 0])
    for name in ("c.npy", "d.npz", "e.csv", "f.tsv"):
        (tmp_path / name).write_bytes(pickle.dumps(Payload(marker)))
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(ValueError, match=path.name):
            load_file(path)
    assert not marker.exists()
    pickle.loads(pickle.dumps(Payload(marker)))
    assert marker.exists()  # the payload does act


def test_what_claims_to_be_enormous_is_refused_before_memory_is_taken(tmp_path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000), }"
    text = header.ljust(117) + "\n"
    claim = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()
    (tmp_path / "a.npy").write_bytes(claim + b"\0" * 80)
    with zipfile.ZipFile(tmp_path / "b.npz", "w", zipfile.ZIP_DEFLATED) as file:
        for name in ("inputs.npy", "labels.npy"):
            file.writestr(name, claim + b"\0" * 10**6)
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(b"1,2\n" * 10))
    for name in ("a.npy", "b.npz", "c.csv.gz"):
        with pytest.raises(ValueError, match=name.replace(".", r"\.")):
            load_file(tmp_path / name)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000
