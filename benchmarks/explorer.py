"""What a visitor of the explorer waits for, in a real browser: the page, its first curve, a curve
that follows a slider, a plane.

Needs the extra `browser` and a Chromium.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial

import playwright.sync_api as playwright
from rich.console import Console
from rich.table import Table

PORT = 5245
MOVES = 25
PATIENCE = 120_000  # milliseconds
SYSTEMS = {  # a system, and a number of it that has a slider but is not the axis
    "spins.MeanFieldMagnet": "field",
    "extensive_width.QuadraticTeacher": "noise",
    "kernel_regression.KernelRegression": "temperature",
    "perceptron.ThermalPerceptron": "temperature",
}
LINES = (
    "[...Bokeh.documents[0]._all_models.values()]"
    '.filter((model) => model.type === "ColumnDataSource" && model.data.ys)'
)
# milliseconds from a key on a slider to the frame after the first curve that changed
WATCH = f"""() => {{
  window.moves = []; window.pressed = null
  document.addEventListener("keydown", () => {{ window.pressed = performance.now() }}, true)
  for (const source of {LINES})
    source.properties.data.change.connect(() => {{
      if (window.pressed === null) return
      const begun = window.pressed; window.pressed = null
      requestAnimationFrame(() => window.moves.push(performance.now() - begun))
    }})
}}"""
DRAWN = f"() => Bokeh.documents.length > 0 && {LINES}.some((source) => source.data.ys.length > 0)"
PAINTED = 'performance.getEntriesByName("first-contentful-paint")[0].startTime'


def seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def megabytes(pid: int) -> float:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        sys.exit("this benchmark needs Chromium: apt install chromium")
    table = Table(title="the explorer in a browser, seconds")
    for column in ("what", "first", "median of the others", "90 %"):
        table.add_column(column, justify="left" if column == "what" else "right")
    with tempfile.TemporaryDirectory() as folder, playwright.sync_playwright() as driver:
        words = [
            sys.executable,
            "-m",
            "orderparam",
            "explore",
            "--no-browser",
            "--port",
            str(PORT),
            "--folder",
            folder,
        ]
        begun = time.perf_counter()
        server = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            assert server.stdout is not None
            for line in server.stdout:
                if "Ctrl-C" in line:
                    break
            table.add_row(
                "the command, until the server answers", f"{time.perf_counter() - begun:.2f}"
            )
            browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
            painted, drawn = [], []
            for _ in range(4):
                page = browser.new_page(viewport={"width": 1400, "height": 1000})
                page.set_default_timeout(PATIENCE)
                begun = time.perf_counter()
                page.goto(f"http://localhost:{PORT}/")
                page.wait_for_function(DRAWN)
                drawn.append(time.perf_counter() - begun)
                painted.append(page.evaluate(PAINTED) / 1000)
                page.close()
            for name, several in (
                ("a page, until something is painted", painted),
                ("a page, until its first curve", drawn),
            ):
                table.add_row(name, f"{several[0]:.2f}", f"{statistics.median(several[1:]):.2f}")
            for system, slider in SYSTEMS.items():
                page = browser.new_page(viewport={"width": 1400, "height": 1000})
                page.set_default_timeout(PATIENCE)
                page.goto(f"http://localhost:{PORT}/?system={system}")
                page.wait_for_selector("text=Measure here")
                first = seconds(partial(page.wait_for_function, DRAWN))
                time.sleep(2)
                page.evaluate(WATCH)
                page.get_by_role("slider", name=slider, exact=True).first.focus()
                for k in range(MOVES):
                    page.keyboard.press("ArrowRight" if k % 2 else "ArrowLeft")
                    time.sleep(0.6)
                moves = sorted(page.evaluate("window.moves"))
                tail = f"{moves[int(0.9 * len(moves))] / 1000:.3f}"
                what = f"{system}: {slider} moved, until a curve follows"
                table.add_row(what, f"{first:.2f}", f"{statistics.median(moves) / 1000:.3f}", tail)
                page.close()
            page = browser.new_page(viewport={"width": 1400, "height": 1000})
            page.set_default_timeout(PATIENCE)
            page.goto(f"http://localhost:{PORT}/")
            page.wait_for_selector("text=Measure here")
            page.get_by_text("Phase plane").click()
            begun = time.perf_counter()
            page.get_by_role("button", name="Fill in").click()
            page.wait_for_selector("text=click in the plane")
            table.add_row(
                "the plane of the first system, first picture", f"{time.perf_counter() - begun:.2f}"
            )
            table.add_row("memory of the server, MB", f"{megabytes(server.pid):.0f}")
        finally:
            server.terminate()
            server.wait(30)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
