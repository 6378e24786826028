"""Where the tasks of a sweep run: in this process, in local worker processes, or on a Dask cluster.

An executor is a function `(program, tasks) -> iterator of (task, outcome)`, in any order. A task whose worker dies is tried
again on another; a task that kills `ATTEMPTS` workers is reported as failed and the sweep goes on.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from orderparam.core.program import Experiment, Outcome, Task, Theory

Program = Theory | Experiment
Executor = Callable[[Program, Iterable[Task]], Iterator[tuple[Task, Outcome]]]

ATTEMPTS = 3


def in_process(program: Program, tasks: Iterable[Task]) -> Iterator[tuple[Task, Outcome]]:
    """One task after the other, here."""
    for task in tasks:
        yield task, program(task)


_program: Program | None = None  # the program of a worker process, installed once


def _install(program: Program) -> None:
    global _program
    _program = program


def _run(task: Task) -> Outcome:
    assert _program is not None
    return _program(task)


def local_processes(workers: int) -> Executor:
    """`workers` processes on this machine (loky: they start clean, and a killed one breaks nothing).

    Raises `ValueError` for fewer than one worker.
    """
    if workers < 1:
        raise ValueError(f"workers = {workers}: must be at least 1")

    def run(program: Program, tasks: Iterable[Task]) -> Iterator[tuple[Task, Outcome]]:
        from concurrent.futures import FIRST_COMPLETED, wait
        from concurrent.futures.process import BrokenProcessPool

        from loky import ProcessPoolExecutor

        waiting, attempts = iter(tasks), dict[Task, int]()
        again: list[Task] = []
        while True:
            pool = ProcessPoolExecutor(workers, initializer=_install, initargs=(program,))
            running: dict[Any, Task] = {}
            try:
                while True:
                    # No more than the workers hold: when the pool breaks, only these are in doubt.
                    for task in itertools.islice(_drain(again, waiting), workers - len(running)):
                        running[pool.submit(_run, task)] = task
                    if not running:
                        return
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        outcome = future.result()
                        yield running.pop(future), outcome
            except BrokenProcessPool:
                for task in running.values():
                    attempts[task] = attempts.get(task, 0) + 1
                    if attempts[task] < ATTEMPTS:
                        again.append(task)
                    else:
                        yield task, Outcome.failure(
                            task, f"{program.where(task)}: its worker died {ATTEMPTS} times (out of memory?)"
                        )
            finally:
                pool.shutdown(wait=False, kill_workers=True)

    return run


def _drain(again: list[Task], waiting: Iterator[Task]) -> Iterator[Task]:
    while again:
        yield again.pop()
    yield from waiting


def dask_cluster(client: Any) -> Executor:
    """A `dask.distributed.Client`, or the address of a scheduler such as `"tcp://10.0.0.1:8786"`.

    Workers need orderparam installed; results travel back to this process, which alone writes the store. Raises `ValueError`
    when Dask is not installed or no scheduler answers.
    """
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise ValueError("running on Dask needs the extra: pip install 'orderparam[cluster]'") from None
    address = client if isinstance(client, str) else None

    def connect() -> Any:
        try:
            return Client(address, timeout="10s", set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise ValueError(f"no Dask scheduler answers at {address!r}: {error}") from None

    if address is not None:
        connect().close()  # an address where nothing answers is refused at once

    def run(program: Program, tasks: Iterable[Task]) -> Iterator[tuple[Task, Outcome]]:
        cluster = client if address is None else connect()
        # A task's result, not scattered data: the scheduler makes it again when every worker that held it is gone.
        shared = cluster.submit(_same, program, pure=False, retries=ATTEMPTS - 1)
        waiting = iter(tasks)
        running: dict[Any, Task] = {}

        def submit(task: Task) -> Any:
            future = cluster.submit(_call, shared, task, pure=False, retries=ATTEMPTS - 1)
            running[future] = task
            return future

        # Twice as many as there are threads: no worker waits for this process, and no task graph piles up.
        window = 2 * max(1, sum(cluster.nthreads().values()))
        completed = as_completed([submit(task) for task in itertools.islice(waiting, window)])
        try:
            for future in completed:
                task = running.pop(future)
                error = future.exception()
                if error is None:
                    yield task, future.result()
                else:
                    yield task, Outcome.failure(task, f"{program.where(task)}: {type(error).__name__}: {error}")
                for following in itertools.islice(waiting, 1):
                    completed.add(submit(following))
        finally:
            cluster.cancel(list(running), force=True)
            if address is not None:
                cluster.close()

    return run


def _same(program: Program) -> Program:
    return program


def _call(program: Program, task: Task) -> Outcome:
    return program(task)


def resolve(executor: Any) -> Executor:
    """None: in process; an int: that many local processes; a Dask client or address; or an executor itself."""
    if executor is None:
        return in_process
    if isinstance(executor, int) and not isinstance(executor, bool):
        return local_processes(executor)
    if isinstance(executor, str) or type(executor).__module__.startswith("distributed"):
        return dask_cluster(executor)
    if callable(executor):
        return executor
    raise ValueError(f"executor = {executor!r}: give None, a number of processes, a Dask client, or a scheduler's address")
