"""The page in a real browser: the system's Chromium, driven by Playwright."""

import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import numpy as np
import pytest

pytest.importorskip("panel", reason="the extra explore is not installed")
playwright = pytest.importorskip("playwright.sync_api", reason="the extra browser is not installed")
CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")

MAGNET = "?system=spins.MeanFieldMagnet"
PATIENCE = 120_000  # milliseconds: other tests run beside this one
LINES = """() => {
  const found = []
  const sum = (y) => Array.from(y).reduce((a, b) => a + (isFinite(b) ? b : 0), 0)
  for (const model of Bokeh.documents[0]._all_models.values())
    if (model.type == "ColumnDataSource" && model.data.ys && model.data.alpha)
      for (const y of model.data.ys) found.push(sum(y))
  return found
}"""


@contextmanager
def explorer(folder, *arguments, port):
    code = "from orderparam.cli import main; main()"
    words = [
        sys.executable,
        "-c",
        code,
        "explore",
        "--no-browser",
        "--port",
        str(port),
        "--folder",
        str(folder),
        *arguments,
    ]
    log = folder / "log.txt"
    with open(log, "w") as out:  # a pipe that nobody reads would stop the server when it is full
        process = subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + PATIENCE / 1000
        while (
            "Ctrl-C" not in log.read_text()
            and process.poll() is None
            and time.monotonic() < deadline
        ):
            time.sleep(0.1)
        first = log.read_text().partition("\n")[0]
        assert first.startswith("orderparam explorer: http"), log.read_text()
        yield first.split()[-1]
    finally:
        process.terminate()
        process.wait(30)
        assert "Traceback" not in log.read_text(), log.read_text()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("explorer")


@pytest.fixture(scope="module")
def address(folder):
    with explorer(folder, port=5231) as found:
        yield found


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(chromium, address):
    one = chromium.new_page(viewport={"width": 1400, "height": 1000})
    one.set_default_timeout(PATIENCE)
    errors = []
    one.on("pageerror", lambda error: errors.append(str(error)))
    one.goto(address + MAGNET)
    ready(one)
    yield one
    one.close()
    assert errors == []


def ready(page):
    """Waits until a curve is drawn."""
    page.get_by_role("button", name="Measure").wait_for()
    page.wait_for_function(f"({LINES})().length > 0", timeout=PATIENCE)


def unfold(page, title):
    """Opens a folded part below the figure."""
    page.get_by_role("button", name=title).click()


def python_of(page):
    """The snippet, once it says what the address says."""
    if not page.get_by_label("as Python").is_visible():
        unfold(page, "Code and files")
    page.get_by_label("as Python").wait_for()
    time.sleep(1.5)
    return page.get_by_label("as Python").input_value()


def test_it_opens_with_a_curve_and_names_for_every_control(page):
    assert page.get_by_role("slider", name="field").count() == 1
    for title in ("Theories, observables", "The experiment", "Code and files"):
        unfold(page, title)
    for name in ("along", "experiment", "as Python"):
        page.get_by_label(name, exact=True).first.wait_for()
    assert "system=spins.MeanFieldMagnet" in page.url or python_of(page)


def test_a_page_without_an_address_shows_pictures_to_choose_from(chromium, address):
    page = chromium.new_page(viewport={"width": 390, "height": 844})
    page.set_default_timeout(PATIENCE)
    page.goto(address)
    page.wait_for_selector("text=When does order appear?")
    assert page.locator("a[data-name] svg").count() > 50
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.get_by_label("search the systems").fill("Hopfield")
    page.locator("a[data-name='associative_memory.Hopfield']").click()
    ready(page)
    # a card has these words too
    page.locator("p.sees", has_text="A stored pattern is recalled").wait_for()
    page.wait_for_selector("text=kept with this version")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.close()


def test_a_slider_moves_the_curve_by_the_keyboard(page):
    before = page.evaluate(LINES)
    page.get_by_role("slider", name="field").focus()
    page.keyboard.press("PageUp")
    page.wait_for_function(f"({LINES})()[0] != {before[0]}", timeout=PATIENCE)
    after = page.evaluate(LINES)
    page.wait_for_function("location.search.includes('f.field=')", timeout=PATIENCE)
    page.reload()
    ready(page)
    page.wait_for_function(f"({LINES})()[0] == {after[0]}", timeout=PATIENCE)


def test_what_is_copied_as_python_runs_and_gives_the_curve(page):
    page.get_by_role("slider", name="field").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("location.search.includes('f.field=')", timeout=PATIENCE)
    code = python_of(page)
    assert "field=" in code
    found = {}
    exec(code.split("measured =")[0], found)
    sums = [np.nansum(data["absolute_magnetisation"].values) for data in found["curves"].values()]
    assert sorted(page.evaluate(LINES)) == pytest.approx(sorted(sums), rel=1e-12)


