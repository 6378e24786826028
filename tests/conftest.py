"""Shared by all tests: the modules beside a test can be imported by name, also in worker
processes."""

import os
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import settings

# Imported before JAX: only then are compiled programs kept on disk, whatever JAX's version.
from orderparam.core.verb import forget_programs as forget

sys.path.insert(0, str(Path(__file__).parent))
import unchanged

BESIDE = [str(Path(__file__).parent / folder) for folder in ("core", "every_theory", "systems")]
sys.path[:0] = BESIDE
os.environ["PYTHONPATH"] = os.pathsep.join([*BESIDE, *filter(None, [os.environ.get("PYTHONPATH")])])
os.environ.setdefault("MPLBACKEND", "agg")

# The same examples in every run: a failure is that of the change. `pytest
# --hypothesis-profile=default` draws others.
settings.register_profile("same", derandomize=True)
settings.load_profile("same")

# the time limit of a test marked slow or attack that names none; all others have that of
# pyproject.toml
SLOW_SECONDS = 1800


# Tests that take more than some two seconds of processor time where nothing is compiled yet, by the
# start of their names: `pytest --costs FILE` with an empty folder as ORDERPARAM_CACHE measures
# them, also beside other work. The parameters of a test go together, because they share programs;
# the examples of docstrings do not.
LONG = tuple((Path(__file__).parent / "long.txt").read_text(encoding="utf-8").splitlines())


def pytest_addoption(parser):
    parser.addoption(
        "--changed",
        action="store_true",
        help="leave out long tests and draws of what did not change since they passed",
    )
    parser.addoption(
        "--remember",
        action="store_true",
        help="write what passes into tests/passed.txt and tests/drawn.txt",
    )
    parser.addoption(
        "--costs", metavar="FILE", help="add the processor seconds of each test to FILE as they run"
    )


EVERYDAY = "not slow and not long and not attack"  # of pyproject.toml
# Most of the everyday run is the compiler's time, for programs that then run once for milliseconds.
# Compiled like this they take half of it, give the same numbers up to rounding, and run up to twice
# as long. All other runs, CI's among them, compile as users do. XLA reads the flags when it starts,
# also in the processes that a test starts, and the folder of compiled programs tells them apart.
QUICKLY_COMPILED = (
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
    "--xla_cpu_use_fusion_emitters=false",
)


def pytest_configure(config):
    # a later XLA may know a flag no more, which would end the process
    if config.option.markexpr == EVERYDAY and version("jaxlib").startswith("0.9."):
        flags = [*QUICKLY_COMPILED, os.environ.get("XLA_FLAGS", "")]  # a person's own flags win
        os.environ["XLA_FLAGS"] = " ".join(filter(None, flags))


# folders and files in which every test is long or an attack
UNUSED = ("attacks/", *(line for line in LONG if "::" not in line))


def pytest_ignore_collect(collection_path, config):
    """The everyday run does not import what it would leave out as a whole."""
    if config.option.markexpr != EVERYDAY:
        return None
    path = os.path.relpath(collection_path, Path(__file__).parent)
    return True if f"{path}{'' if collection_path.suffix else '/'}".startswith(UNUSED) else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """With `--costs FILE`: a line of the processor seconds of a test, of all its threads and of the
    processes that it started, and its name."""
    path, before = item.config.getoption("--costs"), os.times()[:4]
    done = yield
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{sum(os.times()[:4]) - sum(before):7.2f} {item.nodeid}\n")
    return done


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(config, items):
    for item in items:
        if item.nodeid.removeprefix("tests/").startswith(LONG):
            item.add_marker(pytest.mark.long)
        long = item.get_closest_marker("slow") or item.get_closest_marker("attack")
        if long and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_SECONDS))
    if config.getoption("--changed"):
        items[:], left = unchanged.leave_out(items)
        config.hook.pytest_deselected(items=left)
    if config.getoption("--remember"):
        for item in filter(unchanged.is_long, items):
            item.user_properties.append(("line", unchanged.line(item)))


OUTCOMES: dict[str, bool] = {}  # name in passed.txt -> whether all its tests that ran passed
STATES: dict[str, str | None] = {}  # that of a long test -> the hash of what it reaches


def pytest_runtest_logreport(report):
    line = dict(report.user_properties).get("line")
    name, state = line or (unchanged.function_of(report.nodeid), None)
    OUTCOMES[name] = OUTCOMES.get(name, True) and report.passed
    if line:
        STATES[name] = state


def pytest_sessionfinish(session, exitstatus):
    # of pytest-xdist: the process that started it hears of all tests
    is_worker = hasattr(session.config, "workerinput")
    is_complete = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    if session.config.getoption("--remember") and is_complete and not is_worker:
        unchanged.remember(OUTCOMES, STATES)


@pytest.fixture(autouse=True, scope="module")
def forget_programs():
    """Compiled programs of one file of tests are of no use to the next; kept, they fill the memory
    (6 GB)."""
    yield
    import jax

    forget()
    jax.clear_caches()
