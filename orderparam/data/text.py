"""Text that installed packages ship: their documentation strings, with a record of what was
read."""

import ast
import hashlib
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

_SHORTEST = 200  # characters of a document
_WORD = re.compile(r"[a-z]+")


class Corpus(NamedTuple):
    """Text and where it came from.

    Fields:
        documents: texts, one for each source.
        sources: the file of each text, from the folder of its package on.
        size: number of bytes of all texts in UTF-8.
        sha256: hash of all texts in their order.
    """

    documents: tuple[str, ...]
    sources: tuple[str, ...]
    size: int
    sha256: str


class Words(NamedTuple):
    """A corpus as numbers of words in reading order.

    Fields:
        words: number of each word; 0 is the most frequent one.
        ends: where each document ends.
        vocabulary: the words in the order of their numbers.
    """

    words: Int[np.ndarray, "word"]
    ends: Int[np.ndarray, "document"]
    vocabulary: tuple[str, ...]


class Bytes(NamedTuple):
    """A corpus as numbers of bytes, divided between documents.

    Fields:
        text: number of each byte of the training documents in reading order.
        test_text: the same of the test documents.
        alphabet: the bytes that occur, in the order of their numbers.
    """

    text: Int[np.ndarray, "byte"]
    test_text: Int[np.ndarray, "test_byte"]
    alphabet: bytes


def documentation(
    packages: Sequence[str] = ("pydoc_data", "numpy"), *, minimum_bytes: int = 300_000
) -> Corpus:
    """Documentation strings of installed packages, one document for each of their source files.

    Source files are parsed and never run; files below folders named `tests`, documents of fewer
    than 200 characters and texts that were met before are left out. Of `pydoc_data`, the language
    reference that comes with Python, all strings are taken. The text depends on the versions that
    are installed: `sha256` says which text it was.

    Args:
        packages: names of packages, in the order in which they are read.
        minimum_bytes: the least text that is accepted.

    Raises:
        ValueError: for a package that is not installed or has no source files, and where less than
            `minimum_bytes` is found.

    >>> corpus = documentation(("pydoc_data",))
    >>> corpus.sources
    ('pydoc_data/topics.py',)
    """
    documents, sources, seen = [], [], set()
    for package in packages:
        folder = _folder(package)
        for path in sorted(folder.rglob("*.py")):
            if "tests" in path.relative_to(folder).parts:
                continue
            texts = [text for text in _strings(path, package == "pydoc_data") if text not in seen]
            seen.update(texts)
            document = "\n".join(dict.fromkeys(texts))
            if len(document) >= _SHORTEST:
                documents.append(document)
                sources.append(f"{package}/{path.relative_to(folder).as_posix()}")
    text = "\0".join(documents).encode()
    size = len(text) - max(len(documents) - 1, 0)
    if size < minimum_bytes:
        raise ValueError(
            f"packages = {tuple(packages)}: their documentation has {size} bytes in "
            f"{len(documents)} files, fewer than minimum_bytes = {minimum_bytes}; name more "
            "packages"
        )
    return Corpus(tuple(documents), tuple(sources), size, hashlib.sha256(text).hexdigest())


def numbered_words(corpus: Corpus) -> Words:
    """The words of a corpus, runs of the letters a to z in lower case, numbered by frequency.

    Words of equal frequency are in alphabetical order.

    >>> numbered_words(Corpus(("To be or not", "to be"), ("a", "b"), 17, "")).words.tolist()
    [1, 0, 3, 2, 1, 0]
    """
    texts = [_WORD.findall(document.lower()) for document in corpus.documents]
    words = np.array([word for text in texts for word in text])
    found, inverse, counts = np.unique(words, return_inverse=True, return_counts=True)
    order = np.lexsort((found, -counts))
    number = np.empty(len(order), dtype=int)
    number[order] = np.arange(len(order))
    ends = np.cumsum([len(text) for text in texts])
    return Words(number[inverse], ends, tuple(found[order].tolist()))


def numbered_bytes(corpus: Corpus, *, test_bytes: int = 65_536, seed: int = 0) -> Bytes:
    """The bytes of a corpus in UTF-8, with documents in a random order and some left for tests.

    Documents that have at most half of `test_bytes` are taken for tests until these have
    `test_bytes`. A document ends with a zero byte.

    Args:
        test_bytes: the least number of bytes for tests.
        seed: seed of the order of the documents.

    Raises:
        ValueError: where too few documents are short enough, or none is left for training.

    >>> corpus = Corpus(("long text " * 9, "short", "brief"), ("a", "b", "c"), 100, "")
    >>> divided = numbered_bytes(corpus, test_bytes=12)
    >>> len(divided.text), len(divided.test_text), divided.alphabet[:3]
    (91, 12, b'\\x00 b')
    """
    parts: tuple[list[bytes], list[bytes]] = ([], [])
    for at in np.random.default_rng(seed).permutation(len(corpus.documents)):
        document = corpus.documents[at].encode() + b"\0"
        missing = sum(map(len, parts[1])) < test_bytes
        parts[missing and len(document) <= test_bytes / 2].append(document)
    text, test_text = (np.frombuffer(b"".join(part), np.uint8) for part in parts)
    if not len(text) or len(test_text) < test_bytes:
        raise ValueError(
            f"test_bytes = {test_bytes}: documents of at most half as many bytes have "
            f"{len(test_text)}, and {len(text)} are left for training"
        )
    alphabet = np.unique(np.append(text, test_text))
    return Bytes(
        np.searchsorted(alphabet, text), np.searchsorted(alphabet, test_text), alphabet.tobytes()
    )


def _folder(package: str) -> Path:
    spec = find_spec(package) if package.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise ValueError(f"packages: {package!r} is no installed package with a folder of its own")
    return Path(next(iter(spec.submodule_search_locations)))


def _strings(path: Path, every: bool) -> list[str]:
    """Documentation strings of a file in their order, or every string in it."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError):
        return []  # a template or a file for another Python
    if every:
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        return [node.value for node in nodes if isinstance(node.value, str)]
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    holders = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    texts = (ast.get_docstring(node) for node in holders)
    return [text for text in texts if text]
