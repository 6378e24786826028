"""How far `orderparam.forecast` can be trusted: forecasts from a part of real tables against errors
measured later by scikit-learn.

    python benchmarks/forecast_calibration.py --store results.json
        # goes on where it stopped
    python benchmarks/forecast_calibration.py --store tuning.json --tuning
        # the tables that the numbers were chosen on
    python benchmarks/forecast_calibration.py --store drawn.json --drawn
        # network and trees, on drawn tables
    python benchmarks/forecast_calibration.py --store large.json --drawn --least 2001
        # above 2000 rows, and laws

--subsets says how many random parts of each table are forecast. From n random rows of a table (a
quarter; of larger tables also fewer) the error at 2, 4 and 10 times as many is predicted. Then it
is measured: random training sets of that size from the whole table, the others held out, by
scikit-learn's KernelRidge with the same ridge and the same kernel, computed here in NumPy. Errors
are shares of the target's variance.

--drawn forecasts the network, boosted trees and a forest, which `forecast` compares with ridge
regression on the same folds, from 50 to 2500 rows: of each table a number below 150, one up to 2000
and one above, drawn at random. The tables are those of `forecasts.drawn` and the smaller ones of
`forecasts.chosen`, and above 2000 rows also samples of `forecasts.laws`; their order is random, so
that a part of them is a random part. --learners names fewer learners, and --laws more laws.

Beside each forecast, what people do: `forecasts.peers`. The tables come with packages: pip install
'orderparam[calibration]'; images with ORDERPARAM_DATA. No table is both reported and for tuning.
"""

import argparse
import dataclasses
import json
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from forecasts import chosen, drawn, laws
from forecasts.later import later_error, later_estimator_error, split
from forecasts.peers import fitted
from scipy.stats import binomtest

from orderparam.data import apply_task
from orderparam.learning_curves import forecast_problem
from orderparam.learning_curves.choice import TRIED
from orderparam.learning_curves.comparison import compare_learners
from orderparam.learning_curves.forecast import ORDERS, _Network, _one
from orderparam.learning_curves.problem import Problem
from orderparam.learning_curves.result import Forecast
from orderparam.running.threads import one_blas_thread

KEYS = ("median |log ratio|", "90 %", "rms", "inside 95 %", "upper/lower")
SUBSETS, LARGEST_TABLE, LARGEST_TRAINING = 6, 4000, 2000
TIMES = (2, 4, 10)
# of --drawn
KNOWN = ((50, 150), (150, 2000), (2001, 2500))
DRAWN_TABLE, DRAWN_TRAINING = drawn.MOST_ROWS, 10_000
NETWORK_TRAINING = 5000  # its errors cost the cube of the rows
MOST_COLUMNS = 300
LEARNERS = ("network", "boosting", "forest")
WITHOUT_WIDE = ("MNIST", "CIFAR")  # images: minutes for every forest of ten classes or 3072 inputs

PEERS = (
    "no change",
    *(f"{how}{form}" for how in ("", "LCDB ") for form in ("power law", "POW4", "MMF4", "WBL4")),
)
Entries = dict[str, Callable[[], Any]]


def rows_in(entry: Any) -> int:
    """The number of rows whose target is known."""
    data, target = entry
    if isinstance(data, pd.DataFrame):
        return int(data[target].notna().sum())
    return len(apply_task(data, target)[1].rows)


def run(
    name: str, entry: Any, known: int, subset: int, learners: tuple[str, ...]
) -> list[dict[str, Any]]:
    """The forecasts from one random part of a table: of each learner, or of the network, chosen
    among several."""
    table, most = (DRAWN_TABLE, DRAWN_TRAINING) if learners else (LARGEST_TABLE, LARGEST_TRAINING)
    random = np.random.default_rng([zlib.crc32(name.encode()), subset, known])
    rows = random.permutation(rows_in(entry))[:table]
    problem, inputs, values = split(entry, rows, known)
    if problem.values.shape[1] != values.shape[1]:
        raise ValueError("a class is not among the known rows")
    whole = dataclasses.replace(problem, inputs=inputs, values=values)
    sizes = [k * known for k in TIMES if k * known <= min(0.9 * len(rows), most)]
    found = []
    for learner, result, seconds in forecasts_of(problem, learners):
        points = []
        for size in sizes:
            if learner == "network" and size > NETWORK_TRAINING:
                continue
            later = (
                later_error(whole, problem.mean, result.arch, result.ridge, size, random)
                if result.estimator is None
                else later_estimator_error(whole, result.estimator, size, random)
            )
            points.append(point(result, size, whole, *later))
        beside(result, points)
        found.append(summary(name, known, subset, learner, result, seconds, points))
    return found


