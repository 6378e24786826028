"""Names in the text that lead to where they are explained: `onsager` to the reference,
`ising-square` to the gallery, and "Gardner 1988" to the paper."""

import functools
import html
import posixpath
import re

from _site.gallery import studies
from _site.names import public, topics
from orderparam.citations import Work, mentions
from orderparam.core import registry
from orderparam.core.fields import declarations

_CODE = re.compile(r"<pre.*?</pre>|<a [^>]*>.*?</a>|<h\d.*?</h\d>|<code>([^<]+)</code>", re.DOTALL)
_TEXT = re.compile(
    r"(<pre.*?</pre>|<a [^>]*>.*?</a>|<h\d.*?</h\d>|<code>.*?</code>|<math.*?</math>|<[^>]*>)",
    re.DOTALL,
)
_ARXIV = re.compile(r"arXiv[:\s]\s*(\d{4}\.\d{4,5}|(?:hep-th|cond-mat)/\d{7})")
_CALL = re.compile(r"(?:op|orderparam)?\.?([\w.]+?)(?:\(.*\))?")


def with_links(page: str, url: str) -> str:
    """The HTML of a page, its names of functions, classes, packages and studies linked; code blocks
    and headings as they are."""
    topic = posixpath.basename(url).removesuffix(".html")

    def linked(found: re.Match[str]) -> str:
        target = _target(html.unescape(found[1]), topic) if found[1] else None
        if target is None:
            return found[0]
        where, _, anchor = target.partition("#")
        relative = "" if where == url else posixpath.relpath(where, posixpath.dirname(url) or ".")
        return f'<a class="name" href="{relative}{"#" if anchor else ""}{anchor}">{found[0]}</a>'

    return _CODE.sub(linked, page)


def with_papers(page: str, url: str) -> str:
    """The HTML of a page in which mentions of papers (Gardner 1988; arXiv 2405.06008) lead to them;
    a work that neither arXiv nor a DOI leads to, to its place in the bibliography."""
    parts = _TEXT.split(page)
    return "".join(part if at % 2 else _with_papers(part, url) for at, part in enumerate(parts))


def _with_papers(text: str, url: str) -> str:
    """A piece of text without tags, its mentions of papers linked."""
    made, end = "", 0
    for mention in mentions(text):
        if not mention.works:
            continue
        first, *more = mention.works
        shown = mention.text
        for work in more:  # "Gardner 1987, 1988": every year leads to a work of its own
            before, year, after = shown.rpartition(str(work.year))
            shown = f"{before}{_linked(work, year, url)}{after}"
        whole = re.match(rf".*?{first.year}", shown, re.DOTALL)
        if whole:
            shown = _linked(first, whole[0], url) + shown[whole.end() :]
        made += _ARXIV.sub(_arxiv_link, text[end : mention.start]) + shown
        end = mention.end
    return made + _ARXIV.sub(_arxiv_link, text[end:])


def _arxiv_link(found: re.Match[str]) -> str:
    return f'<a href="https://arxiv.org/abs/{found[1]}">{found[0]}</a>'


def _linked(work: Work, text: str, url: str) -> str:
    """The text as a link to the work, its title shown where the pointer rests."""
    where = (
        work.url
        or f"{posixpath.relpath('bibliography.html', posixpath.dirname(url) or '.')}#{work.key}"
    )
    return f'<a href="{where}" title="{html.escape(work.title)}">{text}</a>'


def _target(text: str, topic: str) -> str | None:
    """The page (and anchor) on which a text in code is explained, if it is a name; names of the
    page's own topic come first."""
    if text in studies():
        return f"gallery/{text}.html"
    if text in known():
        return known()[text]
    call = _CALL.fullmatch(text)
    if call is None:
        return None
    name = call[1]
    return known().get(f"{topic}.{name}") or known().get(name)


@functools.cache
def known() -> dict[str, str]:
    """Name, or topic.name -> page and anchor. A bare name that several pages have, or that is a
    parameter too, is ambiguous."""
    found: dict[str, str] = {}
    bare: dict[str, set[str]] = {}
    for name in public():
        target = f"reference/{name.page}.html#{name.name}"
        short = name.module.removeprefix("orderparam").removeprefix(".")
        for prefix in {name.page, short, short.removeprefix("systems."), name.module}:
            found[f"{prefix}.{name.name}".removeprefix(".")] = target
        bare.setdefault(name.name, set()).add(target)
    found |= {
        name: min(targets)
        for name, targets in bare.items()
        if len(targets) == 1 and name not in parameters()
    }
    for name in public():
        where = (
            f"orderparam.systems.{name.page}"
            if name.page in topics()
            else f"orderparam.{name.page}"
        )
        found[where] = f"reference/{name.page}.html"
    return found


@functools.cache
def parameters() -> frozenset[str]:
    """Names of fields, options and observables: in a text these are meant, not the functions that
    are called so."""
    verbs = (*registry.theories().values(), *registry.experiments().values())
    fields = {field for kind in registry.systems().values() for field in declarations(kind)}
    options = {option for verb in verbs for option in verb.options}
    observables = {field for verb in verbs for result in verb.results for field in result.dims()}
    return frozenset(fields | options | observables)
