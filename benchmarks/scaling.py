"""A sweep over Dask workers, 1, 2 and 4 processes of one thread: the same points on more workers
(strong scaling), as many points a worker on more workers (weak scaling), and what is sent.

    python benchmarks/scaling.py [SECONDS OF WORK PER WORKER]

Efficiency compares with one worker: 1 is perfect, and more workers than free cores cannot reach it.
The processor time of workers, and that of this process, which holds the scheduler, sends the points
and receives the results, depend less on what else runs. Bytes are those that any of the processes
wrote to a connection during the sweep. The last line says how many workers the one process that
schedules can keep busy.
"""

import os
import sys
import time

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[threads] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

from typing import NamedTuple  # noqa: E402

from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import orderparam as op  # noqa: E402
from orderparam.systems.online_sgd import CommitteeSGD, trained_network  # noqa: E402

WORKERS = (1, 2, 4)
SYSTEM = CommitteeSGD(input_dim=1000, width=8, teacher_width=4, horizon=4.0, records=20)


def count_bytes() -> None:
    """Makes every connection of this process count what it writes."""
    from distributed.comm.tcp import TCP

    write = TCP.write

    async def counted(self, *arguments, **options):  # type: ignore[no-untyped-def]
        many = await write(self, *arguments, **options)
        TCP.written = getattr(TCP, "written", 0) + (many or 0)
        return many

    TCP.write = counted


def written() -> int:
    """Bytes that this process has written."""
    from distributed.comm.tcp import TCP

    return getattr(TCP, "written", 0)


class Swept(NamedTuple):
    """Of one sweep: seconds by the clock, processor seconds of the workers and of this process, and
    bytes that were sent."""

    wall: float
    workers: float
    here: float
    sent: int


def swept(client, points: int) -> Swept:  # type: ignore[no-untyped-def]
    """A sweep of one experiment over this number of seeds."""

    def spent() -> tuple[float, float, float, int]:
        others, more = client.run(time.process_time), client.run(written)
        sent = written() + sum(more.values())
        return time.perf_counter(), sum(others.values()), time.process_time(), sent

    before = spent()
    op.sweep(trained_network, SYSTEM, seeds=points, executor=client, progress=False)
    return Swept(*(after - start for start, after in zip(before, spent())))


def main() -> None:
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        print("Dask is not installed: pip install 'orderparam[cluster]'")
        return
    work = float(sys.argv[1]) if len(sys.argv) > 1 else 3.0
    count_bytes()
    table = Table(title=f"orderparam {op.__version__}: a sweep over Dask workers")
    columns = (
        "scaling",
        "workers",
        "points",
        "s",
        "efficiency",
        "ms of workers a point",
        "ms here a point",
        "kB a point",
    )
    for column in columns:
        table.add_column(column, justify="left" if column == "scaling" else "right")
    single, strong, found = 0, {}, []
    for workers in WORKERS:
        cluster = LocalCluster(
            workers, threads_per_worker=1, processes=True, dashboard_address=None
        )
        with cluster, Client(cluster) as client:
            client.run(count_bytes)
            swept(client, 4 * workers)  # compiles on all
            if not single:
                alone = swept(client, 8).workers / 8
                single = max(8, round(work / alone))
            for name, points in (("strong", single), ("weak", single * workers)):
                if workers == 1 and name == "weak":
                    continue
                found.append((name, workers, points, swept(client, points)))
                print(*found[-1], file=sys.stderr, flush=True)  # the table comes last
                if workers == 1:
                    strong["wall"] = found[-1][-1].wall
    for name, workers, points, one in found:
        perfect = strong["wall"] / workers if name == "strong" else strong["wall"]
        table.add_row(
            name,
            str(workers),
            str(points),
            f"{one.wall:.2f}",
            f"{perfect / one.wall:.2f}",
            f"{1e3 * one.workers / points:.1f}",
            f"{1e3 * one.here / points:.2f}",
            f"{one.sent / points / 1e3:.2f}",
        )
    console = Console(width=120)
    console.print(table)
    last = found[-1][-1]
    console.print(
        f"this process can keep {last.workers / last.here:.0f} workers busy with such points, and "
        f"{found[-1][2] / last.here:.0f} points a second in all"
    )


if __name__ == "__main__":
    main()
