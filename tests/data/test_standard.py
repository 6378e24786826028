"""The standard data sets: known facts of the real ones, the formats byte by byte, and damaged or
missing files."""

import gzip
import hashlib
import http.server
import io
import os
import pickle
import pickletools
import struct
import tarfile
import threading
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse.linalg import eigsh

from orderparam.data import DATASETS, DataNotFound, apply_task, centre, load, normalise, standard
from orderparam.data.cifar import BATCHES, CLASS_NAMES, read_batch
from orderparam.data.locate import RemoteFile

REAL = os.environ.get("ORDERPARAM_DATA")
IMAGES = np.arange(12 * 4, dtype=np.uint8).reshape(12, 2, 2)
LABELS = np.arange(12, dtype=np.uint8) % 10


def idx_bytes(array):
    return struct.pack(f">I{array.ndim}I", 0x0800 | array.ndim, *array.shape) + array.tobytes()


@pytest.fixture(autouse=True)
def nothing_installed(tmp_path_factory, monkeypatch):
    """No environment variable, and an empty cache folder."""
    import pooch

    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.delenv("ORDERPARAM_DATA", raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda name: cache / name)
    return cache / "orderparam"


@pytest.fixture
def mnist(tmp_path):
    """A folder with twelve small images under MNIST's names: the test set compressed, the training
    set plain."""
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx_bytes(IMAGES)))
    (tmp_path / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx_bytes(LABELS)))
    (tmp_path / "train-images.idx3-ubyte").write_bytes(idx_bytes(IMAGES[::-1]))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx_bytes(LABELS))
    return tmp_path


# The digits


def test_the_digits_are_those_of_scikit_learn():
    digits = load()
    assert (digits.name, digits.examples, digits.image_shape) == ("digits", 1797, (8, 8))
    assert np.bincount(digits.labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert set(np.unique(digits.inputs * 16)) == set(range(17))
    assert digits.labels[:10].tolist() == list(range(10))
    assert digits.inputs[0, 2:6].tolist() == [5 / 16, 13 / 16, 9 / 16, 1 / 16]


def test_count_takes_the_first_examples():
    assert (load("digits", count=100).inputs == load("digits").inputs[:100]).all()


# Real files


@pytest.fixture
def real(monkeypatch):
    if REAL is None:
        pytest.skip("set ORDERPARAM_DATA to a folder with the real files")
    monkeypatch.setenv("ORDERPARAM_DATA", REAL)


def test_real_mnist(real):
    mnist = load("mnist", "test", download=False)
    assert (mnist.examples, mnist.image_shape, mnist.inputs.max()) == (10000, (28, 28), 1.0)
    assert np.bincount(mnist.labels).tolist() == [
        980,
        1135,
        1032,
        1010,
        982,
        892,
        958,
        1028,
        974,
        1009,
    ]
    assert mnist.labels[:8].tolist() == [7, 2, 1, 0, 4, 1, 4, 9]
    assert apply_task(mnist, "3-vs-8")[0].examples == 1984
    assert apply_task(mnist, "4-vs-9")[0].examples == 1991
    centred = centre(mnist).inputs
    # trace of the covariance
    np.testing.assert_allclose((centred**2).sum() / 10000, 52.8482487, rtol=1e-8)


def test_real_mnist_kernel_spectrum(real):
    """The first four eigenvalues of the ReLU kernel, 1/2 at zero angle, on the first 3000 centred
    and normalised images."""
    inputs = normalise(centre(load("mnist", "test", count=3000, download=False))).inputs / 28
    cosine = np.clip(inputs @ inputs.T, -1, 1)
    angle = np.arccos(cosine)
    kernel = (np.sin(angle) + (np.pi - angle) * cosine) / (2 * np.pi)
    eigenvalues = eigsh(kernel / 3000, k=4, return_eigenvectors=False)
    np.testing.assert_allclose(
        np.sort(eigenvalues)[::-1], [0.16222558, 0.0270975, 0.01990262, 0.01418766], rtol=1e-6
    )


@pytest.mark.parametrize(("split", "per_class"), [("train", 1000), ("test", 200)])
def test_real_cifar10_subset(real, split, per_class):
    if not (Path(REAL) / "cifar10_subset.npz").exists():
        pytest.skip("no cifar10_subset.npz in ORDERPARAM_DATA")
    cifar = load("cifar10", split, download=False)
    assert (cifar.image_shape, cifar.class_names, cifar.input_dim) == (
        (32, 32, 3),
        CLASS_NAMES,
        3072,
    )
    assert np.bincount(cifar.labels).tolist() == [per_class] * 10
    assert 0 <= cifar.inputs.min() < 0.01 < 0.99 < cifar.inputs.max() <= 1
    assert apply_task(cifar, "airplane-vs-automobile")[0].examples == 2 * per_class


# MNIST's files


def test_mnist_files_plain_and_compressed(mnist):
    test = load("mnist", "test", folder=mnist)
    assert (test.name, test.image_shape) == ("mnist/test", (2, 2))
    assert (test.inputs == IMAGES.reshape(12, 4) / 255).all()
    assert test.labels.tolist() == LABELS.tolist()
    train = load("mnist", folder=mnist)
    assert train.name == "mnist/train"
    assert (train.inputs == test.inputs[::-1]).all()


def test_without_the_training_set_the_test_set_is_found(mnist):
    (mnist / "train-labels-idx1-ubyte").unlink()
    assert load("mnist", folder=mnist).name == "mnist/test"


def test_search_order_and_subfolders(mnist, nothing_installed, tmp_path_factory, monkeypatch):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "MNIST").mkdir()
    mnist.rename(elsewhere / "MNIST" / "raw")
    monkeypatch.setenv("ORDERPARAM_DATA", str(elsewhere))
    assert load("mnist", "test").labels[1] == 1
    named = tmp_path_factory.mktemp("named")
    (named / "t10k-images-idx3-ubyte").write_bytes(idx_bytes(IMAGES))
    (named / "t10k-labels-idx1-ubyte").write_bytes(idx_bytes(LABELS[::-1]))
    assert load("mnist", "test", folder=named).labels[0] == 1  # the named folder comes first
    assert load("mnist", "train", folder=named).labels[1] == 1  # what it lacks is found in the next
    monkeypatch.delenv("ORDERPARAM_DATA")
    nothing_installed.mkdir()
    named.rename(nothing_installed / "mnist")
    assert load("mnist", "test").labels[0] == 1


