"""What a visitor may upload to the explorer, in a real browser: damaged tables, foreign formats,
bombs, odd names."""

import gzip
import io
import os
import random
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("panel", reason="the extra explore is not installed")
pytest.importorskip("playwright.sync_api", reason="the extra browser is not installed")
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "explore"))
from test_browser import CHROMIUM, PATIENCE, chromium, explorer  # noqa: F401
from test_explorer import memory_of, server_of

pytestmark = [
    pytest.mark.attack,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium"),
    pytest.mark.timeout(1800),
]
TIMES = int(os.environ.get("ORDERPARAM_ATTACK_UPLOADS", "150"))


def good(rng):
    rows = rng.normal(size=(60, 3))
    out = io.StringIO()
    np.savetxt(
        out,
        np.c_[rows, rows[:, 0] + 0.1 * rng.normal(size=60)],
        delimiter=",",
        header="a,b,c,y",
        comments="",
    )
    return out.getvalue().encode()


def npy(array, **options):
    out = io.BytesIO()
    np.save(out, array, **options)
    return out.getvalue()


class Evil:
    """Writes a file when it is unpickled."""

    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return Path.touch, (Path(self.place),)


def upload(draw, rng, trap):
    """Name and content of a file that nobody means well with."""
    table = good(rng)
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", b"\0" * 10**7)
    whole = npy(rng.normal(size=(60, 4)))
    cut = draw.randrange(1, len(table))
    flipped = bytearray(table)
    for _ in range(20):
        flipped[draw.randrange(len(flipped))] = draw.randrange(256)
    broken = bytearray(whole)
    broken[draw.randrange(128)] ^= 1 << draw.randrange(8)
    kinds = [
        (".csv", table[:cut]),
        (".csv", bytes(flipped)),
        (".csv", draw.randbytes(draw.randrange(1, 2000))),
        (".csv", b""),
        (".csv", b"\0" * 1000),
        (".csv", b"a,b\n" * 2),
        (".csv", b"a" * 10**6),
        (".csv", b",".join(b"c%d" % k for k in range(20_000)) + b"\n" + b",".join([b"1"] * 20_000)),
        (".csv", b"a,a,y\n" + b"1,2,3\n" * 60),
        (".csv", b'"' + table),
        (".csv", table.replace(b"0.", b"nan")),
        (".csv", table.replace(b"-", b"1e999")),
        (".csv", b"a,y\n" + b"<script>alert(1)</script>,2\n" * 60),
        (".csv", gzip.compress(b"1,2\n" * 10**6)),
        (".csv", "é,ü,y\n".encode("utf-16") + b"1,2,3\n" * 50),
        (".tsv", table.replace(b",", b"\t")[:cut]),
        (".tsv", table),
        (".npy", bytes(broken)),
        (".npy", whole[: draw.randrange(1, len(whole))]),
        (".npy", npy(np.array([Evil(trap)] * 50, dtype=object), allow_pickle=True)),
        (".npy", whole.replace(b"(60, 4), }" + b" " * 6, b"(99999999, 4), }")),
        (".npy", npy(rng.normal(size=(60, 4)) + 1j)),
        (".npy", npy(np.zeros((0, 4)))),
        (".npy", npy(np.full((60, 4), np.inf))),
        (".npy", zipped.getvalue()),
        (".npz", zipped.getvalue()),
        (".pkl", b"\x80\x04."),
        (".csv.exe", table),
        (".xlsx", zipped.getvalue()),
        (".csv", b"1,2\n" * (3 * 2**20)),  # more than is taken
        (".csv", b"1,2\n" * (13 * 2**20)),  # more than one message holds
    ]
    ending, content = draw.choice(kinds)
    name = (
        draw.choice(
            ["mine", "..", "a b", "x" * 120, "é\u202e", "<b>", "$(touch x)", "-o", "con", "%00"]
        )
        + ending
    )
    return name, content


@pytest.fixture
def visit(chromium):  # noqa: F811
    """Opens the page of one's own data, in a context of its own where asked."""
    opened = []

    def visit(address, context=None):
        page = (context or chromium).new_page()
        opened.append(page)
        page.set_default_timeout(PATIENCE)
        page.on("dialog", lambda dialog: scripts.append(dialog.message))
        page.on("pageerror", lambda error: scripts.append(str(error)))
        page.goto(address)
        to_own_data(page)
        return page

    scripts = []
    yield visit
    for page in opened:
        page.close()
    assert scripts == []  # what a file's script would show, and errors of the page's own


def to_own_data(page):
    page.get_by_text("Your data", exact=True).click()
    page.locator("input[type=file]").wait_for()


