"""How the command line ends on a signal from a person (SIGINT), the system (SIGTERM) or a closing
terminal (SIGHUP): one line, and exit status 130, 143 or 129."""

import atexit
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from os import _exit  # before `sudden_ends_are_errors` replaces it
from types import FrameType

_WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
if hasattr(signal, "SIGHUP"):  # not on Windows
    _WORDS[signal.SIGHUP] = "the terminal is gone"
_KEPT = "finished points are kept: the same command goes on where it stopped"
_unfinished: list[Callable[[], None]] = []


@cache
def end_on_signals(stores: bool = True) -> None:
    """Makes SIGINT, SIGTERM and SIGHUP end this process at once, whatever it is doing. To be called
    once in a process, in its main thread. `stores` tells whether finished points are in a store.

    No exception is raised: it would wait for compiled code to return, and libraries, callbacks and
    destructors swallow exceptions. None is needed: every file of a store is complete at every
    moment, the system releases the lock, and worker processes end with this one. A second thread
    receives signals while the main thread is in compiled code; the main thread's handler takes over
    when that thread has ended, as the interpreter shuts down. What `cleaned_up` names is removed.
    """
    first = threading.Lock()
    ending: list[int] = []

    def end(number: int) -> None:
        if number in _WORDS and first.acquire(blocking=False):
            ending.append(threading.get_ident())
            clean = "\r\x1b[K\x1b[?25h" if os.isatty(2) else ""  # a progress bar hides the cursor
            line = f"{_WORDS[signal.Signals(number)]}; {_KEPT if stores else 'nothing is kept'}"
            try:
                os.write(2, f"{clean}{line}\n".encode())
                for remove in _unfinished[::-1]:
                    with suppress(Exception):
                        remove()
            finally:
                _exit(128 + number)

    def handle(number: int, frame: FrameType | None) -> None:
        end(number)
        if ending != [threading.get_ident()]:  # the other thread ends this process
            threading.Event().wait()  # and this one must not go on with what is removed

    def listen() -> None:
        while True:
            for number in os.read(receiving, 16):
                end(number)

    def ignore() -> None:
        for number in _WORDS:
            signal.signal(number, signal.SIG_IGN)

    # registered first, so called last: all is done, and the interpreter would return to its
    # default, a death without a message
    atexit.register(ignore)
    receiving, sending = os.pipe()
    os.set_blocking(sending, False)
    signal.set_wakeup_fd(sending, warn_on_full_buffer=False)
    threading.Thread(target=listen, name="signals", daemon=True).start()
    for number in _WORDS:
        # `nohup` and background jobs go on ignoring it
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handle)


@contextmanager
def cleaned_up(remove: Callable[[], None]) -> Iterator[None]:
    """A context after which `remove` is called, also where a signal ends the process inside it."""
    _unfinished.append(remove)
    try:
        yield
    finally:
        _unfinished.remove(remove)
        remove()


@contextmanager
def sudden_ends_are_errors() -> Iterator[None]:
    """A context inside which `os._exit`, called in this thread of this process, raises
    `SystemExit`, which can be reported. Otherwise an experiment that calls it would end a command
    without a message and with exit status 0.
    """
    process, thread = os.getpid(), threading.get_ident()

    def end(status: int) -> None:
        if (os.getpid(), threading.get_ident()) == (process, thread):
            raise SystemExit(f"os._exit({status})")
        _exit(status)  # the call of a forked process, or of a watchdog

    before, os._exit = os._exit, end  # type: ignore[assignment]
    try:
        yield
    finally:
        os._exit = before
