"""Compiled programs on disk: found by the next process, bounded, and never in the way, whatever is
wrong with the folder."""

import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass

import pytest

from orderparam.core.compilation_cache import tidy

SLOW = pytest.mark.slow

# Says what it computed, and how many programs it found on disk and how many it compiled.
PROGRAM = """
import collections, json
{before}
import orderparam
import jax, jax.numpy as jnp
events = collections.Counter()
jax.monitoring.register_event_listener(lambda event, **_: events.update([event.rsplit("/", 1)[-1]]))
compiled = jax.jit(lambda x: jnp.linalg.eigvalsh(x @ x.T)[-1] + jnp.tanh(x).sum())
value = compiled(jnp.arange(30.0).reshape(5, 6))
folder = jax.config.jax_compilation_cache_dir
print(json.dumps([float(value), events["cache_hits"], events["cache_misses"], folder]))
"""


@dataclass
class Run:
    value: float
    found: int
    compiled: int
    folder: str | None


def start(before="", limit=None, **variables):
    foreign = ("JAX_", "TF_CPP_", "ORDERPARAM_CACHE", "XDG_CACHE_HOME")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(foreign)
    }
    shorten = (
        None if limit is None else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    )
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(before=before)],
        env=environment | {name: str(value) for name, value in variables.items()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=shorten,
    )


def end(process, stderr=""):
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert errors == stderr
    return Run(*json.loads(out))


def run(before="", limit=None, **variables):
    return end(start(before, limit, **variables))


@pytest.fixture(scope="module")
def value(tmp_path_factory):
    return run(ORDERPARAM_CACHE="off").value


def entries(root):
    return list(root.glob("*/*-cache"))


def let_age(root, seconds=3600):
    for path in root.glob("*/*-cache*"):
        os.utime(path, (time.time() - seconds,) * 2)


def test_the_next_process_compiles_nothing(tmp_path, value):
    first, second = run(ORDERPARAM_CACHE=tmp_path), run(ORDERPARAM_CACHE=tmp_path)
    assert first.value == second.value == value
    assert (first.found, second.compiled) == (0, 0)
    assert first.compiled == second.found == len(entries(tmp_path)) > 0


@pytest.mark.skipif(
    sys.platform != "linux", reason="the place of the user's cache folder is set by XDG_CACHE_HOME"
)
def test_it_is_on_by_default_in_the_users_cache_folder_and_off_when_told(tmp_path):
    assert run(XDG_CACHE_HOME=tmp_path, ORDERPARAM_CACHE="off").folder is None
    assert not any(tmp_path.iterdir())
    assert (
        run(XDG_CACHE_HOME=tmp_path).compiled
        == len(entries(tmp_path / "orderparam" / "programs"))
        > 0
    )


@pytest.mark.parametrize(
    "before", ["", "import jax; jax.config.update('jax_compilation_cache_dir', {folder!r})"]
)
def test_a_folder_chosen_for_jax_is_left_to_jax(before, tmp_path):
    theirs = str(tmp_path / "theirs")
    variables = {} if before else {"JAX_COMPILATION_CACHE_DIR": theirs}
    assert (
        run(before.format(folder=theirs), ORDERPARAM_CACHE=tmp_path / "ours", **variables).folder
        == theirs
    )
    assert not (tmp_path / "ours").exists()


def test_a_process_started_by_another_follows_its_own_variable(tmp_path):
    inherit = "import orderparam, os; os.environ['ORDERPARAM_CACHE'] = {!r}"
    # decided at the first import
    assert run(inherit.format("off"), ORDERPARAM_CACHE=tmp_path / "a").folder is not None
    first = run(ORDERPARAM_CACHE=tmp_path / "a")
    assert run(ORDERPARAM_CACHE="off", JAX_COMPILATION_CACHE_DIR=first.folder).folder is None
    moved = run(ORDERPARAM_CACHE=tmp_path / "b", JAX_COMPILATION_CACHE_DIR=first.folder)
    assert moved.folder.startswith(str(tmp_path / "b"))


def test_imported_after_jax_it_says_nothing_either(tmp_path, value):
    runs = [run("import jax", ORDERPARAM_CACHE=tmp_path) for _ in range(2)]
    assert [one.value for one in runs] == [value, value]


def test_importing_the_package_does_not_import_jax():
    subprocess.run(
        [sys.executable, "-c", "import orderparam, sys; assert 'jax' not in sys.modules"],
        check=True,
        timeout=60,
    )


def test_two_processes_at_once(tmp_path, value):
    for one in [start(ORDERPARAM_CACHE=tmp_path) for _ in range(2)]:
        assert end(one).value == value
    assert run(ORDERPARAM_CACHE=tmp_path).compiled == 0


@pytest.mark.parametrize(
    "damage",
    ["truncated", *(pytest.param(kind, marks=SLOW) for kind in ("emptied", "garbled", "foreign"))],
)
def test_damaged_entries_are_compiled_again_and_then_replaced(damage, tmp_path, value):
    count = run(ORDERPARAM_CACHE=tmp_path).compiled
    for path in entries(tmp_path):
        whole = path.read_bytes()
        middle = len(whole) // 2
        path.write_bytes(
            {
                "truncated": whole[:middle],
                "emptied": b"",
                "garbled": whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :],
                "foreign": b"not a program",
            }[damage]
        )
    again = run(ORDERPARAM_CACHE=tmp_path)
    assert (again.value, again.found, again.compiled) == (value, 0, count)
    assert run(ORDERPARAM_CACHE=tmp_path).found == count


