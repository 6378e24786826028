"""A page as a Jupyter notebook: its Python blocks are cells that run, and what is between them is
text."""

import json
import re

_BLOCK = re.compile(r"^```python\n(.*?)^```\n?", re.DOTALL | re.MULTILINE)


def notebook(page: str) -> str:
    """The notebook of a page, as the text of an `.ipynb` file."""
    cells = []
    for i, part in enumerate(_BLOCK.split(page)):  # text, code, text, code, ...
        if part.strip():
            cells.append(_cell(i % 2 == 1, part.strip("\n")))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps(
        {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 4},
        indent=1,
    )


def _cell(is_code: bool, text: str) -> dict[str, object]:
    if is_code:
        return {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
            "source": text,
        }
    return {"cell_type": "markdown", "metadata": {}, "source": text}
