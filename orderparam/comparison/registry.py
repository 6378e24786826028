"""The registry of studies: named, runnable figures.

A study is a function of its parameters that yields the curves to compute (or returns a list of
them). It has three sizes. The defaults of the parameters are the quick size, which takes a minute;
`gallery` holds the parameters of the figure in the documentation, which takes up to twenty minutes
of one core; `full` holds the parameters of the source's figure, or the nearest that two cores reach
in some hours:

    @study( "double-descent", title="Double descent of a finite-rank kernel", source="Canatar,
        Bordelon, Pehlevan 2021, Fig. 1", gallery={"repeats": 120}, full={"repeats": 400},
        seconds=(20, 600), panels=[Panel("n_train", "test_error", log="xy")], caption="Rank
        {rank}.", explained="Self-consistent equations are exact for wide spectra: at few modes the
        second moment is missing.",
    )
    def double_descent(rank: int = 50, repeats: int = 60) -> Iterator[Curve]:
        system = KernelRegression(...)
        yield Curve("self-consistent", self_consistent, system, {"n_train": ...})
        yield Curve("Gaussian design", gaussian_design, system, {"n_train": ...}, seeds=repeats)

The list, the command line and the gallery are generated from this registry.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any

from orderparam.comparison.curve import Curve
from orderparam.core import registry
from orderparam.core.declared import topic_of
from orderparam.core.names import nearest
from orderparam.core.outline import Size, parameters_of

if TYPE_CHECKING:
    from orderparam.comparison.comparison import Comparison
    from orderparam.plotting import Freehand, Panel

Panels = Sequence["Panel | Freehand"] | Callable[[Mapping[str, Any]], Sequence["Panel | Freehand"]]


@dataclass(frozen=True)
class Study:
    """A registered study; made by the decorator `study`.

    name: its name on the command line; seconds: expected time of the quick and of the full size on
    two cores; gallery, full: the parameters that these sizes change, see `parameters`; observables:
    those in the agreement table. The figure is drawn from `panels` (records, or a function from the
    parameters to them), in `columns` if given, above a `caption` formatted with the parameters ("d
    = {input_dim}"); or by `draw`, from a finished `Comparison` to a figure. explained: a sentence
    or two on why measurement and theory differ by more than three standard errors at quick size,
    where they do; `orderparam show` and the table of all studies print it.

    Two further sentences stand in this table, where a study proves what it says although its row
    looks otherwise. metastable: why chains keep the state that they reach, and where this is seen;
    it counts only where a panel draws the runs `one_by_one`. coarse: why errors of more than 5 % of
    the theory suffice for the title.
    """

    name: str
    title: str
    source: str
    build: Callable[..., list[Curve]]
    gallery: Mapping[str, Any]
    full: Mapping[str, Any]
    seconds: tuple[float, float]
    observables: tuple[str, ...]
    panels: Panels
    caption: str
    columns: int | None
    draw: Callable[["Comparison"], Any] | None
    explained: str = ""
    metastable: str = ""
    coarse: str = ""

    @property
    def topic(self) -> str:
        """The topic of `orderparam.systems` to which the study belongs, or the module that defines
        it."""
        return topic_of(self.build.__module__)

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The quick value of every parameter."""
        return {
            name: parameter.default
            for name, parameter in inspect.signature(self.build).parameters.items()
        }

    def parameters(
        self, size: Size = "quick", settings: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The parameters of one run at a size, see `orderparam.core.outline.parameters_of`."""
        return parameters_of(self, size, settings)

    def panels_at(self, parameters: Mapping[str, Any]) -> Sequence["Panel | Freehand"]:
        """The panels of a figure with these parameters; none where it has a function `draw`."""
        return self.panels(parameters) if callable(self.panels) else self.panels

    def shows_runs(self, parameters: Mapping[str, Any]) -> bool:
        """Whether a panel of the figure draws the runs one by one."""
        return any(getattr(panel, "one_by_one", False) for panel in self.panels_at(parameters))


_registry: dict[str, Study] = registry.studies_made


def study(
    name: str,
    *,
    title: str,
    source: str,
    seconds: tuple[float, float],
    observables: Sequence[str] = ("test_error",),
    gallery: Mapping[str, Any] | None = None,
    full: Mapping[str, Any] | None = None,
    panels: Panels = (),
    caption: str = "",
    columns: int | None = None,
    draw: Callable[["Comparison"], Any] | None = None,
    explained: str = "",
    metastable: str = "",
    coarse: str = "",
) -> Callable[[Callable[..., Iterable[Curve]]], Study]:
    """Registers the decorated function (parameters -> curves) as a study: see `Study`.

    Args:
        name: Its name on the command line.
        title: What the figure shows, as one sentence.
        source: Authors and year of what it reproduces.
        seconds: Expected time of the quick and of the full size on two cores.
        observables: Those in the agreement table.
        gallery, full: The parameters that these sizes change.
        panels: `Panel` records, or a function from the parameters to them.
        caption: Text below the figure, formatted with the parameters ("d = {input_dim}").
        columns: Number of axes in a row.
        draw: In place of `panels`, a function from a finished `Comparison` to a figure.
        explained: Why measurement and theory differ by more than three standard errors, where they
            do.
        metastable: Why chains do not leave the state that they reach, where more than a tenth of
            the runs do not converge for this reason; a panel must draw the runs `one_by_one`.
        coarse: Why the errors suffice for the title where they exceed 5 % of the theory.

    Raises:
        ValueError: for a name that another module's study has, for both or neither of `panels` and
            `draw`, for a parameter without a default, and for a parameter in `gallery` or `full`
            that the function does not have.
    """
    if (draw is None) == (panels == ()):
        raise ValueError(f"study {name!r}: give either panels or draw")

    def register(function: Callable[..., Iterable[Curve]]) -> Study:
        @wraps(function)
        def build(*args: Any, **parameters: Any) -> list[Curve]:
            return list(function(*args, **parameters))

        if name in _registry and _registry[name].build.__module__ != build.__module__:
            raise ValueError(f"two studies are called {name!r}")
        words = (explained, metastable, coarse)
        shown = (tuple(observables), panels, caption, columns, draw, *words)
        made = Study(
            name, title, source, build, dict(gallery or {}), dict(full or {}), seconds, *shown
        )
        for parameter, default in made.defaults.items():
            if default is inspect.Parameter.empty:
                raise ValueError(
                    f"study {name!r}: parameter {parameter!r} needs a default, its quick value"
                )
        for parameter in {**made.gallery, **made.full}:
            if parameter not in made.defaults:
                raise ValueError(
                    f"study {name!r} has no parameter {parameter!r} (in gallery or "
                    f"full){nearest(parameter, list(made.defaults))}"
                )
        _registry[name] = made
        return made

    return register


def studies() -> dict[str, Study]:
    """All studies by name: those of the topics, of installed packages, and of files that were
    loaded.

    >>> "double-descent-finite-rank" in op.studies()
    True
    """
    registry.load_all()
    return dict(sorted(_registry.items()))


def is_registered(name: str) -> bool:
    """True if there is a study of that name, decided without loading a person's file."""
    return name in _registry or any(
        entry.kind == "study" and entry.name == name for entry in registry.index()
    )


def absent(summary: Mapping[str, Any]) -> Study:
    """Stands for a study whose file is not loaded: its results can be read, but not drawn."""

    def build(**_: Any) -> list[Curve]:
        raise ValueError(
            f"study {summary['study']!r} is not known here: load its file first, by "
            "`find('FILE.py:NAME')`"
        )

    shown = dict.fromkeys(
        entry["observable"] for entries in summary["agreement"].values() for entry in entries
    )
    words = (summary["study"], summary["title"], summary["source"])
    made = Study(*words, build, {}, {}, (0, 0), tuple(shown), (), "", None, lambda _: build())
    made.__dict__["defaults"] = dict(summary["parameters"])
    return made


def find(name: str) -> Study:
    """The study of that name, or of `path/to/file.py:NAME` in a person's own file (`:NAME` may be
    left out where the file has only one).

    Only the module of the study is imported. Raises `ValueError` with the nearest name.
    """
    path, _, own = name.rpartition(":") if ".py:" in name else (name, "", "")
    if path.endswith(".py"):
        module = registry.load_file(path)
        there = {
            study.name: study
            for study in _registry.values()
            if study.build.__module__ == module.__name__
        }
        if not own and len(there) == 1:
            return next(iter(there.values()))
        if own not in there:
            missing = (
                f"has no study {own!r}" if own else f"has {len(there)} studies: write {path}:NAME"
            )
            raise ValueError(f"{path} {missing}{nearest(own, list(there))}")
        return there[own]
    if name not in _registry:
        registry.load_entry("study", name)
    return _registry[name]
