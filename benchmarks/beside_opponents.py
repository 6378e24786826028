"""The package beside opponents that an expert would write for one case alone: processor time of
both, in one run, on one core.

    python benchmarks/beside_opponents.py [WORD ...]       (only work that a word occurs in)

Ratio is the opponent's time over ours. The difference is the largest one of both answers, in units
of the largest answer. Opponents in numba are left out where it is not installed
(`pip install orderparam[bench]`).
"""

import os
import sys

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[threads] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

from opponents.duel import difference, fought  # noqa: E402
from opponents.duels import duels  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import orderparam as op  # noqa: E402


def main() -> None:
    table = Table(title=f"orderparam {op.__version__}: processor time of one core")
    for column in ("work", "opponent", "ours, ms", "theirs, ms", "ratio", "difference"):
        table.add_column(column, justify="left" if column in ("work", "opponent") else "right")
    wrong = []
    for duel in duels(sys.argv[1:]):
        apart = None if duel.tolerance is None else difference(duel)
        if apart is not None and not apart <= duel.tolerance:
            wrong.append(f"{duel.work}: the answers differ by {apart:.1e}")
        ours, theirs = fought(duel)
        table.add_row(
            duel.work,
            duel.opponent,
            f"{1e3 * ours:.3g}",
            f"{1e3 * theirs:.3g}",
            f"{theirs / ours:.2f}",
            "random" if apart is None else f"{apart:.0e}",
        )
    Console(width=130).print(table)
    if wrong:
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    main()
