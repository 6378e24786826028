"""Executors, which run the tasks of a sweep: in this process, in local worker processes, or on a
Dask cluster.

An executor is a function `(program, tasks) -> iterator of (task, outcome)`, in any order. A task
whose worker dies is tried again on another; a task that kills `ATTEMPTS` workers is reported as
failed and the sweep goes on.
"""

import asyncio
import functools
import logging
import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import Any

from orderparam.core.registry import loaded_files
from orderparam.running.program import Outcome, Program, Task, pickled
from orderparam.running.workers import ATTEMPTS, run_in_workers

Executor = Callable[[Program, Iterable[Task]], Iterator[tuple[Task, Outcome]]]

# number of tasks handed to a Dask scheduler: enough that an adaptive cluster grows to its largest
# size, and no more
WINDOW = 1024


def in_process(program: Program, tasks: Iterable[Task]) -> Iterator[tuple[Task, Outcome]]:
    """Runs one task after the other in this process."""
    for task in tasks:
        yield task, program(task)


def local_processes(workers: int) -> Executor:
    """An executor of `workers` processes on this machine. Raises `ValueError` for fewer than one or
    more than 1024."""
    if not 1 <= workers <= 1024:
        raise ValueError(f"workers = {workers}: must be at least 1 and at most 1024")
    return functools.partial(run_in_workers, workers)


def dask_cluster(client: Any) -> Executor:
    """A `dask.distributed.Client`, or the address of a scheduler such as `"tcp://10.0.0.1:8786"`.

    Workers need orderparam installed; results travel back to this process, which alone writes the
    store. Raises `ValueError` when Dask is not installed or no scheduler answers, and
    `ConnectionError` when the scheduler is lost during a sweep.
    """
    try:
        from distributed import Client
        from distributed.comm import connect
        from distributed.security import Security
    except ImportError:
        raise ValueError(
            "running on Dask needs the extra: pip install '.[cluster]' in a copy of the repository"
        ) from None
    if not isinstance(client, str):
        return functools.partial(_on_dask, client)
    address = client

    async def reach() -> None:
        await (
            await connect(address, timeout=8, **Security().get_connection_args("client"))
        ).close()

    for logger in ("distributed", "distributed.client"):
        # the loss of a scheduler is reported once, below
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    # A wrong address is refused here at once, because a client would wait 20 s to be closed. In a
    # thread, because a notebook has an event loop in this one.
    with ThreadPoolExecutor(1) as thread:
        try:
            thread.submit(asyncio.run, asyncio.wait_for(reach(), 10)).result()
        except Exception as error:  # the exception depends on the scheme of the address
            why = str(error) or "the server there does not answer"
            raise ValueError(f"no Dask scheduler answers at {address!r}: {why}") from None

    def run(program: Program, tasks: Iterable[Task]) -> Iterator[tuple[Task, Outcome]]:
        cluster = Client(address, timeout="10s", set_as_default=False)
        try:
            yield from _on_dask(cluster, program, tasks)
        finally:
            cluster.close(timeout=2)

    return run


def _on_dask(
    client: Any, program: Program, tasks: Iterable[Task]
) -> Iterator[tuple[Task, Outcome]]:
    from distributed import as_completed
    from distributed.diagnostics.plugin import UploadFile

    sent = pickled(program)
    waiting = iter(tasks)
    running: dict[Any, Task] = {}

    def submit(task: Task) -> Any:
        future = client.submit(_call, shared, task, pure=False, retries=ATTEMPTS - 1)
        running[future] = task
        return future

    with _connected(client):
        if not client.nthreads():
            warnings.warn(
                f"no worker has connected to {client.scheduler.address} yet: waiting", stacklevel=2
            )
        for path in loaded_files:
            client.register_plugin(UploadFile(str(path)))
        # A task's result, not scattered data: the scheduler makes it again when every worker that
        # held it is gone. It is pickled here, so that only workers, which report a failed import,
        # need to import what is in it.
        shared = client.submit(pickle.loads, sent, pure=False, retries=ATTEMPTS - 1)
        # The loop of this client is given: otherwise Dask asks the default client, which may not
        # exist.
        completed = as_completed(
            [submit(task) for task in islice(waiting, WINDOW)], loop=client.loop
        )
        try:
            for future in completed:
                # this process cancels nothing that still runs: the scheduler did, or is lost
                if future.cancelled():
                    raise ConnectionError
                error = future.exception()
                task = running.pop(future)
                if error is None:
                    yield task, future.result()
                else:
                    yield (
                        task,
                        Outcome.failure(
                            task, f"{program.where(task)}: {type(error).__name__}: {error}"
                        ),
                    )
                for following in islice(waiting, 1):
                    completed.add(submit(following))
        finally:
            if client.status == "running":
                client.cancel(list(running), force=True)


@contextmanager
def _connected(client: Any) -> Iterator[None]:
    """Turns every failure due to a lost scheduler into one clear error."""
    from distributed.comm import CommClosedError

    address = client.scheduler.address
    try:
        yield
    except Exception as error:
        # the client's status follows the loss later than the request that was under way
        lost = isinstance(error, ConnectionError | CommClosedError | TimeoutError)
        if client.status == "running" and not lost:
            raise
        raise ConnectionError(
            f"the Dask scheduler at {address} is lost; finished points are kept: start it again, "
            "and the same command goes on where it stopped"
        ) from None


def _call(program: Program, task: Task) -> Outcome:
    return program(task)


def resolve(executor: Any) -> Executor:
    """The executor that a person means: None for this process, an int for that many local
    processes, a Dask client or address, or an executor itself."""
    if executor is None:
        return in_process
    if isinstance(executor, int) and not isinstance(executor, bool):
        return local_processes(executor)
    if isinstance(executor, str) or type(executor).__module__.startswith("distributed"):
        return dask_cluster(executor)
    if callable(executor):
        return executor
    raise ValueError(
        f"executor = {executor!r}: give None, a number of processes, a Dask client, or a "
        "scheduler's address"
    )
