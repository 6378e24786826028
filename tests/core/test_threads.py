"""One BLAS thread inside, the former number outside, and nothing where the user has chosen. Each in
a process of its own."""

import os
import subprocess
import sys

import pytest

from orderparam.running.threads import _CHOSEN_BY

pytestmark = pytest.mark.skipif(
    (os.cpu_count() or 1) < 2, reason="with one core there is one thread always"
)

START = """
import threading, time
from threadpoolctl import threadpool_info, threadpool_limits
import jax, jax.numpy as jnp
from orderparam.running.threads import one_blas_thread

def counts():
    found = (library for library in threadpool_info() if library["user_api"] == "blas")
    return {library["filepath"]: library["num_threads"] for library in found}

def everywhere(number):
    return set(counts().values()) == {number}

with one_blas_thread():
    jax.block_until_ready(jax.jit(jnp.linalg.cholesky)(jnp.eye(3)))
    assert everywhere(1), counts()  # also in the library that the factorisation has loaded by now
many = counts()
"""


def python(program, **variables):
    environment = {name: value for name, value in os.environ.items() if name not in _CHOSEN_BY}
    subprocess.run(
        [sys.executable, "-c", START + program],
        env=environment | variables,
        timeout=120,
        check=True,
    )


def test_one_inside_all_outside_however_it_is_left():
    python(
        """
assert min(many.values()) > 1, many
with one_blas_thread():
    with one_blas_thread():
        assert everywhere(1)
    assert everywhere(1)
assert counts() == many
try:
    with one_blas_thread():
        raise ValueError
except ValueError:
    assert counts() == many
"""
    )


def test_python_threads_that_overlap_leave_the_former_number():
    python(
        """
steps = {name: threading.Event() for name in ("first in", "second in", "first out", "checked")}
def first():
    with one_blas_thread():
        steps["first in"].set()
        steps["second in"].wait(30)
    steps["first out"].set()
    steps["checked"].wait(30)
thread = threading.Thread(target=first)
thread.start()
steps["first in"].wait(30)
with one_blas_thread():
    steps["second in"].set()
    steps["first out"].wait(30)
    assert everywhere(1)
assert counts() == many  # the thread that set the number is still alive
steps["checked"].set()
thread.join()
"""
    )


def test_a_limit_of_the_users_is_back_afterwards_and_never_raised():
    python(
        """
with threadpool_limits(1):
    with one_blas_thread():
        assert everywhere(1)
    assert everywhere(1)
assert counts() == many
"""
    )


def test_the_second_time_costs_microseconds():
    python(
        """
def spent():
    start = time.perf_counter()
    for _ in range(100):
        with one_blas_thread():
            pass
    return (time.perf_counter() - start) / 100
assert min(spent() for _ in range(20)) < 1e-4  # 5 microseconds on an idle core
"""
    )


@pytest.mark.parametrize("name", ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"])
def test_a_number_in_the_environment_stays(name):
    program = START.replace("assert everywhere(1), counts()", "assert everywhere(2), counts()")
    environment = {key: value for key, value in os.environ.items() if key not in _CHOSEN_BY} | {
        name: "2"
    }
    subprocess.run([sys.executable, "-c", program], env=environment, timeout=120, check=True)


def test_chains_are_a_batch():
    python(
        """
import numpy as np
from orderparam.sampling import sample

seen = []
def log_density(u):
    jax.debug.callback(lambda: seen.append(everywhere(1)))
    return -jnp.sum(u**2) / 2

prior = lambda key: jax.random.normal(key, (2,))
drawn = sample(log_density, prior, jax.random.key(0), chains=2, warmup=20, samples=8)
assert np.isfinite(drawn.log_density).all()
assert seen and all(seen), seen
assert counts() == many
"""
    )
