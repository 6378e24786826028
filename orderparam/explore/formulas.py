"""Text with formulas as HTML: `$...$` becomes MathML, which a browser shows without a script."""

import re
from html import escape

from latex2mathml.converter import convert

_FORMULA = re.compile(r"\$([^$]+)\$")


def with_mathml(text: str) -> str:
    """The text, escaped, with its formulas typeset; a formula that cannot be read stays as it is
    written."""
    parts = _FORMULA.split(text)
    return "".join(
        _mathml(part) if number % 2 else escape(part) for number, part in enumerate(parts)
    )


def without_formulas(text: str) -> str:
    """The text with its formulas in plain letters, for places where no markup is allowed."""
    return _FORMULA.sub(lambda found: re.sub(r"\\[A-Za-z]+|[{}]", "", found[1]), text)


def _mathml(formula: str) -> str:
    try:
        return convert(formula)
    # the converter raises exceptions of many types; the reader then sees the formula as written
    except Exception:
        return escape(formula)
