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
        self.port = int(self._written(file)["address"].rsplit(":", 1)[1])
        return scheduler

    @staticmethod
    def _written(file: Path, seconds: float = 60.0) -> dict:
        """What a scheduler writes into `file`, once it is whole: the file is there before its
        text."""
        deadline = time.time() + seconds
        while True:
            try:
                return json.loads(file.read_text())
            except (FileNotFoundError, json.JSONDecodeError):
                if time.time() > deadline:
                    raise
            time.sleep(0.05)

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
