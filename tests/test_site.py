"""The pages of the site: all public names are in the reference, all studies in the gallery, and
links lead somewhere."""

import importlib
import json
import pkgutil
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import orderparam
from orderparam.comparison import studies
from orderparam.core import registry
from orderparam.core.on_demand import on_demand

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))
bibliography, gallery, reference, commands, docstrings, formulas, notebook, links, names = (
    importlib.import_module(f"_site.{name}")
    for name in (
        "bibliography",
        "gallery",
        "reference",
        "commands",
        "docstrings",
        "formulas",
        "notebook",
        "links",
        "names",
    )
)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


@pytest.fixture(scope="module")
def pages():
    """Path of a generated page below `docs` -> markdown."""
    made = {f"gallery/{path}": text for path, text in gallery.pages().items()}
    made |= {f"reference/{path}": text for path, text in reference.pages().items()}
    return made | {
        "reference/commands.md": commands.commands(),
        "bibliography.md": bibliography.page(),
        "theory/index.md": "",
        "changelog.md": "",
    }


def _offered():
    """Package -> name of what its `__init__` offers, found without the code of the site."""
    found = pkgutil.walk_packages(orderparam.__path__, "orderparam.")
    for name in [
        "orderparam",
        *(one.name for one in found if one.ispkg and not one.name.startswith(names.COMMANDS)),
    ]:
        module = importlib.import_module(name)
        for one in getattr(module, "__all__", dir(module)):
            thing = getattr(module, one)
            own = (
                str(getattr(thing, "__module__", "")).startswith("orderparam")
                and thing is not on_demand
            )
            if not isinstance(thing, ModuleType) and not one.startswith("_") and own:
                yield name, one


def test_every_public_name_is_in_the_reference(pages):
    offered = list(_offered())
    assert len(offered) > 600
    missing = [
        (package, name)
        for package, name in offered
        if f"### `{name}` {{: #{name} }}" not in pages[f"reference/{names.page_of(package)}.md"]
    ]
    assert not missing


def test_everything_registered_is_in_the_reference_with_its_fields(pages):
    for name, verb in {**registry.theories(), **registry.experiments()}.items():
        topic, _, function = name.partition(".")
        if verb.__module__.startswith("orderparam."):
            assert f"### `{function}` {{" in pages[f"reference/{topic}.md"]
            for result in verb.results:
                rows = (
                    pages[f"reference/{topic}.md"]
                    .partition(f"### `{result.__name__}` {{")[2]
                    .partition("\n### ")[0]
                )
                assert all(f"<td><code>{field}</code></td>" in rows for field in result.dims()), (
                    result
                )


def test_a_system_has_a_table_of_its_parameters(pages):
    table = (
        pages["reference/spins.md"].partition("### `MeanFieldMagnet` {")[2].partition("\n### ")[0]
    )
    row = (
        "<td><code>temperature</code></td><td>temperature T in units of the coupling</td><td>&gt; "
        "0</td><td>needed</td>"
    )
    assert row in table
    assert "<td><code>1000</code></td>" in table


def test_docstrings_say_what_names_mean():
    text = (
        "Two numbers.\n\nridge: the penalty, at least 0. n_train, n_test: examples.\n    More of "
        "it. rest: left"
    )
    assert docstrings.meanings(text, ["ridge", "n_train", "n_test", "rest", "none"]) == {
        "ridge": "the penalty, at least 0",
        "n_train": "examples. More of it",
        "n_test": "examples. More of it",
        "rest": "left",
    }
    assert "<p><code>ridge</code>: the penalty, at least 0." in docstrings.prose(text, ["ridge"])
    shown = '<p>a &lt; b</p>\n\n<pre class="example"><code>x = *y*</code></pre>\n\n<p>c</p>'
    assert docstrings.prose("a < b\n\n    x = *y*\n\nc") == shown


