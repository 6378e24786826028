"""A forecast of the learning curve of a person's own rows, and how it depends on the width of the
network."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import panel as pn
from bokeh.models import ColumnDataSource, LegendItem, Span

from orderparam.analysis.phases.axes import Axis
from orderparam.core.text import with_error
from orderparam.explore.curves import INK, PAPER, dressed_legend, plain_figure
from orderparam.explore.evaluate import Latest, Stale
from orderparam.explore.folder import KINDS, LARGEST, files, inside, uploaded
from orderparam.explore.knobs import STEPS, Knob
from orderparam.explore.menu import Menu
from orderparam.explore.slider import Slider
from orderparam.explore.upload import Upload
from orderparam.learning_curves import Forecast, Problem, forecast_problem, from_file
from orderparam.plotting.style import COLOURS
from orderparam.running.estimate import estimate

ACTIVATIONS = ("relu", "erf", "sign", "linear")
DEEPEST = 6
RIDGE = Knob("ridge", "beside the Gram matrix", "> 0", Axis("ridge", 1e-6, 1e2, True), whole=False)
ORDERS = 8  # number of random orders of the rows, small so that the page answers soon
WIDTHS = (10, 10_000)


@dataclass(frozen=True, eq=False)
class Asked:
    """The settings of a forecast. ridge: None for the best one. width: None for a network of
    infinite width."""

    problem: Problem
    activation: str
    depth: int
    ridge: float | None
    width: float | None

    @property
    def arch(self) -> str:
        return f"fc:{self.depth}:{self.activation}"


def forecast_of(asked: Asked) -> Forecast:
    """The forecast of the learning curve that the person asked for."""
    return forecast_problem(
        asked.problem, arch=asked.arch, ridge=asked.ridge, orders=ORDERS, compare=False
    )


def gain_of_width(asked: Asked, forecast: Forecast) -> str:
    """A sentence on the gain of a Bayesian network of this width over its infinite limit."""
    from orderparam.core.registry import find_tool
    from orderparam.data import Dataset, Targets

    problem = asked.problem
    rows = np.random.default_rng(0).permutation(len(problem.inputs))[:600]
    data = Dataset(problem.inputs[rows], np.zeros(len(rows)), problem.name)
    targets = Targets(problem.task, np.arange(len(rows)), problem.targets[rows])
    assert asked.width is not None
    report = find_tool("proportional.predict_width")(
        data,
        targets,
        [asked.width],
        temperature=forecast.ridge,
        depth=asked.depth,
        activation=asked.activation,
    )
    return f"At width {asked.width:g}: {report.attrs['verdict']}"


class YourData:
    """The page of a person's own rows. post: runs a function in the page's own thread."""

    def __init__(
        self, folder: Path, dark: bool, post: Callable[[Callable[[], None]], None]
    ) -> None:
        self._folder, self._dark, self._post = folder, dark, post
        self._problem: Problem | None = None
        # the request whose answer is shown; answers to earlier ones are dropped
        self._asked: Asked | None = None
        self._latest = Latest(self._work)
        wide = {"sizing_mode": "stretch_width"}
        self.upload = Upload(label="a file of yours", accept=",".join(KINDS), **wide)
        self.file = Menu(
            name="or one in the explorer's folder", options=["", *files(folder)], **wide
        )
        self.target = pn.widgets.TextInput(
            name="column to predict (empty: y, or the last)", max_length=80, **wide
        )
        self.activation = pn.widgets.Select(
            name="activation", options=list(ACTIVATIONS), value="relu", **wide
        )
        self.depth = pn.widgets.IntInput(
            name="hidden layers", value=1, start=1, end=DEEPEST, **wide
        )
        self.best = pn.widgets.Checkbox(name="the best ridge (leave-one-out)", value=True)
        self.ridge = Slider(
            label="ridge",
            meaning="beside the Gram matrix",
            position=STEPS // 2,
            steps=STEPS,
            **wide,
        )
        self.width = pn.widgets.TextInput(name="width (empty: infinite)", max_length=8, **wide)
        self.status = pn.pane.HTML("", **wide)
        self.words = pn.pane.HTML("", **wide)
        self._curve, self._marks = (
            ColumnDataSource({"x": [], "y": [], "low": [], "high": []}) for _ in range(2)
        )
        self.figure = self._figure()
        for one in (self.activation, self.depth, self.best, self.width):
            one.param.watch(lambda _: self.ask(), "value")
        self.ridge.param.watch(lambda _: self._ridged(), "position")
        self.ridge.param.watch(lambda event: self._typed(event.new), "typed")
        self._source: Upload | Menu = self.upload
        self.upload.param.watch(lambda _: self._choose(self.upload), "chosen")
        self.file.param.watch(lambda _: self._choose(self.file), "value")
        self.target.param.watch(lambda _: self.read(), "value")
        controls = pn.Column(
            self.upload,
            pn.pane.HTML(
                f"<small>{', '.join(KINDS)}; at most {LARGEST // 2**20} MB; it stays on this "
                "machine.</small>"
            ),
            self.file,
            self.target,
            self.activation,
            self.depth,
            self.best,
            self.ridge,
            self.width,
            min_width=280,
            styles={"flex": "1 1 240px"},
            **wide,
        )
        plot = pn.pane.Bokeh(self.figure, **wide)
        result = pn.Column(
            self.status, plot, self.words, min_width=290, styles={"flex": "3 1 420px"}, **wide
        )
        self.view = pn.FlexBox(controls, result, flex_wrap="wrap", align_items="flex-start", **wide)

    def _figure(self) -> Any:
        plot = plain_figure(
            True, True, self._dark, "training examples $$n$$", "error / variance of the target"
        )
        band = plot.varea(
            "x", "low", "high", source=self._curve, fill_color=COLOURS[0], fill_alpha=0.18
        )
        line = plot.line("x", "y", source=self._curve, line_color=COLOURS[0], line_width=2.2)
        bars = plot.segment("x", "low", "x", "high", source=self._marks, line_color=INK[self._dark])
        ink = {"fill_color": INK[self._dark], "line_color": PAPER[self._dark]}
        marks = plot.scatter("x", "y", source=self._marks, size=7, **ink)
        self._now = Span(
            dimension="height",
            line_color=INK[self._dark],
            line_alpha=0.4,
            line_dash="dotted",
            visible=False,
        )
        plot.add_layout(self._now)
        items = [
            LegendItem(label="predicted, 95 % interval", renderers=[line, band]),
            LegendItem(label="measured on held-out rows", renderers=[marks, bars]),
        ]
        plot.add_layout(dressed_legend(items, self._dark), "above")
        return plot

    def _choose(self, source: Upload | Menu) -> None:
        """The file that was chosen last is read."""
        if source is self.upload:
            self.file.value = ""  # this causes an event too, so the source is set after it
        self._source = source
        self.read()

    def read(self) -> None:
        """Reads the file that is named or uploaded, and reports what is wrong with it."""
        target = self.target.value.strip() or None
        try:
            if self._source is self.upload and self.upload.chosen:
                name, content, size = self.upload.file()
                with uploaded(name, content, size) as path:
                    self._problem = from_file(str(path), target)
            elif self._source is self.file and self.file.value:
                self._problem = from_file(str(inside(self._folder, self.file.value)), target)
            else:
                return
        except (ValueError, OSError) as error:
            self._problem = self._asked = None
            self._clear()
            self._say(str(error))
            return
        self.ask()

    def _ridged(self) -> None:
        """A ridge that is chosen is no longer the best one."""
        self.ridge.shown = f"{RIDGE.value(self.ridge.position):g}"
        self.best.value = False
        self.ask()

    def _typed(self, typed: Sequence[Any]) -> None:
        try:
            self.ridge.position = RIDGE.position(float(str(typed[0])))
        except (ValueError, IndexError):
            self._say("the ridge must be a number")

    def ask(self) -> None:
        """Asks for the forecast that the controls describe."""
        if self._problem is None:
            return
        self._asked = None
        ridge = None if self.best.value else float(RIDGE.value(self.ridge.position))
        width = None
        if self.width.value.strip():
            try:
                width = float(self.width.value)
            except ValueError:
                width = np.nan
            if not WIDTHS[0] <= width <= WIDTHS[1]:
                self._say(
                    f"width = {self.width.value}: must be a number from {WIDTHS[0]} to {WIDTHS[1]}"
                )
                return
        asked = Asked(
            self._problem, self.activation.value, int(self.depth.value or 1), ridge, width
        )
        self._asked = asked
        self._say(f"{asked.arch}: learning {len(self._problem.inputs)} rows ...")
        self._latest.ask(asked)

    def _work(self, asked: Asked, stale: Callable[[], bool]) -> None:
        try:
            found = forecast_of(asked)
            if stale():
                raise Stale
            self._answer(asked, lambda: self._draw(found, ""))
            more = gain_of_width(asked, found) if asked.width is not None else ""
        except Stale:
            raise
        except Exception as error:  # any error that a file causes is shown on the page
            name, reason = asked.problem.name, str(error)
            reason = reason if name in reason else f"{name}: {reason}"
            self._answer(asked, lambda: self._say(reason))
            return
        if more:
            self._answer(asked, lambda: self._draw(found, more))

    def _answer(self, asked: Asked, show: Callable[[], None]) -> None:
        """Shows an answer, unless another request was made or refused in the meantime."""
        self._post(lambda: show() if asked is self._asked else None)

    def _clear(self) -> None:
        """Removes everything that belongs to an earlier file."""
        for source in (self._curve, self._marks):
            source.data = {"x": [], "y": [], "low": [], "high": []}
        self._now.visible = False
        self.words.object = ""

    def _draw(self, found: Forecast, more: str) -> None:
        data = found.predicted
        self._curve.data = {
            "x": data["n_train"].values,
            "y": data["test_error"].values,
            "low": data["lower"].values,
            "high": data["upper"].values,
        }
        mean, error = (one.values for one in estimate(found.measured, "test_error"))
        error = np.nan_to_num(error)
        low = np.maximum(mean - error, 1e-3 * mean)
        self._marks.data = {
            "x": found.measured["n_train"].values,
            "y": mean,
            "low": low,
            "high": mean + error,
        }
        self._now.update(location=found.examples, visible=True)
        rows = []
        for times in (1, 2, 10, 100):
            value, low, high = found.at(times * found.examples)
            rows.append(
                f"<tr><td>{times * found.examples}</td><td>{value:.4g}</td><td>{low:.3g} to "
                f"{high:.3g}</td></tr>"
            )
        last = with_error(float(mean[-1]), float(error[-1])) if error[-1] else f"{mean[-1]:.4g}"
        notes = "".join(
            f"<li>{escape(note)}</li>" for note in (*found.notes, *([more] if more else []))
        )
        self.words.object = (
            f"<p>{escape(found.problem.name)}, {escape(found.problem.task)}: {found.examples} "
            f"rows. Ridge {found.ridge:.3g}; leave-one-out error {found.leave_one_out:.4g}; last "
            f"measured {last}. Error 1 is the variance of "
            f"{escape(', '.join(found.problem.names))}.</p>"
            "<table><caption>forecast</caption><tr><th scope=col>rows</th>"
            "<th scope=col>error</th><th scope=col>95 %</th></tr>"
            f"{''.join(rows)}</table><ul>{notes}</ul>"
        )
        self._say(
            f"{found.arch}: error falls as n^-{found.exponent():.2f} over the next decade of rows"
        )

    def _say(self, words: str) -> None:
        self.status.object = f'<p role="status" aria-live="polite">{escape(words)}</p>'

    def end(self) -> None:
        self._latest.end()
