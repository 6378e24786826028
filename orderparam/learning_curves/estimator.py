"""Kernel regression of a wide network as a scikit-learn estimator, with the forecast of its
learning curve."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from orderparam.core.bounds import checked_option
from orderparam.data.columns import check_real, fit_encoding
from orderparam.learning_curves.choice import best_ridge
from orderparam.learning_curves.forecast import forecast
from orderparam.learning_curves.learners import Exact, kernel_of
from orderparam.learning_curves.result import Forecast


class KernelForecaster(RegressorMixin, BaseEstimator):
    """Regression with the kernel of an infinitely wide network; `learning_curve()` forecasts the
    gain from more examples.

    arch: the network, such as "fc:2:erf". ridge: added to the Gram matrix; None chooses the one
    with the smallest leave-one-out error.

    X: numbers (example, input), standardised; or a data frame with any columns, see
    `orderparam.data.columns`. y: numbers (example,) or (example, output). After `fit`: `ridge_`,
    `leave_one_out_` (mean squared error as a share of the variance of y), `n_features_in_`. Cost:
    one eigendecomposition, O(n^3). For a transformed target or a pipeline, use it as any regressor.
    """

    def __init__(self, arch: str = "fc:1:relu", ridge: float | None = None) -> None:
        self.arch = arch
        self.ridge = ridge

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        ridge = self.ridge
        if ridge is not None:
            ridge = checked_option("ridge", ridge, ", or None for the best one", minimum=0)
        if _is_frame(X):
            validate_data(self, X, skip_check_array=True)
            check_real("y", y)
            labels = np.asarray(y, np.float64)
            self.encoding_ = fit_encoding(X)
            inputs = self.encoding_(X)
        else:
            inputs, labels = validate_data(
                self,
                X,
                y,
                dtype=np.float64,
                multi_output=True,
                y_numeric=True,
                ensure_min_samples=2,
            )
            self.centre_, scale = inputs.mean(axis=0), inputs.std(axis=0)
            self.scale_ = np.where(scale > 0, scale, 1.0)
            inputs = (inputs - self.centre_) / self.scale_
        if len(labels) != len(inputs):
            raise ValueError(
                f"y has {len(labels)} rows, X has {len(inputs)}: must be one for each example"
            )
        self._one_output = labels.ndim == 1
        self.examples_ = X, y
        columns = labels.reshape(len(labels), -1).astype(np.float64)
        self.mean_, spread = columns.mean(axis=0), float(np.sqrt(np.sum(columns.var(axis=0))))
        self.deviation_ = spread if spread > 0 else 1.0
        self.inputs_ = inputs
        learner = Exact(
            np.array(kernel_of(self.arch)(inputs, None)), (columns - self.mean_) / self.deviation_
        )
        self.ridge_ = best_ridge(learner)[0] if ridge is None else ridge
        self.leave_one_out_ = float(
            np.mean(np.sum(learner.leave_one_out(self.ridge_) ** 2, axis=1))
        )
        self.dual_ = learner.solve(self.ridge_)
        return self

    def predict(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        if hasattr(self, "encoding_"):
            validate_data(self, X, reset=False, skip_check_array=True)
            inputs = self.encoding_(X)
        else:
            inputs = (
                validate_data(self, X, reset=False, dtype=np.float64) - self.centre_
            ) / self.scale_
        cross = kernel_of(self.arch)(inputs, self.inputs_)
        found = self.mean_ + self.deviation_ * cross @ self.dual_
        return found[:, 0] if self._one_output else found

    def learning_curve(self, **options: Any) -> Forecast:
        """`orderparam.forecast` of the data that were fitted, with this kernel and ridge; options
        as there."""
        check_is_fitted(self)
        return forecast(
            *self.examples_,
            task="regression",
            arch=self.arch,
            ridge=self.ridge,
            compare=False,
            **options,
        )


def _is_frame(X: Any) -> bool:
    """True for a data frame with columns of anything but numbers."""
    return (
        hasattr(X, "dtypes")
        and hasattr(X, "columns")
        and any(dtype.kind not in "biuf" for dtype in X.dtypes)
    )
