"""The bibliography (`sources.toml`) and mentions of its works in a text, such as "Gardner, Derrida
1988; Veiga et al. 2022"."""

import functools
import re
import tomllib
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

_SOURCES = Path(__file__).with_name("sources.toml")
_INITIALS = r"(?:(?:[A-Z]\.[-\s]?)+\s*)?"
_SURNAME = r"(?:(?:d'|de\s|De\s|Di\s|Ben\s|Le\s))?[A-ZÀ-ÞŁŞ][\w’-]+"
_NAME = _INITIALS + _SURNAME
_AND = r"(?:,\s+and\s+|\s+and\s+|,\s+|\s+&\s+)"
_YEAR = r"(?:1[89]|20)\d\d\b"
_MENTION = re.compile(
    rf"(?<!\w)({_NAME}(?:{_AND}{_NAME})*(?:,?\s+et\s+al\.?)?),?\s+\(?({_YEAR}(?:,\s+{_YEAR})*)"
)


@dataclass(frozen=True)
class Work:
    """A paper, book or lecture. authors: "Surname, Initials", with "others" last where not all are
    listed; published: journal, book or institution."""

    key: str
    authors: tuple[str, ...]
    year: int
    title: str = ""
    published: str = ""
    arxiv: str = ""
    doi: str = ""

    @property
    def surnames(self) -> tuple[str, ...]:
        """The authors' surnames, without "others"."""
        return tuple(author.partition(",")[0] for author in self.authors if author != "others")

    @property
    def url(self) -> str:
        """The address of the work: arXiv if it is there, else the page of its DOI, else an empty
        text."""
        if self.arxiv:
            return f"https://arxiv.org/abs/{self.arxiv}"
        return f"https://doi.org/{self.doi}" if self.doi else ""

    def bibtex(self) -> str:
        """The BibTeX entry."""
        fields = {
            "author": " and ".join(self.authors),
            "title": f"{{{self.title}}}" if self.title else "",
            "year": str(self.year),
            "journal": self.published,
            "eprint": self.arxiv,
            "archiveprefix": "arXiv" if self.arxiv else "",
            "doi": self.doi,
        }
        kind = "article" if self.published else "misc"
        lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
        return "\n".join((f"@{kind}{{{self.key},", *lines, "}"))


class Mention(NamedTuple):
    """A place in a text, from `start` to `end`, that names works by authors and year. works: those
    of the bibliography."""

    start: int
    end: int
    text: str
    works: tuple[Work, ...]


@functools.cache
def bibliography() -> dict[str, Work]:
    """Every work by its key, in the order of the authors' names."""
    read = tomllib.loads(_SOURCES.read_text(encoding="utf-8"))
    return {key: Work(key, tuple(entry.pop("authors")), **entry) for key, entry in read.items()}


def mentions(text: str) -> list[Mention]:
    """The places in a text that name authors and a year. Where a name fits no work, or several, the
    mention has fewer works than years."""
    found = []
    for match in _MENTION.finditer(text):
        years = [int(year) for year in re.findall(_YEAR, match[2])]
        works = [work for year in years for work in _fitting(match[1], year)]
        found.append(
            Mention(
                match.start(),
                match.end(),
                match[0],
                tuple(works) if len(works) == len(years) else (),
            )
        )
    return found


def works_of(text: str) -> list[Work]:
    """The works that a text names, each once, in the order of the text."""
    return list(dict.fromkeys(work for mention in mentions(text) for work in mention.works))


def bibtex(works: Iterable[Work]) -> str:
    """The BibTeX entries of some works, one after the other."""
    return "\n\n".join(work.bibtex() for work in works)


def package_entry(version: str) -> str:
    """The BibTeX entry of this package."""
    lines = (
        "  author = {{The orderparam maintainers}},",
        (
            "  title = {{orderparam: the statistical physics of learning in neural networks, "
            "theory and measurement side by side}},"
        ),
        f"  version = {{{version}}},",
        "  note = {Apache-2.0},",
    )
    return "\n".join(("@software{orderparam,", *lines, "}"))


def _fitting(authors: str, year: int) -> list[Work]:
    """The works of that year by these authors; before "et al." only the first authors are named."""
    is_short = re.search(r"\bet\s+al", authors) is not None
    names = re.sub(r"(?:[A-Z]\.[-\s]?)+\s*|,?\s+et\s+al\.?", "", authors)
    wanted = [_plain(name) for name in re.split(_AND, names)]
    fitting = []
    for work in bibliography().values():
        surnames = [_plain(name) for name in work.surnames]
        if work.year == year and (
            surnames[: len(wanted)] == wanted if is_short else sorted(surnames) == sorted(wanted)
        ):
            fitting.append(work)
    return fitting


def _plain(name: str) -> str:
    """A surname without accents and in lower case: Zdeborová becomes zdeborova."""
    decomposed = unicodedata.normalize("NFKD", " ".join(name.split()).replace("’", "'"))
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter)).lower()
