"""The figure of finite sizes: the number of samples beside the length of a magnet."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from orderparam.core.study import Curve, study
from orderparam.kernels.spectrum import Spectrum
from orderparam.plotting import Freehand
from orderparam.systems.renormalization.decimation.experiment import regression
from orderparam.systems.renormalization.decimation.model import DecimatedRegression
from orderparam.systems.renormalization.decimation.theory import decimated
from orderparam.systems.renormalization.finite_size.figures import (
    draw_collapse,
    learnabilities,
    learning_curves,
    magnetisations,
)
from orderparam.systems.renormalization.magnet.blocks import block_spins
from orderparam.systems.renormalization.magnet.model import SpinBlocks


def _of(part: str, comparison: Any) -> xr.Dataset:
    """The measured curve of a part."""
    (data,) = (data for data in comparison.experiments().values() if data.attrs["facets"]["part"] == part)
    return data


def _magnets(comparison: Any) -> xr.Dataset:
    """All lengths joined."""
    runs = {
        data.attrs["facets"]["length"]: data for data in comparison.experiments().values() if "length" in data.attrs["facets"]
    }
    names = ["squared_magnetisation", "squared_magnetisation_error"]
    return xr.concat([runs[length][names].expand_dims(length=[length]) for length in sorted(runs)], "length")


@study(
    "finite-size",
    title="Finite size: samples limit learning as a length limits a magnet, and one tool collapses both",
    source="Fisher, Barber 1972; Ringel et al. 2025 (finite-size effects)",
    seconds=(60, 900),
    observables=("test_error",),
    full={"seeds": 40, "n_train": (50, 100, 200, 400, 800), "lengths": (16, 32, 64, 128), "sweeps": 4000},
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
                {"x": r"$T\,P^{x}$", "y": r"$E\,P^{y}$", "size": "P", "inverse_nu": "x", "power": "-y"},
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
    caption=r"Left, middle: Gaussian features, $\lambda_k=y_k^2=k^{{-1-\alpha}}$, $\alpha$ = {alpha}, {modes} modes; "
    r"theory at large $P$: "
    r"$x$ = 1 on the left ($T$ = {cold:g}), $x=y=\alpha$ in the middle. Right: Ising model, exact $T_c$ = 2.2692, $1/\nu$ = 1, "
    r"$2\beta/\nu$ = 0.25. Lines: fitted polynomials.",
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
    seeds: int = 16,
) -> Iterator[Curve]:
    k = np.arange(1.0, modes + 1)
    system = DecimatedRegression(Spectrum(k ** (-1 - alpha), k ** (-1 - alpha)), 100, cold)
    middle = float(np.sqrt(min(n_train) * max(n_train)))
    over = {"n_train": n_train, "temperature": tuple(round(float(t * middle**-alpha), 6) for t in scaled_temperatures)}
    sites = {length: SpinBlocks(2.27, length, 1) for length in lengths}
    yield Curve("effective ridge", decimated, system, over, facets={"part": "curve"})
    yield Curve("regression", regression, system, over, seeds, facets={"part": "curve"})
    yield Curve("regression", regression, system, {"n_train": n_train, "temperature": (cold,)}, seeds, facets={"part": "modes"})
    yield from (
        Curve(
            "spins",
            partial(block_spins, sweeps=sweeps, replicas=replicas),
            one,
            {"temperature": temperatures},
            4,
            facets={"part": "magnet", "length": length},
        )
        for length, one in sites.items()
    )
