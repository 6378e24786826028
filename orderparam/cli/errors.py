"""Turns mistakes of the user and faults of the machine into one line on standard error."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import typer
from typer.core import TyperGroup

from orderparam.cli.terminal import is_read, leave_unread, one_line, plain, screen
from orderparam.core.errors import SweepError, message_of
from orderparam.running.signals import sudden_ends_are_errors


class Commands(TyperGroup):
    """Typer's commands, with wrong names, options and values reported in one line too."""

    def main(self, *args: Any, **options: Any) -> Any:
        try:
            status = super().main(*args, **{**options, "standalone_mode": False})
            sys.stdout.flush()
        except OSError as error:
            unread = isinstance(error, BrokenPipeError) and not is_read(sys.stdout)
            leave_unread(sys.stdout)
            if unread:  # the reader of the output has closed it
                sys.exit(0)
            _report(f"cannot print: {error.strerror or error}")
            status = 2
        except SystemExit:  # how Click and Rich end where their help is left unread
            status = 0
        except typer.Abort:
            status = 130
        except Exception as error:
            # a usage error, of Click or of the copy of it that Typer brings
            if not hasattr(error, "format_message"):
                raise
            # empty where no command is given: the help is printed
            if message := error.format_message():
                context = getattr(error, "ctx", None)
                if context and "Did you mean" not in message:
                    message = f"{message.rstrip('.')}; {context.command_path} --help shows how"
                _report(message)
            status = 2
        sys.exit(status if isinstance(status, int) else 0)


def _report(text: str) -> None:
    with suppress(OSError):  # the exit status tells it, too
        screen(stderr=True, soft_wrap=True).print(
            f"[red]error:[/] {plain(one_line(text))}", highlight=False
        )


@contextmanager
def clear_errors() -> Iterator[None]:
    """Mistakes of the user and of the machine as one line; exit status 2. Code of theirs that ends
    the program is one, too."""
    try:
        with sudden_ends_are_errors():
            yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if isinstance(error, BrokenPipeError) and not is_read(sys.stdout):
            leave_unread(sys.stdout)  # the reader of the output has closed it
            raise typer.Exit(0) from None
        words = message_of(error)
        if isinstance(error, MemoryError):
            text = f"not enough memory: {words or 'make it smaller'}"
        elif isinstance(error, OSError) and error.filename:
            text = f"{error.strerror}: {error.filename}"
        elif isinstance(error, FileNotFoundError) and not _is_somewhere():
            text = "the current folder no longer exists: start the command in another folder"
        elif isinstance(error, ValueError | OSError | SweepError):
            text = words
        elif "RESOURCE_EXHAUSTED" in words:  # JAX's own error when memory is refused
            text = f"not enough memory: {words}"
        elif not _jax_has_devices():
            text = f"JAX finds no such device: JAX_PLATFORMS is {os.environ['JAX_PLATFORMS']!r}"
        elif not isinstance(error, Exception):
            text = (
                f"the code that was run ended with {type(error).__name__} "
                f"({words or 'no message'}) before it was done"
            )
        else:
            raise
        _report(text)
        raise typer.Exit(2) from None


def _jax_has_devices() -> bool:
    """False where `$JAX_PLATFORMS` names what this machine lacks, of which JAX says anything."""
    if "JAX_PLATFORMS" not in os.environ or "jax" not in sys.modules:
        return True
    try:
        sys.modules["jax"].devices()
    except Exception:
        return False
    return True


def _is_somewhere() -> bool:
    """True if the current folder, to which names of files are relative, exists."""
    try:
        os.getcwd()
    except OSError:
        return False
    return True


@contextmanager
def warnings_in_one_line() -> Iterator[list[str]]:
    """Warnings without the source line that raised them; those so far."""
    import warnings

    shown: list[str] = []

    def show(message: Any, *_: Any, **__: Any) -> None:
        shown.append(one_line(str(message)))
        print(f"warning: {shown[-1]}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield shown
