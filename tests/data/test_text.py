"""Text of installed packages, and its words as numbers."""

import hashlib
import pydoc_data.topics

import numpy as np
import pytest

from orderparam.data.text import Corpus, documentation, numbered_words


def test_the_record_says_what_was_read():
    corpus = documentation(("pydoc_data",))
    assert corpus.sources == ("pydoc_data/topics.py",)
    assert corpus.size == sum(len(one.encode()) for one in corpus.documents) > 300_000
    assert corpus.sha256 == hashlib.sha256("\0".join(corpus.documents).encode()).hexdigest()
    assert pydoc_data.topics.topics["assert"].strip() in corpus.documents[0]
    assert documentation(("pydoc_data",)) == corpus


def test_a_text_that_was_met_before_is_left_out(tmp_path, monkeypatch):
    package = tmp_path / "twice_written"
    package.mkdir()
    text = '"""' + "One sentence that is long enough to be kept. " * 8 + '"""\n'
    for name in ("__init__", "other"):
        (package / f"{name}.py").write_text(text)
    (package / "broken.py").write_text("def (")
    monkeypatch.syspath_prepend(tmp_path)
    corpus = documentation(("twice_written",), minimum_bytes=10)
    assert corpus.sources == ("twice_written/__init__.py",)


def test_what_is_refused():
    with pytest.raises(ValueError, match="'no_such_package' is no installed package"):
        documentation(("no_such_package",))
    with pytest.raises(ValueError, match="fewer than minimum_bytes = 1000000000"):
        documentation(("pydoc_data",), minimum_bytes=10**9)


def test_words_are_numbered_by_frequency():
    found = numbered_words(Corpus(("a b B c", "b a"), ("x", "y"), 0, ""))
    assert found.vocabulary == ("b", "a", "c")
    np.testing.assert_array_equal(found.words, [1, 0, 0, 2, 0, 1])
    np.testing.assert_array_equal(found.ends, [4, 6])
