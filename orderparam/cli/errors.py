"""What a person or the machine does wrong, as one line on standard error."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from orderparam.cli.terminal import plain


@contextmanager
def clear_errors() -> Iterator[None]:
    """Mistakes of the user and of the machine as one line; exit status 2."""
    from rich.console import Console

    try:
        yield
    except Exception as error:
        from orderparam.core.sweep import SweepError

        if not isinstance(error, ValueError | OSError | SweepError):
            raise
        text = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.filename else str(error)
        Console(stderr=True, soft_wrap=True).print(f"[red]error:[/] {plain(text)}", highlight=False)
        raise typer.Exit(2) from None


@contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Warnings without the source line that raised them."""
    import warnings

    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=sys.stderr)
        yield
