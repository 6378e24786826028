"""A user's file is read exactly, or refused with the place of the fault; it never runs code."""

import contextlib
import csv
import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orderparam.data import DataNotFound, Dataset, apply_task, load_file
from orderparam.data.columns import fit_encoding
from orderparam.data.feather import unpacked_bytes
from orderparam.data.frame import MOST_UNPACKED, read_frame
from orderparam.data.table import MISSING, number

X = np.array([[1.0, 2.5], [3.0, -4.0], [5.5, 6.0]])
Y = np.array([0.5, -1.0, 2.0])


class Payload:
    """A pickle that leaves a file behind when it is loaded."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


def text(tmp_path, content, name="table.csv"):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8", newline="")
    return path


def npz(tmp_path, name="data.npz", **arrays):
    np.savez(tmp_path / name, **arrays)
    return tmp_path / name


def npy(tmp_path, array, name="data.npy"):
    np.save(tmp_path / name, array)
    return tmp_path / name


# What is read


def test_npz_with_the_usual_names(tmp_path):
    data = load_file(npz(tmp_path, x=X, y=Y))
    assert (data.inputs == X).all()
    assert (data.labels == Y).all()
    assert data.name == "data/y"


def test_npz_images_labels_by_name_and_compression(tmp_path):
    images = np.arange(2 * 4 * 3 * 3, dtype=np.uint8).reshape(2, 4, 3, 3)
    np.savez_compressed(tmp_path / "a.npz", pictures=images, kind=np.array([[1], [0]], np.uint8))
    data = load_file(tmp_path / "a.npz", "kind")
    assert data.image_shape == (4, 3, 3)
    assert (data.inputs.reshape(images.shape) == images).all()
    assert data.labels.tolist() == [1, 0]
    assert data.labels.dtype == np.int64


def test_words_become_classes_in_alphabetical_order(tmp_path):
    for labels in (np.array(["dog", "ant", "dog"]), np.array([b"dog", b"ant", b"dog"])):
        data = load_file(npz(tmp_path, X=X, y=labels))
        assert data.class_names == ("ant", "dog")
        assert data.labels.tolist() == [1, 0, 1]


def test_npy_with_the_target_in_a_column_or_beside_it(tmp_path):
    path = npy(tmp_path, np.column_stack([X, Y]))
    for target in (None, 2, -1, "2"):
        data = load_file(path, target)
        assert (data.inputs == X).all()
        assert (data.labels == Y).all()
    assert (load_file(path, 0).labels == X[:, 0]).all()
    beside = npy(tmp_path, Y, "labels.npy")
    for target in (beside, str(beside)):
        data = load_file(npy(tmp_path, X, "x.npy"), target)
        assert (data.labels == Y).all()
        assert data.name == "x/labels"


@pytest.mark.parametrize("target", ["size", 1, "1", -2])
def test_csv_columns_by_name_or_index(tmp_path, target):
    data = load_file(text(tmp_path, "age,size,weight\n1,2.5,3\n4,5,6e-3\n"), target)
    assert data.inputs.tolist() == [[1, 3], [4, 6e-3]]
    assert data.labels.tolist() == [2.5, 5]
    assert data.name == "table/size"


def test_the_default_target_is_y_or_the_last_column(tmp_path):
    assert load_file(text(tmp_path, "a,y,b\n1,2,3\n4,5,6\n")).name == "table/y"
    assert load_file(text(tmp_path, "a,b,c\n1,2,3\n4,5,6\n")).name == "table/c"


def test_csv_labels_whole_real_or_words(tmp_path):
    whole = load_file(text(tmp_path, "a,y\n1,2\n4,-5\n"))
    assert whole.labels.dtype == np.int64
    assert load_file(text(tmp_path, "a,y\n1,2.0\n4,5\n")).labels.dtype == np.float64
    words = load_file(text(tmp_path, "a,y\n1,no\n4,yes\n5,no\n"))
    assert words.class_names == ("no", "yes")
    assert apply_task(words, "yes-vs-no")[1].values.tolist() == [-1, 1, -1]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("a,b,y\n1,2,3\n4,5,6\n", "t.csv"),
        ("a;b;y\n1;2;3\n4;5;6\n", "t.csv"),
        ("a\tb\ty\n1\t2\t3\n4\t5\t6\n", "t.tsv"),
        ("\ufeffa,b,y\r\n 1 , 2 ,3\r\n\r\n4,5,6\r\n", "t.CSV"),
        ('"a","b","y"\n"1","2","3"\n"4","5","6"', "t.csv"),
        ("1,2,3\n4,5,6\n", "t.csv"),
        ("0,1,y\n1,2,3\n4,5,6\n", "t.csv"),
    ],
)
def test_csv_dialects(tmp_path, content, name):
    data = load_file(text(tmp_path, content, name))
    assert data.inputs.tolist() == [[1, 2], [4, 5]]
    assert data.labels.tolist() == [3, 6]


def test_a_table_without_header_may_end_in_words(tmp_path):
    data = load_file(text(tmp_path, "5.1,3.5,setosa\n4.9,3.0,setosa\n6.3,2.9,virginica\n"))
    assert data.class_names == ("setosa", "virginica")
    assert data.examples == 3


names = st.text("abxyz ,;\"'-é7", min_size=1, max_size=5).map(str.strip)
names = names.filter(lambda name: number(name) is None and name.lower() not in MISSING)
tables = st.integers(2, 5).flatmap(
    lambda columns: st.tuples(
        st.lists(names, min_size=columns, max_size=columns, unique=True),
        st.lists(
            st.lists(
                st.floats(allow_nan=False, allow_infinity=False), min_size=columns, max_size=columns
            ),
            min_size=2,
            max_size=6,
        ),
        st.integers(0, columns - 1),
    )
)


@settings(max_examples=60, deadline=None)
@given(tables, st.sampled_from([(".csv", ","), (".tsv", "\t")]))
def test_numbers_written_to_a_table_come_back_bit_for_bit(tmp_path_factory, table, form):
    header, rows, target = table
    suffix, delimiter = form
    path = tmp_path_factory.mktemp("table") / f"t{suffix}"
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, delimiter=delimiter).writerows([header, *rows])
    values = np.array(rows)
    if (values[:, target] == values[0, target]).all():
        with pytest.raises(ValueError, match="nothing to learn"):
            load_file(path, header[target])
        return
    data = load_file(path, header[target])
    np.testing.assert_array_equal(data.inputs, np.delete(values, target, axis=1))
    np.testing.assert_array_equal(data.labels, values[:, target])


# What is refused

TABLES = {
    "empty": ("", "the file is empty"),
    "only blank lines": ("\n\n\n", "the file is empty"),
    "header only": ("a,b\n", "0 rows of data"),
    "one row": ("a,b\n1,2\n", "1 row of data"),
    "one column": ("y\n1\n2\n", "no column besides the target 'y'"),
    "missing value": ("a,y\n1,2\n,3\n", "line 3, column 'a': missing value"),
    "missing word": ("a,y\n1,2\nNA,3\n", "line 3, column 'a': missing value ('NA')"),
    "missing target": ("a,y\n1,2\n3,?\n", "line 3, column 'y': missing value"),
    "empty row of cells": ("a,y\n1,2\n,\n", "line 3"),
    "not finite": ("a,y\n1,2\n-inf,3\n", "line 3, column 'a': '-inf' is not finite"),
    "overflow": ("a,y\n1,2\n1e999,3\n", "'1e999' is not finite"),
    "nan": ("a,y\n1,2\nNaN,3\n", "line 3, column 'a': missing value ('NaN')"),
    "words as input": ("a,y\n1,2\nred,3\n", "line 3, column 'a': 'red' is not a number"),
    "column of words as input": (
        "a,b,y\n1,x,2\n1,z,3\n",
        "line 2, column 'b': 'x' is not a number",
    ),
    "digit separator": ("a,y\n1,2\n1_000,3\n", "'1_000' is not a number"),
    "decimal comma": ('a,y\n"1,5",2\n"2,5",3\n', "'1,5' is not a number"),
    "numbers and words in the target": (
        "a,y\n1,2\n2,b\n",
        "line 3, column 'y': 'b' is not a number",
    ),
    "constant target": ("a,y\n1,2\n3,2\n", "y is 2 for every example"),
    "constant words": ("a,y\n1,no\n3,no\n", "y is no for every example"),
    "repeated column": ("a,b,a\n1,2,3\n4,5,6\n", "columns 1 and 3 have the same name 'a'"),
    "nameless column": (",a,y\n0,1,2\n1,3,4\n", "column 1 has no name"),
    "short row": ("a,b,y\n1,2,3\n4,5\n", "line 3 has 2 cells, the lines before it have 3"),
    "long row": ("a,b,y\n1,2,3\n4,5,6,7\n", "line 3 has 4 cells"),
    "huge whole number": (
        "a,y\n1,2\n9007199254740993,3\n",
        "line 3, column 'a': '9007199254740993': whole numbers",
    ),
    "huge label": ("a,y\n1,2\n3,123456789012345678901\n", "line 3, column 'y'"),
    "header of numbers and words": (
        "2019,2021,y\n1,2,3\n4,5,6\n",
        "line 1, column '2': 'y' is not a number",
    ),
    "header or data": (
        "0,1,y\n1,2,a\n4,5,b\n",
        "line 1 counts 0, 1, 2, ..: it could be a header or data",
    ),
    "header of counts": ("0,1,2\n1,2,3\n4,5,6\n", "could be a header or data"),
    "open quote": ('a,y\n1,"2\n3,4\n', "unexpected end of data"),
    "text after quote": ('a,y\n"1"b,2\n3,4\n', "expected after"),
}


@pytest.mark.parametrize("case", TABLES)
def test_malformed_tables(tmp_path, case):
    content, message = TABLES[case]
    path = text(tmp_path, content)
    with pytest.raises(ValueError) as error:
        load_file(path)
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)


@pytest.mark.parametrize(
    "raw",
    [b"\xff\xfea\x00,\x00y\x00\n\x00", b"a,y\n1,2\n\x00,3\n", b"\x80\x04]q\x00.", b"a,y\n\xe9,1\n"],
)
def test_bytes_that_are_no_text(tmp_path, raw):
    path = tmp_path / "t.csv"
    path.write_bytes(raw)
    with pytest.raises(ValueError, match=r"t\.csv: "):
        load_file(path)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            "qualty",
            "no column 'qualty': there are quality, acidity, y; did you mean 'quality'?",
        ),
        ("colour", "has no column 'colour': there are quality, acidity, y"),
        (3, r"target = 3: must be the index of a column, -3..2"),
        ("-4", "target = -4"),
        (True, "has no column 'True'"),
        (1.0, "has no column '1.0'"),
    ],
)
def test_unknown_targets(tmp_path, target, message):
    path = text(tmp_path, "quality,acidity,y\n1,2,3\n4,5,6\n")
    with pytest.raises(ValueError) as error:
        load_file(path, target)
    assert message in str(error.value)


ARRAYS = {
    "no target": ({"x": X}, "has no array 'y'"),
    "target misspelt": ({"x": X, "Y1": Y}, "did you mean"),
    "no inputs": ({"y": Y}, "which array holds the inputs?"),
    "two candidates": ({"a": X, "b": X, "y": Y}, "besides 'y' there are: a (3, 2), b (3, 2)"),
    "x and X": ({"x": X, "X": X, "y": Y}, "which array holds the inputs?"),
    "inputs of one dimension": ({"x": Y, "y": Y}, "x has shape (3,)"),
    "inputs of five dimensions": (
        {"x": np.ones((3, 1, 1, 1, 2)), "y": Y},
        "x has shape (3, 1, 1, 1, 2)",
    ),
    "labels of two dimensions": ({"x": X, "y": X}, "y has shape (3, 2)"),
    "scalar label": ({"x": X, "y": 1.0}, "y has shape ()"),
    "lengths differ": ({"x": X, "y": Y[:2]}, "y has 2 labels for 3 examples"),
    "no examples": ({"x": X[:0], "y": Y[:0]}, "0 examples"),
    "one example": ({"x": X[:1], "y": Y[:1]}, "1 example"),
    "no features": ({"x": X[:, :0], "y": Y}, "inputs has shape (3, 0)"),
    "constant target": ({"x": X, "y": np.ones(3)}, "y is 1.0 for every example"),
    "nan input": ({"x": np.where(X == 3, np.nan, X), "y": Y}, "x[1, 0] = nan: must be finite"),
    "infinite label": ({"x": X, "y": np.array([1, 2, np.inf])}, "y[2] = inf: must be finite"),
    "complex": ({"x": X * 1j, "y": Y}, "x has dtype complex128"),
    "words as input": ({"x": X.astype(str), "y": Y}, "must be real numbers"),
    "dates as labels": (
        {"x": X, "y": np.array(["2020-01-01"] * 3, "M8[D]")},
        "y has dtype datetime64[D]",
    ),
    "records": ({"x": X, "y": np.zeros(3, [("a", "f8")])}, "y has dtype"),
    "huge whole numbers": (
        {"x": np.full((3, 2), 2**60), "y": Y},
        "1152921504606846976: whole numbers beyond 2^53",
    ),
    "bytes that are no ASCII": ({"x": X, "y": np.array([b"\xe9", b"a", b"a"])}, "ASCII"),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_malformed_npz(tmp_path, case):
    arrays, message = ARRAYS[case]
    path = npz(tmp_path, **arrays)
    with pytest.raises(ValueError) as error:
        load_file(path)
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)


@pytest.mark.parametrize(
    "case", ["array in npz", "array in npy", "file named npz", "file named npy", "file named csv"]
)
def test_no_file_runs_code(tmp_path, case):
    marker = tmp_path / "ran"
    poisoned = np.array([Payload(marker)] * 3, dtype=object)
    pickle.loads(pickle.dumps(Payload(marker)))
    assert marker.exists()  # the payload works
    marker.unlink()
    if case == "array in npz":
        path = npz(tmp_path, x=X, y=poisoned)
    elif case == "array in npy":
        path = npy(tmp_path, poisoned)
    else:
        path = tmp_path / f"data.{case[-3:]}"
        path.write_bytes(pickle.dumps(Payload(marker)))
    with pytest.raises(ValueError, match="data"):
        load_file(path)
    assert not marker.exists()


def _claims(shape: str) -> bytes:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


def _zip(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("d.npy", b""),
        ("d.npz", b""),
        ("d.npz", b"PK\x03\x04 no archive"),
        ("d.npz", _zip("y.npy", b"\x93NUMPY")),
        ("d.npz", _zip("y", b"plain bytes")),
        ("d.npy", _zip("y.npy", _claims("(2,)") + b"\0" * 16)),
        ("d.npz", _claims("(2,)") + b"\0" * 16),
        ("d.npy", _claims("(3, 2)") + b"\0" * 40),
        ("d.npy", _claims("(1000000000000000, 2)")),
        ("d.npz", _zip("y.npy", _claims("(1000000000000000, 2)"))),
        ("d.npy", _claims("(-1, 2)")),
        ("d.npy", _claims("__import__('os').getcwd()")),
        ("d.npy", b"a,b\n1,2\n"),
    ],
)
def test_damaged_array_files(tmp_path, name, raw):
    path = tmp_path / name
    path.write_bytes(raw)
    with pytest.raises(ValueError) as error:
        load_file(path)
    assert str(error.value).startswith(f"{path}: ")


def test_a_npy_of_wrong_shape_or_with_a_wrong_target(tmp_path):
    path = npy(tmp_path, np.ones((3, 2, 2)))
    with pytest.raises(ValueError, match="without a separate target file"):
        load_file(path)
    with pytest.raises(ValueError, match=r"index of a column, -2\.\.1"):
        load_file(npy(tmp_path, X), 5)
    with pytest.raises(ValueError, match=r"must be a \.npy file"):
        load_file(path, text(tmp_path, "y\n1\n2\n3\n"))
    with pytest.raises(DataNotFound, match="there is no file"):
        load_file(path, "labels")


def test_files_that_are_not_there(tmp_path):
    npz(tmp_path, "galaxies.npz", x=X, y=Y)
    with pytest.raises(
        DataNotFound, match=r"there is no file .*galaxis.npz; did you mean 'galaxies.npz'\?"
    ):
        load_file(tmp_path / "galaxis.npz")
    with pytest.raises(DataNotFound, match="there is no file"):
        load_file(tmp_path / "nowhere" / "galaxies.npz")
    with pytest.raises(ValueError, match="is a folder"):
        load_file(tmp_path)
    with pytest.raises(
        ValueError, match=r"unknown format '.xlsx'; must be one of .npz, .npy, .csv, .tsv"
    ):
        load_file(text(tmp_path, "", "t.xlsx"))


def test_not_found_is_a_value_error_and_a_file_error():
    assert issubclass(DataNotFound, ValueError)
    assert issubclass(DataNotFound, FileNotFoundError)


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(["npz", "npy", "csv"]), st.data())
def test_a_damaged_file_is_read_or_refused_but_nothing_else(tmp_path_factory, suffix, draw):
    folder = tmp_path_factory.mktemp("damaged")
    if suffix == "npz":
        path = npz(folder, x=X, y=Y)
    elif suffix == "npy":
        path = npy(folder, np.column_stack([X, Y]))
    else:
        path = text(folder, "a,b,y\n1,2.5,0.5\n3,-4,-1\n5.5,6,2\n", "data.csv")
    raw = bytearray(path.read_bytes())
    for position in draw.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=3)):
        raw[position] = draw.draw(st.integers(0, 255))
    path.write_bytes(bytes(raw[: draw.draw(st.sampled_from([len(raw), len(raw) // 2]))]))
    with contextlib.suppress(ValueError):
        assert isinstance(load_file(path), Dataset)


def test_very_many_columns_are_refused_at_once(tmp_path):
    """A million of them took hours: names were looked up one in all others, and each column is
    looked at alone."""
    names = [f"c{i}" for i in range(100_001)]
    wide = text(
        tmp_path, "\n".join(",".join(f"{mark}{name}" for name in names) for mark in ("", "1", "2"))
    )
    with pytest.raises(ValueError, match="line 1 has 100001 cells: must be at most 100000"):
        read_frame(wide)
    with pytest.raises(ValueError, match="10001 columns: must be at most 10000"):
        fit_encoding(pd.DataFrame(np.zeros((2, 10_001))))


def test_tables_that_unpack_into_very_much_are_refused_before(tmp_path, monkeypatch):
    frame = pd.DataFrame({"a": np.arange(50), "b": np.arange(50)})
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_excel(tmp_path / "a.xlsx", index=False)
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros((50, 2)), y=np.arange(50))
    monkeypatch.setattr("orderparam.data.frame.MOST_CELLS", 99)
    monkeypatch.setitem(MOST_UNPACKED, ".xlsx", 99)
    monkeypatch.setattr("orderparam.core.reading.MOST_UNPACKED", 99)
    with pytest.raises(
        ValueError, match=r"a.parquet: holds 50 rows of 2 columns: must be at most 99 cells"
    ):
        read_frame(tmp_path / "a.parquet")
    more = r"unpacks into [0-9]+ bytes more than it has: must be at most 99"
    with pytest.raises(ValueError, match=f"a.xlsx: {more}"):
        read_frame(tmp_path / "a.xlsx")
    with pytest.raises(ValueError, match=f"a.npz: {more}"):
        load_file(tmp_path / "a.npz")
    np.savez(tmp_path / "a.npz", x=np.ones((50, 2)), y=np.arange(50))  # not packed at all
    assert isinstance(load_file(tmp_path / "a.npz"), Dataset)


def test_a_feather_file_says_what_it_unpacks_into(tmp_path, monkeypatch):
    """By the buffers as Arrow itself unpacks them."""
    rng = np.random.default_rng(0)
    words = pd.Categorical(["one", "two"] * 500)
    frame = pd.DataFrame(
        {"a": np.zeros(1000), "b": rng.normal(size=1000), "c": ["x" * 9] * 1000, "d": words}
    )
    sizes = {}
    for compression in ("zstd", "lz4", "uncompressed"):
        path = tmp_path / f"{compression}.feather"
        frame.to_feather(path, compression=compression, chunksize=300)
        sizes[compression] = unpacked_bytes(path)
    assert sizes["zstd"] == sizes["lz4"]
    assert 8000 + 8000 + 9000 + 4000 <= sizes["zstd"] <= sizes["uncompressed"] < 40_000
    monkeypatch.setitem(MOST_UNPACKED, ".feather", 10_000)
    with pytest.raises(
        ValueError, match=r"lz4.feather: unpacks into [0-9]+ bytes: must be at most"
    ):
        read_frame(tmp_path / "lz4.feather")
    monkeypatch.undo()
    pd.testing.assert_frame_equal(
        read_frame(tmp_path / "lz4.feather")[["a", "b"]].reset_index(drop=True), frame[["a", "b"]]
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_damaged_feather_file_is_refused_by_name(tmp_path, seed):
    frame = pd.DataFrame({"a": np.zeros(1000), "b": ["x" * 9] * 1000})
    frame.to_feather(tmp_path / "a.feather", compression="zstd")
    whole, rng = (tmp_path / "a.feather").read_bytes(), np.random.default_rng(seed)
    for _ in range(40):
        broken = bytearray(whole)
        for place in rng.integers(8, len(broken), 1 + seed):
            broken[place] = rng.integers(256)
        (tmp_path / "b.feather").write_bytes(
            broken[: rng.integers(8, len(broken))] if seed == 2 else broken
        )
        refused = "b.feather"
        try:
            read_frame(tmp_path / "b.feather")
        except ValueError as error:
            refused = str(error)
        assert "b.feather" in refused


def test_a_fault_of_the_labels_names_their_file(tmp_path):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", np.append(np.arange(len(X) - 1.0), np.nan))
    with pytest.raises(ValueError, match=r"y\.npy: y\[\d+\] = nan: must be finite"):
        load_file(tmp_path / "X.npy", tmp_path / "y.npy")


def test_another_kind_of_file_is_no_array(tmp_path):
    (tmp_path / "text.npy").write_text("1 2 3\n4 5 6\n")
    with pytest.raises(ValueError, match="another kind of file") as error:
        load_file(tmp_path / "text.npy")
    assert "allow_pickle" not in str(error.value)
