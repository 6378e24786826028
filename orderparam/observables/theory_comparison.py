"""Which theories describe a trained network, what each predicts, and what was measured."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from orderparam.core.text import with_error
from orderparam.observables.assumptions import HOLDS, UNTESTED, Predicted, TheoryVerdict
from orderparam.observables.case import Case
from orderparam.observables.inspection import Inspection, Seen
from orderparam.observables.observable import Observed
from orderparam.observables.similarity import target_columns
from orderparam.observables.theories import THEORIES

if TYPE_CHECKING:
    import xarray as xr

FEWEST = 8  # held-out examples
MOST = 2000  # training and held-out examples together: kernels are matrices
AGREES = 3.0  # standard errors


@dataclass(frozen=True)
class Elsewhere:
    """Another training: its number of examples, the width of its last hidden layer, and its
    error."""

    examples: int
    width: int
    error: Observed


@dataclass(frozen=True)
class TheoryComparison:
    """The result of `compare_with_theory`; print it.

    theories: one verdict each. examples, width: those of the network. test_error, train_error: the
    measured mean of |f - y|^2, summed over outputs. elsewhere: the measured errors of other
    trainings.
    """

    theories: tuple[TheoryVerdict, ...]
    examples: int
    width: int
    test_error: Observed
    train_error: float
    elsewhere: tuple[Elsewhere, ...] = ()

    @property
    def accepted(self) -> list[TheoryVerdict]:
        """The theories that are not refused."""
        return [one for one in self.theories if one.verdict != "refused"]

    def at(self, theory: TheoryVerdict, examples: int, width: int) -> float:
        """The predicted test error at another number of examples, or another width; NaN where the
        theory has no prediction."""
        if width in (self.width, 0) and examples in theory.by_examples:
            return theory.by_examples[examples]
        if examples == self.examples:
            return theory.by_width.get(width, theory.by_width.get(math.inf, math.nan))
        return math.nan

    @property
    def sentence(self) -> str:
        """A sentence on which theory describes the network, its deviation, and the measurement that
        would distinguish it from the others."""
        found = [
            (one, one.test_error)
            for one in self.accepted
            if one.test_error is not None and math.isfinite(one.test_error.value)
        ]
        if not found:
            return "No theory here describes the test error of this network" + _refusals(
                [one for one in self.theories if one.verdict == "refused"]
            )
        best, number = min(found, key=lambda pair: abs(pair[1].deviation))
        assert number is not None
        assert number.measured is not None
        verb = "comes nearest to"
        if abs(number.z) <= AGREES:
            verb = "describes" if best.verdict == "applies" else "describes approximately"
        words = (
            f"The theory '{best.theory}' {verb} this "
            f"network: test error {number.value:.3g} predicted, {_interval(number.measured)} "
            f"measured, off by {100 * number.deviation:+.0f} % (z = {number.z:.1f})"
        )
        wrong = [
            f"{one.name} (z = {one.z:.1f})"
            for one in best.predictions
            if one is not number and abs(one.z) > AGREES
        ]
        words += f"; it misses {', '.join(wrong)}" if wrong else ""
        others = [one for one, _ in found if one is not best]
        return words + "." + _decisive(best, others, (self.examples, self.width))

    def dataset(self) -> "xr.Dataset":
        """The predicted test errors over `theory` and `n_train`, over `theory` and `width`, and
        each theory's verdict."""
        import xarray as xr

        names = [one.theory for one in self.theories]
        tables = {}
        for name, axis in (("by_examples", "n_train"), ("by_width", "width")):
            places = sorted({place for one in self.theories for place in getattr(one, name)})
            values = [
                [getattr(one, name).get(place, np.nan) for place in places] for one in self.theories
            ]
            shape = (len(names), len(places))
            data = np.asarray(values, float).reshape(shape)
            tables[f"test_error_{name}"] = xr.DataArray(
                data, dims=("theory", axis), coords={"theory": names, axis: places}
            )
        verdicts = xr.DataArray([one.verdict for one in self.theories], dims="theory")
        measured = self.test_error
        return xr.Dataset({**tables, "verdict": verdicts}).assign(
            test_error=measured.value, test_error_lower=measured.low,
            test_error_upper=measured.high,
        )  # fmt: skip

    def __str__(self) -> str:
        lines = [
            f"{self.examples} training examples, {self.width} units in the last hidden layer",
            f"test error {_interval(self.test_error)}, training error {self.train_error:.3g} "
            "(squared, summed over outputs)",
        ]
        for one in self.theories:
            lines += ["", f"{one.theory}: {one.verdict}"]
            lines += [f"  {HOLDS[each.verdict]}: {each}" for each in one.assumptions]
            lines += [f"  {_compared(number)}" for number in one.predictions]
            if len(one.by_examples) > 1:
                curve = (f"{error:.3g} at {n}" for n, error in sorted(one.by_examples.items()))
                lines.append(f"  test error by examples: {', '.join(curve)}")
            if len(one.by_width) > 1:
                curve = (f"{error:.3g} at {w:g}" for w, error in sorted(one.by_width.items()))
                lines.append(f"  test error by width: {', '.join(curve)}")
            for other in self.elsewhere:
                value = self.at(one, other.examples, other.width)
                if math.isfinite(value) and one.verdict != "refused":
                    number = Predicted("test error", value, other.error)
                    where = f"{other.examples} examples, width {other.width}"
                    lines.append(f"  another training, {where}: {_compared(number)}")
            lines += [f"  {note}" for note in one.notes]
            lines += [f"  source: {one.source}"] if one.source else []
        return "\n".join([*lines, "", self.sentence])


