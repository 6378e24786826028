"""Command lines that nobody means: wrong words, impossible numbers, damaged files, formulas without
end."""

import dataclasses
import json
import os
import random
import signal
import string
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

import orderparam.analysis.scaling_law as scaling_law
from orderparam.cli.commands import app
from orderparam.comparison.summary import sealed
from orderparam.core.fields import declarations
from orderparam.core.given import concrete, makers
from orderparam.core.registry import experiments, theories
from orderparam.running.program import Outcome

LONGEST = 60  # seconds of one call, of the processor; ten times as many in all
LOG = os.environ.get("ORDERPARAM_TEST_CALLS", "")  # file that lists every call and its end
NUMBERS = (
    "-1", "0", "-0.0", "1e400", "-1e400", "nan", "inf", "-inf", "9" * 20, "9" * 400, "9" * 5000,
    "-" + "9" * 30, "1e12", "1e300",
    "1e-400", "0x10", "1_0", "１２", "½", "", " ", "1,2", "1,,2", ",", "+5", "--5", "1e", ".",
    "1.5", "true", "None",
    "10000000000", "2147483648", "9223372036854775808", "18446744073709551616", "1j", "1/2",
    "1e9,1e9", ",".join(["1"] * 20001),
)  # fmt: skip
TEXTS = (
    "", " ", "~", "~nosuchuser", "~nosuchuser/x.csv", "/", "/dev/null", "/dev/full",
    "/proc/self/mem", "..", ".", "a" * 300,
    "a" * 5000, "ß", "\udc80", "\N{BELL}", "[bold]x[/]", "[/]", "%s", "{0}", "x\ny", "-", "--", "*",
    "?", "-h-", "=", "==", "a=b",
    "\\", "'", '"', "$HOME", "results", "table.csv", "\N{RIGHT-TO-LEFT OVERRIDE}x",
)  # fmt: skip
FILES = (
    "table.csv", "empty.csv", "ragged.csv", "latin.csv", "binary.csv", "huge.npy", "cut.npy",
    "pickle.npy", "notzip.npz", "y.npy",
    "nan.npy", "strings.npy", "flat.npy", "folder.csv", "wide.csv", "missing.csv", "pipe.csv",
    "zero.npy", "columns.csv",
    "columns.npy", "zeros.npz", "claim.npz", "table.parquet", "cut.parquet", "rows.parquet",
    "table.xlsx", "cut.xlsx",
    "zeros.xlsx", "table.feather", "cut.feather", "runs.csv", "runs.jsonl", "deep.json", "cut.json",
    "table.npz",
    "round.csv",
)  # fmt: skip
COMMANDS = (
    "list", "run", "run", "run", "show", "predict", "predict", "features", "exponents", "exponents",
    "other", "solve", "solve",
    "solve", "phases", "phases", "design", "design", "scaling-law", "scaling-law", "inspect",
    "width", "explore", "explore",
    "new-system", "cite",
)  # fmt: skip
PROGRAMS = {  # files of a person's own, as `run` and `show` name them
    "nothing.py": b"",
    "unfinished.py": b"def f(:\n",
    "ends.py": b"import sys\nsys.exit(0)\n",
    "raises.py": b"class Odd(Exception):\n    def __str__(self): raise self\nraise Odd\n",
    "interrupts.py": b"raise GeneratorExit\n",
    "bytes.py": bytes(range(256)),
    "nul.py": b"x = 1\0\n",
    "latin.py": "# \u00e9\nx = '\u00e9'\n".encode("latin-1"),
    "import.py": b"x = 1\n",
    "json.py": b"x = 1\n",
    "deep.py": b"x = " + b"(" * 5000,
}
SYSTEMS = (
    "spin_glass", "spin_glass.py", "class", "numpy", "orderparam", "json", "a_b_c", "../x", "a/b",
    "Glass", "con", "_x", "x_",
    "system", "theory", "np", "match", "print", "9x", "spin-glass", "g" * 250, "é", "nothing",
)  # fmt: skip
HOSTS = (
    "0.0.0.0",
    "::1",
    "[::1]",
    "localhost",
    "127.0.0.1",
    "evil.example",
    "a b",
    "http://x",
    "255.255.255.255",
    "-",
)
ESTIMATORS = (  # of a person's own, as `predict` names them
    "sklearn.linear_model.Ridge", "sklearn.linear_model", "sklearn.linear_model.Ridge.fit",
    "json.loads",
    "nothing.Nothing", "sys.exit", "sklearn.neighbors.KNeighborsClassifier",
    "sklearn.pipeline.Pipeline", "sklearn..x",
)  # fmt: skip
RUNS = ("loss", "n", "d", "name", "lss", "")


