"""Learning curve of a linear model on a user's features: predicted from their covariance, and
measured on subsets.
"""

import dataclasses
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from orderparam.core.registry import tool
from orderparam.data import apply_task, load_file
from orderparam.data.frame import FRAMES
from orderparam.kernels.extrapolation import extrapolate
from orderparam.learning_curves.measured import scatter
from orderparam.learning_curves.problem import Problem, from_dataset, from_file, noting_target
from orderparam.losses import loss as find_loss
from orderparam.running.estimate import estimate
from orderparam.running.sweep import sweep
from orderparam.systems.random_features.best_ridge import best_ridges
from orderparam.systems.random_features.classes import (
    ClassPool,
    class_asymptotics,
    learn_classes,
)
from orderparam.systems.random_features.experiment import learn_pool
from orderparam.systems.random_features.pool import FeaturePool
from orderparam.systems.random_features.theory import asymptotics

LARGEST_POOL, MOST_FEATURES, FEWEST = 4000, 4000, 60
MEASURED, DRAWN = 6, 25  # training sizes


@dataclass(frozen=True)
class FeatureForecast:
    """Result of `forecast_features`, as functions of `n_train`. Errors are measured on examples
    outside of the training set.

    Fields:
        predicted: the theory, with the observables of `FeatureCurve` and the `ridge`. This ridge is
            added to the summed loss of features that are divided by sqrt(feature_count) (penalty
            "sum").
        measured: the measured values of the same observables, with a dimension `seed`.
        ahead: the observable `error` for more examples than there are data, extrapolated from the
            measured errors by `orderparam.kernels.extrapolation`; `lower` and `upper` are the ends
            of a 95 % interval.
        error: name of the observable shown: the mean squared error (square loss; targets have
            variance 1), otherwise the share of wrong signs. For more than two classes
            classification_error is predicted and measured for the square loss as well.
        deviation: root mean square relative deviation of the theory from the measured points in
            `error`.
    """

    predicted: xr.Dataset
    measured: xr.Dataset
    ahead: xr.Dataset
    loss: str
    examples: int
    feature_count: int
    error: str
    deviation: float
    classes: int = 0  # number of classes if there are more than two

    @property
    def other_penalty(self) -> str:
        """The penalty in scikit-learn's convention, for features that are centred but not scaled,
        where |w|^2 = |a|^2 / p."""
        p = self.feature_count
        if self.loss == "square":
            return f"Ridge(alpha = {p} x ridge, fit_intercept = False) on the centred features"
        name = "LogisticRegression(" if self.loss == "logistic" else "LinearSVC(loss='hinge', "
        return f"{name}C = 1/({p} x ridge), fit_intercept = False) on the centred features"


@tool
def user_features(
    features: str, targets: str | None, task: str | None, missing: Sequence[str] = ()
) -> Problem:
    """Features and targets read from files of a user.

    Arrays are read by `orderparam.data.load_file`, and tables with columns of any kind by
    `orderparam.data.columns`; the words in `missing` stand for missing values. Real targets are
    standardised. Two classes become ±1. With more than two classes there is one column for each
    class, which contains 0 or 1 minus the share of the class.

    Raises `ValueError` where those functions do, and for several numeric targets.
    """
    if Path(features).suffix.lower() in FRAMES:
        problem = from_file(features, targets, task, missing=missing)
    elif missing:
        raise ValueError(
            f"--missing {','.join(missing)}: needs a table ({', '.join(FRAMES)}); {features} is "
            "not one"
        )
    else:
        data = load_file(features, targets)
        problem = dataclasses.replace(noting_target(from_dataset(data, task), targets), columns=())
        if task is None and problem.values.shape[1] == 1:
            task = problem.task
        if task is not None:
            problem = dataclasses.replace(problem, inputs=apply_task(data, task)[0].inputs)
    if problem.values.shape[1] != 1 and not problem.classes:
        raise ValueError(
            f"{problem.name}: {problem.values.shape[1]} targets that are numbers; name one of them"
        )
    order = np.random.default_rng(0).permutation(len(problem.inputs))
    y = problem.values if problem.classes else problem.targets
    return dataclasses.replace(problem, inputs=problem.inputs[order], values=y[order])


