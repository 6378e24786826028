"""A data set: examples as rows, with one label each. Every loader returns one, and every
preprocessing step maps one to another."""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

EXACT_INTEGERS = 2**53  # float64 represents every whole number up to this one exactly


def real_array(name: str, values: Any) -> np.ndarray:
    """`values` as float64 of the same shape; raises `ValueError` naming the entry that is not an
    exact, finite real number."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} has dtype {array.dtype}: must be real numbers")
    if (
        array.dtype.kind in "iu"
        and array.size
        and max(int(array.max()), -int(array.min())) > EXACT_INTEGERS
    ):
        largest = max((int(array.max()), int(array.min())), key=abs)
        raise ValueError(
            f"{name} holds {largest}: whole numbers beyond 2^53 are not exact in float64"
        )
    # an extended-precision number too large for float64 becomes inf, refused next
    with np.errstate(over="ignore"):
        array = array.astype(np.float64, copy=False)
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name}[{', '.join(map(str, where))}] = {array[where]}: must be finite")
    return array


def label_array(name: str, values: Any) -> np.ndarray:
    """Labels as int64 (booleans and integers: classes or counts) or float64 (real targets), one per
    example."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(
            f"{name} has shape {array.shape}: must be one label per example, shape (examples,)"
        )
    real = real_array(name, array)
    return real if array.dtype.kind == "f" else array.astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Examples x_mu, mu = 1..examples, with labels. Frozen: arrays are not copied, and cannot be
    changed through it.

    inputs: float64 (examples, input_dim). An image is one row, flattened in the order (height,
    width[, channel]).
    labels: int64 (examples,), the class of each example or any whole number; or float64
        (examples,), a real target. `orderparam.data.apply_task` turns them into the targets y of a
        learning problem.
    name: what the data are, shown in tables and figures.
    image_shape: (height, width) or (height, width, channels) when the rows are images.
    class_names: name of class 0, 1, ..; labels are then indices into it.

    Raises `ValueError` for inputs that are not a non-empty matrix of finite real numbers, for
    labels that do not fit them, and for an `image_shape` or `class_names` that does not fit.
    """

    inputs: Float[np.ndarray, "examples input_dim"]
    labels: Int[np.ndarray, "examples"] | Float[np.ndarray, "examples"]
    name: str = "data"
    image_shape: tuple[int, ...] | None = None
    class_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        shape = np.shape(self.inputs)
        if len(shape) != 2 or 0 in shape:
            raise ValueError(
                f"inputs has shape {shape}: must be (examples, input_dim), both at least 1"
            )
        inputs, labels = real_array("inputs", self.inputs), label_array("labels", self.labels)
        if len(labels) != len(inputs):
            raise ValueError(
                f"labels has {len(labels)} entries for {len(inputs)} examples: must be one per "
                "example"
            )
        image_shape = (
            None if self.image_shape is None else tuple(int(side) for side in self.image_shape)
        )
        if image_shape is not None and (
            len(image_shape) not in (2, 3) or math.prod(image_shape) != inputs.shape[1]
        ):
            raise ValueError(
                f"image_shape = {image_shape}: must be (height, width) or (height, width, "
                f"channels) with product input_dim = {inputs.shape[1]}"
            )
        names = None if self.class_names is None else tuple(str(name) for name in self.class_names)
        if names is not None:
            if labels.dtype.kind == "f":
                raise ValueError(
                    "class_names are given but labels are real numbers: must be integer classes"
                )
            if labels.min() < 0 or labels.max() >= len(names):
                outside = labels[(labels < 0) | (labels >= len(names))][0]
                raise ValueError(
                    f"labels holds {outside}: must be 0..{len(names) - 1}, an index into "
                    "class_names"
                )
            if len(set(names)) < len(names):
                raise ValueError(f"class_names = {names}: must all be different")
        for field, value in {
            "inputs": inputs,
            "labels": labels,
            "image_shape": image_shape,
            "class_names": names,
        }.items():
            if isinstance(value, np.ndarray):
                value = value.view()
                value.flags.writeable = False
            object.__setattr__(self, field, value)

    @property
    def examples(self) -> int:
        return self.inputs.shape[0]

    @property
    def input_dim(self) -> int:
        return self.inputs.shape[1]

    def take(self, rows: slice | Sequence[int] | np.ndarray) -> "Dataset":
        """The data set of these rows, in this order: a slice, row numbers, or a mask. Raises
        `ValueError` if no row is left."""
        selected = rows if isinstance(rows, slice) else np.asarray(rows)
        try:
            inputs, labels = self.inputs[selected], self.labels[selected]
        except IndexError as error:
            raise ValueError(f"rows: {error} (the data set has {self.examples} examples)") from None
        return dataclasses.replace(self, inputs=inputs, labels=labels)

    def __repr__(self) -> str:
        x = self.inputs
        image = (
            "" if self.image_shape is None else f", images {' x '.join(map(str, self.image_shape))}"
        )
        norm = np.einsum("ij,ij->", x, x) / self.examples
        return "\n".join(
            [
                f"Dataset {self.name}",
                f"  inputs  {self.examples} examples x {self.input_dim}{image}",
                f"          from {x.min():.4g} to {x.max():.4g}, mean |x|^2 = {norm:.4g}",
                f"  labels  {self._describe_labels()}",
            ]
        )

    def _describe_labels(self, shown: int = 10) -> str:
        y = self.labels
        if y.dtype.kind == "f":
            return (
                f"real, from {y.min():.4g} to {y.max():.4g}, mean {y.mean():.4g}, standard "
                f"deviation {y.std():.4g}"
            )
        classes, counts = np.unique(y, return_counts=True)
        names = [str(c) if self.class_names is None else self.class_names[c] for c in classes]
        listed = ", ".join(f"{name}: {count}" for name, count in zip(names[:shown], counts))
        return f"{len(classes)} classes ({listed}{', …' if len(classes) > shown else ''})"
