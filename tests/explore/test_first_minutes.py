"""The first minutes of the page in a real browser: every picture is there, and every start draws
its figure without an error in the console."""

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("panel", reason="the extra explore is not installed")
pytest.importorskip("playwright.sync_api", reason="the extra browser is not installed")
sys.path.insert(0, str(Path(__file__).parent))
from test_browser import CHROMIUM, PATIENCE, chromium, explorer  # noqa: F401

from orderparam.explore.choose import THUMBNAILS
from orderparam.explore.figures import stored_figures
from orderparam.explore.starts import questions, starts

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
# starts to look at, for who has little time
CHOSEN = os.environ.get("ORDERPARAM_TEST_STARTS", "").split() or list(starts())
DRAWN = """() => {
  for (const model of Bokeh.documents[0]._all_models.values()) {
    if (model.type != "ColumnDataSource") continue
    const { ys, y } = model.data
    const rows = ys ? Array.from(ys) : y ? [y] : []
    for (const row of rows) if (Array.from(row).some(isFinite)) return true
  }
  return false
}"""


def text_of(said):
    """What the console says, and the address that it is about."""
    return f"{said.text} ({said.location.get('url', '')})"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with explorer(tmp_path_factory.mktemp("explorer"), port=5233) as found:
        yield found


@pytest.fixture
def visit(chromium, address):  # noqa: F811
    """Opens an address of the page; what the console says is asserted to be no error."""
    page = chromium.new_page(viewport={"width": 1400, "height": 900})
    page.set_default_timeout(PATIENCE)
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(text_of(said)) if said.type == "error" else None)

    def opened(query):
        page.goto(address + query)
        return page

    yield opened
    page.close()
    assert errors == []


def test_every_system_stands_under_its_question_with_a_picture(visit):
    page = visit("")
    page.wait_for_selector(f"text={questions()[0].title}")
    cards = page.locator("a[data-name]")
    assert cards.count() >= len(starts())
    without = [
        card.get_attribute("data-name")
        for card in cards.all()
        if card.get_attribute("data-name") in starts()
        and not card.locator(".picture svg, .picture img").count()
    ]
    # a study that has not been run for the gallery has no picture to lend
    assert not [
        name
        for name in without
        if name in stored_figures() or (THUMBNAILS / f"{starts()[name].study}.webp").is_file()
    ]
    # nothing is wider than its card
    wide = "card => card.scrollWidth > card.clientWidth + 1"
    assert not any(card.evaluate(wide) for card in cards.all())


@pytest.mark.attack
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [name for name in CHOSEN if name in stored_figures()])
def test_a_start_draws_its_figure(visit, name):
    page = visit(f"?system={name}")
    page.locator("p.sees").wait_for()
    page.wait_for_function(DRAWN, timeout=PATIENCE)
    assert page.locator("h2", has_text=starts()[name].title).count()
    assert page.locator("p.warn:visible").count() == 0
    # a start has few sliders beside its figure
    assert page.get_by_role("slider").count() <= 6