compressed = gzip.compress(idx_bytes(IMAGES))
IDX_FAULTS = {
    "empty": (b"", LABELS, "only 0 bytes"),
    "three bytes": (b"\0\0\x08", LABELS, "only 3 bytes"),
    "labels for images": (idx_bytes(LABELS), LABELS, "magic number 0x00000801: must be 0x00000803"),
    "text": (b"<html>not found</html>", LABELS, "magic number 0x3c68746d"),
    "floats": (b"\0\0\x0d\x03" + idx_bytes(IMAGES)[4:], LABELS, "magic number 0x00000d03"),
    "cut header": (idx_bytes(IMAGES)[:9], LABELS, "only 9 bytes of its header"),
    "cut images": (idx_bytes(IMAGES)[:-1], LABELS, "47 bytes where shape (12, 2, 2) needs 48"),
    "trailing bytes": (idx_bytes(IMAGES) + b"\0", LABELS, "49 bytes where"),
    "absurd size": (struct.pack(">IIII", 0x803, *[2**32 - 1] * 3), LABELS, "truncated or damaged"),
    "no images": (idx_bytes(IMAGES[:0]), LABELS[:0], "holds no pixels"),
    "cut gzip": (compressed[:-20], LABELS, "damaged gzip file"),
    "damaged gzip": (compressed[:20] + b"\xff\xff" + compressed[22:], LABELS, "damaged gzip file"),
    "wrong gzip checksum": (
        compressed[:-6] + b"\0\0" + compressed[-4:],
        LABELS,
        "damaged gzip file (CRC",
    ),
    "fewer labels": (
        idx_bytes(IMAGES),
        LABELS[:7],
        "7 labels for the 12 images of t10k-images-idx3-ubyte.gz",
    ),
    "label out of range": (idx_bytes(IMAGES), LABELS + 1, "label 10 at entry 9: must be 0..9"),
}


