"""Command lines that nobody means: wrong words, impossible numbers, damaged files, formulas without end."""

import json
import random
import signal
import string
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from orderparam.cli.commands import app
from orderparam.core.study import studies as all_studies

LONGEST = 60  # seconds of one call
NUMBERS = (
    "-1", "0", "-0.0", "1e400", "-1e400", "nan", "inf", "-inf", "9" * 20, "9" * 400, "9" * 5000, "-" + "9" * 30, "1e12", "1e300",
    "1e-400", "0x10", "1_0", "１２", "½", "", " ", "1,2", "1,,2", ",", "+5", "--5", "1e", ".", "1.5", "true", "None",
    "10000000000", "2147483648", "9223372036854775808", "18446744073709551616", "1j", "1/2", "1e9,1e9", ",".join(["1"] * 20001),
)  # fmt: skip
TEXTS = (
    "", " ", "~", "~nosuchuser", "~nosuchuser/x.csv", "/", "/dev/null", "/dev/full", "/proc/self/mem", "..", ".", "a" * 300,
    "a" * 5000, "ß", "\udc80", "\N{BELL}", "[bold]x[/]", "[/]", "%s", "{0}", "x\ny", "-", "--", "*", "?", "-h-", "=", "==", "a=b",
    "\\", "'", '"', "$HOME", "results", "table.csv", "\N{RIGHT-TO-LEFT OVERRIDE}x",
)  # fmt: skip
FILES = (
    "table.csv", "empty.csv", "ragged.csv", "latin.csv", "binary.csv", "huge.npy", "cut.npy", "pickle.npy", "notzip.npz", "y.npy",
    "nan.npy", "strings.npy", "flat.npy", "folder.csv", "wide.csv", "missing.csv",
)  # fmt: skip