def test_every_study_answers_one_question_and_has_a_page(pages):
    own = {
        name
        for name, study in studies().items()
        if study.build.__module__.startswith("orderparam.")
    }
    placed = [name for chosen in gallery.questions().values() for name in chosen]
    assert sorted(placed) == sorted(own)
    for name in own:
        assert f"orderparam run {name} " in pages[f"gallery/{name}.md"]
        assert f'href="{name}.html"' in pages["gallery/by-topic.md"]


def test_what_the_gallery_keeps_is_of_studies_that_there_are():
    kept = {path.stem for path in (DOCS / "gallery").glob("*.json")}
    assert kept == {path.stem.removesuffix("-narrow") for path in (DOCS / "gallery").glob("*.webp")}
    assert kept <= studies().keys()
    # for each study its picture, the narrow one and the record: 65 kB
    assert sum(path.stat().st_size for path in (DOCS / "gallery").iterdir()) < 65_000 * len(kept)


def test_every_full_size_says_what_it_adds_and_is_shown(pages):
    folder, said = DOCS / "gallery" / "full", gallery.at_full_size()
    for ending in ("json", "webp"):
        assert {path.stem for path in folder.glob(f"*.{ending}")} == said.keys()
    assert said.keys() <= studies().keys()
    table = (DOCS / "agreement.md").read_text(encoding="utf-8").partition("## At full size")[2]
    for name, sentence in said.items():
        shown = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        assert (shown["study"], shown["size"]) == (name, "full")
        assert sentence.endswith(".")
        _, _, section = pages[f"gallery/{name}.md"].partition("## At the sizes of the source")
        assert sentence in section
        assert f'src="full/{name}.webp"' in section
        assert f"| `{name}` | full |" in table


