"""What a page of somebody else can do to an explorer that runs, tried in a real browser: Chromium
sends what a browser sends, and no more."""

import contextlib
import functools
import http.server
import re
import sys
import threading
import urllib.request
from pathlib import Path

import pytest

pytest.importorskip("panel", reason="the extra explore is not installed")
pytest.importorskip("playwright.sync_api", reason="the extra browser is not installed")
sys.path.insert(0, str(Path(__file__).parents[1] / "explore"))
from test_browser import CHROMIUM, PATIENCE, explorer

pytestmark = [
    pytest.mark.attack,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium"),
    pytest.mark.timeout(900),
]
# What a page may try: to read the explorer's page, to open its socket with a token, to show it in a
# frame. Each says how it went.
READ = """async (address) => {
  try { return "read " + (await (await fetch(address)).text()).length }
  catch (error) { return "refused" }
}"""
SOCKET = """([address, token]) => new Promise((done) => {
  const socket = new WebSocket(address, ["bokeh", token])
  socket.onopen = () => done("open")
  socket.onerror = () => done("refused")
})"""
FRAME = """(address) => new Promise((done) => {
  const frame = document.createElement("iframe")
  frame.onload = () => done("")
  frame.src = address
  document.body.append(frame)
})"""


@contextlib.contextmanager
def somebody(folder, port):
    """A server of theirs, with one empty page."""
    (folder / "index.html").write_text("<title>theirs</title><body>theirs</body>")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    handler.log_message = lambda *_: None
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield
        served.shutdown()


@pytest.fixture(scope="module")
def browser():
    """Chromium that finds this machine under names of others, as after DNS rebinding."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        rules = "--host-resolver-rules=MAP *.example 127.0.0.1"
        one = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", rules])
        yield one
        one.close()


@pytest.fixture
def page(browser):
    one = browser.new_context().new_page()
    one.set_default_timeout(PATIENCE)
    yield one
    one.context.close()


def token_of(address):
    """One that the server signed, as somebody on this machine might know it."""
    with urllib.request.urlopen(address, timeout=60) as answer:
        return re.search(r'"token": ?"([^"]+)"', answer.read().decode())[1]


def test_a_page_of_another_origin_is_refused(tmp_path, page):
    with explorer(tmp_path, port=5241) as address, somebody(tmp_path, 5242):
        token = token_of(address)
        own = address.rstrip("/").replace("http", "ws") + "/ws"
        for theirs in ("http://localhost:5242/", "http://evil.example:5242/"):
            page.goto(theirs)
            assert page.title() == "theirs"
            assert page.evaluate(READ, address) == "refused"
            assert page.evaluate(SOCKET, [own, token]) == "refused"
            page.evaluate(FRAME, address)
            frames = [frame for frame in page.frames if frame != page.main_frame]
            assert not any("orderparam explorer" in frame.content() for frame in frames)
        page.goto(address)  # the same token is good for the page itself
        assert page.evaluate(SOCKET, [own, token]) == "open"


def test_a_name_that_was_made_to_point_here_shows_nothing(tmp_path, page):
    with explorer(tmp_path, port=5243) as address:
        own = "ws://evil.example:5243/ws"
        answer = page.goto("http://evil.example:5243/")
        assert answer.status == 421
        assert "does not answer to that name" in page.inner_text("body")
        assert page.evaluate(SOCKET, [own, token_of(address)]) == "refused"
        script = page.goto("http://evil.example:5243/static/js/bokeh.min.js")
        assert script.status == 421


def test_who_lacks_the_token_sees_nothing_from_a_page_either(tmp_path, page, browser):
    words = ("--host", "0.0.0.0", "--token", "a-long-token")
    with explorer(tmp_path, *words, port=5244), somebody(tmp_path, 5245):
        bare = "http://localhost:5244/"
        for query in ("", "?token=a-long-tokem", "?token=", "?token=%00"):
            assert page.goto(bare + query).status == 403
            assert "needs the token" in page.inner_text("body")
        token = token_of(bare + "?token=a-long-token")
        assert page.evaluate(SOCKET, ["ws://localhost:5244/ws", token]) == "refused"
        known = browser.new_context().new_page()  # of somebody who has opened it with the token
        known.set_default_timeout(PATIENCE)
        assert known.goto(bare + "?token=a-long-token").status == 200
        known.goto("http://evil.example:5245/")
        assert known.evaluate(READ, bare) == "refused"
        assert known.evaluate(SOCKET, ["ws://localhost:5244/ws", token]) == "refused"
        known.context.close()
