"""`orderparam new-system`: a complete small system to start from, in a file of one's own."""

from pathlib import Path
from typing import Annotated

import typer

from orderparam.cli.errors import clear_errors


def new_system(
    name: Annotated[str, typer.Argument(help="Name of the system, such as spin_glass: the file will be NAME.py.")],
) -> None:
    """Write NAME.py: a system with its theory, its experiment and a study that runs, to be changed into your own."""
    with clear_errors():
        word = name.removesuffix(".py")
        if not word.isidentifier() or not word.islower():
            raise ValueError(f"{name}: give a name of lower-case letters, digits and underscores, such as spin_glass")
        path = Path(f"{word}.py")
        study, system = word.replace("_", "-"), "".join(part.capitalize() for part in word.split("_"))
        text = (Path(__file__).parent / "template.py").read_text(encoding="utf-8")
        for old, new in (("curie_weiss", word), ("curie-weiss", study), ("CurieWeiss", system)):
            text = text.replace(old, new)
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            raise ValueError(f"{path} is there already; give another name") from None
        print(f"{path}: a magnet, to be changed into your system. Run it: orderparam run {path}:{study}")
