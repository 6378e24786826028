"""`orderparam phases`: the phase diagram of one theory, or its transition along one field."""

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orderparam.cli import completion
from orderparam.cli.arguments import check_own, result_folder
from orderparam.cli.errors import clear_errors, warnings_in_one_line
from orderparam.cli.limits import SEEDS, within_memory
from orderparam.cli.parameters import check_fields, described
from orderparam.cli.terminal import console, plain
from orderparam.running.lock import may_stay

if TYPE_CHECKING:
    from orderparam.analysis.phases.diagram import PhaseDiagram

Name = Annotated[
    str,
    typer.Argument(help="A theory (`orderparam list theories`).", autocompletion=completion.verbs),
]
Settings = Annotated[
    list[str],
    typer.Argument(
        metavar="X=LOW:HIGH[:log] [Y=LOW:HIGH[:log]] [NAME=VALUE...]",
        help="Two ranges: a phase diagram; one: the transition on that line. Then the other "
        "fields and options.",
        autocompletion=completion.arguments,
    ),
]
Order = Annotated[
    str | None,
    typer.Option(
        "--order",
        metavar="OBSERVABLE",
        help="The order parameter (default: the theory's first).",
    ),
]
Level = Annotated[
    str | None,
    typer.Option(
        "--level",
        help="Value of the order parameter at the boundary, or middle (default: where it "
        "vanishes, jumps or diverges).",
    ),
]
Resolution = Annotated[
    int, typer.Option("--resolution", help="Squares along each axis: 8, 16, 32, 64, ...")
]
Seeds = Annotated[
    int | None,
    typer.Option("--seeds", help="Runs at each point, for an experiment along one field."),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="Folder of the result (default: results/phases-...)."),
]


def phases(
    name: Name,
    settings: Settings,
    order: Order = None,
    level: Level = None,
    resolution: Resolution = 32,
    seeds: Seeds = None,
    out: Out = None,
) -> None:
    """Compute the phase diagram of a theory in the plane of two fields, or its transition along
    one. The same command later resumes where it stopped."""
    with clear_errors(), warnings_in_one_line(), within_memory():
        from orderparam.core.given import assignments, read
        from orderparam.core.registry import find, full_name

        given = assignments(settings)
        over = _ranges(given)
        if not 8 <= resolution <= 1024:
            raise ValueError(f"--resolution {resolution}: must be 8, 16, 32, ... 1024")
        if seeds is not None and not 4 <= seeds <= SEEDS:
            raise ValueError(f"--seeds {seeds}: must be at least 4 and at most {SEEDS}")
        full_name(name)  # an unknown name is refused before anything is imported
        first = {field: str(ends[0]) for field, ends in over.items()}
        check_fields(name, {**given, **first})
        from orderparam.analysis import phase_diagram, transition
        from orderparam.core.verb import Experiment

        at_level = None if level is None else _level(level)
        verb = find(name)
        if isinstance(verb, Experiment) and len(over) == 2:
            raise ValueError(
                f"{verb.name} is an experiment: its transition is measured along one field; give "
                "one range"
            )
        # the description is stored, so that the next mistake is refused before anything is imported
        described(name)
        system, options = read(verb, {**given, **first}, {})
        order = order or next(iter(verb.results[0].dims()))
        folder = out or Path("results") / result_folder(
            f"phases-{verb.name}", "quick", {**given, "order": order}
        )
        check_own(folder, ["points", "diagram.zarr"])
        shared: Any = {"order": order, "level": at_level, "store": folder / "points"}
        if len(over) == 1:
            found = transition(partial(verb, **options), system, over, seeds=seeds, **shared)
            console().print(plain(repr(found)), highlight=False, soft_wrap=True)
            return
        with console().status("evaluating the plane"):
            plane = phase_diagram(
                partial(verb, **options), system, over, resolution=resolution, **shared
            )
        _report(plane, folder)


def _ranges(given: dict[str, str]) -> dict[str, tuple[Any, ...]]:
    """The fields of the axes and their ranges. Raises `ValueError` unless there are one or two."""
    from orderparam.cli.ranges import is_range, plane_range

    over = {field: plane_range(field, text) for field, text in given.items() if is_range(text)}
    if len(over) not in (1, 2):
        raise ValueError(
            f"{len(over)} ranges are given: write one or two as NAME=LOW:HIGH or NAME=LOW:HIGH:log"
        )
    return over


def _report(plane: "PhaseDiagram", folder: Path) -> None:
    """Prints the phase diagram, and writes its data and its figure into the folder."""
    from orderparam.analysis.phases.files import write
    from orderparam.plotting import save

    console().print(plain(repr(plane)), highlight=False, soft_wrap=True)
    write(plane, folder)
    drawn = (folder / "figure.png").is_file()
    with may_stay(folder, "figure") if drawn else nullcontext():
        save(plane.figure(), folder / "figure")
    console().print(
        f"figure: {plain(str(folder / 'figure.png'))} (and .pdf); data: {plain(str(folder))} "
        "(.zarr, .csv)",
        highlight=False,
        soft_wrap=True,
    )


def _level(text: str) -> float | str:
    """The value of --level as `phase_diagram` takes it. Raises `ValueError` for other words."""
    from orderparam.analysis.phases.brackets import MIDDLE

    if text == MIDDLE:
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(
            f"--level {text}: must be a number, or middle for the middle of the range of values"
        ) from None
