"""Decides which requests reach the page: only those to a name of this machine, from the page
itself, for files of the page.

Another page can make its own name point to this machine (DNS rebinding). It then has the same
origin, and only the name that the browser asked for, in the header `Host`, differs. So every
request is checked before any handler is chosen.
"""

import re
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from bokeh.util.token import check_token_signature, get_token_payload
from tornado.httputil import HTTPServerRequest
from tornado.routing import Matcher, Rule
from tornado.web import RequestHandler

from orderparam.explore.origins import ORIGIN

LOOPBACK = ("localhost", "127.0.0.1")
_NUMBERS = re.compile(r"[0-9]+(\.[0-9]+){3}")
_PATHS = ("/", "/ws", "/favicon.ico", "/refused")
_FRAMES = ("iframe", "frame", "embed", "object")
_FORGED = re.compile(r"(?:^|&)bokeh-(?:token|session-id)=")


class TurnedAway(RequestHandler):
    """The handler of a request that does not reach the page."""

    def initialize(self, status: int, words: str) -> None:
        self._status, self._words = status, words

    def prepare(self) -> None:
        self.set_status(self._status)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{self._words}\n")


@dataclass(frozen=True)
class Gate(Matcher):
    """A routing rule that takes refused requests before any other handler does.

    names: hosts under which the page may be opened; with `numbers` also every IPv4 address, which a
    rebound name cannot imitate. origins: those of `--allow-origin`. secret: the key that signs
    session tokens.
    """

    names: tuple[str, ...]
    numbers: bool
    origins: tuple[str, ...]
    secret: bytes

    def before(self, application: Any) -> None:
        """Puts the gate before all handlers of a Tornado application."""
        router = application.default_router
        router.rules.insert(0, router.process_rule(Rule(self, TurnedAway)))

    def match(self, request: HTTPServerRequest) -> dict[str, Any] | None:
        found = self.refusal(request)
        return None if found is None else {"target_kwargs": {"status": found[0], "words": found[1]}}

    def refusal(self, request: HTTPServerRequest) -> tuple[int, str] | None:
        """The status and message of a refused request, or None."""
        host = request.headers.get("Host", "").lower()
        if not self._is_ours(host):
            name = ORIGIN.fullmatch(host)
            hint = f"start it with --allow-origin {name[1]}, or " if name else ""
            return 421, f"This explorer does not answer to that name: {hint}open it as localhost."
        origin = request.headers.get("Origin")
        if origin is not None and not self._is_same(origin.lower(), host):
            return (
                403,
                "This explorer takes nothing from pages of other origins (see --allow-origin).",
            )
        if self._is_framed(request):
            return 403, "This explorer is not shown inside pages of other origins."
        path = unquote(request.path)
        inside = (
            path.startswith("/static/")
            and "\0" not in path
            and "\\" not in path
            and ".." not in path.split("/")
        )
        if not inside and path not in _PATHS:
            return 404, "There is nothing here: the page of the explorer is /."
        if "Bokeh-Session-Id" in request.headers or _FORGED.search(unquote(request.query)):
            return 403, "Sessions are named by the explorer alone."
        if path == "/ws" and not self._knows(request.headers.get("Sec-WebSocket-Protocol", "")):
            return 403, "This session is not known here: load the page again."
        return None

    def _is_ours(self, host: str) -> bool:
        parts = ORIGIN.fullmatch(host)
        if parts is None:
            return False
        return (
            parts[1] in self.names
            or (self.numbers and bool(_NUMBERS.fullmatch(parts[1])))
            or self._is_allowed(host)
        )

    def _is_same(self, origin: str, host: str) -> bool:
        try:
            netloc = urlsplit(origin).netloc
        except ValueError:
            return False
        return netloc == host or self._is_allowed(netloc)

    def _is_framed(self, request: HTTPServerRequest) -> bool:
        """True if another page shows this one in a frame, where it could cover the buttons. A
        browser reports this for a page on this machine; for another machine it does not send the
        cookie of the token in a frame. The names of `--allow-origin` are allowed."""
        inside = request.headers.get("Sec-Fetch-Dest", "") in _FRAMES
        ours = request.headers.get("Sec-Fetch-Site", "") in ("same-origin", "none")
        return inside and not ours and not self.origins

    def _is_allowed(self, host: str) -> bool:
        parts = ORIGIN.fullmatch(host)
        return parts is not None and (host in self.origins or parts[1] in self.origins)

    def _knows(self, protocols: str) -> bool:
        """True if the subprotocol of a socket names a session that this server made recently."""
        _, comma, token = protocols.partition(",")
        try:
            genuine = bool(comma) and check_token_signature(
                token.strip(), secret_key=self.secret, signed=True
            )
            return genuine and get_token_payload(token.strip())["session_expiry"] > time.time()
        except Exception:  # a forged token may raise anything above
            return False
