"""What MkDocs calls: adds the generated pages, orders all of them, and finishes each page's
HTML."""

import inspect
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

import orderparam
from _site import bibliography, draws, gallery, reference
from _site.commands import commands
from _site.formulas import with_mathml
from _site.links import with_links, with_papers
from _site.names import CONTRACT, packages, title, topics
from _site.notebook import notebook

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TUTORIALS = ("your-learning-curve", "theory-beside-experiment", "add-your-theory")
HOWTO = (
    "sweeps",
    "xarray",
    "units",
    "your-data",
    "phases",
    "exponents",
    "width",
    "inspect",
    "explorer",
    "new-system",
    "clusters",
    "gpu",
    "speed",
    "robustness",
    "troubleshooting",
)
THEORY = {
    "Networks as kernels": (
        "random_networks",
        "kernel_regression",
        "renormalization",
        "random_features",
        "scaling_laws",
        "learning_from_models",
    ),
    "Networks that learn features": (
        "proportional",
        "kernel_adaptation",
        "extensive_width",
        "one_step",
        "several_steps",
    ),
    "Gradient descent in time": (
        "training_in_time",
        "deep_linear",
        "features_in_time",
        "boolean_functions",
        "differential_equations",
        "trained_networks",
        "reused_data",
        "online_sgd",
        "multi_index",
    ),
    "Sequences and generation": (
        "in_context",
        "attention",
        "diffusion",
        "word_frequencies",
        "language_models",
    ),
    "Inference and capacity": (
        "generalised_linear",
        "perceptron",
        "committee",
        "storage_capacity",
        "generalisation",
    ),
    "Magnets and memories": ("spins", "broken_symmetry", "associative_memory"),
}
DRAWS = "<!-- draws -->"  # their number


def on_files(files: Files, config: Any) -> Files:
    """Adds what is generated, and orders all pages."""

    def add(path: str, content: str | bytes) -> None:
        files.append(File.generated(config, path, content=content))

    for path, text in gallery.pages().items():
        add(f"gallery/{path}", text)
    for path, picture in gallery.small_pictures().items():
        add(f"gallery/{path}", picture)
    for path, text in reference.pages().items():
        add(f"reference/{path}", text)
    add("reference/commands.md", commands())
    add("theory/index.md", _theory())
    add("bibliography.md", bibliography.page())
    add("orderparam.bib", bibliography.file())
    add("changelog.md", (ROOT / "CHANGELOG.md").read_text())
    for name in ("site.css", "file-search.js"):
        add(f"assets/{name}", (HERE / name).read_text())
    for page in sorted(ROOT.glob("docs/tutorials/*.md")):
        add(f"tutorials/{page.stem}.ipynb", notebook(page.read_text()))
    config.nav = _navigation({file.src_uri for file in files.documentation_pages()})
    return files


def _theory() -> str:
    """The overview of the topics."""
    lines = [
        "# Theory",
        "Each topic is one part of the field, with its model, theories, experiments and studies.",
    ]
    for head, names in THEORY.items():
        lines += [f"## {head}", "| topic | what it solves and runs |\n| --- | --- |"]
        for name in names:
            said = (
                inspect.cleandoc(getattr(orderparam.systems, name).__doc__ or "")
                .partition("\n\n")[0]
                .replace("\n", " ")
            )
            lines[-1] += f"\n| [{title(name)}]({name}.md) | {said.replace('|', '&#124;')} |"
    return "\n\n".join(lines) + "\n"


