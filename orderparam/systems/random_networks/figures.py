"""How the studies of random networks are drawn."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

from orderparam.core.study import Comparison
from orderparam.plotting.curves import caption
from orderparam.plotting.measured import dots
from orderparam.plotting.style import COLOURS


def _one(curves: dict[str, xr.Dataset], start: str = "") -> xr.Dataset:
    (data,) = (data for label, data in curves.items() if label.startswith(start))
    return data


def draw_priors(comparison: Comparison) -> Any:
    """Sample surfaces above; law at a point, kurtosis and kernel below."""
    p = comparison.parameters
    figure = plt.figure(figsize=(10.4, 6.6))
    parts: Any = figure.subfigures(2, 1, height_ratios=(1, 1.25))
    above, below = parts
    _draw_samples(above, comparison)
    law, kurtosis, kernel = below.subplots(1, 3)
    _draw_law(law, comparison)
    _draw_kurtosis(kurtosis, comparison)
    _draw_line(kernel, comparison)
    caption(
        below,
        "z(x) = sum_c a_c erf(w_c.x), two inputs; w_ci uniform in [-1/sqrt 2, 1/sqrt 2], a_c in [-1/sqrt N, 1/sqrt N], or "
        f"Gaussian with the same variances. Above: one network each, one colour scale. Below: {p['seeds']} seeds, with errors. "
        "Left: densities averaged over the bins. Middle: squares, everything drawn "
        f"({p['networks']} networks a seed); circles, {p['hidden_layers']} hidden layers a seed with the read-out averaged "
        "exactly; lines exact. Right: K(x, x') at x = (1, 0.5) and along x' = t x.",
        width=170,
    )
    return figure


def _draw_samples(figure: Any, comparison: Comparison) -> None:
    data = _one(comparison.experiments("samples"))
    p = comparison.parameters
    axes = figure.subplots(1, len(p["widths"]), sharey=True, squeeze=False)[0]
    surfaces = data["value"].isel(seed=0).values.reshape(-1, p["resolution"], p["resolution"])
    limit = np.abs(surfaces).max()
    levels = np.linspace(-limit, limit, 17)
    reach = np.linspace(-p["reach"], p["reach"], p["resolution"])
    for ax, width, surface in zip(axes, p["widths"], surfaces):
        shown = ax.pcolormesh(reach, reach, surface, cmap="RdBu_r", vmin=-limit, vmax=limit, rasterized=True)
        ax.contour(reach, reach, surface, levels=levels, colors="0.25", linewidths=0.4, linestyles="solid")
        ax.set(title=f"$N = {width}$", xlabel="$x_1$", aspect="equal")
    axes[0].set_ylabel("$x_2$")
    figure.colorbar(shown, ax=axes, label="$z(x)$", shrink=0.9)


def _draw_law(axes: Any, comparison: Comparison) -> None:
    theories, runs = comparison.theories("density"), _one(comparison.experiments("density"))
    lowest = 1e-3
    for number, width in enumerate(comparison.parameters["density_widths"]):
        exact, edgeworth = (theories[label].sel(width=width) for label in ("exact law", "Edgeworth, order 1/N"))
        shift = 8.0**-number
        axes.plot(exact["value"], shift * exact["density"][0], color=COLOURS[number])
        axes.plot(edgeworth["value"], shift * edgeworth["density"][0], color=COLOURS[number], linestyle="--", linewidth=1)
        measured = runs.sel(width=width)
        words = f"$N = {width}$" + (rf" ($\times 8^{{-{number}}}$)" if number else "")
        dots(axes, measured["value"].isel(seed=0), shift * measured["density"].isel(input=0), number, words, markersize=3)
        gauss = theories["Gaussian process"].sel(width=width)
        axes.plot(gauss["value"], shift * gauss["density"][0], color="black", linestyle=":", linewidth=1)
    for style, words in (("-", "exact"), ("--", "Edgeworth"), (":", "Gaussian process")):
        axes.plot([], [], color="0.2", linestyle=style, label=words)
    axes.set(yscale="log", ylim=(lowest * 8.0**-2, 4e2), xlabel="$z$ at $x = (1, 0.5)$", ylabel="probability density")
    axes.legend(ncols=2, fontsize=6.5, loc="upper center")


def _draw_kurtosis(axes: Any, comparison: Comparison) -> None:
    points = ("$x = (1, 0.5)$", "$x = (-0.3, 2)$")
    for column, prior in enumerate(("uniform", "gaussian")):
        panel = f"kurtosis, {prior}"
        exact = _one(comparison.theories(panel))
        drawn, averaged = (_one(comparison.experiments(panel), start) for start in ("networks", "read-out"))
        for point, words in enumerate(points):
            number = 2 * column + point
            axes.plot(exact["width"], exact["width_kurtosis"][:, point], color=COLOURS[number], zorder=1)
            look: dict[str, Any] = {"color": COLOURS[number]}
            label = f"{prior}, {words}"
            dots(axes, averaged["width"], averaged["width_kurtosis"].isel(input=point), 0, label, **look)
            dots(axes, drawn["width"] * 1.12, drawn["width_kurtosis"].isel(input=point), 1, **look, markersize=3.5)
    axes.axhline(0, color="0.7", linewidth=0.7, zorder=0)
    axes.set(xscale="log", xlabel="width $N$", ylabel=r"$N \times$ excess kurtosis of $z(x)$")
    axes.set_ylim(top=1.5 * axes.get_ylim()[1])
    axes.legend(fontsize=6.5, loc="upper left")


def _draw_line(axes: Any, comparison: Comparison) -> None:
    t = np.linspace(-comparison.parameters["reach"], comparison.parameters["reach"], 41)
    for number, prior in enumerate(("uniform", "gaussian")):
        theory = _one(comparison.theories(f"kernel, {prior}"))["kernel"].isel(width=0)
        measured = _one(comparison.experiments(f"kernel, {prior}"))["kernel"].isel(width=0)
        axes.plot(t, theory[0, 1:], color=COLOURS[2 * number], label=f"{prior}: exact at every $N$")
        dots(axes, t, measured.isel(first=0, second=slice(1, None)), 2 * number, "$N = 5$ networks", markersize=3)
    axes.set(xlabel="$t$", ylabel=r"$K(x, t\,x)$")
    axes.legend(fontsize=6.5)


def draw_deep(comparison: Comparison) -> Any:
    """Kurtosis times width for two activations, and the collapse with depth over width."""
    figure, (relu, erf, collapse) = plt.subplots(1, 3, figsize=(10.6, 3.7))
    for axes, panel in ((relu, "relu"), (erf, "erf")):
        first, runs = _one(comparison.theories(panel), "order"), _one(comparison.experiments(panel))
        for layer in range(first.sizes["layer"]):
            axes.plot(first["width"], first["width_kurtosis"][:, layer], color=COLOURS[layer], linestyle="--", linewidth=1)
            if panel == "relu":
                exact = _one(comparison.theories(panel), "exact")
                axes.plot(exact["width"], exact["width_kurtosis"][:, layer], color=COLOURS[layer])
            dots(axes, runs["width"], runs["width_kurtosis"].isel(layer=layer), layer, f"$l = {layer + 1}$")
        axes.set(xscale="log", xlabel="width $n$", ylabel=r"$n \times$ excess kurtosis after $l$ layers", title=panel)
        axes.set_xticks(runs["width"].values, [f"{n:g}" for n in runs["width"].values])
        axes.minorticks_off()
    relu.legend(ncols=2)
    runs = _one(comparison.experiments("relu"))
    for layer in range(runs.sizes["layer"]):
        ratio = (layer + 1) / runs["width"]
        dots(collapse, ratio, runs["kurtosis"].isel(layer=layer), layer)
    line = np.geomspace(1 / 300, (layer + 1) / runs["width"].values[0] * 1.1, 100)
    collapse.plot(line, 3 * np.expm1(5 * line), color="black", label=r"$3(e^{5l/n} - 1)$", zorder=1)
    collapse.plot(line, 15 * line, color="black", linestyle=":", label="$15\\,l/n$", zorder=1)
    collapse.set(xscale="log", yscale="log", xlabel="depth over width $l/n$", ylabel="excess kurtosis", title="relu")
    collapse.legend()
    p = comparison.parameters
    caption(
        figure,
        "One input; pre-activations after l hidden layers of n units. relu: weight variance 2, no biases; erf: 1.5 and bias "
        f"variance 0.05, first variance 1. Dots: {p['seeds']} seeds of {p['networks']} networks, standard errors. Dashed: first "
        "order in 1/n. Solid: exact for relu, 3n[(1 + 5/n)^l - 1].",
        width=150,
    )
    return figure


def draw_kernels(comparison: Comparison) -> Any:
    """NNGP and tangent kernels against the angle in three phases; correlations against depth, and their fixed point."""
    p = comparison.parameters
    panels = [panel.removeprefix("layers, ") for panel in comparison.panels if panel.startswith("layers")]
    figure, axes = plt.subplots(2, len(panels) + 1, figsize=(12.4, 6.2))
    for column, panel in enumerate(panels):
        for number, depth in enumerate(p["depths"]):
            at = f"{panel}, depth {depth}"
            theory, runs = _one(comparison.theories(at)), _one(comparison.experiments(at))
            for ax, name in zip(axes[:, column], ("nngp_correlation", "ntk_correlation")):
                ax.plot(theory["angle"] / np.pi, theory[name], color=COLOURS[number])
                dots(ax, runs["angle"] / np.pi, runs[name], number, f"depth {depth}")
                ax.set_ylim(-1.05, 1.05)
        axes[0, column].set_title(panel)
        axes[1, column].set_xlabel(r"angle $/\,\pi$")
    axes[0, 0].set_ylabel(r"NNGP  $K(\theta)/K(0)$")
    axes[1, 0].set_ylabel(r"NTK  $\Theta(\theta)/\Theta(0)$")
    axes[0, 0].legend(loc="lower left")
    chain, phases = axes[:, -1]
    for number, panel in enumerate(panels):
        theory, runs = _one(comparison.theories(f"layers, {panel}")), _one(comparison.experiments(f"layers, {panel}"))
        chain.plot(theory["layers"].isel(angle=0), theory["correlation"].isel(angle=0), color=COLOURS[3 + number])
        shown = runs.isel(angle=0, layer=slice(0, None, 3))
        dots(chain, shown["layers"].isel(seed=0), shown["correlation"], 3 + number, panel, markersize=3.5)
    chain.set(xlabel="layer $l$", ylabel="correlation $c_l$", ylim=(0, 1.05), title=r"from an angle of $\pi/3$")
    chain.legend(loc="center right")
    theory, runs = _one(comparison.theories("phases")), _one(comparison.experiments("phases"))
    x = theory["weight_variance"]
    phases.plot(x, theory["correlation"], color=COLOURS[0], label="$c^*$")
    phases.plot(x, theory["slope"], color=COLOURS[1], linestyle="--", label=r"$\chi_1$")
    dots(phases, runs["weight_variance"], runs["correlation"], 0, f"$c$ after {p['layers']} layers")
    edge = float(np.interp(1.0, theory["slope"], x))
    phases.axvline(edge, color="0.6", linewidth=0.8, linestyle=":")
    phases.annotate(f"edge of chaos\n{edge:.3f}", (edge, 1.8), (edge + 0.12, 1.78), fontsize=7, color="0.3")
    phases.set(xlabel="weight variance", ylabel="fixed point, and slope there", title="erf, bias variance 0.05", ylim=(0, 2))
    phases.legend(loc="center right")
    caption(
        figure,
        "Two inputs of length sqrt(d), d = 2. Lines: infinite width. Weight and bias variance: relu 2, 0; ordered 0.8, 0.05; "
        f"chaotic 4, 0.05. Dots, left: {p['seeds']} seeds of {p['networks']} networks of width {p['width']}, tangent kernels by "
        f"differentiation. Dots, right: {p['seeds']} seeds of {p['pairs']} networks of width {p['pair_width']}. Near the edge "
        f"correlations reach their fixed point ever more slowly: {p['layers']} layers are too few there.",
        width=190,
    )
    return figure


def draw_convergence(comparison: Comparison) -> Any:
    """Fluctuations and bias of both kernels against the width."""
    figure, axes = plt.subplots(2, 2, figsize=(8.6, 6.4), sharex=True)
    panels = comparison.panels
    for row, observable in enumerate(("fluctuation", "bias")):
        for column, kernel in enumerate(("nngp", "ntk")):
            ax, name = axes[row, column], f"{kernel}_{observable}"
            for number, panel in enumerate(panels):
                runs = _one(comparison.experiments(panel))
                words = panel
                if observable == "fluctuation":
                    words += f": slope {_slope(runs['width'].values, runs[name]):.2f}"
                x = runs["width"] * (1 + 0.04 * (number - 1) * row)
                dots(ax, x, runs[name], number, words)
                for theory in comparison.theories(panel).values():
                    ax.plot(theory["width"], theory[name], color=COLOURS[number])
            ax.set_xscale("log")
    for ax in axes[0]:
        ax.set_yscale("log")
        ax.legend()
    axes[1, 0].legend()
    ticks = _one(comparison.experiments(panels[0]))["width"].values
    for column, words in enumerate(("NNGP kernel", "tangent kernel")):
        axes[0, column].set_title(words)
        axes[1, column].set_xlabel("width $N$ (channels)")
        axes[1, column].set_xticks(ticks, [f"{n:g}" for n in ticks])
        axes[1, column].minorticks_off()
        axes[1, column].axhline(0, color="0.7", linewidth=0.7, zorder=0)
    axes[0, 0].set_ylabel(r"fluctuation of a network $\|\delta \hat K\| / \|K\|$")
    axes[1, 0].set_ylabel(r"bias $\langle \mathrm{E}\hat K - K, K\rangle / \|K\|^2$")
    p = comparison.parameters
    caption(
        figure,
        f"erf, weight variance {p['weight_variance']:g}, bias variance 0.05. 1 layer and convolutional (2 layers, windows of 3 "
        "on 8 pixels, 2 input channels, global average): all pairs of 4 inputs; 3 layers: one input. Dots: "
        f"{p['seeds']} seeds of {p['units']}/N networks ({p['convolutional_units']}/N). Lines: exact for 1 layer, "
        "first order in 1/N for the NNGP kernel of 3.",
        width=130,
    )
    return figure


def _slope(width: np.ndarray, values: xr.DataArray) -> float:
    """Exponent of a power law through the means, all points alike."""
    return float(np.polyfit(np.log(width), np.log(values.mean("seed").values), 1)[0])
