"""Theories of networks that learn features: their assumptions measured, and their predictions.

The theories themselves are in topics, which import this folder; they are found by name.
"""

import math

import numpy as np

from orderparam.core.registry import find_tool
from orderparam.data import Dataset, Targets
from orderparam.observables.assumptions import (
    UNTESTED,
    Assumption,
    Predicted,
    TheoryVerdict,
    above,
    below,
    unmet,
)
from orderparam.observables.case import NO_START, Case, mean_of
from orderparam.observables.dense import DenseNetwork, recognise
from orderparam.observables.dimension import dimension

RANK_ONE = 0.9  # share of the change of the first layer that lies in one direction
ISOTROPIC = 0.9  # participation ratio of the inputs over their number
LINEAR = 0.9  # share of the target that one direction explains
SQUARE = 0.3, 0.03  # training examples over the square of the number of inputs
NORMS = 0.3, 0.6  # relative scatter of the norms of hidden units
VIRIAL = 3.0, 5.0  # deviation from equipartition in standard errors
FEWEST_SEEDS = 3


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
    """The units that the data identify, in a network with many hidden units and as many examples as
    inputs squared."""
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
