"""The numbers of a network as a whole: drift of the tangent kernel, lazy-to-rich number,
learnability, read-out, calibration, curvature, learning coefficient, overlaps with other
trainings."""

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from orderparam.observables.budget import Budget
from orderparam.observables.calibration import calibration
from orderparam.observables.difficulty import difficulty
from orderparam.observables.layers import InspectedNetwork
from orderparam.observables.learnability import learnability
from orderparam.observables.observable import Observed
from orderparam.observables.overlaps import overlap, seed_overlap
from orderparam.observables.similarity import target_columns
from orderparam.observables.tangent_features import feature_drift
from orderparam.observables.tangent_kernel import kernel_drift, lazy_to_rich

MODES = 5  # of the tangent kernel at the start, whose learnability is measured
FEWEST_FRESH = 20  # held-out examples for the learnability
COUPLING_TIMES = 6  # t at which the running coupling is measured
FEWEST_UNTIL = 10.0  # the largest t is at least this; n / ln n is from 36 examples on


def numbers_of_network(
    network: InspectedNetwork,
    first: InspectedNetwork | None,
    inputs: np.ndarray | None,
    y: np.ndarray | None,
    held_out: tuple[np.ndarray, np.ndarray] | None,
    rate: float | None,
    quick: bool,
    missing: list[str],
    eigenvalues: dict[str, np.ndarray],
    budget: Budget,
    seed: int,
) -> Iterator[Observed]:
    """Read-out, calibration, learnability, drift of the tangent kernel, lazy-to-rich number.

    The eigenvalues of the tangent kernel over the number of examples, at the start and now, are
    put into `eigenvalues`.
    """
    hidden = [array for name, array in network.representations().items() if name != "outputs"]
    if y is not None and hidden and network.outputs is not None:
        yield difficulty(hidden[-1], y, seed=seed).measured
    if y is not None and network.probabilities is not None:
        yield from _calibrated(network.probabilities, y, seed)
    yield from _learned(network, held_out, seed, missing)
    late, start = network.function, None if first is None else first.function
    if late is None or start is None or inputs is None:
        return
    if quick:
        missing.append("drift of the tangent kernel, lazy-to-rich number: leave --quick out")
        return
    order = np.random.default_rng(seed).permutation(len(inputs))
    some = order[: budget.examples]
    columns = 1 if network.outputs is None else network.outputs.shape[1]
    if not budget.exact(len(some), late.parameters, columns):
        x = np.asarray(inputs)[order[: budget.sketched()]]
        directions = budget.directions(len(x), late.parameters)
        yield from feature_drift(*(one.features(x, directions, seed) for one in (start, late)))
        missing.append(f"lazy-to-rich number: {late.parameters} parameters are too many")
        return
    x = np.asarray(inputs)[some]
    kernels = [one.kernel(x, None) for one in (start, late)]
    for one in kernel_drift(*kernels):
        reduced = f"on {len(some)} of {len(inputs)} examples, by the budget"
        yield replace(one, note=reduced if len(some) < len(inputs) else one.note)
    for when, kernel in zip(("start", "now"), kernels):
        eigenvalues[when] = np.linalg.eigvalsh(kernel)[::-1] / len(x)
    if y is None or held_out is None:
        missing.append("lazy-to-rich number: give targets, and held-out inputs and targets")
        return
    if len(some) < len(inputs):
        missing.append(f"lazy-to-rich number: more than {budget.examples} training examples")
        return
    fresh = np.asarray(held_out[0])
    before, after, before_train, after_train = (
        one.outputs(points) for points in (fresh, x) for one in (start, late)
    )
    across = start.kernel(fresh, x)
    if before.shape[1] != 1 or y.shape[1] != 1:
        missing.append("lazy-to-rich number: the network must have one output")
        return
    try:
        yield lazy_to_rich(
            before, after, across, kernels[0], before_train, after_train, y[some],
            None if rate is None else 2 * rate / len(x),
        )  # fmt: skip
    except ValueError as error:
        missing.append(f"lazy-to-rich number: {error}")
    fresh_targets = target_columns(held_out[1])
    if len(fresh) >= FEWEST_FRESH and fresh_targets.shape == after.shape:
        yield from _learned_modes(after, fresh_targets, across, kernels[0], seed)


def _learned(
    network: InspectedNetwork,
    held_out: tuple[np.ndarray, np.ndarray] | None,
    seed: int,
    missing: list[str],
) -> list[Observed]:
    """The learnability of the target on held-out examples."""
    if network.function is None:
        return []
    if held_out is None:
        missing.append("learnability of the target: give held-out inputs and targets")
        return []
    f, y = network.function.outputs(np.asarray(held_out[0])), target_columns(held_out[1])
    if f.shape != y.shape or f.shape[1] != 1 or len(f) < FEWEST_FRESH or not np.ptp(y) > 0:
        missing.append(
            f"learnability of the target: needs one output, and {FEWEST_FRESH} held-out examples "
            "with different targets"
        )
        return []
    one = learnability(f[:, 0], y[:, 0], seed=seed)[0]
    return [replace(one, name="learnability of the target")]


