"""Minutes of random clicks, keys and addresses on the explorer: no traceback, and no growth of
memory."""

import os
import random
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("panel", reason="the extra explore is not installed")
pytest.importorskip("playwright.sync_api", reason="the extra browser is not installed")
sys.path.insert(0, str(Path(__file__).parents[1] / "explore"))
from test_browser import CHROMIUM, MAGNET, PATIENCE, chromium, explorer, ready  # noqa: F401

SECONDS = float(os.environ.get("ORDERPARAM_ATTACK_SECONDS", "600"))
# of the memory after the first third, in which programs are compiled for the first time
GROWTH = 1.35
TABS = ("Systems", "Figure", "Phase plane", "Studies", "Your data")
BUTTONS = (
    "Measure",
    "Cancel",
    "Fill in",
    "Open its curves",
    "All studies",
    "Code and files",
    "The experiment",
    "All numbers",
)
ADDRESSES = (
    "?system=x",
    "?system=spins.ScalarField&f.mass=a",
    MAGNET + "&theme=dark",
    MAGNET + "&x",
)

pytestmark = [
    pytest.mark.attack,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium"),
]


def server_of(port):
    """What the system says of the server's process that listens to this port: a folder."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"explore" in words and str(port).encode() in words:
                return folder
    raise AssertionError("the server is gone")


def memory_of(port):
    """MB of the server's process that listens to this port."""
    pages = int((server_of(port) / "statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def act(page, rng):
    """One random thing that a visitor may do."""
    what = rng.choice(
        [
            "slider",
            "slider",
            "slider",
            "slider",
            "system",
            "box",
            "menu",
            "tab",
            "button",
            "type",
            "wrong",
        ]
    )
    if what == "slider":
        sliders = page.locator("input[type=range]:visible")
        if sliders.count():
            sliders.nth(rng.randrange(sliders.count())).focus(timeout=2000)
            for _ in range(rng.randrange(1, 12)):
                page.keyboard.press(
                    rng.choice(["ArrowRight", "ArrowLeft", "PageUp", "PageDown", "Home", "End"])
                )
    elif what == "system":
        page.get_by_text(rng.choice(["Systems", "Systems", "Studies"]), exact=True).first.click(
            timeout=2000
        )
        cards = page.locator("a[data-name]:visible")
        cards.first.wait_for(timeout=2000)
        cards.nth(rng.randrange(cards.count())).click(timeout=2000)
    elif what == "box":
        boxes = page.locator("input[type=checkbox]:visible")
        if boxes.count():
            boxes.nth(rng.randrange(boxes.count())).click(timeout=2000)
    elif what == "menu":
        menus = page.locator("select:visible")
        menu = menus.nth(rng.randrange(menus.count()))
        if count := menu.locator("option").count():
            menu.select_option(index=rng.randrange(count), timeout=2000)
    elif what == "tab":
        page.get_by_text(rng.choice(TABS), exact=True).first.click(timeout=2000)
    elif what == "button":
        name = rng.choice(BUTTONS)
        button = page.get_by_role("button", name=name).first
        if button.is_visible() and button.is_enabled():
            button.click(timeout=2000)
    elif what == "type":
        fields = page.locator("input[type=text]:visible")
        if fields.count():
            field = fields.nth(rng.randrange(fields.count()))
            field.fill(
                rng.choice(
                    ["", "0", "-1", "1e9", "nan", "inf", "0.1", "x", "<b>", "3,4", "9" * 60]
                ),
                timeout=2000,
            )
            page.keyboard.press("Tab")
    else:
        page.goto(page.url.partition("?")[0] + rng.choice(ADDRESSES))
        ready(page)


def test_random_clicks_leave_no_traceback_and_no_growth(tmp_path, chromium):  # noqa: F811
    import playwright.sync_api

    rng, seen, done = random.Random(0), [], 0
    with explorer(tmp_path, port=5233) as address:
        page = chromium.new_page(viewport={"width": 1400, "height": 1000})
        page.set_default_timeout(PATIENCE)
        page.goto(address + MAGNET)
        ready(page)
        begun = time.monotonic()
        while time.monotonic() - begun < SECONDS:
            try:
                act(page, rng)
                done += 1
            except (
                playwright.sync_api.Error
            ):  # what was to be clicked has gone, or something lies above it
                page.keyboard.press("Escape")
            seen.append((time.monotonic() - begun, memory_of(5233)))
            if done % 40 == 39:  # a visitor goes, another comes
                page.close()
                page = chromium.new_page(viewport={"width": 1400, "height": 1000})
                page.set_default_timeout(PATIENCE)
                page.goto(address + MAGNET)
                ready(page)
        page.close()
        thirds = [
            max(mb for t, mb in seen if k * SECONDS / 3 <= t < (k + 1) * SECONDS / 3)
            for k in range(3)
        ]
        print(
            f"{done} acts; largest memory in each third, MB: "
            f"{', '.join(f'{mb:.0f}' for mb in thirds)}"
        )
    assert done > SECONDS / 20
    assert thirds[2] < GROWTH * thirds[0], thirds
