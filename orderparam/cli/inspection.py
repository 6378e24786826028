"""`orderparam inspect`: the order parameters of a trained network, from files."""

import math
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orderparam import __version__
from orderparam.cli.arguments import free_folder
from orderparam.cli.errors import clear_errors, warnings_in_one_line
from orderparam.cli.limits import within_memory
from orderparam.cli.terminal import console, plain

if TYPE_CHECKING:
    import numpy as np

    from orderparam.observables.inspection import Inspection
    from orderparam.observables.theory_comparison import TheoryComparison


Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="Activations and weights (.npy, .npz, .safetensors); or a model, FILE.py:NAME or "
        "package.module:NAME, and the files of its data.",
    ),
]
Target = Annotated[
    str | None,
    typer.Option("--target", help="Targets: the name of an array in FILE, or a .npy file."),
]
Inputs = Annotated[
    str | None,
    typer.Option("--inputs", help="Of a model: the name of an array in FILE, or a .npy file."),
]
Parameters = Annotated[
    str | None,
    typer.Option("--parameters", help="Of a PyTorch module or a function: .safetensors or .npz."),
]
Init = Annotated[
    str | None,
    typer.Option(
        "--init",
        help="The same before training: arrays under the same names, parameters, or a model.",
    ),
]
HeldOut = Annotated[
    str | None,
    typer.Option(
        "--held-out",
        metavar="FILE",
        help="Of a model: examples not trained on, under the names of --inputs and --target.",
    ),
]
Seeds = Annotated[
    list[str] | None,
    typer.Option("--seeds", help="The same arrays of another training; may be repeated."),
]
Rate = Annotated[
    float | None,
    typer.Option(
        "--rate",
        help="Of a model: learning rate of gradient descent on the mean of |f - y|^2, for the "
        "largest curvature.",
    ),
]
LearningCoefficient = Annotated[
    str | None,
    typer.Option(
        "--learning-coefficient",
        metavar="T",
        help="Of a model: also the learning coefficient, up to T examples times inverse "
        "temperature; auto: n / ln n. Takes minutes.",
    ),
]
Loss = Annotated[
    str,
    typer.Option(
        "--loss",
        help="Of the learning coefficient and of the curvature: square or cross-entropy.",
    ),
]
Theory = Annotated[
    bool,
    typer.Option(
        "--theory", help="Also: which theories describe the model, and what they predict."
    ),
]
Temperature = Annotated[
    float | None,
    typer.Option(
        "--temperature",
        help="With --theory: of the posterior, if the model is a sample of it.",
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        help="Labels of examples that depend on one another (the text of each token): the name "
        "of an array in FILE, or a .npy file.",
    ),
]
Minutes = Annotated[
    float,
    typer.Option(
        "--minutes", help="Of one core, for the tangent kernel and the learning coefficient."
    ),
]
Memory = Annotated[float, typer.Option("--memory", help="GiB for the tangent kernel, at least 1.")]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer permutations.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="New folder of the result (default: results/inspect-NAME)."),
]


def inspect(
    files: Files,
    target: Target = None,
    inputs: Inputs = None,
    parameters: Parameters = None,
    init: Init = None,
    held_out: HeldOut = None,
    seeds: Seeds = None,
    rate: Rate = None,
    learning_coefficient: LearningCoefficient = None,
    loss: Loss = "square",
    theory: Theory = False,
    temperature: Temperature = None,
    groups: Groups = None,
    minutes: Minutes = 10.0,
    memory: Memory = 4.0,
    quick: Quick = False,
    out: Out = None,
) -> None:
    """Measure a trained network: similarity and alignment of its layers, outliers and tails of its
    weights, dimension; each with an interval and a null hypothesis."""
    with clear_errors(), warnings_in_one_line(), within_memory():
        from orderparam.core.paths import expanded
        from orderparam.core.reading import existing
        from orderparam.observables.budget import Budget
        from orderparam.observables.files import KINDS, is_model
        from orderparam.observables.inspection import inspect as measure

        given = (*files, *(one for one in (parameters, init, held_out) if one), *(seeds or []))
        for file in given:
            if not is_model(file):
                existing(expanded(file), KINDS)
        of_model = is_model(files[0])
        _check(
            of_model,
            inputs,
            parameters,
            held_out,
            rate,
            learning_coefficient,
            loss,
            theory,
            temperature,
            target,
        )
        until, budget = _until(learning_coefficient), Budget(memory, minutes)
        name = files[0].rpartition(":")[2] if of_model else Path(files[0]).stem
        with free_folder(out, f"inspect-{name}") as folder:
            with console().status("measuring"):
                if of_model:
                    asked = _of_model(
                        files, target, inputs, parameters, init, held_out, seeds, groups
                    )
                else:
                    asked = {"model": files, "targets": target, "initial": init, "groups": groups}
                    asked["seeds"] = seeds or ()
                found = measure(
                    **asked,
                    rate=rate,
                    learning_coefficient=until,
                    budget=budget,
                    loss=loss,  # type: ignore[arg-type]  # it was checked
                    quick=quick,
                )
            _require_a_number(found)
            console().print(plain(str(found)), highlight=False, soft_wrap=True)
            wanted = theory and not found.interrupted
            compared = _compared(found, temperature, rate) if wanted else None
            _write(found, folder, compared)
        console().print(
            f"report: {plain(str(folder / 'report.html'))}; numbers: "
            f"{plain(str(folder / 'observed.zarr'))}",
            soft_wrap=True,
        )
        if found.interrupted:
            raise typer.Abort  # its status is that of an interrupt


