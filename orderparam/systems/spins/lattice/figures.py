"""What the studies of the Ising model draw by hand: configurations, crossings of Binder's ratios, collapsed curves, a quench."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from orderparam.analysis import Collapse, exponent
from orderparam.core.study import Comparison
from orderparam.plotting import canvas, finish
from orderparam.plotting.style import COLOURS, GREY, MARKERS, ink
from orderparam.systems.spins.lattice.experiment import Quench
from orderparam.systems.spins.lattice.infinite import onsager
from orderparam.systems.spins.lattice.model import CRITICAL_TEMPERATURE, IsingLattice
from orderparam.systems.spins.lattice.scaling import finite_size_scaling


def draw_configuration(temperature: float, axes: Any, comparison: Comparison) -> None:
    """The configuration of the first seed: black is up."""
    (runs,) = comparison.experiments().values()
    axes.imshow(runs["spin"].sel(temperature=temperature).isel(seed=0), cmap="binary", vmin=-1, vmax=1, interpolation="nearest")
    axes.set(xticks=[], yticks=[])


def draw_crossings(axes: Any, comparison: Comparison) -> None:
    """The temperature where Binder's ratios of two successive sizes cross, against the larger one's inverse."""
    runs = {data.attrs["facets"]["length"]: data for data in comparison.experiments().values()}
    lengths = sorted(runs)
    for smaller, larger in itertools.pairwise(lengths):
        found = crossing(runs[smaller], runs[larger])
        if len(found) > 1:
            place = 1 / larger, np.mean(found)
            axes.errorbar(*place, np.std(found, ddof=1) / np.sqrt(len(found)), fmt="o", color=ink())
            axes.annotate(f"{smaller}, {larger}", place, (5, 5), textcoords="offset points")
    axes.axhline(CRITICAL_TEMPERATURE, color=GREY, linewidth=0.8, linestyle=":")
    axes.annotate("$T_c$", (0, CRITICAL_TEMPERATURE), (2, 3), textcoords="offset points", color=GREY)
    axes.set(xlabel=r"$1/L$ of the larger size", ylabel="crossing temperature", xlim=(0, 1.3 / lengths[1]))


def crossing(smaller: xr.Dataset, larger: xr.Dataset) -> np.ndarray:
    """The temperature of each seed at which the difference of the two ratios, a parabola fitted to all temperatures, vanishes.

    Of two zeros the one nearer the middle of the range; seeds without one in the range are left out.
    """
    temperatures = smaller["temperature"].values
    middle, half = (temperatures.max() + temperatures.min()) / 2, (temperatures.max() - temperatures.min()) / 2
    found = []
    for difference in (larger["binder"] - smaller["binder"]).transpose("seed", "temperature").values:
        known = np.isfinite(difference)
        if known.sum() < 3:
            continue
        roots = np.roots(np.polyfit((temperatures[known] - middle) / half, difference[known], 2))
        real = roots[np.isreal(roots)].real
        inside = real[np.abs(real) <= 1]
        if inside.size:
            found.append(middle + half * inside[np.argmin(np.abs(inside))])
    return np.array(found)


def by_length(comparison: Comparison, kind: str) -> xr.Dataset:
    """The curves of a kind that carry a length, joined along it."""
    runs = {data.attrs["facets"]["length"]: data for data in comparison.curves(kind).values()}
    return xr.concat([runs[length].expand_dims(length=[length]) for length in sorted(runs)], "length", join="outer")


def draw_scaling(comparison: Comparison) -> Any:
    """Binder's ratio, magnetisation and susceptibility of all sizes on one curve each, and what the fits say."""
    figure, axes = canvas(1, 3)
    try:
        found = finite_size_scaling(by_length(comparison, "experiment"))
    except ValueError as error:  # too few points
        finish(figure, comparison.study.title, {}, str(error))
        return figure
    fits = {
        "Binder ratio": found.binder,
        r"$\langle|m|\rangle\,L^{\beta/\nu}$": found.magnetisation,
        r"$\langle m^2\rangle L^2/L^{\gamma/\nu}$": found.susceptibility,
    }
    handles: dict[str, Any] = {}
    for ax, (text, fit) in zip(axes[0], fits.items()):
        handles |= _draw_collapse(ax, fit)
        ax.set(xlabel=r"$(T-T_c)\,L^{1/\nu}$", ylabel=text)
    names = {"T_c": "$T_c$", "1/nu": r"$1/\nu$", "beta/nu": r"$\beta/\nu$", "gamma/nu": r"$\gamma/\nu$"}
    told = ", ".join(f"{names[name]} = {value:.4f} ± {error:.4f}" for name, (value, error) in found.exponents.items())
    quality = ", ".join(f"{fit.chi_squared:.0f}/{fit.freedom} from $L$ = {fit.sizes[0]:g} on" for fit in fits.values())
    exact = f"(exact: {CRITICAL_TEMPERATURE:.4f}, 1, 1/8, 7/4)"
    finish(
        figure, comparison.study.title, handles, f"{told} {exact}. Lines: fitted polynomials, $\\chi^2$ per freedom {quality}."
    )
    return figure


