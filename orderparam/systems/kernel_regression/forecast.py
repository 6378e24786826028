"""A learning curve before it is measured: what more data, or less, would do for a kernel or a wide network on given data."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float

from orderparam.core.folder import write_folder
from orderparam.core.sweep import sweep
from orderparam.data import (
    DATASETS,
    Dataset,
    Targets,
    apply_task,
    centre,
    load,
    load_file,
    normalise,
    standardise_columns,
)
from orderparam.kernels.extrapolation import Continued, continue_eigenvalues, fit_target
from orderparam.kernels.gp import Spectral, diagonalise
from orderparam.kernels.spectrum import Spectrum
from orderparam.systems.kernel_regression.pool.experiment import gp_regression
from orderparam.systems.kernel_regression.pool.model import PoolRegression
from orderparam.systems.kernel_regression.spectrum.model import KernelRegression
from orderparam.systems.kernel_regression.spectrum.theory.self_consistent import self_consistent

LARGEST_POOL = 1500  # more data are thinned out: an eigendecomposition of this size takes a second
REPLICAS = 12  # resampled fits that give the interval


@dataclass(frozen=True)
class Forecast:
    """What `forecast` found. Errors are mean squares per example, of the posterior mean, against the labels as they are.

    predicted: data set over `n_train` (up to 100 times the data): test_error, lower, upper (95 % interval), effective_dimension.
    measured: held-out error of random subsets, over (n_train, seed).
    temperature: ridge added to the Gram matrix; `best_temperature`: the one with the smallest leave-one-out error on all data.
    exponent: beta in error ~ n^-beta, the mean slope between the size of the data and ten times that, with its 95 % interval.
    floor: part of the error that no amount of data removes with this kernel: the label noise of largest evidence.
    effective_dimension: modes of the kernel that all the data determine.
    deviation: root mean square relative deviation of the prediction from the measured points.
    """

    predicted: xr.Dataset
    measured: xr.Dataset
    examples: int
    temperature: float
    best_temperature: float
    leave_one_out: float
    exponent: float
    exponent_interval: tuple[float, float]
    floor: float
    effective_dimension: float
    deviation: float
    capacity: float
    source: float

    def at(self, n_train: float) -> tuple[float, float, float]:
        """Predicted error at a training-set size, with its interval."""
        row = self.predicted.interp(n_train=n_train)
        return float(row["test_error"]), float(row["lower"]), float(row["upper"])


def user_pool(file: str, target: str | None, task: str | None) -> tuple[Dataset, Targets]:
    """A user's file, or a standard data set by name, ready for a kernel: inputs and targets, in random order.

    Without a task: real targets are standardised, two classes become ±1, more classes one-hot with zero mean. Images (and other
    inputs of one unit) are centred and normalised to |x|^2 = input_dim each, contrast being no part of what they show; tables are
    standardised column by column and no more, because the length of a row does carry information.
    Raises `ValueError` as the functions of `orderparam.data` do, and for words that hardly ever occur twice: no classes.
    """
    data = load(file) if file in DATASETS and target is None else load_file(file, target)
    if task is None:
        classes = np.unique(data.labels)
        if data.class_names is not None and 2 * len(classes) > data.examples:
            raise ValueError(
                f"{data.name}: {len(classes)} different words in {data.examples} rows, such as {data.class_names[0]!r}: "
                "classes must have several examples each; a number is written without its unit"
            )
        if data.labels.dtype.kind == "f" or (data.class_names is None and len(classes) > 20):
            task = "regression"
        else:
            names = data.class_names or classes.tolist()
            task = f"{names[1]}-vs-{names[0]}" if len(classes) == 2 else "one-hot-zero-mean"
    chosen, targets = apply_task(data, task)
    prepared = normalise(centre(chosen)) if chosen.image_shape is not None else standardise_columns(chosen)
    order = np.random.default_rng(0).permutation(chosen.examples)
    shuffled = dataclasses.replace(targets, name=task, rows=targets.rows[order], values=targets.values[order])
    return prepared.take(order), shuffled


def forecast(
    inputs: Float[np.ndarray, "example *input"],
    targets: Float[np.ndarray, "example *output"],
    kernel: Callable[[jax.Array], jax.Array],
    *,
    temperature: float | None = None,
    seeds: int = 8,
    reach: float = 100.0,
    progress: bool | None = None,
) -> Forecast:
    """Predicts the learning curve of Gaussian-process regression with `kernel` from the data at hand.

    The kernel's spectrum on the data is continued beyond the modes that the data resolve, the target's by the power law that
    explains the measured held-out errors (`orderparam.kernels.extrapolation`) above the most likely label noise
    (`Spectral.most_likely_noise`); the self-consistent theory then gives the error for any number of examples up to `reach`
    times the data. The interval (95 %, normal) is the spread over fits to random halves of the data and resampled measurements,
    together with the misfit of the theory at the measured points.

    kernel: inputs -> kernel matrix. temperature: None takes the best one by leave-one-out. Raises `ValueError` for fewer than 100
    examples, and where a kernel cannot be continued.
    """
    count = len(inputs)
    if count < 100:
        raise ValueError(f"{count} examples: a forecast needs at least 100")
    order = np.random.default_rng(0).permutation(count)[:LARGEST_POOL]
    matrix = jnp.asarray(kernel(jnp.asarray(inputs)[order]))
    labels = jnp.asarray(targets, float).reshape(count, -1)[order]
    parts = _by_output(matrix, labels)
    best, loo = _best_temperature(parts)
    chosen = best if temperature is None else float(temperature)
    pool = PoolRegression.from_kernel(matrix, labels, n_train=10, temperature=chosen)
    size = len(order)
    sizes = np.unique(np.geomspace(10, 0.8 * size, 7).astype(int))
    measured = sweep(gp_regression, pool, {"n_train": sizes.tolist()}, seeds=seeds, progress=progress)
    errors = measured["test_error"].values
    mean = errors.mean(axis=1)
    grid = np.unique(np.concatenate([np.geomspace(10, reach * count, 60), [count, 10 * count], sizes]).astype(float))
    law = _Law(pool.spectrum, _noise(parts), sizes, mean, chosen, grid, count)
    rng = np.random.default_rng(1)
    others = []
    for _ in range(REPLICAS):
        half = rng.permutation(size)[: size // 2]
        part, values = matrix[np.ix_(half, half)], labels[half]
        again = errors[:, rng.integers(seeds, size=seeds)].mean(axis=1)
        others.append(_Law(Spectrum.from_pool(part, values), _noise(_by_output(part, values)), sizes, again, chosen, grid, count))
    spread = np.sqrt(np.mean([np.log(other.error / law.error) ** 2 for other in others], axis=0))
    deviation = float(np.sqrt(np.mean((mean / np.interp(sizes, grid, law.error) - 1) ** 2)))
    width = 1.96 * np.hypot(spread, deviation)
    upper = law.error * np.exp(width)
    if temperature is None:
        upper = np.minimum.accumulate(upper)  # with the best ridge, more data do no harm
    predicted = xr.Dataset(
        {
            "test_error": ("n_train", law.error),
            "lower": ("n_train", law.error * np.exp(-width)),
            "upper": ("n_train", upper),
            "effective_dimension": ("n_train", law.dimension),
        },
        {"n_train": grid},
    )
    error = 1.96 * float(np.sqrt(np.mean([(other.exponent - law.exponent) ** 2 for other in others])))
    return Forecast(
        predicted,
        measured,
        count,
        chosen,
        best,
        loo,
        law.exponent,
        (law.exponent - error, law.exponent + error),
        law.fit.noise,
        float(np.interp(count, grid, law.dimension)),
        deviation,
        law.fit.capacity,
        law.fit.source,
    )


class _Law:
    """The target's power law, fitted to measured errors, with the learning curve that follows from it."""

    def __init__(
        self,
        pool: Spectrum,
        noise: float,
        sizes: np.ndarray,
        errors: np.ndarray,
        temperature: float,
        grid: np.ndarray,
        count: int,
    ):
        continued, capacity = continue_eigenvalues(pool)
        self.fit = fit_target(continued, capacity, pool, sizes, errors, temperature, noise)
        self.error, self.dimension = _curve(self.fit, temperature, grid)
        self.exponent = _exponent(grid, self.error, count)