def _compared(
    found: "Inspection", temperature: float | None, rate: float | None
) -> "TheoryComparison":
    """The comparison with the theories that describe the model; it is printed."""
    from orderparam.observables.theory_comparison import compare_with_theory

    with console().status("comparing with theory"):
        compared = compare_with_theory(found, temperature=temperature, rate=rate)
    console().print("\n" + plain(str(compared)), highlight=False, soft_wrap=True)
    return compared


def _require_a_number(found: "Inspection") -> None:
    """Raises `ValueError` with the first reason if no number could be measured at all."""
    parts = {**found.layers, **found.weights, "the network": found.network}
    numbers = [(name, one) for name, part in parts.items() for one in part]
    if numbers and not any(math.isfinite(one.value) for _, one in numbers):
        name, one = numbers[0]
        raise ValueError(f"nothing can be measured: {name}: {one.note}")


def _until(text: str | None) -> Any:
    """The value of --learning-coefficient as `inspect` takes it."""
    if text is None or text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(
            f"--learning-coefficient {text}: must be auto, or the largest t as a number"
        ) from None


def _check(
    of_model: bool,
    inputs: str | None,
    parameters: str | None,
    held_out: str | None,
    rate: float | None,
    learning_coefficient: str | None,
    loss: str,
    theory: bool,
    temperature: float | None,
    target: str | None,
) -> None:
    """Options that belong together."""
    if of_model and inputs is None:
        raise ValueError("--inputs: a model needs inputs; name an array of a file, or a .npy file")
    for option, value in (
        ("--inputs", inputs), ("--parameters", parameters), ("--held-out", held_out),
        ("--rate", rate), ("--learning-coefficient", learning_coefficient),
        ("--theory", theory), ("--temperature", temperature),
    ):  # fmt: skip
        if value and not of_model:
            raise ValueError(f"{option}: is for a model (FILE.py:NAME), not for saved arrays")
    if theory and (held_out is None or target is None):
        raise ValueError("--theory: needs --target and --held-out, examples not trained on")
    if loss not in ("square", "cross-entropy"):
        raise ValueError(f"--loss {loss}: must be square or cross-entropy")
    if temperature is not None and not theory:
        raise ValueError("--temperature: is for --theory")


def _of_model(
    files: list[str],
    target: str | None,
    inputs: str | None,
    parameters: str | None,
    init: str | None,
    held_out: str | None,
    seeds: list[str] | None,
    groups: str | None,
) -> dict[str, Any]:
    """The arguments of `inspect` for a model."""
    from orderparam.observables.files import is_model, model_at, read_all, target_of

    arrays = read_all(files[1:])

    def model_or_file(place: str) -> Any:
        return model_at(place) if is_model(place) else place

    fresh: tuple[np.ndarray | None, np.ndarray | None] | None = None
    if held_out is not None:
        other = read_all([held_out])
        fresh = target_of(other, inputs)[1], target_of(other, target)[1]
        if target is None:
            raise ValueError("--held-out: needs --target")
    return {
        "model": model_at(files[0]),
        "inputs": target_of(arrays, inputs)[1],
        "targets": target_of(arrays, target)[1],
        "groups": target_of(arrays, groups)[1],
        "parameters": parameters,
        "initial": None if init is None else model_or_file(init),
        "held_out": fresh,
        "seeds": [model_or_file(one) for one in seeds or ()],
    }


def _write(found: "Inspection", folder: Path, compared: "TheoryComparison | None") -> None:
    from orderparam.plotting.folder import write_folder

    numbers = {
        head: {one.name: [one.value, one.low, one.high, one.p_value] for one in part}
        for head, part in (
            *found.layers.items(),
            *found.weights.items(),
            ("network", found.network),
        )
    }
    command = shlex.join(["orderparam", *sys.argv[1:]])
    summary = {
        "title": found.title,
        "command": command,
        "version": __version__,
        "numbers": numbers,
        "missing": found.missing,
    }
    data = {"observed": found.dataset()}
    if compared is not None:
        data["theories"] = compared.dataset()
        summary["theory"] = compared.sentence
    pages = {"report.html": found.html(compared, command)}

    def draw() -> Any:
        return found.figure(compared)

    write_folder(folder, data, draw, summary, "observed.zarr", attributes=True, pages=pages)
