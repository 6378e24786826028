"""The folder of a study: its points as they finish, and the figure and summary made from them."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import zarr

from orderparam.comparison.comparison import Comparison, agreements
from orderparam.comparison.curve import slug
from orderparam.comparison.registry import Study, absent, find, is_registered
from orderparam.comparison.summary import opened, sealed
from orderparam.core.errors import StoreError
from orderparam.core.facets import key
from orderparam.core.paths import clear_leftovers, make_whole, whole_file
from orderparam.running.lock import may_stay
from orderparam.running.store import fingerprint, read

_ATTRIBUTES = (
    "label",
    "facets",
    "kind",
    "baseline",
    "function",
    "system",
    "points",
    "failed",
    "unconverged",
)


def open_result(out: Path, chosen: Study, parameters: dict[str, Any]) -> Path:
    """Opens `result.zarr` inside `out`, which must be new or belong to the very same run; anything
    else is refused."""
    path = out / "result.zarr"
    identity = json.loads(json.dumps({"study": chosen.name, "parameters": parameters}))
    try:
        if out.exists() and not out.is_dir():
            raise StoreError(f"{out} is a file; choose another folder with --out")
        clear_leftovers(path)
        if not path.exists():
            if out.exists() and any(
                not entry.name.startswith(".result.zarr.") for entry in out.iterdir()
            ):
                raise StoreError(
                    f"{out} is not empty and holds no result; choose another folder with --out"
                )
            make_whole(
                path,
                lambda aside: zarr.create_group(
                    aside, attributes={"orderparam_study": identity}, overwrite=True
                ),
            )
        stored: Any = zarr.open_group(path, mode="r").attrs.get("orderparam_study")
    except OSError as error:
        raise StoreError(f"cannot write {out}: {error.strerror or error}") from None
    except StoreError:
        raise
    except Exception as error:
        raise StoreError(
            f"{path} is damaged ({type(error).__name__}); choose another folder with --out"
        ) from None
    if not isinstance(stored, dict) or "study" not in stored:
        raise StoreError(f"{path} was not written by orderparam; choose another folder with --out")
    if stored["study"] != identity["study"]:
        raise StoreError(
            f"{out} holds a result of {stored['study']!r}; choose another folder with --out"
        )
    if stored["parameters"] != identity["parameters"]:
        keys = set(identity["parameters"]) | set(stored["parameters"])
        other = sorted(
            k for k in keys if stored["parameters"].get(k) != identity["parameters"].get(k)
        )
        raise StoreError(
            f"{out} holds a run with other values of {', '.join(other)}; choose another folder "
            "with --out"
        )
    return path


def write(comparison: Comparison, out: Path) -> None:
    """Writes figure and summary beside the points, each file completely or not at all."""
    from orderparam.plotting import save

    try:
        finished = (out / "summary.json").is_file()
        with may_stay(out, "figure and summary") if finished else nullcontext():
            save(comparison.figure(), out / "figure")
            with whole_file(out / "summary.json") as aside:
                aside.write_text(sealed(comparison.summary))
    except OSError as error:
        raise StoreError(
            f"cannot write {out}: {error.strerror or error}; the points are safe in result.zarr"
        ) from None


def load(out: str | Path) -> Comparison:
    """The finished comparison in a folder, as `compare` wrote it.

    Args:
        out: The folder, or its `result.zarr` or `summary.json`.

    Raises:
        StoreError: where there is no finished comparison, or it is damaged.
    """
    out = Path(out)
    if out.name in ("result.zarr", "summary.json"):
        out = out.parent
    if not (out / "result.zarr").is_dir():
        raise StoreError(f"{out} holds no result of orderparam (no result.zarr in it)")
    if not (out / "summary.json").is_file():
        raise StoreError(
            f"{out} holds an unfinished run: the same command again goes on where it stopped"
        )
    try:
        summary = _summary(out / "summary.json")
        curves = {}
        for record in summary["curves"]:
            name = key(record["label"], record["facets"])
            store = out / "result.zarr" / slug(name)
            data = read(store)
            if fingerprint(store) != record["checksum"]:
                raise StoreError(
                    f"{store} is not the curve {name!r} that summary.json is about: put it back "
                    "where it was; if points of it were computed again, the same command writes "
                    "the summary anew"
                )
            data.attrs = {attribute: record[attribute] for attribute in _ATTRIBUTES}
            data.attrs["same_data"] = record.get("same_data", False)
            data.attrs["bound"] = record.get("bound", "")
            curves[name] = data
        chosen = find(summary["study"]) if is_registered(summary["study"]) else absent(summary)
        parameters = chosen.parameters(settings=summary["parameters"])
        tables = agreements(curves, chosen.observables)
    except StoreError:
        raise
    except Exception as error:
        raise StoreError(f"{out} is damaged ({type(error).__name__}: {error})") from None
    return Comparison(chosen, parameters, curves, tables, summary)


def _summary(file: Path) -> dict[str, Any]:
    """The record in `summary.json`. Raises `StoreError` if it was altered."""
    try:
        return opened(file.read_text())
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{file} is damaged ({error}): the same command writes it anew") from None
