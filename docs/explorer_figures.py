"""Writes what the explorer shows before anything is computed.

    python docs/explorer_figures.py [SYSTEM ...]
        # orderparam/explore/figures.json: the figure on which each system opens
    python docs/explorer_figures.py --gallery
        # orderparam/explore/thumbnails: the pictures of docs/gallery, small

Without names the figures of all starts of orderparam/explore/starts.toml, in an hour; what is there
of other systems is kept.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image

from orderparam.explore.choose import THUMBNAILS
from orderparam.explore.curves import entries
from orderparam.explore.evaluate import curve
from orderparam.explore.figures import STORE
from orderparam.explore.first_state import opened
from orderparam.explore.starts import starts
from orderparam.explore.state import PageState
from orderparam.running.estimate import estimate
from orderparam.running.sweep import sweep

DIGITS = 4
# of a thumbnail: its longer side in pixels, and how well it is kept (all together some 200 KB)
SIDE, QUALITY = 160, 15


def rounded(values):
    """Nested lists and dictionaries of numbers of four digits; None for a missing one."""
    if isinstance(values, dict):
        return {key: rounded(one) for key, one in values.items()}
    if isinstance(values, list | tuple) or getattr(values, "ndim", 0):
        return [rounded(one) for one in values]
    return float(f"{values:.{DIGITS}g}") if np.isfinite(values) else None


def theories_of_start(state: PageState) -> dict:
    """Theory -> rows of the observable that is shown."""
    found = {}
    for name in state.theories:
        data = curve(state, name, lambda: False).data
        if data is not None and state.show[0] in data:
            sound = data["status"].values == 1
            found[name] = [
                np.where(sound, row, np.nan) for row in entries(data[state.show[0]], state.x)
            ]
    return found


def measured_of_start(state: PageState) -> tuple[list, list, list]:
    """Places, means and standard errors of the experiment."""
    if not state.experiment:
        return [], [], []
    fn = state.verb_with_options(state.experiment)
    data = sweep(fn, state.instance, {state.x: state.places}, seeds=state.seeds, progress=False)
    mean, error = (entries(one, state.x) for one in estimate(data, state.show[0]))
    return state.places, mean, error


def main(names: list[str]) -> None:
    kept = json.loads(STORE.read_text()) if STORE.exists() else {}
    for name in names or list(starts()):
        begin = time.perf_counter()
        state = opened(name)
        curves = theories_of_start(state)
        print(f"{name}: theories {time.perf_counter() - begin:.0f} s", flush=True)
        row = {"x": state.grid, "curves": curves, "measured_x": [], "mean": [], "error": []}
        keep(kept, name, row)  # marks may take long, or be stopped
        middle = time.perf_counter()
        x, mean, error = measured_of_start(state)
        keep(kept, name, {**row, "measured_x": x, "mean": mean, "error": error})
        print(f"{name}: measured {time.perf_counter() - middle:.0f} s", flush=True)


def keep(kept: dict, name: str, row: dict) -> None:
    """Writes the store with this system's figure in it."""
    kept[name] = {key: rounded(one) for key, one in row.items()}
    text = ",\n".join(
        f'"{key}": {json.dumps(kept[key], separators=(",", ":"))}'
        for key in starts()
        if key in kept
    )
    STORE.write_text("{\n" + text + "\n}\n")


def thumbnails() -> None:
    """Makes the pictures of the gallery small; those of studies that are gone are removed."""
    drawn = (Path(__file__).parent / "gallery").glob("*.webp")
    found = sorted(path for path in drawn if not path.stem.endswith("-narrow"))
    THUMBNAILS.mkdir(exist_ok=True)
    for path in {one.name for one in THUMBNAILS.glob("*.webp")} - {one.name for one in found}:
        (THUMBNAILS / path).unlink()
    for path in found:
        picture = Image.open(path).convert("RGB")
        picture.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
        picture.save(THUMBNAILS / path.name, "webp", quality=QUALITY, method=6)


if __name__ == "__main__":
    thumbnails() if sys.argv[1:] == ["--gallery"] else main(sys.argv[1:])
