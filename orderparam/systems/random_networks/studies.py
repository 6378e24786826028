"""The studies of random networks: random functions and their law, the kurtosis of deep networks,
kernels as functions of depth, and convergence with the width.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr

from orderparam.comparison import Comparison, Curve, study
from orderparam.gaussian import activation
from orderparam.plotting import Freehand, Panel, curve, horizontal, slope
from orderparam.plotting.measured import dots
from orderparam.plotting.style import GREY, ink
from orderparam.systems.random_networks.experiment import (
    deep_networks,
    integrated_marginals,
    sample,
    sampled_covariance,
    sampled_density,
    sampled_marginals,
)
from orderparam.systems.random_networks.kernel_experiment import (
    angle_networks,
    correlation_networks,
    deep_correlation,
    kernel_spread,
)
from orderparam.systems.random_networks.kernels import (
    angle_kernel,
    correlation_chain,
    deep_cumulants,
    homogeneous_cumulants,
    one_hidden_layer_spread,
    one_input_spread,
    order_chaos,
)
from orderparam.systems.random_networks.model import (
    AngledPair,
    DeepNetwork,
    NetworkKernels,
    RandomNetwork,
)
from orderparam.systems.random_networks.theory import covariance, density, exact_density, marginals

# ------------------------------------------------------------------------------------------------
# Functions that draw two kinds of panels: random functions of two inputs, and order and chaos.


def draw_sample(width: int, axes: Any, comparison: Comparison) -> None:
    """Draw one network of the given width as a function of its two inputs; all widths share one
    colour scale, which stands beside the last of them.
    """
    p = comparison.parameters
    (data,) = comparison.curves(part="samples").values()
    values = data["value"].isel(seed=0)
    limit = np.nanmax(np.abs(values))
    surface = values.sel(width=width).values.reshape(p["resolution"], p["resolution"])
    reach = np.linspace(-p["reach"], p["reach"], p["resolution"])
    scale = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit, "rasterized": True}
    image = axes.pcolormesh(reach, reach, surface, **scale)
    if width == p["widths"][-1]:
        axes.figure.colorbar(image, ax=axes, label="$z$")
    levels = np.linspace(-limit, limit, 17)
    axes.contour(
        reach, reach, surface, levels=levels, colors="0.25", linewidths=0.4, linestyles="solid"
    )
    axes.set(xlabel="$x_1$", ylabel="$x_2$", aspect="equal")


def draw_order_and_chaos(axes: Any, comparison: Comparison) -> None:
    """Draw the fixed point of the correlation of two inputs; at the edge of chaos the slope of the
    correlation map at 1 is 1.
    """
    (theory,), (runs,) = (
        comparison.curves(kind, part="fixed point").values() for kind in ("theory", "experiment")
    )
    x = theory["weight_variance"]
    axes.plot(x, theory["correlation"], color=ink())
    dots(axes, runs["weight_variance"], runs["correlation"], 0, colour=ink(), filled=True)
    edge = float(np.interp(1.0, theory["slope"], x))
    axes.axvline(edge, color=GREY, linewidth=0.8, linestyle=":")
    axes.annotate(
        f"edge of chaos\n{edge:.3f}", (edge + 0.1, 1.15), va="top", fontsize=8, color=GREY
    )
    axes.set(
        xlabel=r"weight variance $\sigma_w^2$",
        ylabel="correlation in the last layer",
        ylim=(0, 1.2),
    )


def _thinned(data: xr.Dataset, values: xr.DataArray, along: str) -> xr.DataArray:
    """All values of a theory, which is drawn as a line, and every fourth of a measurement."""
    return values.isel({along: slice(None, None, 4)}) if "seed" in data.dims else values


POINTS = ((1.0, 0.5), (-0.3, 2.0))
LINE = 41  # number of inputs t x at which the kernel is shown
ERF = activation("erf")
PHASES = {  # name -> activation, weight variance, bias variance
    "relu, edge of chaos": (activation("relu"), 2.0, 0.0),
    "erf, ordered": (ERF, 0.8, 0.05),
    "erf, chaotic": (ERF, 4.0, 0.05),
}
ANGLE = (r"angle $\theta/\pi$", lambda data: data["angle"] / np.pi)


@study(
    "function-space-priors",
    title="Random networks become a Gaussian process as 1/N: their excess kurtosis times N is "
    "constant",
    source="Neal 1996; Cohen, Malka, Ringel 2021; cumulants at finite width: Yaida 2020",
    gallery={"seeds": 16},
    full={"resolution": 200, "networks": 400_000, "hidden_layers": 50_000, "seeds": 32},
    seconds=(60, 3600),
    observables=("width_kurtosis",),
    columns=4,
    panels=lambda p: [
        *(Freehand(partial(draw_sample, width), f"$N$ = {width}") for width in p["widths"]),
        Panel(
            ("$z$", lambda data: _thinned(data, data["value"], "bin")),
            (
                "probability density",
                lambda data: _thinned(
                    data,
                    data["density"] * 8.0 ** -p["density_widths"].index(data["width"].item()),
                    "bin",
                ),
            ),
            by="width",
            where={"part": "density", "input": 0},
            log="y",
            xlabel="$z(1, 0.5)$",
            xlim=(-1.1, 2.7),  # room for the widths
            ylim=(1e-3 * 8.0 ** -len(p["density_widths"]), 10),
            text={width: f"$N$ = {width}" for width in p["density_widths"]},
            beside={
                width: (0.4 if width == 1 else np.inf, "right") for width in p["density_widths"]
            },
        ),
        Panel(
            "width",
            "width_kurtosis",
            facet="prior",
            by="input",
            where={"part": "kurtosis"},
            log="x",
            text={number: f"({a:g}, {b:g})" for number, (a, b) in enumerate(POINTS)},
            beside={0: 200.0, 1: (200.0, "below")},
            ylim=(-1.4, 4.2),
            reference=[horizontal(0.0)],
        ),
        Panel(
            (
                "$t$",
                lambda data: _thinned(
                    data,
                    xr.DataArray(np.linspace(-p["reach"], p["reach"], LINE), dims=["second"]),
                    "second",
                ),
            ),
            (
                "kernel $K(x, t\\,x)$",
                lambda data: _thinned(
                    data, data["kernel"].isel(first=0, second=slice(1, None)), "second"
                ),
            ),
            by="prior",
            where={"part": "kernel"},
            beside={"uniform": (-5.0, "below"), "gaussian": (5.0, "below")},
            ylim=(-0.18, 0.15),  # room for these texts
        ),
    ],
    caption=r"""
        $z(x) = \sum_c a_c\,\mathrm{{erf}}(w_c\cdot x)$ in two input dimensions. The weights are
        uniform, $w_{{ci}}$ in $[-1/\sqrt{{2}}, 1/\sqrt{{2}}]$ and $a_c$ in $[-1/\sqrt{{N}},
        1/\sqrt{{N}}]$, or Gaussian with the same variances. Top row: one network of each width with
        uniform weights, on one colour scale (right), with lines of equal $z$. The density, of
        uniform weights, is divided by 8 from one width to the next; dashes in its colour: to first
        order in 1/N; thin grey dashes: Gaussian process. The kurtosis, at the two inputs
        that are written at its lines, is measured on {networks} networks for each seed, or on
        {hidden_layers} hidden layers for each seed with an exact average over the read-out. The
        kernel at $x$ = (1, 0.5) is the same at every width.
    """,
)
def function_space_priors(
    widths: tuple[int, ...] = (1, 5, 500, 1000),
    reach: float = 10.0,
    resolution: int = 80,
    density_widths: tuple[int, ...] = (1, 5, 500),
    drawn_widths: tuple[int, ...] = (1, 2, 4, 8, 16),
    integrated_widths: tuple[int, ...] = (1, 4, 16, 64, 256, 1000),
    networks: int = 50_000,
    hidden_layers: int = 4000,
    seeds: int = 8,
) -> Iterator[Curve]:
    axis = jnp.linspace(-reach, reach, resolution)
    plane = jnp.stack([part.ravel() for part in jnp.meshgrid(axis, axis)], axis=1)
    line = jnp.linspace(-reach, reach, LINE)
    inputs = jnp.array(POINTS)
    probes = RandomNetwork(inputs)
    few = min(networks, 20_000)
    samples, laws = {"part": "samples"}, {"part": "density"}
    over = {"width": density_widths}
    yield Curve(
        "networks", sample, RandomNetwork(plane), {"width": widths}, seeds=1, facets=samples
    )
    yield Curve("exact", exact_density, probes, over, facets=laws)
    yield Curve("order 1/N", density, probes, over, facets=laws)
    yield Curve(
        "Gaussian process", partial(density, order=0), probes, over, facets=laws, baseline=True
    )
    yield Curve(
        "networks", partial(sampled_density, networks=few), probes, over, seeds, facets=laws
    )
    for prior in ("uniform", "gaussian"):
        system = RandomNetwork(inputs, prior=prior)
        along = RandomNetwork(
            jnp.concatenate([inputs[:1], line[:, None] * inputs[:1]]), width=5, prior=prior
        )
        drawn, integrated = (
            partial(sampled_marginals, networks=networks),
            partial(integrated_marginals, networks=hidden_layers),
        )
        narrow = partial(sampled_covariance, networks=few)
        kurtosis, kernel = ({"part": part, "prior": prior} for part in ("kurtosis", "kernel"))
        yield Curve("exact", marginals, system, {"width": (1, 1000)}, facets=kurtosis)
        yield Curve("networks", drawn, system, {"width": drawn_widths}, seeds, facets=kurtosis)
        yield Curve(
            "read-out averaged",
            integrated,
            system,
            {"width": integrated_widths},
            seeds,
            facets=kurtosis,
        )
        yield Curve("exact", covariance, along, {"width": (5,)}, facets=kernel)
        yield Curve("networks", narrow, along, {"width": (5,)}, seeds, facets=kernel)


@study(
    "deep-kurtosis",
    title="The excess kurtosis of deep relu networks is nearly a function of depth over width, and "
    "vanishes with this ratio",
    source="Yaida 2020; Hanin, Nica 2020; Roberts, Yaida, Hanin 2021, chapter 4",
    gallery={"seeds": 16},
    full={"networks": 400_000, "seeds": 32, "widths": (16, 32, 64, 128, 256, 512, 1024)},
    seconds=(25, 3600),
    observables=("width_kurtosis", "mean_kernel"),
    explained="For erf the theory is of first order in 1/N. The neglected terms, of order (l/N)^2, "
    "are seen after four layers: measured kurtosis is 3.0, 1.6, 0.2, 0.4 and 0.1 % above it at 16, "
    "32, 64, 128 and 256 units.",
    panels=[
        *(
            Panel(
                "width",
                "width_kurtosis",
                by="layer",
                where={"activation": name},
                log="x",
                title=name,
            )
            for name in ("relu", "erf")
        ),
        Panel(
            ("depth over width $l/N$", lambda data: data["layers"] / data["width"]),
            "kurtosis",
            by="layer",
            where={"activation": "relu", "kind": "experiment"},
            log="xy",
            title="relu",
            reference=[
                curve(lambda x: 3 * np.expm1(5 * x)),
                curve(lambda x: 15 * x),
            ],
        ),
    ],
    caption=r"""
        Excess kurtosis of the pre-activations at one input after $l$ hidden layers of $N$ units.
        relu has weight variance 2 and no biases; erf has weight variance 1.5, bias variance 0.05
        and first variance 1. Each run draws {networks} networks. The exact result for relu is
        $3N[(1+5/N)^l-1]$. Right: the dotted lines are its limit for many layers, $3(e^{{5l/N}}-1)$,
        and the first order, $15\,l/N$. At 16 and 32 units the terms of order $(l/N)^2$ that the
        theory of erf neglects are visible.
    """,
)
def deep_kurtosis(
    widths: tuple[int, ...] = (16, 32, 64, 128, 256),
    depth: int = 4,
    networks: int = 20_000,
    seeds: int = 8,
) -> Iterator[Curve]:
    relu = DeepNetwork(depth=depth)
    erf = DeepNetwork(
        depth=depth, weight_variance=1.5, bias_variance=0.05, first_variance=1.0, activation=ERF
    )
    drawn = partial(deep_networks, networks=networks)
    fine = _between(widths)
    on_relu, on_erf = {"activation": "relu"}, {"activation": "erf"}
    yield Curve("exact", homogeneous_cumulants, relu, fine, facets=on_relu)
    yield Curve("order 1/N", deep_cumulants, relu, fine, facets=on_relu)
    yield Curve("networks", drawn, relu, {"width": widths}, seeds, facets=on_relu)
    yield Curve("order 1/N", deep_cumulants, erf, fine, facets=on_erf)
    yield Curve("networks", drawn, erf, {"width": widths}, seeds, facets=on_erf)


@study(
    "kernel-depth",
    title=(
        "With depth the outputs for two inputs become equal in the ordered phase, and stay "
        "distinct in the chaotic one"
    ),
    source="Neal 1996; Poole et al. 2016; Lee et al. 2018; Jacot et al. 2018",
    gallery={"seeds": 16},
    full={"width": 500, "networks": 16, "seeds": 16, "pair_width": 2000, "pairs": 128},
    seconds=(80, 2000),
    observables=("nngp_correlation", "ntk_correlation", "correlation"),
    columns=4,
    panels=[
        Panel(ANGLE, "nngp_correlation", facet="phase", by="depth", where={"part": "angles"}),
        Panel(
            "layers",
            ("correlation of two inputs", lambda data: data["correlation"]),
            by="phase",
            where={"part": "layers", "layer": slice(None, None, 3)},
            title=r"at $\pi/3$",
        ),
        Panel(ANGLE, "ntk_correlation", facet="phase", by="depth", where={"part": "angles"}),
        Freehand(draw_order_and_chaos, "erf, biases 0.05"),
    ],
    caption=r"""
        Two inputs of length $\sqrt{{d}}$ with $d$ = 2 at an angle $\theta$; networks of $L$ hidden
        layers. Lines: infinite width. Weight and bias variance: 2 and 0 for relu, 0.8 and 0.05 for
        ordered erf, 4 and 0.05 for chaotic erf. First three columns: {networks} networks of width
        {width} in each run, with tangent kernels by differentiation. Last column: {pairs} networks
        of width {pair_width} in each run at the angle $\pi/3$. The line of the lower panel is the
        fixed point, which {layers} layers do not reach near the edge of chaos.
    """,
    explained=(
        "Near the edge of chaos correlations do not reach their fixed point within 40 layers; in "
        "the chaotic phase networks of width 1000 deviate by 12 % at the 40th layer. No other "
        "width was run."
    ),
)
def kernel_depth(
    depths: tuple[int, ...] = (1, 3, 8),
    angles: tuple[float, ...] = (0.3, 0.8, 1.3, 1.9, 2.5, 3.1),
    width: int = 200,
    networks: int = 8,
    seeds: int = 6,
    layers: int = 40,
    pair_width: int = 1000,
    pairs: int = 32,
    variances: tuple[float, ...] = (0.4, 0.8, 1.2, 1.6, 2.0, 3.0, 4.0, 6.0),
) -> Iterator[Curve]:
    fine = tuple(float(angle) for angle in np.linspace(0, np.pi, 81))
    for phase, (phi, weight, bias) in PHASES.items():
        pair = AngledPair(weight_variance=weight, bias_variance=bias, activation=phi, width=width)
        finite = partial(angle_networks, networks=networks)
        for depth in depths:
            facets, deep = (
                {"part": "angles", "phase": phase, "depth": depth},
                pair.with_(depth=depth),
            )
            yield Curve("infinite width", angle_kernel, deep, {"angle": fine}, facets=facets)
            yield Curve("networks", finite, deep, {"angle": angles}, seeds, facets=facets)
        chain, over = (
            pair.with_(angle=np.pi / 3, depth=layers, width=pair_width),
            {"angle": (np.pi / 3,)},
        )
        measured, facets = (
            partial(correlation_networks, networks=pairs),
            {"part": "layers", "phase": phase},
        )
        yield Curve("infinite width", correlation_chain, chain, over, facets=facets)
        yield Curve("networks", measured, chain, over, seeds, facets=facets)
    final, facets = partial(deep_correlation, networks=pairs), {"part": "fixed point"}
    at_angle = AngledPair(
        angle=np.pi / 3, bias_variance=0.05, activation=ERF, depth=layers, width=pair_width
    )
    along = {"weight_variance": tuple(np.linspace(0.3, 6, 115).tolist())}
    yield Curve("infinite width", order_chaos, at_angle, along, facets=facets)
    yield Curve("networks", final, at_angle, {"weight_variance": variances}, seeds, facets=facets)


@study(
    "wide-network-convergence",
    title="Kernels of finite networks fluctuate about their infinite-width limit as the inverse "
    "root of the width",
    source="Jacot et al. 2018; Lee et al. 2019; Novak et al. 2019; Yaida 2020",
    full={
        "widths": (8, 16, 32, 64, 128, 256, 512, 1024),
        "channels": (8, 16, 32, 64, 128),
        "units": 2**18,
        "convolutional_units": 2**15,
        "seeds": 16,
    },
    seconds=(80, 6000),
    observables=("nngp_fluctuation", "ntk_fluctuation", "nngp_bias", "ntk_bias"),
    columns=2,
    panels=[
        *(
            Panel(
                "width",
                f"{kernel}_fluctuation",
                by="network",
                log="xy",
                fit="N",
                reference=[slope(-0.5, "$N^{-1/2}$")],
            )
            for kernel in ("nngp", "ntk")
        ),
        *(
            Panel("width", f"{kernel}_bias", by="network", log="x", reference=[horizontal(0.0)])
            for kernel in ("nngp", "ntk")
        ),
    ],
    caption="""
        Networks with erf, weight variance {weight_variance} and bias variance 0.05; $N$ is the
        number of units or channels. The kernels of one hidden layer and of the convolutional
        network (2 layers, windows of 3 on 8 pixels, 2 input channels, global average) are measured
        at all pairs of 4 inputs, those of three hidden layers at one input. Each run draws
        {units}$/N$ networks, or {convolutional_units}$/N$ convolutional networks. The kernels of
        one hidden layer have no bias, and the bias of the NNGP kernel of three layers is of order
        $1/N$. There is no theory here for the convolutional network and for the tangent kernel of
        three layers.
    """,
)
def wide_network_convergence(
    widths: tuple[int, ...] = (8, 32, 128, 512),
    channels: tuple[int, ...] = (8, 16, 32),
    units: int = 2**15,
    convolutional_units: int = 2**12,
    seeds: int = 4,
    weight_variance: float = 1.5,
) -> Iterator[Curve]:
    rng = np.random.default_rng(0)
    vectors, signals = jnp.asarray(rng.normal(size=(4, 6))), jnp.asarray(rng.normal(size=(4, 8, 2)))
    shallow = NetworkKernels(
        vectors, weight_variance=weight_variance, bias_variance=0.05, activation=ERF
    )
    deep = shallow.with_(inputs=vectors[:1], depth=3)
    images = shallow.with_(inputs=signals, depth=2, family="convolutional")
    fine = _between(widths)
    over, measured = {"width": widths}, partial(kernel_spread, units=units)
    few = partial(kernel_spread, units=convolutional_units)
    one, three, convolutional = (
        {"network": name} for name in ("1 layer", "3 layers", "convolutional")
    )
    yield Curve("exact", one_hidden_layer_spread, shallow, fine, facets=one)
    yield Curve("networks", measured, shallow, over, seeds, facets=one)
    yield Curve("order 1/N", one_input_spread, deep, fine, facets=three)
    yield Curve("networks", measured, deep, over, seeds, facets=three)
    yield Curve("networks", few, images, {"width": channels}, seeds, facets=convolutional)


def _between(widths: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """About thirty widths from the smallest to the largest, at which a theory's line is
    computed."""
    return {
        "width": tuple(
            np.unique(np.round(np.geomspace(min(widths), max(widths), 30)).astype(int)).tolist()
        )
    }