def forecasts_of(
    problem: Problem, learners: tuple[str, ...]
) -> Iterator[tuple[str, Forecast, float]]:
    """What `forecast` says of each learner, from one comparison of boosted trees, a forest, ridge
    regression and one network; without `learners`, of the network of largest evidence."""
    with one_blas_thread():
        started = time.process_time()
        if not learners:
            result = forecast_problem(problem, compare=False)
            yield "network", result, time.process_time() - started
            return
        network = _Network.of(problem, TRIED[:1], None)
        table = (
            []
            if learners == ("network",)
            else compare_learners(problem, network.learner, network.ridge, network.arch, {})
        )
        shared = time.process_time() - started
        for learner in learners:
            started = time.process_time()
            name = network.name if learner == "network" else learner
            result = _one(network, name, {}, table, ORDERS, max(TIMES))
            yield learner, result, shared + time.process_time() - started


def point(
    result: Forecast,
    size: int,
    whole: Problem,
    truth: float,
    unsure: float,
    rate: float = np.nan,
    unsure_rate: float = np.nan,
) -> dict[str, float]:
    """A forecast beside the error that was measured later, with its standard error."""
    value, low, high = result.at(size)
    unit = float(np.sum(whole.values.var(axis=0)))
    # an estimator's errors are in units of the variance of the known rows
    later = truth * (unit if result.estimator is None else result.unit)
    found = {
        "size": size,
        "measured": truth,
        "unsure": unsure,
        "predicted": value,
        "low": low,
        "high": high,
        "absolute": float(np.log(value * result.unit / later)),
        "absolute_spread": result._row(size)["absolute_spread"],
        "absolute_high": float(np.log(result._row(size)["absolute_upper"] / value)),
    }
    if not np.isfinite(rate):
        return found
    middle, lowest, highest = result.at(size, "error_rate")
    last = float(np.nanmean(result.measured["error_rate"].values[-1]))
    return found | {
        "rate": rate,
        "unsure_rate": unsure_rate,
        "rate_at": middle,
        "rate_low": lowest,
        "rate_high": highest,
        "rate_no_change": max(last, 0.5 / result.examples),
    }


def beside(result: Forecast, points: list[dict[str, float]]) -> None:
    """Enters what the peers predict from the same measured curve."""
    n_train = result.measured["n_train"].values.astype(float)
    error = np.nanmean(result.measured["test_error"].values, axis=1)
    found = fitted(n_train, error, np.array([one["size"] for one in points], float))
    for name, values in found.items():
        for one, value in zip(points, values):
            one[name] = value


def summary(
    name: str,
    known: int,
    subset: int,
    learner: str,
    result: Forecast,
    seconds: float,
    points: list[dict[str, float]],
) -> dict[str, Any]:
    return {
        "name": name,
        "known": known,
        "subset": subset,
        "learner": learner,
        "inputs": result.problem.inputs.shape[1],
        "kind": "classes" if result.problem.classes else "regression",
        "arch": result.arch,
        "seconds": seconds,
        "points": points,
    }


