"""The named figures of random networks: functions and their law, depth, kernels against depth, and how wide is wide."""

from functools import partial

import jax.numpy as jnp
import numpy as np

from orderparam.core.study import Curve, study
from orderparam.gaussian import activation
from orderparam.systems.random_networks.depth import deep_cumulants, homogeneous_cumulants
from orderparam.systems.random_networks.experiment import (
    deep_networks,
    integrated_marginals,
    sample,
    sampled_covariance,
    sampled_density,
    sampled_marginals,
)
from orderparam.systems.random_networks.figures import draw_convergence, draw_deep, draw_kernels, draw_priors
from orderparam.systems.random_networks.finite import angle_networks, correlation_networks, deep_correlation, kernel_spread
from orderparam.systems.random_networks.infinite import (
    angle_kernel,
    correlation_chain,
    one_hidden_layer_spread,
    one_input_spread,
    order_chaos,
)
from orderparam.systems.random_networks.model import AngledPair, DeepNetwork, NetworkKernels, RandomNetwork
from orderparam.systems.random_networks.theory import covariance, density, exact_density, marginals

PROBES = jnp.array([[1.0, 0.5], [-0.3, 2.0]])
ERF = activation("erf")
PHASES = {  # panel -> activation, weight variance, bias variance
    "relu, edge of chaos": (activation("relu"), 2.0, 0.0),
    "erf, ordered": (ERF, 0.8, 0.05),
    "erf, chaotic": (ERF, 4.0, 0.05),
}


@study(
    "function-space-priors",
    title="Random networks as random functions: from one hidden unit to a Gaussian process",
    source="Neal 1996; Cohen, Malka, Ringel 2021; cumulants at finite width: Yaida 2020",
    full={"resolution": 200, "networks": 400_000, "hidden_layers": 50_000, "seeds": 32},
    seconds=(60, 3600),
    observables=("width_kurtosis",),
    draw=draw_priors,
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
) -> list[Curve]:
    axis = jnp.linspace(-reach, reach, resolution)
    plane = jnp.stack([part.ravel() for part in jnp.meshgrid(axis, axis)], axis=1)
    line = jnp.linspace(-reach, reach, 41)
    probes = RandomNetwork(PROBES)
    few = min(networks, 20_000)
    narrow = partial(sampled_covariance, networks=few)
    curves = [
        Curve("samples", sample, RandomNetwork(plane), {"width": widths}, seeds=1, panel="samples"),
        Curve("exact law", exact_density, probes, {"width": density_widths}, panel="density"),
        Curve("Edgeworth, order 1/N", density, probes, {"width": density_widths}, panel="density"),
        Curve("Gaussian process", partial(density, order=0), probes, {"width": density_widths}, panel="density"),
        Curve("networks", partial(sampled_density, networks=few), probes, {"width": density_widths}, seeds, panel="density"),
    ]
    for prior in ("uniform", "gaussian"):
        system, panel = RandomNetwork(PROBES, prior=prior), f"kurtosis, {prior}"
        along = RandomNetwork(jnp.concatenate([PROBES[:1], line[:, None] * PROBES[:1]]), width=5, prior=prior)
        drawn, integrated = partial(sampled_marginals, networks=networks), partial(integrated_marginals, networks=hidden_layers)
        curves += [
            Curve(f"exact, {prior}", marginals, system, {"width": (1, 1000)}, panel=panel),
            Curve(f"networks, {prior}", drawn, system, {"width": drawn_widths}, seeds, panel=panel),
            Curve(f"read-out averaged, {prior}", integrated, system, {"width": integrated_widths}, seeds, panel=panel),
            Curve(f"kernel, {prior}", covariance, along, {"width": (5,)}, panel=f"kernel, {prior}"),
            Curve(f"N = 5, {prior}", narrow, along, {"width": (5,)}, seeds, panel=f"kernel, {prior}"),
        ]
    return curves


@study(
    "deep-kurtosis",
    title="Depth over width: how far a deep random network is from a Gaussian process",
    source="Yaida 2020; Hanin, Nica 2020; Roberts, Yaida, Hanin 2021, chapter 4",
    full={"networks": 400_000, "seeds": 32, "widths": (16, 32, 64, 128, 256, 512, 1024)},
    seconds=(40, 3600),
    observables=("width_kurtosis", "mean_kernel"),
    draw=draw_deep,
)
def deep_kurtosis(
    widths: tuple[int, ...] = (16, 32, 64, 128, 256), depth: int = 4, networks: int = 20_000, seeds: int = 8
) -> list[Curve]:
    relu = DeepNetwork(depth=depth)
    erf = DeepNetwork(depth=depth, weight_variance=1.5, bias_variance=0.05, first_variance=1.0, activation=ERF)
    drawn = partial(deep_networks, networks=networks)
    fine = _between(widths)
    return [
        Curve("order 1/n, relu", deep_cumulants, relu, fine, panel="relu"),
        Curve("exact, relu", homogeneous_cumulants, relu, fine, panel="relu"),
        Curve("networks, relu", drawn, relu, {"width": widths}, seeds, panel="relu"),
        Curve("order 1/n, erf", deep_cumulants, erf, fine, panel="erf"),
        Curve("networks, erf", drawn, erf, {"width": widths}, seeds, panel="erf"),
    ]