def choose(page, folder, name, content):
    """As a person does, of a file that lies on their machine."""
    place = folder / "chosen"
    place.mkdir(exist_ok=True)
    (place / name).write_bytes(content)
    page.locator("input[type=file]").set_input_files(str(place / name))
    return place / name


def said(page):
    """The sentence on one's own data, and what stands below the figure."""
    status = page.locator("p[role=status]:visible").all_inner_texts()
    below = page.locator("p:visible", has_text="leave-one-out error").all_inner_texts()
    return " ".join(status), " ".join(below)


def answer(page, mark):
    """The sentence of a file whose name has this mark; its own, as it or what is below names it."""
    deadline = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < deadline:
        status, below = said(page)
        if mark in status or (mark in below and "error falls" in status):
            return status
        time.sleep(0.05)
    raise AssertionError(f"nothing was said of {mark}, but: {said(page)}")


def test_every_upload_ends_in_a_sentence_of_its_own(tmp_path, visit):
    draw, rng = random.Random(5), np.random.default_rng(5)
    trap, memory, sentences, results = tmp_path / "executed", [], {}, 0
    before = set(Path("/tmp").glob("orderparam-*"))
    with explorer(tmp_path, port=5234) as address:
        page = visit(address)
        for number in range(TIMES):
            name, content = upload(draw, rng, trap)
            mark = f"n{number}n"
            place = choose(page, tmp_path, mark + name, content)
            sentence = answer(page, mark)
            place.unlink()
            assert "\n" not in sentence
            assert "Traceback" not in sentence
            assert "orderparam-" not in sentence  # where it lay
            results += "error falls" in sentence
            kind = sentence.replace(mark, "")[:60]
            sentences[kind] = sentences.get(kind, 0) + 1
            memory.append(memory_of(5234))
            if number % 25 == 24:  # one that is meant, between them
                choose(page, tmp_path, f"good{number}.csv", good(rng))
                assert "error falls" in answer(page, f"good{number}")
    print(
        f"{TIMES} uploads, {results} with a forecast, {len(sentences)} different sentences; "
        f"memory {min(memory):.0f} to {max(memory):.0f} MB"
    )
    for sentence, count in sorted(sentences.items(), key=lambda one: -one[1])[:60]:
        print(f"{count:4d} {sentence}")
    assert not trap.exists()
    assert set(Path("/tmp").glob("orderparam-*")) <= before


def test_reload_back_and_a_second_tab(tmp_path, visit, chromium):  # noqa: F811
    """A page forgets what was uploaded, an other one never sees it, and each goes on."""
    rng = np.random.default_rng(1)
    with explorer(tmp_path, port=5235) as address:
        page = visit(address)
        other = visit(address)
        choose(page, tmp_path, "mine.csv", good(rng))
        assert "error falls" in answer(page, "mine")
        assert said(other) == ("", "")
        choose(other, tmp_path, "empty.csv", b"")
        assert "empty.csv has 0 bytes" in answer(other, "empty")
        assert "error falls" in said(page)[0]
        page.reload()
        to_own_data(page)
        assert said(page) == ("", "")
        choose(page, tmp_path, "again.csv", good(rng))
        assert "error falls" in answer(page, "again")
        page.goto("about:blank")
        page.go_back()
        to_own_data(page)
        choose(page, tmp_path, "back.csv", good(rng))
        assert "error falls" in answer(page, "back")
        for number in range(8):  # in one breath: the last one counts
            choose(page, tmp_path, f"quick{number}.csv", good(rng) if number % 2 else b"a,b\n")
        choose(page, tmp_path, "final.csv", b"")
        assert "final.csv has 0 bytes" in answer(page, "final")
        time.sleep(5)
        assert "final.csv has 0 bytes" in said(page)[0]
        assert said(page)[1] == ""


def test_a_page_that_is_closed_while_it_learns_leaves_nothing_running(tmp_path, visit, chromium):  # noqa: F811
    rng = np.random.default_rng(2)
    with explorer(tmp_path, port=5236) as address:
        for number in range(6):
            page = visit(address)
            choose(page, tmp_path, f"closed{number}.csv", good(rng))
            if number % 2:
                page.locator("p[role=status]:visible", has_text="fc:1:relu").wait_for()
            page.close()
        page = visit(address)
        choose(page, tmp_path, "after.csv", good(rng))
        assert "error falls" in answer(page, "after")
        time.sleep(20)  # pages that are gone have been forgotten by then
        used = [processor_seconds(5236)]
        time.sleep(4)
        used.append(processor_seconds(5236))
        assert used[1] - used[0] < 2
        page.close()


def processor_seconds(port):
    words = (server_of(port) / "stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
