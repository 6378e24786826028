"""What `orderparam predict` prints: the answer in words, the treatment of the columns, the curve,
and what else would lower the error."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orderparam.cli.terminal import console, new_table, plain

if TYPE_CHECKING:
    from orderparam.learning_curves import Forecast, Problem

Goal = tuple[float, str | None]  # a number, and its measure (None if it is not given)
LARGE = 3.0  # ratio of errors above which a change is given as a factor


def print_sentences(result: "Forecast", goal: Goal | None) -> None:
    """Prints the answer in words, for the requested learner and for the best one."""
    out = console()
    for one in (result, result.best):
        if one is not None:
            which = (
                ""
                if result.best is None
                else ", asked for"
                if one is result
                else ", the best of those compared"
            )
            out.print(
                f"[bold]{plain(one.learner + which)}.[/] {plain(one.sentence(*(goal or ())))}",
                highlight=False,
                soft_wrap=True,
            )
            if (found := one.calibration) is not None:
                out.print(
                    f"The probability of its answer is {found.confidence:.1%} on average, and "
                    f"{found.accuracy:.1%} of its answers are right. Calibration error "
                    f"{found.error:.1%}, perfect probabilities {found.by_chance:.1%} (p = "
                    f"{found.p_value:.2g}): {found.verdict}.",
                    highlight=False,
                    soft_wrap=True,
                )
    out.print()


def print_columns(problem: "Problem") -> None:
    """Prints how every column of a table was treated."""
    if not problem.columns:
        return
    table = new_table("column", "taken for", "what was done", "inputs")
    alike: dict[tuple[str, str], list[Any]] = {}
    for one in problem.columns:
        alike.setdefault((one.kind, one.done), []).append(one)
    for (kind, done), ones in alike.items():
        names = ", ".join(one.name for one in ones[:6]) + (
            f", … ({len(ones)})" if len(ones) > 6 else ""
        )
        table.add_row(plain(names), kind, plain(done), str(sum(one.inputs for one in ones)))
    console().print(table, "")


def print_forecast(result: "Forecast", folder: Path) -> None:
    """Prints a predicted learning curve with the measured points."""
    from orderparam.core.text import with_error
    from orderparam.learning_curves.problem import NO_TARGET
    from orderparam.running.estimate import estimate

    out, problem = console(), result.problem
    out.print(f"[bold]{plain(f'{problem.name}: {problem.task}, {result.learner}')}[/]\n")
    for note in result.notes:
        if note.startswith(NO_TARGET):  # printed before the forecast was computed
            continue
        out.print(f"note: {plain(note)}", highlight=False, soft_wrap=True)
    names = (
        ("wrong", "log loss")
        if problem.classes
        else (f"root mean square in {problem.names[0]}",)
        if len(problem.names) == 1
        else ()
    )
    table = new_table(
        "examples", "measured error", "predicted", "95 % interval", *names, right=True
    )
    mean, error = estimate(result.measured, "test_error")
    measured = [int(n) for n in result.measured["n_train"].values]
    for n in [*measured[:-1:2], measured[-1], *(result.examples * k for k in (2, 3, 10, 30, 100))]:
        value, low, high = result.at(n)
        shown = (
            with_error(float(mean.sel(n_train=n)), float(error.sel(n_train=n)))
            if n in measured
            else ""
        )
        times = f" ({n // result.examples} x your data)" if n > result.examples else ""
        table.add_row(
            f"{n}{times}", shown, f"{value:.4g}", f"{low:.3g} to {high:.3g}", *_further(result, n)
        )
    out.print(table)
    low, high = result.floor_interval
    lines = [
        (
            "unit                 an error of 1 is the variance of "
            f"{plain(', '.join(problem.names))}, {result.unit:.4g}"
        ),
        f"power law            error ~ n^-{result.exponent():.2f} over the next decade of data",
        (
            f"floor                {low:.3g} to {high:.3g} (95 %); there is none with probability "
            f"{result.law.without_floor:.2f}"
        ),
        *(
            [
                f"best ridge           {result.best_ridge:.3g} (used {result.ridge:.3g}), "
                f"last measured error {result.leave_one_out:.4g}"
            ]
            if result.estimator is None
            else []
        ),
        (
            f"figure: {folder / 'figure.png'} (and .pdf); numbers: {folder / 'summary.json'}, "
            f"{folder / 'forecast.zarr'}"
        ),
    ]
    out.print("\n" + "\n".join(lines), highlight=False, soft_wrap=True)


def _further(result: "Forecast", n: int) -> list[str]:
    if result.problem.classes:
        return [
            "{:.3g} ({:.2g} to {:.2g})".format(*result.at(n, name))
            for name in ("error_rate", "log_loss")
        ]
    return (
        ["{:.4g} ({:.3g} to {:.3g})".format(*result.in_units(n))]
        if len(result.problem.names) == 1
        else []
    )


def print_answers(result: "Forecast") -> None:
    """Prints what would lower the error: rows, columns, another learner, another network or
    ridge."""
    out = console()
    out.print()
    table = new_table("what brings more", "change of the error (95 %)")
    gain, least, most = result.gain_of_doubling()
    table.add_row("twice the rows", _change(1 - gain, 1 - most, 1 - least))
    if result.columns_halved:
        table.add_row("half of the columns, drawn at random", _change(*result.columns_halved))
    own = next((one for one in result.compared if one.name == result.learner), None)
    for one in result.compared:
        if own is not None and one is not own:
            wrong = f", wrong {one.error_rate:.3g}" if result.problem.classes else ""
            words = (
                f"{_change(*one.against(own))}; error {one.error:.4g}{wrong} with {one.examples} "
                "rows"
            )
            table.add_row(plain(f"{one.name} instead"), words)
    if result.estimator is None and result.ridge != result.best_ridge:
        table.add_row(
            f"the best ridge, {result.best_ridge:.3g}", "not measured here: leave --temperature out"
        )
    out.print(table)
    if result.estimator is None:
        chosen = result.candidates[0]
        kernels = new_table(
            f"networks, on {chosen.examples} rows", "log evidence", "leave-one-out error there"
        )
        for kernel in result.candidates:
            used = " (used: largest evidence)" if kernel is chosen else ""
            evidence = f"{kernel.log_evidence * kernel.examples:.1f}"
            kernels.add_row(f"{kernel.arch}{used}", evidence, f"{kernel.leave_one_out:.4g}")
        out.print()
        out.print(kernels)
        lower = min(result.candidates, key=lambda kernel: kernel.leave_one_out)
        if lower is not chosen:
            out.print(
                f"{lower.arch} has the lower leave-one-out error there, but the lower evidence, "
                "too, which is the probability of all targets together and scatters less. --arch "
                f"{lower.arch} forecasts it instead.",
                highlight=False,
                soft_wrap=True,
            )


def _change(ratio: float, low: float, high: float) -> str:
    """A ratio of errors with its interval, as a change in per cent, or as a factor if it is
    large."""
    if high > LARGE:
        return f"{ratio:.2g} times as large ({low:.2g} to {high:.2g} times)"
    return f"{ratio - 1:+z.1%} ({low - 1:+z.1%} to {high - 1:+z.1%})"


def print_new_rows(result: "Forecast", frame: Any) -> None:
    """Prints how new rows differ from those of the forecast; a warning, on standard error, if they
    do significantly."""
    found = result.new_rows(frame)
    out = console()
    out.print()
    for sentence in found.sentences():
        out.print(plain(sentence), highlight=False, soft_wrap=True)
    if found.significant:
        much = (
            ""
            if found.shift is None
            else (
                f", and a network is forecast to err {found.shift.ratio:.2g} times as much on the "
                "new ones"
            )
        )
        warnings.warn(
            "the new rows differ from yours by more than chance: the forecast is for rows like "
            f"yours{much}",
            stacklevel=2,
        )


def print_widths(report: Any) -> None:
    """Prints the gain of networks of finite width over their infinite limit."""
    table = new_table(
        "width",
        "error of the average network",
        "of one network",
        "gain over infinite width",
        right=True,
    )
    for width in report["width"].values:
        row = report.sel(width=width)
        doubt = "" if bool(row["trusted"]) else " (theory unsure)"
        errors = (f"{float(row[name]):.4g}" for name in ("test_bias", "test_error"))
        table.add_row(f"{width:g}", *errors, f"{float(row['gain']):+z.1%}{doubt}")
    table.add_row(
        "infinite",
        *(f"{float(report[f'infinite_{name}']):.4g}" for name in ("test_bias", "test_error")),
        "",
    )
    out = console()
    out.print(
        f"\nfinite width, {report.attrs['n_train']} training examples, T = "
        f"{report.attrs['temperature']:.3g},"
    )
    out.print(
        "squared errors on held-out examples as shares of the variance; gain: of one network from "
        "the posterior"
    )
    out.print(table)
    out.print(report.attrs["verdict"], highlight=False)