def make_files(folder: Path) -> None:
    """The damaged files and results that the calls refer to."""
    rows = "\n".join(f"{50 + i},{i % 4},{100 + 2 * i}.5" for i in range(20))
    (folder / "table.csv").write_text(f"area,rooms,price\n{rows}\n")
    (folder / "empty.csv").write_text("")
    (folder / "ragged.csv").write_text("a,b\n1,2\n3\n")
    (folder / "latin.csv").write_bytes("größe,b\n1,2\n3,4\n".encode("latin-1"))
    (folder / "binary.csv").write_bytes(bytes(range(256)) * 10)
    (folder / "wide.csv").write_text(",".join(["9" * 400] * 50) + "\n" + ",".join(["1"] * 50) + "\n")
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000000000), }"
    padded = header + b" " * (-(len(header) + 11) % 64) + b"\n"
    (folder / "huge.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded)
    np.save(folder / "y.npy", np.arange(20.0))
    (folder / "cut.npy").write_bytes((folder / "y.npy").read_bytes()[:100])
    np.save(folder / "pickle.npy", np.array([{}, []], dtype=object))
    np.save(folder / "nan.npy", np.full((200, 3), np.nan))
    np.save(folder / "strings.npy", np.array(["a", "b"] * 100))
    np.save(folder / "flat.npy", np.zeros(200))
    (folder / "notzip.npz").write_bytes(b"PK\x03\x04" + b"\0" * 100)
    (folder / "folder.csv").mkdir()
    for name, summary in SUMMARIES.items():
        result = folder / "results" / name
        (result / "result.zarr").mkdir(parents=True)
        (result / "summary.json").write_text(summary)


_WHOLE = {
    "study": "digits-learning-curve",
    "title": "t",
    "source": "s",
    "parameters": {},
    "curves": [],
    "agreement": {},
    "seconds": 1,
}
SUMMARIES = {
    "bad-cut": "{",
    "bad-list": "[]",
    "bad-null": "null",
    "bad-deep": "[" * 100000,
    "bad-digits": '{"study": ' + "9" * 5000 + "}",
    "bad-empty": "{}",
    "bad-bytes": "\x00\x01",
    **{f"bad-{key}": json.dumps({**_WHOLE, key: value}) for key, value in {
        "study": ["x"], "title": {"a": 1}, "source": None, "parameters": [1], "curves": 3, "agreement": "x", "seconds": "long",
    }.items()},
    "bad-without": json.dumps({key: value for key, value in _WHOLE.items() if key not in ("title", "seconds")}),
    "bad-nan": json.dumps({**_WHOLE, "seconds": float("nan")}),
    "bad-curve": json.dumps({**_WHOLE, "curves": [{"label": "[/]", "facets": 1, "kind": "experiment"}]}),
    "bad-inf": json.dumps({**_WHOLE, "parameters": {"n_train": [1e400, "x"], "nowhere": 1}}),
}  # fmt: skip


def formula(draw: random.Random, depth: int) -> str:
    """A formula of the grammar, or nearly so."""
    if depth == 0:
        return draw.choice(
            ["z1", "z1", "z2", "z3", "z4", "z", "z5", "zz", "pi", "e", *NUMBERS[:16], "0", "2", "0.3", "1e160", "1e-160"]
        )
    kind = draw.random()
    if kind < 0.45:
        operation = draw.choice(["+", "-", "*", "/", "**", "^", "//", "%", "@", "<", " if "])
        return f"({formula(draw, depth - 1)}{operation}{formula(draw, draw.randrange(depth))})"
    names = [
        "sign",
        "abs",
        "exp",
        "log",
        "sqrt",
        "sin",
        "cos",
        "tan",
        "tanh",
        "erf",
        "relu",
        "step",
        "He3",
        "He9",
        "He0",
        "eval",
        "sum",
    ]
    if kind < 0.9:
        return f"{draw.choice(names)}({formula(draw, depth - 1)})"
    return f"{draw.choice(['maximum', 'minimum', 'abs'])}({formula(draw, depth - 1)},{formula(draw, 0)})"


def calls(seed: int, count: int, studies: dict) -> Iterator[list[str]]:
    """`count` command lines."""
    draw = random.Random(seed)
    value = lambda: draw.choice(draw.choice((NUMBERS, NUMBERS, TEXTS)))  # noqa: E731

    def mutated(text: str) -> str:
        place = draw.randrange(len(text) + 1)
        return text[:place] + draw.choice(string.printable[:94]) + text[place + draw.randrange(2) :]

    def option(*names: str) -> list[str]:
        return [word for name in names if draw.random() < 0.5 for word in (name, value())]

    for _ in range(count):
        command = draw.choice(
            ("list", "run", "run", "run", "show", "predict", "predict", "features", "exponents", "exponents", "other")
        )
        name = draw.choice(list(studies))
        if command == "list":
            yield ["list", *(draw.choice((value(), mutated(name))) for _ in range(draw.randrange(1, 3)))]
        elif command == "run":
            parameters = list(studies[name].defaults) or ["seeds"]
            # Never a run that means something: at least one value is out of the question.
            settings = [word for _ in range(draw.randrange(1, 3)) for word in ("--set", f"{draw.choice(parameters)}={value()}")]
            odd = draw.choice(
                (settings, ["--seeds", draw.choice(NUMBERS)], ["--workers", draw.choice(NUMBERS)], ["--set", value()])
            )
            yield ["run", draw.choice((name, name, mutated(name), value())), *odd, *option("--out")]
        elif command == "show":
            yield [
                "show",
                draw.choice((value(), name, f"results/{draw.choice(list(SUMMARIES))}", draw.choice(list(SUMMARIES)), *FILES[:1])),
            ]
        elif command == "predict":
            arch = draw.choice(("fc:%s:relu", "fc:1x%s:erf", "fc:1:%s", "%s:1:relu", "%s", "fc:%sx%s:relu")).replace(
                "%s", value()
            )
            choices = option("--target", "--task", "--temperature", "--width", "--seeds", "--out")
            yield ["predict", draw.choice((*FILES, value())), *choices, *(["--arch", arch] if draw.random() < 0.7 else [])]
        elif command == "features":
            choices = option("--task", "--loss", "--ridge", "--seeds", "--out")
            yield [
                "features",
                draw.choice((*FILES, value())),
                *draw.choice(([], [draw.choice((*FILES, "price", value()))])),
                *choices,
            ]
        elif command == "exponents":
            text = formula(draw, draw.randrange(5))
            nest = draw.choice(("abs", "sin", "exp", "He2", "relu", "-"))
            yield [
                "exponents",
                draw.choice((text, text, f"{nest}(" * (n := draw.randrange(400)) + "z1" + ")" * n, value(), mutated(text))),
            ]
        else:
            yield [value(), *option("--help-", "--version=", "-x")]


class Hang(BaseException):
    """A call took too long."""


def check(arguments: list[str]) -> str | None:
    """What is wrong with the end of one call in this process; None if nothing is."""

    def stop(number, frame):
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LONGEST)
    try:
        result = CliRunner().invoke(app, arguments)
    except Hang:
        return "hangs"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    if isinstance(result.exception, Hang):
        return "hangs"
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return f"raises {type(result.exception).__name__}: {str(result.exception)[:200]}"
    lines = [line for line in result.stderr.splitlines() if line.strip() and not line.startswith("warning:")]
    if result.exit_code not in (0, 2) or (result.exit_code == 2 and len(lines) != 1):
        return f"exit status {result.exit_code} with {len(lines)} lines: {lines[:3]}"
    return None


def faults(tmp_path, monkeypatch, seed: int, count: int) -> list[str]:
    """The calls that go wrong. What is accepted is built and checked, and stopped before it runs."""
    monkeypatch.chdir(tmp_path)
    make_files(tmp_path)

    def stop(*_, **__):
        raise ValueError("accepted")

    monkeypatch.setattr("orderparam.core.study.run.sweep", stop)
    wrong: list[str] = []
    for number, arguments in enumerate(calls(seed, count, all_studies())):
        begin = time.perf_counter()
        fault = check(arguments)
        if fault is not None:
            wrong.append(f"{number}: {[word[:80] for word in arguments]}: {fault} ({time.perf_counter() - begin:.0f} s)")
    return wrong
