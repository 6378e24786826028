"""Learning problems: from the labels of a data set to the targets y that a theory and an experiment
regress on.

A problem is written as a text, the same on the command line and in Python:

    even-odd             y = +1 for even classes, -1 for odd ones
    3-vs-8               y = +1 for class 3, -1 for class 8; all other examples are left out
                         (cat-vs-dog: classes by name)
    7-vs-rest            y = +1 for class 7, -1 for every other class
    one-hot              y_c = 1 for the example's own class, else 0
    one-hot-zero-mean    y_c = 1 - 1/classes for the own class, else -1/classes
    regression           y = (label - mean) / standard deviation
"""

import dataclasses
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from orderparam.core.names import near, nearest
from orderparam.data.dataset import Dataset, label_array

FORMS = ("even-odd", "A-vs-B", "A-vs-rest", "one-hot", "one-hot-zero-mean", "regression")

Labels = Int[np.ndarray, "examples"] | Float[np.ndarray, "examples"]


@dataclass(frozen=True, eq=False)
class Targets:
    """Targets of a learning problem, and the conversion back to the user's units.

    name: the problem in words. rows: int64 (kept,), the examples that are used, in stored order.
    values: float64 (kept,), or (kept, outputs) for one-hot targets. offset, scale: original target
    = offset + scale * value; a squared error in original units is `scale**2` times larger.
    """

    name: str
    rows: Int[np.ndarray, "kept"]
    values: Float[np.ndarray, "kept"] | Float[np.ndarray, "kept outputs"]
    offset: float = 0.0
    scale: float = 1.0


def _classes(labels: Labels) -> Int[np.ndarray, "examples"]:
    """Labels as whole numbers; real numbers that are all whole are accepted."""
    checked = label_array("labels", labels)
    if checked.size == 0:
        raise ValueError("labels is empty: there must be at least two classes")
    if checked.dtype.kind == "f" and (checked != np.round(checked)).any():
        raise ValueError(
            f"labels holds {checked[checked != np.round(checked)][0]}: classes must be whole "
            "numbers"
        )
    return checked.astype(np.int64)


def _present(classes: Int[np.ndarray, "examples"], wanted: int) -> int:
    if wanted not in classes:
        raise ValueError(
            f"class {wanted} has no examples; there are: {', '.join(map(str, np.unique(classes)))}"
        )
    return wanted


def _signs(name: str, rows: np.ndarray, positive: np.ndarray) -> Targets:
    if positive.all() or not positive.any():
        raise ValueError(
            f"{name}: every example has y = {'+1' if positive.all() else '-1'}; there is nothing "
            "to learn"
        )
    return Targets(name, rows, np.where(positive, 1.0, -1.0))


def parity(labels: Labels) -> Targets:
    """y = +1 for even classes, -1 for odd ones. Raises `ValueError` for labels that are not whole
    or all of one parity."""
    classes = _classes(labels)
    return _signs("even-odd", np.arange(len(classes)), classes % 2 == 0)


def binary(labels: Labels, positive: int, negative: int) -> Targets:
    """y = +1 for the class `positive`, -1 for `negative`; examples of other classes are left out.

    Raises `ValueError` for labels that are not whole, equal classes, or a class without examples.
    """
    classes = _classes(labels)
    if positive == negative:
        raise ValueError(f"positive = negative = {positive}: must be two different classes")
    _present(classes, positive)
    _present(classes, negative)
    rows = np.flatnonzero((classes == positive) | (classes == negative))
    return _signs(f"{positive}-vs-{negative}", rows, classes[rows] == positive)


def one_vs_rest(labels: Labels, positive: int) -> Targets:
    """y = +1 for the class `positive`, -1 for every other. Raises `ValueError` as `binary` does."""
    classes = _classes(labels)
    return _signs(
        f"{positive}-vs-rest", np.arange(len(classes)), classes == _present(classes, positive)
    )


def one_hot(labels: Labels, zero_mean: bool = False) -> Targets:
    """y_c = 1 if c is the example's class, else 0: shape (examples, classes), columns in ascending
    order of the classes present.

    zero_mean: subtract 1/classes, so that every row sums to zero (with ten classes +0.9 and -0.1:
        Lee, Bahri, Novak, Schoenholz, Pennington, Sohl-Dickstein 2018, experiments of "Deep neural
        networks as Gaussian processes").
    Raises `ValueError` for labels that are not whole, or of one class only.
    """
    classes = _classes(labels)
    present, column = np.unique(classes, return_inverse=True)
    if len(present) < 2:
        raise ValueError(
            f"one-hot: every example is of class {present[0]}; there is nothing to learn"
        )
    values = np.eye(len(present))[column]
    name = "one-hot-zero-mean" if zero_mean else "one-hot"
    return Targets(
        name, np.arange(len(classes)), values - 1 / len(present) if zero_mean else values
    )


def regression(labels: Labels, standardise: bool = True) -> Targets:
    """y = (label - mean) / standard deviation over all examples (divisor: examples); y = label with
    `standardise=False`.

    `offset` and `scale` of the result undo the transformation. Raises `ValueError` for labels that
    are not finite real numbers, never change, or whose squares overflow.
    """
    real = label_array("labels", labels).astype(np.float64)
    rows = np.arange(len(real))
    if len(real) == 0 or real.min() == real.max():
        raise ValueError(
            "regression: the target "
            f"{f'is {real[0]} for every example' if len(real) else 'is empty'}"
        )
    if not standardise:
        return Targets("regression in original units", rows, real)
    with np.errstate(over="ignore"):
        offset, scale = float(real.mean()), float(real.std())
        variance = np.square(scale)
    if not 0 < variance < np.inf:
        raise ValueError(
            f"regression: the target has variance {variance:g} in float64; write it in other units"
        )
    return Targets("regression", rows, (real - offset) / scale, offset, scale)


def _class_number(dataset: Dataset, text: str) -> int:
    """A class by its name, or by its number; labels that are real numbers may be written as such
    (1.0 is class 1)."""
    names = list(dataset.class_names or ())
    if text in names:
        return names.index(text)
    whole = text.removesuffix(".0") if dataset.labels.dtype.kind == "f" else text
    try:
        return int(whole)
    except ValueError:
        classes = names or [str(c) for c in np.unique(dataset.labels)[:20]]
        raise ValueError(f"there is no class {text!r}{nearest(text, classes)}") from None


def apply_task(dataset: Dataset, task: str) -> tuple[Dataset, Targets]:
    """The examples of a learning problem, and their targets in the same order.

    task: one of the texts at the top of this file. Raises `ValueError` for an unknown text or class
    (with the nearest match), and where the task does not fit the labels.
    """
    first, versus, second = task.partition("-vs-")
    if task == "even-odd":
        targets = parity(dataset.labels)
    elif task in ("one-hot", "one-hot-zero-mean"):
        targets = one_hot(dataset.labels, zero_mean=task.endswith("zero-mean"))
    elif task == "regression":
        if dataset.class_names is not None:
            raise ValueError("regression: the labels are names of classes; must be numbers")
        targets = regression(dataset.labels)
    elif versus and second == "rest":
        targets = one_vs_rest(dataset.labels, _class_number(dataset, first))
    elif versus:
        targets = binary(
            dataset.labels, _class_number(dataset, first), _class_number(dataset, second)
        )
    else:
        raise ValueError(
            f"there is no task {task!r}: tasks are: {', '.join(FORMS)}{near(task, list(FORMS))}"
        )
    return dataset.take(targets.rows), dataclasses.replace(targets, name=task)
