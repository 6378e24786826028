"""The pages of the gallery: every study with its figure, how far theory and measurement are apart,
its command and its code.

Figures and numbers are those that `make figures` kept in docs/gallery; the words come from the
registry.
"""

import functools
import html
import inspect
import io
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from PIL import Image

from _site.docstrings import table, value
from _site.names import title
from orderparam.citations import bibtex, works_of
from orderparam.comparison import Study
from orderparam.comparison import studies as known

FOLDER = Path(__file__).parents[1] / "gallery"
SMALL = (320, 220)  # pixels of a picture in an overview
FULL_WIDTH = 1200  # pixels: a wider figure is drawn as wide as a page


@functools.cache
def studies() -> dict[str, Study]:
    """Those of the package."""
    return {
        name: study
        for name, study in known().items()
        if study.build.__module__.startswith("orderparam.")
    }


@functools.cache
def questions() -> dict[str, list[str]]:
    """Question -> the studies that answer it."""
    read = tomllib.loads((FOLDER / "questions.toml").read_text())
    return {one["title"]: one["studies"] for one in read["question"]}


@functools.cache
def at_full_size() -> dict[str, str]:
    """Study -> what its full size shows beyond the gallery's."""
    return tomllib.loads((FOLDER / "full.toml").read_text())


def pages() -> dict[str, str]:
    """Path below `gallery/` -> markdown."""
    topics: dict[str, list[str]] = {}
    for study in studies().values():
        topics.setdefault(study.topic, []).append(study.name)
    by_topic = (
        f"## {title(topic)} {{: #{topic} }}\n\n{cards(names)}"
        for topic, names in sorted(topics.items())
    )
    by_question = (f"## {question}\n\n{cards(names)}" for question, names in questions().items())
    made = {
        "index.md": _overview("Gallery", by_question),
        "by-topic.md": _overview("Gallery, by topic", by_topic),
        "by-source.md": _overview("Gallery, by source", _sources()),
    }
    return made | {
        f"{study.name}.md": "\n\n".join(_page(study)) + "\n" for study in studies().values()
    }


def _overview(head: str, sections: Iterable[str]) -> str:
    begin = (
        f"# {head}",
        f"{len(studies())} studies, each a figure of theory and experiment. They are sorted by "
        "[question](index.md), [topic](by-topic.md) or [source](by-source.md); [one "
        "table](../agreement.md) has the differences between theory and measurement of all of "
        "them.",
    )
    return "\n\n".join((*begin, *sections)) + "\n"


def cards(names: Iterable[str], path: str = "") -> str:
    """Pictures with titles that lead to the pages of these studies; `path` leads to the gallery."""
    made = []
    for name in names:
        has_figure = (FOLDER / f"{name}.webp").is_file()
        picture = (
            (
                '<img loading="lazy" decoding="async" alt="" width="160" height="110" '
                f'src="{path}small/{name}.webp">'
            )
            if has_figure
            else '<span class="empty"></span>'
        )
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


# -- by source -----------------------------------------------------------------------------------


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
        (
            html.escape(paper),
            "<br>".join(
                f'<a href="{name}.html">{html.escape(studies()[name].title)}</a>' for name in names
            ),
        )
        for paper, names in sorted(merged.items())
    ]
    yield table(("source", "studies"), rows)


def papers(source: str) -> list[str]:
    """The papers of a study's source as "Authors year": without figures, numbers of preprints, and
    what was taken from them."""
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


# -- one study -----------------------------------------------------------------------------------


def _page(study: Study) -> Iterator[str]:
    shown = _record(FOLDER, study)
    yield f"# {study.title}"
    yield f"[{title(study.topic)}](../theory/{study.topic}.md) · {study.source}"
    if shown is None:
        yield f"*There is no figure of this study yet: `orderparam run {study.name}` makes it.*"
    else:
        yield _picture(study, FOLDER)
        yield shown["caption"]
    quick, full_size = map(_time, study.seconds)
    yield (
        f"```sh\norderparam run {study.name}          # {quick}\norderparam run {study.name} "
        f"--full   # {full_size}\n```"
    )
    if shown is not None:
        yield "## How far theory and measurement are apart"
        yield from _agreement(study, shown)
    if study.name in at_full_size():
        yield "## At the sizes of the source"
        yield from _full(study)
    yield "## Parameters"
    gallery, full = study.parameters("gallery"), study.parameters("full")
    rows = [
        (
            f"<code>{name}</code>",
            html.escape(value(quick)),
            *(
                html.escape(value(size[name])) if size[name] != quick else "the same"
                for size in (gallery, full)
            ),
        )
        for name, quick in study.defaults.items()
    ]
    yield table(("parameter", "quick", "gallery", "full"), rows)
    if study.build.__doc__:
        yield " ".join(inspect.cleandoc(study.build.__doc__).split())
    if entries := bibtex(works_of(study.source)):
        yield "## How to cite its sources"
        yield (
            f"`orderparam cite {study.name}` prints the BibTeX entries of the sources and of the "
            "package."
        )
        yield _folded("BibTeX of the sources", "bibtex", entries)
    yield "## The code that made it"
    yield f"In `{study.build.__module__}`:"
    yield _folded(
        "Theories, experiment, grid and panels", "python", inspect.getsource(study.build).rstrip()
    )