def test_an_entry_under_the_name_of_another_is_not_believed(tmp_path, value):
    """As when files are exchanged: each is whole, and neither is what its name says."""
    count = run(ORDERPARAM_CACHE=tmp_path).compiled
    first, *others = entries(tmp_path)
    taken = [first, *(path for path in others if path.read_bytes() != first.read_bytes())][:2]
    contents = [path.read_bytes() for path in taken]
    for path, content in zip(taken, reversed(contents)):
        path.write_bytes(content)
    again = run(ORDERPARAM_CACHE=tmp_path)
    assert (again.value, again.found, again.compiled) == (value, count - 2, 2)
    assert run(ORDERPARAM_CACHE=tmp_path).found == count


def test_an_entry_that_was_altered_and_packed_again_is_not_believed(tmp_path, value):
    import zlib

    count = run(ORDERPARAM_CACHE=tmp_path).compiled
    for path in entries(tmp_path):
        program = bytearray(zlib.decompress(path.read_bytes()))
        program[len(program) // 2] ^= 255
        path.write_bytes(zlib.compress(bytes(program)))
    again = run(ORDERPARAM_CACHE=tmp_path)
    assert (again.value, again.found, again.compiled) == (value, 0, count)


@pytest.mark.parametrize("limit", [pytest.param(0, marks=SLOW), 1000])
def test_on_a_full_disk_programs_run_all_the_same(limit, tmp_path, value):
    assert run(ORDERPARAM_CACHE=tmp_path, limit=limit).value == value
    assert all(path.stat().st_size <= limit for path in entries(tmp_path))
    # with what the first one could not finish still there
    assert run(ORDERPARAM_CACHE=tmp_path).value == value


def test_a_folder_that_can_only_be_read_is_read(tmp_path, value):
    count = run(ORDERPARAM_CACHE=tmp_path).compiled
    folder = entries(tmp_path)[0].parent
    spared = entries(tmp_path)[0]
    spared.unlink()
    for path in (folder, tmp_path):
        path.chmod(0o555)
    try:
        one = run(ORDERPARAM_CACHE=tmp_path)
        assert (one.value, one.found) == (value, count - 1)
        assert spared.exists() == (os.geteuid() == 0)  # permissions do not hold back root
    finally:
        for path in (folder, tmp_path):
            path.chmod(0o755)


def test_a_folder_that_cannot_be_made_is_named_once(tmp_path, value):
    (tmp_path / "file").write_text("")
    process = start(ORDERPARAM_CACHE=tmp_path / "file" / "folder")
    out, errors = process.communicate(timeout=120)
    assert json.loads(out)[0] == value
    assert (
        errors.count("$ORDERPARAM_CACHE")
        == errors.count("cannot keep compiled programs: Not a directory")
        == 1
    )
    process = start(ORDERPARAM_CACHE="~nosuchuser/programs")
    out, errors = process.communicate(timeout=120)
    assert json.loads(out)[0] == value
    assert (
        errors.count("cannot keep compiled programs: ~nosuchuser/programs: there is no such user")
        == 1
    )
    # where nobody has chosen, nothing is said
    assert run(XDG_CACHE_HOME=tmp_path / "file").value == value


def made(root, folder, name, size, age):
    path = root / folder / f"{name}-cache"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"\x28\xb5\x2f\xfd".ljust(size, b"."))
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_what_was_not_used_for_longest_goes_first_whatever_its_version(tmp_path):
    old, new = "orderparam-0.0.1-jaxlib-0.9.2-abc", "orderparam-0.1.0-jaxlib-0.12.0-abc"
    made(tmp_path, old, "a", 400, age=5000)
    used = made(tmp_path, new, "b", 400, age=4000)
    recent = made(tmp_path, new, "c", 400, age=3000)
    other = made(tmp_path, "somebody else's", "d", 400, age=9000)
    tidy(tmp_path, limit=1200)
    assert len(entries(tmp_path)) == 4
    tidy(tmp_path, limit=1000)
    assert set(entries(tmp_path)) == {used, recent, other}
    assert not (tmp_path / old).exists()
    os.utime(used)
    tidy(tmp_path, limit=500)
    assert set(entries(tmp_path)) == {used, other}


def test_a_process_that_ends_tidies_up_once_an_hour(tmp_path):
    run(ORDERPARAM_CACHE=tmp_path)
    stamp = tmp_path / ".tidied"
    left = made(tmp_path, "orderparam-0.0.1-jaxlib-0.9.2-abc", "a", 10, age=500)
    left = left.rename(left.with_name(f"{left.name}.123.new"))
    let_age(tmp_path)
    run(ORDERPARAM_CACHE=tmp_path)
    assert left.exists()
    os.utime(stamp, (time.time() - 7200,) * 2)
    run(ORDERPARAM_CACHE=tmp_path)
    assert not left.exists()
    assert time.time() - stamp.stat().st_mtime < 60
