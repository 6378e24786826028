"""Numbers and formulas as people read them."""

import re
import unicodedata

import numpy as np


def counted(number: int, noun: str) -> str:
    """A number of things in words, with a regular plural.

    >>> counted(1, "row"), counted(0, "row"), counted(1200, "row")
    ('1 row', '0 rows', '1200 rows')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


_COMMANDS = {
    "infty": "∞",
    "to": "→",
    "le": "≤",
    "ge": "≥",
    "sim": "~",
    "approx": "≈",
    "cdot": "·",
    "times": "×",
    "sqrt": "√",
    "langle": "⟨",
    "rangle": "⟩",
} | dict.fromkeys(("mathrm", "mathbf", "hat", "bar", "tilde"), "")


def formulas_in_words(text: str) -> str:
    r"""A text whose formulas between dollars are written as a terminal can show them.

    >>> formulas_in_words(r"student, $n$ = 50, $\lambda'_i = i^{-2}$")
    "student, n = 50, λ'_i = i^-2"
    """
    return re.sub(r"\$([^$]*)\$", lambda found: _formula(found[1]), text)


def _formula(formula: str) -> str:
    def symbol(found: re.Match[str]) -> str:
        name = found[1]
        case = "CAPITAL" if name[0].isupper() else "SMALL"
        greek = "LAMDA" if name.lower() == "lambda" else name.upper()
        try:
            return unicodedata.lookup(f"GREEK {case} LETTER {greek}")
        except KeyError:
            return _COMMANDS.get(name, f"{name} ")

    named = re.sub(r"\\([A-Za-z]+) ?", symbol, formula)
    return re.sub(r"\\.|[{}]", "", named)


def with_error(mean: float, error: float) -> str:
    """The text `0.1234(56)`: a mean with the standard error of its last two digits. It is the bare
    mean when there is no error, and a dash when there is no mean (every run failed, or the
    observable is not defined there)."""
    if not np.isfinite(mean):
        return "–"
    if not np.isfinite(error) or error <= 0:
        return f"{mean:z.4g}"
    size = max(abs(mean), error)
    if not 1e-3 <= size < 1e6:
        exponent = int(np.floor(np.log10(size)))
        return f"{with_error(mean / 10.0**exponent, error / 10.0**exponent)}e{exponent}"
    digits = max(0, 1 - int(np.floor(np.log10(error))))
    if digits > 8:
        return f"{mean:z.8g}"
    shown = f"{error:.{digits}f}" if error >= 1 else round(error * 10**digits)
    return f"{mean:z.{digits}f}({shown})"
