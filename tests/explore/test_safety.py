"""What a browser may name, upload and know."""

import base64
import json
import os
import shutil
import subprocess

import numpy as np
import pytest

pytest.importorskip("panel", reason="the extra explore is not installed")

from orderparam.explore.folder import KINDS, LARGEST, files, inside, uploaded
from orderparam.explore.upload import Upload
from orderparam.explore.your_data import YourData


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "results"
    made.mkdir()
    (made / "mine.csv").write_text("x,y\n1,2\n")
    (made / "notes.txt").write_text("no table")
    (tmp_path / "secret.csv").write_text("x,y\n1,2\n")
    (tmp_path / "results-of-others").mkdir()
    (tmp_path / "results-of-others" / "theirs.csv").write_text("x,y\n1,2\n")
    os.symlink(tmp_path / "secret.csv", made / "link.csv")
    os.symlink(tmp_path, made / "up")
    os.symlink(made / "round.csv", made / "round.csv")
    return made


def test_a_file_of_the_folder_is_found(folder):
    assert inside(folder, "mine.csv").read_text().startswith("x,y")
    assert "mine.csv" in files(folder)
    assert "notes.txt" not in files(folder)


@pytest.mark.parametrize(
    "name",
    [
        "../secret.csv",
        "up/secret.csv",
        "link.csv",
        "round.csv",
        "../results-of-others/theirs.csv",
        "nothing.csv",
        "",
        ".",
        "\0.csv",
        "a" * 5000 + ".csv",
        "/etc/passwd",
        "notes.txt",
        "..\\secret.csv",
        "~/x.csv",
    ],
)
def test_nothing_else_is(folder, name):
    with pytest.raises(ValueError, match=r"no such file|must be one of"):
        inside(folder, name)


def test_an_absolute_name_of_another_file_is_refused(folder):
    with pytest.raises(ValueError, match="no such file"):
        inside(folder, str(folder.parent / "secret.csv"))


@pytest.mark.parametrize("name", ["x.py", "x.pkl", "x.npz", "x.csv.exe", "x", ".csv/", "x.parquet"])
def test_uploads_of_other_kinds_are_refused(name):
    with pytest.raises(ValueError, match="must be one of"), uploaded(name, b"1,2\n"):
        pass


def test_uploads_are_bounded_and_leave_nothing_behind(tmp_path):
    for content in (b"", b"x" * (LARGEST + 1)):
        with pytest.raises(ValueError, match="bytes"), uploaded("x.csv", content):
            pass
    with uploaded("../../etc/évil name.csv", b"x,y\n1,2\n") as path:
        assert path.suffix in KINDS
        assert path.name == "évilname.csv"
        place = path.parent
        assert "orderparam-" in place.name
    assert not place.exists()


def test_what_is_wrong_with_an_upload_does_not_say_where_it_lies():
    from orderparam.learning_curves import from_file

    with (
        pytest.raises(ValueError, match=r"^mine.csv: ") as refused,
        uploaded("mine.csv", b"x,x,y\n" + b"1,2,3\n" * 60) as path,
    ):
        from_file(str(path))
    assert "orderparam-" not in str(refused.value)


def test_an_empty_upload_is_refused_in_words(tmp_path):
    page = YourData(tmp_path, False, lambda work: None)
    page.upload.chosen = ["mine.csv", "", 0, 1]
    assert "mine.csv has 0 bytes: must be at least 1" in page.status.object


@pytest.mark.parametrize("size", [LARGEST + 1, 49 * 2**20, 2**50])
def test_a_file_that_is_too_large_is_refused_in_words_and_not_sent(tmp_path, size):
    page = YourData(tmp_path, False, lambda work: None)
    page.upload.chosen = ["mine.csv", "", size, 1]
    assert (
        f"mine.csv has {size} bytes: must be at least 1 and at most {LARGEST}" in page.status.object
    )


@pytest.mark.parametrize(
    "chosen",
    [
        ["mine.csv"],
        ["mine.csv", None, 3, 1],
        ["mine.csv", "no base 64", 3, 1],
        ["mine.csv", "MSwyCg==", 3, 1],
        ["mine.csv", "MSwyCg==", -1, 1],
        ["mine.csv", "MSwyCg==", "4", 1],
        [3, "MSwyCg==", 4, 1],
    ],
)
def test_what_the_page_would_not_send_is_refused_in_words(tmp_path, chosen):
    page = YourData(tmp_path, False, lambda work: None)
    page.upload.chosen = chosen
    assert "choose it again" in page.status.object


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
def test_the_browser_sends_nothing_of_a_file_that_is_too_large():
    """The code of the upload in Node, with as much of a browser as it uses."""
    code = """
    class Part extends EventTarget { append(other) { this.field = other } }
    globalThis.document = { createElement: () => new Part() }
    globalThis.FileReader = class extends EventTarget {
      readAsDataURL(file) {
        this.result = "data:;base64,MSwyCg=="
        this.dispatchEvent(new Event("load"))
      }
    }
    const { render } = await import("data:text/javascript," + encodeURIComponent(process.argv[1]))
    const model = { label: "", accept: "", largest: 100 }
    const field = render({ model }).field
    for (const size of [101, 5, 100, 49 * 2 ** 20]) {
      field.files = [{ name: "mine.csv", size }]
      field.dispatchEvent(new Event("change"))
      console.log(JSON.stringify(model.chosen))
    }
    """
    said = subprocess.run(
        ["node", "--input-type=module", "-e", code, "--", Upload._esm],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert [json.loads(line) for line in said.stdout.splitlines()] == [
        ["mine.csv", "", 101, 1],
        ["mine.csv", "MSwyCg==", 5, 2],
        ["mine.csv", "MSwyCg==", 100, 3],
        ["mine.csv", "", 49 * 2**20, 4],
    ]


def test_an_array_of_objects_is_not_unpickled(tmp_path):
    from orderparam.learning_curves import from_file

    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "executed"),)

    np.save(tmp_path / "x.npy", np.array([Evil()], dtype=object), allow_pickle=True)
    with uploaded("x.npy", (tmp_path / "x.npy").read_bytes()) as path, pytest.raises(ValueError):
        from_file(str(path))
    assert not (tmp_path / "executed").exists()


