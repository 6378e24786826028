"""Study of finite-size scaling, in which the number of samples corresponds to the length of a
magnet."""

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from orderparam.analysis import Collapse, collapse
from orderparam.comparison import Curve, study
from orderparam.kernels.spectrum import Spectrum
from orderparam.plotting import Freehand
from orderparam.plotting.style import COLOURS, MARKERS, ink
from orderparam.systems.renormalization.decimation.experiment import regression
from orderparam.systems.renormalization.decimation.model import DecimatedRegression
from orderparam.systems.renormalization.decimation.theory import decimated
from orderparam.systems.renormalization.magnet.experiment import block_spins
from orderparam.systems.renormalization.magnet.model import SpinBlocks

# ------------------------------------------------------------------------------------------------
# Collapses of learnabilities, of learning curves and of the magnet, all by
# `orderparam.analysis.collapse`.


def learnabilities(runs: xr.Dataset, reach: float = 1.0, groups: int = 20) -> Collapse:
    """Collapse of learnabilities, L_k = F(k P^inverse_nu); without a ridge inverse_nu = -1.

    The modes k up to the largest P are averaged in groups of about equal width in ln k. The fit
    uses modes below `reach` times the number of frozen modes, which is proportional to P.
    """
    largest = min(runs.sizes["mode"], int(reach * float(runs["n_train"].max())))
    near = runs[["learnability"]].squeeze("temperature", drop=True)
    near = near.assign_coords(mode=("mode", np.arange(1.0, runs.sizes["mode"] + 1)))
    edges = np.unique(np.geomspace(1, largest + 1, groups + 1).round().astype(int)) - 1
    parts = [near.isel(mode=slice(*ends)) for ends in itertools.pairwise(edges)]
    means = [part.mean("mode").expand_dims(mode=[float(part["mode"].mean())]) for part in parts]
    merged = xr.concat(means, "mode")
    return collapse(
        merged,
        x="mode",
        y="learnability",
        size="n_train",
        critical=0.0,
        power=0.0,
        window=reach,
        order=6,
    )


def learning_curves(runs: xr.Dataset) -> Collapse:
    """Collapse of learning curves, E = P^power F(T P^inverse_nu); for alpha = beta and no noise
    power = -alpha and inverse_nu = alpha.
    """
    return collapse(runs, x="temperature", y="test_error", size="n_train", critical=0.0, order=3)


def magnetisations(runs: xr.Dataset) -> Collapse:
    """Collapse of magnets, <m^2> = L^power F((T - T_c) L^inverse_nu); in two dimensions power = -2
    beta/nu = -1/4, inverse_nu = 1 and T_c = 2.2692.
    """
    return collapse(
        runs, x="temperature", y="squared_magnetisation", size="length", order=4, window=3.0
    )


def draw_collapse(
    fit_of: Callable[[xr.Dataset], Collapse],
    runs_of: Callable[[Any], xr.Dataset],
    labels: dict[str, str],
    axes: Any,
    comparison: Any,
) -> None:
    """Draw the points on their common curve, with one colour for each size, and state the exponents
    with their errors.

    labels: the labels "x" and "y" of the axes, the symbol "size" of the sizes, and the symbol of
    each fitted number under its name. If a symbol has a minus sign, the number is shown with the
    opposite sign.
    """
    axes.set(xlabel=labels["x"], ylabel=labels["y"])
    try:
        fit = fit_of(runs_of(comparison))
    except ValueError as error:  # too few points
        axes.set_title(str(error))
        return
    for number, size in enumerate(fit.sizes):
        own = fit.scaled_size == size
        look: dict[str, Any] = {
            "color": COLOURS[number % len(COLOURS)],
            "fmt": MARKERS[number % len(MARKERS)],
            "markersize": 3,
        }
        text = f"${labels['size']}$ = {size:g}"
        axes.errorbar(
            fit.scaled_x[own],
            fit.scaled_y[own],
            fit.scaled_error[own],
            label=text,
            markerfacecolor="white",
            **look,
        )
    u = np.linspace(fit.scaled_x.min(), fit.scaled_x.max(), 300)
    axes.plot(u, fit.curve(u), color=ink(), linewidth=0.8)
    lines = []
    for name in ("critical", "inverse_nu", "power"):
        if name in labels:
            sign = -1 if labels[name].startswith("-") else 1
            unsure = getattr(fit, f"{name}_error")
            lines.append(
                f"${labels[name].removeprefix('-')}$ = {sign * getattr(fit, name):.3f} ± "
                f"{unsure:.3f}"
            )
    if not fit.accepted:
        lines.append(f"not accepted: $\\chi^2$ {fit.chi_squared:.0f} / {fit.freedom}")
    axes.set_title("\n".join(lines))


