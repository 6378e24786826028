"""The results of `inspect` as text, a data set and a page."""

import base64
import html
import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from orderparam.core.text import with_error
from orderparam.observables.observable import Observed, as_p_value
from orderparam.observables.tangent_kernel import regime

if TYPE_CHECKING:
    import xarray as xr

    from orderparam.observables.inspection import Inspection
    from orderparam.observables.theory_comparison import TheoryComparison

# numbers that are small where there is an effect: their null distributions are kept with the other
# sign
_SMALL = ("stable rank", "leave-one-out error of the read-out")
_SHORT = {"examples": "E", "neurons": "N", "seeds": "S", "entries": "W", "units": "U"}
LEGEND = (
    "Intervals are 95 %, p-values those of the null hypothesis, neither adjusted for their number. "
    "[E] the network as it is, other examples; [N] other neurons, too; [S] other trainings; "
    "[W] these weights against noise; [U] other units."
)


def rows(numbers: Sequence[Observed]) -> list[tuple[str, str, str, str, str, str]]:
    """The rows of a table: name, value with error, interval, the 99 % point of the null
    distribution, p-value, note."""
    cells = []
    for one in numbers:
        finite = math.isfinite(one.value)
        interval = f"{one.low:.3g} to {one.high:.3g}" if math.isfinite(one.low) else ""
        edge = ""
        if one.null is not None and finite and one.name not in _SMALL:
            edge = f"{one.null.quantile(0.99):.3g}"
        value = with_error(one.value, one.error if math.isfinite(one.low) else math.nan)
        cells.append(
            (
                f"{one.name} [{_SHORT[one.estimand]}]",
                value,
                interval,
                edge,
                as_p_value(one.p_value).removeprefix("= ") if math.isfinite(one.p_value) else "",
                one.note,
            )
        )
    return cells


HEADERS = ("number", "value", "95 % interval", "null, 99 %", "p", "note")


def sections(found: "Inspection") -> dict[str, list[Observed]]:
    """All numbers under the headings of the report."""
    parts = dict(found.layers)
    parts.update({f"weights of {name}": numbers for name, numbers in found.weights.items()})
    if found.network:
        parts["the network"] = found.network
    return parts


def as_text(found: "Inspection") -> str:
    """A table in plain text."""
    examples = "" if found.examples is None else f", {found.examples} examples"
    lines = [f"{found.title}{examples}"]
    for head, numbers in sections(found).items():
        table = [HEADERS[:5], *(row[:5] for row in rows(numbers))]
        widths = [max(len(row[i]) for row in table) for i in range(5)]
        lines += ["", head]
        for row, note in zip(table, ["", *(row[5] for row in rows(numbers))]):
            cells = [
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths))
            ]
            lines.append(("  " + "  ".join(cells) + (f"  {note}" if note else "")).rstrip())
    regime = describe_regime(found)
    lines += ["", *([f"regime: {regime}"] if regime else [])]
    lines += [f"not measured: {one}" for one in found.missing]
    lines += [LEGEND, f"measured in {found.seconds:.1f} s"]
    return "\n".join(lines)


def dataset_of(found: "Inspection") -> "xr.Dataset":
    """The numbers over `layer` and `matrix`; those of the network have no dimension."""
    import xarray as xr

    data = xr.Dataset(attrs={"title": found.title, "missing": "; ".join(found.missing)})
    for dimension, table in (("layer", found.layers), ("matrix", found.weights)):
        if not table:
            continue
        data = data.assign_coords({dimension: list(table)})
        names = dict.fromkeys(one.name for numbers in table.values() for one in numbers)
        for name in names:
            per = [{one.name: one for one in numbers}.get(name) for numbers in table.values()]
            _add(data, _word(name), (dimension,), per)
    for one in found.network:
        _add(data, _word(one.name), (), [one])
    for name, spectrum in found.spectra.items():
        values = f"singular_values_{_word(name)}"
        data[values] = (f"value_{_word(name)}", spectrum.singular_values)
        data[values].attrs["edge"] = spectrum.edge
    for when, eigenvalues in found.eigenvalues.items():
        data[f"kernel_eigenvalues_{when}"] = ("rank", eigenvalues)
    return data


def _word(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name).strip("_")


