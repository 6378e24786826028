"""The server of the page, and who may open the page.

Without `host` only this machine reaches it. On any other address a token is required: once in the
address, and in a cookie from then on. Requests with foreign names, origins, paths or sessions never
reach the page (`gate`). Uploads are bounded by the size of a message.
"""

import hmac
import logging
import secrets
import socket
import threading
import warnings
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import panel as pn
from bokeh.server.auth_provider import AuthProvider
from tornado.web import HTTPError, RequestHandler

from orderparam.explore import cards, slider, upload  # noqa: F401, see there
from orderparam.explore.folder import LARGEST
from orderparam.explore.gate import LOOPBACK, Gate
from orderparam.explore.origins import checked_origins
from orderparam.explore.style import css

COOKIE = "orderparam_token"
# bytes of a message; a larger one ends the connection. The page sends no file larger than
# `LARGEST`.
MESSAGE = 8 * LARGEST
TICK = 300  # milliseconds between two calls of `tick`
GONE = 15_000  # milliseconds after which a page that is closed is forgotten


class NoToken(RequestHandler):
    """The handler of a request without a token."""

    def get(self) -> None:
        self.set_status(403)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(
            "This explorer needs the token that was printed where it was started: open the address "
            "with ?token=...\n"
        )


class Token(AuthProvider):
    """Admits a visitor who knows the token, which is compared in constant time."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()
        super().__init__()

    def knows(self, text: str | None) -> bool:
        return text is not None and hmac.compare_digest(text.encode(), self._token)

    @property
    def get_user(self) -> Any:
        def user(handler: RequestHandler) -> str | None:
            if self.knows(handler.get_cookie(COOKIE)):
                return "visitor"
            given = handler.get_query_argument("token", None)
            if not self.knows(given):
                # a request of a script or a socket is not redirected to the page
                if handler.request.path != "/":
                    raise HTTPError(403)
                return None
            handler.set_cookie(COOKIE, str(given), httponly=True, samesite="Strict")
            return "visitor"

        return user

    @property
    def login_url(self) -> str:
        return "/refused"

    @property
    def login_handler(self) -> type[RequestHandler]:
        return NoToken


def page(folder: Path) -> pn.viewable.Viewable:
    """The page of one visitor: empty at first, and filled as soon as the theories are loaded."""
    dark = pn.state.session_args.get("theme", [b""])[0] == b"dark"
    pn.config.theme, pn.config.raw_css = ("dark" if dark else "default"), [css(dark)]
    frame = pn.Column(
        pn.pane.HTML(
            '<h1>orderparam explorer</h1><p role="status">loading the theories ...</p>',
            sizing_mode="stretch_width",
        ),
        sizing_mode="stretch_width",
    )
    location = pn.state.location
    pages: list[Any] = []

    def tick() -> None:
        if pages:
            pages[0].tick()
            if pages[0].ready and len(frame) == 1 and frame[0] is not pages[0].view:
                frame.objects = [pages[0].view]
        elif _problems:
            frame.objects = [
                pn.pane.HTML(
                    f'<p role="alert">{escape(_problems[0])}</p>', sizing_mode="stretch_width"
                )
            ]
        elif _loaded.is_set():
            from orderparam.explore.app import Page

            made = Page(folder, location.search if location is not None else "", dark)
            pages.append(made)
            if location is not None:
                location.param.watch(lambda event: made.follow(event.new), "search")

    def gone(_: Any) -> None:
        for one in pages:
            one.end()

    pn.state.onload(lambda: pn.state.add_periodic_callback(tick, TICK) and None)
    pn.state.on_session_destroyed(gone)
    return frame


_loaded = threading.Event()
# the reason why the theories cannot be loaded: an installed topic that fails
_problems: list[str] = []


def load() -> None:
    """Imports the page and every system while the server already answers, so that the first visitor
    sees something at once."""
    try:
        import orderparam.explore.app  # noqa: F401
        from orderparam.explore.systems import kinds

        kinds()
    except Exception as error:
        _problems.append(f"the theories cannot be loaded: {type(error).__name__}: {error}")
    _loaded.set()


def _nobody_is_left(record: logging.LogRecord) -> bool:
    """A filter of log lines: false for a line that only reports that a visitor left while something
    was being sent."""
    text = record.getMessage()
    closed = (
        " GET /ws" in text and record.exc_info is not None and record.exc_info[0] is AssertionError
    )
    return not (closed or "WebSocketClosedError" in text or "error: AssertionError()" in text)


def server(folder: Path, port: int, host: str, token: str, origins: Sequence[str] = ()) -> Any:
    """The server, not yet started. token: empty where only this machine can reach it; origins:
    further names under which it answers.

    Raises `OSError` where the port is taken.
    """
    pn.extension("mathjax", design="native", sizing_mode=None, throttled=False)
    warnings.simplefilter("ignore")  # theories warn of points that the page marks anyway
    logging.getLogger("bokeh").setLevel(logging.ERROR)
    for name in ("asyncio", "bokeh.server.protocol_handler", "tornado.application"):
        logging.getLogger(name).addFilter(_nobody_is_left)
    threading.Thread(target=load, name="registry", daemon=True).start()
    options: dict[str, Any] = {"auth_provider": Token(token)} if token else {}
    secret = secrets.token_bytes(32)
    made = pn.serve(
        lambda: page(folder),
        port=port,
        address=host,
        websocket_origin=["*"],  # the gate has already checked the request
        show=False,
        start=False,
        verbose=False,
        title="orderparam explorer",
        websocket_max_message_size=MESSAGE,
        http_server_kwargs={"max_body_size": 2**20, "max_buffer_size": MESSAGE},
        unused_session_lifetime_milliseconds=GONE,
        check_unused_sessions_milliseconds=GONE // 3,
        sign_sessions=True,
        secret_key=secret,
        **options,
    )
    names = (*LOOPBACK, host.lower(), *([socket.gethostname().lower()] if token else []))
    Gate(names, bool(token), tuple(origins), secret).before(made._tornado)
    return made


def serve(
    folder: Path, port: int, host: str, token: str | None, origins: Sequence[str], browser: bool
) -> None:
    """Shows the page until it is interrupted.

    Raises `ValueError` for a port that is taken, an address that does not belong to this machine,
    or a malformed origin.
    """
    origins = checked_origins(origins)
    if host not in LOOPBACK:
        token = token or secrets.token_urlsafe(24)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        made = server(folder, port, host, token or "", origins)
    except OSError as error:
        raise ValueError(
            f"cannot listen on {host} port {port}: {error.strerror or error}; choose another with "
            "--port"
        ) from None
    shown = host if host != "0.0.0.0" and ":" not in host else "THIS-MACHINE"
    address = f"http://{shown}:{port}/" + (f"?token={token}" if token else "")
    print(f"orderparam explorer: {address}\nresults: {folder}\nCtrl-C ends it", flush=True)
    if browser:
        import webbrowser

        threading.Timer(0.5, webbrowser.open, (address,)).start()
    made.start()
    made.io_loop.start()