def test_papers_of_a_source():
    assert gallery.papers(
        "Mei, Montanari 2019 (arXiv:1908.05355); Gaussian units: Aiudi et al. 2025, Fig. 2; solved "
        "here"
    ) == [
        "Mei, Montanari 2019",
        "Aiudi et al. 2025",
    ]
    assert gallery.papers(
        "derived for this package from the free entropy of Nguyen and Barbier 2026"
    ) == ["Nguyen, Barbier 2026"]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_relative_links_lead_to_something(path, pages):
    text = re.sub(r"```.*?```|`[^`]*`|\$\$.*?\$\$", "", path.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s#]+)[^)]*\)", text):
        if "://" not in link and not link.startswith("mailto:"):
            target = (path.parent / link).resolve()
            generated = target.is_relative_to(DOCS) and str(target.relative_to(DOCS)) in pages
            assert target.exists() or generated, link


def test_formulas_are_mathml_and_what_is_not_known_is_refused():
    page = r'<p><span class="arithmatex">\(\lambda_k &lt; \arg\max_x f\)</span></p>'
    made = formulas.with_mathml(page)
    assert made.startswith('<p><math xmlns="http://www.w3.org/1998/Math/MathML" display="inline">')
    assert "<mo>&#x0003C;</mo>" in made
    average = formulas.with_mathml(
        r'<span class="arithmatex">\(\Big\langle x \bigr\rangle\)</span>'
    )
    assert ">⟨</mo>" in average
    assert ">⟩</mo>" in average
    with pytest.raises(ValueError, match="unheard"):
        formulas.with_mathml(r'<span class="arithmatex">\(\unheard{x}\)</span>')


def test_a_tutorial_is_a_notebook():
    made = json.loads(notebook.notebook("# Title\n\nText.\n\n```python\nx = 1\n```\n\nMore.\n"))
    assert [(cell["cell_type"], cell["source"]) for cell in made["cells"]] == [
        ("markdown", "# Title\n\nText."),
        ("code", "x = 1"),
        ("markdown", "More."),
    ]


def test_names_in_the_text_lead_to_the_reference():
    page = (
        "<p><code>onsager</code> <code>temperature</code> "
        "<code>ising-square</code></p><pre><code>onsager</code></pre>"
    )
    assert links.with_links(page, "theory/spins.html") == (
        '<p><a class="name" href="../reference/spins.html#onsager"><code>onsager</code></a> '
        "<code>temperature</code>"
        ' <a class="name" '
        'href="../gallery/ising-square.html"><code>ising-square</code></a></p><pre><code>onsager</code></pre>'
    )


def test_a_study_says_where_its_page_is(capsys):
    from orderparam.cli.list import _outlined, one_study

    one_study(_outlined("ising-square"))
    assert "site/gallery/ising-square.html" in capsys.readouterr().out


def test_all_pages_are_in_the_navigation_and_broken_tables_are_found():
    pytest.importorskip("mkdocs")
    hooks = importlib.import_module("_site.hooks")
    assert sorted(name for names in hooks.THEORY.values() for name in names) == sorted(
        names.topics()
    )
    written = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    placed = re.findall(
        r"'([\w/-]+\.md)'", str(hooks._navigation(written | {"theory/index.md", "changelog.md"}))
    )
    assert sorted(
        page for page in placed if not page.startswith(("reference/", "gallery/"))
    ) == sorted(written | {"theory/index.md", "changelog.md"})
    table = "| a | b |\n| --- | --- |\n| 1 | {} |\n\ntext | text\n"
    assert hooks._broken_tables(table.format("`x|y`")) == []
    assert hooks._broken_tables(table.format("$|x|$")) == ["| 1 | $|x|$ |"]


def test_code_on_a_page_is_at_most_80_columns_wide():
    wide = [
        (path.name, line)
        for path in PAGES
        for language, code in re.findall(
            r"^```(\w*)[^\n]*\n(.*?)^```",
            path.read_text(encoding="utf-8"),
            re.MULTILINE | re.DOTALL,
        )
        for line in code.splitlines()
        if language in ("python", "sh") and len(line) > 80
    ]
    assert not wide


def test_numbers_in_tables_are_rounded():
    assert docstrings.value(0.8500000000000001) == "0.85"
    assert docstrings.value((0.1 + 0.2, 1, "word")) == "(0.3, 1, 'word')"
    assert docstrings.value((1.0,)) == "(1.0,)"


def test_mentions_of_papers_are_links():
    linked = links.with_papers(
        "<p>Gardner 1988; E. Gardner 1987, 1988 <code>Gardner 1988</code> arXiv:2405.06008</p>",
        "theory/x.html",
    )
    assert linked.count('href="https://doi.org/10.1088/0305-4470/21/1/030"') == 2
    assert 'href="../bibliography.html#gardner1987"' in linked
    assert '<code>Gardner 1988</code> <a href="https://arxiv.org/abs/2405.06008">' in linked


def test_pages_say_how_to_install_from_a_copy():
    on_an_index = [
        path.name
        for path in PAGES
        if re.search(r"pip install '?orderparam", path.read_text(encoding="utf-8"))
    ]
    assert not on_an_index


def test_draws_with_options_are_kept_and_counted(tmp_path, monkeypatch):
    """Of a theory with two examples all are right when all of both are."""
    draws = importlib.import_module("_site.draws")
    monkeypatch.setattr(draws, "DRAWN", tmp_path / "drawn.txt")
    assert draws.in_words(3) == "all for 0 of the 3 theories (0 draws)"
    for name, right in (("a.one X", 30), ("a.one X 2", 29), ("a.two X", 30)):
        draws.remember(name, draws.Draws("12345678", right, 30))
    assert draws.known()["a.one X 2"] == ("12345678", 29, 30)
    assert draws.in_words(3) == "all for 1 of the 3 theories, 59 for 1 more (89 draws)"
    draws.remember("a.one X 2", draws.Draws("12345678", 30, 30))
    assert draws.in_words(3) == "all for 2 of the 3 theories (90 draws)"
    pytest.importorskip("mkdocs")
    mark = importlib.import_module("_site.hooks").DRAWS
    assert mark in (DOCS / "howto" / "robustness.md").read_text(encoding="utf-8")


def test_every_work_of_the_bibliography_has_a_link():
    entries = re.findall(r"(?m)^.*\n\{: #\w+ \}$", bibliography.page())
    assert len(entries) == len(bibliography.works())
    assert [entry for entry in entries if "](" not in entry] == []
