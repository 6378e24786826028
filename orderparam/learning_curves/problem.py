"""A user's data as a learning problem: inputs for a kernel, targets of variance one, and the
conversion back to their units."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from orderparam.core.names import nearest
from orderparam.core.reading import reading
from orderparam.core.text import counted
from orderparam.data import DATASETS, Dataset, apply_task, centre, load, load_file, normalise
from orderparam.data.columns import Column, Encoding, check_real, fit_encoding, moments
from orderparam.data.files import existing, target_column
from orderparam.data.frame import FRAMES, read_frame
from orderparam.data.written import MOST, numbers_of

if TYPE_CHECKING:
    import pandas as pd

FEWEST = 40  # rows
NO_TARGET = "no target was named"
MOST_CLASSES = 20  # whole numbers with more different values are regression targets, not classes


@dataclass(frozen=True)
class Problem:
    """Inputs and targets of a learning problem.

    inputs: (example, input), or images as their rows. values: (example, output) in the units of the
    file; two classes as -1 and 1, more classes as one column 0/1 each, minus its mean. names: those
    of the outputs. classes: names of the classes, empty for numbers. groups: (example,) labels of
    examples that belong together, or None. ordered: True if the examples are in the order of time.
    columns: the treatment of each column of a table. notes: sentences on further changes of the
    data. encoding: the function that encodes further rows.
    """

    inputs: Float[np.ndarray, "example input"]
    values: Float[np.ndarray, "example output"]
    name: str
    names: tuple[str, ...]
    classes: tuple[str, ...] = ()
    groups: Int[np.ndarray, "example"] | None = None
    ordered: bool = False
    columns: tuple[Column, ...] = ()
    notes: tuple[str, ...] = ()
    encoding: Encoding | None = None
    task: str = ""
    dataset: Dataset | None = field(default=None, repr=False)

    @property
    def mean(self) -> Float[np.ndarray, "output"]:
        return self.values.mean(axis=0)

    @property
    def variance(self) -> float:
        """Variance of the targets over the examples, summed over the outputs: the unit of all
        errors."""
        return float(np.sum(np.var(self.values, axis=0)))

    @property
    def targets(self) -> Float[np.ndarray, "example output"]:
        """Targets with mean zero and total variance one."""
        return (self.values - self.mean) / np.sqrt(self.variance)


def from_file(
    file: str,
    target: str | None = None,
    task: str | None = None,
    groups: str | None = None,
    time: str | None = None,
    missing: Sequence[str] = (),
) -> Problem:
    """A problem from a file, or from a standard data set by name.

    target: a column or array, or several columns with commas between them. groups, time: columns
    with the group and the time of each row; neither is an input. missing: words of a table that
    stand for gaps, in addition to the usual ones. Raises the errors of `orderparam.data`.
    """
    if not (file in DATASETS and target is None) and Path(file).suffix.lower() in FRAMES:
        path = existing(file)
        frame = table_of(file, missing)
        columns = list(frame.columns)
        targets = (
            [target]
            if target is None or target in columns
            else [part.strip() for part in target.split(",")]
        )
        with reading(path):
            chosen = [target_column(columns, one) for one in targets]
            groups, time = (
                one if one is None else target_column(columns, one) for one in (groups, time)
            )
        problem = noting_target(from_frame(frame, chosen, task, groups, time, path.stem), target)
        if columns == [str(position) for position in range(len(columns))]:
            note = "columns are called 0, 1, 2, ..."
            return replace(problem, notes=(*problem.notes, note))
        return problem
    if missing:
        raise ValueError(
            f"--missing {','.join(missing)}: needs a table ({', '.join(FRAMES)}); {file} is not one"
        )
    for option, column in {"--groups": groups, "--time": time}.items():
        if column is not None:
            raise ValueError(
                f"{option} {column}: needs a table ({', '.join(FRAMES)}); {file} is not one"
            )
    if not Path(file).suffix and file not in DATASETS and not Path(file).exists():
        raise ValueError(f"{file} is neither a file nor a data set{nearest(file, list(DATASETS))}")
    if file in DATASETS and target is None:
        return from_dataset(load(file), task)
    return noting_target(from_dataset(load_file(file, target), task), target)


def noting_target(problem: Problem, target: str | None) -> Problem:
    """The problem with a note on its target, where the last column was taken because none was
    named."""
    if target is not None or problem.names[0] == "y":
        return problem
    note = (
        f"{NO_TARGET}: the last column, {problem.names[0]!r}, is predicted; --target names another"
    )
    return replace(problem, notes=(note, *problem.notes))


def table_of(file: str, missing: Sequence[str] = ()) -> "pd.DataFrame":
    """The rows of a table, without the numbers of its rows. Raises `ValueError` for a file that is
    no table."""
    path = existing(file)
    if path.suffix.lower() not in FRAMES:
        raise ValueError(f"{file}: must be a table ({', '.join(FRAMES)})")
    return read_frame(path, missing=missing).drop(columns="(row)", errors="ignore")


def from_dataset(
    data: Dataset, task: str | None, groups: np.ndarray | None = None, ordered: bool = False
) -> Problem:
    """A problem from a data set. The mean image is subtracted, and every image normalised to |x|^2
    = input_dim, which removes its contrast; other arrays are treated as tables of numbers.

    groups: (example,) labels of examples that belong together. ordered: whether the examples are in
    the order of time.
    """
    task = task or _task(data.labels, data.class_names, data.name)
    chosen, targets = apply_task(data, task)
    values, classes = _in_units(data, task, chosen, targets)
    codes = None if groups is None else _numbered(groups[targets.rows])
    name = data.name.partition("/")[2] or data.name
    of_kind: dict[str, Any]
    if chosen.image_shape is not None:
        ready = normalise(centre(chosen))
        inputs = ready.inputs
        note = f"{chosen.examples} images: the mean image is subtracted, and each is normalised"
        of_kind = {"notes": (note,), "dataset": ready}
    else:
        import pandas as pd

        frame = pd.DataFrame(chosen.inputs)
        encoding = fit_encoding(frame)
        inputs = encoding(frame)
        of_kind = {"columns": encoding.columns, "encoding": encoding}
    return Problem(
        inputs, values, data.name, (name,), classes, codes, ordered, task=task, **of_kind
    )


def from_frame(
    frame: "pd.DataFrame",
    targets: Sequence[str],
    task: str | None = None,
    groups: str | None = None,
    time: str | None = None,
    name: str = "table",
) -> Problem:
    """A problem from the columns of a frame; rows without a target (or group, or time) are left
    out.

    Raises `ValueError` for several targets of which one has words, and the errors of
    `orderparam.data.columns.fit_encoding`.
    """
    aside = [column for column in (groups, time) if column is not None]
    needed = [*targets, *aside]
    if len(set(needed)) < len(needed):
        raise ValueError(f"{', '.join(needed)}: target, groups and time must be different columns")
    for column in needed:
        if frame[column].isna().all():
            raise ValueError(f"{name}: column {column!r} is empty in every row")
    complete = frame[needed].notna().all(axis=1)
    if not complete.any():
        raise ValueError(f"{name}: no row has a value in each of the columns {', '.join(needed)}")
    notes = (
        [f"{counted(int((~complete).sum()), 'row')} left out: no {' or no '.join(needed)}"]
        if not complete.all()
        else []
    )
    rows = frame[complete]
    if time is not None:
        rows = rows.iloc[np.argsort(moments(rows[time]).to_numpy(), kind="stable")]
    labels = [_labels(rows[target], target) for target in targets]
    for target, (numbers, words, _) in zip(targets, labels):
        if (numbers == numbers[0]).all():
            value = f"{numbers[0]:g}" if words is None else words[numbers[0]]
            raise ValueError(
                f"{name}: the target {target!r} is {value} in every row: there is nothing to learn"
            )
    notes += [note for *_, note in labels if note]
    title = f"{name}/{','.join(targets)}"
    if len(targets) == 1:
        values_of, class_names, _ = labels[0]
        data = Dataset(np.zeros((len(rows), 1)), values_of, title, class_names=class_names)
        task = task or _task(data.labels, data.class_names, title)
        kept, chosen = apply_task(data, task)
        values, classes = _in_units(data, task, kept, chosen)
        rows = rows.iloc[chosen.rows]
    else:
        if any(names is not None for _, names, _ in labels) or task not in (None, "regression"):
            raise ValueError(
                f"{title}: several targets must be numbers, each to be predicted (task regression)"
            )
        values, classes, task = (
            np.stack([one.astype(float) for one, *_ in labels], axis=1),
            (),
            "regression",
        )
        values = values / values.std(axis=0)
        notes.append("each target is divided by its standard deviation")
    if len(rows) < 2:
        raise ValueError(
            f"{title}: {counted(len(rows), 'row')} with a known target: there must be at least two"
        )
    inputs = rows.drop(columns=needed)
    if not len(inputs.columns):
        raise ValueError(f"{title}: there is no column besides the target")
    encoding = fit_encoding(inputs)
    codes = None if groups is None else _numbered(rows[groups])
    return Problem(
        encoding(inputs),
        values,
        title,
        tuple(targets),
        classes,
        codes,
        time is not None,
        encoding.columns,
        tuple(notes),
        encoding,
        task,
    )


def _numbered(groups: "pd.Series | np.ndarray") -> Int[np.ndarray, "example"]:
    """Groups numbered from 0."""
    return np.unique(groups.astype(str), return_inverse=True)[1]


def from_arrays(
    X: Any, y: Any, task: str | None = None, groups: Any = None, time: Any = None
) -> Problem:
    """A problem from arrays or frames: X (example, input), images (example, height, width[,
    channel]) or a data frame; y (example,) numbers or words, or (example, output) numbers.

    Raises `ValueError` for shapes that do not fit.
    """
    import pandas as pd

    if task is not None and not isinstance(task, str):
        raise ValueError(
            f"task = {task!r}: must be a word such as 'regression', 'even-odd' or '3-vs-8', or None"
        )
    for what, values in {"X": X, "y": y, "groups": groups, "time": time}.items():
        _check_rows(what, values)
    for what, values in {"groups": groups, "time": time}.items():
        if values is not None and np.ndim(values) != 1:
            raise ValueError(
                f"{what} has shape {np.shape(values)}: must be (example,), one for each example"
            )
    if np.ndim(y) not in (1, 2):
        raise ValueError(f"y has shape {np.shape(y)}: must be (example,) or (example, output)")
    if not isinstance(X, pd.DataFrame) and not np.asarray(X).ndim:
        raise ValueError(
            f"X is one {type(X).__name__}: must be an array (example, input) or a data frame; of a "
            "sparse matrix give X.toarray()"
        )
    labels = (
        y
        if isinstance(y, pd.DataFrame)
        else pd.DataFrame(np.asarray(y))
        if np.ndim(y) == 2
        else None
    )
    if not isinstance(X, pd.DataFrame) and np.ndim(X) > 2:
        return _from_images(np.asarray(X), np.asarray(y), task, groups, time)
    frame = X.copy() if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
    if not frame.index.is_unique:
        frame = frame.reset_index(drop=True)
    frame.columns = [str(name) for name in frame.columns]
    if labels is None:
        name = str(getattr(y, "name", None) or "target")
        labels = pd.DataFrame({name: np.asarray(y)})
    labels = labels.set_axis([str(name) for name in labels.columns], axis=1)
    extra = {"(groups)": groups, "(time)": time}
    for what, values in {"y": labels, **{k: v for k, v in extra.items() if v is not None}}.items():
        if len(values) != len(frame):
            raise ValueError(
                f"{what} has {len(values)} rows, X has {len(frame)}: must be one for each example"
            )
    names = {
        name: name if name not in frame.columns else f"{name} (target)" for name in labels.columns
    }
    for name, column in labels.rename(columns=names).items():
        frame[name] = column.to_numpy()
    for name, values in extra.items():
        if values is not None:
            frame[name] = np.asarray(values)
    return from_frame(
        frame,
        list(names.values()),
        task,
        "(groups)" if groups is not None else None,
        "(time)" if time is not None else None,
        "data",
    )


def _check_rows(what: str, values: Any) -> None:
    """Refuses lists in lists of unequal lengths, of which NumPy makes no array."""
    try:
        np.ndim(values)
    except ValueError as error:
        raise ValueError(f"{what} has rows of unequal lengths: must be an array") from error


def _from_images(
    images: np.ndarray, labels: np.ndarray, task: str | None, groups: Any, time: Any
) -> Problem:
    import pandas as pd

    if not images.size:
        raise ValueError(f"X has shape {images.shape}: must be images with at least one pixel")
    for what, values in {"groups": groups, "time": time}.items():
        if values is None:
            continue
        if len(values) != len(images):
            raise ValueError(
                f"{what} has {len(values)} rows, X has {len(images)}: must be one for each example"
            )
        if gaps := int(pd.isna(np.asarray(values)).sum()):
            raise ValueError(f"{what} lacks {counted(gaps, 'value')}: must be known for each image")
    if time is not None and len(labels) == len(images):
        order = np.argsort(
            moments(pd.Series(np.asarray(time), name="time")).to_numpy(), kind="stable"
        )
        images, labels = images[order], labels[order]
        groups = None if groups is None else np.asarray(groups)[order]
    check_real("y", labels)
    codes, class_names = (labels, None) if labels.dtype.kind in "biuf" else _words(labels)
    flat = images.reshape(len(images), -1)
    data = Dataset(flat, codes, "images", images.shape[1:], class_names)
    return from_dataset(
        data, task, None if groups is None else np.asarray(groups), time is not None
    )


def _labels(column: "pd.Series", name: str) -> tuple[np.ndarray, tuple[str, ...] | None, str]:
    """A target column as numbers, or as classes with their names; and a sentence on how it was
    changed, "" if it was not.

    Words are numbers where nine tenths of them are; a cell that is not a number then raises
    `ValueError`, because no target is made up.
    """
    import pandas as pd

    values: Any
    if column.dtype.kind in "cO" and not isinstance(column.dtype, pd.CategoricalDtype):
        check_real(f"target {name!r}", column)
    if pd.api.types.is_bool_dtype(column.dtype):
        return column.astype(int).to_numpy(), ("no", "yes"), ""
    if pd.api.types.is_numeric_dtype(column.dtype) and not isinstance(
        column.dtype, pd.CategoricalDtype
    ):
        values = column.to_numpy(np.float64)
        if not np.isfinite(values).all():
            raise ValueError(
                f"target {name!r} holds {values[~np.isfinite(values)][0]}: must be finite"
            )
        return (
            (values.astype(np.int64) if pd.api.types.is_integer_dtype(column.dtype) else values),
            None,
            "",
        )
    words = column.astype(str)
    try:
        how = numbers_of(words)
    except ValueError as error:
        raise ValueError(f"target {name!r} {error}") from None
    values = words if how is None else how.read(words)
    if how is not None and (bad := values.isna()).mean() <= 1 - MOST:
        if bad.any():
            place, word = f"{column.index.name or 'row'} {words.index[bad][0]}", words[bad].iloc[0]
            raise ValueError(
                f"target {name!r}: {place} holds {word!r}, which is no number: mend it, leave the "
                f"row out, or give --missing {word!r}"
            )
        return (
            values.to_numpy(np.float64),
            None,
            f"{name}: {how.description}, {words.iloc[0]!r} as {values.iloc[0]:g}"
            if how.description
            else "",
        )
    return *_words(words.to_numpy(dtype=str)), ""


def target_values(problem: Problem, column: "pd.Series") -> Float[np.ndarray, "row output"]:
    """Targets of new rows in the form of `Problem.values`, nan where they are not known. Raises
    `ValueError` for a class that the problem does not have."""
    labelled = column.notna().to_numpy()
    found = np.full((len(column), problem.values.shape[1]), np.nan)
    if not labelled.any():
        return found
    values, names, _ = _labels(column[labelled], str(column.name))
    if not problem.classes:
        if names is not None:
            raise ValueError(f"target {str(column.name)!r} holds words, such as {names[0]!r}")
        found[labelled, 0] = values
        return found
    words = [str(value) if names is None else names[value] for value in values]
    codes = codes_of(problem.values)
    forms = {name: problem.values[codes == code][0] for code, name in enumerate(problem.classes)}
    if foreign := sorted(set(words) - set(forms)):
        raise ValueError(
            f"target {str(column.name)!r} holds {foreign[0]!r}: must be one of "
            f"{', '.join(problem.classes)}"
        )
    found[labelled] = [forms[word] for word in words]
    return found


def codes_of(values: Float[np.ndarray, "example output"]) -> Int[np.ndarray, "example"]:
    """The class of each example, counted as in `Problem.classes`."""
    return (values[:, 0] > 0).astype(int) if values.shape[1] == 1 else np.argmax(values, axis=1)


def _words(words: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    names, codes = np.unique(words.astype(str), return_inverse=True)
    return codes, tuple(names.tolist())


def _task(labels: np.ndarray, class_names: Sequence[str] | None, name: str) -> str:
    classes = np.unique(labels)
    if class_names is not None and 2 * len(classes) > len(labels):
        raise ValueError(
            f"{name}: {len(classes)} different words in {len(labels)} rows, such as "
            f"{class_names[0]!r}: a class needs several examples; a number must be written without "
            "its unit"
        )
    if labels.dtype.kind == "f" or (class_names is None and len(classes) > MOST_CLASSES):
        return "regression"
    names = class_names or classes.tolist()
    return f"{names[1]}-vs-{names[0]}" if len(classes) == 2 else "one-hot-zero-mean"


def _in_units(
    data: Dataset, task: str, kept: Dataset, targets: Any
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Targets in the units of the file, with one column for each output, and the names of the
    classes."""
    values = (targets.offset + targets.scale * targets.values).reshape(len(targets.rows), -1)
    if task == "regression":
        return values, ()
    if values.shape[1] == 1:
        first, _, second = task.partition("-vs-")
        return values, (second or "odd", first if second else "even")
    present = np.unique(kept.labels)
    return values, tuple(str(data.class_names[c] if data.class_names else c) for c in present)
