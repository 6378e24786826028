"""Worker processes on this machine: each is sent a program once, then one task at a time, and
answers with the outcome.

A worker ends with the process that started it, however that ends, because its standard input is
then closed. It runs in a separate session, so that Ctrl-C in a terminal reaches only the sweep.

The pools of `concurrent.futures` and `loky` are not used because the death of one worker (out of
memory, say) ends all tasks that are not finished: if one of eight tasks kills its worker, loky
gives up all unfinished ones. Here only the task of the dead worker is tried again.
"""

import os
import pickle
import queue
import struct
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from itertools import islice
from typing import IO

from orderparam.core.errors import message_of
from orderparam.running.program import Outcome, Program, Task, pickled
from orderparam.running.threads import for_workers

ATTEMPTS = 3


def _send(stream: IO[bytes], message: bytes) -> None:
    stream.write(struct.pack("<Q", len(message)) + message)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes:
    """The next message. Raises `EOFError` when the other process has ended."""
    head = stream.read(8)
    message = stream.read(struct.unpack("<Q", head)[0]) if len(head) == 8 else b""
    if not message:
        raise EOFError
    return message


class Worker:
    """A process that runs the pickled program. Raises `EOFError` or `OSError` if the process has
    ended."""

    def __init__(self, program: bytes):
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; from orderparam.running.workers import "
            "serve; serve()"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env=for_workers(),
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._requests, self._answers = self.process.stdin, self.process.stdout
        self._program: bytes | None = program

    def __call__(self, task: Task) -> Outcome:
        """Runs one task. Raises `ValueError` when the program cannot be loaded there."""
        if self._program is not None:
            _send(self._requests, self._program)
            self._program = None
        _send(self._requests, pickle.dumps(task))
        answer = pickle.loads(_receive(self._answers))
        if isinstance(answer, str):
            raise ValueError(f"worker processes cannot load what is to be run: {answer}")
        return answer

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self._requests, self._answers):
            with suppress(OSError):
                stream.close()


def run_in_workers(
    workers: int, program: Program, tasks: Iterable[Task], *, stop: threading.Event | None = None
) -> Iterator[tuple[Task, Outcome]]:
    """An executor (see `orderparam.running.executor`) with one thread for each worker, which passes
    tasks on. If a worker dies, another is started.

    stop: an event; once it is set, running tasks are killed and no more outcomes follow.
    """
    sent = pickled(program)
    idle: list[Worker] = []
    started: list[Worker] = []
    changing, ended = threading.Lock(), False

    def take() -> Worker:
        with changing:
            if ended:
                raise EOFError
            if not idle:
                idle.append(Worker(sent))
                started.append(idle[-1])
            return idle.pop()

    def compute(task: Task) -> Outcome:
        for _ in range(ATTEMPTS):
            worker = take()
            try:
                outcome = worker(task)
            except (EOFError, OSError):
                worker.end()
                continue
            idle.append(worker)
            return outcome
        return Outcome.failure(
            task, f"{program.where(task)}: its worker died {ATTEMPTS} times (out of memory?)"
        )

    waiting = iter(tasks)
    running: dict[Future[Outcome], Task] = {}
    threads = ThreadPoolExecutor(workers)
    try:
        while True:
            for task in islice(waiting, workers - len(running)):
                running[threads.submit(compute, task)] = task
            if not running or (stop is not None and stop.is_set()):
                return
            for future in wait(
                running, None if stop is None else 0.1, return_when=FIRST_COMPLETED
            ).done:
                yield running.pop(future), future.result()
    finally:
        with changing:
            ended = True
            for worker in started:
                worker.process.kill()
        threads.shutdown(cancel_futures=True)
        for worker in started:
            worker.end()


def serve() -> None:
    """The main loop of a worker process."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the output of an experiment must not mix with the answers
    inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def listen() -> None:
        with suppress(EOFError):
            while True:
                inbox.put(_receive(sys.stdin.buffer))
        os._exit(0)

    def answer(outcome: Outcome | str) -> None:
        try:
            _send(answers, pickle.dumps(outcome))
        except BrokenPipeError:  # noticed before the end of the input is
            os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    try:
        program: Program = pickle.loads(inbox.get())
    except BaseException as error:  # an import may end the process, too
        answer(f"{type(error).__name__}: {message_of(error)}")
        return
    while True:
        answer(program(pickle.loads(inbox.get())))
