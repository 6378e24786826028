"""How the command line ends when a person (SIGINT), the system (SIGTERM) or a terminal that goes
(SIGHUP) says so: one line, exit status 130, 143 or 129."""

import atexit
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from os import _exit  # whatever is put in its place, see `sudden_ends_are_errors`
from types import FrameType

_WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
if hasattr(signal, "SIGHUP"):  # not on Windows
    _WORDS[signal.SIGHUP] = "the terminal is gone"


@cache
def end_on_signals() -> None:
    """From now on SIGINT, SIGTERM and SIGHUP end this process at once, whatever it is doing. Once for a
    process, in its main thread.

    Nothing is unwound: an exception would wait for compiled code to return, and libraries,
    callbacks and destructors swallow it. Nothing needs to be: every file of a store is whole at
    every moment, the system takes back its lock, and worker processes end with this one. A thread
    is told of a signal while the main thread is in compiled code; the main thread's own handler
    serves when that thread is no more, as the interpreter ends.
    """
    first = threading.Lock()

    def end(number: int) -> None:
        if number in _WORDS and first.acquire(blocking=False):
            clean = "\r\x1b[K\x1b[?25h" if os.isatty(2) else ""  # a progress bar hides the cursor
            line = f"{_WORDS[signal.Signals(number)]}; finished points are kept: the same command goes on where it stopped"
            try:
                os.write(2, f"{clean}{line}\n".encode())
            finally:
                _exit(128 + number)

    def handle(number: int, frame: FrameType | None) -> None:
        end(number)

    def listen() -> None:
        while True:
            for number in os.read(receiving, 16):
                end(number)

    def ignore() -> None:
        for number in _WORDS:
            signal.signal(number, signal.SIG_IGN)

    # registered first, called last: all is done, and the interpreter would fall back to dying in
    # silence
    atexit.register(ignore)
    receiving, sending = os.pipe()
    os.set_blocking(sending, False)
    signal.set_wakeup_fd(sending, warn_on_full_buffer=False)
    threading.Thread(target=listen, name="signals", daemon=True).start()
    for number in _WORDS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` and background jobs stay deaf
            signal.signal(number, handle)


@contextmanager
def sudden_ends_are_errors() -> Iterator[None]:
    """Inside, `os._exit` in this thread of this process raises `SystemExit`, which can be told;
    else the code of an experiment that calls it would end a command in silence, with exit status 0.
    """
    process, thread = os.getpid(), threading.get_ident()

    def end(status: int) -> None:
        if (os.getpid(), threading.get_ident()) == (process, thread):
            raise SystemExit(f"os._exit({status})")
        _exit(status)  # of a forked process, or of a watchdog

    before, os._exit = os._exit, end  # type: ignore[assignment]
    try:
        yield
    finally:
        os._exit = before