def _of(part: str, comparison: Any) -> xr.Dataset:
    """The measured curve of a part of the figure."""
    (data,) = (
        data for data in comparison.experiments().values() if data.attrs["facets"]["part"] == part
    )
    return data


def _magnets(comparison: Any) -> xr.Dataset:
    """Moments of the magnets of all lengths in one data set."""
    runs = {
        data.attrs["facets"]["length"]: data
        for data in comparison.experiments().values()
        if "length" in data.attrs["facets"]
    }
    names = ["squared_magnetisation", "squared_magnetisation_error"]
    return xr.concat(
        [runs[length][names].expand_dims(length=[length]) for length in sorted(runs)], "length"
    )


@study(
    "finite-size",
    title=(
        "Finite-size scaling: the number of samples limits learning as the linear size limits a "
        "magnet"
    ),
    source="Fisher, Barber 1972; Ringel et al. 2025 (finite-size effects)",
    seconds=(60, 900),
    observables=("test_error",),
    gallery={"n_train": (50, 100, 200, 400), "modes": 10_000, "magnets": 16, "seeds": 32},
    full={
        "seeds": 40,
        "magnets": 16,
        "n_train": (50, 100, 200, 400, 800),
        "lengths": (16, 32, 64, 128),
        "sweeps": 4000,
    },
    columns=3,
    panels=[
        Freehand(
            partial(
                draw_collapse,
                learnabilities,
                partial(_of, "modes"),
                {"x": r"$k\,P^{-x}$", "y": "learnability $L_k$", "size": "P", "inverse_nu": "-x"},
            ),
        ),
        Freehand(
            partial(
                draw_collapse,
                learning_curves,
                partial(_of, "curve"),
                {
                    "x": r"$T\,P^{x}$",
                    "y": r"$E\,P^{y}$",
                    "size": "P",
                    "inverse_nu": "x",
                    "power": "-y",
                },
            ),
        ),
        Freehand(
            partial(
                draw_collapse,
                magnetisations,
                _magnets,
                {
                    "x": r"$(T-T_c)\,L^{1/\nu}$",
                    "y": r"$\langle m^2\rangle L^{2\beta/\nu}$",
                    "size": "L",
                    "critical": "T_c",
                    "inverse_nu": r"1/\nu",
                    "power": r"-2\beta/\nu",
                },
            ),
        ),
    ],
    caption=r"""
        Left and middle: Gaussian features, eigenvalues and squared coefficients of the target
        $\lambda_k=y_k^2=k^{{-1-\alpha}}$, $\alpha$ = {alpha}, {modes} modes, means of {seeds} runs.
        $P$: training examples; $L_k$: the share of the coefficient of mode $k$ that is learned;
        $E$: test error; $T$: ridge. The theory at large $P$ predicts $x$ = 1 on the left (ridge
        {cold:g}) and $x=y=\alpha$ in the middle. Right: Ising model on $L$ x $L$ sites, where $T$
        is the temperature and $m$ the magnetisation of a spin, means of {magnets} runs. $P$ plays
        the part of $L$. Exactly, $T_c$ = 2.2692, $1/\nu$ = 1 and $2\beta/\nu$ = 0.25. Lines: fitted
        polynomials. Above: exponents that bring all sizes onto one line, with standard errors.
    """,
)
def finite_size(
    alpha: float = 1.0,
    modes: int = 2000,
    n_train: tuple[int, ...] = (50, 100, 200),
    scaled_temperatures: tuple[float, ...] = (0.5, 2.0, 4.0, 7.0, 10.0),
    cold: float = 1e-8,
    lengths: tuple[int, ...] = (16, 32, 64),
    temperatures: tuple[float, ...] = (2.22, 2.25, 2.27, 2.29, 2.32),
    sweeps: int = 400,
    replicas: int = 8,
    magnets: int = 4,
    seeds: int = 16,
) -> Iterator[Curve]:
    k = np.arange(1.0, modes + 1)
    system = DecimatedRegression(Spectrum(k ** (-1 - alpha), k ** (-1 - alpha)), 100, cold)
    middle = float(np.sqrt(min(n_train) * max(n_train)))
    over = {
        "n_train": n_train,
        "temperature": tuple(round(float(t * middle**-alpha), 6) for t in scaled_temperatures),
    }
    sites = {length: SpinBlocks(2.27, length, 1) for length in lengths}
    yield Curve("effective ridge", decimated, system, over, facets={"part": "curve"})
    yield Curve("regression", regression, system, over, seeds, facets={"part": "curve"})
    yield Curve(
        "regression",
        regression,
        system,
        {"n_train": n_train, "temperature": (cold,)},
        seeds,
        facets={"part": "modes"},
    )
    yield from (
        Curve(
            "spins",
            partial(block_spins, sweeps=sweeps, replicas=replicas),
            one,
            {"temperature": temperatures},
            magnets,
            facets={"part": "magnet", "length": length},
        )
        for length, one in sites.items()
    )
