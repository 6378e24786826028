"""`orderparam new-system`: writes a complete small system as a file to start from."""

import builtins
import keyword
import re
from importlib.util import find_spec
from pathlib import Path
from symtable import symtable
from typing import Annotated

import typer

from orderparam.cli.errors import clear_errors
from orderparam.core.paths import whole_file


def new_system(
    name: Annotated[
        str,
        typer.Argument(help="Name of the system, such as spin_glass: the file will be NAME.py."),
    ],
) -> None:
    """Write NAME.py: a system with its theory, its experiment and a study that runs, to be changed
    into your own."""
    with clear_errors():
        word = name.removesuffix(".py")
        if not re.fullmatch(r"[a-z]([a-z0-9_]*[a-z0-9])?", word):
            raise ValueError(
                f"{name}: give a name of lower-case letters, digits and underscores, such as "
                "spin_glass"
            )
        path = Path(f"{word}.py")
        study, system = (
            word.replace("_", "-"),
            "".join(part.capitalize() for part in word.split("_")),
        )
        text = (Path(__file__).parent / "template.py").read_text(encoding="utf-8")
        taken = set(symtable(text, path.name, "exec").get_identifiers()) - {
            "curie_weiss",
            "CurieWeiss",
        }
        if path.exists():
            raise ValueError(f"{path} is there already; give another name")
        if {word, system} & {*taken, *dir(builtins), *keyword.kwlist} or find_spec(
            word
        ) is not None:
            raise ValueError(
                f"{name}: there is a module {word!r}, or the name is used in the file itself; give "
                "another name"
            )
        for old, new in (("curie_weiss", word), ("curie-weiss", study), ("CurieWeiss", system)):
            text = text.replace(old, new)
        try:
            with whole_file(path) as aside:
                aside.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ValueError(f"cannot write {path}: {error.strerror or error}") from None
        print(
            f"{path}: the example of a magnet, which you change into your system. Run it: "
            f"orderparam run {path}:{study}"
        )
