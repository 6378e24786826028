"""One program on one device in one precision: its first call, its time when warm, its answer."""

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from accelerated.programs import Program, Work

LONG, REPEATS = 1.0, 5  # seconds of repeats after which no further one is begun, and their number


@dataclass
class Run:
    """A program on a device with `bits` of precision, and what was found.

    first: seconds of the first call, compilation included. warm: shortest seconds of the calls
    after it.
    """

    program: Program
    device: jax.Device
    bits: int
    small: bool
    work: Work | None = None
    answer: np.ndarray = field(default_factory=lambda: np.zeros(0))
    first: float = float("nan")
    warm: float = float("nan")
    error: str = ""

    @contextmanager
    def _place(self) -> Iterator[None]:
        with warnings.catch_warnings():
            # theories ask for float64 by name, and get what is allowed
            warnings.filterwarnings("ignore", message="Explicitly requested dtype")
            with jax.default_device(self.device), jax.enable_x64(self.bits == 64):
                yield

    def call_first(self) -> None:
        """Draws the data, compiles, and keeps the answer."""
        try:
            with self._place():
                self.work = self.program.at(self.small)
                start = time.perf_counter()
                self.answer = flat(jax.block_until_ready(self.work.run()))
                self.first = time.perf_counter() - start
        except Exception as error:  # one program that fails must not hide the others
            self.error = f"{type(error).__name__}: {str(error).splitlines()[0]}"[:200]

    def time_warm(self) -> None:
        """The shortest of a few calls."""
        if self.work is None or self.error:
            return
        seconds: list[float] = []
        with self._place():
            while len(seconds) < REPEATS and sum(seconds) < LONG:
                start = time.perf_counter()
                jax.block_until_ready(self.work.run())
                seconds.append(time.perf_counter() - start)
        self.warm = min(seconds)


def flat(answer: Any) -> np.ndarray:
    """All numbers of an answer, each array divided by its largest entry, in one vector."""
    parts = []
    for leaf in jax.tree.leaves(answer):
        numbers = np.asarray(leaf, np.float64).ravel()
        largest = np.max(np.abs(numbers))
        parts.append(np.array([largest]))
        parts.append(numbers / (largest or 1.0))
    return np.concatenate(parts)


def deviation(one: np.ndarray, other: np.ndarray) -> float:
    """Largest difference of two answers as `flat` gives them, in units of the largest entry of each
    array; infinite where one of them is not a number."""
    if one.shape != other.shape:
        return float("inf")
    apart = np.abs(one - other) / np.maximum(1.0, np.abs(other))
    return float(np.max(np.where(np.isfinite(apart), apart, np.inf), initial=0.0))


def peaks(device: jax.Device, bits: int, small: bool) -> dict[str, float]:
    """Operations a second of a large matrix product, bytes a second of a large copy (read and
    written), and the largest relative error of a product in that precision, by JAX's own default
    and by its highest precision."""
    size, words = (8192, 2**27) if device.platform != "cpu" else (2048, 2**24)
    if small:
        size, words = 256, 2**16
    run = Run(Program("", "", lambda small: Work(lambda: None)), device, bits, small)
    with run._place():
        rng = np.random.default_rng(0)
        one, other = (jnp.asarray(rng.standard_normal((size, size))) for _ in range(2))
        exact = np.asarray(one[:32], np.float64) @ np.asarray(other, np.float64)
        product = jax.jit(
            lambda a, b, precision: jnp.matmul(a, b, precision=precision), static_argnums=2
        )
        found = {}
        for name in ("default", "highest"):
            wrong = np.abs(np.asarray(product(one[:32], other, name), np.float64) - exact)
            found[f"error {name}"] = float(np.max(wrong) / np.max(np.abs(exact)))
            run.work = Work(lambda name=name: product(one, other, name))
            jax.block_until_ready(run.work.run())
            run.time_warm()
            found[f"flops {name}"] = 2 * size**3 / run.warm
        copied = jnp.zeros(words)
        copy = jax.jit(lambda x: x + 1)
        run.work = Work(lambda: copy(copied))
        jax.block_until_ready(run.work.run())
        run.time_warm()
        found["bytes"] = 2 * words * copied.dtype.itemsize / run.warm
    return found
