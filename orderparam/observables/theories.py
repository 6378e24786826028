"""Each theory that may describe a trained network: its assumptions measured, and its predictions.

Those of networks that learn features are in `theories_of_learning`. The theories themselves are in
topics, which import this folder; they are found by name.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float

from orderparam.core.registry import find_tool
from orderparam.observables.assumptions import (
    UNLIKE,
    UNTESTED,
    Assumption,
    Predicted,
    TheoryVerdict,
    below,
    exchangeable,
    unlike,
    unmet,
)
from orderparam.observables.case import NO_START, Case, mean_of
from orderparam.observables.dense import read_out
from orderparam.observables.learnability import learnability
from orderparam.observables.observable import Observed
from orderparam.observables.tangent_kernel import LAZY, RICH, lazy_to_rich, linearised
from orderparam.observables.theories_of_learning import (
    of_adapting_kernels,
    of_extensive_width,
    of_one_step,
    of_the_proportional_limit,
)

SPLITS = 16
MOST_TAKEN = 0.6  # share of all examples used for training, where a pool stands for the population


def of_the_start(case: Case) -> TheoryVerdict:
    """Kernel regression with the tangent kernel at the start of training."""
    name, source = "kernel of the start", "Jacot, Gabriel and Hongler 2018; Canatar et al. 2021"
    small = "the network stays close to its linearisation (lazy-to-rich number)"
    start = None if case.seen.initial is None else case.seen.initial.function
    if start is None or case.before is None:
        return TheoryVerdict(name, (unmet(small, NO_START),), source=source)
    x, fresh = case.train[0], case.test[0]
    y, f, f0 = case.train[1], case.outputs, case.before
    if y.shape[1] != 1:
        return TheoryVerdict(name, (unmet(small, f"{UNTESTED}one output only"),), source=source)
    everything = np.concatenate([x, fresh])
    pool = start.kernel(everything, None)
    n = len(x)
    arguments = f0[1], pool[n:, :n], pool[:n, :n], f0[0], f[0], y
    try:
        number = lazy_to_rich(f0[1], f[1], *arguments[1:], case.rate)
        straight = linearised(*arguments, case.rate)
    except ValueError as error:
        return TheoryVerdict(name, (unmet(small, str(error)),), source=source)
    tested = (below(small, number.value, LAZY, RICH),)
    if tested[0].verdict == "refused":
        return TheoryVerdict(name, tested, source=source)
    left = np.concatenate([y, case.test[1]]) - np.concatenate([f0[0], f0[1]])
    forecast = find_tool("kernel_regression.predict_given_kernel")(
        pool, left, n, _within(case.sizes, len(pool)), case.train_error
    )
    learned = learnability(f[1] - f0[1], case.test[1] - f0[1])[0]
    # a pool stands for the population where enough of it is left out, and all of it is of one kind
    alike = exchangeable(pool, n)
    pooled = n <= MOST_TAKEN * len(pool) and alike > UNLIKE
    curve = forecast.test_error if pooled else {}
    # the error of the linearised network on the same examples, so that their scatter cancels
    own = np.sum((straight - case.test[1]) ** 2, axis=1)
    shift = np.sum((f[1] - case.test[1]) ** 2, axis=1) - own
    paired = mean_of("test error", shift)
    predictions = [
        Predicted("test error", float(own.mean()), _shifted(paired, float(own.mean()))),
        Predicted("learnability of the target", forecast.learnability, learned),
    ]
    if curve:
        says = "test error, mean over training sets"
        predictions.append(Predicted(says, curve[n], case.test_error, {"n_train": n}))
    notes: tuple[str, ...] = (
        f"ridge {forecast.ridge:.3g} has the measured training error {case.train_error:.3g}",
        "the interval of the measured error is over held-out examples, for one training set",
        "to leading order the error does not depend on the width; corrections are of order 1/width",
    )
    if alike <= UNLIKE:
        notes = (*notes, f"no mean over training sets: {unlike(alike)}")
    limit = {math.inf: curve[n]} if curve else {}
    return TheoryVerdict(name, tested, tuple(predictions), curve, limit, notes, source)


def of_fixed_features(case: Case) -> TheoryVerdict:
    """Random features with the first layers at the start: only the read-out has learned."""
    name, source = (
        "random features, given first layers",
        "Loureiro et al. 2021; Canatar et al. 2021",
    )
    small = "the hidden layers are those of the start (change of the outputs by them)"
    initial = case.seen.initial
    if initial is None or initial.function is None or case.before is None:
        return TheoryVerdict(name, (unmet(small, NO_START),))
    try:
        scale = read_out(case.seen.network)
        now, old = (_features(one, case) for one in (case.seen.network, initial))
        read_out(initial)
    except ValueError as error:
        return TheoryVerdict(name, (unmet(small, str(error)),), source=source)
    weight = np.asarray(case.seen.network.layers[-1].weight, np.float64)
    n = case.examples
    moved = scale * (now[n:] - old[n:]) @ weight.T
    learned = case.outputs[1] - case.before[1]
    number = float(np.linalg.norm(moved) / np.linalg.norm(learned)) if learned.any() else math.nan
    if not math.isfinite(number):
        return TheoryVerdict(name, (unmet(small, "the outputs are those of the start"),))
    share = n / (n + len(case.test[0]))
    gram = now @ now.T
    alike = exchangeable(gram, n)
    tested = (
        below(small, number, LAZY, RICH),
        below("training examples, as a share of all", share, MOST_TAKEN, 0.9),
        *([] if alike > UNLIKE else [unmet("examples of one distribution", unlike(alike))]),
    )
    if "refused" in (one.verdict for one in tested):
        return TheoryVerdict(name, tested, source=source)
    targets = np.concatenate([case.train[1], case.test[1]])
    targets = targets - np.concatenate([case.before[0], case.before[1]])
    predict = find_tool("kernel_regression.predict_given_kernel")
    forecast = predict(gram, targets, n, _within(case.sizes, len(gram)), case.train_error)
    widths = {}
    for count in sorted({now.shape[1] // 4, now.shape[1] // 2}):
        if count >= 8:
            some = np.random.default_rng(0).permutation(now.shape[1])[:count]
            fewer = now[:, some] @ now[:, some].T
            widths[float(count)] = predict(fewer, targets, n, (), case.train_error).test_error[n]
    widths[float(now.shape[1])] = forecast.test_error[n]
    best = predict(gram, targets, n, ())
    predictions = (
        Predicted("test error", forecast.test_error[n], case.test_error, {"n_train": n}),
        Predicted("test error at the best ridge", best.test_error[n]),
    )
    notes = (
        f"ridge {forecast.ridge:.3g} has the measured training error {case.train_error:.3g}; the "
        f"best is {best.ridge:.3g}",
        "other widths at the same training error",
    )
    return TheoryVerdict(name, tested, predictions, forecast.test_error, widths, notes, source)


def of_the_last_layer(case: Case) -> TheoryVerdict:
    """A new read-out on the trained features, learned from examples that they never saw."""
    name, source = "kernel of the trained last layer", "Canatar et al. 2021"
    says = "the examples of the read-out were not used for the features"
    try:
        features = _features(case.seen.network, case)[case.examples :]
    except ValueError as error:
        return TheoryVerdict(name, (unmet(says, str(error)),), source=source)
    y = case.test[1]
    n = len(y)
    if n < 20:
        return TheoryVerdict(name, (unmet(says, f"{n} held-out examples: must be at least 20"),))
    tested = (Assumption(says, math.nan, "applies", "held-out examples are taken"),)
    half = n // 2
    x, centred = features - features.mean(axis=0), y - y.mean(axis=0)
    x = x / (np.sqrt(np.mean(x**2)) or 1.0)
    sizes = [size for size in (n // 16, n // 8, n // 4) if size >= 4]
    forecast = find_tool("kernel_regression.predict_given_kernel")(x @ x.T, centred, half, sizes)
    predictions = (
        Predicted(
            "test error of a new read-out",
            forecast.test_error[half],
            _split(x @ x.T, centred, half, forecast.ridge),
            {"n_train": half},
        ),
        Predicted("test error of the network, for comparison", math.nan, case.test_error),
    )
    notes = (
        f"best ridge {forecast.ridge:.3g} for features of mean square 1; measured on {SPLITS} "
        "random halves of the held-out examples",
    )
    return TheoryVerdict(name, tested, predictions, forecast.test_error, {}, notes, source)


def _split(
    kernel: Float[np.ndarray, "example example"],
    targets: Float[np.ndarray, "example output"],
    size: int,
    ridge: float,
) -> Observed:
    """The error of kernel regression on random subsets, at the examples outside of each."""
    rng, count = np.random.default_rng(0), len(kernel)
    squares, times = np.zeros(count), np.zeros(count)
    for _ in range(SPLITS):
        order = rng.permutation(count)
        some, rest = order[:size], order[size:]
        solved = np.linalg.solve(kernel[np.ix_(some, some)] + ridge * np.eye(size), targets[some])
        gap = kernel[np.ix_(rest, some)] @ solved - targets[rest]
        squares[rest] += np.sum(gap**2, axis=1)
        times[rest] += 1
    seen = times > 0
    return mean_of("test error of a new read-out", squares[seen] / times[seen])


THEORIES = (
    of_the_start,
    of_fixed_features,
    of_the_last_layer,
    of_the_proportional_limit,
    of_adapting_kernels,
    of_one_step,
    of_extensive_width,
)


def _features(network: Any, case: Case) -> Float[np.ndarray, "example feature"]:
    """The inputs of the last layer, on training and held-out examples."""
    last = network.layers[-1] if network.layers else None
    if last is None or last.inputs is None or network.function is None:
        raise ValueError("the layers of the network are unknown")
    found = network.function.read(np.concatenate([case.train[0], case.test[0]]))
    return np.asarray(found[-1].inputs, np.float64).reshape(len(found[-1].inputs), -1)


def _shifted(measured: Observed, by: float) -> Observed:
    return replace(
        measured, value=measured.value + by, low=measured.low + by, high=measured.high + by
    )


def _within(sizes: Sequence[int], pool: int) -> list[int]:
    return [size for size in sizes if 1 <= size < pool]
