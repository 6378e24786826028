"""The terminal: its width, the form of printed values, and the treatment of missing or closed
streams."""

import os
import select
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


_WORD, _LINE = 200, 2000  # largest number of characters of a message


def mend_streams() -> None:
    """Repairs standard input, output and error. A closed one becomes the null device, because the
    next opened file would otherwise take its place; characters that an encoding lacks are written
    as `?`.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream: Any = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
        elif mode == "w" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def is_read(stream: Any) -> bool:
    """True if a reader may still be connected to this stream."""
    try:
        watch = select.poll()
        watch.register(stream.fileno(), 0)
        return not any(happened & select.POLLERR for _, happened in watch.poll(0))
    except (AttributeError, OSError, ValueError):  # not on this system, or no file
        return True


def leave_unread(stream: Any) -> None:
    """Discards everything that is still written to a stream without a reader."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def screen(stderr: bool = False, **options: Any) -> "Console":
    """A context with a console whose reader may leave (`orderparam solve ... | head`); files are
    still written."""
    from rich.console import Console

    class Screen(Console):
        def on_broken_pipe(self) -> None:
            self.quiet = True
            leave_unread(self.file)

    return Screen(stderr=stderr, emoji=False, **options)  # :100: is part of a range


def console(**options: Any) -> "Console":
    """A console as wide as the terminal, or, in a file or a pipe, so wide that nothing is cut."""
    terminal = screen(**options)
    return terminal if terminal.is_terminal else screen(width=160, **options)


def new_table(*columns: str, right: bool = False, title: str | None = None) -> "Table":
    """An empty table with these columns; columns of numbers are aligned to the right."""
    from rich.table import Table

    empty = Table(header_style="bold", box=None, pad_edge=False, title=title, title_justify="left")
    for column in columns:
        empty.add_column(column, justify="right" if right else "left")
    return empty


def plain(text: str) -> str:
    """The text with all markup escaped."""
    from rich.markup import escape

    return escape(text)


def one_line(text: str) -> str:
    """The text in one line of bounded length; the middle of an endless word is left out."""
    words = (
        word if len(word) <= _WORD else f"{word[: _WORD // 2]}…{word[-_WORD // 4 :]}"
        for word in text.split()
    )
    line = " ".join(words)
    return line if len(line) <= _LINE else f"{line[: _LINE // 2]} … {line[-_LINE // 4 :]}"


def duration(seconds: float) -> str:
    """A duration in words: seconds, minutes or hours."""
    return (
        f"{seconds:.0f} s"
        if seconds < 100
        else f"{seconds / 60:.0f} min"
        if seconds < 6000
        else f"{seconds / 3600:.1f} h"
    )


def short(value: Any) -> str:
    """The text of a value or of a list of values, with numbers in few digits."""
    if isinstance(value, list | tuple):
        return ",".join(short(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