@pytest.mark.parametrize("case", IDX_FAULTS)
def test_damaged_mnist_files(mnist, case):
    raw, labels, message = IDX_FAULTS[case]
    (mnist / "t10k-images-idx3-ubyte.gz").write_bytes(raw)
    (mnist / "t10k-labels-idx1-ubyte.gz").write_bytes(idx_bytes(labels))
    with pytest.raises(ValueError) as error:
        load("mnist", "test", folder=mnist)
    assert str(error.value).startswith(str(mnist))
    assert message in str(error.value)


# CIFAR-10's files


def short(text):
    return pickle.SHORT_BINSTRING + bytes([len(text)]) + text.encode()


def integer(value):
    return pickle.BININT + struct.pack("<i", value)


def python2_batch(pixels, labels):
    """The byte stream that Python 2 wrote: protocol 2, strings for bytes, the array by NumPy's old
    module name."""
    dtype = b"cnumpy\ndtype\n" + short("u1") + integer(0) + integer(1) + b"\x87R"
    dtype += (
        b"(" + integer(3) + short("|") + b"NNN" + integer(-1) + integer(-1) + integer(0) + b"tb"
    )
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n"
        + b"cnumpy\nndarray\n"
        + integer(0)
        + b"\x85"
        + short("b")
        + b"\x87R"
    )
    raw = pixels.tobytes()
    state = (
        integer(1) + integer(pixels.shape[0]) + integer(pixels.shape[1]) + b"\x86" + dtype + b"\x89"
    )
    state += pickle.BINSTRING + struct.pack("<i", len(raw)) + raw
    numbers = b"](" + b"".join(integer(int(label)) for label in labels) + b"e"
    return (
        b"\x80\x02}("
        + short("data")
        + array
        + b"("
        + state
        + b"tb"
        + short("labels")
        + numbers
        + b"u."
    )


def cifar_images(first):
    """Images whose every byte says where it belongs: channel, row and column in a checkable
    pattern."""
    images = np.zeros((4, 32, 32, 3), np.uint8)
    images[..., :] = np.array([0, 100, 200])
    images += np.arange(32, dtype=np.uint8)[None, :, None, None]
    images[:, :, ::2, :] += 1
    images[:, 0, 0, 0] = first + np.arange(4)
    return images


def as_rows(images):
    return images.transpose(0, 3, 1, 2).reshape(len(images), 3072)


@pytest.fixture
def batches(tmp_path):
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for number, name in enumerate((*BATCHES["train"], *BATCHES["test"])):
        (folder / name).write_bytes(
            python2_batch(as_rows(cifar_images(10 * number)), [number, 9, 0, 1])
        )
    return folder


def test_python2_batches_are_what_python_reads(batches):
    raw = (batches / "test_batch").read_bytes()
    pickletools.dis(raw, out=io.StringIO())  # the stream is well formed
    theirs = pickle.loads(raw, encoding="bytes")
    images, labels = read_batch(raw)
    assert (as_rows(images) == theirs[b"data"]).all()
    assert labels.tolist() == theirs[b"labels"]


@pytest.mark.parametrize("protocol", [3, 4])
@pytest.mark.parametrize("order", ["C", "F"])
def test_batches_written_by_python3(protocol, order):
    rows = np.asarray(as_rows(cifar_images(7)), order=order)
    images, labels = read_batch(
        pickle.dumps({"data": rows, "labels": [3, 2, 1, 0]}, protocol=protocol)
    )
    assert (images == cifar_images(7)).all()
    assert labels.tolist() == [3, 2, 1, 0]


