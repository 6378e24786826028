"""The standard image data sets by name: scikit-learn's digits (always available), MNIST,
CIFAR-10."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from orderparam.core.names import nearest
from orderparam.data import cifar, idx
from orderparam.data.dataset import Dataset
from orderparam.data.locate import (
    ENVIRONMENT_VARIABLE,
    DataNotFound,
    RemoteFile,
    cache_folder,
    fetch,
    first_file,
    search_folders,
)

SPLITS = ("train", "test")

MNIST_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)


def _mnist_file(file: str, sha256: str) -> RemoteFile:
    return RemoteFile(file, sha256, MNIST_MIRRORS)


MNIST_FILES = {  # split -> images, labels: the files of LeCun, Cortes, Burges
    "train": (
        _mnist_file(
            "train-images-idx3-ubyte.gz",
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        ),
        _mnist_file(
            "train-labels-idx1-ubyte.gz",
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
    ),
    "test": (
        _mnist_file(
            "t10k-images-idx3-ubyte.gz",
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        ),
        _mnist_file(
            "t10k-labels-idx1-ubyte.gz",
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    ),
}
CIFAR10_ARCHIVE = RemoteFile(
    "cifar-10-python.tar.gz",
    # MD5 c58f30108f718f92721af3b95e74349a
    "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
    ("https://www.cs.toronto.edu/~kriz/",),
)
CIFAR10_ARRAYS = ("cifar10.npz", "cifar10_subset.npz")

Folder = str | os.PathLike[str] | None
Found = tuple[np.ndarray, np.ndarray, str]  # uint8 images, labels, the name of the data set


def load(
    name: str = "digits",
    split: str | None = None,
    *,
    folder: Folder = None,
    count: int | None = None,
    download: bool = True,
) -> Dataset:
    """A standard image data set; inputs are pixel intensities in [0, 1] (pixel / largest possible
    pixel).

    name: "digits" (1797 images 8 x 8 of scikit-learn, part of its installation), "mnist" (28 x 28;
        the files of Fashion-MNIST and KMNIST have the same names and format, and are read as well),
        "cifar10" (32 x 32 x 3).
    split: "train" or "test"; by default the training set if its files are found, otherwise the test
        set if they are found, otherwise the training set is downloaded. The digits are not split.
    folder: searched first, then `$ORDERPARAM_DATA`, then the user's cache folder, each with its
    usual subfolders.
    count: only the first `count` examples in stored order (in float64, the training sets of MNIST
        and CIFAR-10 take 0.4 and 1.2 GB).
    download: whether missing files may be fetched, with progress and a check of their SHA-256.

    Raises `DataNotFound` (a `ValueError` and a `FileNotFoundError`) that says which files to put
    where, and `ValueError` for an unknown name or split and for damaged files.

    Sources: digits: test part of Alpaydin, Kaynak (1998), UCI; MNIST: LeCun, Bottou, Bengio,
    Haffner (1998); CIFAR-10: Krizhevsky (2009).
    """
    if name not in DATASETS:
        raise ValueError(f"there is no data set {name!r}{nearest(name, list(DATASETS))}")
    if split is not None and split not in SPLITS:
        raise ValueError(f"split = {split!r}: must be 'train' or 'test'")
    if count is not None and (isinstance(count, bool) or int(count) != count or count < 1):
        raise ValueError(f"count = {count}: must be a whole number of at least 1")
    return DATASETS[name](split, folder, count, download)


def _dataset(
    images: np.ndarray,
    labels: np.ndarray,
    largest: int,
    class_names: tuple[str, ...],
    name: str,
    count: int | None,
) -> Dataset:
    if count is not None and count > len(images):
        raise ValueError(f"count = {count}: {name} has {len(images)} examples")
    pixels = images[:count].reshape(len(images[:count]), -1)
    return Dataset(
        inputs=pixels / np.float64(largest),
        labels=labels[:count].astype(np.int64),
        name=name,
        image_shape=images.shape[1:],
        class_names=class_names,
    )


def _digits(split: str | None, folder: Folder, count: int | None, download: bool) -> Dataset:
    if split is not None:
        raise ValueError(f"split = {split!r}: the digits are one set; leave split out")
    if folder is not None:
        raise ValueError(
            f"folder = {os.fspath(folder)!r}: the digits come with scikit-learn; leave folder out"
        )
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return _dataset(bunch.images, bunch.target, 16, tuple("0123456789"), "digits", count)


def _mnist(split: str | None, folder: Folder, count: int | None, download: bool) -> Dataset:
    def found(where: Path, wanted: str) -> Found | None:
        pair = []
        for remote in MNIST_FILES[wanted]:
            plain = remote.file.removesuffix(".gz")
            pair.append(first_file(where, (remote.file, plain, plain.replace("-idx", ".idx"))))
        images, labels = pair
        if images is None or labels is None:
            return None
        return *idx.read_images_and_labels(images, labels), f"mnist/{wanted}"

    images, labels, name = _find(
        "mnist", split, folder, ("mnist", "MNIST", "MNIST/raw"), found, MNIST_FILES, download
    )
    return _dataset(images, labels, 255, tuple("0123456789"), name, count)


def _cifar10(split: str | None, folder: Folder, count: int | None, download: bool) -> Dataset:
    def found(where: Path, wanted: str) -> Found | None:
        if first_file(where, cifar.BATCHES[wanted]) is not None:
            return *cifar.read_batches(where, wanted), f"cifar10/{wanted}"
        archive = first_file(where, (CIFAR10_ARCHIVE.file,))
        if archive is not None:
            return *cifar.read_archive(archive, wanted), f"cifar10/{wanted}"
        arrays = first_file(where, CIFAR10_ARRAYS)
        if arrays is not None:
            return *cifar.read_arrays(arrays, wanted), f"{arrays.stem}/{wanted}"
        return None

    subfolders = ("cifar10", cifar.FOLDER, f"cifar10/{cifar.FOLDER}")
    files = {wanted: (CIFAR10_ARCHIVE,) for wanted in SPLITS}
    images, labels, name = _find("cifar10", split, folder, subfolders, found, files, download)
    return _dataset(images, labels, 255, cifar.CLASS_NAMES, name, count)


def _find(
    name: str,
    split: str | None,
    folder: Folder,
    subfolders: tuple[str, ...],
    found: Callable[[Path, str], Found | None],
    files: Mapping[str, tuple[RemoteFile, ...]],
    download: bool,
) -> Found:
    """Searches all folders for the requested split, and otherwise downloads it into the cache."""
    for wanted in SPLITS if split is None else (split,):
        for where in search_folders(folder, subfolders):
            result = found(where, wanted)
            if result is not None:
                return result
    wanted = split or "train"
    reason = "downloading was switched off"
    if download:
        try:
            paths = [fetch(remote, name) for remote in files[wanted]]
            result = found(paths[0].parent, wanted)
            if result is not None:
                return result
        except OSError as error:
            reason = f"downloading failed: {error}"
    raise DataNotFound(
        f"{name} ({wanted} set) is not on this machine, and {reason}. Put "
        f"{' and '.join(remote.file for remote in files[wanted])} (from "
        f"{files[wanted][0].folders[0]}) into {cache_folder() / name}, or into a folder that "
        f"${ENVIRONMENT_VARIABLE} or folder= names."
    )


DATASETS: dict[str, Callable[[str | None, Folder, int | None, bool], Dataset]] = {
    "digits": _digits,
    "mnist": _mnist,
    "cifar10": _cifar10,
}
