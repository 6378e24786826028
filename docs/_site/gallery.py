"""The pages of the gallery: every study with its figure, how far theory and measurement are apart, its command and its code.

Figures and numbers are those that `make figures` kept in docs/gallery; the words come from the registry.
"""

import functools
import html
import inspect
import io
import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from PIL import Image

from _site.docstrings import table, value
from _site.names import title
from orderparam.core.study import Study
from orderparam.core.study import studies as known

FOLDER = Path(__file__).parents[1] / "gallery"
SMALL = (440, 300)  # pixels of a picture in an overview
FULL_WIDTH = 1390  # pixels of a figure that is as wide as a page


@functools.cache
def studies() -> dict[str, Study]:
    """Those of the package."""
    return {name: study for name, study in known().items() if study.build.__module__.startswith("orderparam.")}


@functools.cache
def questions() -> dict[str, list[str]]:
    """Question -> the studies that answer it."""
    read = tomllib.loads((FOLDER / "questions.toml").read_text())
    return {one["title"]: one["studies"] for one in read["question"]}


def pages() -> dict[str, str]:
    """Path below `gallery/` -> markdown."""
    rooms: dict[str, list[str]] = {}
    for study in studies().values():
        rooms.setdefault(study.room, []).append(study.name)
    by_room = (f"## {title(room)} {{: #{room} }}\n\n{cards(names)}" for room, names in sorted(rooms.items()))
    by_question = (f"## {question}\n\n{cards(names)}" for question, names in questions().items())
    made = {
        "index.md": _overview("Gallery", by_question),
        "by-room.md": _overview("Gallery, by room", by_room),
        "by-source.md": _overview("Gallery, by source", _sources()),
    }
    return made | {f"{study.name}.md": "\n\n".join(_page(study)) + "\n" for study in studies().values()}


def _overview(head: str, sections: Iterable[str]) -> str:
    begin = (
        f"# {head}",
        f"{len(studies())} studies: theory beside experiment. By [question](index.md), [room](by-room.md) or"
        " [source](by-source.md); [how far theory and measurement are apart](../agreement.md), all in one table.",
    )
    return "\n\n".join((*begin, *sections)) + "\n"


def cards(names: Iterable[str], path: str = "") -> str:
    """Pictures with titles that lead to the pages of these studies; `path` leads to the gallery."""
    made = []
    for name in names:
        has_figure = (FOLDER / f"{name}.webp").is_file()
        picture = f'<img loading="lazy" alt="" src="{path}small/{name}.webp">' if has_figure else '<span class="empty"></span>'
        shows = html.escape(studies()[name].title, quote=False)
        made.append(f'<a class="card" href="{path}{name}.html">{picture}<span>{shows}</span></a>')
    return f'<div class="cards">{"".join(made)}</div>'


def small_pictures() -> dict[str, bytes]:
    """Path below `gallery/` -> the WebP of an overview."""
    made = {}
    for name in studies():
        path = FOLDER / f"{name}.webp"
        if path.is_file():
            picture, packed = Image.open(path), io.BytesIO()
            picture.thumbnail(SMALL)
            picture.save(packed, format="webp", quality=80)
            made[f"small/{name}.webp"] = packed.getvalue()
    return made


# -- by source ---------------------------------------------------------------------------------------------------------------


def _sources() -> Iterator[str]:
    """Every paper that a study names, with the studies that name it."""
    found: dict[str, list[str]] = {}
    for study in studies().values():
        for paper in papers(study.source):
            found.setdefault(paper, []).append(study.name)
    written = {(_first_author(paper), paper[-4:]): paper for paper in sorted(found, key=len)}
    merged: dict[str, list[str]] = {}
    for paper, names in found.items():
        whole = written[_first_author(paper), paper[-4:]] if "et al" in paper else paper
        merged[whole] = [*merged.get(whole, []), *names]
    rows = [
        (html.escape(paper), "<br>".join(f'<a href="{name}.html">{html.escape(studies()[name].title)}</a>' for name in names))
        for paper, names in sorted(merged.items())
    ]
    yield table(("source", "studies"), rows)


