"""Preprocessing of inputs: centring, the sphere, standardisation. Each step maps a data set to a
data set.

The convention of learning curves for kernels on real data: the pool of examples is the probability
measure of the theory, so the mean is taken over the whole pool, and then every example is put on
the sphere |x|^2 = input_dim:

    pool, targets = apply_task(load("mnist"), "3-vs-8")
    pool = normalise(centre(pool))

Scaling the pixels before does not matter there: it drops out. Statistics come from the data set
itself, or, for examples outside the pool, from the pool with which they are compared: `centre(test,
pool=train)`.
"""

import dataclasses

import numpy as np
from jaxtyping import Float

from orderparam.data.dataset import Dataset


def _pool(dataset: Dataset, pool: Dataset | None) -> Dataset:
    if pool is None:
        return dataset
    if pool.input_dim != dataset.input_dim:
        raise ValueError(
            f"pool.input_dim = {pool.input_dim}: must be {dataset.input_dim}, the data set's own"
        )
    return pool


def _mean(inputs: Float[np.ndarray, "examples input_dim"]) -> Float[np.ndarray, "input_dim"]:
    """Mean of every column; exact where a column never changes, which the rounded sum would miss by
    an ulp."""
    return np.where(inputs.min(0) == inputs.max(0), inputs[0], inputs.mean(0))


def centre(dataset: Dataset, pool: Dataset | None = None) -> Dataset:
    """x -> x - mean of x over the pool (by default over the data set itself): every column gets
    mean zero."""
    return dataclasses.replace(dataset, inputs=dataset.inputs - _mean(_pool(dataset, pool).inputs))


def normalise(dataset: Dataset) -> Dataset:
    """x -> sqrt(input_dim) x / |x|: every example on the sphere |x|^2 = input_dim, where a
    coordinate is of order one.

    Raises `ValueError` naming the rows without a direction: those with |x| below 1e-12 of the
    longest.
    """
    size = np.abs(dataset.inputs).max() or 1.0  # squares neither overflow nor underflow
    norms = size * np.linalg.norm(dataset.inputs / size, axis=1)
    zero = np.flatnonzero(norms <= 1e-12 * norms.max())
    if zero.size:
        listed = ", ".join(map(str, zero[:10])) + (", …" if zero.size > 10 else "")
        raise ValueError(
            f"|x| = 0, so no direction, in rows {listed}: leave them out, or do not centre before"
        )
    return dataclasses.replace(
        dataset, inputs=dataset.inputs * (np.sqrt(dataset.input_dim) / norms)[:, None]
    )


def scale_pixels(dataset: Dataset, largest: float = 255.0) -> Dataset:
    """x -> x / largest, for images in a user's own file (`load` has done it). Raises `ValueError`
    unless 0 <= x <= largest."""
    low, high = dataset.inputs.min(), dataset.inputs.max()
    if not (np.isfinite(largest) and largest > 0 and low >= 0 and high <= largest):
        raise ValueError(
            f"largest = {largest}: all pixels must lie in 0..largest, but they reach "
            f"{low:g}..{high:g}"
        )
    return dataclasses.replace(dataset, inputs=dataset.inputs / largest)


def standardise(
    dataset: Dataset,
    pool: Dataset | None = None,
    *,
    mean: float | None = None,
    deviation: float | None = None,
) -> Dataset:
    """x -> (x - mean) / deviation with one mean and one standard deviation for all columns, as is
    usual for images.

    mean, deviation: by default the mean and the deviation of all entries of the pool (by default
    the data set itself;
        divisor: number of entries). MNIST's usual fixed values, for pixels in [0, 1], are 0.1307
        and 0.3081.
    Applied after `centre` it sets the mean of |x|^2 over the pool to input_dim.
    Raises `ValueError` for a deviation that is not positive, so for inputs that never change.
    """
    inputs = _pool(dataset, pool).inputs
    constant = inputs.min() == inputs.max()
    shift = float(inputs.mean()) if mean is None else mean
    scale = (0.0 if constant else float(inputs.std())) if deviation is None else deviation
    if not (np.isfinite(scale) and scale > 0 and np.isfinite(shift)):
        raise ValueError(
            f"deviation = {scale}, mean = {shift}: must be finite, the deviation positive"
        )
    return dataclasses.replace(dataset, inputs=(dataset.inputs - shift) / scale)


def standardise_columns(dataset: Dataset, pool: Dataset | None = None) -> Dataset:
    """x_i -> (x_i - mean_i) / deviation_i for every column i, as is usual for tables.

    mean_i and deviation_i are taken over the pool (by default the data set itself; divisor:
    examples). A column that never changes in the pool becomes zero, so that `input_dim` and the
    meaning of every column stay what they were. Raises `ValueError` when no column changes.
    """
    inputs = _pool(dataset, pool).inputs
    constant = inputs.min(0) == inputs.max(0)
    if constant.all():
        raise ValueError("inputs: no column changes from example to example")
    # a power of 2: squares neither overflow nor underflow
    size = np.ldexp(1.0, np.frexp(np.abs(inputs).max(0))[1] - 1)
    deviation = np.where(constant, 1.0, (inputs / size).std(0))
    standardised = np.where(
        constant, 0.0, (dataset.inputs / size - _mean(inputs / size)) / deviation
    )
    return dataclasses.replace(dataset, inputs=standardised)
