"""The phases of feature learning: the phase of a density in theory and of a measured one, and the
drawing of their plane."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int

from orderparam.comparison import Comparison
from orderparam.core.result import Result
from orderparam.plotting.measured import mean_and_error
from orderparam.plotting.style import COLOURS, DASHES, ink
from orderparam.systems.kernel_adaptation.two_layers.densities import OVERLAP

# The phases of feature learning follow from the number and the place of the maxima of the density
# of rho = w . w_*.
#
#     0  GFL:      one maximum, at rho = 0: all neurons adapt a little
#     1  GMFL-I:   maxima at 0 and at +-rho*: most neurons stay near 0, a few have specialised
#                  (coexistence inside one network);
#                  the central maximum may itself have split in two
#     2  GMFL-II:  maxima at +-rho* alone: all neurons have specialised
#                  (also just after a continuous split, at small rho*)
#
# (names of Rubin, Seroussi, Ringel 2024).

GFL, COEXISTENCE, SPECIALISED = 0, 1, 2


class Wells(Result):
    """Shape of an even density p(rho), and the phase of feature learning that it implies.

    Fields:
        phase: 0 (GFL), one maximum, at rho = 0; 1 (GMFL-I), maxima at 0 and at +-rho*; 2 (GMFL-II),
            maxima at +-rho* alone.
        well: position rho* of the highest maximum beyond the innermost maximum; in phase 2 the
            position of the innermost maximum, and 0 in phase 0.
        barrier_position: position of the minimum between the innermost maximum and rho*; 0 if there
            is none.
        side_weight: probability of |rho| beyond the barrier; 1 in phase 2, 0 in phase 0.
        free_energy_gap: log p(0) - log p(rho*), which is positive where the centre is higher.
        barrier: log p(rho*) - log p(barrier_position), the barrier that a specialised neuron has to
            cross to return to the centre.
    """

    phase: Int[Array, ""]
    well: Float[Array, ""]
    barrier_position: Float[Array, ""]
    side_weight: Float[Array, ""]
    free_energy_gap: Float[Array, ""]
    barrier: Float[Array, ""]


def wells(
    rho: Float[Array, "node"], log_density: Float[Array, "node"], weight: Float[Array, "node"]
) -> Wells:
    """The shape of an even density.

    Args:
        rho: increasing nodes from 0.
        log_density: logarithm of the density with respect to rho at the nodes.
        weight: probability of each node, both sides together.
    """
    inner = jnp.arange(1, rho.shape[0] - 1)
    left, here, right = log_density[inner - 1], log_density[inner], log_density[inner + 1]
    # A maximum far out, where the density is zero up to rounding, does not count,
    tops = (here > left) & (here >= right) & (here > jnp.max(log_density) - 200.0)
    tops &= jnp.isfinite(right)  # nor does the edge of a restricted ensemble
    side = jnp.any(tops)
    innermost = jnp.where(log_density[0] >= log_density[1], 0, inner[jnp.argmax(tops)])
    outer = tops & (inner > innermost)
    mixed = jnp.any(outer)
    best = inner[jnp.argmax(jnp.where(jnp.where(mixed, outer, tops), here, -jnp.inf))]
    position = _vertex(rho, log_density, best)
    index = jnp.arange(rho.shape[0])
    lowest = jnp.argmin(jnp.where((index >= innermost) & (index <= best), log_density, jnp.inf))
    phase = jnp.where(mixed, COEXISTENCE, jnp.where(side, SPECIALISED, GFL))
    beyond = jnp.sum(jnp.where(index > lowest, weight, 0.0)) + weight[lowest] / 2
    return Wells(
        phase=phase,
        well=jnp.where(side, position, 0.0),
        barrier_position=jnp.where(mixed, rho[lowest], 0.0),
        side_weight=jnp.where(mixed, beyond / jnp.sum(weight), jnp.where(side, 1.0, 0.0)),
        free_energy_gap=jnp.where(side, log_density[0] - log_density[best], 0.0),
        barrier=jnp.where(mixed, log_density[best] - log_density[lowest], 0.0),
    )


def _vertex(x: Array, y: Array, i: Array) -> Array:
    """The position of the maximum of the parabola through three neighbouring nodes."""
    a, b, c = x[i - 1], x[i], x[i + 1]
    up, down = (y[i] - y[i - 1]) / (b - a), (y[i + 1] - y[i]) / (c - b)
    bend = up - down
    found = (a + b) / 2 + up / jnp.where(bend == 0, 1.0, bend) * (c - a) / 2
    return jax.lax.stop_gradient(jnp.clip(found, a, c))


NAMES = {GFL: "GFL", COEXISTENCE: "GMFL-I", SPECIALISED: "GMFL-II"}
SHADES = {GFL: "#dce6f2", COEXISTENCE: "#f6e3c5", SPECIALISED: "#dcefdc"}
MARKS = {GFL: "o", COEXISTENCE: "D", SPECIALISED: "s"}
SIGNIFICANT = 4.0  # standard errors of a rise that counts, over the runs


def measured_phase(density: Float[np.ndarray, "run bin"]) -> int:
    """The phase that measured densities show: 0 (GFL), 1 (GMFL-I) or 2 (GMFL-II).

    A side well is a rise of the density with |rho| that exceeds four standard errors over the runs;
    the centre is a maximum if the density falls by as much before this rise.

    Args:
        density: densities of rho in an odd number of bins that are symmetric about 0, for each run.

    >>> rho = np.linspace(-2.5, 2.5, 81)
    >>> noise = 1 + 0.01 * np.random.default_rng(0).normal(size=(16, 81))
    >>> wells = [np.exp(-((abs(rho) - a) ** 2) / 0.1) for a in (0.0, 1.0)]
    >>> [measured_phase(noise * one) for one in (wells[0], wells[0] + 2 * wells[1], wells[1])]
    [0, 1, 2]
    """
    middle = density.shape[1] // 2
    folded = (density[:, middle:] + density[:, middle::-1]) / 2
    centre = (folded[:, :1] + 2 * folded[:, 1:2]) / 3  # one bin at 0, two at +-1
    pairs = folded[:, 2 : 2 + (folded.shape[1] - 2) // 2 * 2]
    p = np.concatenate([centre, pairs.reshape(len(pairs), -1, 2).mean(axis=2)], axis=1)
    difference = p[:, None, :] - p[:, :, None]  # of each place from every other place
    error = difference.std(axis=0, ddof=1) / np.sqrt(len(p))
    rises = difference.mean(axis=0) > SIGNIFICANT * np.maximum(error, 1e-12)
    outward = np.triu(rises, 1)
    if not outward.any():
        return GFL
    mean = p.mean(axis=0)
    height = np.where(outward, mean[None, :] - mean[:, None], -np.inf)
    valley, _ = np.unravel_index(np.argmax(height), height.shape)
    return COEXISTENCE if rises[valley, :valley].any() else SPECIALISED


def draw_phases(axes: Any, comparison: Comparison) -> None:
    """Draw the phases of the theory as areas, its lines of equal depth and of compression, and
    every measured point with the mark of its own phase."""
    p = comparison.parameters
    (plane,) = comparison.theories(part="plane").values()
    n, chi = plane["network.n_train"].values, plane["chi"].values
    phase = plane["phase"].transpose("chi", "network.n_train").values
    from matplotlib.colors import ListedColormap

    axes.pcolormesh(
        n, chi, phase, cmap=ListedColormap(list(SHADES.values())), vmin=-0.5, vmax=2.5, zorder=0
    )
    gap = plane["free_energy_gap"].transpose("chi", "network.n_train").values
    equal = np.where(phase == COEXISTENCE, gap, np.nan)
    axes.contour(n, chi, equal, levels=[0.0], colors=[ink()], linewidths=1.2)
    across = across_variance(plane, p).transpose("chi", "network.n_train").values
    lines = axes.contour(
        n, chi, across, levels=[0.3, 0.5, 0.7, 0.9], colors=[COLOURS[3]], linewidths=0.7
    )
    axes.clabel(lines, fmt="%g", fontsize=6)
    measured = set()
    for data in comparison.experiments().values():
        data = data.transpose("network.n_train", "chi", "seed", "direction", "bin", ...)
        for i, examples in enumerate(data["network.n_train"].values):
            for j, chi_here in enumerate(data["chi"].values):
                at = data.isel({"network.n_train": i, "chi": j})
                runs = at["density"].isel(direction=0).values[at["converged"].values]
                if len(runs) < 2:
                    continue
                found = measured_phase(runs)
                measured.add(found)
                axes.plot(
                    examples,
                    chi_here,
                    MARKS[found],
                    color=COLOURS[found],
                    markeredgecolor=ink(),
                    markersize=4.5,
                )
    for found in sorted(measured):
        look = {"color": COLOURS[found], "markeredgecolor": ink(), "linestyle": ""}
        axes.plot([], [], MARKS[found], label=f"measured: {NAMES[found]}", **look)
    axes.set(
        xscale="log",
        yscale="log",
        xlim=(n.min(), n.max()),
        ylim=(chi.min(), chi.max()),
        xlabel="examples $n$",
        ylabel=r"adaptation $\chi$",
    )


def across_variance(data: xr.Dataset, p: Any) -> xr.DataArray:
    """Variance of the weights orthogonal to w_*, divided by its value at the prior."""
    d, v = p["input_dim"], p["weight_variance"]
    return (data["norm"] * d / v - data["spread"]) / (d - 1)


def draw_cut(axes: Any, comparison: Comparison, part: str, shown: str) -> None:
    """Draw the densities along the target at some points of a cut through the plane, of the theory
    and of the sampled networks.

    Args:
        part: the facet of the cut.
        shown: the parameter of the study with the values at which densities are drawn.
    """
    p = comparison.parameters
    (theory,) = comparison.theories(part=part).values()
    (runs,) = comparison.experiments(part=part).values()
    centres = runs["bin_centre"].values.reshape(-1, runs.sizes["bin"])[0]
    rho = np.linspace(0, 1.9, 400)
    along, symbol = ("network.n_train", "n") if part == "examples" else ("chi", r"\chi")
    lines: list[Any] = []
    for number, value in enumerate(p[shown]):
        place = {along: value}
        line = theory.sel(place, method="nearest").squeeze()
        density = np.exp(np.interp(rho, line["overlap"].values, line["log_density"].values))
        look: dict[str, Any] = {"color": COLOURS[number]}
        lines += axes.plot(rho, density, linestyle=DASHES[number], **look)
        at = runs.sel(place, method="nearest").squeeze()
        measured = at["density"].isel(direction=0).where(at["converged"])
        mean, error = (part.ravel() for part in mean_and_error(measured))
        right = (centres > -1e-9) & (mean > 0) & (centres < rho[-1])
        axes.errorbar(
            centres[right][::2],
            mean[right][::2],
            np.nan_to_num(error[right][::2]),
            fmt=MARKS[number],
            markersize=2,
            linestyle="",
            **look,
        )
    axes.set(
        yscale="log",
        ylim=(1e-3, 8),
        xlim=(0, rho[-1]),
        xlabel=OVERLAP,
        ylabel=r"density of the weights $p(\rho)$",
    )
    names = [f"${symbol}$ = {value:g}" for value in p[shown]]
    axes.legend(lines, names, fontsize=6, loc="upper right")


def draw_shares(axes: Any, comparison: Comparison) -> None:
    """Draw the free energy of a network against the share of its specialised neurons, and the
    measured shares at the bottom."""
    p = comparison.parameters
    (found,) = comparison.theories(part="states").values()
    (runs,) = comparison.experiments(part="strength").values()
    lines: list[Any] = []
    for number, strength in enumerate(p["shown_strengths"]):
        place = {"chi": strength}
        at = found.sel(place, method="nearest").squeeze()
        look: dict[str, Any] = {"color": COLOURS[number]}
        energy = at["free_energy"] / p["width"]
        lines += axes.plot(at["share"], energy, linestyle=DASHES[number], **look)
        measured = runs.sel(place, method="nearest").squeeze()
        mean, error = mean_and_error(measured["outside"].where(measured["converged"]))
        axes.errorbar(mean, 0.0, xerr=np.nan_to_num(error), fmt=MARKS[number], markersize=4, **look)
    axes.set(
        xlim=(0, 1),
        ylim=(-0.15, 3),
        xlabel="share $c$ of specialised neurons",
        ylabel="free energy $F(c)/N$",
    )
    names = [rf"$\chi$ = {strength:g}" for strength in p["shown_strengths"]]
    axes.legend(lines, names, fontsize=6)
