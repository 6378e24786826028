"""Panels that draw the densities of the hidden weights of two-layer networks along the target.

They are drawn by functions of their own, because the theories give these densities at different
nodes, and some theories give only the variance of a Gaussian.
"""

from typing import Any

import numpy as np
import xarray as xr

from orderparam.comparison import Comparison
from orderparam.plotting.measured import mean_and_error
from orderparam.plotting.style import COLOURS, DASHES, GREY, MARKERS, ink
from orderparam.systems.kernel_adaptation.two_layers.experiment import EDGES, FAR

OVERLAP = r"$\rho = w\cdot w_*$"


def _density(data: xr.Dataset, rho: np.ndarray, prior: float) -> np.ndarray:
    """The density p(rho) of a theory at one point; Gaussian if the theory gives the variance
    only."""
    if "log_density" in data:
        return np.exp(np.interp(np.abs(rho), data["overlap"], data["log_density"]))
    variance = float(data["spread"]) * prior
    return np.exp(-(rho**2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)


def draw_densities(axes: Any, comparison: Comparison, reach: float = 2.2) -> None:
    """Draw the densities at the largest number of measured examples. reach: the largest overlap
    that is shown."""
    p = comparison.parameters
    shown, rho = max(p["n_train"]), np.linspace(-reach, reach, 441)
    number = 0
    for data in comparison.curves("theory").values():
        look: Any = {"color": GREY, "linewidth": 0.9}
        if not data.attrs["baseline"]:
            look, number = {"color": COLOURS[number], "linestyle": DASHES[number]}, number + 1
        axes.plot(
            rho,
            _density(data.sel(n_train=shown), rho, p["weight_variance"] / p["input_dim"]),
            **look,
        )
    (runs,) = comparison.curves("experiment").values()
    measured = runs.sel(n_train=shown)
    centres = measured["bin_centre"].values.reshape(-1, measured.sizes["bin"])[0]
    for direction, marker, colour in ((1, "s", GREY), (0, "o", ink())):
        mean, error = (
            part.ravel() for part in mean_and_error(measured["density"].isel(direction=direction))
        )
        seen = mean > 0
        look = {"fmt": marker, "color": colour, "markersize": 2, "zorder": 3}
        axes.errorbar(centres[seen], mean[seen], np.nan_to_num(error[seen]), **look)
    axes.set(
        yscale="log",
        ylim=(2e-3, 8),
        xlim=(-reach, reach),
        xlabel=OVERLAP,
        ylabel="density of the weights",
    )


def draw_phase_densities(axes: Any, comparison: Comparison, beta: float) -> None:
    """Draws the densities of the system of size beta at the measured temperatures, with marks where
    it was sampled."""
    p = comparison.parameters
    rho, curves = np.linspace(-2, 2, 801), comparison.curves(scale=beta).values()
    here = [data for data in curves if not data.attrs.get("same_data")]
    for number, chosen in enumerate(p["measured"]):
        for data in here:
            away = np.abs(data["temperature"].values * p["chi"] / np.sqrt(beta) - chosen)
            if away.min() > 1e-6 * chosen:
                continue  # networks at other temperatures
            at = data.isel(temperature=int(np.argmin(away)))
            if "bin_centre" in at:
                centres = at["bin_centre"].values.reshape(-1, at.sizes["bin"])[0]
                mean, error = (
                    part.ravel()
                    for part in mean_and_error(
                        at["density"].isel(direction=0).where(at["converged"])
                    )
                )
                seen = mean > 0
                look = {"fmt": "osD"[number % 3], "color": COLOURS[3 + number], "markersize": 2}
                axes.errorbar(
                    centres[seen],
                    mean[seen],
                    np.minimum(np.nan_to_num(error[seen]), 0.9 * mean[seen]),
                    **look,
                )
                continue
            look = {"color": COLOURS[3 + number], "linestyle": DASHES[number]}
            axes.plot(rho, _density(at, rho, np.nan), **look)
            place = (0.03, 0.97 - 0.09 * number)
            look = {"color": COLOURS[3 + number], "va": "top", "xycoords": "axes fraction"}
            axes.annotate(f"$t$ = {chosen:g}", place, **look)
    floor = 1e-3 if any("bin_centre" in data for data in here) else 1e-9
    axes.set(
        yscale="log",
        ylim=(floor, 30),
        xlim=(-1.4, 1.4),
        xlabel=OVERLAP,
        ylabel=r"density of the weights $p(\rho)$",
    )


def neurons_outside(data: xr.Dataset, width: float) -> xr.DataArray:
    """The number N P(|rho| > FAR) of specialised neurons, measured, or by integration of a theory's
    density."""
    if "outside" in data:
        return width * data["outside"]
    rho = data["overlap"].values.reshape(-1, data.sizes["node"])[0]
    density = 2 * np.exp(data["log_density"]) * (rho > FAR)
    return width * density.reduce(np.trapezoid, "node", x=rho)


def draw_chains(axes: Any, comparison: Comparison, temperature: float) -> None:
    """Draw every chain at a temperature at its mean number of specialised neurons and its spread;
    chains that did not converge are open. The axes of all temperatures are the same."""
    most_neurons, most_spread = 0.0, 0.0
    for number, data in enumerate(comparison.experiments().values()):
        every = neurons_outside(data, comparison.parameters["width"])
        most_neurons = max(most_neurons, float(every.max()))
        most_spread = max(most_spread, float(data["spread"].max()))
        at = {"temperature": temperature}
        neurons, spread, converged = (
            one.sel(at).values.ravel() for one in (every, data["spread"], data["converged"])
        )
        look: Any = {"linestyle": "", "markersize": 3.5, "color": COLOURS[number]}
        axes.plot(neurons[converged], spread[converged], MARKERS[number], **look)
        axes.plot(neurons[~converged], spread[~converged], MARKERS[number], mfc="none", **look)
    axes.set(
        xlabel=rf"neurons with $|\rho| > {FAR:g}$, of {comparison.parameters['width']}",
        ylabel="spread of a chain",
        xlim=(0, 1.08 * most_neurons),
        ylim=(0, 1.08 * most_spread),
    )


_CENTRE = 0.45  # largest |rho| of the fit to the density at the centre


def central_curvature(data: xr.Dataset, prior: float) -> xr.DataArray:
    """Curvature of the logarithm of the density at rho = 0, with the sign reversed and divided by
    that of the prior, whose variance is `prior`: 1 at the prior, negative where the density has two
    maxima.

    It is 2b of the fit of a - b rho^2 + c rho^4 to the logarithm of the density in bins at |rho| <
    0.45, with the density as weight, for theories and networks alike.
    """
    width = EDGES[1] - EDGES[0]
    centres = (EDGES[1:] + EDGES[:-1]) / 2
    inside = np.abs(centres) < _CENTRE
    rho = centres[inside]
    powers = np.stack([np.ones_like(rho), -(rho**2) / 2, rho**4], axis=1)

    def curvature(density: np.ndarray) -> float:
        seen = density > 0  # not where a bin is empty, or a run failed
        if seen.sum() < powers.shape[1]:
            return np.nan
        root = np.sqrt(density[seen])
        fit = np.linalg.lstsq(powers[seen] * root[:, None], np.log(density[seen]) * root)
        return prior * float(fit[0][1])

    if "bin_centre" in data:
        measured = data["density"].isel(direction=0)
        return xr.apply_ufunc(
            lambda bins: curvature(bins[inside]) if len(bins) == len(inside) else np.nan,
            measured,
            input_core_dims=[["bin"]],
            vectorize=True,
        )
    parts = rho + width / 2 * np.array([[-1.0], [0.0], [1.0]])  # Simpson's rule over a bin

    def of_theory(at: xr.Dataset) -> float:
        return curvature(np.array([1, 4, 1]) / 6 @ _density(at, parts, prior))

    (along,) = data["spread"].dims
    found = [of_theory(data.isel({along: number})) for number in range(data.sizes[along])]
    return xr.DataArray(found, {along: data[along]}, [along])


def draw_passage(axes: Any, comparison: Comparison) -> None:
    """Draw the densities along the target at the numbers of examples `shown`, of the theory that
    gives the density and, where they were measured, of the networks."""
    p = comparison.parameters
    (theory,) = (data for data in comparison.theories().values() if "log_density" in data)
    (runs,) = comparison.experiments().values()
    centres = runs["bin_centre"].values.reshape(-1, runs.sizes["bin"])[0]
    rho = np.linspace(-1.1, 1.1, 441)
    for number, examples in enumerate(p["shown"]):
        # not the colours of the two theories in the other panels
        look: dict[str, Any] = {"color": COLOURS[2 + number]}
        line = theory.sel(n_train=examples, method="nearest")
        axes.plot(rho, _density(line, rho, np.nan), linestyle=DASHES[number], **look)
        place = (0.03, 0.98 - 0.1 * number)
        of_text = {"va": "top", "xycoords": "axes fraction", "fontsize": 8}
        axes.annotate(f"$n$ = {examples:g}", place, **of_text, **look)
        if examples not in runs["n_train"]:
            continue
        at = runs.sel(n_train=examples)
        measured = at["density"].isel(direction=0).where(at["converged"])
        mean, error = (part.ravel() for part in mean_and_error(measured))
        look |= {"fmt": MARKERS[number], "markersize": 2}
        axes.errorbar(centres, mean, np.nan_to_num(error), **look)
    axes.set(xlim=(rho[0], rho[-1]), ylim=(0, None), xlabel=OVERLAP)
    axes.set_ylabel("density of the weights")
