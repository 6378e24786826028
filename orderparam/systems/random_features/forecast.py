"""The learning curve of a linear model in features that a user has: predicted from their covariance, and measured on subsets."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from orderparam.core.agreement import estimate
from orderparam.core.folder import write_folder
from orderparam.core.sweep import sweep
from orderparam.data import Dataset, Targets, apply_task, load_file
from orderparam.losses import loss as find_loss
from orderparam.systems.random_features.experiment import learn_pool
from orderparam.systems.random_features.model import FeaturePool
from orderparam.systems.random_features.theory import asymptotics, optimal_ridge

LARGEST_POOL, MOST_FEATURES, FEWEST = 4000, 4000, 100
MEASURED, DRAWN = 6, 25  # training sizes
_MOST_CLASSES = 20  # whole numbers with more values than that are taken as real targets


@dataclass(frozen=True)
class FeatureForecast:
    """What `forecast_features` found, over `n_train`: `predicted`, the theory, and `measured`, with `seed`; observables as in
    `FeatureCurve`, and `ridge`, that beside the summed loss for features divided by sqrt(feature_count) (penalty "sum").

    error: the observable shown: mean squared error (square loss), else the share of wrong signs. deviation: root mean square
    relative deviation of the prediction from the measured points in it.
    """

    predicted: xr.Dataset
    measured: xr.Dataset
    loss: str
    examples: int
    feature_count: int
    error: str
    deviation: float

    @property
    def other_penalty(self) -> str:
        """The penalty in scikit-learn's convention, for centred features as they are: there |w|^2 = |a|^2 / p."""
        p = self.feature_count
        if self.loss == "square":
            return f"Ridge(alpha = {p} x ridge, fit_intercept = False) on the centred features"
        name = "LogisticRegression(" if self.loss == "logistic" else "LinearSVC(loss='hinge', "
        return f"{name}C = 1/({p} x ridge), fit_intercept = False) on the centred features"


def user_features(features: str, targets: str | None, task: str | None) -> tuple[Dataset, Targets]:
    """Features and targets from a user's files, see `orderparam.data.load_file`: real targets standardised, two classes as ±1.

    Raises `ValueError` as that function does, and where there are more than two classes and no task that picks two sides.
    """
    data = load_file(features, targets)
    if task is None:
        classes = np.unique(data.labels)
        if data.labels.dtype.kind != "f" and 2 < len(classes) <= _MOST_CLASSES:
            raise ValueError(f"{data.name}: {len(classes)} classes; choose two sides with --task: even-odd, 3-vs-8 or 3-vs-rest")
        names = data.class_names or classes.tolist()
        task = f"{names[1]}-vs-{names[0]}" if len(classes) == 2 else "regression"
    chosen, found = apply_task(data, task)
    if found.values.ndim != 1:
        raise ValueError(f"task = {task!r}: must have one output")
    return chosen, found


def forecast_features(
    features: Float[np.ndarray, "example feature"],
    targets: Float[np.ndarray, "example"],
    loss: str = "square",
    ridge: float | None = None,
    seeds: int = 8,
    progress: bool | None = None,
) -> FeatureForecast:
    """Predicts the learning curve from the features' covariance and their correlation with the targets, and measures it.

    Training sets of up to a quarter of the examples; the errors are those over all examples, for which the examples stand as the
    population. ridge: beside the summed loss, features divided by sqrt(feature count); None takes the best one that theory finds
    for each size (smallest test error, for logistic and hinge smallest test loss). At most 4000 examples are used, at random.

    Raises `ValueError` for fewer than 100 examples, more than 4000 features, a feature count that exceeds the examples, and
    targets that the loss does not take.
    """
    count, width = np.shape(features)
    if count < FEWEST:
        raise ValueError(f"{count} examples: a forecast needs at least {FEWEST}")
    order = np.random.default_rng(0).permutation(count)[:LARGEST_POOL]
    if width > min(MOST_FEATURES, len(order)):
        raise ValueError(
            f"{width} features for {len(order)} examples: must be at most {min(MOST_FEATURES, len(order))}, "
            "since the examples stand for the population"
        )
    square = find_loss(loss).name == "square"
    y = targets[order] - targets[order].mean() if square else targets[order]  # an intercept
    pool = FeaturePool.from_data(features[order], y, 10, 1.0 if ridge is None else ridge, loss=loss)
    sizes = np.unique(np.geomspace(10, len(order) / 4, MEASURED).astype(int))
    grid = np.unique(np.append(np.geomspace(10, len(order) / 4, DRAWN if square else 0), sizes))
    theory: Any = asymptotics
    if ridge is None:
        theory = partial(optimal_ridge, objective="test_error" if square else "test_loss")
    predicted = sweep(theory, pool, {"n_train": grid.tolist()}, progress=progress)
    if ridge is not None:
        predicted["ridge"] = xr.full_like(predicted["test_error"], ridge)
    runs = []
    for n in sizes.tolist():
        chosen = pool.with_(ridge=float(predicted["ridge"].sel(n_train=n)))
        runs.append(sweep(learn_pool, chosen, {"n_train": [n]}, seeds=seeds, progress=progress))
    measured = xr.concat(runs, "n_train")
    error = "test_error" if square else "classification_error"
    ratio = estimate(measured, error)[0] / predicted[error].sel(n_train=sizes)
    return FeatureForecast(predicted, measured, loss, len(order), width, error, float(np.sqrt(np.mean((ratio - 1) ** 2))))


def draw_features(result: FeatureForecast, title: str) -> Any:
    """The predicted error with the measured points, and the penalty with the effective number of parameters."""
    from orderparam.plotting import Panel, figure_of, house_style, labelled

    classes = "" if result.error == "test_error" else "; the classes are taken as Gaussians of one covariance"
    with house_style():
        return figure_of(
            labelled({"predicted": result.predicted, "measured": result.measured}),
            [
                Panel("n_train", result.error, log="xy"),
                Panel("n_train", "effective_dimension", log="xy"),
                Panel("n_train", "ridge", log="xy", where={"kind": "theory"}),
            ],
            title=title,
            caption=f"{result.loss} loss, {result.feature_count} features. Theory: from the features' covariance over all "
            f"{result.examples} examples and their correlation with the targets, no fit{classes}. Measured: random training sets,"
            rf" error over all examples. Ridge beside the summed loss, features divided by $\sqrt{{p}}$: {result.other_penalty}.",
        )


def save_features(result: FeatureForecast, out: Path, title: str, settings: dict[str, Any]) -> None:
    """Figure, predicted and measured curve, and summary in a new folder, see `orderparam.core.folder`."""
    names = ("loss", "examples", "feature_count", "error", "deviation", "other_penalty")
    summary = {**settings, **{name: getattr(result, name) for name in names}}
    data = {"predicted": result.predicted, "measured": result.measured}
    write_folder(out, data, lambda: draw_features(result, title), summary)
