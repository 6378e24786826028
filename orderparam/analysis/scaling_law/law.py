"""The scaling law of given runs: its form, its parameters with intervals, its predictions for
larger budgets, and warnings about numbers that the runs do not determine.

law = scaling_law(loss, parameters, samples)
law.values["alpha"], law.intervals["alpha"], law.form
law.allocate(1e24).parameters            # best size for 1e24 operations, with its interval
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

from orderparam.analysis.scaling_law.fit import DELTA, bootstrapped, minimise
from orderparam.analysis.scaling_law.forms import FORMS, Form, Inputs, fitting, inputs_of
from orderparam.analysis.scaling_law.runs import FLOPS, Runs
from orderparam.core.names import near
from orderparam.solve.root import decreasing_root

BOOTSTRAP = 200
_COVERED = (2.5, 97.5)
_HELD_OUT = 0.25  # share of the runs, those with most compute, on which nested forms are compared
_SIMPLER = 1.1  # a form with more unknowns must extrapolate better by this factor
_SPARE = 2  # number of runs needed in addition to the number of unknowns


class Interval(NamedTuple):
    """A number with the 2.5th and 97.5th percentile of the bootstrap."""

    value: float
    low: float
    high: float


class Allocation(NamedTuple):
    """Size, samples and loss of the best run at a given compute."""

    compute: float
    parameters: Interval
    samples: Interval
    loss: Interval


@dataclass(frozen=True)
class ScalingLaw:
    """The law that was fitted.

    form: its name (see `forms`). values, intervals: of its numbers; `a` and `b`: N* ~ C^a, D* ~ C^b
    (form "additive"). scatter: root mean square of log(L / fit), without the runs that deviate by
    more than three times the median deviation; outliers: the rows of those runs, counted from 1.
    held_out: form -> root mean square of log(L / fit) on the quarter of the runs with most compute,
    for a fit to the other runs. warnings: sentences on what these runs do not determine.
    """

    form: str
    values: dict[str, float]
    intervals: dict[str, Interval]
    scatter: float
    outliers: tuple[int, ...]
    held_out: dict[str, float]
    warnings: tuple[str, ...]
    runs: Runs
    unknowns: np.ndarray = field(repr=False)
    draws: np.ndarray = field(repr=False)

    @property
    def _fits(self) -> np.ndarray:
        return np.concatenate([self.unknowns[None], self.draws])

    def predict(
        self,
        parameters: ArrayLike | None = None,
        samples: ArrayLike | None = None,
        unique: ArrayLike | None = None,
    ) -> Any:
        """The predicted loss as (value, low, high), each of the shape of the sizes."""
        given = [
            np.atleast_1d(np.asarray(column, float))
            for column in (parameters, samples, unique)
            if column is not None
        ]
        ones = np.ones(np.broadcast_shapes(*(column.shape for column in given)))
        n, d, u = (
            None if column is None else ones * np.asarray(column, float)
            for column in (parameters, samples, unique)
        )
        runs = Runs(ones, n, d, u, self.runs.flops)
        form, inputs = FORMS[self.form], inputs_of(runs)
        value, *draws = np.asarray(_losses(form, jnp.asarray(self._fits), inputs))
        return (value, *np.percentile(draws, _COVERED, axis=0))

    def allocate(self, compute: float) -> Allocation:
        """The best split of a compute C, min over N of L(N, C / (flops N)). Raises `ValueError` for
        a form with one size, for which there is nothing to split."""
        if self.runs.parameters is None or self.runs.samples is None:
            raise ValueError(
                f"form {self.form!r} knows one size only: there is nothing to share out"
            )
        if not (np.isfinite(compute) and compute > 0):
            raise ValueError(f"compute = {compute!r}: must be finite and > 0")
        log_n, log_loss = (
            np.asarray(column)
            for column in _optimum(
                FORMS[self.form], jnp.asarray(self._fits), np.log(compute / self.runs.flops)
            )
        )
        n, d = np.exp(log_n), compute / self.runs.flops / np.exp(log_n)
        return Allocation(
            compute, *(_interval(column[0], column[1:]) for column in (n, d, np.exp(log_loss)))
        )


def _interval(value: float, draws: np.ndarray) -> Interval:
    return Interval(float(value), *map(float, np.percentile(draws, _COVERED)))


@partial(jax.jit, static_argnames="form")
def _optimum(form: Form, unknowns: jax.Array, log_product: float) -> tuple[jax.Array, jax.Array]:
    """log N of the lowest loss at N D = exp(log_product), and log L there, for every row of
    unknowns."""

    def loss(log_n: jax.Array, u: jax.Array) -> jax.Array:
        n = log_n[None]
        return form.log_loss(u, (n, log_product - n, log_product - n))[0]

    def one(u: jax.Array) -> tuple[jax.Array, jax.Array]:
        ends = jnp.asarray(-50.0), jnp.asarray(log_product + 50.0)
        best = decreasing_root(lambda log_n, u: -jax.grad(loss)(log_n, u), *ends, u).value
        return best, loss(best, u)

    return jax.vmap(one)(unknowns)


@partial(jax.jit, static_argnames="form")
def _losses(form: Form, unknowns: jax.Array, inputs: Inputs) -> jax.Array:
    """Losses of the fits, (fit, run)."""
    return jnp.exp(jax.vmap(lambda u: form.log_loss(u, inputs))(unknowns))


def scaling_law(
    loss: ArrayLike | Runs,
    parameters: ArrayLike | None = None,
    samples: ArrayLike | None = None,
    *,
    unique: ArrayLike | None = None,
    form: str = "auto",
    flops: float = FLOPS,
    delta: float = DELTA,
    bootstrap: int = BOOTSTRAP,
    seed: int = 0,
) -> ScalingLaw:
    """Fits the loss of runs with N parameters and D samples, or with one of the two.

    Args:
        loss: The loss of every run, or `Runs`.
        parameters, samples: N and D of every run; one of them may be None.
        unique: Number of different samples of every run, where data were repeated.
        form: A name, or "auto": the form that extrapolates best to the quarter of the runs with
            most compute; of "additive" and "kaplan" the one with the lower Bayesian information
            criterion.
        flops: Operations per parameter and sample; 6 by default.
        delta: Deviation of log L at which the robust likelihood turns from squares to absolute
            values.
        bootstrap: Number of bootstrap fits for the intervals.
        seed: Seed of the bootstrap.

    Raises:
        ValueError: for runs that are not positive numbers, that occur twice, or that are fewer than
            the number of unknowns plus two; for an unknown form; and for a bootstrap below 1.

    >>> n, d = (
    ...     size.ravel() for size in np.meshgrid(10.0 ** np.arange(6, 10), 10.0 ** np.arange(8, 12))
    ... )
    >>> loss = 1.7 + 400 * n**-0.34 + 410 * d**-0.28
    >>> law = op.scaling_law(loss, n, d, form="additive", bootstrap=10)
    >>> round(law.values["alpha"], 2), round(law.values["beta"], 2)
    (0.34, 0.28)
    """
    if bootstrap < 1:
        raise ValueError(f"bootstrap = {bootstrap}: must be at least 1")
    runs = loss if isinstance(loss, Runs) else Runs.of(loss, parameters, samples, unique, flops)
    candidates = fitting(runs)
    if form != "auto":
        named = {candidate.name: candidate for candidate in candidates}
        if form not in named:
            raise ValueError(
                f"form = {form!r}: for these runs one of "
                f"{', '.join(named)}{near(form, list(named))}"
            )
        candidates = [named[form]]
    least = min(candidate.unknowns for candidate in candidates) + _SPARE
    if len(runs) < least:
        raise ValueError(
            f"{len(runs)} runs: at least {least} are needed for the form {candidates[0].name!r}"
        )
    candidates = [candidate for candidate in candidates if len(runs) >= candidate.unknowns + _SPARE]
    held_out = {
        candidate.name: error
        for candidate in candidates
        if (error := _extrapolation(candidate, runs, delta)) is not None
    }
    chosen = _chosen(candidates, held_out, runs, delta)
    unknowns = minimise(chosen, runs, delta)
    draws = bootstrapped(chosen, runs, unknowns, bootstrap, seed, delta)
    values = dict(zip(chosen.names, map(float, chosen.values(unknowns)), strict=True))
    spread = np.array([chosen.values(draw) for draw in draws])
    intervals = {name: _interval(values[name], spread[:, i]) for i, name in enumerate(chosen.names)}
    if chosen.name == "additive":
        share = draws[:, 4] / (draws[:, 3] + draws[:, 4])
        values |= {
            "a": values["beta"] / (values["alpha"] + values["beta"]),
            "b": values["alpha"] / (values["alpha"] + values["beta"]),
        }
        intervals |= {"a": _interval(values["a"], share), "b": _interval(values["b"], 1 - share)}
    residual = np.asarray(chosen.log_loss(jnp.asarray(unknowns), inputs_of(runs))) - np.log(
        runs.loss
    )
    outside = np.abs(residual) > 3 * 1.4826 * np.median(np.abs(residual)) + 1e-12
    return ScalingLaw(
        form=chosen.name,
        values=values,
        intervals=intervals,
        scatter=float(np.sqrt(np.mean(residual[~outside] ** 2))),
        outliers=tuple(int(row) + 1 for row in np.flatnonzero(outside)),
        held_out=held_out,
        warnings=tuple(_unknown(runs, intervals)),
        runs=runs,
        unknowns=unknowns,
        draws=draws,
    )


def _extrapolation(form: Form, runs: Runs, delta: float) -> float | None:
    """The error, on the runs with most compute, of a fit to the other runs; None where too few runs
    are left."""
    order = np.argsort(runs.compute, kind="stable")
    kept = len(runs) - max(1, round(_HELD_OUT * len(runs)))
    if kept < form.unknowns + _SPARE:
        return None
    fitted = np.zeros(len(runs))
    fitted[order[:kept]] = 1.0
    unknowns = minimise(form, runs, delta, fitted)
    predicted = np.asarray(_losses(form, jnp.asarray(unknowns)[None], inputs_of(runs)))[0]
    return float(np.sqrt(np.mean(np.log(predicted / runs.loss)[order[kept:]] ** 2)))


def _chosen(candidates: list[Form], held_out: dict[str, float], runs: Runs, delta: float) -> Form:
    """The simplest of the forms that extrapolate about as well as the best; without held-out errors
    the simplest form.

    Kaplan's form and the additive one, neither of which contains the other, are compared on all
    runs, because the held-out quarter is so small that the wrong form often extrapolates better by
    chance.
    """
    if {form.name for form in candidates} == {"additive", "kaplan"}:
        return min(candidates, key=lambda form: _criterion(form, runs, delta))
    simple = sorted(candidates, key=lambda form: form.unknowns)
    if not held_out:
        return simple[0]
    best = min(held_out.values())
    return next(form for form in simple if held_out.get(form.name, np.inf) <= _SIMPLER * best)


def _criterion(form: Form, runs: Runs, delta: float) -> float:
    """Half the Bayesian information criterion, for residuals of log L with a Laplace distribution,
    for which a few outliers hardly matter."""
    residual = np.asarray(
        form.log_loss(jnp.asarray(minimise(form, runs, delta)), inputs_of(runs))
    ) - np.log(runs.loss)
    return float(
        len(runs) * np.log(np.mean(np.abs(residual)) + 1e-12)
        + form.unknowns / 2 * np.log(len(runs))
    )


def _unknown(runs: Runs, intervals: dict[str, Interval]) -> list[str]:
    """Warnings about numbers that the data do not determine."""
    warnings = []
    for name, column in (("parameters", runs.parameters), ("samples", runs.samples)):
        if column is not None and column.max() < 10 * column.min():
            warnings.append(
                f"{name} vary by a factor {column.max() / column.min():.3g} only: their exponent "
                "rests on less than a decade"
            )
    if runs.parameters is not None and runs.samples is not None and len(runs) > 2:
        n, d = np.log(runs.parameters), np.log(runs.samples)
        if np.ptp(n) > 0 and np.ptp(d) > 0 and abs(np.corrcoef(n, d)[0, 1]) > 0.95:
            warnings.append(
                "parameters and samples grow together in these runs: their exponents cannot be "
                "told apart"
            )
    if "E" in intervals and intervals["E"].low < 0.02 * runs.loss.min():
        warnings.append(
            "the irreducible loss E may be zero: the lowest losses say nothing of a floor"
        )
    wide = [
        name
        for name in ("A", "B", "Nc", "Dc")
        if name in intervals and intervals[name].high > 3 * intervals[name].low
    ]
    if wide:
        factor = max(intervals[name].high / intervals[name].low for name in wide)
        warnings.append(
            f"{' and '.join(wide)} are uncertain by a factor of {factor:.2g} (correlated with the "
            "exponents): report predicted losses"
        )
    return warnings
