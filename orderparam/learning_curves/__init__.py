"""Learning curves of a person's own data: the data are read, the error is measured on held-out
examples, and predicted for more examples.

In the order of reading:

    problem.py    files, arrays and frames as a learning problem
    learners.py   kernel regression, exact and for many rows
    choice.py     which kernel and which ridge
    estimators.py any estimator of scikit-learn's kind
    classes.py    error rate, log loss and calibration of classes
    measured.py   held-out errors of subsets, and how they scatter
    drift.py      other groups, later rows and new rows: the significance of a difference
    comparison.py several learners on the same folds, and fewer columns
    continuation.py  the curve of other learners than kernels beyond the data
    forecast.py   the curve beyond the data, with its interval
    result.py     what a forecast says
    estimator.py  the same as an estimator of scikit-learn
    report.py     figure and files
"""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.learning_curves.estimator import KernelForecaster
    from orderparam.learning_curves.forecast import forecast, forecast_problem
    from orderparam.learning_curves.problem import Problem, from_arrays, from_file
    from orderparam.learning_curves.result import Forecast

__all__ = exported(globals())
