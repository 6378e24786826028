"""Each theory that may describe a trained network: its assumptions measured, and its predictions.

The theories themselves are in topics, which import this folder; they are found by name.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from orderparam.core.registry import find_tool
from orderparam.data import Dataset, Targets
from orderparam.observables.assumptions import (
    UNLIKE,
    UNTESTED,
    Assumption,
    Predicted,
    TheoryVerdict,
    above,
    below,
    exchangeable,
    unlike,
    unmet,
)
from orderparam.observables.dense import DenseNetwork, read_out, recognise
from orderparam.observables.dimension import dimension
from orderparam.observables.inspection import Seen
from orderparam.observables.learnability import learnability
from orderparam.observables.observable import Observed, jackknifed
from orderparam.observables.tangent_kernel import LAZY, RICH, lazy_to_rich, linearised

NO_START = f"{UNTESTED}give the network before training"
RANK_ONE = 0.9  # share of the change of the first layer that lies in one direction
ISOTROPIC = 0.9  # participation ratio of the inputs over their number
LINEAR = 0.9  # share of the target that one direction explains
SQUARE = 0.3, 0.03  # training examples over the square of the number of inputs
NORMS = 0.3, 0.6  # relative scatter of the norms of hidden units
VIRIAL = 3.0, 5.0  # deviation from equipartition in standard errors
FEWEST_SEEDS = 3
SPLITS = 16
MOST_TAKEN = 0.6  # share of all examples used for training, where a pool stands for the population


@dataclass(frozen=True)
class Case:
    """A network with the quantities that all theories need. outputs: those of the trained network,
    on training and on held-out examples; before: those of the network at the start. sizes: further
    numbers of training examples. temperature: of the posterior of which the network is a sample, or
    None."""

    seen: Seen
    train: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]
    outputs: tuple[np.ndarray, np.ndarray]
    before: tuple[np.ndarray, np.ndarray] | None
    sizes: tuple[int, ...]
    temperature: float | None
    rate: float | None

    @property
    def examples(self) -> int:
        return len(self.train[0])

    @property
    def train_error(self) -> float:
        return float(np.mean(np.sum((self.outputs[0] - self.train[1]) ** 2, axis=1)))

    @property
    def test_error(self) -> Observed:
        return mean_of("test error", np.sum((self.outputs[1] - self.test[1]) ** 2, axis=1))


def mean_of(name: str, each: Float[np.ndarray, "example"]) -> Observed:
    """A mean over examples, with its jackknife interval."""
    left = (each.sum() - each) / (len(each) - 1)
    return jackknifed(name, float(each.mean()), {"examples": left}, unbiased=False)


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


def of_the_proportional_limit(case: Case) -> TheoryVerdict:
    """The Bayesian network of this width: a rescaled kernel."""
    name, source = "proportional limit", "Pacelli et al. 2023"
    tested, both = _posterior(case)
    if both is None:
        return TheoryVerdict(name, tested, source=source)
    dense, variances = both[0], both[1].variances()
    if len(set(dense.widths)) > 1 or not np.allclose(variances[:-1], variances[0], rtol=0.2):
        reason = f"widths {dense.widths}, variances {np.round(variances[:-1], 3).tolist()}"
        return TheoryVerdict(name, (*tested, unmet("hidden layers are alike", reason)))
    x = np.concatenate([case.train[0], case.test[0]]).astype(np.float64)
    y = np.concatenate([case.train[1], case.test[1]])
    values = y[:, 0] if y.shape[1] == 1 else y
    width = dense.widths[0]
    widths = [max(1, width // 4), max(1, width // 2), width, 2 * width, 4 * width]
    found = find_tool("proportional.predict_width")(
        Dataset(x, np.zeros(len(x), int)),
        Targets("targets", np.arange(len(x)), values),
        widths,
        n_train=case.examples,
        n_test=len(case.test[0]),
        temperature=case.temperature,
        depth=len(dense.widths),
        activation=dense.activation,
        weight_variance=variances[0],
        readout_variance=variances[-1],
    )
    here = found.sel(width=width)
    ratio = case.train_error / float(here["train_error"])
    tested = (
        *tested,
        _between("training error, over that of the posterior", ratio, 0.7, 1.4, 0.5, 2.0),
    )
    if tested[-1].verdict == "refused":
        return TheoryVerdict(name, tested, source=source)
    predictions = (
        Predicted("test error", float(here["test_error"]), case.test_error, {"width": width}),
        Predicted("test error at infinite width", float(found["infinite_test_error"])),
    )
    by_width = {float(w): float(found["test_error"].sel(width=w)) for w in widths}
    by_width[math.inf] = float(found["infinite_test_error"])
    notes = (str(found.attrs["verdict"]),)
    return TheoryVerdict(
        name, tested, predictions, {case.examples: float(here["test_error"])}, by_width, notes,
        source,
    )  # fmt: skip


def of_adapting_kernels(case: Case) -> TheoryVerdict:
    """The Bayesian two-layer network whose first layer adapts to the data."""
    name, source = "adapting kernel", "Seroussi, Naveh and Ringel 2023"
    tested, both = _posterior(case)
    if both is None:
        return TheoryVerdict(name, tested, source=source)
    dense, start = both
    if len(dense.widths) != 1 or dense.activation not in ("erf", "relu", "linear"):
        reason = f"depth {len(dense.widths)}, {dense.activation}"
        one = unmet("one hidden layer of erf, relu or linear units", reason)
        return TheoryVerdict(name, (*tested, one), source=source)
    if case.train[1].shape[1] != 1:
        return TheoryVerdict(name, (*tested, unmet("one output", "several")), source=source)
    before, width = start.variances(), start.widths[0]
    found = find_tool("kernel_adaptation.predict_adaptation")(
        (case.train[0], case.train[1][:, 0]),
        (case.test[0], case.test[1][:, 0]),
        width,
        case.temperature,
        before[0],
        before[1],
        dense.activation,
    )
    covariance = np.asarray(found.covariance)
    values, vectors = np.linalg.eigh(covariance)
    top = vectors[:, -1]
    first = dense.weights[0]
    along = first.shape[1] / before[0] * (first @ top) ** 2
    says = "weights along the learned direction"
    predictions = [Predicted(says, float(values[-1]), mean_of(says, along))]
    networks = (case.seen.network, *case.seen.others)
    if len(networks) >= FEWEST_SEEDS and all(one.function for one in networks):
        outputs = np.stack([one.function.outputs(case.test[0])[:, 0] for one in networks])  # type: ignore[union-attr]
        spread = outputs.var(axis=0, ddof=1) / len(outputs)
        each = (outputs.mean(axis=0) - case.test[1][:, 0]) ** 2 - spread
        predictions.append(
            Predicted(
                "test error of the mean network",
                float(found.test_error),
                mean_of("test error", each),
            )
        )
    notes = ("the direction is that of the largest eigenvalue in theory; 1 without adaptation",)
    return TheoryVerdict(name, tested, tuple(predictions), {}, {}, notes, source)


def of_one_step(case: Case) -> TheoryVerdict:
    """A first layer that one giant step gave one direction, and a read-out on it."""
    name, source = "one giant step", "Cui et al. 2024; Dandi et al. 2024"
    x = np.concatenate([case.train[0], case.test[0]]).astype(np.float64)
    y = np.concatenate([case.train[1], case.test[1]])
    says = "the first layer changed in one direction (its share of the change)"
    two = "two layers without biases"
    if case.seen.initial is None:
        return TheoryVerdict(name, (unmet(two, NO_START),))
    try:
        late, start = (
            recognise(one, case.train[0]) for one in (case.seen.network, case.seen.initial)
        )
    except ValueError as error:
        return TheoryVerdict(name, (unmet(two, str(error)),), source=source)
    if len(late.widths) != 1 or y.shape[1] != 1:
        reason = f"{len(late.widths)} hidden layers, {y.shape[1]} outputs"
        return TheoryVerdict(name, (unmet("two layers, one output", reason),), source=source)
    _, s, v = np.linalg.svd(late.weights[0] - start.weights[0], full_matrices=False)
    changed = float(np.sum(s**2))
    if changed <= 1e-20 * np.sum(start.weights[0] ** 2):
        return TheoryVerdict(name, (unmet(says, "the first layer did not change"),), source=source)
    deviation = np.sqrt(np.mean((x - x.mean(axis=0)) ** 2))
    z = (x - x.mean(axis=0)) / deviation
    tested = [
        above(says, float(s[0] ** 2 / changed), RANK_ONE, 0.7),
        above(
            "the inputs are isotropic (dimension over their number)",
            dimension(z).value / z.shape[1], ISOTROPIC, 0.7,
        ),
    ]  # fmt: skip
    n, d = z.shape
    if n < 2 * d:
        few = f"{n} examples of {d} inputs"
        tested.append(unmet("two examples for each input", few))
    verdict = TheoryVerdict(name, tuple(tested), source=source)
    if verdict.verdict == "refused":
        return verdict
    teacher = np.linalg.lstsq(z, y[:, 0] - y.mean(), rcond=None)[0]
    rest = np.sum((y[:, 0] - y.mean() - z @ teacher) ** 2) / (n - d - 1)
    power = float(np.mean(y**2))
    signs = bool(set(np.unique(y)) <= {-1.0, 1.0})
    # a linear direction explains 2/pi of the variance of its signs
    share = float(1 - rest / power) / (2 / np.pi if signs else 1.0)
    tested.append(above("one linear direction explains the target (share)", share, LINEAR, 0.7))
    verdict = TheoryVerdict(name, tuple(tested), source=source)
    if verdict.verdict == "refused":
        return verdict
    size = 1.0 if signs else math.sqrt(share * power)
    try:
        found = find_tool("one_step.predict_given_layer")(
            late.weights[0] * deviation, v[0], teacher, case.examples,
            case.train_error / size**2, late.activation,
            None if signs else max(0.0, (1 - share) / share),
            max(0.0, (1 - math.sqrt(min(1.0, share))) / 2) if signs else 0.0,
        )  # fmt: skip
    except ValueError as error:
        return TheoryVerdict(name, (*tested, unmet("the theory takes this layer", str(error))))
    predictions = (
        Predicted("test error", float(found.test_error) * size**2, case.test_error),
        Predicted("overlap of the direction with the teacher", abs(float(found.spike_overlap))),
    )
    notes = ("the read-out is ridge regression with the measured training error",)
    return TheoryVerdict(name, tuple(tested), predictions, {}, {}, notes, source)


def of_extensive_width(case: Case) -> TheoryVerdict:
    """As many examples as inputs squared, for a network with many hidden units: which units the
    data identify."""
    name, source = "extensive width", "Nguyen, Barbier 2026"
    two = "two layers without biases"
    try:
        late = recognise(case.seen.network, case.train[0])
    except ValueError as error:
        return TheoryVerdict(name, (unmet(two, str(error)),), source=source)
    if len(late.widths) != 1 or case.train[1].shape[1] != 1:
        reason = f"{len(late.widths)} hidden layers, {case.train[1].shape[1]} outputs"
        return TheoryVerdict(name, (unmet("two layers, one output", reason),), source=source)
    x = np.concatenate([case.train[0], case.test[0]]).astype(np.float64)
    deviation = float(np.sqrt(np.mean((x - x.mean(axis=0)) ** 2)))
    n, d = case.examples, x.shape[1]
    norms = np.linalg.norm(late.weights[0], axis=1) * deviation
    spread = float(np.std(norms) / np.mean(norms))
    tested = [
        above(
            "the inputs are isotropic (dimension over their number)",
            dimension(x).value / d, ISOTROPIC, 0.7,
        ),
        above("training examples over the square of the inputs", n / d**2, *SQUARE),
        below("the units have equal norms (their relative scatter)", spread, *NORMS),
    ]  # fmt: skip
    verdict = TheoryVerdict(name, tuple(tested), source=source)
    if verdict.verdict == "refused":
        return verdict
    noise = case.test_error
    try:
        found = find_tool("extensive_width.predict_identified_units")(
            late.weights[1][0], float(np.mean(norms)), d, n, max(noise.value, 1e-12),
            late.activation,
        )  # fmt: skip
    except ValueError as error:
        return TheoryVerdict(name, (*tested, unmet("the theory takes these units", str(error))))
    predictions = (
        Predicted("units that the data identify", float(found.effective_width)),
        Predicted("their share", float(found.effective_width) / late.widths[0]),
        Predicted("error of the best learner of such a network", float(found.error)),
    )
    notes = (
        f"for a teacher with the read-outs of this network and noise {noise.value:.3g}, its own "
        "test error, and inputs N(0, 1): a bound where inputs are real data",
    )
    return TheoryVerdict(name, tuple(tested), predictions, {}, {}, notes, source)


THEORIES = (
    of_the_start,
    of_fixed_features,
    of_the_last_layer,
    of_the_proportional_limit,
    of_adapting_kernels,
    of_one_step,
    of_extensive_width,
)


def _posterior(
    case: Case,
) -> tuple[tuple[Assumption, ...], tuple[DenseNetwork, DenseNetwork] | None]:
    """Tests if the network is a sample of a Bayesian posterior, and returns the tests, the network,
    and the one at the start, whose weights have the prior's variances."""
    says = "the network is a sample of a posterior"
    if case.temperature is None:
        reason = f"{UNTESTED}give temperature= if it was sampled by Langevin dynamics or the like"
        return (unmet(says, reason),), None
    if case.seen.initial is None or case.seen.network.function is None:
        reason = f"{UNTESTED}give a network drawn from the prior as the start"
        return (unmet(says, reason),), None
    try:
        late, start = (
            recognise(one, case.train[0]) for one in (case.seen.network, case.seen.initial)
        )
    except ValueError as error:
        return (unmet("fully connected layers without biases", str(error)),), None
    along = case.seen.network.function.along(case.train[0])
    pull = float(np.sum(along * (case.outputs[0] - case.train[1])))
    count = sum(weight.size for weight in late.weights)
    prior = sum(float(np.sum(w**2) / np.mean(w0**2)) for w, w0 in zip(late.weights, start.weights))
    excess = pull / case.temperature + prior - count
    # residuals have the variance T; the variances of the prior are compared with those of equally
    # many drawn weights
    spread = math.sqrt(np.sum(along**2) / case.temperature + 4 * count)
    held = below(
        "equipartition: |sum of w (dE/dw / T + w / variance) - P| in its standard errors",
        abs(excess) / spread,
        *VIRIAL,
    )
    return (held,), None if held.verdict == "refused" else (late, start)


def _between(
    says: str, value: float, low: float, high: float, least: float, most: float
) -> Assumption:
    good, bad = low < value < high, not least < value < most
    words = f"between {low:g} and {high:g}; refused outside {least:g} to {most:g}"
    return Assumption(
        says, value, "refused" if bad else "applies" if good else "approximate", words
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
