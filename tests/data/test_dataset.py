"""A data set is a matrix of finite numbers with one label a row, and nothing else gets in."""

import subprocess
import sys

import jax
import numpy as np
import pytest

from orderparam.data import Dataset, subsample

X = np.arange(12.0).reshape(4, 3)


def test_everything_becomes_float64_and_int64():
    data = Dataset(np.arange(6, dtype=np.uint8).reshape(3, 2), np.array([True, False, True]))
    assert data.inputs.dtype == np.float64
    assert data.labels.dtype == np.int64
    assert (data.examples, data.input_dim) == (3, 2)


def test_real_labels_stay_real():
    assert Dataset(X, np.array([0.0, 1.0, 0.5, 2.0])).labels.dtype == np.float64


def test_arrays_cannot_be_changed_and_the_users_array_still_can():
    mine = X.copy()
    data = Dataset(mine, np.arange(4))
    with pytest.raises(ValueError, match="read-only"):
        data.inputs[0, 0] = 7.0
    mine[0, 0] = 7.0


def test_take_keeps_the_order_asked_for():
    data = Dataset(X, np.arange(4), class_names=("a", "b", "c", "d"))
    assert data.take([3, 0]).labels.tolist() == [3, 0]
    assert data.take(slice(2)).inputs.tolist() == X[:2].tolist()
    assert data.take(data.labels > 1).labels.tolist() == [2, 3]


def test_it_shows_itself_on_one_screen():
    data = Dataset(X, np.array([0, 1, 1, 1]), "mine", (1, 3), ("cat", "dog"))
    assert repr(data).splitlines() == [
        "Dataset mine",
        "  inputs  4 examples x 3, images 1 x 3",
        "          from 0 to 11, mean |x|^2 = 126.5",
        "  labels  2 classes (cat: 1, dog: 3)",
    ]
    many = repr(Dataset(np.ones((500, 2)), np.arange(500)))
    assert "500 classes" in many
    assert max(map(len, many.splitlines())) < 120
    assert "real, from 0 to 1, mean 0.25, standard deviation 0.433" in repr(
        Dataset(X, np.array([0.0, 0.0, 0.0, 1.0]))
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"inputs": np.zeros(4)}, r"inputs has shape \(4,\)"),
        ({"inputs": np.zeros((0, 3))}, r"inputs has shape \(0, 3\)"),
        ({"inputs": np.zeros((4, 0))}, r"inputs has shape \(4, 0\)"),
        ({"inputs": np.where(X == 5, np.nan, X)}, r"inputs\[1, 2\] = nan: must be finite"),
        ({"inputs": np.where(X == 5, -np.inf, X)}, r"inputs\[1, 2\] = -inf"),
        ({"inputs": X.astype(complex)}, "complex128"),
        ({"inputs": X.astype(object)}, "dtype object"),
        ({"inputs": X.astype(str)}, "must be real numbers"),
        ({"inputs": np.full((4, 3), 2**53 + 1)}, "9007199254740993: whole numbers beyond"),
        ({"inputs": np.full((4, 3), -(2**63))}, "-9223372036854775808: whole numbers beyond"),
        ({"labels": np.arange(3)}, "labels has 3 entries for 4 examples"),
        ({"labels": np.zeros((4, 2))}, r"labels has shape \(4, 2\)"),
        ({"labels": np.array([0.0, 1.0, np.nan, 0.0])}, r"labels\[2\] = nan"),
        ({"labels": np.full(4, 2**64 - 1, np.uint64)}, "18446744073709551615"),
        ({"image_shape": (2, 2)}, "with product input_dim = 3"),
        ({"image_shape": (3,)}, r"image_shape = \(3,\)"),
        ({"class_names": ("a", "b")}, r"labels holds 2: must be 0..1"),
        ({"labels": np.ones(4), "class_names": ("a", "b")}, "labels are real numbers"),
        ({"class_names": ("a", "b", "c", "a")}, "must all be different"),
    ],
)
def test_what_is_no_data_set_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Dataset(**({"inputs": X, "labels": np.arange(4)} | fields))


@pytest.mark.parametrize(
    "rows", [[4], [], [0.5], slice(4, 4), np.zeros(4, bool), np.zeros(3, bool)]
)
def test_rows_that_do_not_exist(rows):
    with pytest.raises(ValueError):
        Dataset(X, np.arange(4)).take(rows)


def three_classes():
    labels = np.repeat([0, 1, 2], [20, 6, 10])
    return Dataset(np.arange(36.0)[:, None], labels, class_names=("a", "b", "c"))


def test_a_subsample_is_a_function_of_its_key():
    data = three_classes()
    for key in (3, jax.random.key(3)):
        first, again = subsample(data, 12, key), subsample(data, 12, key)
        assert first.inputs.tolist() == again.inputs.tolist()
        assert len(np.unique(first.inputs)) == 12
        assert (data.labels[first.inputs[:, 0].astype(int)] == first.labels).all()
    assert subsample(data, 12, 3).inputs.tolist() != subsample(data, 12, 4).inputs.tolist()
    split = jax.random.split(jax.random.key(3))
    assert (
        subsample(data, 12, split[0]).inputs.tolist()
        != subsample(data, 12, split[1]).inputs.tolist()
    )


def test_every_example_is_drawn_equally_often():
    data = three_classes()
    drawn = np.concatenate([subsample(data, 9, key).inputs[:, 0] for key in range(400)]).astype(int)
    counts = np.bincount(drawn, minlength=36)  # binomial(400, 1/4): 100 +- 8.7
    assert abs(counts - 100).max() < 5 * 8.7


@pytest.mark.parametrize("count", [3, 9, 10, 11, 18])
def test_balanced_shares_differ_by_at_most_one(count):
    counts = np.bincount(subsample(three_classes(), count, 1, balanced=True).labels, minlength=3)
    assert counts.sum() == count
    assert counts.max() - counts.min() <= 1


def test_a_balanced_subsample_is_mixed():
    labels = subsample(three_classes(), 18, 0, balanced=True).labels
    assert (np.diff(labels) != 0).sum() > 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": 0}, "count = 0: must be a whole number from 1 to 36"),
        ({"count": 37}, "count = 37"),
        ({"count": 1.5}, "count = 1.5"),
        ({"count": True}, "count = True"),
        ({"count": 21, "balanced": True}, "need 7 of class b, which has 6"),
        ({"count": 3, "key": -1}, "key = -1"),
        ({"count": 3, "key": "seed"}, "key = 'seed'"),
        ({"count": 3, "key": jax.random.split(jax.random.key(0))}, "must be a JAX key"),
    ],
)
def test_impossible_subsamples(arguments, message):
    with pytest.raises(ValueError, match=message):
        subsample(three_classes(), **arguments)


def test_real_labels_cannot_be_balanced():
    with pytest.raises(ValueError, match="labels are real numbers"):
        subsample(Dataset(X, np.array([0.1, 0.2, 0.3, 0.4])), 2, balanced=True)


def test_importing_the_topic_loads_neither_scikit_learn_nor_pooch():
    code = (
        "import sys, orderparam.data; print([m for m in ('sklearn', 'pooch', 'rich.progress') if m "
        "in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
