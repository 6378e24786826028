"""`inspect`: the order parameters of a trained network, layer by layer."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from orderparam.observables.budget import Budget
from orderparam.observables.files import read_all, read_arrays, target_of
from orderparam.observables.gaussianity import excess_kurtosis
from orderparam.observables.groups import group_codes, warn_of_repeats
from orderparam.observables.layer_numbers import numbers_of_layer
from orderparam.observables.layers import LOSSES, InspectedNetwork, Loss
from orderparam.observables.network import of_arrays, read_network
from orderparam.observables.network_numbers import (
    FEWEST_UNTIL,
    coefficients_of,
    numbers_of_network,
    overlaps_of,
    sharpness,
)
from orderparam.observables.observable import Observed
from orderparam.observables.similarity import target_columns
from orderparam.observables.tail import power_law_tail
from orderparam.observables.weights import Outlier, WeightSpectrum, weight_spectrum

if TYPE_CHECKING:
    import xarray as xr

    from orderparam.observables.theory_comparison import TheoryComparison

MOST_COLUMNS = 4096  # of a weight matrix whose singular values are found
MOST_OUTLIERS = 5  # whose strengths are reported
FEWEST_STARTS = 20

Files = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass(frozen=True)
class Seen:
    """The inspected network with its data: the network, the one it was before training, its inputs
    with one column of targets for each output, and inputs and targets that were not trained on."""

    network: InspectedNetwork
    initial: InspectedNetwork | None
    inputs: np.ndarray | None
    targets: np.ndarray | None
    held_out: tuple[np.ndarray, np.ndarray] | None
    others: tuple[InspectedNetwork, ...] = ()


@dataclass(frozen=True)
class Inspection:
    """The result of `inspect`.

    layers: measured numbers of each representation, by name. spectra: of each weight matrix;
    weights: numbers of each. network: numbers of the whole. missing: what was not measured, and
    which input would give it. eigenvalues: of the tangent kernel over the number of examples, from
    the largest, "start" and "now", where the kernel was formed. interrupted: measuring was ended by
    Ctrl-C, and later numbers are missing. seconds: what it cost. seen: the networks and the data,
    for `compare_with_theory`.
    """

    title: str
    layers: dict[str, list[Observed]]
    weights: dict[str, list[Observed]]
    spectra: dict[str, WeightSpectrum]
    network: list[Observed]
    missing: list[str]
    examples: int | None
    eigenvalues: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    interrupted: bool = False
    seconds: float = field(default=0.0, compare=False)
    seen: "Seen | None" = field(default=None, compare=False, repr=False)

    def dataset(self) -> "xr.Dataset":
        """Everything as one labelled data set: dimensions `layer` and `matrix`; of each number its
        `_lower`, `_upper` and `_p`."""
        from orderparam.observables.report import dataset_of

        return dataset_of(self)

    def figure(self, compared: "TheoryComparison | None" = None) -> Any:
        """The figure: alignment and similarity of the layers with their nulls, spectra of weights,
        and the tangent kernel at the start and now; also predicted and measured numbers, if what
        `compare_with_theory` returned is given."""
        from orderparam.observables.inspection_figure import draw

        return draw(self, compared)

    def html(self, compared: "TheoryComparison | None" = None, command: str = "") -> str:
        """One page with tables and the figure in it; also with what `compare_with_theory`
        returned and with the command that makes the page, if they are given."""
        from orderparam.observables.report import page

        return page(self, compared, command)

    def __str__(self) -> str:
        from orderparam.observables.report import as_text

        return as_text(self)


def inspect(
    model: Any,
    inputs: np.ndarray | None = None,
    targets: np.ndarray | str | os.PathLike[str] | None = None,
    *,
    parameters: Any = None,
    initial: Any = None,
    held_out: tuple[np.ndarray, np.ndarray] | None = None,
    starts: Sequence[Any] = (),
    seeds: Sequence[Any] = (),
    rate: float | None = None,
    learning_coefficient: float | Literal["auto"] | None = None,
    loss: Loss = "square",
    groups: np.ndarray | str | None = None,
    budget: Budget | None = None,
    quick: bool = False,
    seed: int = 0,
) -> Inspection:
    """The order parameters of a trained network, each with an interval, a null and a p-value.

    Args:
        model: A function f(parameters, inputs) in JAX, an Equinox or Flax module, a
            `torch.nn.Module`, a fitted scikit-learn estimator, or the names of files (`.npy`,
            `.npz`, `.safetensors`) with activations (a row an example) and weights.
        inputs: Examples as the model takes them; not for files.
        targets: One for each example; for files also the name of an array in them.
        parameters: Of a function, the variables of a Flax Linen module, or those of a PyTorch
            module by name (a state dictionary); also the name of a file (`.safetensors`, `.npz`)
            with these arrays.
        initial: The same before training: parameters as above, another module, or files.
        held_out: Inputs and targets that were not trained on, for the lazy-to-rich number and the
            learnability; then `inputs` and `targets` are those of training.
        starts: 20 or more networks at initialisation (as `initial`), the null of the
            pre-activations.
        seeds: Further trainings of the same network (as `initial`), for overlaps.
        rate: Learning rate of gradient descent on the mean over examples of |f - y|^2: the
            lazy-to-rich number then counts its steps, and the largest curvature of a model in JAX
            or PyTorch is compared with 2 / rate, above which descent does not stay.
        learning_coefficient: Measures the learning coefficient of a model in JAX or PyTorch, up to
            this number of examples times inverse temperature; "auto" is n / ln n. Some minutes for
            a few thousand parameters.
        loss: Of the learning coefficient and of the curvature: "square", half the mean over
            examples of |f - y|^2 (the whole mean for the curvature), or "cross-entropy" of logits:
            one output for two classes, otherwise one for each class.
        groups: Labels of examples that depend on one another, such as the text of each token, or
            the name of an array in the files: numbers of layers then have intervals over groups,
            and p-values of permuted groups where all have one size.
        budget: Memory and minutes for the tangent kernel and the learning coefficient, by default
            4 GiB and 10; what is too large is measured on fewer examples or in random directions,
            and its note says so.
        quick: Without the tangent kernel, and with 99 permutations.
        seed: Of random numbers.

    Returns:
        An `Inspection`: print it; `dataset()`, `figure()` and `html()` hold the same. After Ctrl-C
            it contains what was measured until then, and its `interrupted` is True.

    Raises:
        ValueError: for what cannot be read, targets that do not fit, networks that are random.

    Source: of each number, in its `source`.

    >>> x = np.random.default_rng(0).normal(size=(50, 4))
    >>> found = inspect(lambda w, x: x @ w, x, x[:, 0], parameters=np.eye(4)[:, :2])
    >>> list(found.layers)
    ['outputs']
    """
    start_time = time.perf_counter()
    draws = 99 if quick else 999
    if rate is not None and not 0 < rate < np.inf:
        raise ValueError(f"rate = {rate}: must be > 0")
    until, allowed = _until(learning_coefficient), budget or Budget()
    if loss not in LOSSES:
        raise ValueError(f"loss = {loss!r}: must be {' or '.join(map(repr, LOSSES))}")
    title, network, y, labels, read = _read(model, inputs, targets, parameters, groups)
    first = None if initial is None else read(initial)
    if y is not None:
        y = target_columns(y)
    missing: list[str] = []
    found = Inspection(title, {}, {}, {}, [], missing, None)
    before = {} if first is None else first.representations()
    shapes: dict[str, np.ndarray] = network.representations()
    found = replace(found, examples=_examples(shapes, y))
    others: tuple[InspectedNetwork, ...] = ()
    codes = None
    if labels is not None:
        if found.examples is None:
            raise ValueError("groups: are of examples, and there are no activations")
        codes = group_codes(labels, found.examples, seed)
        missing.append("groups for the numbers of the whole network: their units are examples")
    try:
        for name, array in shapes.items():
            found.layers[name] = numbers_of_layer(array, before.get(name), y, codes, draws, seed)
        _preactivations(network, [read(one) for one in starts], found)
        _spectra(network, first, found, seed)
        whole = numbers_of_network(
            network,
            first,
            inputs,
            y,
            held_out,
            rate,
            quick,
            missing,
            found.eigenvalues,
            allowed,
            seed,
        )
        found.network.extend(whole)
        if rate is not None:
            found.network.extend(sharpness(network, first, inputs, y, rate, loss, missing))
        others = tuple(read(one) for one in seeds)
        found.network.extend(overlaps_of(network, others, seed, missing))
        if learning_coefficient is not None:
            found.network.extend(
                coefficients_of(network, inputs, y, until, loss, missing, allowed, seed)
            )
    except KeyboardInterrupt:
        if not found.layers and not found.spectra:
            raise
        missing.append("what follows the numbers above: interrupted")
        found = replace(found, interrupted=True)
    missing.extend(_not_given(network, first, y is None, len(starts), learning_coefficient is None))
    if labels is None and any(
        np.isfinite(one.value) for part in found.layers.values() for one in part
    ):
        warn_of_repeats(shapes.values() if inputs is None else [np.asarray(inputs)])
    seconds = time.perf_counter() - start_time
    seen = Seen(network, first, inputs, y, held_out, others)
    return replace(found, seconds=seconds, seen=seen)


def _examples(shapes: Mapping[str, np.ndarray], y: np.ndarray | None) -> int | None:
    """The number of examples, None if there are no activations. Raises `ValueError` unless there is
    a target for each."""
    examples = None
    for name, array in shapes.items():
        examples = len(array)
        if y is not None and len(y) != examples:
            raise ValueError(
                f"{name} has {examples} rows and the targets {len(y)}: must be one for each example"
            )
    return examples


def _not_given(
    network: InspectedNetwork,
    first: InspectedNetwork | None,
    without_targets: bool,
    starts: int,
    without_coefficient: bool,
) -> list[str]:
    """The numbers that were not measured because an argument was not given, and which one."""
    found = []
    if without_targets:
        found.append("alignment, read-out error: give targets")
    if first is None:
        found.append(
            "similarity to the start, drift of the kernel, change of weights: give the start"
        )
    else:
        found.extend(_not_in_the_start(network, first))
    if any(layer.outputs is not None for layer in network.layers) and starts < FEWEST_STARTS:
        found.append(
            f"null of the pre-activations: give {FEWEST_STARTS} networks at initialisation"
        )
    if without_coefficient and network.function is not None:
        found.append("learning coefficient: ask for it, it takes minutes")
    return found


def _not_in_the_start(network: InspectedNetwork, first: InspectedNetwork) -> list[str]:
    """The numbers that the network before training does not allow, and why."""
    found = []
    now, before = network.representations(), first.representations()
    if lacking := [name for name in now if name not in before]:
        why = f"the start has those of {', '.join(before)}" if before else "the start has none"
        found.append(
            f"similarity to the start, gain of alignment of {', '.join(lacking)}: {why}; give its "
            "activations of the same examples under the same names"
        )
    weights, old = (
        [one.name for one in each.layers if one.weight is not None] for each in (network, first)
    )
    if lacking := [name for name in weights if name not in old]:
        why = f"the start has those of {', '.join(old)}" if old else "the start has none"
        found.append(f"change of weights of {', '.join(lacking)}: {why}; use the same names")
    if network.function is None:
        found.append("drift of the kernel, lazy-to-rich number: give a model instead of arrays")
    return found


def _until(asked: float | str | None) -> float | None:
    """The largest t of the learning coefficient, None for n / ln n."""
    if asked is None or asked == "auto":
        return None
    if isinstance(asked, str) or not FEWEST_UNTIL <= asked < np.inf:
        raise ValueError(
            f"learning_coefficient = {asked!r}: must be 'auto' or a number, at least "
            f"{FEWEST_UNTIL:g}"
        )
    return float(asked)


def _preactivations(
    network: InspectedNetwork, starts: Sequence[InspectedNetwork], found: Inspection
) -> None:
    """The excess kurtosis of each hidden layer's pre-activations, put to its numbers."""
    for layer, null in zip(network.layers, _nulls(network, starts)):
        if layer.outputs is not None and layer.name in _hidden(network):
            place = f"hidden {_hidden(network)[layer.name]}"
            try:
                number = excess_kurtosis(layer.outputs, null)
            except ValueError as error:
                number = Observed("excess kurtosis", np.nan, note=str(error))
            found.layers[place].append(number)