def test_cifar10_from_batches_archive_and_arrays(batches, tmp_path):
    folder = tmp_path.parent / f"{tmp_path.name}-packed"
    folder.mkdir()
    with tarfile.open(folder / "cifar-10-python.tar.gz", "w:gz") as archive:
        archive.add(batches, arcname="cifar-10-batches-py")
    unpacked, packed = load("cifar10", folder=tmp_path), load("cifar10", folder=folder)
    assert (unpacked.inputs == packed.inputs).all()
    assert packed.name == "cifar10/train"
    assert packed.labels[::4].tolist() == [0, 1, 2, 3, 4]
    assert (packed.inputs.reshape(-1, 32, 32, 3)[:4] == cifar_images(0) / 255).all()
    test = load("cifar10", "test", folder=folder)
    arrays = tmp_path.parent / f"{tmp_path.name}-arrays"
    arrays.mkdir()
    np.savez(arrays / "cifar10.npz", x_test=cifar_images(50), y_test=np.array([[5], [9], [0], [1]]))
    again = load("cifar10", "test", folder=arrays)
    assert (again.inputs == test.inputs).all()
    assert again.labels.tolist() == test.labels.tolist()
    with pytest.raises(ValueError, match="has no array 'x_train'; there are: x_test, y_test"):
        load("cifar10", folder=arrays)


class Call:
    def __init__(self, function, *arguments):
        self.parts = function, arguments

    def __reduce__(self):
        return self.parts


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("place", ["whole", "data", "labels"])
def test_a_malicious_batch_is_refused_and_does_not_run(tmp_path, place, protocol):
    marker = tmp_path / "ran"
    attack = Call(os.mkdir, str(marker))
    batch = (
        attack
        if place == "whole"
        else {"data": as_rows(cifar_images(0)), "labels": [0] * 4} | {place: attack}
    )
    raw = pickle.dumps(batch, protocol=protocol)
    pickle.loads(raw)
    assert marker.exists()  # the attack works on an ordinary unpickler
    marker.rmdir()
    (tmp_path / "test_batch").write_bytes(raw)
    with pytest.raises(
        ValueError, match=r"test_batch: not a CIFAR-10 batch: it asks for .*: refused"
    ):
        load("cifar10", "test", folder=tmp_path)
    assert not marker.exists()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("builtins", "eval"), ("builtins", "getattr"), ("os", "system"), ("numpy", "load"),
        ("numpy", "ndarray.tofile"),
        ("numpy.core.multiarray", "fromfile"), ("copyreg", "_reconstructor"), ("_codecs", "encode"),
        ("pickle", "loads"),
    ],
)  # fmt: skip
def test_no_other_name_is_looked_up(module, name):
    reference = (
        b"\x80\x04"
        + b"".join(b"\x8c" + bytes([len(t)]) + t.encode() for t in (module, name))
        + b"\x93."
    )
    with pytest.raises(ValueError, match=f"asks for {module}.{name}"):
        read_batch(reference)


ROWS = as_rows(cifar_images(0))
BATCH_FAULTS = {
    "empty": (b"", "not a CIFAR-10 batch"),
    "text": (b"<html></html>", "not a CIFAR-10 batch"),
    "cut": (python2_batch(ROWS, [0, 1, 2, 3])[:-5000], "not a CIFAR-10 batch"),
    "a list": (pickle.dumps([1, 2]), "holds a list"),
    "no labels": (pickle.dumps({"data": 1}), "has no entry 'labels'"),
    "fine labels only": (pickle.dumps({"data": 1, "fine_labels": [1]}), "has no entry 'labels'"),
    "data no array": (
        pickle.dumps({"data": b"123", "labels": [0]}),
        "data must be an array of bytes",
    ),
    "too narrow": (python2_batch(ROWS[:, :3000], [0, 1, 2, 3]), "with shape (examples, 3072)"),
    "no images": (python2_batch(ROWS[:0], []), "images are uint8 (0, 32, 32, 3)"),
    "fewer labels": (python2_batch(ROWS, [0, 1]), "labels have shape (2,) for 4 images"),
    "label 10": (python2_batch(ROWS, [0, 1, 2, 10]), "label 10: must be 0..9"),
    "negative label": (python2_batch(ROWS, [0, 1, 2, -1]), "label -1: must be 0..9"),
    "huge label": (
        pickle.dumps({"data": ROWS, "labels": [0, 1, 2, 2**70]}, protocol=4),
        "must be 0..9",
    ),
    "labels no integers": (
        pickle.dumps({"data": ROWS, "labels": [0, 1, 2, "3"]}, protocol=4),
        "a list of integers",
    ),
    "floats": (
        pickle.dumps({"data": ROWS.astype(float), "labels": [0] * 4}, protocol=4),
        "must be unsigned bytes",
    ),
    "objects": (
        pickle.dumps({"data": ROWS.astype(object), "labels": [0] * 4}, protocol=4),
        "must be unsigned bytes",
    ),
    "cut array": (
        python2_batch(ROWS, [0] * 4).replace(
            integer(4) + integer(3072), integer(5) + integer(3072)
        ),
        "reshape",
    ),
    "absurd memo": (b"\x80\x02}r\xff\xff\xff\xff.", "remembers more objects than it has bytes"),
    "state of a name": (b"\x80\x02cnumpy\nndarray\n}b.", "not a CIFAR-10 batch"),
    "unfilled array": (
        b"\x80\x02}(U\x04datacnumpy.core.multiarray\n_reconstruct\n)RU\x06labels]u.",
        "data must be",
    ),
}