def make_files(folder: Path, bombs: bool = False) -> None:
    """The damaged files and results that the calls refer to; with `bombs`, those too that unpack
    into very much."""
    rows = "\n".join(f"{50 + i},{i % 4},{100 + 2 * i}.5" for i in range(20))
    (folder / "table.csv").write_text(f"area,rooms,price\n{rows}\n")
    (folder / "empty.csv").write_text("")
    (folder / "ragged.csv").write_text("a,b\n1,2\n3\n")
    (folder / "latin.csv").write_bytes("größe,b\n1,2\n3,4\n".encode("latin-1"))
    (folder / "binary.csv").write_bytes(bytes(range(256)) * 10)
    (folder / "wide.csv").write_text(
        ",".join(["9" * 400] * 50) + "\n" + ",".join(["1"] * 50) + "\n"
    )
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000000000), }"
    padded = header + b" " * (-(len(header) + 11) % 64) + b"\n"
    (folder / "huge.npy").write_bytes(
        b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded
    )
    np.save(folder / "y.npy", np.arange(20.0))
    (folder / "cut.npy").write_bytes((folder / "y.npy").read_bytes()[:100])
    np.save(folder / "pickle.npy", np.array([{}, []], dtype=object))
    np.save(folder / "nan.npy", np.full((200, 3), np.nan))
    np.save(folder / "strings.npy", np.array(["a", "b"] * 100))
    np.save(folder / "flat.npy", np.zeros(200))
    (folder / "notzip.npz").write_bytes(b"PK\x03\x04" + b"\0" * 100)
    (folder / "folder.csv").mkdir()
    os.mkfifo(folder / "pipe.csv")
    (folder / "zero.npy").symlink_to("/dev/zero")
    for name, program in PROGRAMS.items():
        (folder / name).write_bytes(program)
    (folder / "round.py").symlink_to(folder / "round.py")
    (folder / "round.csv").symlink_to(folder / "round.csv")
    _tables(folder)
    if bombs:
        _bombs(folder)
    for name, summary in SUMMARIES.items():
        result = folder / "results" / name
        (result / "result.zarr").mkdir(parents=True)
        (result / "summary.json").write_text(summary)


def _bombs(folder: Path) -> None:
    """Small files of very many columns, or that unpack into very much."""
    (folder / "columns.csv").write_text(
        "\n".join(",".join(f"{mark}{i}" for i in range(10**6)) for mark in ("a", "1", "2", "3"))
    )
    np.save(
        folder / "columns.npy", np.random.default_rng(0).normal(size=(3, 10**6)).astype(np.float32)
    )
    np.savez_compressed(folder / "zeros.npz", x=np.zeros((2000, 20000)), y=np.zeros(2000))
    with zipfile.ZipFile(folder / "claim.npz", "w", zipfile.ZIP_DEFLATED) as file:
        for name in ("x.npy", "y.npy"):
            file.writestr(name, (folder / "huge.npy").read_bytes() + b"\0" * 10**6)
    with zipfile.ZipFile(folder / "zeros.xlsx", "w", zipfile.ZIP_DEFLATED) as file:
        for _ in range(40):
            file.writestr("xl/worksheets/sheet1.xml", b"<row></row>" * 10**6)
    import pyarrow
    from pyarrow import parquet

    many = pyarrow.table({f"c{i}": np.zeros(2 * 10**6, np.int8) for i in range(60)})
    parquet.write_table(many, folder / "rows.parquet", compression="zstd")


