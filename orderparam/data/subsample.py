"""Random subsets of a data set, which are the same on every machine for the same key."""

import jax
import numpy as np
from jaxtyping import Array, Key

from orderparam.data.dataset import Dataset


def _generator(key: Key[Array, ""] | int) -> np.random.Generator:
    """NumPy's generator from a JAX key or a whole number: choosing rows needs no device and no
    compilation."""
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        if key < 0:
            raise ValueError(f"key = {key}: must be a JAX key or a whole number of at least 0")
        return np.random.default_rng(int(key))
    if (
        isinstance(key, jax.Array)
        and jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key)
        and key.ndim == 0
    ):
        return np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
    raise ValueError(f"key = {key!r}: must be a JAX key or a whole number of at least 0")


def subsample(
    dataset: Dataset, count: int, key: Key[Array, ""] | int = 0, *, balanced: bool = False
) -> Dataset:
    """`count` different examples, drawn uniformly without replacement, in random order.

    key: a JAX key or a whole number; the same key draws the same examples. balanced: draw equally
    many of every class (their numbers differ by at most one, the larger ones chosen at random).

    Raises `ValueError` for a count that does not fit, real labels with `balanced`, or a class with
    too few examples.
    """
    if isinstance(count, bool) or int(count) != count or not 1 <= count <= dataset.examples:
        raise ValueError(
            f"count = {count}: must be a whole number from 1 to {dataset.examples} (the examples)"
        )
    generator = _generator(key)
    if not balanced:
        return dataset.take(generator.choice(dataset.examples, int(count), replace=False))
    if dataset.labels.dtype.kind == "f":
        raise ValueError("balanced = True: the labels are real numbers, not classes")
    classes = np.unique(dataset.labels)
    share, extra = divmod(int(count), len(classes))
    wanted = np.full(len(classes), share)
    wanted[generator.choice(len(classes), extra, replace=False)] += 1
    rows = []
    for label, number in zip(classes, wanted):
        members = np.flatnonzero(dataset.labels == label)
        if len(members) < number:
            name = label if dataset.class_names is None else dataset.class_names[label]
            raise ValueError(
                f"count = {count}: equal shares need {number} of class {name}, which has "
                f"{len(members)}"
            )
        rows.append(generator.choice(members, number, replace=False))
    return dataset.take(generator.permutation(np.concatenate(rows)))
