"""The page of all works that studies and pages name, and the same as a BibTeX file."""

import html
from urllib.parse import quote_plus

import orderparam
from orderparam.citations import Work, bibtex, package_entry
from orderparam.citations import bibliography as works


def page() -> str:
    """The page: every work with its links, in the order of the authors' names."""
    lines = [
        "# Bibliography",
        f"The {len(works())} papers, books and lectures that studies and pages name, [as "
        "BibTeX](orderparam.bib). An arXiv number or a DOI is given where it was found beside the "
        "title or the authors in a second place, or follows from volume and page as in the "
        "Physical Review. The others have a link to a search for their title. `orderparam cite "
        "STUDY` prints the entries of one study, and `orderparam cite` that of the package:",
        f"```bibtex\n{package_entry(orderparam.__version__)}\n```",
    ]
    lines += [f"{_entry(work)}\n{{: #{work.key} }}" for work in works().values()]
    return "\n\n".join(lines) + "\n"


def file() -> str:
    """The BibTeX file: the package and every work."""
    return "\n\n".join((package_entry(orderparam.__version__), bibtex(works().values()))) + "\n"


def _entry(work: Work) -> str:
    """Authors, year, title, where it was published, and links."""
    names = [" ".join(reversed(author.split(", "))) for author in work.authors]
    authors = ", ".join("et al." if name == "others" else name for name in names)
    title = (
        f", *{html.escape(work.title, quote=False)}*".replace("T_c", "T<sub>c</sub>").replace(
            "^4", "⁴"
        )
        if work.title
        else ""
    )
    links = []
    if work.arxiv:
        links.append(f"[arXiv {work.arxiv}](https://arxiv.org/abs/{work.arxiv})")
    if work.doi:
        links.append(f"[doi {work.doi}](<https://doi.org/{work.doi}>)")
    if not links:
        words = quote_plus(" ".join((*work.surnames, str(work.year), work.title)))
        links.append(f"[search](https://search.crossref.org/search/works?q={words})")
    return ", ".join(filter(None, (f"{authors} {work.year}{title}", work.published, *links))) + "."