def compare_with_theory(
    measured: Inspection,
    *,
    temperature: float | None = None,
    rate: float | None = None,
    others: Sequence[Inspection] = (),
) -> TheoryComparison:
    r"""Which theories of this package describe a trained network, what each predicts, and what was
    measured.

    A theory is refused where an assumption of it, measured on this network, fails; the answer
    says which, with the number. The theories and their assumptions are

    - the kernel of the start: the lazy-to-rich number below 0.1 (refused above 0.3), squared error;
    - random features with the first layers at the start: the share of the learned change that is
    due to the hidden layers, $|f(h_T) - f(h_0)| / |f_T - f_0|$ with the trained read-out, below 0.1
    (0.3); - the kernel of the trained last layer, for a new read-out: held-out examples; - the
    proportional limit, a Bayesian network of this width: a temperature,
      $\sum_i w_i (\partial_i E / T + w_i / \sigma_i^2) = P$ within 3 (5) standard errors, and the
      training error of the posterior within 40 % (a factor of 2);
    - the adapting kernel: the same, for two layers of erf, relu or linear units;
    - one giant step: a change of the first layer of which 90 % (70 %) is one direction, isotropic
      inputs, and a target of which 90 % (70 %) is one linear direction;
    - extensive width: two layers, isotropic inputs, more than 0.3 (0.03) d^2 examples of d inputs,
      hidden units whose norms scatter by less than 30 % (60 %), an activation without a quadratic
      component.

    Args:
        measured: The result of `inspect` for a model with its inputs, targets and `held_out`
            examples, and the network before training as `initial`.
        temperature: T, where the network is a sample from the posterior of summed squared error
            / (2 T) with the prior from which `initial` was drawn.
        rate: Learning rate of gradient descent, as in `lazy_to_rich`; None for gradient flow.
        others: Results of `inspect` for the same network at other widths, or after training on
            other numbers of examples; they are compared with the predictions.

    Returns:
        A `TheoryComparison`: print it; `sentence` is its end.

    Raises:
        ValueError: for an inspection of files, fewer than 8 held-out examples, more than 2000
            examples in all, and a temperature that is not positive.

    Accuracy: a z compares with the standard error of the measurement; what a theory neglects is
        not in it. Errors are those of held-out examples of one training, and predictions are
        averages over training sets unless said otherwise.

    Source: of each theory, in its `source`; assumptions and bounds derived here.

    >>> import orderparam as op
    >>> rng = np.random.default_rng(0)
    >>> x, w = rng.normal(size=(60, 4)), np.ones(4)
    >>> found = op.inspect(
    ...     lambda w, x: x @ w, x[:40], (x @ w)[:40], parameters=0.9 * w, initial=0 * w,
    ...     held_out=(x[40:], (x @ w)[40:]), quick=True,
    ... )
    >>> op.compare_with_theory(found).theories[0].verdict
    'applies'
    """
    case = _case(measured, temperature, rate, [_examples(other) for other in others])
    elsewhere = []
    for other in others:
        one = _case(other, None, None, ())
        elsewhere.append(Elsewhere(one.examples, _width(one.seen), one.test_error))
    verdicts = tuple(judge(case) for judge in THEORIES)
    return TheoryComparison(
        verdicts, case.examples, _width(case.seen), case.test_error, case.train_error,
        tuple(elsewhere),
    )  # fmt: skip


def _seen(measured: Inspection) -> Seen:
    seen = measured.seen
    if seen is None or seen.inputs is None or seen.network.function is None:
        raise ValueError(
            "the inspection is of files: theories need the model itself, with inputs and targets"
        )
    if seen.targets is None or seen.held_out is None:
        raise ValueError(
            "the inspection has no targets and held_out examples: give both to inspect"
        )
    return seen


