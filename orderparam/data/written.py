"""Reads numbers and dates in the forms that people write: `$1,002`, `(3.50)`, `12 %`, `7 kg`,
`3,5`, `25.03.2015`, `25/3/2015`, `Mar 25, 2015`."""

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd

from orderparam.data.table import number

MOST = 0.9  # share of readable words above which the others count as mistakes
_CURRENCY = r"[$€£¥]|USD|EUR|GBP|CHF|JPY"
_WITH_SIGNS = re.compile(rf"([-+]?)\s*({_CURRENCY})?\s*([-+]?[0-9.][0-9.,]*)\s*({_CURRENCY}|%)?")
# a negative number, as accounts have them
_IN_BRACKETS = re.compile(rf"({_CURRENCY})?\s*\(([^-+()]*[0-9][^-+()]*)\)")
_WITH_UNIT = r"\s*[-+]?[0-9][0-9.,]*\s*(°?[^\W\d_]{1,8}[²³]?(?:/[^\W\d_]{1,4}[²³]?)?)\s*"
_PATTERNS = {  # patterns of digits with commas, in order of preference
    "commas between thousands": re.compile(r"[-+]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?"),
    "a decimal comma": re.compile(r"[-+]?([0-9]+|[1-9][0-9]{0,2}(\.[0-9]{3})+)(,[0-9]+)?"),
}
_ISO = "ISO8601"
_DAYS = (
    "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d",
    "%d %b %Y", "%d %B %Y", "%d. %B %Y", "%d-%b-%Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y",
    "%B %d %Y",
)  # fmt: skip
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_FIRST = 50  # number of words on which a format is tried before it is tried on all
_LIKE_A_DATE = re.compile(
    r"[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4}([ T].*)?|.*[A-Za-z]{3}.*[0-9]{4}.*"
)
_SHORT_YEAR = re.compile(r"[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{2}")


@dataclass(frozen=True)
class Numbers:
    """The format of the numbers of a column. sign: the sign beside the digits
    ("$", "%", "kg" or ""); commas: a key of `_PATTERNS`, or "". brackets: some are in brackets,
    which are negative."""

    sign: str
    commas: str
    brackets: bool = False

    @property
    def description(self) -> str:
        """Description of how the words were read; "" if they are plain numbers."""
        read = f"read without {self.sign}" if self.sign else ""
        with_commas = f"read with {self.commas}" if self.commas else ""
        negative = "read (1) as -1" if self.brackets else ""
        return ", ".join(part for part in (read, with_commas, negative) if part)

    def read(self, words: pd.Series) -> pd.Series:
        """Numbers; nan for gaps and for words that are not numbers."""
        return words.map({word: self._one(word) for word in words.dropna().unique()}).astype(
            np.float64
        )

    def _one(self, word: str) -> float:
        digits, sign = _parts(word, self.sign)
        if sign not in ("", self.sign):
            return np.nan
        if self.commas and _PATTERNS[self.commas].fullmatch(digits):
            digits = (
                digits.replace(",", "")
                if "thousands" in self.commas
                else digits.replace(".", "").replace(",", ".")
            )
        value = number(digits)
        return np.nan if value is None else value


@dataclass(frozen=True)
class Dates:
    """The format of the dates of a column: a format of `strptime`, or ISO 8601."""

    form: str

    @property
    def description(self) -> str:
        """A phrase on the order of day, month and year that was read; "" for ISO 8601."""
        if self.form == _ISO:
            return ""
        places = {"d": "day", "m": "month", "b": "month", "B": "month", "Y": "year"}
        return "read as " + ", ".join(
            places[letter] for letter in re.findall("%([dmbBY])", self.form)
        )

    def read(self, words: pd.Series) -> pd.Series:
        """Dates; NaT for gaps and for words that are not dates; dates with a time zone are
        converted to universal time."""
        found = pd.to_datetime(words, format=self.form, errors="coerce", utc=self.form == _ISO)
        return found.dt.tz_localize(None)


