"""The named figures of the frequencies of words."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from orderparam.comparison import Curve, between, study
from orderparam.data.text import documentation, numbered_words
from orderparam.plotting import Panel
from orderparam.systems.word_frequencies.experiment import (
    drawn_vocabulary,
    fitted_text,
    read_vocabulary,
    refitted_law,
)
from orderparam.systems.word_frequencies.model import Basis, RankLaw, ReadText
from orderparam.systems.word_frequencies.theory import (
    expected_vocabulary,
    shuffled_vocabulary,
    true_law,
)

TEXT = "documentation strings of installed packages; no text is downloaded"
METHODS = {"likelihood": "likelihood", "squares": "least squares of logarithms"}


def installed_text(packages: tuple[str, ...]) -> ReadText:
    """The documentation of installed packages as numbered words."""
    words = numbered_words(documentation(packages))
    return ReadText(words.words, words.ends)


@study(
    "words-window",
    title=(
        "The exponent and the offset of the Zipf-Mandelbrot law depend on how many ranks are fitted"
    ),
    source=f"Mandelbrot 1953; measured here on {TEXT}",
    panels=[
        Panel(
            "window", "exponent", by="method", log="x", xlabel="ranks fitted", ylabel="exponent $a$"
        ),
        Panel("window", "offset", by="method", log="x", xlabel="ranks fitted", ylabel="offset $b$"),
        Panel(
            "window",
            "divergence",
            by="method",
            log="xy",
            xlabel="ranks fitted",
            ylabel="divergence of text from law",
        ),
    ],
    columns=3,
    caption=r"""
        The law $(r + b)^{{-a}}$ is fitted to the most frequent words of the documentation of
        {packages}. Each of {seeds} runs draws as many documents as there are, with replacement;
        bars are the standard errors of the mean over runs. Right: Kullback-Leibler divergence of
        the counts from the fitted law. If the law held, $a$ and $b$ would be the same in every
        window.
    """,
    seconds=(60, 300),
    observables=("exponent", "offset"),
    full={"packages": ("pydoc_data", "numpy", "scipy", "sklearn"), "seeds": 64},
    gallery={"seeds": 32},
)
def words_window(
    windows: tuple[int, ...] = (30, 100, 300, 1000, 3000),
    packages: tuple[str, ...] = ("pydoc_data", "numpy"),
    seeds: int = 16,
) -> Iterator[Curve]:
    text = installed_text(packages)
    for method in METHODS:
        measured = partial(fitted_text, method=method)
        over, facets = {"window": windows}, {"method": METHODS[method]}
        yield Curve("text", measured, text, over, seeds, facets=facets)


@study(
    "words-refitted",
    title=(
        "Up to a million words, ranking and choosing them by counts lowers the fitted "
        "exponent of a law by up to 1.3 %; most of it is due to the ranks"
    ),
    source="Mandelbrot 1953 for the law; the bias is measured here",
    panels=[
        Panel("drawn", "exponent", by="ranks, cut", log="x", xlabel="words drawn", ylabel="$a$"),
        Panel("drawn", "offset", by="ranks, cut", log="x", xlabel="words drawn", ylabel="$b$"),
    ],
    columns=2,
    caption=r"""
        Words are drawn with the probability $\propto (r + b)^{{-a}}$ of the rank $r$, $a$ =
        {exponent}, $b$ = {offset}, over {types} types, and $a$ and $b$ are fitted by likelihood to
        the first ranks, as many as there are types with ten counts or more. Ranks: types are
        ordered by their counts or by the law. Cut: the types with ten counts are selected by the
        counts or by the means of the counts in the law. Lines: the values of the law. Marks: means
        over {seeds} runs; pink covers green.
    """,
    seconds=(30, 120),
    observables=("exponent", "offset"),
    full={"seeds": 64},
    gallery={"seeds": 32},
    explained=(
        "Types that were drawn often by chance move up in the ranks of the counts. The controls "
        "separate this from the cut: up to a million words the bias of a is -0.0117(20), "
        "-0.0077(6), -0.0065(3) and -0.0043(1) with the ranks of the counts and a fixed cut, 8 to "
        "16 % more where the counts cut as well. With the ranks of the law it is zero within 2.4 "
        "errors, but for 0.0004(1) at a million words, where 32 other runs have -0.0002(1). At "
        "three million words, where nearly every type has ten counts and nothing is cut, the bias "
        "changes its sign; this has no control."
    ),
)
def words_refitted(
    drawn: tuple[int, ...] = (30_000, 100_000, 300_000, 1_000_000, 3_000_000),
    exponent: float = 1.05,
    offset: float = 2.7,
    types: int = 20_000,
    seeds: int = 16,
) -> Iterator[Curve]:
    system = RankLaw(exponent, offset, types=types)
    over = {"drawn": drawn}
    yield Curve("law", true_law, system, over)
    bases: tuple[Basis, ...] = ("counts", "law")
    for ranks in bases:
        for cut in bases:
            measured = partial(refitted_law, ranks=ranks, cut=cut)
            facets = {"ranks, cut": f"ranks: {ranks}, cut: {cut}"}
            yield Curve("fit", measured, system, over, seeds, facets=facets)


@study(
    "words-vocabulary",
    title=(
        "The first words that are read of the documentation of two packages hold fewer "
        "different words than as many of its words in random order"
    ),
    source=f"Heaps 1978 for the growth; measured here on {TEXT}",
    panels=[
        Panel(
            "share",
            "distinct",
            where={"words": "text"},
            log="xy",
            title="a text",
            xlabel="share of the words that is read",
            ylabel="different words",
        ),
        Panel(
            "drawn",
            "distinct",
            where={"words": "law"},
            log="xy",
            title="a law of ranks",
            xlabel="words drawn",
            ylabel="different words",
        ),
    ],
    columns=2,
    caption=r"""
        Left: the documentation of {packages} as an example of a text. Its documents are read in a
        random order in each of {seeds} runs (marks); the line ("independent words") is the exact
        mean when all words are shuffled. Right, a control: words drawn with the probability
        $\propto (r + b)^{{-a}}$ of the rank $r$, $a$ = 1.05, $b$ = 2.7, over 20,000 types (marks)
        and the exact mean (line).
    """,
    seconds=(30, 120),
    observables=("distinct",),
    full={"packages": ("pydoc_data", "numpy", "scipy", "sklearn"), "seeds": 64},
    gallery={"seeds": 32},
    explained=(
        "Words of a text probably come in bursts, because a document repeats its own words; "
        "bursts themselves were not measured. The drawn words, which are independent, are the"
        " control: their numbers lie on the line."
    ),
)
def words_vocabulary(
    shares: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1, 0.3, 0.7),
    drawn: tuple[int, ...] = (1000, 10_000, 100_000, 1_000_000),
    packages: tuple[str, ...] = ("pydoc_data", "numpy"),
    seeds: int = 16,
) -> Iterator[Curve]:
    text, facets = installed_text(packages), {"words": "text"}
    over = {"share": between(shares, 30)}
    yield Curve("independent words", shuffled_vocabulary, text, over, facets=facets)
    yield Curve("counted", read_vocabulary, text, {"share": shares}, seeds, facets=facets)
    law, facets = RankLaw(), {"words": "law"}
    line = np.unique(np.round(between(drawn, 30)))
    yield Curve("independent words", expected_vocabulary, law, {"drawn": line}, facets=facets)
    yield Curve("counted", drawn_vocabulary, law, {"drawn": drawn}, seeds, facets=facets)