@tool
def forecast_features(
    features: Float[np.ndarray, "example feature"],
    targets: Float[np.ndarray, "example"] | Float[np.ndarray, "example class"],
    loss: str = "square",
    ridge: float | None = None,
    seeds: int = 8,
    progress: bool | None = None,
) -> FeatureForecast:
    """Learning curve of a linear model on given features: predicted, measured, and extrapolated
    beyond the number of data.

    The prediction, for training sets of up to half of the examples, uses the covariance of the
    features and their correlation with the targets. Both are corrected for the bias of a finite
    sample. The measurement trains on random subsets and tests on the other examples. The measured
    curve is extrapolated to up to 100 times the number of data with the help of the modes of the
    features' covariance. For logistic and hinge loss the extrapolation uses curves of the shape
    that the square loss has.

    Args:
        features: (example, feature) matrix. At most 4000 examples are used, chosen at random.
        targets: target of each example; -1 and 1 for logistic and hinge loss. For more than two
            classes there is one column for each class, and the largest entry of a row marks the
            class of the example.
        loss: "square" (the default), "logistic" or "hinge".
        ridge: ridge added to the summed loss, for features divided by sqrt(feature count); None
            (the default) takes at each number of examples the ridge that is best in theory: the
            ridge of the smallest test error, or of the smallest test loss for logistic and hinge
            loss.
        seeds: number of measured training sets of each size; 8 by default.
        progress: whether progress is shown; by default only on a terminal.

    Raises:
        ValueError: for fewer than 100 examples, more than 4000 features, more features than
            examples, and targets that the loss does not accept.

    Accuracy: a few per cent for the square loss. Real classes are not Gaussian, so that the
    predicted classification error of the logistic and hinge loss is too low, by 5 to 26 % on
    digits.

    Source: Loureiro, Gerbelot et al. (2021); the continuation is derived here.
    """
    count, width = np.shape(features)
    if count < FEWEST:
        raise ValueError(f"{count} examples: a forecast needs at least {FEWEST}")
    order = np.random.default_rng(0).permutation(count)[:LARGEST_POOL]
    targets = np.asarray(targets).reshape(count, -1)
    classes = targets.shape[1] if targets.shape[1] > 1 else 0
    if width > min(MOST_FEATURES, len(order)):
        raise ValueError(
            f"{width} features for {len(order)} examples: must be at most "
            f"{min(MOST_FEATURES, len(order))}, since the examples stand for the population"
        )
    square = find_loss(loss).name == "square"
    if classes and not square:
        raise ValueError(
            f"loss = {loss!r}: {classes} classes take the square loss; for another choose two "
            "sides with --task: even-odd, 3-vs-8 or 3-vs-rest"
        )
    pool = _pool(features[order], targets[order], 1.0 if ridge is None else ridge, loss)
    learn = learn_classes if classes else learn_pool
    sizes = np.unique(np.geomspace(10, len(order) / 2, MEASURED).astype(int))
    grid = np.unique(np.append(np.geomspace(10, len(order) / 2, DRAWN if square else 0), sizes))
    if ridge is None:
        predicted = best_ridges(pool, grid, "test_error" if square else "test_loss")
    else:
        predicted = sweep(asymptotics, pool, {"n_train": grid.tolist()}, progress=progress)
    useless = int((~predicted["converged"]).sum())
    if ridge is None and useless:
        warnings.warn(
            f"at {useless} of {len(grid)} sizes the best ridge is the largest that was tried: "
            "so few of these examples say nothing about the target",
            stacklevel=2,
        )
    if ridge is not None:
        predicted["ridge"] = xr.full_like(predicted["test_error"], ridge)
    if isinstance(pool, ClassPool):
        predicted = predicted.assign(_class_errors(pool, predicted))
    elif square and set(np.unique(targets)) == {-1.0, 1.0}:
        of_two = ClassPool.from_data(features[order], targets[order, 0] > 0, 10, 1.0)
        wrong = _class_errors(of_two, predicted)["classification_error"]
        predicted["classification_error"] = wrong
    runs = []
    for n in sizes.tolist():
        chosen = pool.with_(ridge=float(predicted["ridge"].sel(n_train=n)))
        runs.append(sweep(learn, chosen, {"n_train": [n]}, seeds=seeds, progress=progress))
    measured = xr.concat(runs, "n_train")
    error = "test_error" if square else "classification_error"
    ratio = estimate(measured, error)[0] / predicted[error].sel(n_train=sizes)
    ahead = _ahead(pool, measured, error, float(predicted["ridge"].sel(n_train=sizes[-1])))
    return FeatureForecast(
        predicted,
        measured,
        ahead,
        loss,
        len(order),
        width,
        error,
        float(np.sqrt(np.mean((ratio - 1) ** 2))),
        classes,
    )


def _pool(
    features: Float[np.ndarray, "example feature"],
    targets: Float[np.ndarray, "example output"],
    ridge: float,
    loss: str,
) -> FeaturePool | ClassPool:
    """The pool of these features and targets; for the square loss the mean of the targets is
    subtracted, because it is fitted as an intercept."""
    if targets.shape[1] > 1:
        # a class without any chosen example is omitted
        present = np.unique(np.argmax(targets, axis=1), return_inverse=True)[1]
        return ClassPool.from_data(features, present, 10, ridge)
    mean = float(targets.mean()) if find_loss(loss).name == "square" else 0.0
    return FeaturePool.from_data(features, targets[:, 0] - mean, 10, ridge, loss=loss, offset=mean)