def _learned_modes(
    f: np.ndarray, y: np.ndarray, across: np.ndarray, kernel: np.ndarray, seed: int
) -> list[Observed]:
    """The learnability of the leading eigenfunctions of the tangent kernel at the start: their
    values at held-out examples follow from the eigenvectors on the training examples (Nystroem)."""
    values, vectors = np.linalg.eigh(np.asarray(kernel, np.float64))
    count = min(MODES, int(np.sum(values > 1e-10 * values[-1])), len(f) // 4)
    modes = across @ (vectors[:, ::-1][:, :count] / values[::-1][:count])
    numbers = learnability(f[:, 0], y[:, 0], modes, seed=seed)
    return [
        replace(one, name=f"learnability of mode {place} of the start's kernel")
        for place, one in enumerate(numbers, 1)
    ]


def sharpness(
    network: InspectedNetwork,
    first: InspectedNetwork | None,
    inputs: np.ndarray | None,
    y: np.ndarray | None,
    rate: float,
    loss: str,
    missing: list[str],
) -> Iterator[Observed]:
    """The largest curvature of the loss times rate / 2, now and at the start."""
    for when, one in (("", network), (" at the start", first)):
        if one is None:
            continue
        if one.function is None or one.function.curvature is None or inputs is None or y is None:
            missing.append(f"curvature{when}: give a model in JAX or PyTorch, inputs and targets")
            continue
        if one.outputs is None or one.outputs.shape != y.shape:
            missing.append(f"curvature{when}: outputs and targets must have the same columns")
            continue
        most = one.function.curvature(np.asarray(inputs), y, loss)
        note = "1 is the edge of stability; the interval holds an eigenvalue for certain"
        yield replace(
            most, name=f"largest curvature x rate / 2{when}", value=most.value * rate / 2,
            low=most.low * rate / 2, high=most.high * rate / 2, note=note,
        )  # fmt: skip


def coefficients_of(
    network: InspectedNetwork,
    inputs: np.ndarray | None,
    y: np.ndarray | None,
    until: float | None,
    loss: str,
    missing: list[str],
    budget: Budget,
    seed: int,
) -> Iterator[Observed]:
    """The learning coefficient of half the squared error, or of the cross-entropy, with two widths
    of the prior, and the running coupling at each t, up to `until` (None: n / ln n)."""
    function = network.function
    if function is None or function.coefficient is None or inputs is None or y is None:
        missing.append("learning coefficient: give a model in JAX or PyTorch, inputs and targets")
        return
    if network.outputs is None or network.outputs.shape != y.shape:
        missing.append("learning coefficient: outputs and targets must have the same columns")
        return
    n = len(inputs)
    if not budget.coupled(n, function.parameters):
        missing.append(
            f"learning coefficient: {n} examples x {function.parameters} parameters are above the "
            "budget; give more minutes, or call learning_coefficient with a loss on fewer examples"
        )
        return
    last = n / math.log(n) if until is None else until
    if last < FEWEST_UNTIL:
        missing.append(
            f"learning coefficient: n / ln n = {last:.2g} leaves no window; name the largest t"
        )
        return
    times = np.geomspace(1, last, max(COUPLING_TIMES, math.ceil(math.log10(last)) + 1))
    x = np.asarray(inputs)
    wide, narrow = (function.coefficient(x, y, loss, times, part, seed) for part in (1.0, 0.5))
    differ = _differ(wide.coefficient, narrow.coefficient)
    if differ:
        warnings.warn(f"learning coefficient: {differ}", stacklevel=2)
    for found, words in ((wide, ""), (narrow, ", prior of half the width")):
        one = found.coefficient
        window = f"t from {found.window[0]:.3g} to {found.window[1]:.3g}"
        note = f"{window}; a regular minimum has {function.parameters / 2:g}"
        notes = "; ".join(word for word in (one.note, differ, note) if word)
        yield replace(one, name=one.name + words, note=notes)
    for t, each in zip(wide.times, wide.fluctuation):
        yield replace(each, name=f"running coupling at t = {t:.3g}")


def _differ(one: Observed, other: Observed) -> str:
    """A sentence on two priors whose coefficients differ by more than both intervals allow."""
    gap = one.value - other.value
    sides = (one.low, other.high) if gap > 0 else (one.high, other.low)
    if not abs(gap) > math.hypot(one.value - sides[0], other.value - sides[1]):  # NaN: not known
        return ""
    return (
        f"the two priors give {one.value:.3g} and {other.value:.3g}, which differ: it is not the "
        "coefficient of this minimum alone"
    )


def _calibrated(probabilities: np.ndarray, y: np.ndarray, seed: int) -> list[Observed]:
    answers = probabilities.argmax(axis=1)
    truth = (y[:, 0] > 0).astype(int) if y.shape[1] == 1 else y.argmax(axis=1)
    try:
        measured = calibration(probabilities.max(axis=1), answers == truth, seed=seed).measured
    except ValueError:
        return []
    note = "on the examples given: on those of training a network looks better calibrated"
    return [replace(measured, name="calibration: squared gap", note=note)]


def overlaps_of(
    network: InspectedNetwork, others: Sequence[InspectedNetwork], seed: int, missing: list[str]
) -> Iterator[Observed]:
    """The overlap and the similarity of the layers of a network with those of its other trainings.
    What cannot be measured is appended to `missing`."""
    if not others:
        missing.append("overlaps between trainings: give other trainings of the network")
        return
    weights = [one.layers[0].weight for one in (network, *others) if one.layers]
    units = [w.reshape(len(w), -1) for w in weights if w is not None]
    if len(units) == len(others) + 1 and units[0].shape[1] >= 4:
        one = (
            seed_overlap(units, seed=seed)
            if len(units) > 2
            else overlap(units[0], units[1], seed=seed).measured
        )
        yield replace(one, name=f"overlap of trainings, {network.layers[0].name}")
