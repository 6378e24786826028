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
from test_explorer import memory_of

pytestmark = [
    pytest.mark.attack,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium"),
    pytest.mark.timeout(1800),
]
TIMES = int(os.environ.get("ORDERPARAM_ATTACK_UPLOADS", "150"))
SAID = """() => {
  const search = (root) => {
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) { const found = search(element.shadowRoot); if (found) return found }
      if (element.tagName == "P" && element.getAttribute("role") == "status" && element.closest("[hidden]") == null)
        if (/rows|bytes|must|has |is |holds|file|column|error|claims|unreadable|numbers|cannot|needs/.test(element.textContent))
          return element.textContent
    }
    return ""
  }
  return search(document)
}"""


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


def test_uploads_end_in_a_sentence(tmp_path, chromium):  # noqa: F811
    draw, rng = random.Random(5), np.random.default_rng(5)
    trap, memory, sentences = tmp_path / "executed", [], {}
    with explorer(tmp_path, port=5234) as address:
        page = chromium.new_page()
        page.set_default_timeout(PATIENCE)
        page.on(
            "dialog", lambda dialog: pytest.fail(f"a script of the file was run: {dialog.message}")
        )
        page.goto(address)
        page.wait_for_selector("text=Your data")
        page.get_by_text("Your data").click()
        for number in range(TIMES):
            name, content = upload(draw, rng, trap)
            page.locator("input[type=file]").set_input_files(
                {"name": name, "mimeType": "text/csv", "buffer": content}, timeout=PATIENCE
            )
            time.sleep(0.6)
            said = page.evaluate(SAID)
            sentences[said[:60]] = sentences.get(said[:60], 0) + 1
            assert "\n" not in said
            assert "Traceback" not in said
            memory.append(memory_of(5234))
            if number % 25 == 24:  # one that is meant, between them
                page.locator("input[type=file]").set_input_files(
                    {"name": "good.csv", "mimeType": "text/csv", "buffer": good(rng)},
                    timeout=PATIENCE,
                )
                page.wait_for_selector("text=/learning 60 rows|error falls as/")
        page.close()
    print(
        f"{TIMES} uploads; memory {min(memory):.0f} to {max(memory):.0f} MB; {len(sentences)} different sentences"
    )
    for said, count in sorted(sentences.items(), key=lambda one: -one[1])[:40]:
        print(f"{count:4d} {said}")
    assert not trap.exists()
    assert not list(Path("/tmp").glob("orderparam-*/*.csv"))
