"""The tab of the phase plane: two numbers, an order parameter, and the diagram as it fills in."""

from collections.abc import Callable
from functools import partial
from html import escape
from typing import Any

import panel as pn

from orderparam.core.errors import SweepError
from orderparam.explore.controls import Axes, moved_to
from orderparam.explore.curves import spoken
from orderparam.explore.evaluate import Latest, Stale
from orderparam.explore.menu import Menu
from orderparam.explore.phases import planes
from orderparam.explore.plane import PlaneFigure, plane_key
from orderparam.explore.state import RESOLUTIONS, PageState, observables

_WIDE: dict[str, Any] = {"sizing_mode": "stretch_width"}


class PlaneTab:
    """change: asks the page for another state. tell: one sentence for the person. post: runs a
    function in the page's thread."""

    def __init__(
        self,
        dark: bool,
        change: Callable[[PageState], None],
        tell: Callable[[str], None],
        post: Callable[[Callable[[], None]], None],
    ) -> None:
        self._dark, self._change, self._tell, self._post = dark, change, tell, post
        self._state: PageState | None = None
        self._figure: PlaneFigure | None = None
        self._planes = Latest(self._fill)
        self._ended = False
        self.order = Menu(name="order parameter", options=[], width=200)
        self.order.param.watch(lambda event: self._ordered(event.new), "value")
        self.finest = pn.widgets.Select(
            name="squares along each axis", options=list(RESOLUTIONS), value=32, width=160
        )
        self.fill = pn.widgets.Button(
            name="Fill in", button_type="primary", width=90, margin=(25, 5, 5, 5)
        )
        self.halt = pn.widgets.Button(name="Cancel", width=90, margin=(25, 5, 5, 5), disabled=True)
        self.fill.on_click(lambda _: self._ask())
        self.halt.on_click(lambda _: self._halt())
        self.y_axis = pn.Column(width=300)
        self.words = pn.pane.HTML("", **_WIDE)
        self.plot = pn.Column(min_width=300, **_WIDE)
        controls = pn.FlexBox(
            self.y_axis,
            self.order,
            self.finest,
            self.fill,
            self.halt,
            align_items="flex-start",
            **_WIDE,
        )
        self.found = pn.pane.HTML("", **_WIDE)
        self.view = pn.Column(controls, self.words, self.plot, self.found, **_WIDE)

    def clear(self) -> None:
        """Clears the plane for another system."""
        self._figure = None
        self.plot.clear()
        self.words.object = self.found.object = ""

    def renew(self, state: PageState) -> None:
        """Makes the controls again for the present choices."""
        self._state = state
        available = observables(state)
        self.order.param.update(
            options=available, value=state.order if state.order in available else None
        )
        self.y_axis.objects = [Axes(state, "y", self._change, self._tell).view] if state.y else []
        self.fill.disabled = not (state.y and state.order and state.theories)

    def follow(self, state: PageState) -> None:
        """Shows the place of a state in the plane."""
        self._state = state
        if self._figure is not None and self._figure.key == plane_key(state, self._dark):
            self._figure.mark(state.value(state.x), state.value(state.y))

    def end(self) -> None:
        self._ended = True
        self._planes.end()

    def _ordered(self, name: Any) -> None:
        state = self._state
        if state is not None and name and name != state.order and name in observables(state):
            self._change(state.with_(order=name))

    def _ask(self) -> None:
        state = self._state
        if state is None or not (state.y and state.order and state.theories):
            return
        if state.x == state.y:
            self._tell("the two axes of the plane must be different numbers")
            return
        self._figure = PlaneFigure(state, self._dark, self._clicked)
        self.follow(state)
        self.plot.objects = [pn.pane.Bokeh(self._figure.plot, **_WIDE)]
        self.halt.disabled = False
        self.words.object = "<p>evaluating the corners ...</p>"
        self._planes.ask((state, int(self.finest.value), self._figure))

    def _halt(self) -> None:
        self._planes.end()
        self.halt.disabled = True
        self.words.object = "<p>cancelled</p>"

    def _fill(self, request: Any, stale: Callable[[], bool]) -> None:
        """Computes planes of increasing resolution in a worker thread, and posts each as soon as it
        is finished."""
        state, finest, figure = request

        def arrived(plane: Any) -> None:
            if figure is self._figure and figure is not None:
                figure.draw(plane)
                words = (
                    f"{plane.points} points of {spoken(state.theories[0])}; click in the plane to "
                    "go there"
                )
                self.words.object, self.found.object = (
                    f"<p>{escape(words)}</p>",
                    f"<pre>{escape(repr(plane))}</pre>",
                )

        def ended(words: str) -> None:
            if figure is self._figure:
                self.halt.disabled = True
                if words:
                    self.words.object = f'<p class="warn">{escape(words)}</p>'

        problem = ""
        try:
            for plane in planes(state, finest, lambda: stale() or self._ended):
                self._post(partial(arrived, plane))
        except Stale:
            raise
        except (ValueError, SweepError) as error:
            problem = str(error)
        # an unexpected exception of a theory is shown on the page and not printed
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        self._post(lambda: ended(problem))

    def _clicked(self, x: float, y: float) -> None:
        state = self._state
        if (
            state is not None
            and self._figure is not None
            and self._figure.key == plane_key(state, self._dark)
        ):
            try:
                there = moved_to(state, {state.x: x, state.y: y})
            except ValueError as error:
                self._tell(str(error))
            else:
                self._change(there)
