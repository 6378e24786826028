"""Commands keep compiled theories whole: the next command neither traces nor compiles them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from orderparam import cli

SOLVE = ["solve", "spins.mean_field", "temperature=0.5"]
COMMAND = "from orderparam.cli import main; import sys; sys.argv = ['orderparam', *sys.argv[1:]]"
NO_TRACING = """
import functools
from orderparam.systems.spins import mean_field
@functools.wraps(mean_field.fn)
def traced(*_, **__):
    raise SystemExit('traced')
mean_field.fn = traced
"""
TELLS_OF_COMPILING = """
import jax
jax.monitoring.register_event_duration_secs_listener(
    lambda event, *_, **__: print(event, file=sys.stderr)
)
"""
CALLED = """
from orderparam.systems.spins import MeanFieldMagnet, mean_field
mean_field.at_one_point(MeanFieldMagnet(temperature=0.5))
"""


SOLVES_EQUATIONS = """
import sys
import jax.numpy as jnp
from orderparam.core.compilation_cache import keep_for_commands
from orderparam.core.stored_programs import stored_or_compiled
keep_for_commands()
def solution(matrix, vector):
    if sys.argv[1] == "loaded":
        raise SystemExit("traced")
    return jnp.linalg.solve(matrix, vector), jnp.linalg.eigvalsh(matrix)
equations = 2 * jnp.eye(3), jnp.ones(3)
print(stored_or_compiled(solution, equations, "three equations")(*equations))
"""


@pytest.fixture
def python(tmp_path):
    def run(code, *arguments):
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env=os.environ | {"ORDERPARAM_CACHE": str(tmp_path)},
            capture_output=True,
            text=True,
        )

    return run


def test_a_second_command_does_not_trace_a_theory(python, tmp_path):
    python(CALLED)  # JAX's own cache has the program before a command stores it
    assert not list(tmp_path.rglob("theory-*"))
    first = python(f"{COMMAND}; main()", *SOLVE)
    assert len(list(tmp_path.rglob("theory-*-cache"))) == 1
    second = python(f"{COMMAND}\n{NO_TRACING}\nmain()", *SOLVE)
    assert "magnetisation" in first.stdout
    assert second.stdout == first.stdout
    other = python(f"{COMMAND}\n{NO_TRACING}\nmain()", *SOLVE[:2], "temperature=0.6")
    assert "magnetisation" in other.stdout
    assert other.stdout != first.stdout


def test_a_second_prediction_compiles_nothing(python, tmp_path):
    random = np.random.default_rng(0)
    rows = np.round(random.normal(size=(60, 3)), 3)
    text = "\n".join(f"{a},{b},{c}" for a, b, c in rows)
    (tmp_path / "table.csv").write_text(f"a,b,price\n{text}\n")
    predict = ["predict", str(tmp_path / "table.csv"), "--target", "price", "--arch", "fc:1:tanh"]
    first, second = (
        python(f"{COMMAND}\n{TELLS_OF_COMPILING}\nmain()", *predict, "--out", str(tmp_path / name))
        for name in ("first", "second")
    )
    assert len(list(tmp_path.rglob("theory-*-cache"))) == 1  # the kernel
    assert "backend_compile" in first.stderr
    assert "jaxpr_to_mlir" in first.stderr
    assert second.returncode == 0, second.stderr
    assert "backend_compile" not in second.stderr
    assert "jaxpr_to_mlir" not in second.stderr
    assert second.stdout == first.stdout.replace(str(tmp_path / "first"), str(tmp_path / "second"))


def test_a_loaded_program_calls_lapack_in_a_process_that_has_lowered_nothing(python):
    first, loaded = (python(SOLVES_EQUATIONS, name) for name in ("compiled", "loaded"))
    assert (loaded.returncode, loaded.stdout) == (0, first.stdout), loaded.stderr
    assert "0.5" in first.stdout


@pytest.mark.parametrize("harm", ["cut", "changed"])
def test_a_damaged_theory_is_compiled_again(harm, python, tmp_path):
    first = python(f"{COMMAND}; main()", *SOLVE)
    (entry,) = tmp_path.rglob("theory-*-cache")
    content = entry.read_bytes()
    entry.write_bytes(content[:-7] if harm == "cut" else content[:-7] + b"another")
    assert python(f"{COMMAND}; main()", *SOLVE).stdout == first.stdout
    assert python(f"{COMMAND}\n{NO_TRACING}\nmain()", *SOLVE).stdout == first.stdout


def test_a_theory_of_a_persons_own_file_is_not_stored(python, tmp_path):
    shutil.copy(Path(cli.__file__).parent / "template.py", tmp_path / "own_weiss.py")
    run = python(
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from orderparam.core.compilation_cache import keep_for_commands; keep_for_commands()\n"
        "from own_weiss import CurieWeiss, mean_field\n"
        "print(mean_field.at_one_point(CurieWeiss(temperature=0.5)))",
        str(tmp_path),
    )
    assert "magnetisation" in run.stdout, run.stderr
    assert not list(tmp_path.rglob("theory-*"))


SMALL = ["--set", "dims=10", "--set", "loads=1.5,2.5", "--set", "learned=1.2"]


def test_a_finished_run_is_printed_again_without_being_computed(python, tmp_path):
    run = ["run", "capacity-separability", *SMALL, "--out", str(tmp_path / "result")]
    first = python(f"{COMMAND}; main()", *run)
    assert first.returncode == 0, first.stderr
    without_jax = f"{COMMAND}; sys.modules['jax'] = None; main()"
    second = python(without_jax, *run)
    assert (second.returncode, second.stdout) == (0, first.stdout), second.stderr
    figure = tmp_path / "result" / "figure.png"
    figure.unlink()
    assert python(without_jax, *run).returncode != 0  # it is made again
    assert python(f"{COMMAND}; main()", *run).returncode == 0
    assert figure.is_file()
    other = python(without_jax, *run, "--seeds", "3")
    assert other.returncode != 0
