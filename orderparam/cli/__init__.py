"""The command line: one module for each command, with its options and its output.

Nothing heavy is imported before a command needs it. A mistake of the user ends in one line on
standard error and exit status 2, never in a traceback; SIGINT, SIGTERM and SIGHUP end a command
with one line and exit status 130, 143 and 129. At a prompt and in a notebook Python keeps its own
handling of signals, and processes started for the command go on.
"""

import sys

from orderparam.cli.garbage import collect_late, leave_to_the_end
from orderparam.cli.terminal import mend_streams
from orderparam.core.compilation_cache import keep_for_commands
from orderparam.running.signals import end_on_signals

_STORING = (["run"], ["solve"], ["explore"])  # commands whose finished points are stored


def main() -> None:
    """Runs the command in `sys.argv` and ends with `SystemExit`. It may be called again."""
    ours = not hasattr(sys, "ps1")  # not at a prompt: the process belongs to this command
    if ours:
        collect_late()
        mend_streams()
        keep_for_commands()
        end_on_signals(stores=sys.argv[1:2] in _STORING)
    from orderparam.cli.commands import app  # imports from here on may be interrupted

    try:
        app()
    finally:
        if ours:
            _end_zarr()
            leave_to_the_end()


def _end_zarr() -> None:
    """Ends the thread in which Zarr reads and writes; Zarr starts another one when it needs one. At
    exit Zarr itself waits 0.2 s for the thread, and on a busy machine then closes the event loop
    while the thread still runs, which prints a traceback."""
    zarr = sys.modules.get("zarr.core.sync")
    if zarr is not None and zarr.loop[0] is not None and zarr.iothread[0] is not None:
        zarr.loop[0].call_soon_threadsafe(zarr.loop[0].stop)
        zarr.iothread[0].join(10)
        zarr.cleanup_resources()