def _examples(measured: Inspection) -> int:
    return len(_seen(measured).inputs)  # type: ignore[arg-type]


def _case(
    measured: Inspection, temperature: float | None, rate: float | None, sizes: Sequence[int]
) -> Case:
    seen = _seen(measured)
    if temperature is not None and not temperature > 0:
        raise ValueError(f"temperature = {temperature}: must be > 0")
    assert seen.inputs is not None
    assert seen.targets is not None
    assert seen.held_out is not None
    assert seen.network.function is not None
    x, fresh = np.asarray(seen.inputs), np.asarray(seen.held_out[0])
    y, y_fresh = seen.targets, target_columns(seen.held_out[1])
    n = len(x)
    if y.shape[1] != y_fresh.shape[1] or len(fresh) != len(y_fresh):
        raise ValueError(
            f"targets have shape {y.shape} and those held out {y_fresh.shape} for {len(fresh)} "
            "examples: must have the same columns"
        )
    if len(fresh) < FEWEST:
        raise ValueError(f"{len(fresh)} held-out examples: must be at least {FEWEST}")
    if n + len(fresh) > MOST:
        raise ValueError(
            f"{n + len(fresh)} examples: must be at most {MOST}, training and held out"
        )
    function = seen.network.function
    outputs = function.outputs(x), function.outputs(fresh)
    if outputs[0].shape != y.shape:
        raise ValueError(
            f"outputs have shape {outputs[0].shape} and targets {y.shape}: must be the same"
        )
    before = None
    if seen.initial is not None and seen.initial.function is not None:
        before = seen.initial.function.outputs(x), seen.initial.function.outputs(fresh)
    wanted = tuple(sorted({n // 8, n // 4, n // 2, *sizes} - {0, n}))
    return Case(seen, (x, y), (fresh, y_fresh), outputs, before, wanted, temperature, rate)


def _width(seen: Seen) -> int:
    """Units of the last hidden layer."""
    layers = seen.network.layers
    if not layers or layers[-1].inputs is None or len(layers) < 2:
        return 0
    return int(layers[-1].inputs.shape[1])


def _refusals(refused: Sequence[TheoryVerdict]) -> str:
    """The assumption of each theory that fails; then the theories that were not tested, and what
    they need."""
    failed: dict[str, list[str]] = {}
    untested: dict[str, list[str]] = {}
    for one in refused:
        decisive = next(each for each in one.assumptions if each.verdict == "refused")
        if decisive.bound.startswith(UNTESTED):
            needs = decisive.bound.removeprefix(UNTESTED)
            untested.setdefault(needs, []).append(f"'{one.theory}'")
        else:
            failed.setdefault(str(decisive), []).append(f"'{one.theory}'")
    words = "."
    if failed:
        each = (f"of {' and '.join(names)}: {assumed}" for assumed, names in failed.items())
        words += f" An assumption fails {'; '.join(each)}."
    if untested:
        lacking = (f"{', '.join(names)} ({needs})" for needs, names in untested.items())
        words += f" Not tested: {'; '.join(lacking)}."
    return words


def _interval(measured: Observed) -> str:
    return with_error(measured.value, measured.error)


def _compared(number: Predicted) -> str:
    predicted = f"{number.value:.3g} predicted" if math.isfinite(number.value) else "no prediction"
    if number.measured is None or not math.isfinite(number.measured.value):
        return f"{number.name}: {predicted}"
    z = f", z = {number.z:.1f}" if math.isfinite(number.z) else ""
    return f"{number.name}: {predicted}, {_interval(number.measured)} measured{z}"


def _decisive(best: TheoryVerdict, others: Sequence[TheoryVerdict], here: tuple[int, int]) -> str:
    """The number of examples, or the width, at which another theory differs most from the best."""
    found = []
    for other in others:
        for word, mine, theirs in (
            (f"{{:g}} training examples and width {here[1]}", best.by_examples, other.by_examples),
            (f"width {{:g}} and {here[0]} training examples", best.by_width, other.by_width),
        ):
            errors = {float(place): value for place, value in mine.items()}
            limit = errors.get(math.inf, math.nan)  # a theory that predicts no width but the limit
            for place, value in theirs.items():
                own = errors.get(float(place), limit)
                if own > 0 and value > 0 and math.isfinite(place) and place not in here:
                    found.append(
                        (abs(math.log(value / own)), other, word.format(place), own, value)
                    )
    if not found:
        return "" if not others else f" '{others[0].theory}' is not excluded either."
    _, other, where, own, value = max(found, key=lambda one: one[0])
    return (
        f" A measurement at {where} would tell it from '{other.theory}': {own:.3g} against "
        f"{value:.3g}."
    )