def _navigation(pages: set[str]) -> list[Any]:
    """Every page that is there, in the order of reading; studies are reached through the
    gallery."""

    def there(folder: str, names: tuple[str, ...]) -> list[str]:
        written = sorted(
            path.split("/")[1].removesuffix(".md")
            for path in pages
            if path.startswith(f"{folder}/")
        )
        chosen = (
            [*names, *(name for name in written if name not in names and name != "index")]
            if folder != "theory"
            else names
        )
        return [f"{folder}/{name}.md" for name in chosen if f"{folder}/{name}.md" in pages]

    top = [
        path
        for path in (
            "glossary.md",
            "conventions.md",
            "architecture.md",
            "papers.md",
            "bibliography.md",
            "errata.md",
            "changelog.md",
        )
        if path in pages
    ]
    placed = {"index.md", "agreement.md", *top}
    rest = sorted(path for path in pages if "/" not in path and path not in placed)
    theory = [{head: there("theory", names)} for head, names in THEORY.items()]
    return [
        {"Home": "index.md"},
        {"Tutorials": there("tutorials", TUTORIALS)},
        {"How-to": there("howto", HOWTO)},
        {"Theory": ["theory/index.md", *theory]},
        {
            "Gallery": [
                "gallery/index.md",
                "gallery/by-topic.md",
                "gallery/by-source.md",
                "agreement.md",
            ]
        },
        {
            "Reference": [
                "reference/index.md",
                "reference/commands.md",
                f"reference/{CONTRACT}.md",
                {"Topics": [f"reference/{name}.md" for names in THEORY.values() for name in names]},
                {"Tools": [f"reference/{name}.md" for name in packages()]},
            ]
        },
        {"Background": [*top, *rest]},
    ]


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Puts the notebook above a tutorial, the studies of a topic and how far they agree into its
    theory, and how many draws were made into the page of what was tried."""
    folder, _, name = page.file.src_uri.removesuffix(".md").partition("/")
    for problem in _broken_tables(markdown):
        raise PluginError(
            f"{page.file.src_uri}: a row of a table has more or fewer cells than its head: "
            f"{problem}"
        )
    if folder == "tutorials":
        head, rest = markdown.split("\n", 1)
        return f"{head}\n\n[As a notebook]({name}.ipynb){{: .notebook download }}\n{rest}"
    if (folder, name) == ("howto", "robustness"):
        return markdown.replace(DRAWS, draws.in_words(len(orderparam.theories())))
    if folder == "theory" and name in topics():
        names = [study.name for study in gallery.studies().values() if study.topic == name]
        markdown = with_agreement(markdown, name)
        return f"{markdown}\n\n## Figures\n\n{gallery.cards(names, '../gallery/')}\n"
    return markdown


def with_agreement(markdown: str, topic: str) -> str:
    """The page of a topic with its part of the table of all studies in the place of `<!--
    agreement: TOPIC -->`."""
    table = (
        (ROOT / "docs" / "agreement.md")
        .read_text()
        .partition(f"## {title(topic)}\n")[2]
        .partition("\n## ")[0]
        .strip()
    )
    mark = f"<!-- agreement: {topic} -->"
    if mark not in markdown or not table:
        raise PluginError(
            f"theory/{topic}.md: no mark {mark}, or no table of that topic in agreement.md"
        )
    return markdown.replace(mark, table)


def _broken_tables(markdown: str) -> list[str]:
    """Rows of tables that have not as many cells as the head, for a bar in a formula, say."""
    found, width = [], 0
    for line in re.sub(r"```.*?```", "", markdown, flags=re.DOTALL).split("\n"):
        cells = len(re.findall(r"(?<!\\)\|", re.sub(r"`[^`]*`", "", line)))
        if not line.startswith("|"):
            width = 0
        elif width and cells != width:
            found.append(line)
        else:
            width = cells
    return found


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Formulas as MathML, names and mentions of papers as links."""
    try:
        linked = with_links(with_mathml(html), page.file.url)
        return (
            linked if page.file.src_uri == "bibliography.md" else with_papers(linked, page.file.url)
        )
    except ValueError as error:
        raise PluginError(f"{page.file.src_uri}: formula {error}") from None


@event_priority(-100)
def on_post_build(config: Any) -> None:
    """The search index as a script, which a page that is opened as a file may read."""
    index = Path(config.site_dir) / "search" / "search_index.json"
    index.with_suffix(".js").write_text(f"var __index = {index.read_text()}")
