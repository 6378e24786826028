"""Standard input, output and error that are closed, full, left by their reader, or of an encoding
that lacks letters; and a folder that is gone.
"""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
COMMAND = f"{sys.executable} -m orderparam"


def shell(command, folder, **environment):
    command = f"set -o pipefail; {command.format(run=COMMAND)}"
    ended = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        timeout=120,
        check=False,
    )
    said = ended.stderr.decode()
    assert "Traceback" not in said
    return ended.returncode, ended.stdout.decode(), said


@pytest.mark.parametrize(
    ("command", "status", "told"),
    [
        ("{run} list | true", 0, ""),
        ("{run} cite lasso | true", 0, ""),
        ("{run} --help | true", 0, ""),
        ("{run} --version >/dev/full", 2, "cannot print: No space left on device"),
        ("{run} --help >/dev/full", 2, "cannot print: No space left on device"),
        ("{run} list lasso >/dev/full", 2, "No space left on device"),
        ("{run} solve nothing 2>/dev/full", 2, ""),
        ("{run} solve nothing 2>&-", 2, ""),
        ("{run} solve nothing <&- >&- 2>&-", 2, ""),
        ("{run} list lasso >&-", 0, ""),
        ("ulimit -f 0; {run} new-system glass", 2, "cannot write glass.py: File too large"),
        ("mkdir d && cd d && rmdir ../d && {run} show x", 2, "there is no result x"),
    ],
)
def test_no_traceback_and_no_line_too_many(tmp_path, command, status, told):
    ended, printed, said = shell(command, tmp_path)
    assert (ended, printed) == (status, "")
    assert told in said
    assert said.count("\n") == bool(told)
    assert list(tmp_path.iterdir()) == []


def test_letters_that_an_encoding_lacks_are_written_otherwise(tmp_path):
    ended, printed, said = shell("{run} list", tmp_path, PYTHONIOENCODING="ascii")
    assert (ended, said) == (0, "")
    assert "?" in printed


def test_a_file_is_not_opened_as_standard_error(tmp_path):
    """Where it is closed, the next file would take its number, and what is said go into it."""
    code = "import os; from orderparam.cli.terminal import mend_streams; mend_streams(); "
    code += "opened = os.open('table', os.O_CREAT | os.O_WRONLY); assert opened > 2; "
    code += "import sys; sys.stderr.write('x'); os.write(2, b'x')"
    ended, _, _ = shell(f'{sys.executable} -c "{code}" <&- >&- 2>&-', tmp_path)
    assert ended == 0
    assert (tmp_path / "table").read_bytes() == b""


def test_files_are_written_where_nobody_reads_what_is_printed(tmp_path):
    run = "{run} solve onsager --over temperature=1:4:3 --out r | true"
    assert shell(run, tmp_path) == (0, "", "")
    assert {path.name for path in (tmp_path / "r").glob("[a-z]*")} == {
        "figure.pdf", "figure.png", "spins.onsager.csv", "spins.onsager.zarr",
    }  # fmt: skip


@pytest.mark.parametrize("platform", ["cuda", "nothing"])
def test_a_device_that_is_not_there_is_one_line(tmp_path, platform):
    command = "{run} solve onsager temperature=2"
    ended, printed, said = shell(command, tmp_path, JAX_PLATFORMS=platform)
    if not ended:
        pytest.skip("there is such a device")
    assert (ended, printed) == (2, "")
    assert f"JAX_PLATFORMS is '{platform}'" in said
    assert said.count("\n") == 1


def test_a_cache_of_a_name_that_jax_does_not_take_is_not_used(tmp_path):
    command = "ORDERPARAM_CACHE=$'\\xff' {run} solve nothing"
    ended, _, said = shell(command, tmp_path)
    assert ended == 2
    assert "cannot keep compiled programs" in said


def test_a_range_is_shown_as_it_was_written(tmp_path):
    """The colons of a range are no emoji."""
    words = "{run} solve spins.kaufman --over temperature=0:100:x"
    status, _, message = shell(words, tmp_path)
    assert status == 2
    assert "temperature=0:100:x" in message