def papers(source: str) -> list[str]:
    """The papers of a study's source as "Authors year": without figures, numbers of preprints, and what was taken from them."""
    found = []
    for piece in source.split(";"):
        said = re.sub(r"^.*: ", "", piece.strip())
        years = re.search(r"\b(?:1[89]|20)\d\d\b", said)
        begin = re.search(r"(?<!\w)(?:d'|de )?[A-ZÀ-Þ]", said)
        if years and begin:
            found.append(re.sub(r" (and|&) ", ", ", said[begin.start() : years.end()]))
    return found


def _first_author(paper: str) -> str:
    return re.split(r",| et al| \d", paper)[0]


# -- one study ---------------------------------------------------------------------------------------------------------------


def _page(study: Study) -> Iterator[str]:
    path = FOLDER / f"{study.name}.json"
    shown = json.loads(path.read_text()) if path.is_file() else None
    yield f"# {study.title}"
    yield f"[{title(study.room)}](../theory/{study.room}.md) · {study.source}"
    if shown is None:
        yield f"*There is no figure of this study yet: `orderparam run {study.name}` makes it.*"
    else:
        narrow = "{: width=480 }" if Image.open(FOLDER / f"{study.name}.webp").width < FULL_WIDTH else ""
        yield f"[![{study.title}]({study.name}.webp){narrow}]({study.name}.webp)"
        yield shown["caption"]
    quick, full_size = map(_time, study.seconds)
    yield f"```sh\norderparam run {study.name}          # {quick}\norderparam run {study.name} --full   # {full_size}\n```"
    if shown is not None:
        yield "## How far theory and measurement are apart"
        yield from _agreement(study, shown)
    yield "## Parameters"
    full = study.parameters(full=True)
    rows = [
        (f"<code>{name}</code>", html.escape(value(quick)), html.escape(value(full[name])) if full[name] != quick else "the same")
        for name, quick in study.defaults.items()
    ]
    yield table(("parameter", "quick", "full"), rows)
    if study.build.__doc__:
        yield " ".join(inspect.cleandoc(study.build.__doc__).split())
    yield "## The code that made it"
    yield f"In `{study.build.__module__}`:"
    lines = ("```python", *inspect.getsource(study.build).rstrip().split("\n"), "```")
    yield '??? note "Theories, experiment, grid and panels"\n\n' + "\n".join(f"    {line}" for line in lines)


def _agreement(study: Study, shown: dict[str, Any]) -> Iterator[str]:
    """How far the best theory is from its measurements, why, every theory beside every measurement, and on what it ran."""
    best = shown["best"]
    median = f"the median of |mean / theory − 1| is {_percent(best['median_deviation'])}"
    if best["points"]:
        chance = " (chance explains that)" if best["beyond"] and best["by_chance"] else ""
        counted = f"{best['beyond']} of {best['points']} measured points differ by more than three standard errors{chance}"
        yield f"**{best['theory']}**: {counted}{'' if best['median_deviation'] is None else f'; {median}'}."
    elif best["median_deviation"] is not None:
        yield f"**{best['theory']}**: {median}; the measurement has no errors."
    else:
        yield "Nothing is measured here."
    if study.explained and best["beyond"] and not best["by_chance"]:
        yield f'!!! info "Why they differ"\n    {study.explained}'
    if shown["agreement"]:
        rows = [
            (
                *(html.escape(row[name].replace("_", " ")) for name in ("observable", "measured", "theory")),
                "for orientation" if row["baseline"] else f"{row['beyond']} of {row['points']}" if row["points"] else "–",
                _percent(row["median_deviation"]),
            )
            for row in sorted(shown["agreement"], key=lambda row: row["baseline"])
        ]
        yield table(("observable", "measured", "theory", "beyond three standard errors", "median deviation"), rows)
    points, versions = shown["points"], shown["versions"]
    unconverged = sum(kind["unconverged"] for kind in points.values())
    left = f", {unconverged} of them not converged" if unconverged else ""
    yield (
        f"Quick size: {points['theory']['points']} points of theory and {points['experiment']['points']} runs{left}, in"
        f" {_time(shown['processor_seconds'])} of processor time; jax {versions['jax']}, Python {versions['python']};"
        f" {shown['finished'][:10]}."
    )


def _percent(number: float | None) -> str:
    return "–" if number is None else f"{100 * number:.2g} %"


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
