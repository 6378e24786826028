"""Errors measured later, on more rows than were known to the forecast, by scikit-learn."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.kernel_ridge import KernelRidge

from orderparam.data import apply_task
from orderparam.learning_curves.classes import class_errors
from orderparam.learning_curves.estimators import residuals
from orderparam.learning_curves.problem import Problem, from_dataset, from_frame


def split(entry: Any, rows: np.ndarray, known: int) -> tuple[Problem, np.ndarray, np.ndarray]:
    """The problem of the first rows, and inputs and targets of all rows in the same form."""
    data, target = entry
    if isinstance(data, pd.DataFrame):
        frame = data[data[target].notna()].reset_index(drop=True).iloc[rows].reset_index(drop=True)
        if len(frame.iloc[:known][target].unique()) < 2:
            raise ValueError("one class only")
        whole = from_frame(frame, [target])
        problem = from_frame(frame.iloc[:known], [target], whole.task)
        assert problem.encoding is not None
        return problem, problem.encoding(frame.drop(columns=target)), whole.values
    _, targets = apply_task(data, target)
    part = data.take(targets.rows[rows])
    problem = from_dataset(part.take(slice(known)), target)
    centred = part.inputs - part.inputs[:known].mean(axis=0)
    inputs = centred * np.sqrt(part.input_dim) / np.linalg.norm(centred, axis=1, keepdims=True)
    return problem, inputs, from_dataset(part, target).values


def cosine_kernel(arch: str, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Kernel of an infinitely wide relu or erf network, from x.x'/d by Cho and Saul's and Williams'
    formulas, layer by layer."""
    _, depth, activation = arch.split(":")
    d = first.shape[1]
    cross, one, two = (
        first @ second.T / d,
        np.sum(first**2, 1)[:, None] / d,
        np.sum(second**2, 1)[None] / d,
    )
    for _ in range(int(depth)):
        if activation == "relu":
            scale = np.sqrt(one * two)
            cosine = np.clip(cross / np.maximum(scale, 1e-300), -1, 1)
            cross = (
                scale
                * (np.sqrt(1 - cosine**2) + (np.pi - np.arccos(cosine)) * cosine)
                / (2 * np.pi)
            )
            one, two = one / 2, two / 2
        else:
            cross = (
                2
                / np.pi
                * np.arcsin(np.clip(2 * cross / np.sqrt((1 + 2 * one) * (1 + 2 * two)), -1, 1))
            )
            one, two = (2 / np.pi * np.arcsin(2 * own / (1 + 2 * own)) for own in (one, two))
    return cross


def later_estimator_error(
    whole: Problem, estimator: Any, size: int, random: np.random.Generator
) -> tuple[float, ...]:
    """Held-out error of random training sets of this size, as a share of the variance over the
    table, with its standard error; for classes also the share of wrong ones and the log loss, with
    theirs."""
    found = []
    for _ in range(int(np.clip(4000 / size, 2, 5))):
        order = random.permutation(len(whole.values))
        test = order[size : size + 2000]
        missed = residuals(whole, estimator, order[:size], test)
        rate = class_errors(whole, test, missed)[0] if whole.classes else np.nan
        found.append((np.mean(np.sum(missed**2, axis=1)), rate))
    mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    return float(mean[0]), float(error[0]), float(mean[1]), float(error[1])


def later_error(
    whole: Problem,
    mean: np.ndarray,
    arch: str,
    ridge: float,
    size: int,
    random: np.random.Generator,
) -> tuple[float, ...]:
    """The same of the kernel of a network. mean: the constant that the forecast takes from the
    known rows."""
    values, found = whole.values - mean, []
    for _ in range(int(np.clip(4000 / size, 2 if size > 5000 else 3, 10))):
        order = random.permutation(len(values))
        train, test = order[:size], order[size : size + 1000]
        model = KernelRidge(alpha=ridge, kernel="precomputed").fit(
            cosine_kernel(arch, whole.inputs[train], whole.inputs[train]), values[train]
        )
        predicted = model.predict(cosine_kernel(arch, whole.inputs[test], whole.inputs[train]))
        missed = (values[test] - predicted) / np.sqrt(whole.variance)
        rate = class_errors(whole, test, missed)[0] if whole.classes else np.nan
        found.append((np.mean(np.sum(missed**2, axis=1)), rate))
    middle, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    return float(middle[0]), float(error[0]), float(middle[1]), float(error[1])
