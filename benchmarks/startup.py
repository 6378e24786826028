"""What a command costs before its work: imports, and compilation with and without what an earlier
process kept on disk."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile

from rich.console import Console
from rich.table import Table

REPEATS = 5
SAMPLED = """
import jax, jax.numpy as jnp
import orderparam as op
start, key = jnp.zeros((4, 3)), jax.random.key(0)
op.sampling.sample(lambda u: -0.5 * jnp.sum(u**2), start, key, method="hmc", samples=100, warmup=50)
"""
CASES = {
    "import orderparam": ["-c", "import orderparam"],
    "orderparam --help": ["-m", "orderparam.cli", "--help"],
    "orderparam list": ["-m", "orderparam.cli", "list"],
    "a sampler, nothing kept": ["-c", SAMPLED],
    "a sampler, second process": ["-c", SAMPLED],
}


def processor_seconds(arguments: list[str], cache: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"ORDERPARAM_CACHE": cache},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    table = Table(title=f"processor seconds of a new process (median of {REPEATS})")
    table.add_column("case")
    table.add_column("seconds", justify="right")
    with tempfile.TemporaryDirectory() as cache:
        processor_seconds(["-c", SAMPLED], cache)
        for name, arguments in CASES.items():
            kept = "off" if "nothing kept" in name else cache
            seconds = [processor_seconds(arguments, kept) for _ in range(REPEATS)]
            table.add_row(name, f"{statistics.median(seconds):.2f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