def test_a_measurement_streams_points_and_can_be_cancelled(page, folder):
    unfold(page, "The experiment")
    page.get_by_label("glauber: sweeps").fill("2000")
    page.keyboard.press("Tab")
    page.get_by_label("runs of each").fill("50")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Measure").click()
    page.wait_for_function(f"{said(page)} >= 2", timeout=PATIENCE)
    page.wait_for_selector("text=theory and measurement")
    page.get_by_role("button", name="Cancel").first.click()
    page.wait_for_function("document.body && true")
    # it can be pressed again: the processes have ended
    page.get_by_role("button", name="Measure").click(trial=True)
    kept = page.evaluate(said(page))
    assert 2 <= kept < 300
    assert list((folder / "measurements").glob("*.zarr"))
    page.reload()
    ready(page)
    page.wait_for_function(f"{said(page)} >= {kept}", timeout=PATIENCE)


def said(page):
    """How many runs the page says are kept, -1 where it says nothing."""
    return """(() => {
      const search = (root) => {
        for (const element of root.querySelectorAll("*")) {
          if (element.shadowRoot) {
            const found = search(element.shadowRoot)
            if (found >= 0) return found
          }
          const match = element.children.length == 0
            && /^(\\d+) of \\d+ runs are kept/.exec(element.textContent)
          if (match) return Number(match[1])
        }
        return -1
      }
      return search(document)
    })()"""


def test_the_plane_fills_in_and_a_click_sets_the_numbers(page):
    page.get_by_text("Phase plane").click()
    page.get_by_label("squares along each axis").select_option("8")
    page.get_by_role("button", name="Fill in").click()
    page.wait_for_selector("text=click in the plane")
    time.sleep(1)
    box = page.locator("canvas:visible").first.bounding_box()  # those after it are of the legend
    page.mouse.click(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.5)
    page.wait_for_function("/f\\.field=0\\.[0-9]/.test(location.search)", timeout=PATIENCE)
    assert re.search(r"f\.temperature=(?!1&)", page.url)


def test_a_study_opens_with_its_curves(page):
    page.get_by_text("Studies", exact=True).click()
    page.locator("a[data-name='potts-regular-graph'] img").wait_for()
    page.locator("a[data-name='potts-regular-graph']").click()
    page.get_by_role("button", name="Open its curves").click()
    page.wait_for_function(
        "location.search.includes('system=spins.RegularPotts')", timeout=PATIENCE
    )


def test_rows_of_ones_own_are_forecast(page, tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 3))
    np.savetxt(
        tmp_path / "mine.csv",
        np.c_[rows, rows[:, 0] + 0.1 * rng.normal(size=60)],
        delimiter=",",
        header="a,b,c,y",
        comments="",
    )
    page.get_by_text("Your data").click()
    page.locator("input[type=file]").set_input_files(str(tmp_path / "mine.csv"))
    page.wait_for_selector("text=leave-one-out error")
    page.get_by_label("activation").last.select_option("erf")
    page.wait_for_selector("text=fc:1:erf: error falls")


def test_two_visitors_do_not_share_what_they_see(page, chromium, address):
    other = chromium.new_context().new_page()
    other.set_default_timeout(PATIENCE)
    other.goto(address + "?system=associative_memory.DenseMemory")
    ready(other)
    page.get_by_role("slider", name="field").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("location.search.includes('f.field=')", timeout=PATIENCE)
    assert other.get_by_role("slider", name="field").count() == 0
    assert "DenseMemory" in python_of(other)
    assert "MeanFieldMagnet" in python_of(page)
    other.context.close()


def test_a_wrong_address_is_said_and_something_else_shown(chromium, address):
    page = chromium.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(address + "?system=spins.MeanFieldMagnet&f.temperature=<script>alert(1)</script>")
    ready(page)
    page.wait_for_selector("text=must be a number")
    page.close()


def test_another_host_asks_for_the_token(tmp_path, chromium):
    with explorer(tmp_path, "--host", "0.0.0.0", "--token", "a-long-token", port=5232) as found:
        assert found.endswith("?token=a-long-token")
        bare = "http://localhost:5232/"
        for wrong, status in (
            ("", 403),
            ("?token=a-long-tokem", 403),
            ("autoload.js?bokeh-autoload-element=x", 404),
        ):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(bare + wrong, timeout=60)
            assert refused.value.code == status
        page = chromium.new_context().new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(bare + "?token=a-long-token")
        page.locator("a[data-name]").first.wait_for()
        page.goto(bare)  # the cookie knows
        page.locator("a[data-name]").first.wait_for()
        page.context.close()