def jobs(entries: Entries, subsets: int) -> list[tuple[str, int, int]]:
    """A quarter of every table, and a tenth of those that have 1000 rows, from 60 to 1000."""
    found = []
    for name, read in entries.items():
        try:
            count = rows_in(read())
        except (ImportError, ValueError, AttributeError) as error:
            print(f"left out: {name} ({error})")
            continue
        count = min(count, LARGEST_TABLE)
        shares = {max(60, count // 4), *([max(60, count // 10)] if count >= 1000 else [])}
        found += [
            (name, known, subset)
            for known in sorted(shares)
            for subset in range(subsets)
            if 2 * known <= 0.9 * count
        ]
    return sorted(found, key=lambda job: (job[2], job[1]))


def jobs_drawn(entries: Entries, subsets: int, least: int, most: int) -> list[tuple[str, int, int]]:
    """From each table a number of rows, of `least` to `most`, in each range of KNOWN; the ranges
    take turns, and the tables have a random order."""
    found: list[list[tuple[str, int, int]]] = [[] for _ in KNOWN]
    for name, read in entries.items():
        try:
            entry = read()
        except (ImportError, ValueError, AttributeError, KeyError) as error:
            print(f"left out: {name} ({error})")
            continue
        columns = entry[0].shape[1] if isinstance(entry[0], pd.DataFrame) else 0
        if columns > MOST_COLUMNS:
            print(f"left out: {name} ({columns} columns)")
            continue
        count = min(rows_in(entry), DRAWN_TABLE)
        for subset in range(subsets):
            random = np.random.default_rng([zlib.crc32(name.encode()), subset, 99])
            for part, (low, high) in zip(found, KNOWN):
                high = min(high, int(0.45 * count))
                if high > low >= least and low < most:
                    part.append((name, int(low * (high / low) ** random.uniform()), subset))
    random = np.random.default_rng(17)
    orders = [[part[i] for i in random.permutation(len(part))] for part in found]
    turns = [job for turn in zip_longest(*orders) for job in turn if job is not None]
    return sorted(turns, key=lambda job: job[2])


def figures(results: list[dict[str, Any]]) -> dict[str, Any]:
    points = [point for result in results for point in result["points"]]
    forms = [name for name in PEERS if name in points[0]]
    table = {}
    for name in ("predicted", *forms):
        ratio = np.array([np.log(point[name] / point["measured"]) for point in points])
        table[name] = of_ratios(ratio)
    within = [
        inside(p["measured"], p["unsure"], *(p[key] for key in ("predicted", "low", "high")))
        for p in points
    ]
    table["predicted"] |= share_of(within)
    table["predicted"]["upper/lower"] = float(np.median([p["high"] / p["low"] for p in points]))
    judged = [p for p in points if "rate" in p and p["rate"] > 0 and p["rate_at"] > 0]
    if judged:
        within = [
            inside(
                p["rate"], p["unsure_rate"], *(p[f"rate_{key}"] for key in ("at", "low", "high"))
            )
            for p in judged
        ]
        table["error rate"] = {
            **of_ratios(np.array([np.log(p["rate_at"] / p["rate"]) for p in judged])),
            "upper/lower": float(np.median([p["rate_high"] / p["rate_low"] for p in judged])),
            **share_of(within),
        }
        ratios = np.array([np.log(p["rate_no_change"] / p["rate"]) for p in judged])
        table["error rate, no change"] = of_ratios(ratios)
    absolute = [
        abs(p["absolute"])
        < np.hypot(
            1.96 * p["absolute_spread"] if p["absolute"] > 0 else p["absolute_high"],
            1.96 * p["unsure"] / p["measured"],
        )
        for p in points
    ]
    table["in units"] = {
        **of_ratios(np.array([p["absolute"] for p in points])),
        **share_of(absolute),
    }
    return table


def share_of(within: list[bool]) -> dict[str, float]:
    """The share of points inside, with the 95 % interval of a binomial (Clopper and Pearson)."""
    found = binomtest(int(np.sum(within)), len(within)).proportion_ci(0.95)
    return {"inside 95 %": float(np.mean(within)), "least": found.low, "most": found.high}


def cell(numbers: dict[str, float], key: str) -> str:
    """A number of the report; of points inside also the interval of their share."""
    if key not in numbers:
        return ""
    ends = f" ({numbers['least']:.2f} to {numbers['most']:.2f})" if key == "inside 95 %" else ""
    return f"{numbers[key]:.3f}{ends}"


def inside(truth: float, unsure: float, predicted: float, low: float, high: float) -> bool:
    """True if a measured error, with its standard error, lies in the interval."""
    end = high if truth > predicted else low
    width = np.hypot(np.log(end / predicted), 1.96 * unsure / truth)
    return bool(abs(np.log(truth / predicted)) < width)


def of_ratios(logs: np.ndarray) -> dict[str, float]:
    return {
        "median |log ratio|": float(np.median(np.abs(logs))),
        "90 %": float(np.quantile(np.abs(logs), 0.9)),
        "rms": float(np.sqrt(np.mean(logs**2))),
    }


def judged_only(results: list[dict[str, Any]], drawn_tables: bool) -> list[dict[str, Any]]:
    """Without the tables whose target is determined by the other columns."""
    smallest: dict[str, float] = {}
    for one in results:
        for p in one["points"]:
            least = min(p["measured"], p["no change"])
            smallest[one["name"]] = min(smallest.get(one["name"], np.inf), least)
    return [
        one
        for one in results
        if one["points"] and (not drawn_tables or smallest[one["name"]] >= drawn.DETERMINED)
    ]


def differences(results: list[dict[str, Any]]) -> str:
    """The forecast's median and root mean square minus a peer's, with 95 % intervals from tables
    drawn with replacement."""
    names = sorted({one["name"] for one in results})
    parts = {name: [one for one in results if one["name"] == name] for name in names}
    random, lines = np.random.default_rng(0), []
    logs = {
        name: {
            form: np.array([np.log(p[form] / p["measured"]) for one in part for p in one["points"]])
            for form in ("predicted", "power law", "no change")
        }
        for name, part in parts.items()
    }

    def gain(drawn_names: Any, peer: str) -> tuple[float, float]:
        ours, others = (
            of_ratios(np.concatenate([logs[name][form] for name in drawn_names]))
            for form in ("predicted", peer)
        )
        return tuple(ours[key] - others[key] for key in ("median |log ratio|", "rms"))

    for peer in ("power law", "no change"):
        draws = np.array([gain(random.choice(names, len(names)), peer) for _ in range(1000)])
        ends = np.quantile(draws, [0.025, 0.975], axis=0)
        here = gain(names, peer)
        lines.append(
            f"against {peer}: median {here[0]:+.3f} ({ends[0, 0]:+.3f} to {ends[1, 0]:+.3f}), "
            f"rms {here[1]:+.3f} ({ends[0, 1]:+.3f} to {ends[1, 1]:+.3f})"
        )
    return "\n".join(lines)


def report(results: list[dict[str, Any]]) -> str:
    """The tables of the docs: each data set, then all of them."""
    forms = ("predicted", "power law", "MMF4", "POW4")
    lines = [
        "| table | inputs | rows known | points | " + " | ".join(forms) + " | inside 95 % |",
        "| --- " * 9 + "|",
    ]
    for name in sorted({one["name"] for one in results}):
        part = [one for one in results if one["name"] == name]
        found = figures(part)
        rows = "/".join(str(known) for known in sorted({one["known"] for one in part}))
        medians = " | ".join(f"{found[form]['median |log ratio|']:.2f}" for form in forms)
        points = sum(len(one["points"]) for one in part)
        inside = found["predicted"]["inside 95 %"] * points
        lines.append(
            f"| {name} | {part[0]['inputs']} | {rows} | {points} | {medians} | {inside:.0f} |"
        )
    head = (
        "| | points | median abs. log ratio | 90 % | root mean square | inside 95 % | upper/lower |"
    )
    lines += ["", head, "| --- " * 7 + "|"]
    for name, part in groups(results).items():
        count = sum(len(one["points"]) for one in part)
        for form, numbers in figures(part).items() if part else ():
            cells = " | ".join(cell(numbers, key) for key in KEYS)
            lines.append(f"| {name}, {form} | {count} | {cells} |")
    return "\n".join([*lines, "", differences(results)])


def groups(results: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found = {"all": results}
    for kind in ("regression", "classes"):
        found[kind] = [one for one in results if one["kind"] == kind]
    found["below 150 rows known"] = [one for one in results if one["known"] < 150]
    found["150 to 2000 rows known"] = [one for one in results if 150 <= one["known"] <= 2000]
    found["more than 2000 rows known"] = [one for one in results if one["known"] > 2000]
    for learner in LEARNERS:
        found[learner] = [one for one in results if one["learner"] == learner]
    for times in TIMES:
        found[f"{times} times the rows"] = [
            {**one, "points": near} for one in results if (near := of_reach(one, times))
        ]
    return found


def of_reach(one: dict[str, Any], times: int) -> list[dict[str, float]]:
    return [p for p in one["points"] if round(p["size"] / one["known"]) == times]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", type=Path, default=Path("forecast_calibration.json"))
    parser.add_argument("--tuning", action="store_true")
    parser.add_argument("--drawn", action="store_true", help="tables that a rule drew")
    parser.add_argument("--learners", default=",".join(LEARNERS), help="of --drawn")
    parser.add_argument("--least", type=int, default=0, help="fewest known rows of --drawn")
    parser.add_argument("--most", type=int, default=KNOWN[-1][1], help="most of them")
    parser.add_argument("--laws", type=int, default=laws.LAWS, help="of --least 2001")
    parser.add_argument("--subsets", type=int, default=SUBSETS)
    parser.add_argument(
        "--seconds",
        type=float,
        default=float("inf"),
        help="stop after so many of processor time; the same command goes on",
    )
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    results = json.loads(given.store.read_text()) if given.store.exists() else []
    done = {(one["name"], one["known"], one["subset"]) for one in results}
    entries: Entries = chosen.TUNING if given.tuning else chosen.REPORTED
    learners = tuple(given.learners.split(",")) if given.drawn else ()
    if given.drawn:
        small = {name: read for name, read in entries.items() if not name.startswith(WITHOUT_WIDE)}
        entries = small | drawn.tables("tuning" if given.tuning else "kept apart")
        if given.least > KNOWN[1][1]:
            entries |= laws.tables("tuning" if given.tuning else "kept apart", given.laws)
        wanted = jobs_drawn(entries, given.subsets, given.least, given.most)
    else:
        wanted = jobs(entries, given.subsets)
    started = time.process_time()
    for name, known, subset in wanted:
        if (name, known, subset) in done:
            continue
        if time.process_time() - started > given.seconds:
            print("stopped; the same command goes on")
            break
        try:
            results += run(name, entries[name](), known, subset, learners)
        except ValueError as error:
            print(f"{name}, {known} rows: {error}", flush=True)
            continue
        given.store.write_text(json.dumps(results))
    results = judged_only(results, given.drawn)
    print(report(results))
    print(
        f"{len(results)} forecasts on {len({one['name'] for one in results})} tables, "
        f"{np.median([one['seconds'] for one in results]):.1f} processor seconds each in the median"
    )


if __name__ == "__main__":
    main()
