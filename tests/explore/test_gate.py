"""What a request must be to reach the page, asked of a server that runs."""

import asyncio
import base64
import http.client
import json
import logging
import re
import threading
import zlib

import pytest

pytest.importorskip("panel", reason="the extra explore is not installed")

from typer.testing import CliRunner

from orderparam.cli.commands import app
from orderparam.explore import server as explorer
from orderparam.explore.origins import checked_origins

SOCKET = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """Port, and what was logged as an error."""
    folder, found, errors = tmp_path_factory.mktemp("explorer"), [], []

    class Kept(logging.Handler):
        def emit(self, record):
            errors.append(record.getMessage())

    def run():
        asyncio.set_event_loop(asyncio.new_event_loop())
        made = explorer.server(
            folder, 0, "localhost", "", ["explorer.example.org", "other.example:8443"]
        )
        made.start()
        found.append(made)
        begun.set()
        made.io_loop.start()

    begun, kept = threading.Event(), Kept(logging.ERROR)
    logging.getLogger("tornado").addHandler(kept)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explorer, "load", lambda: None)  # the theories are of no use here
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        assert begun.wait(60)
    (made,) = found
    yield made.port, errors
    made.io_loop.add_callback(made.io_loop.stop)
    thread.join(30)
    logging.getLogger("tornado").removeHandler(kept)


def ask(running, path="/", method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", running[0], timeout=60)
    connection.putrequest(method, path, skip_host=True)
    for name, value in {"Host": f"localhost:{running[0]}", **headers}.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    text = "" if answer.status == 101 else answer.read().decode(errors="replace")
    connection.close()
    return answer.status, text


def token_of(running, **headers):
    """That of a new session."""
    status, text = ask(running, **headers)
    assert status == 200
    return re.search(r'"token": ?"([^"]+)"', text)[1]


@pytest.mark.parametrize(
    "name", ["localhost", "127.0.0.1", "explorer.example.org", "LOCALHOST:1", "other.example:8443"]
)
def test_names_of_this_machine_and_those_allowed_reach_the_page_and_its_socket(running, name):
    host = name if ":" in name else f"{name}:{running[0]}"
    token = token_of(running, Host=host)
    opened = {**SOCKET, "Host": host, "Sec-WebSocket-Protocol": f"bokeh, {token}"}
    assert ask(running, "/ws", Origin=f"http://{host}", **opened)[0] == 101
    assert ask(running, "/ws", Origin="https://explorer.example.org", **opened)[0] == 101
    for foreign in (
        "http://evil.example",
        f"http://evil.example:{running[0]}",
        "null",
        "http://localhost:3000",
        "http://[",
        "",
    ):
        assert ask(running, "/ws", Origin=foreign, **opened)[0] == 403, foreign


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:5117",
        "[::1]:5301",
        "[::1",
        "a:b:c",
        "",
        "other.example",
        "192.168.0.1",
        "localhost.evil",
    ],
)
def test_a_name_that_was_made_to_point_here_is_refused(running, host):
    for path in ("/", "/static/js/bokeh.min.js", "/autoload.js?bokeh-autoload-element=x"):
        status, text = ask(running, path, Host=host)
        assert (status, "does not answer to that name" in text) == (421, True)
    token = token_of(running)
    opened = {
        **SOCKET,
        "Host": host,
        "Origin": f"http://{host}",
        "Sec-WebSocket-Protocol": f"bokeh, {token}",
    }
    assert ask(running, "/ws", **opened)[0] == 421


def test_every_odd_request_is_refused_without_a_traceback(running):
    bomb = base64.urlsafe_b64encode(zlib.compress(b"0" * 10**6)).decode()
    forged = base64.urlsafe_b64encode(
        json.dumps({"session_id": "mine", "session_expiry": 1e12, "__bk__zlib_": bomb}).encode()
    )
    odd = {
        "/components/../../etc/passwd": 404,
        "/components/os/path/_css/x": 404,
        "/%00": 404,
        "/static/%00": 404,
        "/static/js/bokeh.min.js%00": 404,
        "/static/extensions/panel/%00": 404,
        "/static/..%2f..%2fetc/passwd": 404,
        "/static/js/..\\..\\server.py": 404,
        "/static/nothing.js": 404,
        "/autoload.js?bokeh-autoload-element=x": 404,
        "/metadata": 404,
        "/?bokeh-token=abc": 403,
        "/?x=1&bokeh-session-id=%00": 403,
        "/?bokeh%2dsession-id=mine": 403,
        "/ws": 403,
        "/ws?bokeh-session-id=mine": 403,
    }
    for path, status in odd.items():
        assert ask(running, path)[0] == status, path
    assert ask(running, **{"Bokeh-Session-Id": "mine"})[0] == 403
    assert ask(running, "/autoload.js", method="OPTIONS")[0] == 404
    for token in (
        "x",
        "x.y",
        "",
        forged.decode(),
        forged.decode() + ".sig",
        token_of(running)[:-1],
        "é",
        "bokeh, bokeh",
    ):
        assert (
            ask(running, "/ws", **SOCKET, **{"Sec-WebSocket-Protocol": f"bokeh, {token}"})[0] == 403
        ), token
    assert ask(running)[0] == 200
    assert running[1] == []


def test_the_page_is_not_shown_inside_another_unless_names_are_allowed():
    from tornado.httputil import HTTPHeaders, HTTPServerRequest

    from orderparam.explore.gate import Gate

    def status(gate, **headers):
        headers = {"Host": "localhost:5117"} | {f"Sec-Fetch-{k}": v for k, v in headers.items()}
        request = HTTPServerRequest("GET", "/", headers=HTTPHeaders(headers))
        return (gate.refusal(request) or (200, ""))[0]

    gate = Gate(("localhost",), False, (), b"secret")
    for place in ("iframe", "frame", "embed", "object"):
        for site in ("cross-site", "same-site"):
            assert status(gate, Dest=place, Site=site) == 403
            assert status(Gate(("localhost",), False, ("x",), b""), Dest=place, Site=site) == 200
        assert status(gate, Dest=place, Site="same-origin") == 200
    assert status(gate, Dest="document", Site="cross-site") == 200  # a link that is followed
    assert status(gate) == 200


def test_a_session_that_has_expired_is_refused(running, monkeypatch):
    from orderparam.explore import gate

    token = token_of(running)
    later = gate.time.time() + 3600
    monkeypatch.setattr(gate.time, "time", lambda: later)
    assert ask(running, "/ws", **SOCKET, **{"Sec-WebSocket-Protocol": f"bokeh, {token}"})[0] == 403


@pytest.mark.parametrize(
    "origin", ["http://x.example", "x.example/", "x y", "", "*", "[::1]", "x:y", "x" * 500 + "!"]
)
def test_an_origin_that_is_none_is_refused(origin):
    with pytest.raises(ValueError, match="--allow-origin"):
        checked_origins([origin])
    assert checked_origins(["X.example:80", "a"]) == ("x.example:80", "a")


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--folder", "~nosuchuser", "there is no such user"),
        ("--allow-origin", "http://x/", "write a NAME or NAME:PORT"),
    ],
)
def test_a_wrong_option_of_the_command_is_one_line(option, value, said):
    result = CliRunner().invoke(app, ["explore", "--no-browser", option, value])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert said in result.stderr
