"""A learning curve before it is measured: what more data, or less, would do for a kernel or a wide network on given data."""

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from orderparam.core.store import StoreError
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
from orderparam.kernels.gp import diagonalise
from orderparam.kernels.spectrum import Spectrum
from orderparam.systems.kernel_regression.experiment import gp_regression
from orderparam.systems.kernel_regression.model import KernelRegression, PoolRegression
from orderparam.systems.kernel_regression.theory import LearningCurve, self_consistent

LARGEST_POOL = 1500  # more data are thinned out: an eigendecomposition of this size takes a second
REPLICAS = 12  # resampled fits that give the interval


@dataclass(frozen=True)
class Forecast:
    """What `forecast` found. Errors are mean squares per example, of the posterior mean, against the labels as they are.

    predicted: data set over `n_train` (up to 100 times the data): test_error, lower, upper (95 % interval), effective_dimension.
    measured: held-out error of random subsets, over (n_train, seed).
    temperature: ridge added to the Gram matrix; `best_temperature`: the one with the smallest leave-one-out error on all data.
    exponent: beta in error ~ n^-beta, the mean slope between the size of the data and ten times that, with its 95 % interval.
    floor: part of the error that no amount of data removes with this kernel (label noise, as fitted).
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
    inputs of one unit) are centred, tables standardised column by column; every input is then normalised to |x|^2 = input_dim.
    Raises `ValueError` as the functions of `orderparam.data` do.
    """
    data = load(file) if file in DATASETS and target is None else load_file(file, target)
    if task is None:
        classes = np.unique(data.labels)
        if data.labels.dtype.kind == "f" or (data.class_names is None and len(classes) > 20):
            task = "regression"
        else:
            names = data.class_names or classes.tolist()
            task = f"{names[1]}-vs-{names[0]}" if len(classes) == 2 else "one-hot-zero-mean"
    chosen, targets = apply_task(data, task)
    prepared = centre(chosen) if chosen.image_shape is not None else standardise_columns(chosen)
    order = np.random.default_rng(0).permutation(chosen.examples)
    shuffled = dataclasses.replace(targets, name=task, rows=targets.rows[order], values=targets.values[order])
    return normalise(prepared).take(order), shuffled


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
    explains the measured held-out errors (`orderparam.kernels.extrapolation`); the self-consistent theory then gives the error
    for any number of examples up to `reach` times the data. The interval (95 %, normal) is the spread over fits to the spectra of
    random halves of the data and resampled measurements, together with the misfit of the theory at the measured points.

    kernel: inputs -> kernel matrix. temperature: None takes the best one by leave-one-out. Raises `ValueError` for fewer than 100
    examples, and where a kernel cannot be continued.
    """
    count = len(inputs)
    if count < 100:
        raise ValueError(f"{count} examples: a forecast needs at least 100")
    order = np.random.default_rng(0).permutation(count)[:LARGEST_POOL]
    matrix = jnp.asarray(kernel(jnp.asarray(inputs)[order]))
    labels = jnp.asarray(targets, float).reshape(count, -1)[order]
    best, loo = best_temperature(matrix, labels)
    chosen = best if temperature is None else float(temperature)
    pool = PoolRegression.from_kernel(matrix, labels, n_train=10, temperature=chosen)
    size = len(order)
    sizes = np.unique(np.geomspace(10, 0.8 * size, 7).astype(int))
    measured = sweep(gp_regression, pool, {"n_train": sizes.tolist()}, seeds=seeds, progress=progress)
    errors = measured["test_error"].values
    mean = errors.mean(axis=1)
    grid = np.unique(np.concatenate([np.geomspace(10, reach * count, 60), [count, 10 * count], sizes]).astype(float))
    rng = np.random.default_rng(1)
    replicas = []
    for _ in range(REPLICAS):
        half = rng.permutation(size)[: size // 2]
        spectrum = Spectrum.from_pool(matrix[np.ix_(half, half)], labels[half])
        replicas.append((spectrum, errors[:, rng.integers(seeds, size=seeds)].mean(axis=1)))
    laws = [_Law(pool.spectrum, replicas, sizes, mean, chosen, grid, count, floor) for floor in (False, True)]
    # The simpler law unless a floor halves the misfit; the interval covers every law that fits about as well.
    main = laws[1] if laws[1].fit.misfit < 0.5 * laws[0].fit.misfit else laws[0]
    admitted = [law for law in laws if law.fit.misfit < 2 * main.fit.misfit]
    upper = np.max([law.upper for law in admitted], axis=0)
    if temperature is None:
        upper = np.minimum.accumulate(upper)  # with the best ridge, more data do no harm
    predicted = xr.Dataset(
        {
            "test_error": ("n_train", main.error),
            "lower": ("n_train", np.min([law.lower for law in admitted], axis=0)),
            "upper": ("n_train", upper),
            "effective_dimension": ("n_train", main.dimension),
        },
        {"n_train": grid},
    )
    return Forecast(
        predicted,
        measured,
        count,
        chosen,
        best,
        loo,
        main.exponent,
        (min(law.exponents[0] for law in admitted), max(law.exponents[1] for law in admitted)),
        main.fit.noise,
        float(np.interp(count, grid, main.dimension)),
        main.deviation,
        main.fit.capacity,
        main.fit.source,
    )


class _Law:
    """One form of the target's power law (with or without a floor), fitted, with its 95 % interval."""

    def __init__(
        self,
        pool: Spectrum,
        replicas: list[tuple[Spectrum, np.ndarray]],
        sizes: np.ndarray,
        errors: np.ndarray,
        temperature: float,
        grid: np.ndarray,
        count: int,
        floor: bool,
    ):
        self.fit = _fit(pool, sizes, errors, temperature, floor)
        self.error, self.dimension = _curve(self.fit, temperature, grid)
        others = [_curve(_fit(p, sizes, e, temperature, floor), temperature, grid)[0] for p, e in replicas]
        spread = np.sqrt(np.mean((np.log(others) - np.log(self.error)) ** 2, axis=0))
        self.deviation = float(np.sqrt(np.mean((errors / np.interp(sizes, grid, self.error) - 1) ** 2)))
        width = 1.96 * np.hypot(spread, self.deviation)
        self.lower, self.upper = self.error * np.exp(-width), self.error * np.exp(width)
        self.exponent = _exponent(grid, self.error, count)
        error = 1.96 * float(np.sqrt(np.mean([(_exponent(grid, other, count) - self.exponent) ** 2 for other in others])))
        self.exponents = (self.exponent - error, self.exponent + error)


