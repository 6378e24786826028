"""When networks without weight sharing gain from a finite number of channels."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr

from orderparam.comparison import Comparison, Curve, study
from orderparam.observables.dimension import participation_ratio
from orderparam.plotting import Freehand
from orderparam.plotting.measured import mean_and_error
from orderparam.plotting.style import COLOURS, GREY, MARKERS
from orderparam.systems.proportional.experiment import sampled_network
from orderparam.systems.proportional.model import (
    BayesianNetwork,
    Convolutional,
    FullyConnected,
    LocallyConnected,
    flat,
    patch_teacher,
)
from orderparam.systems.proportional.theory import finite_width, infinite_width

_PATCHES = 4
_DENSE, _LOCAL, _SHARED = "fully connected", "locally connected", "convolutional"


def uneven_teacher(others: float, n_train: int, n_test: int) -> dict[str, Any]:
    """The data fields of a target that uses four patches unequally, s_1 + others (s_2 + s_3 + s_4)
    with norm 1, where s_i is the signal of a patch in `patch_teacher`."""
    one, shared = (patch_teacher(name, n_train, n_test) for name in ("one", "shared"))
    norm = math.sqrt(1 + (_PATCHES - 1) * others**2)

    def mixed(name: str) -> Any:
        total = math.sqrt(_PATCHES) * jnp.asarray(shared[name])
        return ((1 - others) * one[name] + others * total) / norm

    return one | {name: mixed(name) for name in ("targets", "test_targets")}


def used_patches(others: float) -> float:
    """Number of patches that the target uses: the participation ratio of the variances 1, others^2,
    others^2 and others^2 that the four patches contribute.

    >>> used_patches(0.0), used_patches(1.0)
    (1.0, 4.0)
    """
    return float(participation_ratio(np.array([1.0, *[others**2] * (_PATCHES - 1)])))


def _loss_ratio(finite: xr.Dataset, infinite: xr.Dataset) -> xr.DataArray:
    return finite["test_error"] / infinite["test_error"].item()


def _draw(axes: Any, comparison: Comparison, order: bool) -> None:
    """Draw, against the number of patches that the target uses, test errors over those of infinite
    width, or the order parameters of the locally connected network."""
    shown = [_LOCAL] if order else list(comparison.parameters["architectures"])
    for number, name in enumerate(shown):
        theories = comparison.theories(architecture=name)
        infinite = {
            data.attrs["facets"]["others"]: data
            for data in theories.values()
            if data.attrs["label"] == "infinite width"
        }

        def heights(data: xr.Dataset, infinite: dict[float, Any] = infinite) -> list[xr.DataArray]:
            if not order:
                return [_loss_ratio(data, infinite[data.attrs["facets"]["others"]])]
            matrix = data["order_parameters"].isel(layer=0, output=0, other_output=0)
            diagonal = [matrix.isel(patch=i, other_patch=i) for i in range(_PATCHES)]
            return [diagonal[0], sum(diagonal[1:], start=0 * diagonal[0]) / (_PATCHES - 1)]

        lines = [data for data in theories.values() if data.attrs["label"] == "finite width"]
        lines.sort(key=lambda data: data.attrs["facets"]["others"])
        x = [used_patches(data.attrs["facets"]["others"]) for data in lines]
        for part, values in enumerate(zip(*(heights(data) for data in lines))):
            colour = COLOURS[(3 + part) if order else number]
            label = ("patch 1" if part == 0 else "patches 2 to 4, mean") if order else name
            axes.plot(x, [float(value.squeeze()) for value in values], color=colour, label=label)
        for data in comparison.experiments(architecture=name).values():
            place = used_patches(data.attrs["facets"]["others"])
            for part, value in enumerate(heights(data)):
                at = value.squeeze(
                    [dim for dim in value.dims if dim != "seed" and value.sizes[dim] == 1]
                )
                at = at.where(data["converged"].squeeze().values)
                mean, error = mean_and_error(at)
                which = (3 + part) if order else number
                axes.errorbar(
                    place,
                    mean,
                    np.nan_to_num(error),
                    fmt=MARKERS[which],
                    color=COLOURS[which],
                )
    axes.axhline(1.0, color=GREY, linewidth=0.8)
    axes.set(
        xlabel="number of patches that the target uses",
        ylabel="$Q_{ii}$, locally connected" if order else "test error / that of infinite width",
    )


@study(
    "locality-finite-width",
    title=(
        "In locally connected networks 20 channels have a smaller error than infinitely many if "
        "the target uses few of the patches, in convolutional ones for all four measured targets"
    ),
    source="Aiudi, Pacelli, Baglioni, Vezzani, Burioni, Rotondo 2025",
    panels=[Freehand(partial(_draw, order=False)), Freehand(partial(_draw, order=True))],
    columns=2,
    caption=r"""
        Inputs of four independent Gaussian patches of ten pixels, $y \propto s_1 + a (s_2 + s_3 +
        s_4)$ with $s_i = w\cdot x_i$; the number of patches used is $(\sum c_i^2)^2/\sum c_i^4$ of
        the coefficients $c$, 1 at $a = 0$ and 4 at $a = 1$. $P$ = {n_train} examples, $T$ =
        {temperature}, {channels} channels of erf on the patches, with own weights (locally
        connected) or shared ones (convolutional), or {channels} units on all pixels (fully
        connected); unit prior variances, {n_test} test points, one training set. Lines join the
        theory of that width on the same data, the limit of many channels at a fixed ratio of
        examples to channels. Right: the factors $Q_{{ii}}$ of the kernels of patches, 1 at infinite
        width. Where all patches matter equally they change alike; where one matters it is enlarged
        and the others shrink. Marks, in the colours of the lines: Hamiltonian Monte Carlo, {seeds}
        runs of {chains} chains.
    """,
    seconds=(90, 3600),
    observables=("test_error", "order_parameters"),
    explained=(
        "The theory is the limit of many channels C at fixed P/C. At P = 60, for the target of one "
        "patch, the order parameter of that patch in the locally connected network lies 14, 6 and "
        "3 % above it at 20, 40 and 80 channels, and the test error 10.1(2), 7.5(3) and 5.3(3) % "
        "(four runs each), which falls more slowly than one over the channels. The gain of "
        "unshared weights therefore ends near 2.5 patches used, where theory has 3.1."
    ),
    gallery={"measured": (0.0, 0.25, 0.45, 1.0), "seeds": 16, "samples": 400},
    full={
        "measured": (0.0, 0.15, 0.25, 0.35, 0.45, 0.7, 1.0),
        "seeds": 32,
        "samples": 400,
        "chains": 8,
    },
)
def locality_finite_width(
    n_train: int = 60,
    n_test: int = 300,
    temperature: float = 0.05,
    channels: int = 20,
    architectures: tuple[str, ...] = (_DENSE, _LOCAL, _SHARED),
    lines: tuple[float, ...] = (0.0, 0.12, 0.2, 0.25, 0.35, 0.45, 0.6, 1.0),
    measured: tuple[float, ...] = (0.0, 1.0),
    samples: int = 60,
    chains: int = 2,
    seeds: int = 4,
) -> Iterator[Curve]:
    """Curves of theory and sampled networks; `lines` and `measured` are their values of a."""
    sampler = partial(sampled_network, samples=samples, chains=chains, warmup=80)
    for others in sorted({*lines, *measured}):
        fields = uneven_teacher(others, n_train, n_test)
        patches: dict[str, Any] = {"channels": channels, "temperature": temperature, "mask": 10}
        systems: dict[str, tuple[BayesianNetwork, str]] = {
            _DENSE: (
                FullyConnected(**flat(fields), width=channels, temperature=temperature),
                "width",
            ),
            _LOCAL: (LocallyConnected(**fields, **patches), "channels"),
            _SHARED: (Convolutional(**fields, **patches), "channels"),
        }
        for name in architectures:
            (system, axis), facets = systems[name], {"architecture": name, "others": others}
            over = {axis: [channels]}
            yield Curve("finite width", finite_width, system, over, facets=facets)
            yield Curve(
                "infinite width", infinite_width, system, over, facets=facets, baseline=True
            )
            if others in measured:
                yield Curve("sampled", sampler, system, over, seeds, facets=facets)