def _curve(continued: Continued, temperature: float, n_train: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Error against labels as they are (noise included), and effective dimension."""
    system = KernelRegression(continued.spectrum, 1.0, temperature, continued.noise)
    curve = jax.vmap(lambda n: self_consistent(system.with_(n_train=n)))(jnp.asarray(n_train))
    return np.asarray(curve.test_error) + continued.noise, np.asarray(curve.effective_dimension)


def _exponent(n_train: np.ndarray, error: np.ndarray, count: int) -> float:
    """Mean logarithmic slope of the error over the decade that follows the data."""
    first, last = np.interp(np.log([count, 10 * count]), np.log(n_train), np.log(error))
    return float((first - last) / np.log(10))


def _by_output(matrix: Float[jax.Array, "example example"], labels: Float[jax.Array, "example output"]) -> list[Spectral]:
    """The kernel in its eigenbasis with each output in turn, from one eigendecomposition."""
    first = diagonalise(matrix, labels[:, 0])
    return [dataclasses.replace(first, targets=labels[:, i]) for i in range(labels.shape[1])]


def _noise(parts: list[Spectral]) -> float:
    return float(sum(part.most_likely_noise() for part in parts))


def _best_temperature(parts: list[Spectral]) -> tuple[float, float]:
    """The ridge with the smallest leave-one-out error on all the data, and that error."""
    largest = float(parts[0].eigenvalues[-1])
    grid = jnp.geomspace(1e-10 * largest, 10 * largest, 200)
    squares = [jax.vmap(lambda t, part=part: jnp.mean(part.leave_one_out(t) ** 2))(grid) for part in parts]
    errors = jnp.sum(jnp.stack(squares), axis=0)
    best = int(jnp.nanargmin(errors))
    return float(grid[best]), float(errors[best])


def draw_forecast(result: Forecast, title: str) -> Any:
    """Predicted error with its interval, and the measured points it was checked against."""
    from orderparam.plotting import Panel, figure_of, horizontal, house_style, labelled, vertical
    from orderparam.plotting.style import COLOURS

    data, (low, high) = result.predicted, result.exponent_interval
    guides = [vertical(result.examples, "your data")]
    if result.floor > 0 and result.floor > 0.02 * float(data["test_error"].min()):
        guides.append(horizontal(result.floor, "floor (most likely label noise)"))
    with house_style():
        figure = figure_of(
            labelled({"predicted (95 % interval)": data, "measured, held out": result.measured}),
            [Panel("n_train", "test_error", log="xy", reference=guides)],
            title=title,
            caption=f"Ridge {result.temperature:.3g}. The error falls as $n^{{-{result.exponent:.2f}}}$ ({low:.2f} to {high:.2f})"
            f" over the next decade of data. Prediction against measurement: {100 * result.deviation:.1f} % root mean square.",
        )
        figure.axes[0].fill_between(data["n_train"], data["lower"], data["upper"], color=COLOURS[0], alpha=0.18, linewidth=0)
        return figure


def save_forecast(result: Forecast, out: Path, title: str, settings: dict[str, Any]) -> None:
    """Figure, predicted and measured curve, and summary in a new folder, see `orderparam.core.folder`."""
    data = {"predicted": result.predicted, "measured": result.measured}
    values = {f.name: getattr(result, f.name) for f in dataclasses.fields(result) if f.name not in data}
    write_folder(out, data, lambda: draw_forecast(result, title), {**settings, **values})