def _spectra(
    network: InspectedNetwork, first: InspectedNetwork | None, found: Inspection, seed: int
) -> None:
    """The spectra of the weights and their numbers, put into what was found."""
    old = {} if first is None else {one.name: one.weight for one in first.layers}
    for layer in network.layers:
        if layer.weight is None or min(layer.weight.shape[0], layer.weight[0].size) < 2:
            continue
        if min(layer.weight.shape[0], layer.weight[0].size) > MOST_COLUMNS:
            found.missing.append(f"spectrum of {layer.name}: more than {MOST_COLUMNS} columns")
            continue
        try:
            spectrum = weight_spectrum(layer.weight, old.get(layer.name), seed=seed)
        except ValueError as error:
            found.missing.append(f"spectrum of {layer.name}: {error}")
            continue
        found.weights[layer.name] = _weights(spectrum, seed)
        found.spectra[layer.name] = spectrum


def _read(
    model: Any, inputs: np.ndarray | None, targets: Any, parameters: Any, groups: Any
) -> tuple[str, InspectedNetwork, np.ndarray | None, np.ndarray | None, Any]:
    """A title, the network, the targets, the groups, and how another network of this kind is
    read."""
    files = _files(model)
    if files is not None:
        arrays = read_all(files)
        name, y = target_of(arrays, targets) if _is_name(targets) else (None, targets)
        group, labels = target_of(arrays, groups) if _is_name(groups) else (None, groups)
        rest = {key: array for key, array in arrays.items() if key not in (name, group)}
        examples = None if y is None else len(y)

        def read(other: Any) -> InspectedNetwork:
            there = read_all(_files(other) or [other])
            named = {k: v for k, v in there.items() if k not in (name, group)}
            return of_arrays(named, examples, activated=False)

        title = ", ".join(Path(one).name for one in files)
        return title, of_arrays(rest, examples), y, labels, read
    for what, value in (("targets", targets), ("groups", groups)):
        if _is_name(value):
            raise ValueError(f"{what} = {value!r}: a name is meant for files; give an array")
    if isinstance(model, Mapping):
        examples = None if targets is None else len(targets)
        return (
            "arrays",
            of_arrays(model, examples),
            targets,
            groups,
            lambda one: of_arrays(one, examples, activated=False),
        )
    network = read_network(model, inputs, _loaded(parameters))

    def another(other: Any) -> InspectedNetwork:
        if parameters is not None or _is_name(other) or isinstance(other, Mapping):
            return read_network(model, inputs, _loaded(other))
        return read_network(other, inputs)

    return getattr(model, "__name__", type(model).__name__), network, targets, groups, another