@pytest.mark.parametrize("case", BATCH_FAULTS)
def test_damaged_batches(tmp_path, case):
    raw, message = BATCH_FAULTS[case]
    (tmp_path / "test_batch").write_bytes(raw)
    with pytest.raises(ValueError) as error:
        load("cifar10", "test", folder=tmp_path)
    assert str(error.value).startswith(f"{tmp_path / 'test_batch'}: ")
    assert message in str(error.value)


def test_incomplete_and_damaged_cifar10_folders(batches, tmp_path):
    (batches / "data_batch_3").unlink()
    with pytest.raises(
        ValueError, match="data_batch_3 is missing; the train set needs data_batch_1"
    ):
        load("cifar10", folder=tmp_path)
    for name in BATCHES["train"]:
        (batches / name).unlink(missing_ok=True)
    archive = batches / "cifar-10-python.tar.gz"
    archive.write_bytes(b"no archive")
    with pytest.raises(ValueError, match=r"cifar-10-python.tar.gz: not a gzip file"):
        load("cifar10", "train", folder=tmp_path)
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(batches / "test_batch", arcname="cifar-10-batches-py/test_batch")
    with pytest.raises(ValueError, match=r"tar.gz: holds no file cifar-10-batches-py/data_batch_1"):
        load("cifar10", "train", folder=tmp_path)
    archive.write_bytes(archive.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"cifar-10-python.tar.gz: "):
        load("cifar10", "train", folder=tmp_path)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x_test": cifar_images(0) / 255, "y_test": np.arange(4)}, "images are float64"),
        (
            {"x_test": as_rows(cifar_images(0)), "y_test": np.arange(4)},
            r"images are uint8 \(4, 3072\)",
        ),
        ({"x_test": cifar_images(0), "y_test": np.arange(4.0)}, "y_test has dtype float64"),
        (
            {"x_test": cifar_images(0), "y_test": np.arange(3)},
            r"labels have shape \(3,\) for 4 images",
        ),
        (
            {"x_test": cifar_images(0), "y_test": np.array([None] * 4)},
            "array 'y_test': .*Python objects, which are never loaded",
        ),
    ],
)
def test_malformed_cifar10_arrays(tmp_path, arrays, message):
    np.savez(tmp_path / "cifar10.npz", **arrays)
    with pytest.raises(ValueError, match=f"cifar10.npz: {message}"):
        load("cifar10", "test", folder=tmp_path)


# What is not there


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "mnits"}, "there is no data set 'mnits'; did you mean 'mnist'"),
        ({"name": "imagenet-22k"}, "cifar10, digits, mnist"),
        (
            {"name": "mnist", "split": "validation"},
            "split = 'validation': must be 'train' or 'test'",
        ),
        ({"split": "train"}, "the digits are one set"),
        ({"folder": "/tmp"}, "the digits come with scikit-learn"),
        ({"count": 0}, "count = 0"),
        ({"count": 2.5}, "count = 2.5"),
        ({"count": 1798}, "count = 1798: digits has 1797 examples"),
        (
            {"name": "mnist", "folder": "/no/such/folder"},
            "folder = '/no/such/folder': there is no such folder",
        ),
    ],
)
def test_impossible_wishes(arguments, message):
    with pytest.raises(ValueError, match=message):
        load(**arguments)


