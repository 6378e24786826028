"""The page without a browser: what its controls do to what is shown."""

import time
from collections import deque

import pytest

pytest.importorskip("panel", reason="the extra explore is not installed")

import panel as pn
from bokeh.document import Document

from orderparam.explore.app import Page
from orderparam.explore.first_state import opened
from orderparam.explore.state import PageState


class Visitor:
    """A page, and the turns of the event loop that it asks for."""

    def __init__(self, folder, query="?system=spins.MeanFieldMagnet"):
        waiting = deque()

        class Turns(Document):
            def add_next_tick_callback(self, work):
                waiting.append(work)

        self.waiting = waiting
        pn.state.curdoc = Turns()
        self.page = Page(folder, query, False)
        self.until(lambda: self.page.state is not None and self.drawn())

    def until(self, true):
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            while self.waiting:
                self.waiting.popleft()()
            if true():
                return
            time.sleep(0.01)
        raise AssertionError("nothing came")

    def drawn(self):
        state = self.page.state
        curves = self.page.figure._curves
        evaluated = {name for name, one in curves.items() if not one.stored}
        return (
            not self.waiting
            and set(state.theories) <= evaluated
            and self.page.figure._latest.since is None
        )

    def slider(self, name):
        return self.page.figure.knobs._sliders[name]

    def lines(self):
        (figure,) = self.page.figure._figures
        return [source.data["ys"] for source in figure._lines.values() if len(source.data["ys"])]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("explorer")


@pytest.fixture
def visitor(folder):
    one = Visitor(folder)
    yield one
    one.page.end()
    pn.state.curdoc = None


def test_a_slider_moves_the_number_and_the_curve(visitor):
    before = [list(map(list, ys)) for ys in visitor.lines()]
    visitor.slider("field").position = 120
    assert visitor.page.state.value("field") == visitor.page.state.knobs["field"].value(120)
    visitor.until(lambda: [list(map(list, ys)) for ys in visitor.lines()] != before)


def test_a_start_is_seen_at_once_with_its_marks_and_leaves_them_with_its_numbers(folder):
    from orderparam.explore.figures import stored_figures

    visitor, name = Visitor(folder), "spins.MeanFieldMagnet"
    (figure,) = visitor.page.figure._figures
    visitor.page.tick()
    kept = stored_figures()[name]
    assert figure._marks.data["y"].tolist() == kept.mean[0].tolist()
    assert "kept with this version" in visitor.page.figure.here.agreement.object
    live = figure._lines["spins.mean_field"].data["ys"][0]
    # what is stored is what is evaluated
    assert max(abs(live - kept.curves["spins.mean_field"][0])) < 1e-3
    visitor.slider("field").position = 120
    visitor.page.tick()
    assert len(figure._marks.data["y"]) == 0
    visitor.page.end()


def test_a_page_without_an_address_is_ready_with_pictures(folder):
    document = pn.state.curdoc
    pn.state.curdoc = Document()
    page = Page(folder, "", False)
    assert page.ready
    assert page.state is None
    assert len(page.systems.groups) >= 8
    page.end()
    pn.state.curdoc = document


def test_what_is_typed_is_read_by_the_contract(visitor):
    typed = visitor.slider("temperature")
    typed.typed = ["0.77", 1]
    assert visitor.page.state.value("temperature") == 0.77
    for k, words in enumerate(["-1", "nan", "x", "__import__('os')", ""]):
        typed.typed = [words, k + 2]
        assert visitor.page.state.value("temperature") == 0.77
        assert 'role="status"' in visitor.page.message.object
    assert typed.shown == "0.77"


def test_what_is_said_cannot_be_markup(visitor):
    visitor.page.tell("<script>alert(1)</script>")
    assert "<script>" not in visitor.page.message.object


def test_two_visitors_have_two_states(visitor, folder):
    other = Visitor(folder, "?system=spins.MeanFieldMagnet&f.temperature=0.5")
    visitor.slider("field").position = 60
    assert other.page.state.value("temperature") == 0.5
    assert other.page.state.value("field") == 0.0
    assert visitor.page.state.value("field") > 0
    other.page.end()


def test_a_theory_that_is_chosen_is_drawn_and_another_left_out(visitor):
    state = visitor.page.state
    visitor.page.change(state.with_(theories=("spins.mean_field", "spins.exact_magnet")))
    visitor.until(visitor.drawn)
    assert len(visitor.lines()) == 2
    assert all(len(ys) == 1 for ys in visitor.lines())


def test_another_system_with_other_numbers_of_points_and_runs_replaces_the_first(visitor):
    one = visitor.page.state
    other = opened("spins.RegularPotts").with_(measured=one.measured + 1, seeds=one.seeds + 1)
    visitor.page.change(other)
    visitor.until(lambda: visitor.page.figure.here.points.value == other.measured)
    assert visitor.page.state.system == "spins.RegularPotts"
    assert (visitor.page.state.measured, visitor.page.state.seeds) == (other.measured, other.seeds)


def test_a_click_in_the_plane_moves_both_numbers(visitor):
    page, plane = visitor.page, visitor.page.plane
    plane.finest.value = 8
    plane._ask()
    visitor.until(lambda: plane._figure is not None and len(plane._figure._image.data["image"]) > 0)
    plane._clicked(0.6, 0.1)
    assert page.state.value("temperature") == 0.6
    assert page.state.value("field") == 0.1
    assert plane._figure._here.data == {"x": [0.6], "y": [0.1]}


@pytest.mark.parametrize("kind", ["png", "pdf", "csv"])
def test_what_is_seen_is_a_file(visitor, kind):
    content = visitor.page.figure.file(kind).read()
    begin = {"png": b"\x89PNG", "pdf": b"%PDF", "csv": "curve,temperature"}[kind]
    assert content.startswith(begin)
    if kind == "csv":
        assert content.count("\n") == 131


def test_sizes_that_would_fill_the_machine_are_refused(visitor):
    from orderparam.explore.state import option_of, taken

    state: PageState = visitor.page.state
    with pytest.raises(ValueError, match="spins = 1000000000: must be at most 8000"):
        taken(state, {"spins": 10**9})
    with pytest.raises(ValueError, match="sweeps = 1000000000: must be at most"):
        option_of(state, "spins.glauber", "sweeps", "1e9")


@pytest.mark.parametrize("kind", ["png", "pdf", "csv"])
def test_a_page_without_a_system_says_so_where_a_file_is_asked_for(folder, kind):
    pn.state.curdoc = Document()
    page = Page(folder, "", False)
    page.figure.log_y.value = True  # changes nothing yet
    assert page.figure.file(kind).read() == b""
    assert "choose a system first" in page.message.object
    page.end()
    pn.state.curdoc = None
