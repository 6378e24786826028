"""The plane of the phases of feature learning, with networks in each of them."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray

from orderparam.analysis.phases.study import diagram_curve, phases_panel
from orderparam.comparison import Comparison, Curve, between, study
from orderparam.plotting import Freehand, Panel, horizontal
from orderparam.plotting.style import COLOURS
from orderparam.systems.kernel_adaptation.network import hermite_target
from orderparam.systems.kernel_adaptation.two_layers.experiment import (
    SampledTwoLayerNetwork,
    sampled_network,
)
from orderparam.systems.kernel_adaptation.two_layers.gaussian_weights import gaussian_weights
from orderparam.systems.kernel_adaptation.two_layers.model import AdaptingNetwork, TwoLayerNetwork
from orderparam.systems.kernel_adaptation.two_layers.phase_map import (
    across_variance,
    draw_cut,
    draw_phases,
    draw_shares,
)
from orderparam.systems.kernel_adaptation.two_layers.shares import (
    METASTABLE,
    share_free_energy,
    unspecialised_network,
)
from orderparam.systems.kernel_adaptation.two_layers.studies import GAUSSIAN
from orderparam.systems.kernel_adaptation.two_layers.theory import adapted_weights

_SLOW = 3500.0  # n/T beyond which neurons cross slowly between the wells


def _sampled(system: AdaptingNetwork, key: PRNGKeyArray, *, samples: int) -> SampledTwoLayerNetwork:
    return sampled_network(system.drawn, key, samples=samples)


def _sampled_longer(
    system: AdaptingNetwork, key: PRNGKeyArray, *, draws: int, saturated: float
) -> SampledTwoLayerNetwork:
    """A sampled network whose chains grow as (n/T)^2 beyond n/T = `saturated`, because neurons then
    cross more and more slowly between the centre and the side wells."""
    network = system.drawn
    longer = max(1.0, network.n_train / network.temperature / saturated)
    samples = round(draws * longer**2)
    return sampled_network(network, key, warmup=samples // 2, samples=samples)


def _panels(p: Mapping[str, Any]) -> list[Panel | Freehand]:
    across = "variance across the target / prior", lambda data: across_variance(data, p)
    fixed = rf"$\chi$ = {p['strength']:g}"
    many = f"$n$ = {p['n_train']}"
    return [
        Freehand(draw_phases, "phases"),
        Freehand(partial(draw_cut, part="examples", shown="shown_examples"), fixed),
        Freehand(partial(draw_cut, part="strength", shown="shown_strengths"), many),
        Panel(
            "network.n_train",
            across,
            where={"part": "examples"},
            log="x",
            title=fixed,
            xlabel="examples $n$",
        ),
        Panel("chi", "spread", where={"part": "strength"}, log="xy", title=many),
        Freehand(draw_shares, many),
    ]


@study(
    "feature-learning-phases",
    title=(
        "With more examples or stronger adaptation the density of a network's weights passes from "
        "one maximum to two; 16 runs do not resolve the shallow ones that theory adds"
    ),
    source="Rubin, Seroussi, Ringel 2024, arXiv 2310.03789",
    panels=_panels,
    columns=3,
    caption=r"""
        Erf units, $d$ = {input_dim}, $N$ = {width}, $y = He_1 {cubic:+g} He_3$ of $w_*\cdot x$,
        $E|w|^2$ = {weight_variance}; $T$ = {temperature}$/\chi$ and variance of $\sqrt{{N}}a$ =
        {readout_variance}$/\chi$, so that the infinitely wide network does not depend on $\chi$.
        $\rho = w\cdot w_*$. Areas: phases of the density $p(\rho)$ in theory. GFL (blue): one
        maximum, at 0; GMFL-II (green): maxima at $\pm\rho_*$ alone; GMFL-I (orange): both. Black
        line: both maxima are equally high. Thin lines: variance of the weights across the target
        over that of the prior (compression). Marks: networks, with the phase of their own density:
        a rise or fall counts beyond four standard errors over runs, so that maxima which are too
        shallow for the runs do not show in the marks. Lower right: free energy, in units of the
        temperature and from its minimum, of a network in which the share $c$ of neurons has $|\rho|
        > 1/2$, and the measured shares. It is convex: neurons coexist in two wells, networks have
        one state. At $c = 0$: the network before specialisation.
    """,
    explained=(
        "Four of ten marks lie in the orange area, where theory has a third maximum or, at chi = "
        "20, two side maxima, and show the phase without these, which are shallow: in theory the "
        "maximum at 0 lies 4 and 24 % above the minimum beside it at 350 and 450 examples (chi = "
        "105) and 15 % at chi = 60, the side maxima 0.01 % at chi = 20. In 16 runs these rises "
        "stay below the four standard errors that count. The theory is that of many units and "
        "averages over data; networks have 50. All parts of the output are within 2.6 standard "
        "errors. The spread of the weights along the target is 1.8 to 2.4 % below the theory at "
        "250 to 450 examples, their squared length 1.3 and 1.7 % at 350 and 450. At 450 examples "
        "the spread is 1.7(7) % below with 50 units and 2.1(1.5) % with 200, which does not decide "
        "between the number of units and the average over data."
    ),
    seconds=(90, 3600),
    observables=("output", "spread", "norm"),
    gallery={
        "n_train": 450,
        "measured_examples": (50, 90, 180, 250, 350, 450),
        "shown_examples": (90, 180, 450),
        "measured_strengths": (4.0, 6.5, 20.0, 60.0),
        "resolution": 40,
        "draws": 400,
        "seeds": 16,
    },
    full={
        "measured_examples": (50, 70, 90, 130, 180, 250, 450, 700, 1000),
        "measured_strengths": (4.0, 6.5, 10.0, 20.0, 35.0, 60.0),
        "resolution": 100,
        "draws": 1000,
        "seeds": 64,
    },
)
def feature_learning_phases(
    input_dim: int = 10,
    width: int = 50,
    cubic: float = -0.4,
    temperature: float = 10.0,
    readout_variance: float = 0.15,
    weight_variance: float = 0.5,
    strength: float = 105.0,
    n_train: int = 700,
    measured_examples: tuple[int, ...] = (70, 180, 700),
    measured_strengths: tuple[float, ...] = (6.5, 20.0, 60.0),
    shown_examples: tuple[int, ...] = (70, 180, 700),
    shown_strengths: tuple[float, ...] = (6.5, 20.0, 60.0),
    resolution: int = 12,
    draws: int = 250,
    seeds: int = 4,
) -> Iterator[Curve]:
    """Curves of the plane and of two cuts through it. `temperature` and `readout_variance` are the
    values at chi = 1. `strength` is chi of the cut over examples, and `n_train` the number of
    examples of the cut over chi. `draws` is the number of draws of a chain, which is larger at
    large n/T. Densities are drawn at the points `shown_*`."""
    target = hermite_target({1: 1.0, 3: cubic})
    network = TwoLayerNetwork(
        input_dim, width, n_train, temperature, target, readout_variance, weight_variance
    )
    system = AdaptingNetwork(network, 1.0)
    theory = partial(adapted_weights, ridge_kind="effective")
    sampler = partial(_sampled_longer, draws=draws, saturated=_SLOW)
    examples = {"network.n_train": np.geomspace(40.0, 1200.0, resolution).tolist()}
    plane = {**examples, "chi": np.geomspace(3.0, 400.0, resolution).tolist()}
    label = "adapted weights (GMFL)"
    yield Curve(label, theory, system, plane, facets={"part": "plane"})
    cuts: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "examples": (
            {"network.n_train": between(measured_examples, 30), "chi": [strength]},
            {"network.n_train": measured_examples, "chi": [strength]},
        ),
        "strength": (
            {"network.n_train": [n_train], "chi": between(measured_strengths, 30)},
            {"network.n_train": [n_train], "chi": measured_strengths},
        ),
    }
    for part, (line, measured) in cuts.items():
        facets = {"part": part}
        yield Curve(label, theory, system, line, facets=facets)
        yield Curve("sampled network", sampler, system, measured, seeds, facets=facets)
    yield Curve(
        "free energy of a share",
        share_free_energy,
        system,
        {"chi": shown_strengths},
        facets={"part": "states"},
    )


@study(
    "cubic-sign",
    title=(
        "From 300 examples erf networks learn a cubic part of negative sign; one of positive sign "
        "they learn with the wrong sign"
    ),
    source="Rubin, Seroussi, Ringel 2024, arXiv 2310.03789",
    panels=[
        Panel(
            "chi",
            "learnability",
            facet="mode",
            by="cubic",
            where={"mode": (0, 1)},
            log="x",
            reference=[horizontal(0.0)],
            share_y=False,
            text={0: "$h_1$", 1: "$h_3$"},
        )
    ],
    caption=r"""
        Erf units, $d$ = {input_dim}, $N$ = {width}, $n$ = {n_train}, $y = He_1 + c\, He_3$ of
        $w_*\cdot x$ with $c$ = cubic ($h_1$, $h_3$: these two parts), $E|w|^2$ = {weight_variance};
        $T$ = {temperature}$/\chi$ and variance of $\sqrt{{N}}a$ = {readout_variance}$/\chi$.
        Learnability: component of the mean output over that of the target. A unit along the target
        has $h_1$ and $h_3$ of opposite signs: for $c < 0$ weights that learn the linear part learn
        the cubic one with it, for $c > 0$ they have to unlearn it, and learn less of both.
    """,
    seconds=(60, 1200),
    observables=("output", "spread"),
    explained=(
        "The theory is averaged over data and neglects fluctuations of the output. The measured "
        "spread (not drawn) is 1 to 3 % below it, "
        "and at chi = 200 the learnabilities of both targets are up to 3 % below."
    ),
    gallery={"seeds": 16, "draws": 300, "measured": (5.0, 20.0, 60.0, 200.0)},
    full={"seeds": 64, "draws": 1000, "measured": (5.0, 20.0, 60.0, 200.0, 600.0)},
)
def cubic_sign(
    input_dim: int = 10,
    width: int = 50,
    n_train: int = 300,
    cubics: tuple[float, ...] = (-0.15, 0.15),
    temperature: float = 10.0,
    readout_variance: float = 0.15,
    weight_variance: float = 0.5,
    measured: tuple[float, ...] = (20.0, 200.0),
    draws: int = 250,
    seeds: int = 4,
) -> Iterator[Curve]:
    line = between((2.0, 1000.0, *measured), 25)
    for cubic in cubics:
        network = TwoLayerNetwork(
            input_dim,
            width,
            n_train,
            temperature,
            hermite_target({1: 1.0, 3: cubic}),
            readout_variance,
            weight_variance,
        )
        system, facets = AdaptingNetwork(network, 1.0), {"cubic": cubic}
        theory = partial(adapted_weights, ridge_kind="effective")
        sampler = partial(_sampled, samples=draws)
        yield Curve("adapted weights (GMFL)", theory, system, {"chi": line}, facets=facets)
        yield Curve("sampled network", sampler, system, {"chi": measured}, seeds, facets=facets)


# ------------------------------------------------------------------------------------------------
# The plane shows where the weights of a two-layer network adapt to its target, and where Gaussian
# weights have two states.


def _other_minimum(data: xr.Dataset) -> xr.DataArray:
    """True if Gaussian weights are in the minimum of large variance; the theory without the
    Gaussian ansatz has only one state."""
    return (data["spread"] > 6) & (data.attrs["label"] == GAUSSIAN)


def draw_barrier(axes: Any, comparison: Comparison) -> None:
    """The barrier of one neuron in a network that has not specialised, as far as this network is
    metastable, for every number of examples."""
    (data,) = (one for one in comparison.theories().values() if "escape" in one)
    temperature = data["temperature"].values
    for number, n in enumerate(data["n_train"].values):
        at = data.sel(n_train=n)
        metastable = at["state"].values.ravel() == METASTABLE
        barrier = at["escape"].values.ravel()[metastable]
        axes.plot(temperature[metastable], barrier, color=COLOURS[number])
        if metastable.any() and not metastable.all():
            axes.plot(temperature[metastable][-1], barrier[-1], "o", color=COLOURS[number])
    axes.set(xscale="log", xlabel="temperature $T$", ylabel="barrier of one neuron / $T$")
    axes.set(ylim=(0, None))


@study(
    "adaptation-plane",
    title=(
        "In theory Gaussian weights adapt to a cubic target discontinuously, weights of any "
        "distribution continuously"
    ),
    source="Rubin, Seroussi, Ringel 2024, arXiv 2310.03789",
    seconds=(60, 900),
    full={"resolution": 32, "points": 200},
    panels=[
        phases_panel(
            "n_train",
            "temperature",
            log="xy",
            order="spread",
            title="Gaussian weights",
            part="plane",
        ),
        Panel(
            "temperature",
            "spread",
            by="n_train",
            where={"part": "cut"},
            log="xy",
            jump=_other_minimum,
        ),
        Freehand(draw_barrier, "network before specialisation"),
    ],
    caption=r"""
        Erf units, $d$ = {input_dim} inputs, $N$ = {width} units, $n$ examples of $y = h_3(w_*\cdot
        x)$ with the third Hermite polynomial $h_3$, read-out variance {readout_variance}; theories
        are averaged over data. Spread: variance of the weights along the target, $\rho = w\cdot
        w_*$, over that of the prior, $\sigma_w^2/d$. Left: the minimum of the action of Gaussian
        weights that is the lowest; on the black line it jumps. Right: Gaussian weights (VGA,
        dashed) jump where weights of any distribution (GMFL, solid) do not. Third panel, in the
        colours of the second: depth of the first minimum of the density of $\rho$ below its centre,
        for one neuron in a network none of whose neurons has specialised. Each neuron crosses it by
        itself. Dots: the highest temperatures at which at least one neuron would (metastable line).
        Nothing is measured; the study adaptation-hysteresis has networks at $n$ = 400.
    """,
)
def adaptation_plane(
    resolution: int = 8,
    input_dim: int = 50,
    width: int = 80,
    readout_variance: float = 0.04,
    cuts: tuple[float, ...] = (300.0, 450.0, 800.0),
    points: int = 80,
) -> Iterator[Curve]:
    target = hermite_target({3: 1.0}, normalised=True)
    temperatures = (0.02, 0.2)
    over = {"n_train": (250, 1000, "log"), "temperature": (*temperatures, "log")}
    system = TwoLayerNetwork(input_dim, width, 400, 0.1, target, readout_variance, modes=(1, 3))
    gaussian = partial(gaussian_weights, ridge_kind="effective")
    any_law = partial(adapted_weights, ridge_kind="effective")
    options: dict[str, Any] = {"accuracy": 1e-3, "branches": (), "batch": 16}
    yield diagram_curve(
        gaussian,
        system,
        over,
        order="spread",
        facets={"part": "plane"},
        resolution=resolution,
        **options,
    )
    grid = {"n_train": cuts, "temperature": between(temperatures, points)}
    facets = {"part": "cut"}
    yield Curve("adapted weights (GMFL)", any_law, system, grid, facets=facets)
    yield Curve(GAUSSIAN, gaussian, system, grid, facets=facets)
    yield Curve(
        "before specialisation", unspecialised_network, system, grid, facets={"part": "barrier"}
    )
