"""The command line: one module for each command, with what it takes and what it prints.

Nothing heavy is imported before a command needs it. What a person can get wrong ends in one line on standard error and exit
status 2, never in a traceback; SIGINT and SIGTERM end it with one line and exit status 130 and 143.
"""

from orderparam.core.signals import end_on_signals


def main() -> None:
    end_on_signals()
    from orderparam.cli.commands import app  # what is imported from here on may be interrupted

    app()
