"""The numbers of a network as a whole: drift of the tangent kernel, lazy-to-rich number, learnability,
read-out, calibration, curvature, overlaps with other trainings."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from orderparam.observables.calibration import calibration
from orderparam.observables.difficulty import difficulty
from orderparam.observables.layers import InspectedNetwork
from orderparam.observables.learnability import learnability
from orderparam.observables.observable import Observed
from orderparam.observables.overlaps import overlap, seed_overlap
from orderparam.observables.similarity import target_columns
from orderparam.observables.tangent_features import feature_drift
from orderparam.observables.tangent_kernel import kernel_drift, lazy_to_rich

MOST_TANGENT = 500  # examples of the exact tangent kernel
MOST_EXACT = 1e12  # products of it: examples^2 x parameters x outputs
MOST_SKETCHED = 2000  # examples of the tangent kernel in random directions
WORK = 2.5e12  # examples x directions x parameters
FEWEST_DIRECTIONS, MOST_DIRECTIONS = 16, 256
MODES = 5  # of the tangent kernel at the start, whose learnability is measured
FEWEST_FRESH = 20  # held-out examples for the learnability


def numbers_of_network(
    network: InspectedNetwork,
    first: InspectedNetwork | None,
    inputs: np.ndarray | None,
    y: np.ndarray | None,
    held_out: tuple[np.ndarray, np.ndarray] | None,
    rate: float | None,
    quick: bool,
    missing: list[str],
    seed: int,
) -> list[Observed]:
    """Read-out, calibration, learnability, drift of the tangent kernel, lazy-to-rich number."""
    found: list[Observed] = []
    hidden = [array for name, array in network.representations().items() if name != "outputs"]
    if y is not None and hidden and network.outputs is not None:
        found.append(difficulty(hidden[-1], y, seed=seed).measured)
    if y is not None and network.probabilities is not None:
        found += _calibrated(network.probabilities, y, seed)
    found += _learned(network, held_out, seed, missing)
    late, start = network.function, None if first is None else first.function
    if late is None or start is None or inputs is None:
        return found
    if quick:
        missing.append("drift of the tangent kernel, lazy-to-rich number: leave --quick out")
        return found
    order = np.random.default_rng(seed).permutation(len(inputs))
    some = order[:MOST_TANGENT]
    columns = 1 if network.outputs is None else network.outputs.shape[1]
    if len(some) ** 2 * late.parameters * columns > MOST_EXACT:
        x = np.asarray(inputs)[order[:MOST_SKETCHED]]
        most = int(WORK / (len(x) * late.parameters))
        directions = min(max(most, FEWEST_DIRECTIONS), MOST_DIRECTIONS)
        found += feature_drift(*(one.features(x, directions, seed) for one in (start, late)))
        missing.append(f"lazy-to-rich number: {late.parameters} parameters are too many")
        return found
    x = np.asarray(inputs)[some]
    kernels = [one.kernel(x, None) for one in (start, late)]
    found += kernel_drift(*kernels)
    if y is None or held_out is None:
        missing.append("lazy-to-rich number: give targets, and held-out inputs and targets")
        return found
    if len(some) < len(inputs):
        missing.append(f"lazy-to-rich number: more than {MOST_TANGENT} training examples")
        return found
    fresh = np.asarray(held_out[0])
    before, after, before_train, after_train = (
        one.outputs(points) for points in (fresh, x) for one in (start, late)
    )
    across = start.kernel(fresh, x)
    if before.shape[1] != 1 or y.shape[1] != 1:
        missing.append("lazy-to-rich number: the network must have one output")
        return found
    try:
        number = lazy_to_rich(
            before, after, across, kernels[0], before_train, after_train, y[some],
            None if rate is None else 2 * rate / len(x),
        )  # fmt: skip
        found.append(number)
    except ValueError as error:
        missing.append(f"lazy-to-rich number: {error}")
    fresh_targets = target_columns(held_out[1])
    if len(fresh) >= FEWEST_FRESH and fresh_targets.shape == after.shape:
        found += _learned_modes(after, fresh_targets, across, kernels[0], seed)
    return found


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
    missing: list[str],
) -> list[Observed]:
    """The largest curvature of the squared error times rate / 2, now and at the start."""
    found = []
    for when, one in (("", network), (" at the start", first)):
        if one is None:
            continue
        if one.function is None or one.function.curvature is None or inputs is None or y is None:
            missing.append(f"curvature{when}: give a model in JAX or PyTorch, inputs and targets")
            continue
        if one.outputs is None or one.outputs.shape != y.shape:
            missing.append(f"curvature{when}: outputs and targets must have the same columns")
            continue
        most = one.function.curvature(np.asarray(inputs), y)
        note = "1 is the edge of stability; the interval holds an eigenvalue for certain"
        found.append(
            replace(
                most, name=f"largest curvature x rate / 2{when}", value=most.value * rate / 2,
                low=most.low * rate / 2, high=most.high * rate / 2, note=note,
            )
        )  # fmt: skip
    return found


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
) -> list[Observed]:
    found: list[Observed] = []
    if not others:
        missing.append("overlaps between trainings: give other trainings of the network")
        return found
    weights = [one.layers[0].weight for one in (network, *others) if one.layers]
    units = [w.reshape(len(w), -1) for w in weights if w is not None]
    if len(units) == len(others) + 1 and units[0].shape[1] >= 4:
        one = (
            seed_overlap(units, seed=seed)
            if len(units) > 2
            else overlap(units[0], units[1], seed=seed).measured
        )
        found.append(replace(one, name=f"overlap of trainings, {network.layers[0].name}"))
    return found
