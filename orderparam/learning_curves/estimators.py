"""Any scikit-learn estimator as a learner: imported by name, fitted to some rows and tested on
others."""

import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from sklearn.base import clone, is_classifier
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.multioutput import MultiOutputRegressor
from threadpoolctl import threadpool_limits

from orderparam.learning_curves.problem import Problem, codes_of

NORMAL = 1.96  # half of a 95 % interval, in standard errors
# number of rows above which the threads of an estimator gain more than they lose by waiting for one
# another
THREADED = 20_000
# number of rows up to which the trees of a forest are grown one by one: several threads take longer
ONE_BY_ONE = 1000


def compared(problem: Problem) -> dict[str, Any]:
    """The learners that are compared with the kernel of a wide network by default: boosted trees, a
    forest and ridge regression (for classes, logistic regression with a ridge penalty), each with
    scikit-learn's default settings."""
    jobs = 1 if len(problem.values) <= ONE_BY_ONE else -1
    if problem.classes:
        return {
            "boosting": HistGradientBoostingClassifier(random_state=0),
            "forest": RandomForestClassifier(n_jobs=jobs, random_state=0),
            "ridge": LogisticRegression(max_iter=500),
        }
    return {
        "boosting": HistGradientBoostingRegressor(random_state=0),
        "forest": RandomForestRegressor(n_jobs=jobs, random_state=0),
        "ridge": RidgeCV(np.geomspace(1e-4, 1e5, 19)),
    }


def named(path: str) -> Any:
    """The estimator at an import path such as "sklearn.ensemble.HistGradientBoostingRegressor",
    with its default settings.

    Raises `ValueError` for a path that cannot be imported, for a class that needs settings, and for
    anything that is not an estimator.
    """
    module, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError):
        raise ValueError(
            f"estimator {path!r}: cannot be imported; it must be an import path such as "
            "sklearn.ensemble.RandomForestRegressor, and its package must be installed"
        ) from None
    try:
        made = found() if isinstance(found, type) else found
    except TypeError as error:
        raise ValueError(
            f"estimator {path!r}: needs settings ({error}); give an object in Python instead"
        ) from None
    return checked(made, path)


def checked(estimator: Any, name: str) -> Any:
    """The given estimator. Raises `ValueError` for an object without `fit` or `predict`, and for a
    class in place of an object."""
    if isinstance(estimator, type):
        raise ValueError(
            f"estimator {name}: is a class; give an object, such as {estimator.__name__}()"
        )
    missing = [
        method
        for method in ("fit", "predict", "get_params")
        if not callable(getattr(estimator, method, None))
    ]
    if missing:
        raise ValueError(
            f"estimator {name}: has no {' and no '.join(missing)}; it must be one as scikit-learn "
            "defines them"
        )
    return estimator


def residuals(
    problem: Problem, estimator: Any, train: Int[np.ndarray, "row"], test: Int[np.ndarray, "test"]
) -> Float[np.ndarray, "test output"]:
    """Targets minus predictions of a fresh copy fitted to `train`, in units of the root of the
    targets' variance.

    For classes, a classifier's prediction is formed from its probabilities p like the targets: 2p -
    1 for two classes, p minus one over the number of classes for more. A regressor learns the
    targets themselves.
    """
    values, inputs = problem.values, problem.inputs
    with _quiet(len(train)):
        if problem.classes and is_classifier(estimator):
            predicted = _probabilities(problem, estimator, train, test)
        else:
            several = values.shape[1] > 1
            model = MultiOutputRegressor(clone(estimator)) if several else clone(estimator)
            model.fit(inputs[train], values[train] if several else values[train, 0])
            predicted = np.asarray(model.predict(inputs[test]), np.float64).reshape(len(test), -1)
    if not np.isfinite(predicted).all():
        raise ValueError(
            f"{problem.name}: {type(estimator).__name__} predicts numbers that are not finite"
        )
    return (values[test] - predicted) / np.sqrt(problem.variance)


def _probabilities(
    problem: Problem, estimator: Any, train: np.ndarray, test: np.ndarray
) -> np.ndarray:
    codes, count = codes_of(problem.values), len(problem.classes)
    present = np.unique(codes[train])
    chances = np.zeros((len(test), count))
    if len(present) == 1:
        chances[:, present[0]] = 1
    else:
        model = clone(estimator).fit(problem.inputs[train], np.searchsorted(present, codes[train]))
        if hasattr(model, "predict_proba"):
            chances[:, present] = model.predict_proba(problem.inputs[test])
        else:
            chances[
                np.arange(len(test)), present[np.asarray(model.predict(problem.inputs[test]), int)]
            ] = 1
    return 2 * chances[:, 1:] - 1 if count == 2 else chances - 1 / count


@contextmanager
def _quiet(rows: int) -> Iterator[None]:
    """One thread for few rows, and no warnings of single fits (small parts of the rows do not
    converge, or lack a class)."""
    with warnings.catch_warnings(), threadpool_limits(None if rows >= THREADED else 1):
        warnings.simplefilter("ignore")
        yield