def _draw_collapse(axes: Any, fit: Collapse) -> dict[str, Any]:
    handles = {}
    for number, size in enumerate(fit.sizes):
        own = fit.scaled_size == size
        look = {"color": COLOURS[number % len(COLOURS)], "fmt": MARKERS[number % len(MARKERS)], "markerfacecolor": "white"}
        handles[f"$L$ = {size:g}"] = axes.errorbar(fit.scaled_x[own], fit.scaled_y[own], fit.scaled_error[own], **look)
    u = np.linspace(fit.scaled_x.min(), fit.scaled_x.max(), 200)
    axes.plot(u, fit.curve(u), color=ink(), linewidth=0.8, zorder=1)
    return handles


def draw_opposite(axes: Any, comparison: Comparison) -> None:
    """The correlation of opposite sites against the size, and its exponent."""
    runs = {data.attrs["facets"]["length"]: data for data in comparison.experiments().values()}
    names = ["correlation", "correlation_error"]
    last = [runs[length][names].isel(step=-1, temperature=0).expand_dims(length=[length]) for length in sorted(runs)]
    far = xr.concat(last, "length")
    axes.errorbar(far["length"], far["correlation"].mean("seed"), far["correlation_error"].mean("seed") / 2, fmt="o", color=ink())
    axes.set(xscale="log", yscale="log", xlabel="length $L$", ylabel="correlation of opposite sites")
    try:
        found = exponent(far, "length", "correlation")
    except ValueError as error:  # too few sizes
        axes.set_title(str(error))
        return
    length = np.array(found.window)
    axes.plot(length, found.amplitude * length**found.exponent, color=ink(), linewidth=0.8)
    axes.set_title(rf"$\eta$ = {-found.exponent:.4f} ± {found.exponent_error:.4f} (exact 1/4)")


def draw_walls(axes: Any, comparison: Comparison) -> None:
    """The energy above equilibrium after a quench against time, which falls as its square root."""
    (runs,) = comparison.experiments().values()
    for number, temperature in enumerate(runs["temperature"].values):
        own = runs.sel(temperature=temperature)
        excess = own["energy"].mean("seed") - float(onsager(IsingLattice(float(temperature))).energy)
        look = {"color": COLOURS[number], "marker": MARKERS[number], "linestyle": "none", "label": f"$T$ = {temperature:g}"}
        time = own["sweep"].isel(seed=0)
        later = time > 0
        axes.plot(time[later], excess[later], **look)
    guide = np.array([3.0, 1000.0])
    axes.plot(guide, 1.2 * guide**-0.5, color=GREY, linewidth=0.8)
    axes.annotate("$t^{-1/2}$", (guide[1], 1.2 * guide[1] ** -0.5), (0, 4), textcoords="offset points", color=GREY, ha="right")
    axes.set(xscale="log", yscale="log", xlabel="sweeps $t$", ylabel="energy above equilibrium")


def draw_quenched(time: int, axes: Any, comparison: Comparison) -> None:
    """The lattice of the first seed at the lowest temperature, `time` being the place in the list of times."""
    (runs,) = comparison.experiments().values()
    axes.imshow(runs["spin"].isel(temperature=0, seed=0, time=time), cmap="binary", vmin=-1, vmax=1, interpolation="nearest")
    axes.set(xticks=[], yticks=[])


def animate(quench: Quench, path: str | Path, frames_per_second: int = 10) -> None:
    """Writes the pictures of a quench as an animated GIF, one frame for each of its times."""
    from PIL import Image

    frames = [Image.fromarray(np.where(np.asarray(spin) > 0, 0, 255).astype(np.uint8)) for spin in quench.spin]
    frames = [frame.resize((3 * frame.width, 3 * frame.height), Image.Resampling.NEAREST).convert("1") for frame in frames]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=1000 // frames_per_second, loop=0)
