"""The observables beside packages that measure the same, on cases of which the truth is known.

    pip install torch torch-cka weightwatcher powerlaw
    python benchmarks/beside_inspect_peers.py --repeats 10

Similarity: two layers of independent Gaussian numbers (truth 0) and of relu features of one kernel
(truth 1 in the limit of many neurons). Tails: how often an exponent between 2 and 6, which is read as
a trained layer, is given without a warning for Gaussian matrices. Seconds are wall-clock, of one
call. A package that is not installed is named. netrep is in no package index that pip searches.
"""

import argparse
import contextlib
import importlib.util
import io
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np

from orderparam.observables import power_law_tail, similarity, weight_spectrum

EXAMPLES, INPUTS, WIDTHS = 256, 20, (16, 128)
ASPECTS = (1, 4)
COLUMNS = 128


def _independent(rng: np.random.Generator, width: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.normal(size=(EXAMPLES, width)), rng.normal(size=(EXAMPLES, width))


def _features(rng: np.random.Generator, width: int) -> tuple[np.ndarray, np.ndarray]:
    z = rng.normal(size=(EXAMPLES, INPUTS))
    x, y = (np.maximum(z @ rng.normal(size=(INPUTS, width)), 0) for _ in range(2))
    return x, y


def _ours(x: np.ndarray, y: np.ndarray) -> float:
    return similarity(x, y, estimand="neurons", draws=0).value


def _as_they_are(x: np.ndarray, y: np.ndarray) -> float:
    return similarity(x, y, draws=0).value


def _plain(x: np.ndarray, y: np.ndarray) -> float:
    """Linear CKA as it is mostly computed, without any correction."""
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    top = np.sum((x.T @ y) ** 2)
    return float(top / np.sqrt(np.sum((x.T @ x) ** 2) * np.sum((y.T @ y) ** 2)))


def _torch_cka(x: np.ndarray, y: np.ndarray) -> float:
    import torch
    from torch_cka import CKA

    class Given(torch.nn.Module):
        """A module whose one layer multiplies by a matrix: its outputs are the activations."""

        def __init__(self, weight: np.ndarray) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(len(weight), weight.shape[1], bias=False)
            self.layer.weight.data = torch.as_tensor(weight.T.copy(), dtype=torch.float32)

        def forward(self, rows):
            return self.layer(rows)

    eye = torch.eye(len(x))
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(eye, torch.zeros(len(x))), batch_size=len(x)
    )
    compared = CKA(Given(x), Given(y), device="cpu")
    compared.compare(loader)
    return float(compared.export()["CKA"][0, 0])


def _our_tail(w: np.ndarray) -> float:
    return power_law_tail(weight_spectrum(w)).exponent.value


def _powerlaw(w: np.ndarray) -> float:
    import powerlaw

    fitted = powerlaw.Fit(np.linalg.svd(w, compute_uv=False) ** 2)
    ratio, p = fitted.distribution_compare("power_law", "lognormal")
    return float(fitted.power_law.alpha) if not (ratio < 0 and p < 0.05) else np.nan


def _weightwatcher(w: np.ndarray) -> float:
    import torch
    import weightwatcher

    layer = torch.nn.Linear(*w.shape, bias=False)
    layer.weight.data = torch.as_tensor(w.T.copy(), dtype=torch.float32)
    found = weightwatcher.WeightWatcher(model=torch.nn.Sequential(layer)).analyze()
    return float(found.alpha[0]) if not found.warning[0] else np.nan


SIMILARITIES = {
    "orderparam, many neurons": (_ours, ()),
    "orderparam, as they are": (_as_they_are, ()),
    "plain linear CKA": (_plain, ()),
    "torch-cka": (_torch_cka, ("torch", "torch_cka")),
}
TAILS = {
    "orderparam": (_our_tail, ()),
    "powerlaw": (_powerlaw, ("powerlaw",)),
    "weightwatcher": (_weightwatcher, ("torch", "weightwatcher")),
}


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        yield


def _run(
    measure: Callable[..., float], cases: list[tuple[np.ndarray, ...]]
) -> tuple[np.ndarray, float]:
    """The values, and the seconds of a call; the first call, which may compile, is not timed."""
    with _quiet():
        measure(*cases[0])
        start = time.perf_counter()
        values = np.array([measure(*case) for case in cases])
    return values, (time.perf_counter() - start) / len(cases)


def _absent(needed: tuple[str, ...]) -> list[str]:
    return [name for name in needed if importlib.util.find_spec(name) is None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=10)
    repeats = parser.parse_args().repeats
    for title, draw in (("independent, truth 0", _independent), ("one kernel, truth 1", _features)):
        for width in WIDTHS:
            cases = [draw(np.random.default_rng(seed), width) for seed in range(repeats)]
            for name, (measure, needed) in SIMILARITIES.items():
                if absent := _absent(needed):
                    print(f"{name}: {', '.join(absent)} is not installed")
                    continue
                values, seconds = _run(measure, cases)
                known = values[np.isfinite(values)]
                if len(known) < 2:
                    print(f"{title}, {width} neurons, {name}: not determined, {seconds:.3f} s")
                    continue
                error = known.std(ddof=1) / len(known) ** 0.5
                print(
                    f"{title}, {width} neurons, {name}: {known.mean():.3f} ({error:.3f}), "
                    f"{seconds:.3f} s",
                    flush=True,
                )
    for aspect in ASPECTS:
        cases = [
            (np.random.default_rng(seed).normal(size=(aspect * COLUMNS, COLUMNS)),)
            for seed in range(repeats)
        ]
        for name, (measure, needed) in TAILS.items():
            if absent := _absent(needed):
                print(f"{name}: {', '.join(absent)} is not installed")
                continue
            values, seconds = _run(measure, cases)
            false = np.mean((values > 2) & (values < 6))
            print(
                f"Gaussian, aspect {aspect}, {name}: a tail in {false:.2f} of {repeats}, "
                f"{seconds:.2f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
