"""One BLAS thread or all of them: batches of small factorisations, and one large matrix. Run it
idle, and beside other work."""

import contextlib
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
from rich.console import Console
from rich.table import Table

import orderparam  # noqa: F401, float64
from orderparam.running.threads import one_blas_thread

REPEATS = 5
STEPS = 100


@jax.jit
@jax.vmap
def batched(left: jax.Array, right: jax.Array) -> jax.Array:
    def step(_: int, total: jax.Array) -> jax.Array:
        roots = [
            jnp.linalg.cholesky(matrix + (40 + total) * jnp.eye(40)) for matrix in (left, right)
        ]
        return sum(root[-1, -1] for root in roots) / 100

    return jax.lax.fori_loop(0, STEPS, step, jnp.zeros(()))


@jax.jit
def single(matrix: jax.Array) -> jax.Array:
    return jnp.linalg.cholesky(matrix)


def measured(call: Callable[[], object]) -> tuple[float, float]:
    """The least wall and processor seconds of a call."""
    seconds = []
    for _ in range(REPEATS):
        wall, processor = time.perf_counter(), time.process_time()
        jax.block_until_ready(call())
        seconds.append((time.perf_counter() - wall, time.process_time() - processor))
    return min(wall for wall, _ in seconds), min(processor for _, processor in seconds)


def main() -> None:
    draws = jax.random.normal(jax.random.key(0), (2, 21, 40, 40))
    left, right = draws @ draws.mT
    large = jnp.eye(3000) + 1 / (1 + jnp.abs(jnp.arange(3000)[:, None] - jnp.arange(3000)))
    cases = {
        f"21 x {STEPS} x 2 Cholesky factors, 40 x 40": lambda: batched(left, right),
        "one, 3000 x 3000": lambda: single(large),
    }
    table = Table(title=f"seconds, wall / processor (least of {REPEATS})")
    for column in ("case", "all BLAS threads", "one"):
        table.add_column(column, justify="left" if column == "case" else "right")
    for name, call in cases.items():
        jax.block_until_ready(call())
        row = []
        for choice in (contextlib.nullcontext, one_blas_thread):
            with choice():
                row.append("{:.3f} / {:.3f}".format(*measured(call)))
        table.add_row(name, *row)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