def _tables(folder: Path) -> None:
    """Whole and cut tables in every format."""
    frame = pd.read_csv(folder / "table.csv")
    frame.to_parquet(folder / "table.parquet")
    frame.to_feather(folder / "table.feather")
    frame.to_excel(folder / "table.xlsx", index=False)
    np.savez(folder / "table.npz", x=frame[["area", "rooms"]], y=frame["price"])
    sizes = np.geomspace(1e6, 1e9, 12)
    runs = pd.DataFrame(
        {
            "name": [f"r{i}" for i in range(12)],
            "n": sizes,
            "d": sizes[::-1] * 20,
            "loss": 2 + sizes**-0.1,
        }
    )
    runs.to_csv(folder / "runs.csv", index=False)
    runs.to_json(folder / "runs.jsonl", orient="records", lines=True)
    (folder / "deep.json").write_text("[" * 100000)
    (folder / "cut.json").write_text('[{"loss": 1, "n":')
    for kind in ("parquet", "xlsx", "feather"):
        (folder / f"cut.{kind}").write_bytes((folder / f"table.{kind}").read_bytes()[:-40])


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
    "bad-checksum": json.dumps(_WHOLE),
    "bad-bytes": "\x00\x01",
    **{f"bad-{key}": sealed({**_WHOLE, key: value}) for key, value in {
        "study": ["x"], "title": {"a": 1}, "source": None, "parameters": [1], "curves": 3,
        "agreement": "x", "seconds": "long",
    }.items()},
    "bad-without": sealed({key: value for key, value in _WHOLE.items()
    if key not in ("title", "seconds")}),
    "bad-nan": sealed({**_WHOLE, "seconds": float("nan")}),
    "bad-curve": sealed({**_WHOLE, "curves": [{"label": "[/]", "facets": 1,
    "kind": "experiment"}]}),
    "bad-inf": sealed({**_WHOLE, "parameters": {"n_train": [1e400, "x"], "nowhere": 1}}),
}  # fmt: skip


