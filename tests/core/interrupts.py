"""Interrupts a command at a given moment and looks at how it ends."""

import signal
import subprocess
import time
from pathlib import Path

import numpy as np
from magnet import Paramagnet, sampled
from sweeping import GRID, SEEDS

import orderparam as op
from orderparam.running.store import StoreError, read

HERE = Path(__file__).parent
ENDS = {
    signal.SIGINT: (130, "interrupted"),
    signal.SIGTERM: (143, "terminated"),
    signal.SIGHUP: (129, "the terminal is gone"),
}
LINE = "; finished points are kept: the same command goes on where it stopped\n"


def children(pid):
    """Processes that it started, and those that they did."""
    text = subprocess.run(
        ["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True
    ).stdout
    parents = {int(one): int(other) for one, other in (line.split() for line in text.splitlines())}
    found = {pid}
    while more := {one for one, other in parents.items() if other in found} - found:
        found |= more
    return found - {pid}


def state(pid):
    """Of a process, as the system names it; nothing where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def alive(pid):
    return state(pid) not in ("", "Z")


def left_of(pids):
    """Those that do not end within five seconds."""
    deadline = time.time() + 5
    while (left := {pid for pid in pids if alive(pid)}) and time.time() < deadline:
        time.sleep(0.02)
    return left


def hear_interrupts():
    """Tests that a shell runs in the background, or under `nohup`, are started deaf to SIGINT or
    SIGHUP, and so is what they start."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def is_pythons_own(error, number):
    """Whether a process that a signal ended before the handlers were there said nothing, or what
    Python itself says while it starts."""
    words = ("KeyboardInterrupt", "Fatal Python error: init")
    return error == "" or (number == signal.SIGINT and any(word in error for word in words))


def interrupted(command, number, seconds, begun):
    """Runs the command, sends the signal so many seconds after it can be caught, or after the file
    `begun` is there.

    Returns exit status, standard error, and the processes that are left.
    """
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        cwd=HERE,
        preexec_fn=hear_interrupts,
    )
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None:  # until the interpreter has started and the handlers are in place
        caught = next(line for line in status.read_text().splitlines() if line.startswith("SigCgt"))
        if int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1:
            break
        time.sleep(0.002)
    while begun is not None and not begun.exists() and process.poll() is None:
        time.sleep(0.002)
    time.sleep(seconds)
    below = children(process.pid)
    process.send_signal(number)
    error = process.communicate(timeout=30)[1]
    return process.returncode, error, left_of(below)


def check_interrupt(command, number, seconds, store, begun=None):
    """One interrupt: ended as it should, or finished before; the store is valid. Returns whether it
    was interrupted."""
    code, error, left = interrupted(command, number, seconds, begun)
    assert not left
    status, word = ENDS[number]
    assert (code, error) in ((status, word + LINE), (0, "")), (code, error)
    if store.exists():
        check_valid(store)
    return code != 0


def check_valid(store):
    """Complete, or only points are missing."""
    try:
        read(store)
    except StoreError as error:
        if "are missing" not in str(error):
            raise


def check_goes_on(command, store):
    """The same command completes what was interrupted, to the same numbers."""
    subprocess.run(command, check=True, cwd=HERE, timeout=200)
    truth = op.sweep(sampled, Paramagnet(1.0), GRID, seeds=SEEDS)
    np.testing.assert_array_equal(read(store)["magnetisation"], truth["magnetisation"])