def _class_errors(pool: ClassPool, curve: xr.Dataset) -> xr.Dataset:
    """Errors of least squares on the classes of a pool, at every number of examples of a curve and
    at the ridge of the curve there."""
    found = [
        class_asymptotics(pool.with_(n_train=float(n), ridge=float(ridge)))
        for n, ridge in zip(curve["n_train"].values, curve["ridge"].values, strict=True)
    ]
    return xr.Dataset(
        {
            name: ("n_train", [float(getattr(one, name)) for one in found])
            for name in ("test_error", "classification_error", "effective_dimension")
        },
        {"n_train": curve["n_train"]},
    )


def _ahead(
    pool: FeaturePool | ClassPool, measured: xr.Dataset, error: str, ridge: float
) -> xr.Dataset:
    """The measured error, extrapolated beyond the number of data. Its uncertainty contains the
    scatter of the last measured point between pools of this size."""
    if isinstance(pool, ClassPool):
        features, targets = np.asarray(pool.modes), np.asarray(pool.fields)
    else:
        features, targets = np.asarray(pool.features), np.asarray(pool.targets)[:, None]
    count, width = features.shape
    features = features / np.sqrt(width)
    labels = targets - targets.mean(axis=0)
    total = np.sum(labels**2, axis=1)
    values, vectors = np.linalg.eigh(features.T @ features)
    values, along = np.maximum(values[::-1], 0.0), (features @ vectors[:, ::-1]).T @ labels
    kept = values > 1e-12 * values[0]
    power = np.sum(along[kept] ** 2, axis=1) / values[kept] / count
    sizes = measured["n_train"].values.astype(float)
    mean = np.maximum(measured[error].mean("seed").values, 0.5 / count)
    grid = np.unique(
        np.append(np.geomspace(sizes[-1], 100 * count, 60), [float(count), 2.0 * count])
    )
    law = extrapolate(values[kept] / count, power / np.mean(total), ridge, sizes, mean, grid, count)
    if error == "test_error":
        residual = labels - features @ np.linalg.solve(
            features.T @ features + ridge * np.eye(width), features.T @ labels
        )
        left = np.sum(residual**2, axis=1)
        pool_scatter = scatter(left / np.mean(left) - total / np.mean(total), np.arange(count))
    else:
        pool_scatter = float(1 / np.sqrt(mean[-1] * count))
    own = (
        float(measured[error].isel(n_train=-1).std("seed", ddof=1))
        / np.sqrt(measured.sizes["seed"])
        / mean[-1]
    )
    spread = np.sqrt(law.spread**2 + pool_scatter**2 + own**2)
    middle = np.log(mean[-1]) + law.log_change
    highest = np.inf if error == "test_error" else 1.0
    return xr.Dataset(
        {
            error: ("n_train", np.exp(middle)),
            "lower": ("n_train", np.exp(middle - 1.96 * spread)),
            "upper": ("n_train", np.minimum(np.exp(middle + 1.96 * spread), highest)),
        },
        {"n_train": grid},
    )


def draw_features(result: FeatureForecast, title: str) -> Any:
    """Draw the predicted error with the measured points, and the penalty with the effective number
    of parameters.
    """
    from orderparam.plotting import Panel, figure_of, house_style, labelled, vertical
    from orderparam.plotting.style import COLOURS

    classes = (
        ""
        if result.error == "test_error"
        else "; the classes are taken as Gaussians of one covariance"
    )
    shown = {
        "theory": result.predicted,
        "continued (95 % interval)": result.ahead[[result.error]],
        "measured, held out": result.measured,
    }
    with house_style():
        figure = figure_of(
            labelled(shown),
            [
                Panel(
                    "n_train",
                    result.error,
                    log="xy",
                    reference=[vertical(result.examples, "your data")],
                ),
                Panel("n_train", "effective_dimension", log="xy"),
                Panel("n_train", "ridge", log="xy", where={"kind": "theory"}),
            ],
            title=title,
            caption=f"{result.loss} loss, {result.feature_count} features. Theory: from the "
            f"covariance of the features over all {result.examples} examples and their "
            f"correlation with the targets, without a fit{classes}. Measured: random training "
            "sets, error on the others. Ridge: penalty added to the sum of losses, features "
            rf"scaled by $1/\sqrt{{p}}$: {result.other_penalty}.",
        )
        data = result.ahead
        figure.axes[0].fill_between(
            data["n_train"], data["lower"], data["upper"], color=COLOURS[1], alpha=0.18, linewidth=0
        )
        return figure


@tool
def save_features(result: FeatureForecast, out: Path, title: str, settings: dict[str, Any]) -> None:
    """Write the figure, the predicted and measured curves, and a summary into a new folder, see
    `orderparam.plotting.folder`.
    """
    from orderparam.plotting.folder import write_folder

    names = ("loss", "examples", "feature_count", "error", "deviation", "other_penalty")
    summary = {**settings, **{name: getattr(result, name) for name in names}}
    data = {"predicted": result.predicted, "measured": result.measured, "ahead": result.ahead}
    write_folder(out, data, lambda: draw_features(result, title), summary)