def test_a_wrong_environment_variable_is_named(monkeypatch):
    monkeypatch.setenv("ORDERPARAM_DATA", "/no/such/folder")
    with pytest.raises(DataNotFound, match=r"\$ORDERPARAM_DATA = '/no/such/folder'"):
        load("mnist")


@pytest.mark.parametrize(
    ("name", "split", "files"),
    [
        ("mnist", "train", "Put train-images-idx3-ubyte.gz and train-labels-idx1-ubyte.gz"),
        ("mnist", "test", "Put t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz"),
        ("cifar10", "train", "Put cifar-10-python.tar.gz"),
    ],
)
def test_what_is_missing_is_said_with_its_place(nothing_installed, name, split, files):
    with pytest.raises(DataNotFound) as error:
        load(name, split, download=False)
    assert files in str(error.value)
    assert str(nothing_installed / name) in str(error.value)
    assert "$ORDERPARAM_DATA" in str(error.value)


def test_every_data_set_is_listed():
    assert sorted(DATASETS) == ["cifar10", "digits", "mnist"]


# Downloads, from a server on this machine


@pytest.fixture
def server(tmp_path):
    """Serves `tmp_path`; yields its address, and the paths asked for."""
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(tmp_path))

        def log_message(self, *arguments):
            asked.append(self.path)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}/", asked
        running.shutdown()


def publish(monkeypatch, folder, mirrors):
    """Announces the test set in `folder` as the published MNIST."""
    files = [folder / f"t10k-{kind}-ubyte.gz" for kind in ("images-idx3", "labels-idx1")]
    remote = tuple(
        RemoteFile(f.name, hashlib.sha256(f.read_bytes()).hexdigest(), mirrors) for f in files
    )
    monkeypatch.setattr(
        standard, "MNIST_FILES", {"test": remote, "train": standard.MNIST_FILES["train"]}
    )


def test_a_download_is_checked_and_kept(mnist, server, monkeypatch, nothing_installed):
    address, asked = server
    publish(monkeypatch, mnist, ("http://127.0.0.1:1/", address))  # the first mirror is dead
    assert load("mnist", "test").labels.tolist() == LABELS.tolist()
    assert len([path for path in asked if path.startswith("/t10k")]) == 2
    assert sorted(p.name for p in (nothing_installed / "mnist").iterdir()) == [
        "t10k-images-idx3-ubyte.gz",
        "t10k-labels-idx1-ubyte.gz",
    ]
    asked.clear()
    assert load("mnist", "test").examples == 12
    assert asked == []


def test_a_file_with_the_wrong_hash_is_refused_and_not_kept(
    mnist, server, monkeypatch, nothing_installed
):
    publish(monkeypatch, mnist, (server[0],))
    (mnist / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx_bytes(IMAGES[::-1])))
    with pytest.raises(
        ValueError,
        match=r"t10k-images-idx3-ubyte.gz: what http://127.* sends is not the published file",
    ):
        load("mnist", "test")
    assert list((nothing_installed / "mnist").iterdir()) == []


def test_a_missing_page_and_a_dead_server_say_what_to_put_where(mnist, server, monkeypatch):
    publish(monkeypatch, mnist, (server[0],))
    (mnist / "t10k-images-idx3-ubyte.gz").unlink()
    with pytest.raises(
        DataNotFound, match=r"downloading failed: 404.*Put t10k-images-idx3-ubyte.gz and"
    ):
        load("mnist", "test")
    (mnist / "t10k-images-idx3-ubyte.gz").write_bytes(compressed)
    publish(monkeypatch, mnist, ("http://127.0.0.1:1/",))
    with pytest.raises(
        DataNotFound, match=r"downloading failed: .*Put t10k-images-idx3-ubyte.gz and"
    ):
        load("mnist", "test")


def test_the_published_hashes_are_those_of_the_real_files(real):
    for remote in standard.MNIST_FILES["test"]:
        path = next(
            p for p in (Path(REAL) / remote.file, Path(REAL) / "mnist" / remote.file) if p.exists()
        )
        assert hashlib.sha256(path.read_bytes()).hexdigest() == remote.sha256