def _folded(head: str, language: str, code: str) -> str:
    """A block of code that opens when its head is clicked."""
    if language == "python":
        code = _in_80_columns(code)
    lines = (f"```{language}", *code.split("\n"), "```")
    return f'??? note "{head}"\n\n' + "\n".join(f"    {line}" for line in lines)


@functools.cache
def _in_80_columns(code: str) -> str:
    """Python code in lines that a page shows without cutting them."""
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", "80", "-"]
    return subprocess.run(
        command, input=code, capture_output=True, text=True, check=True
    ).stdout.rstrip()


def _record(folder: Path, study: Study) -> dict[str, Any] | None:
    """What a folder keeps of a study, if it does."""
    path = folder / f"{study.name}.json"
    return json.loads(path.read_text()) if path.is_file() else None


def _picture(study: Study, folder: Path) -> str:
    """The figure that a folder keeps, as HTML. On a telephone its panels stand below one another,
    or, where no such picture is, it scrolls."""
    path = folder / f"{study.name}.webp"
    shown = path.relative_to(FOLDER)
    width, height = Image.open(path).size
    size = (
        f'width="{width}" height="{height}"'
        if width >= FULL_WIDTH
        else f'width="480" height="{480 * height // width}"'
    )
    small = path.with_name(f"{study.name}-narrow.webp").is_file()
    kind = "figure" if small or width < FULL_WIDTH else "figure wide"
    source = (
        f'<source media="(max-width: 44.9em)" srcset="{study.name}-narrow.webp">' if small else ""
    )
    image = f'<img alt="{html.escape(study.title)}" src="{shown}" {size}>'
    return f'<div class="{kind}"><a href="{shown}"><picture>{source}{image}</picture></a></div>'


def _full(study: Study) -> Iterator[str]:
    """What the full size shows, its figure, and how far the best theory is from it."""
    yield at_full_size()[study.name]
    shown = _record(FOLDER / "full", study)
    if shown is None:
        raise ValueError(f"docs/gallery/full.toml: {study.name} has no record of full size")
    yield _picture(study, FOLDER / "full")
    yield shown["caption"]
    best, measured = shown["best"], shown["points"]["experiment"]
    runs = best["runs"]
    yield table(
        ("theory", "runs", "unconverged", "resolution", "beyond 3", "rms z"),
        [
            (
                html.escape(best["theory"]),
                "–" if not runs else " to ".join(map(str, dict.fromkeys(runs))),
                f"{measured['unconverged']} of {measured['points']}",
                _percent(best["resolution"]),
                f"{best['beyond']} of {best['points']}",
                "–" if best["rms_z"] is None else f"{best['rms_z']:.2g}",
            )
        ],
    )
    yield _cost(shown)


def _agreement(study: Study, shown: dict[str, Any]) -> Iterator[str]:
    """How far the best theory is from its measurements, why, every theory beside every measurement,
    and on what it ran."""
    best = shown["best"]
    median = f"the median of |mean / theory − 1| is {_percent(best['median_deviation'])}"
    if best["points"]:
        chance = " (chance explains that)" if best["beyond"] and best["by_chance"] else ""
        if best.get("rms_z") is not None:
            chance += (
                f"; the root mean square of z is {best['rms_z']:.2g}, as large as chance makes it "
                f"with probability {best['probability']:.1g}"
            )
        counted = (
            f"{best['beyond']} of {best['points']} measured points differ by more than three "
            f"standard errors{chance}"
        )
        yield (
            f"**{best['theory']}**: "
            f"{counted}{'' if best['median_deviation'] is None else f'; {median}'}."
        )
    elif best["median_deviation"] is not None:
        yield f"**{best['theory']}**: {median}; the measurement has no errors."
    else:
        yield "Nothing is measured here."
    if study.explained:
        differ = best["points"] and not best["by_chance"]
        yield f'!!! info "{"Why they differ" if differ else "Remarks"}"\n    {study.explained}'
    if study.metastable:
        yield f'!!! info "Metastable runs"\n    {study.metastable}'
    if study.coarse:
        yield f'!!! info "Large errors"\n    {study.coarse}'
    if shown["agreement"]:
        rows = [
            (
                *(
                    html.escape(row[name].replace("_", " "))
                    for name in ("observable", "measured", "theory")
                ),
                "for orientation"
                if row["baseline"]
                else f"{row['beyond']} of {row['points']}"
                if row["points"]
                else "–",
                _percent(row["median_deviation"]),
            )
            for row in sorted(shown["agreement"], key=lambda row: row["baseline"])
        ]
        yield table(
            (
                "observable",
                "measured",
                "theory",
                "beyond three standard errors",
                "median deviation",
            ),
            rows,
        )
    yield _cost(shown)


def _cost(shown: dict[str, Any]) -> str:
    """On what a record was measured, and in which time."""
    points, versions = shown["points"], shown["versions"]
    unconverged = sum(kind["unconverged"] for kind in points.values())
    left = f", {unconverged} of them not converged" if unconverged else ""
    return (
        f"{shown['size'].capitalize()} size: {points['theory']['points']} points of theory and "
        f"{points['experiment']['points']} runs{left}, in {_time(shown['processor_seconds'])} of "
        f"processor time; jax {versions['jax']}, Python {versions['python']}; "
        f"{shown['finished'][:10]}."
    )


def _percent(number: float | None) -> str:
    return "–" if number is None else f"{100 * number:.2g} %"


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