def _loaded(parameters: Any) -> Any:
    """Parameters, those in a file by name."""
    return read_arrays(parameters) if _is_name(parameters) else parameters


def _files(model: Any) -> list[str | os.PathLike[str]] | None:
    if isinstance(model, str | os.PathLike):
        return [model]
    if isinstance(model, list | tuple) and all(isinstance(one, str | os.PathLike) for one in model):
        return list(model)
    return None


def _is_name(targets: Any) -> bool:
    return isinstance(targets, str | os.PathLike)


def _hidden(network: InspectedNetwork) -> dict[str, int]:
    """Layers whose outputs become a hidden representation, with its number."""
    return {layer.name: place for place, layer in enumerate(network.layers[:-1], 1)}


def _nulls(network: InspectedNetwork, starts: Sequence[InspectedNetwork]) -> list[list[np.ndarray]]:
    """The outputs of each layer in the networks at initialisation."""
    found: list[list[np.ndarray]] = []
    for place in range(len(network.layers)):
        layers = [one.layers[place] for one in starts if place < len(one.layers)]
        found.append([layer.outputs for layer in layers if layer.outputs is not None])
    return found


def _weights(spectrum: WeightSpectrum, seed: int) -> list[Observed]:
    count = Observed(
        "outliers",
        float(len(spectrum.outliers)),
        p_value=spectrum.outliers[0].value.p_value if spectrum.outliers else np.nan,
        estimand="entries",
        note=(
            f"against {spectrum.null}; one of strength {spectrum.least_strength:.2g} is found in "
            "half of all cases"
        )
        if not spectrum.outliers
        else f"against {spectrum.null}; p of the largest",
    )
    found = [count, spectrum.stable_rank, power_law_tail(spectrum, seed=seed).exponent]
    if np.isfinite(spectrum.shift):
        found.append(Observed("change of weights", spectrum.shift, estimand="entries"))
    return found + [
        _strength(outlier, place)
        for place, outlier in enumerate(spectrum.outliers[:MOST_OUTLIERS], 1)
    ]


def _strength(outlier: Outlier, place: int) -> Observed:
    """The strength of an outlier; its note has the overlaps of its singular vectors."""
    note = (
        f"singular value {outlier.value.value:.3g}; squared overlaps with the signal "
        f"{outlier.long_overlap:.2f} (long side) and {outlier.short_overlap:.2f}"
    )
    if np.isfinite(outlier.shift_overlap[0]):
        note += "; with the change of weights {:.2f} and {:.2f}".format(*outlier.shift_overlap)
    return replace(
        outlier.strength,
        name=f"strength of outlier {place}",
        p_value=outlier.value.p_value,
        note=note,
    )
