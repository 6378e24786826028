"""The bibliography of all works that studies and pages name, from which links and BibTeX are
made."""

from orderparam.citations.bibliography import (
    Mention,
    Work,
    bibliography,
    bibtex,
    mentions,
    package_entry,
    works_of,
)
