"""Docstrings and signatures as HTML.

A docstring is prose with names in backticks and formulas between dollars. A block that begins with
"Args:", "Returns:", "Fields:" or "Raises:" lists names with what they mean, one on each indented
line; "Accuracy:", "Cost:" and "Source:" begin a paragraph. An indented paragraph is a formula or
code that is shown as it is written.
"""

import dataclasses
import html
import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Any

LISTS = ("Args", "Returns", "Fields", "Raises")
_PARAGRAPHS = ("Accuracy", "Cost", "Source")
_FORMULA = re.compile(r"\$\$(.*?)\$\$", re.DOTALL)
_QUALIFIED = re.compile(r"\b(?:[A-Za-z_]\w*\.)+(?=[A-Za-z_]\w*)")
_WIDTH = 80


def prose(text: str | None, names: Iterable[str] = ()) -> str:
    """A docstring as paragraphs. `names`, where they are explained ("ridge: the penalty"), are set
    as code."""
    blocks = re.split(r"\n\s*\n", inspect.cleandoc(text or "").strip("\n"))
    known = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    made: list[str] = []
    for block in filter(str.strip, blocks):
        head, _, rest = block.partition(":")
        if head in LISTS:
            made.append(f'<p class="section">{head}</p>\n\n{_listed(entries(rest))}')
        elif head in _PARAGRAPHS:
            made.append(f"<p><strong>{head}.</strong> {inline(' '.join(rest.split()))}</p>")
        elif found := _FORMULA.fullmatch(block.strip()):
            made.append(
                f'<div class="arithmatex">\\[{html.escape(found[1].strip(), quote=False)}\\]</div>'
            )
        elif ">>> " in block:
            made.append(
                f'<pre class="example"><code>{html.escape(inspect.cleandoc(block))}</code></pre>'
            )
        elif block.startswith("    "):
            made.append(f'<pre class="example"><code>{html.escape(_dedent(block))}</code></pre>')
        else:
            made.append(f"<p>{inline(' '.join(block.split()), known)}</p>")
    return "\n\n".join(made)


def entries(text: str) -> list[tuple[str, str]]:
    """What an indented list says: names (several, or none, before a colon) with the text that
    follows, which may be indented."""
    found: list[list[str]] = []
    for line in inspect.cleandoc(f"\n{text}").split("\n"):
        if line.startswith(" ") and found:
            found[-1].append(line.strip())
        elif line.strip():
            found.append([line.strip()])
    made = []
    for lines in found:
        name, colon, said = " ".join(lines).partition(": ")
        named = colon and re.fullmatch(r"[\w`*, ]+", name)
        made.append((name.replace("`", ""), said) if named else ("", " ".join(lines)))
    return made


def _listed(listed: list[tuple[str, str]]) -> str:
    names = (f"<dt><code>{name}</code></dt>" if name else "" for name, _ in listed)
    shown = (f"{name}<dd>{inline(text)}</dd>" for name, (_, text) in zip(names, listed))
    return f"<dl>{''.join(shown)}</dl>"


def inline(text: str, known: str = "") -> str:
    """A line of prose as HTML.

    Names in backticks become code, and so do those of the pattern `known` before a colon; what
    stands between dollars a formula.
    """
    parts = re.split(r"(`+)(.+?)\1", text)
    shown = ""
    for i in range(0, len(parts), 3):
        plain = html.escape(parts[i], quote=False)
        plain = re.sub(r"\$([^$]+)\$", r'<span class="arithmatex">\\(\1\\)</span>', plain)
        if known:
            plain = re.sub(
                rf"(?:(?<=^)|(?<=[.;:)] ))(?:{known})(?:, (?:{known}))*(?=:)",
                lambda found: ", ".join(f"<code>{name}</code>" for name in found[0].split(", ")),
                plain,
            )
        shown += plain
        if i + 2 < len(parts):
            shown += f"<code>{html.escape(parts[i + 2], quote=False)}</code>"
    return shown


def _dedent(block: str) -> str:
    lines = block.split("\n")
    margin = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join(line[margin:] for line in lines)


def meanings(text: str | None, names: Sequence[str]) -> dict[str, str]:
    """What a docstring says of each name: the text after "name:" or "one, two:", up to the next
    name or paragraph."""
    found: dict[str, str] = {}
    known = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    if not known:
        return found
    head = re.compile(
        rf"(?:(?<=^)|(?<=[.;] ))((?:{known})(?:(?:,| and|, and) (?:{known}))*)(?: \([^)]*\))?: "
    )
    for block in re.split(r"\n\s*\n", inspect.cleandoc(text or "")):
        section, _, rest = block.partition(":")
        if section in LISTS:
            for listed, said in entries(rest):
                for name in re.split(r",\s*", listed):
                    if name in names:
                        found.setdefault(name, said.rstrip("."))
            continue
        line = " ".join(block.split())
        starts = list(head.finditer(line))
        for this, following in zip(starts, [*starts[1:], None]):
            said = (
                line[this.end() : following.start() if following else len(line)]
                .strip()
                .rstrip(".;")
            )
            for name in re.findall(known, this[1]):
                found.setdefault(name, said)
    return found


def signature(name: str, thing: Any, skip: int = 0) -> str:
    """How a function or class is called, as a block of Python; annotations without their
    modules."""
    try:
        given = inspect.signature(thing)
    except (TypeError, ValueError):
        return f"```python\n{name}\n```"
    parameters = list(given.parameters.values())[skip:]
    shown, star = [], False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            shown.append("*")
            star = True
        star = star or parameter.kind is parameter.VAR_POSITIONAL
        shown.append(_short(parameter))
    gives = (
        ""
        if given.return_annotation is given.empty
        else f" -> {annotation(given.return_annotation)}"
    )
    if isinstance(thing, type):
        gives = ""
    line = f"{name}({', '.join(shown)}){gives}"
    if len(line) > _WIDTH:
        line = f"{name}(\n" + "".join(f"    {one},\n" for one in shown) + f"){gives}"
    return f"```python\n{line}\n```"


def _short(parameter: inspect.Parameter) -> str:
    stars: dict[Any, str] = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
    text = stars.get(parameter.kind, "") + parameter.name
    if parameter.annotation is not parameter.empty:
        text += f": {annotation(parameter.annotation)}"
    if parameter.default is not parameter.empty and parameter.default is not dataclasses.MISSING:
        text += (" = " if ":" in text else "=") + value(parameter.default)
    return text


def annotation(kind: Any) -> str:
    """An annotation without modules: `Float[Array, "time"]`."""
    text = kind if isinstance(kind, str) else inspect.formatannotation(kind)
    return re.sub(r"(?<=Array, )'([^']*)'", r'"\1"', _QUALIFIED.sub("", text))


def value(thing: Any) -> str:
    """A default in short: a number, a word, or the name it goes by."""
    if isinstance(thing, float):
        return repr(float(f"{thing:.12g}"))  # 0.85, not 0.8500000000000001
    if isinstance(thing, tuple):
        return f"({', '.join(map(value, thing))}{',' if len(thing) == 1 else ''})"
    if isinstance(thing, str | int | type(None)):
        return repr(thing)
    return str(
        getattr(thing, "name", "") or getattr(thing, "__name__", "") or f"{type(thing).__name__}()"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """A table whose cells are HTML already, in a box that scrolls sideways where a screen is
    narrow."""
    top = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        '<div class="wide '
        f'{kind}"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
    )
