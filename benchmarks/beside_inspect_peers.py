"""The observables beside packages that measure the same, on cases of which the truth is known, in
one run and one table.

    pip install torch weightwatcher torch-cka powerlaw pyhessian curvlinops-for-pytorch devinterp
    pip install git+https://github.com/ahwillia/netrep      # in no package index
    python benchmarks/beside_inspect_peers.py [WORD ...] [--repeats 100]
        # numbers with a word in them

"off" is the mean deviation from the truth, with its standard error, in units of the truth where it
is not 0. A "false alarm" is a significant similarity of independent layers (p < 0.05), an outlier
of a Gaussian matrix, and an exponent between 2 and 6 without a warning where there is no power law.
Seconds are those of one processor, of one call after the first. A package that is not installed is
named.
"""

import argparse
import os

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[threads] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

from inspect_peers import coefficients, curvatures, similarities, spectra  # noqa: E402
from inspect_peers.contest import HEADERS, rows  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--repeats", type=int, default=100)
    asked = parser.parse_args()
    table = Table(
        title=f"{asked.repeats} cases each; 20 of the population with a power law, 5 of the "
        "coefficient"
    )
    for header in HEADERS:
        table.add_column(header, overflow="fold")
    for part in (similarities, spectra, curvatures, coefficients):
        for contest in part.contests():
            if asked.words and not any(word in contest.number for word in asked.words):
                continue
            for row in rows(contest, asked.repeats):
                table.add_row(*row)
                print(" | ".join(row), flush=True)
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
