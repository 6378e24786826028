"""The pictures to choose from: the systems and the studies, each under its question."""

import base64
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from orderparam.core.registry import index
from orderparam.explore.figures import picture
from orderparam.explore.formulas import without_formulas
from orderparam.explore.starts import OTHERS, question_of, questions, starts
from orderparam.explore.systems import kinds, title_of

# written by docs/explorer_figures.py from the pictures of the gallery
THUMBNAILS = Path(__file__).with_name("thumbnails")


def system_cards() -> list[dict[str, Any]]:
    """Every system that has a start, with its picture (that of its study where no figure of the
    system is stored), and then the systems of other packages, under their questions."""
    cards: dict[str, list[dict[str, str]]] = {}
    for name, start in starts().items():
        if name in kinds():
            text = first_sentence(start.sees)
            cards.setdefault(_question(name), []).append(
                _card(
                    name,
                    start.title,
                    text,
                    picture(start) or _thumbnail(start.study),
                    f"{name} {start.sees}",
                )
            )
    for name in kinds():
        if name not in starts() and not name_is_of_package(name):
            cards.setdefault(_question(name), []).append(_card(name, title_of(name), "", "", name))
    return _grouped(cards)


def study_cards() -> list[dict[str, Any]]:
    """Every study with its picture from the gallery, under its question."""
    cards: dict[str, list[dict[str, str]]] = {}
    for entry in sorted(
        (one for one in index() if one.kind == "study"), key=lambda one: (one.topic, one.name)
    ):
        title, source = (
            without_formulas(str(entry.details.get(key) or "")) for key in ("title", "source")
        )
        head, _, rest = (title or entry.name).partition(": ")
        card = _card(
            entry.name,
            head,
            rest[:1].upper() + rest[1:],
            _thumbnail(entry.name),
            f"{entry.name} {entry.topic} {source}",
        )
        cards.setdefault(question_of(entry.topic), []).append(card)
    return _grouped(cards)


def first_sentence(text: str) -> str:
    """The text before the first full stop or colon, or the complete text where there is none."""
    ends = [place for mark in (". ", ": ", "; ") if (place := text.find(mark)) > 0]
    return text[: min(ends)].rstrip(".") if ends else text.rstrip(".")


def name_is_of_package(name: str) -> bool:
    """True if a system belongs to this package. Its systems without a start hold arrays that no
    page can make."""
    return kinds()[name].__module__.startswith("orderparam.")


def _question(name: str) -> str:
    return question_of(name.partition(".")[0])


def _card(name: str, title: str, text: str, image: str, words: str) -> dict[str, str]:
    searched = f"{title} {text} {words}".lower().replace("_", " ")
    return {"name": name, "title": title, "text": text, "picture": image, "words": searched}


def _grouped(cards: Mapping[str, Iterable[dict[str, str]]]) -> list[dict[str, Any]]:
    headings = [(one.title, one.about) for one in questions()] + [(OTHERS, "")]
    return [
        {"title": title, "about": about, "cards": list(cards[title])}
        for title, about in headings
        if title in cards
    ]


def _thumbnail(study: str) -> str:
    path = THUMBNAILS / f"{study}.webp"
    return (
        f"data:image/webp;base64,{base64.b64encode(path.read_bytes()).decode()}"
        if path.is_file()
        else ""
    )
