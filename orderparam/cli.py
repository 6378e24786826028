"""The command line: what each command takes, and what it does with it.

Nothing heavy is imported before a command needs it. What a person can get wrong ends in one line on standard error and exit
status 2, never in a traceback.
"""

import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

import orderparam
from orderparam import printing

app = typer.Typer(
    name="orderparam",
    help="The statistical physics of learning in neural networks: theory and measurement side by side.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@contextmanager
def _clear_errors() -> Iterator[None]:
    """Mistakes of the user and of the machine as one line; exit status 2."""
    from rich.console import Console

    try:
        yield
    except KeyboardInterrupt:
        print("interrupted; finished points are kept: the same command goes on where it stopped", file=sys.stderr)
        raise typer.Exit(130) from None
    except Exception as error:
        from orderparam.core.sweep import SweepError

        if not isinstance(error, ValueError | OSError | SweepError):
            raise
        text = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.filename else str(error)
        Console(stderr=True, soft_wrap=True).print(f"[red]error:[/] {printing.plain(text)}", highlight=False)
        raise typer.Exit(2) from None


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Warnings without the source line that raised them."""
    import warnings

    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=sys.stderr)
        yield


def _version(wanted: bool) -> None:
    if wanted:
        print(f"orderparam {orderparam.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    pass


@app.command("list")
def list_studies(
    words: Annotated[
        list[str] | None, typer.Argument(help="A study, to see its parameters; or any words, to choose studies.")
    ] = None,
) -> None:
    """What can be run, room by room: name, what it shows, source, time. With a name: the parameters of that study."""
    with _clear_errors():
        from orderparam.core.study import find, studies

        known, word = studies(), " ".join(words or [])
        if not word:
            printing.study_list(known)
        elif word not in known and (chosen := {name: study for name, study in known.items() if study.mentions(word)}):
            printing.study_list(chosen)
        else:
            printing.one_study(find(word))


@app.command()
def run(
    name: Annotated[str, typer.Argument(help="A study; `orderparam list` shows them.")],
    full: Annotated[bool, typer.Option("--full", help="The sizes of the published figure.")] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change a parameter; may be repeated.")
    ] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", help="Number of independent repetitions (--set seeds=N).")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder of the result (default: results/NAME).")] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Local processes for the experiments.")] = None,
    dask: Annotated[str | None, typer.Option("--dask", metavar="ADDRESS", help="Dask scheduler for the experiments.")] = None,
) -> None:
    """Run a study: theories and experiment, agreement table, figure, result. Interrupted, it goes on where it stopped."""
    with _clear_errors(), _warnings_in_one_line():
        from orderparam.core.study import compare, find

        if workers is not None and dask is not None:
            raise ValueError("--workers and --dask exclude one another")
        study = find(name)
        changes = dict(_setting(text) for text in settings or [])
        if seeds is not None:
            changes["seeds"] = str(seeds)
        study.parameters(full, changes)
        folder = out or Path("results") / _folder(name, full, changes)
        executor = workers if dask is None else dask
        comparison = compare(study, full=full, settings=changes, out=folder, executor=executor)
        printing.comparison(comparison, folder)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ValueError(f"--set {text}: write NAME=VALUE")
    return name.strip(), value.strip()


def _folder(name: str, full: bool, changes: dict[str, str]) -> str:
    """A folder of its own for every choice of parameters."""
    parts = [name, *(["full"] if full else []), *(f"{key}={value}" for key, value in sorted(changes.items()))]
    folder = "-".join(parts).replace("/", "_").replace(" ", "")
    if len(folder.encode()) <= 200:
        return folder
    return f"{folder[:150]}-{hashlib.sha256(folder.encode()).hexdigest()[:8]}"  # file systems allow 255 bytes


@app.command()
def show(result: Annotated[Path, typer.Argument(help="The folder of a finished run.")]) -> None:
    """Print a finished run again: its parameters and its agreement table."""
    with _clear_errors():
        from orderparam.core.study import load

        printing.comparison(load(result), result)


@app.command()
def predict(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Your data (.csv, .tsv, .npz, .npy), or: digits, mnist, cifar10.")],
    target: Annotated[str | None, typer.Option("--target", help="Column or array to predict.")] = None,
    task: Annotated[
        str | None, typer.Option("--task", help="regression, even-odd, A-vs-B, A-vs-rest, one-hot (default: from the target).")
    ] = None,
    arch: Annotated[
        str, typer.Option("--arch", help="Network whose infinite-width limit learns: fc:DEPTH\\[xWIDTH]:ACTIVATION.")
    ] = "fc:1:relu",
    temperature: Annotated[
        float | None, typer.Option("--temperature", min=0, help="Ridge on the Gram matrix (default: the best by leave-one-out).")
    ] = None,
    width: Annotated[
        str | None, typer.Option("--width", metavar="N[,N...]", help="Also: what a Bayesian network of these widths would gain.")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=2, help="Random training sets per measured point.")] = 8,
    out: Annotated[Path | None, typer.Option("--out", help="New folder of the result (default: results/predict-NAME).")] = None,
) -> None:
    """Predict the learning curve of your own data, out to 100 times as many examples as you have."""
    with _clear_errors(), _warnings_in_one_line():
        from orderparam.networks import parse
        from orderparam.systems.kernel_regression.forecast import forecast, save_forecast, user_pool

        kernel, widths = parse(arch).nngp, _widths(width)
        data, targets = user_pool(file, target, task)
        name = data.name
        folder = _free_folder(out, f"predict-{Path(name.split('/')[0]).stem}")
        result = forecast(data.inputs, targets.values, kernel, temperature=temperature, seeds=seeds)
        title = f"{name}: {targets.name}, {arch}"
        printing.forecast(result, title, folder, targets.scale)
        save_forecast(result, folder, title, {"data": name, "task": targets.name, "architecture": arch})
        if widths:
            from orderparam.systems.proportional.predict import predict_width

            _, size, activation = arch.split(":")
            depth = int(size.split("x")[0])
            printing.widths(
                predict_width(data, targets, widths, temperature=result.temperature, depth=depth, activation=activation)
            )


@app.command()
def features(
    file: Annotated[str, typer.Argument(metavar="FEATURES", help="Features, one row an example (.npy, .npz, .csv, .tsv).")],
    targets: Annotated[
        str | None, typer.Argument(metavar="TARGETS", help="Their targets: a .npy file, or a column or array of FEATURES.")
    ] = None,
    task: Annotated[
        str | None, typer.Option("--task", help="regression, even-odd, A-vs-B, A-vs-rest (default: from the target).")
    ] = None,
    loss: Annotated[str, typer.Option("--loss", help="square, logistic or hinge.")] = "square",
    ridge: Annotated[
        float | None, typer.Option("--ridge", help="Penalty beside the summed loss, for features / sqrt(p) (default: the best).")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=2, help="Random training sets per measured point.")] = 8,
    out: Annotated[Path | None, typer.Option("--out", help="New folder of the result (default: results/features-NAME).")] = None,
) -> None:
    """Predict the learning curve and the best penalty of a linear model on your own features, such as a network's embeddings."""
    with _clear_errors(), _warnings_in_one_line():
        from orderparam.systems.random_features.forecast import forecast_features, save_features, user_features

        data, chosen = user_features(file, targets, task)
        folder = _free_folder(out, f"features-{Path(data.name.split('/')[0]).stem}")
        result = forecast_features(data.inputs, chosen.values, loss, ridge, seeds)
        title = f"{data.name}: {chosen.name}, {loss} loss"
        printing.features(result, title, folder)
        save_features(result, folder, title, {"data": data.name, "task": chosen.name})


def _widths(text: str | None) -> list[float]:
    try:
        widths = [float(int(part)) for part in text.split(",")] if text else []
    except ValueError:
        raise ValueError(f"--width {text}: write one or more integers, such as 50,200,1000") from None
    if any(width < 1 for width in widths):
        raise ValueError(f"--width {text}: widths must be at least 1")
    return widths


@app.command()
def exponents(
    target: Annotated[str, typer.Argument(help='A function of z1, z2, ..., such as "z1*z2*z3" or "sign(z1*z2)".')],
) -> None:
    """How hard a target is to find: information, leap and generative exponents, and the sample sizes that follow."""
    with _clear_errors(), _warnings_in_one_line():
        from orderparam.systems.multi_index import exponents as exponents_of

        print(exponents_of(target))


def _free_folder(out: Path | None, name: str) -> Path:
    """An empty folder for a result: the one asked for, else results/NAME, with the first number that is free.

    It is made at once: what cannot be written is refused before anything is computed.
    """
    if out is None:
        candidates = (Path("results") / (name if i == 1 else f"{name}-{i}") for i in range(1, 10**6))
        out = next(candidate for candidate in candidates if _is_free(candidate))
    elif not _is_free(out):
        raise ValueError(f"{out} is not empty; choose another folder with --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"cannot write {out}: {error.strerror or error}") from None
    return out


def _is_free(folder: Path) -> bool:
    return not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))


def main() -> None:
    app()


if __name__ == "__main__":
    main()
