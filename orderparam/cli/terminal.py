"""The terminal: its width, and how values stand in it."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


_WORD, _LINE = 200, 2000  # characters of a message


def console() -> "Console":
    """As wide as the terminal; in a file or a pipe so wide that nothing is cut."""
    from rich.console import Console

    terminal = Console()
    return terminal if terminal.is_terminal else Console(width=160)


def new_table(*columns: str, right: bool = False, title: str | None = None) -> "Table":
    """An empty table with these columns, to the right where they hold numbers."""
    from rich.table import Table

    empty = Table(header_style="bold", box=None, pad_edge=False, title=title, title_justify="left")
    for column in columns:
        empty.add_column(column, justify="right" if right else "left")
    return empty


def plain(text: str) -> str:
    """The text with nothing in it read as markup."""
    from rich.markup import escape

    return escape(text)


def one_line(text: str) -> str:
    """The text in one line of bounded length; of a word that has no end, its beginning and its
    end."""
    words = (
        word if len(word) <= _WORD else f"{word[: _WORD // 2]}…{word[-_WORD // 4 :]}"
        for word in text.split()
    )
    line = " ".join(words)
    return line if len(line) <= _LINE else f"{line[: _LINE // 2]} … {line[-_LINE // 4 :]}"


def duration(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 100
        else f"{seconds / 60:.0f} min"
        if seconds < 6000
        else f"{seconds / 3600:.1f} h"
    )


def short(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(short(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
