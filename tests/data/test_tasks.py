"""Labels become targets: signs, one-hot vectors or standardised numbers, and nothing is lost on the
way."""

import numpy as np
import pytest

from orderparam.data import (
    Dataset,
    apply_task,
    binary,
    load,
    one_hot,
    one_vs_rest,
    parity,
    regression,
)

LABELS = np.array([3, 8, 0, 3, 7, 8, 8])


@pytest.fixture(scope="module")
def digits():
    return load("digits")


@pytest.fixture(scope="module")
def pets():
    return Dataset(
        np.arange(10.0).reshape(5, 2),
        np.array([0, 1, 2, 0, 1]),
        class_names=("cat", "dog", "rest-less"),
    )


def test_binary_keeps_two_classes_in_stored_order():
    task = binary(LABELS, 3, 8)
    assert task.rows.tolist() == [0, 1, 3, 5, 6]
    assert task.values.tolist() == [1, -1, 1, -1, -1]
    assert (binary(LABELS, 8, 3).values == -task.values).all()


def test_parity_and_one_vs_rest_keep_everything():
    assert parity(LABELS).values.tolist() == [-1, 1, 1, -1, -1, 1, 1]
    assert one_vs_rest(LABELS, 7).values.tolist() == [-1, -1, -1, -1, 1, -1, -1]
    assert len(parity(LABELS).rows) == len(one_vs_rest(LABELS, 7).rows) == len(LABELS)


def test_one_hot_rows_sum_to_one_or_to_zero():
    plain, centred = one_hot(LABELS).values, one_hot(LABELS, zero_mean=True).values
    assert plain.shape == (7, 4)
    assert np.argmax(plain, 1).tolist() == [1, 3, 0, 1, 2, 3, 3]
    assert (plain.sum(1) == 1).all()
    assert abs(centred.sum(1)).max() < 1e-15
    assert np.unique(centred).tolist() == [-0.25, 0.75]


def test_with_ten_classes_the_zero_mean_targets_are_those_of_the_literature(digits):
    _, task = apply_task(digits, "one-hot-zero-mean")
    np.testing.assert_allclose(np.unique(task.values.round(15)), [-0.1, 0.9], rtol=1e-14)


def test_regression_is_standardised_and_returns_to_original_units():
    labels = np.array([10.0, 12.0, 17.0, 3.0])
    task = regression(labels)
    assert abs(task.values.mean()) < 1e-15
    assert abs((task.values**2).mean() - 1) < 1e-15
    np.testing.assert_allclose(task.offset + task.scale * task.values, labels, rtol=1e-15)
    assert task.scale == labels.std()
    raw = regression(labels, standardise=False)
    assert raw.values.tolist() == labels.tolist()
    assert (raw.offset, raw.scale) == (0.0, 1.0)


def test_regression_survives_a_large_offset():
    labels = 1e9 + np.array([0.0, 1.0, 2.0])
    np.testing.assert_allclose(
        regression(labels).values, np.array([-1, 0, 1]) * np.sqrt(1.5), atol=1e-12
    )


def test_whole_real_labels_are_classes():
    assert (
        binary(LABELS.astype(float), 3, 8).values.tolist() == binary(LABELS, 3, 8).values.tolist()
    )
    assert binary(np.array([-1, 1, 1]), 1, -1).values.tolist() == [-1, 1, 1]
    assert one_vs_rest(np.array([True, False]), 1).values.tolist() == [1, -1]


def test_texts_name_tasks(digits, pets):
    pool, task = apply_task(digits, "3-vs-8")
    assert pool.examples == 183 + 174
    assert (task.values == np.where(pool.labels == 3, 1, -1)).all()
    assert (digits.inputs[task.rows] == pool.inputs).all()
    assert (
        apply_task(digits, "even-odd")[1].values.tolist() == parity(digits.labels).values.tolist()
    )
    assert apply_task(digits, "7-vs-rest")[1].values.sum() == 179 - (1797 - 179)
    assert apply_task(digits, "one-hot")[1].values.shape == (1797, 10)
    assert apply_task(pets, "dog-vs-cat")[1].values.tolist() == [-1, 1, -1, 1]
    assert apply_task(pets, "dog-vs-cat")[1].name == "dog-vs-cat"
    assert apply_task(pets, "rest-less-vs-rest")[1].values.tolist() == [-1, -1, 1, -1, -1]
    signs = Dataset(np.ones((2, 1)), np.array([1, -1]))
    assert apply_task(signs, "1-vs--1")[1].values.tolist() == [1, -1]
    assert apply_task(signs, "regression")[1].values.tolist() == [1, -1]
    reals = Dataset(np.ones((2, 1)), np.array([1.0, -1.0]))
    assert apply_task(reals, "1.0-vs--1.0")[1].values.tolist() == [1, -1]


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("even-od", "did you mean 'even-odd'"),
        ("", "tasks are: even-odd, A-vs-B"),
        ("3vs8", "there is no task '3vs8'"),
        ("cta-vs-dog", "there is no class 'cta'; did you mean 'cat'"),
        ("cat-vs-7", "class 7 has no examples; there are: 0, 1, 2"),
        ("cat-vs-cat", "must be two different classes"),
        ("cat-vs-0", "must be two different classes"),
        ("-vs-rest", "there is no class ''"),
        ("regression", "labels are names of classes"),
    ],
)
def test_unknown_tasks(pets, task, message):
    with pytest.raises(ValueError, match=message):
        apply_task(pets, task)


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (lambda: parity(np.array([2, 4])), r"every example has y = \+1"),
        (lambda: parity(np.array([0.5, 1.0])), "labels holds 0.5: classes must be whole"),
        (lambda: parity(np.array([])), "labels is empty"),
        (lambda: parity(np.array([np.nan, 1.0])), r"labels\[0\] = nan"),
        (lambda: parity(np.zeros((2, 2), int)), r"labels has shape \(2, 2\)"),
        (lambda: parity(np.array(["a", "b"])), "must be real numbers"),
        (lambda: binary(LABELS, 3, 5), "class 5 has no examples; there are: 0, 3, 7, 8"),
        (lambda: binary(LABELS, 3, 3), "two different classes"),
        (lambda: one_vs_rest(LABELS, 1), "class 1 has no examples"),
        (lambda: one_vs_rest(np.array([1, 1]), 1), "nothing to learn"),
        (lambda: one_hot(np.array([1, 1])), "every example is of class 1"),
        (lambda: regression(np.array([2.0, 2.0])), "is 2.0 for every example"),
        (lambda: regression(np.array([1.0, np.inf])), r"labels\[1\] = inf"),
        (lambda: regression(np.array([])), "is empty"),
        (lambda: regression(np.array([1e200, -1e200])), "variance inf in float64"),
    ],
)
def test_labels_that_do_not_fit(problem, message):
    with pytest.raises(ValueError, match=message):
        problem()
