"""The bibliography: every source that a study or a page names is in it, and `orderparam cite`
prints it."""

import re
from pathlib import Path

from typer.testing import CliRunner

from orderparam.citations import bibliography, bibtex, mentions, works_of
from orderparam.cli.commands import app
from orderparam.core.registry import index

DOCS = Path(__file__).parent.parent / "docs"
# places and dates
NO_WORKS = {
    "Oxford, March 2025",
    "Perimeter Institute, April 2025",
    "Institute, April 2025",
    "ACDL 2022",
}


def test_every_source_of_a_study_is_in_the_bibliography():
    from orderparam.comparison import studies

    sources = {
        name: study.source
        for name, study in studies().items()
        if study.build.__module__.startswith("orderparam.")
    }
    unknown = {
        (name, one.text)
        for name, source in sources.items()
        for one in mentions(source)
        if not one.works
    }
    assert not unknown
    without = {
        name
        for name, source in sources.items()
        if not mentions(source) and "for this package" not in source
    }
    assert not without


def test_every_work_that_a_page_names_is_in_the_bibliography():
    unknown = {
        (page.name, " ".join(one.text.split()))
        for page in DOCS.rglob("*.md")
        for one in mentions(page.read_text(encoding="utf-8"))
        if not one.works and " ".join(one.text.split()) not in NO_WORKS
    }
    assert not unknown


def test_a_mention_is_read_in_every_form_that_pages_use():
    def keys(text):
        return [work.key for work in works_of(text)]

    assert keys("D. Amit, H. Gutfreund, H. Sompolinsky 1985, 1987; (Saad and Solla 1995)") == [
        "amit1985",
        "amit1987",
        "saad1995",
    ]
    assert keys("Krauth, Mezard 1989; W. Krauth, M. Mézard, J.-P. Nadal 1988") == [
        "krauth1989",
        "krauth1988",
    ]
    assert keys("Dandi, Troiani et al. 2024") == ["dandi2024benefits"]
    assert keys("Dandi et al. 2024") == []  # two papers
    assert keys("Nobody 1950, Python 3.11") == []


def test_the_bibliography_is_well_formed():
    for key, work in bibliography().items():
        assert re.fullmatch(r"[a-z]+\d{4}[a-z]*", key)
        assert str(work.year) in key
        assert not work.arxiv or re.fullmatch(
            r"\d{4}\.\d{4,5}|(hep-th|cond-mat|astro-ph)/\d{7}", work.arxiv
        )
        assert not work.doi or work.doi.startswith("10.")
    numbers = [work.doi for work in bibliography().values() if work.doi]
    assert len(set(numbers)) == len(numbers)
    assert bibtex([bibliography()["gardner1988"]]) == (
        "@article{gardner1988,\n  author = {Gardner, E.},\n  title = {{The space of interactions "
        "in neural network models}},\n"
        "  year = {1988},\n  journal = {Journal of Physics A 21, 257},\n  doi = "
        "{10.1088/0305-4470/21/1/030},\n}"
    )


def test_cite_prints_the_sources_of_a_study_and_the_package():
    printed = CliRunner().invoke(app, ["cite", "capacity-margin"])
    assert printed.exit_code == 0
    assert "@software{orderparam," in printed.stdout
    assert all(f"{{{work.key}," in printed.stdout for work in works_of(_source("capacity-margin")))
    assert CliRunner().invoke(app, ["cite"]).stdout.count("@") == 1


def test_cite_refuses_an_unknown_study():
    refused = CliRunner().invoke(app, ["cite", "capacity-margim"])
    assert refused.exit_code == 2
    assert "capacity-margin" in refused.output


def _source(name):
    return next(entry.details["source"] for entry in index() if entry.name == name)