def formula(draw: random.Random, depth: int) -> str:
    """A formula of the grammar, or nearly so."""
    if depth == 0:
        return draw.choice(
            [
                "z1",
                "z1",
                "z2",
                "z3",
                "z4",
                "z",
                "z5",
                "zz",
                "pi",
                "e",
                *NUMBERS[:16],
                "0",
                "2",
                "0.3",
                "1e160",
                "1e-160",
            ]
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
    function = draw.choice(["maximum", "minimum", "abs"])
    return f"{function}({formula(draw, depth - 1)},{formula(draw, 0)})"


def calls(
    seed: int, count: int, studies: dict, commands: tuple[str, ...] = COMMANDS
) -> Iterator[list[str]]:
    """`count` lines of these commands."""
    draw = random.Random(seed)
    value = lambda: draw.choice(draw.choice((NUMBERS, NUMBERS, TEXTS)))  # noqa: E731

    def mutated(text: str) -> str:
        place = draw.randrange(len(text) + 1)
        return text[:place] + draw.choice(string.printable[:94]) + text[place + draw.randrange(2) :]

    def option(*names: str) -> list[str]:
        return [word for name in names if draw.random() < 0.5 for word in (name, value())]

    for _ in range(count):
        command = draw.choice(commands)
        name = draw.choice(list(studies))
        if command == "list":
            yield [
                "list",
                *(draw.choice((value(), mutated(name))) for _ in range(draw.randrange(1, 3))),
            ]
        elif command == "run":
            parameters = list(studies[name].defaults) or ["seeds"]
            # Never a run that means something: at least one value is out of the question.
            settings = [
                word
                for _ in range(draw.randrange(1, 3))
                for word in ("--set", f"{draw.choice(parameters)}={value()}")
            ]
            odd = draw.choice(
                (
                    settings,
                    ["--seeds", draw.choice(NUMBERS)],
                    ["--workers", draw.choice(NUMBERS)],
                    ["--set", value()],
                )
            )
            program = draw.choice((*PROGRAMS, "round.py"))
            own = f"{program}{draw.choice(('', ':', ':x', '::', f':{value()}'))}"
            asked = draw.choice((name, name, mutated(name), value(), own))
            yield [
                "run",
                asked,
                *odd,
                *option("--out", "--size"),
                *draw.choice(([], [], ["--dask", value()])),
            ]
        elif command == "show":
            yield [
                "show",
                draw.choice(
                    (
                        value(),
                        name,
                        f"results/{draw.choice(list(SUMMARIES))}",
                        draw.choice(list(SUMMARIES)),
                        *FILES[:1],
                    )
                ),
            ]
        elif command == "predict":
            arch = draw.choice(
                ("fc:%s:relu", "fc:1x%s:erf", "fc:1:%s", "%s:1:relu", "%s", "fc:%sx%s:relu")
            ).replace("%s", value())
            choices = option("--target", "--task", "--temperature", "--width", "--seeds", "--out")
            columns = {
                "--estimator": ESTIMATORS, "--reach": ("40", "1e3"), "--groups": ("rooms", "price"),
                "--time": ("area", "price"), "--missing": ("x", "50,51"), "--new": FILES,
            }  # fmt: skip
            rarer = [word for name, right in columns.items() if draw.random() < 0.2
                     for word in (name, draw.choice((*right, value())))]  # fmt: skip
            yield [
                "predict",
                draw.choice((*FILES, value())),
                *choices,
                *rarer,
                *(["--arch", arch] if draw.random() < 0.7 else []),
                *(["--stop"] if draw.random() < 0.2 else []),
            ]
        elif command == "inspect":
            names = ("--target", "--inputs", "--parameters", "--init", "--held-out", "--seeds")
            names += (
                "--rate",
                "--temperature",
                "--learning-coefficient",
                "--loss",
                "--groups",
                "--minutes",
                "--memory",
            )
            model = f"{draw.choice((*PROGRAMS, value()))}:{draw.choice(('x', 'f', value()))}"
            yield [
                "inspect",
                draw.choice((*FILES, model, value())),
                *draw.choice(([], [draw.choice((*FILES, value()))])),
                *option(*names, "--out"),
                *draw.choice(([], ["--quick"], ["--theory"])),
            ]
        elif command == "features":
            choices = option("--task", "--loss", "--ridge", "--missing", "--seeds", "--out")
            choices += draw.choice(([], [], ["--stop"]))
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
                draw.choice(
                    (
                        text,
                        text,
                        f"{nest}(" * (n := draw.randrange(400)) + "z1" + ")" * n,
                        value(),
                        mutated(text),
                    )
                ),
            ]
        elif command in ("solve", "phases"):
            yield [command, *_of_a_verb(draw, command, value, mutated)]
        elif command == "design":
            choices = option("--target", "--weights", "--kind", "--noise")
            yield [
                "design",
                draw.choice((*FILES, value())),
                *choices,
                *draw.choice(([], [], ["--no-labels"])),
            ]
        elif command == "scaling-law":
            column = lambda: draw.choice((*RUNS, value()))  # noqa: E731
            known = [word for name in ("--params", "--data", "--loss", "--unique", "--run")
            if draw.random() < 0.5
                     for word in (name, column())]  # fmt: skip
            choices = option("--form", "--compute", "--flops", "--bootstrap", "--out")
            further = draw.choice(([], [], ["--runs", draw.choice((*FILES, value()))]))
            yield [
                "scaling-law",
                draw.choice(("runs.csv", "runs.csv", *FILES, value())),
                *known,
                *choices,
                *further,
            ]
        elif command == "width":
            column = lambda: draw.choice((*RUNS, value()))  # noqa: E731
            names = ("--width", "--learning-rate", "--seed", "--loss", "--activations", "--updates")
            known = [word for name in names if draw.random() < 0.5 for word in (name, column())]
            choices = option("--optimiser", "--at-rate", "--out")
            yield ["width", draw.choice(("runs.csv", *FILES, value())), *known, *choices]
        elif command == "explore":
            yield [
                "explore",
                "--no-browser",
                *option("--port", "--host", "--token", "--folder", "--allow-origin"),
                *draw.choice(([], ["--port", "5999"], ["--host", draw.choice(HOSTS)])),
                *draw.choice(([], [], ["--allow-origin", draw.choice(HOSTS)])),
                *draw.choice(([], [], ["--folder", draw.choice(FILES)])),
                *draw.choice(([], [], [value()])),
            ]
        elif command == "new-system":
            yield [
                "new-system",
                draw.choice((value(), *SYSTEMS)),
                *draw.choice(([], [], [value()])),
            ]
        elif command == "cite":
            further = draw.choice(([], [], [value()]))
            yield ["cite", *draw.choice(([], [name], [mutated(name)], [value()])), *further]
        else:
            yield [value(), *option("--help-", "--version=", "-x")]