class Asked:
    """As much of a request as the token looks at."""

    def __init__(self, cookie=None, query=None, path="/"):
        self.cookie, self.query, self.path, self.kept = cookie, query, path, {}

    @property
    def request(self):
        return self

    def get_cookie(self, name):
        return self.cookie

    def get_query_argument(self, name, default):
        return self.query if self.query is not None else default

    def set_cookie(self, name, value, **options):
        self.kept[name] = (value, options)


def test_only_the_token_lets_in():
    from tornado.web import HTTPError

    from orderparam.explore.server import COOKIE, Token

    user = Token("a-long-token").get_user
    assert user(Asked()) is None
    for wrong in ("", "a-long-toke", "a-long-token ", "A-LONG-TOKEN", "é"):
        assert user(Asked(cookie=wrong, query=wrong)) is None
    with pytest.raises(HTTPError, match="403"):
        user(Asked(path="/autoload.js"))
    assert user(Asked(cookie="a-long-token")) == "visitor"
    first = Asked(query="a-long-token")
    assert user(first) == "visitor"
    value, options = first.kept[COOKIE]
    assert value == "a-long-token"
    assert options["httponly"]
    assert options["samesite"] == "Strict"


def test_a_choice_that_is_no_longer_offered_is_not_taken():
    from orderparam.explore.menu import Menu

    menu = Menu(options=["a", "b"], value="a")
    menu._process_events({"value": "c"})
    assert menu.value == "a"
    menu._process_events({"value": "b"})
    assert menu.value == "b"
    parts = Menu(options={"first": 1, "second": 2}, value=1)
    parts._process_events({"value": "2"})
    assert parts.value == 2


def rows_in_base_64(names="a,b,y"):
    rng = np.random.default_rng(0)
    rows = "\n".join(f"{a},{b},{a - b + 0.1 * c}" for a, b, c in rng.normal(size=(40, 3)))
    content = f"{names}\n{rows}\n".encode()
    return base64.b64encode(content).decode(), len(content)


@pytest.fixture
def held(tmp_path, monkeypatch):
    """A page whose forecasts are made at once and whose answers wait to be shown."""
    text, size = rows_in_base_64()
    (tmp_path / "lies.csv").write_bytes(base64.b64decode(text))
    waiting = []
    page = YourData(tmp_path, False, waiting.append)
    monkeypatch.setattr(page._latest, "ask", lambda asked: page._work(asked, lambda: False))
    page.upload.chosen = ["good.csv", text, size, 1]
    return page, waiting


def shown(waiting):
    while waiting:
        waiting.pop(0)()


def test_what_comes_too_late_does_not_hide_that_a_file_is_refused(held):
    page, waiting = held
    page.upload.chosen = ["wrong.csv", "", 0, 2]
    shown(waiting)
    assert "wrong.csv has 0 bytes" in page.status.object
    assert page.words.object == ""


def test_nothing_of_an_earlier_file_stays_where_one_is_refused(held):
    page, waiting = held
    shown(waiting)
    assert "good" in page.words.object
    assert len(page._curve.data["x"])
    page.upload.chosen = ["wrong.csv", "", 0, 2]
    assert page.words.object == ""
    assert not len(page._curve.data["x"])


def test_the_file_that_was_chosen_last_is_read(held):
    page, waiting = held
    shown(waiting)
    page.file.value = "lies.csv"
    shown(waiting)
    assert "lies" in page.words.object
    text, size = rows_in_base_64("a,b,z")
    page.upload.chosen = ["new.csv", text, size, 2]
    shown(waiting)
    assert "new" in page.words.object
    assert page.file.value == ""
    page.target.value = "a"
    shown(waiting)
    assert "variance of a." in page.words.object


def test_what_cannot_be_learnt_is_said_of_the_file(held):
    page, waiting = held
    content = b"a,b,y\n" + b"".join(b"%d,%d,2\n" % (n, n * n) for n in range(40))
    page.upload.chosen = ["flat.csv", base64.b64encode(content).decode(), len(content), 2]
    shown(waiting)
    assert "flat" in page.status.object
    assert "nothing to learn" in page.status.object
