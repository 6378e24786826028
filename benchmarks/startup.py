"""What a command costs before its work: imports, and compilation with and without what an earlier
process kept on disk.

    python benchmarks/startup.py
    python benchmarks/startup.py 3      (the median of three processes, not five)
"""

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
import orderparam as op
import jax, jax.numpy as jnp
start, key = jnp.zeros((4, 3)), jax.random.key(0)
op.sampling.sample(lambda u: -0.5 * jnp.sum(u**2), start, key, method="hmc", samples=100, warmup=50)
"""
COMMAND = ["-m", "orderparam"]
TOPIC = "import orderparam.systems.extensive_width as topic; topic.bayes_optimal"
CASES = {
    "import jax": ["-c", "import jax"],
    "import orderparam": ["-c", "import orderparam"],
    "import a topic": ["-c", TOPIC],
    "orderparam --help": [*COMMAND, "--help"],
    "orderparam list": [*COMMAND, "list"],
    "orderparam list NAME": [*COMMAND, "list", "bayes_optimal"],
    "a refusal of solve": [*COMMAND, "solve", "mean_field", "temprature=0.5"],
    "solve one point, nothing kept": [*COMMAND, "solve", "mean_field", "temperature=0.5"],
    "solve one point, second process": [*COMMAND, "solve", "mean_field", "temperature=0.5"],
    "the second run of a finished study": [*COMMAND, "run", "mean-field-magnet"],
    "a sampler, nothing kept": ["-c", SAMPLED],
    "a sampler, second process": ["-c", SAMPLED],
}


def processor_seconds(arguments: list[str], folder: str, kept: str, refused: bool = False) -> float:
    """Processor seconds of a process in a folder, which keeps its programs in another one."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"ORDERPARAM_CACHE": kept},
        cwd=folder,  # where a study leaves its result
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode != (2 if refused else 0):
        raise SystemExit(f"{arguments}: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else REPEATS
    table = Table(title=f"processor seconds of a new process (median of {repeats})")
    table.add_column("case")
    table.add_column("seconds", justify="right")
    with tempfile.TemporaryDirectory() as folder:
        for name, arguments in CASES.items():
            kept = "off" if "nothing kept" in name else f"{folder}/programs"
            refused = "refusal" in name
            if kept != "off":  # the first leaves programs, the list of theories, and its result
                processor_seconds(arguments, folder, kept, refused)
            seconds = [processor_seconds(arguments, folder, kept, refused) for _ in range(repeats)]
            table.add_row(name, f"{statistics.median(seconds):.2f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
