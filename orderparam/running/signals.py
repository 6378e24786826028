"""How the command line ends when a person (SIGINT) or the system (SIGTERM) says so: one line, exit
status 130 or 143.
"""

import atexit
import os
import signal
import threading
from functools import cache
from types import FrameType

_WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


@cache
def end_on_signals() -> None:
    """From now on SIGINT and SIGTERM end this process at once, whatever it is doing. Once for a
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
                os._exit(128 + number)

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