def _fit(pool: Spectrum, sizes: np.ndarray, errors: np.ndarray, temperature: float, floor: bool) -> Continued:
    continued, capacity = continue_eigenvalues(pool)
    return fit_target(continued, capacity, pool, sizes, errors, temperature, floor)


def _curve(continued: Continued, temperature: float, n_train: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Error against labels as they are (noise included), and effective dimension."""
    curve = _batched(KernelRegression(continued.spectrum, 1.0, temperature, continued.noise), jnp.asarray(n_train))
    return np.asarray(curve.test_error) + continued.noise, np.asarray(curve.effective_dimension)


@eqx.filter_jit
def _batched(system: KernelRegression, n_train: Float[Array, "size"]) -> LearningCurve:
    return jax.vmap(lambda n: self_consistent(system.with_(n_train=n)))(n_train)


def _exponent(n_train: np.ndarray, error: np.ndarray, count: int) -> float:
    """Mean logarithmic slope of the error over the decade that follows the data."""
    first, last = np.interp(np.log([count, 10 * count]), np.log(n_train), np.log(error))
    return float((first - last) / np.log(10))


def best_temperature(
    matrix: Float[jax.Array, "example example"], labels: Float[jax.Array, "example output"]
) -> tuple[float, float]:
    """The ridge with the smallest leave-one-out error on all the data, and that error; one eigendecomposition for all ridges."""
    parts = [diagonalise(matrix, labels[:, 0])]
    parts += [dataclasses.replace(parts[0], targets=labels[:, i]) for i in range(1, labels.shape[1])]
    largest = float(parts[0].eigenvalues[-1])
    grid = jnp.geomspace(1e-10 * largest, 10 * largest, 200)
    squares = [jax.vmap(lambda t, part=part: jnp.mean(part.leave_one_out(t) ** 2))(grid) for part in parts]
    errors = jnp.sum(jnp.stack(squares), axis=0)
    best = int(jnp.nanargmin(errors))
    return float(grid[best]), float(errors[best])


def draw_forecast(result: Forecast, title: str) -> Any:
    """Predicted error with its interval, and the measured points it was checked against."""
    import matplotlib.pyplot as plt

    from orderparam.plotting import house_style
    from orderparam.plotting.curves import caption, draw_dots, words
    from orderparam.plotting.style import COLOURS

    with house_style():
        figure, axes = plt.subplots(figsize=(5.2, 3.9))
        data = result.predicted
        axes.fill_between(data["n_train"], data["lower"], data["upper"], color=COLOURS[0], alpha=0.18, linewidth=0)
        axes.plot(data["n_train"], data["test_error"], color=COLOURS[0], label="predicted (95 % interval)")
        draw_dots(axes, result.measured, "n_train", "test_error", 0, "measured, held out")
        axes.axvline(result.examples, color="0.5", linewidth=0.8, linestyle=":")
        axes.annotate("your data", (result.examples, 1), (3, -3), xycoords=("data", "axes fraction"),
                      textcoords="offset points", va="top", fontsize=8, color="0.4")  # fmt: skip
        if result.floor > 0 and result.floor > 0.02 * float(data["test_error"].min()):
            axes.axhline(result.floor, color="0.5", linewidth=0.8, linestyle="--", label="floor (fitted label noise)")
        axes.set(xscale="log", yscale="log", xlabel=words("n_train"), ylabel=words("test_error"), title=title)
        axes.legend(loc="lower left")
        low, high = result.exponent_interval
        caption(
            figure,
            f"Ridge {result.temperature:.3g}. The error falls as n^-{result.exponent:.2f} ({low:.2f} to {high:.2f}) over the "
            f"next decade of data. Prediction against measurement: {result.deviation:.1%} root mean square.",
            95,
        )
        return figure


def save_forecast(result: Forecast, out: Path, title: str, settings: dict[str, Any]) -> None:
    """Writes `figure.png`, `figure.pdf`, `forecast.zarr` (groups `predicted`, `measured`) and `summary.json` into a new folder.

    Raises `StoreError` when the folder holds anything already, or cannot be written.
    """
    from orderparam.plotting import save

    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise StoreError(f"{out} is not empty; choose another folder with --out")
        out.mkdir(parents=True, exist_ok=True)
        result.predicted.to_zarr(out / "forecast.zarr", group="predicted", zarr_format=3, consolidated=False)
        measured = result.measured.drop_attrs()
        measured.to_zarr(out / "forecast.zarr", group="measured", zarr_format=3, consolidated=False)
        save(draw_forecast(result, title), out / "figure")
        values = {f.name: getattr(result, f.name) for f in dataclasses.fields(result) if f.name not in ("predicted", "measured")}
        (out / "summary.json").write_text(json.dumps({**settings, **values}, indent=2) + "\n")
    except OSError as error:
        raise StoreError(f"cannot write {out}: {error.strerror or error}") from None