def _parts(word: str, unit: str = "") -> tuple[str, str]:
    """The digits of a number, and the sign of a unit beside them. unit: that of the column."""
    if unit and word.strip().endswith(unit):
        return word.strip().removesuffix(unit).strip(), unit
    if inside := _IN_BRACKETS.fullmatch(word.strip()):
        digits, sign = _parts((inside[1] or "") + inside[2])
        return f"-{digits}", sign
    found = None if number(word) is not None else _WITH_SIGNS.fullmatch(word.strip())
    if found is None or (found[2] and found[4]):
        return word, ""
    return found[1] + found[3], found[2] or found[4] or ""


def _unit_of(words: pd.Series) -> str:
    """The letters that follow the digits of nine tenths of the words; "" where there are none."""
    units = words.str.extract(f"^{_WITH_UNIT}$")[0].value_counts()
    return str(units.index[0]) if len(units) and units.iloc[0] >= MOST * len(words) else ""


def numbers_of(words: pd.Series) -> Numbers | None:
    """The format in which most of the words are numbers; None where none is a number. Raises
    `ValueError` for several units in one column."""
    different = words.value_counts(sort=False)
    unit = _unit_of(words)
    parts = [_parts(word, unit) for word in different.index]
    signs: Counter[str] = Counter()
    for (_, beside), count in zip(parts, different):
        if beside:
            signs[beside] += count
    sign = max(signs, key=signs.__getitem__, default="")
    if len(signs) > 1 and 2 * signs.total() >= len(words):
        examples = [
            next(word for word, (_, beside) in zip(different.index, parts) if beside == one)
            for one in list(signs)[:2]
        ]
        raise ValueError(
            f"holds {examples[0]!r} and {examples[1]!r}: all numbers of a column must be in one "
            "unit"
        )
    bare = [
        word for word, (_, beside) in zip(different.index, parts) if not beside and number(word)
    ]
    if sign == "%" and bare and 2 * signs.total() >= len(words):
        raise ValueError(
            f"holds numbers with % and without, such as {bare[0]!r}: all numbers of a column must "
            "be in one unit"
        )
    commas = any("," in digits for digits, _ in parts)
    brackets = any(_IN_BRACKETS.fullmatch(word.strip()) for word in different.index)
    readings = [Numbers(sign, kind, brackets) for kind in ("", *(_PATTERNS if commas else ()))]
    counts = [int(reading.read(words).notna().sum()) for reading in readings]
    return readings[int(np.argmax(counts))] if max(counts) else None


def dates_of(words: pd.Series) -> Dates | None:
    """The format in which the words are dates; None where they are not dates.

    Raises `ValueError` where day and month cannot be distinguished, and
    for years of two digits.
    """
    different = pd.Series(words.unique(), dtype=object)
    dated = different.str.fullmatch(_LIKE_A_DATE) | different.str.match(r"[0-9]{4}-[0-9]{2}")
    like = words[words.isin(different[dated])]
    if len(like) < MOST * len(words):
        return None
    forms = [_ISO, *(day + clock for day in _DAYS for clock in _CLOCKS)]
    forms = [form for form in forms if Dates(form).read(like.iloc[:_FIRST]).notna().mean() >= MOST]
    counts = {form: int(Dates(form).read(like).notna().sum()) for form in forms}
    best = max(forms, key=counts.__getitem__, default=None)
    if best is None or counts[best] < MOST * len(words):
        if like.str.fullmatch(_SHORT_YEAR).mean() >= MOST:
            raise ValueError(
                f"holds {like.iloc[0]!r} and the like: write years with four digits, as in "
                "2015-03-25"
            )
        if like.str.fullmatch(r"[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{4}.*").mean() >= MOST:
            raise ValueError(
                f"holds {like.iloc[0]!r} and the like, dates that are not all written alike: write "
                "2015-03-25"
            )
        return None
    exchanged = best.translate(str.maketrans("dm", "md"))
    if counts.get(exchanged) == counts[best] and not Dates(exchanged).read(like).equals(
        Dates(best).read(like)
    ):
        raise ValueError(
            f"holds {like.iloc[0]!r} and the like, of which no row tells the day from the month: "
            "write 2015-03-25 or 25.03.2015"
        )
    return Dates(best)
