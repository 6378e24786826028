"""How often the intervals of `op.width` hold the exponents of known laws.

    python benchmarks/width_coverage.py [--repeats 200]

Sizes: N^e (1 + c (N_0 / N)^w) with noise of a run that falls as N^-g, three seeds at each width.
Beside it what a coordinate check does at most: a straight line, and a straight line to which a term
1 / N is added where an F test at 5 % asks for it. Best rates: ln L = (x - x*)^2 / 8 with a cubic
term, an offset of each seed and noise of each run; beside it the slope of the raw best rates of the
grid.
"""

import argparse

import numpy as np
from scipy import stats

from orderparam.analysis.corrections import slope_law
from orderparam.observables.width_rate import rate_shift
from orderparam.observables.width_runs import WidthRuns

SHORT, LONG = (64, 256, 1024), (64, 128, 256, 512, 1024)
LAWS = ((0.0, 1.0), (0.1, 1.0), (0.5, 1.0), (1.0, 1.0), (0.5, 0.5), (1.0, 0.5))  # c, w
NOISES = ((0.1, 0.0), (0.1, 0.5), (0.02, 0.5))  # of ln size at the smallest width, g


def straight(x: np.ndarray, y: np.ndarray, tested: bool) -> tuple[float, float]:
    columns = [np.ones_like(x), x]
    found = []
    for further in ([], [np.exp(x.min() - x)]):
        design = np.column_stack([*columns, *further])
        coefficients = np.linalg.lstsq(design, y, rcond=None)[0]
        rest = float(np.sum((y - design @ coefficients) ** 2))
        freedom = len(y) - design.shape[1]
        error = (np.linalg.inv(design.T @ design)[1, 1] * rest / freedom) ** 0.5
        half = stats.t.ppf(0.975, freedom) * error
        found.append((coefficients[1] - half, coefficients[1] + half, rest, freedom))
    (low, high, rest, _), (*curved, least, freedom) = found
    probability = stats.f.sf((rest - least) / (least / freedom), 1, freedom)
    return tuple(curved) if tested and probability < 0.05 else (low, high)


def sizes(repeats: int) -> None:
    print("widths noise fall  c    w    covers half | straight | F test")
    for widths in (SHORT, LONG):
        n = np.repeat(widths, 3).astype(float)
        x = np.log(n)
        for noise, fall in NOISES:
            for c, w in LAWS:
                rng = np.random.default_rng(0)
                held, half = np.zeros(3), np.zeros(3)
                for _ in range(repeats):
                    scatter = noise * (n / n.min()) ** -fall * rng.standard_normal(len(n))
                    y = -0.5 * x + np.log1p(c * (n.min() / n) ** w) + scatter
                    ends = (
                        slope_law(x, y).quantiles((0.025, 0.975)),
                        straight(x, y, tested=False),
                        straight(x, y, tested=True),
                    )
                    held += [low <= -0.5 <= high for low, high in ends]
                    half += [(high - low) / 2 for low, high in ends]
                told = " | ".join(
                    f"{a:.3f} {b:.3f}" for a, b in zip(held / repeats, half / repeats)
                )
                print(
                    f"{len(widths):4d} {noise:6.2f} {fall:4.1f} {c:5.1f} {w:4.1f}   {told}",
                    flush=True,
                )


def best_rates(repeats: int) -> None:
    print("exponent grid noise skew  covers half | raw: sd of the slope")
    for exponent, step, noise, skew in (
        (0.0, 1.0, 0.003, 0.05),
        (0.0, 1.0, 0.02, 0.05),
        (-0.5, 1.0, 0.02, 0.05),
        (-1.0, 0.5, 0.02, 0.05),
        (-0.5, 2.0, 0.003, 0.05),
        (0.0, 1.0, 0.1, 0.0),
    ):
        rng = np.random.default_rng(0)
        held, half, raw = 0, 0.0, []
        for _ in range(repeats):
            runs = drawn(rng, exponent, step, noise, skew)
            found = rate_shift(runs)
            low, high = found.interval
            held += low <= exponent <= high
            half += (high - low) / 2
            best = [
                runs.rate[here][np.argmin(runs.loss[here])]
                for here in (runs.width == n for n in runs.widths)
            ]
            raw.append(np.polyfit(np.log2(runs.widths), np.log2(best), 1)[0])
        print(
            f"{exponent:6.1f} {step:5.1f} {noise:6.3f} {skew:5.2f}   {held / repeats:.3f} "
            f"{half / repeats:.3f} | {np.std(raw):.3f}",
            flush=True,
        )


def drawn(
    rng: np.random.Generator, exponent: float, step: float, noise: float, skew: float
) -> WidthRuns:
    """Six widths, three seeds; where the grid lies is random."""
    rows = []
    place = rng.uniform(0, step)
    for n in 32 * 2 ** np.arange(6):
        best = exponent * np.log2(n / 256)
        offsets = 0.02 * rng.standard_normal(3)
        for x in np.arange(-13, 13, step) + place:
            if abs(x - best) > 6:
                continue
            for s in range(3):
                d = x - best
                log = (d**2 + skew * d**3) / 8 + offsets[s] + noise * rng.standard_normal()
                rows.append((n, 2.0**x, s, np.exp(log)))
    width, rate, seed, loss = map(np.array, zip(*rows))
    return WidthRuns(width, rate, seed, loss)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=200)
    repeats = parser.parse_args().repeats
    best_rates(repeats)
    sizes(repeats)


if __name__ == "__main__":
    main()
