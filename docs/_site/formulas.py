"""Formulas as MathML, made when the site is built: a browser shows them without a script and
without a network."""

import html
import re

from latex2mathml.converter import convert

# What `pymdownx.arithmatex` (generic) leaves of $...$ and $$...$$.
_INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
_DISPLAY = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)
_ARG = re.compile(r"\\arg(?![A-Za-z])")  # which the converter does not know
_ANGLE = re.compile(r"(\\[Bb]igg?[lr]?)\\([lr])angle")  # which it does not know after \Big
_SET_AS = (  # what the converter takes for a letter, or for an operator with space around it
    (re.compile(r"(<mo[^>]*)>(&#x0007C;|&#x02016;)"), r'\1 lspace="0" rspace="0">\2'),  # |x|, ||x||
    (re.compile(r"<mi>(&#x027E8;)</mi>"), r'<mo stretchy="false" form="prefix">\1</mo>'),
    (re.compile(r"<mi>(&#x027E9;)</mi>"), r'<mo stretchy="false" form="postfix">\1</mo>'),
    (re.compile(r"<mi>&#x0007E;</mi>"), "<mo>&#x0223C;</mo>"),  # \\sim
    (re.compile(r"<mi>(&#x02032;)</mi>"), r"<mo>\1</mo>"),  # a prime
)
# a command that is still there was not understood
_UNREAD = re.compile(r"\\[A-Za-z]+|&#x0005C;[A-Za-z]+")


def with_mathml(page: str) -> str:
    """The HTML of a page with its formulas. Raises `ValueError` for a formula that cannot be
    read."""
    page = _DISPLAY.sub(
        lambda found: f'<div class="formula">{_mathml(found[1], "block")}</div>', page
    )
    return _INLINE.sub(lambda found: _mathml(found[1], "inline"), page)


def _mathml(formula: str, display: str) -> str:
    tex = _ARG.sub(r"\\mathrm{arg}\\,", " ".join(html.unescape(formula).split()))
    tex = _ANGLE.sub(lambda found: found[1] + {"l": "⟨", "r": "⟩"}[found[2]], tex)
    try:
        made = convert(tex, display=display)
    except Exception as error:
        raise ValueError(f"{tex}: {type(error).__name__} {error}") from None
    if unread := _UNREAD.search(made):
        raise ValueError(f"{tex}: {unread[0]} is not known")
    for found, better in _SET_AS:
        made = found.sub(better, made)
    return made
