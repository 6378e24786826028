"""The study of several losses: the scaling dimensions of their terms are the exponents of their
corrections to the learning curve.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from orderparam.comparison import Comparison, Curve, study
from orderparam.kernels.spectra import power_law_levels
from orderparam.kernels.spectrum import Spectrum
from orderparam.plotting import Freehand, Panel, slope
from orderparam.plotting.measured import dots
from orderparam.plotting.style import COLOURS, ink
from orderparam.systems.renormalization.wilsonian.losses import (
    HuberLoss,
    loss_correction,
    measured_loss_correction,
)
from orderparam.systems.renormalization.wilsonian.model import InteractingRegression

_LOSSES: dict[str, Any] = {
    "quartic": {"quartic": 0.1},
    "sextic": {"loss": "z**2 + 0.1*z**6"},
    "2 ln 2cosh": {"loss": "2*log(exp(z) + exp(-z))"},
    "Huber": {"loss": HuberLoss()},
}


def _density(data: xr.Dataset) -> xr.DataArray:
    return data["n_train"] / data.attrs["facets"]["temperature"]


def _size(data: xr.Dataset) -> xr.DataArray:
    return xr.DataArray(np.abs(data["correction"]))


def draw_temperatures(axes: Any, comparison: Comparison) -> None:
    """Draw the ratio of measured to predicted corrections at one density against the temperature.
    The ratio for the loss averaged over inputs is drawn at infinite temperature."""
    found: dict[str, list[xr.DataArray]] = {}
    for data in comparison.experiments().values():
        facets = data.attrs["facets"]
        own = {"loss": facets["loss"], "part": "drawn", "temperature": facets["temperature"]}
        (theory,) = comparison.theories(**own).values()
        density = _density(data)
        at = int(np.argmin(np.abs(np.log(density.values / comparison.parameters["control"]))))
        n_train = float(data["n_train"][at])
        exact = float(theory["correction"].sel(n_train=n_train).squeeze())
        ratio = data["correction"].isel(n_train=at) / exact
        drawn = facets["part"] == "drawn"
        place = 1 / facets["temperature"] if drawn else 0.0
        found.setdefault(facets["loss"], []).append(
            ratio.drop_vars("n_train").expand_dims(inverse=[place])
        )
    for number, each in enumerate(found.values()):
        ratio = xr.concat(each, "inverse", coords="minimal").sortby("inverse")
        shift = 0.02 * (number - 1.5) * float(ratio["inverse"].max())
        dots(
            axes,
            ratio["inverse"] + shift,
            ratio.transpose("seed", "inverse"),
            number,
            colour=COLOURS[number],
        )
    axes.axhline(1, color=ink(), linewidth=0.8)
    axes.set(xlabel="$1/T$ (0: average over inputs)", ylabel="measured / theory")


@study(
    "loss-dimensions",
    title=(
        "In theory corrections of three losses at large P/T fall with the dimensions of their "
        "terms, Huber's faster; posteriors at P/T = 10 to 100 follow within 27 %"
    ),
    source="Coppola, Helias, Ringel 2025 (their setting; exponents derived here)",
    seconds=(60, 1800),
    observables=("correction",),
    explained=(
        "The theory replaces Q by its mean, while Q fluctuates in the posterior. The right panel "
        "is a control: the deviation is still there when the loss is averaged over inputs, so that "
        "the training set is not its cause. That the fluctuations of Q are was not measured. Over "
        "the measured decade of P/T the slopes have not reached their limits."
    ),
    gallery={"densities": (10.0, 30.0, 100.0), "temperatures": (10.0, 30.0), "seeds": 16},
    full={"densities": (10.0, 30.0, 100.0), "temperatures": (10.0, 30.0, 100.0), "seeds": 32},
    columns=3,
    panels=lambda p: [
        Panel(
            ("$P/T$", _density),
            ("size of the change, $|Q/Q_0 - 1|$", _size),
            by="loss",
            where={"part": "limit"},
            log="xy",
            ylim=(3e-6, None),
            reference=[
                slope(-0.5, "slope -1/2", (1e4, 0.4)),
                slope(-1.0, "slope -1", (150, 1.5e-4)),
            ],
            title="400,000 modes",
        ),
        Panel(
            ("$P/T$", _density),
            ("size of the change, $|Q/Q_0 - 1|$", _size),
            by="loss",
            where={"part": "drawn", "temperature": max(p["temperatures"])},
            log="xy",
            title=f"{p['modes']} modes, drawn examples",
        ),
        Freehand(draw_temperatures, f"$P/T$ = {p['control']:g}"),
    ],
    caption=r"""
        $d$: deviation of the output from the target; $Q$: mean of $d^2$ in the posterior, and $Q_0$
        that of the square loss on the same examples with the same random numbers; eigenvalues
        $\lambda_k$ and coefficients $y_k$ of the target with $\lambda_k = y_k^2 = k^{{-2}}$; $P$
        examples, temperature $T$. Two losses have the terms $0.1\, d^4$ and $0.1\, d^6$ in addition
        to $d^2$. The first term of $2\, \ln\, 2\cosh\, d$ beyond the square is quartic; Huber's
        loss, linear for $|d|$ > 1, has no such term. The dimension of a term is the power of $P/T$
        with which the change that it causes falls. The change by a quartic term falls as
        $(P/T)^{{-1/2}}$ in the limit, that by a term of sixth order as $(P/T)^{{-1}}$. These slopes
        are those of the left panel, of theory alone; the posteriors in the middle and on the right
        do not reach them. Middle: $T$ = {temperatures[1]:g}.
    """,
)
def loss_dimensions(
    modes: int = 100,
    densities: tuple[float, ...] = (10.0, 30.0),
    temperatures: tuple[float, ...] = (3.0, 10.0),
    control: float = 30.0,
    samples: int = 200,
    chains: int = 4,
    seeds: int = 4,
) -> Iterator[Curve]:
    k = np.arange(1.0, modes + 1)
    spectrum = Spectrum(k**-2.0, k**-2.0)
    measured = partial(measured_loss_correction, chains=chains, samples=samples)
    whole = power_law_levels(2.0, 2.0, 400_000)
    wide = {"n_train": np.geomspace(1.0, 1e5, 41)}
    for loss, fields in _LOSSES.items():
        limit = InteractingRegression(whole, 100.0, 1.0, **fields)
        facets: dict[str, Any] = {"loss": loss, "part": "limit", "temperature": 1.0}
        yield Curve("gap equation", loss_correction, limit, wide, facets=facets)
        for temperature in temperatures:
            system = InteractingRegression(spectrum, 100.0, temperature, **fields)
            facets = {"loss": loss, "part": "drawn", "temperature": temperature}
            at = tuple(round(density * temperature) for density in densities)
            fine = np.unique([*at, *np.geomspace(0.5 * min(at), 2 * max(at), 17)])
            yield Curve("gap equation", loss_correction, system, {"n_train": fine}, facets=facets)
            yield Curve("posterior", measured, system, {"n_train": at}, seeds, facets=facets)
        averaged = partial(measured, examples="averaged")
        own = facets | {"part": "averaged"}
        yield Curve("averaged loss", averaged, system, {"n_train": at}, seeds, facets=own)
