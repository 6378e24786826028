"""A Dask scheduler and its workers as processes of their own, as on a cluster."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Cluster:
    folder: Path
    port: int = 0
    processes: list[subprocess.Popen] = field(default_factory=list)

    def start_scheduler(self) -> subprocess.Popen:
        file = self.folder / "scheduler.json"
        file.unlink(missing_ok=True)
        place = (
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--no-dashboard",
            "--scheduler-file",
            str(file),
        )
        scheduler = self._start("scheduler", *place)
        deadline = time.time() + 60
        while not file.exists() and time.time() < deadline:
            time.sleep(0.05)
        self.port = int(json.loads(file.read_text())["address"].rsplit(":", 1)[1])
        return scheduler

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def start_worker(self) -> subprocess.Popen:
        return self._start(
            "worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard"
        )

    def _start(self, what: str, *arguments: str) -> subprocess.Popen:
        with open(self.folder / "log", "a") as log:
            command = [sys.executable, "-m", f"distributed.cli.dask_{what}", *arguments]
            self.processes.append(
                subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
            )
        return self.processes[-1]


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    started = Cluster(folder)
    try:
        yield started
    finally:
        for process in started.processes:
            process.kill()
            process.wait()