@study(
    "kernel-depth",
    title="Kernels of deep networks against the angle between inputs: order, chaos and the edge between them",
    source="Neal 1996; Poole et al. 2016; Lee et al. 2018; Jacot et al. 2018",
    full={"width": 1000, "networks": 32, "seeds": 8, "pair_width": 4000, "pairs": 256},
    seconds=(80, 20_000),
    observables=("nngp_correlation", "ntk_correlation", "correlation"),
    draw=draw_kernels,
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
) -> list[Curve]:
    fine = tuple(float(angle) for angle in np.linspace(0, np.pi, 81))
    curves = []
    for panel, (phi, weight, bias) in PHASES.items():
        pair = AngledPair(weight_variance=weight, bias_variance=bias, activation=phi, width=width)
        finite = partial(angle_networks, networks=networks)
        for depth in depths:
            name, deep = f"{panel}, depth {depth}", pair.with_(depth=depth)
            curves += [
                Curve(f"infinite, {name}", angle_kernel, deep, {"angle": fine}, panel=name),
                Curve(f"networks, {name}", finite, deep, {"angle": angles}, seeds, panel=name),
            ]
        chain = pair.with_(angle=np.pi / 3, depth=layers, width=pair_width)
        measured = partial(correlation_networks, networks=pairs)
        curves += [
            Curve(f"layers, {panel}", correlation_chain, chain, {"angle": (np.pi / 3,)}, panel=f"layers, {panel}"),
            Curve(f"pairs, {panel}", measured, chain, {"angle": (np.pi / 3,)}, seeds, panel=f"layers, {panel}"),
        ]
    phase = AngledPair(angle=np.pi / 3, bias_variance=0.05, activation=ERF, depth=layers, width=pair_width)
    final = partial(deep_correlation, networks=pairs)
    return [
        *curves,
        Curve("fixed point", order_chaos, phase, {"weight_variance": tuple(np.linspace(0.3, 6, 115).tolist())}, panel="phases"),
        Curve("deep pairs", final, phase, {"weight_variance": variances}, seeds, panel="phases"),
    ]


@study(
    "wide-network-convergence",
    title="How wide is wide: kernels of finite networks against their infinite-width limit",
    source="Jacot et al. 2018; Lee et al. 2019; Novak et al. 2019; Yaida 2020",
    full={
        "widths": (8, 16, 32, 64, 128, 256, 512, 1024),
        "channels": (8, 16, 32, 64, 128, 256),
        "units": 2**18,
        "convolutional_units": 2**15,
        "seeds": 8,
    },
    seconds=(80, 20_000),
    observables=("nngp_fluctuation", "ntk_fluctuation", "nngp_bias", "ntk_bias"),
    draw=draw_convergence,
)
def wide_network_convergence(
    widths: tuple[int, ...] = (8, 32, 128, 512),
    channels: tuple[int, ...] = (8, 16, 32),
    units: int = 2**15,
    convolutional_units: int = 2**12,
    seeds: int = 4,
    weight_variance: float = 1.5,
) -> list[Curve]:
    rng = np.random.default_rng(0)
    vectors, signals = jnp.asarray(rng.normal(size=(4, 6))), jnp.asarray(rng.normal(size=(4, 8, 2)))
    shallow = NetworkKernels(vectors, weight_variance=weight_variance, bias_variance=0.05, activation=ERF)
    deep = shallow.with_(inputs=vectors[:1], depth=3)
    images = shallow.with_(inputs=signals, depth=2, family="convolutional")
    fine = _between(widths)
    over, measured = {"width": widths}, partial(kernel_spread, units=units)
    few = partial(kernel_spread, units=convolutional_units)
    return [
        Curve("exact, 1 layer", one_hidden_layer_spread, shallow, fine, panel="1 layer"),
        Curve("networks, 1 layer", measured, shallow, over, seeds, panel="1 layer"),
        Curve("order 1/n, 3 layers", one_input_spread, deep, fine, panel="3 layers"),
        Curve("networks, 3 layers", measured, deep, over, seeds, panel="3 layers"),
        Curve("networks, convolutional", few, images, {"width": channels}, seeds, panel="convolutional"),
    ]


def _between(widths: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """About thirty widths, for a line."""
    return {"width": tuple(np.unique(np.round(np.geomspace(min(widths), max(widths), 30)).astype(int)).tolist())}