def _add(
    data: "xr.Dataset", name: str, dims: tuple[str, ...], numbers: list[Observed | None]
) -> None:
    parts = {"": "value", "_lower": "low", "_upper": "high", "_p": "p_value"}
    for ending, part in parts.items():
        values = [math.nan if one is None else getattr(one, part) for one in numbers]
        data[name + ending] = (dims, values if dims else values[0])
    first = next(one for one in numbers if one is not None)
    data[name].attrs = {
        "estimand": first.estimand,
        "source": first.source,
        "null": first.null.hypothesis if first.null else "",
        "note": "; ".join(one.note for one in numbers if one is not None and one.note),
    }


def page(found: "Inspection", compared: "TheoryComparison | None" = None, command: str = "") -> str:
    """A self-contained page of HTML with the figure. compared: the theories that were compared with
    the network, if any. command: the line by which the page was made."""
    import matplotlib.pyplot as plt

    figure, stream = found.figure(compared), io.BytesIO()
    figure.savefig(stream, format="png", dpi=150)
    plt.close(figure)
    picture = base64.b64encode(stream.getvalue()).decode()
    regime = describe_regime(found)
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'>",
        f"<title>{html.escape(found.title)}</title>",
        "<style>body{font:15px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
        "td,th{text-align:right;padding:.15em .7em}td:first-child,th:first-child,td:last-child,"
        "th:last-child{text-align:left}img{max-width:100%}</style>",
        f"<h1>{html.escape(found.title)}</h1>",
        f"<p>Regime: {html.escape(regime)}.</p>" if regime else "",
        (
            "<img alt='layers, spectra of weights, tangent kernel, theories' "
            f"src='data:image/png;base64,{picture}'>"
        ),
    ]
    if compared is not None:
        parts += _theories(compared)
    for head, numbers in sections(found).items():
        parts += _table(head, HEADERS, rows(numbers))
    if found.missing:
        parts.append("<h2>Not measured</h2><ul>")
        parts += [f"<li>{html.escape(one)}</li>" for one in found.missing]
        parts.append("</ul>")
    sources = dict.fromkeys(
        one.source for numbers in sections(found).values() for one in numbers if one.source
    )
    parts.append(f"<p>{html.escape(LEGEND)}</p><h2>Sources</h2><ul>")
    parts += [f"<li>{html.escape(one)}</li>" for one in sources]
    parts.append("</ul>")
    if command:
        parts.append(f"<p>Made by <code>{html.escape(command)}</code></p>")
    parts.append("</html>")
    return "\n".join(parts)


def _table(head: str, names: Sequence[str], cells: Sequence[Sequence[str]]) -> list[str]:
    parts = [f"<h2>{html.escape(head)}</h2><table><tr>"]
    parts += [f"<th>{html.escape(name)}</th>" for name in names]
    for row in cells:
        parts.append("</tr><tr>")
        parts += [f"<td>{html.escape(cell)}</td>" for cell in row]
    return [*parts, "</tr></table>"]


def _theories(compared: "TheoryComparison") -> list[str]:
    """The sentence, the verdict on each theory with the assumption that decided it, and what the
    theories that are not refused predict, beside what was measured."""
    verdicts = []
    for one in compared.theories:
        decisive = [
            assumption for assumption in one.assumptions if assumption.verdict == one.verdict
        ]
        verdicts.append((one.theory, one.verdict, str(decisive[0]) if decisive else ""))
    predicted = []
    for one in compared.accepted:
        for number in one.predictions:
            measured, z = number.measured, ""
            value = f"{number.value:.3g}" if math.isfinite(number.value) else ""
            if math.isfinite(number.z):
                z = f"{number.z:.1f}"
            beside = "" if measured is None else with_error(measured.value, measured.error)
            predicted.append((one.theory, number.name, value, beside, z))
    headers = ("theory", "number", "predicted", "measured", "z")
    return [
        *_table("Theories", ("theory", "verdict", "assumption that decides"), verdicts),
        *(_table("Predicted and measured", headers, predicted) if predicted else []),
        f"<p>{html.escape(compared.sentence)}</p>",
    ]


def describe_regime(inspection: "Inspection") -> str:
    """The regime in words, where the lazy-to-rich number was measured."""
    for one in inspection.network:
        if one.name == "lazy-to-rich number" and np.isfinite(one.value):
            return (
                f"{regime(one.value)} (lazy-to-rich number {one.value:.3g}; lazy below 0.1, rich "
                "above 0.3)"
            )
    return ""