def _of_a_verb(
    draw: random.Random, command: str, value: Callable[[], str], mutated: Callable[[str], str]
) -> Iterator[str]:
    """A theory or an experiment with some of its fields and options, right and wrong."""
    verbs = {**theories(), **experiments()}
    name = draw.choice(list(verbs))
    verb = verbs[name]
    yield draw.choice((name, name, name, mutated(name), value()))
    system = draw.choice(concrete(verb.systems) or [object])
    known = declarations(system) if system is not object else {}
    numbers = ("1", "2", "0.5", "3", "10", "100", "1,2", "1,2;3,4")
    for field, declaration in known.items():
        needed = system.__dataclass_fields__[field].default is dataclasses.MISSING
        if draw.random() < (0.9 if needed else 0.2):
            words = (
                [maker.__name__ for maker in makers(declaration)]
                if declaration.kind == "part"
                else list(declaration.choices)
            )
            right = str(draw.choice(words)) if words else draw.choice(numbers)
            written = draw.choice((field, field, field, mutated(field), f"{field}."))
            yield f"{written}={draw.choice((right, right, right, value()))}"
    for option in verb.options:
        if draw.random() < 0.2:
            yield f"{option}={draw.choice((*map(str, verb.choices(option)), '1', value()))}"
    if command == "phases":
        for field in draw.sample(list(known), min(len(known), draw.randrange(3))):
            ranges = ("1:2", "0.1:3:log", "1:1", "2:1", f"{value()}:{value()}", "1:2:3:4")
            yield f"{field}={draw.choice(ranges)}"
    else:
        for _ in range(draw.randrange(3)):
            yield "--over"
            values = draw.choice(
                ("1:2:3", "1,2", "0:1:5:log", value(), f"1:{value()}:4", "1:2:1e9")
            )
            yield f"{draw.choice((*known, value()))}={values}"
    for name in ("--seeds", "--show", "--against", "--out", "--order", "--level", "--resolution"):
        if draw.random() < 0.15:
            yield name
            yield draw.choice((*verbs, value())) if name == "--against" else value()


def every_file() -> Iterator[list[str]]:
    """Each file given to each command that reads one."""
    for file in FILES:
        yield ["predict", file]
        yield ["features", file]
        yield ["features", "y.npy", file]
        yield ["design", file]
        yield ["design", file, "--no-labels"]
        yield ["scaling-law", file, "--params", "n", "--data", "d"]
        yield ["width", file]
        yield ["inspect", file]
        yield ["inspect", file, "--target", "y"]
        yield ["inspect", "import.py:x", file, "--inputs", "x"]
        yield ["width", file, "--width", "n", "--learning-rate", "d"]
        yield ["scaling-law", "runs.csv", "--run", "name", "--runs", file, "--params", "n"]
        yield [
            "solve",
            "extensive_width.bayes_optimal",
            f"readout={file}",
            "input_dim=5",
            "noise=1",
            "n_train=10",
        ]


def settings(seed: int, studies: dict) -> Iterator[list[str]]:
    """`--set` of every parameter of every study, to something that nobody means."""
    draw = random.Random(seed)
    for name, study in studies.items():
        for parameter in study.defaults:
            yield [
                "run",
                name,
                "--set",
                f"{parameter}={draw.choice(draw.choice((NUMBERS, TEXTS)))}",
            ]


class Hang(BaseException):
    """A call took too long."""


def check(arguments: list[str]) -> str | None:
    """What is wrong with the end of one call in this process; None if nothing is."""

    hung = []

    def stop(number, frame):
        hung.append(True)  # told, too, where the command takes it for an error of what it runs
        raise Hang

    before = {one: signal.signal(one, stop) for one in (signal.SIGALRM, signal.SIGPROF)}
    signal.alarm(10 * LONGEST)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    try:
        result = CliRunner().invoke(app, arguments)
    except Hang:
        return "hangs"
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        for one, handler in before.items():
            signal.signal(one, handler)
    if hung:
        return "hangs"
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return f"raises {type(result.exception).__name__}: {str(result.exception)[:200]}"
    lines = [
        line
        for line in result.stderr.splitlines()
        if line.strip() and not line.startswith("warning:")
    ]
    if result.exit_code not in (0, 2) or (result.exit_code == 2 and len(lines) != 1):
        return f"exit status {result.exit_code} with {len(lines)} lines: {lines[:3]}"
    return None


def faults(tmp_path, monkeypatch, calls: Iterable[list[str]], bombs: bool = False) -> list[str]:
    """The calls that go wrong. What is accepted is built and checked, and stopped before it runs;
    of a scaling law there are few bootstraps."""
    monkeypatch.chdir(tmp_path)
    make_files(tmp_path, bombs)

    def stop(*_, **__):
        raise ValueError("accepted")

    def failed(self, task):
        return Outcome.failure(task, "accepted")

    def called(self, system, *arguments, **options):
        self._read(system, arguments, options)
        stop()

    fit = scaling_law.scaling_law
    monkeypatch.setattr("orderparam.comparison.run.sweep", stop)
    monkeypatch.setattr("orderparam.running.program.TheoryRun.__call__", failed)
    monkeypatch.setattr(
        "orderparam.running.program.TheoryRun.block_shape",
        lambda self: self.grid.block_shape(1024, self.static_dims),
    )
    monkeypatch.setattr("orderparam.running.program.ExperimentRun.__call__", failed)
    monkeypatch.setattr("orderparam.core.verb.Theory.__call__", called)
    monkeypatch.setattr("orderparam.explore.server.serve", stop)
    monkeypatch.setattr(
        scaling_law, "scaling_law", lambda runs, form, bootstrap: fit(runs, form=form, bootstrap=20)
    )
    wrong: list[str] = []
    for number, arguments in enumerate(calls):
        begin = time.perf_counter()
        fault = check(arguments)
        taken = time.perf_counter() - begin
        if fault is not None:
            wrong.append(f"{number}: {[word[:80] for word in arguments]}: {fault} ({taken:.0f} s)")
        if LOG:
            with open(LOG, "a", encoding="utf-8", errors="replace") as log:
                log.write(f"{number} {taken:.1f} s {[word[:60] for word in arguments]}: {fault}\n")
    return wrong
