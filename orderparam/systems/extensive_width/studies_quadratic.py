"""The figure of a teacher whose activation has a quadratic component."""

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from orderparam.comparison import Comparison, Curve, study
from orderparam.gaussian.polynomials import Polynomial
from orderparam.plotting import Freehand, Panel
from orderparam.plotting.measured import dots
from orderparam.plotting.style import COLOURS, DASHES, GREY, MARKERS
from orderparam.systems.extensive_width.model import QuadraticTeacher, gaussian_readouts
from orderparam.systems.extensive_width.posterior import quadratic_posterior_hmc
from orderparam.systems.extensive_width.quadratic import quadratic_bayes_optimal
from orderparam.systems.extensive_width.studies import per_ratio, samples


def _mean_overlap(data: xr.Dataset, part: int) -> xr.DataArray:
    """The mean overlap of the first half (part 0) or the second half (part 1) of the features in
    decreasing order of |v|."""
    return data["overlap"].coarsen(feature=data.sizes["feature"] // 2).mean().isel(feature=part)


def _per_square(data: xr.Dataset) -> xr.DataArray:
    """n / d^2; that of uninformed chains is shifted, because they would hide informed ones."""
    square = data.attrs["facets"]["input_dim"] ** 2
    return data["n_train"] / square * (1.07 if data.attrs["label"] == "HMC, uninformed" else 1.0)


def _draw_errors(axes: Any, comparison: Comparison, law: str) -> None:
    """Draw the errors for one law of read-outs, of the Bayes-optimal and the universal state in
    theory and of chains, those that did not converge large and open."""
    aside = {"color": GREY, "linestyle": DASHES[1], "linewidth": 0.9}
    for size, dim in enumerate(comparison.parameters["input_dims"]):
        (optimal,) = comparison.theories(readouts=law, input_dim=dim).values()
        ratio = _per_square(optimal)
        axes.plot(ratio, np.ravel(optimal["error"]), color=COLOURS[size])
        if not size:
            axes.plot(ratio, np.ravel(optimal["universal_error"]), **aside, label="universal state")
        found = comparison.experiments(readouts=law, input_dim=dim).values()
        for number, data in enumerate(found):
            at, converged = _per_square(data), data["converged"]
            chains = data["error"].where(converged)
            dots(axes, at, chains, number, colour=COLOURS[size], filled=not number)
            others = data["error"].where(~converged).mean("seed")
            look = {"color": GREY, "markerfacecolor": "none", "markersize": 8, "zorder": 4}
            axes.plot(at, np.ravel(others), MARKERS[number], **look)
    axes.set(yscale="log", ylim=(0.05, 1.05), ylabel="" if law != _LAWS[0] else "error")


_LAWS = tuple(f"{name} read-outs" for name in ("homogeneous", "Rademacher", "Gaussian"))
_READOUTS = {_LAWS[0]: (1.0,), _LAWS[1]: (1.0, -1.0)}


@study(
    "quadratic-specialisation",
    title=(
        "With $6 d^2$ examples overlaps of homogeneous and Rademacher read-outs rise from 16 to "
        "32 inputs but stay below the theory; with $2 d^2$ they fall further below"
    ),
    source="Barbier, Camilli, Nguyen, Pastore and Skerk 2025, Statistical mechanics of "
    "extensive-width Bayesian neural networks",
    seconds=(95, 9000),
    observables=("error", "quadratic_overlap"),
    gallery={"input_dims": (16, 32), "draws": 100, "thin": 4},
    full={
        "input_dims": (16, 32, 40),
        "ratios": (2.0, 4.0, 6.0),
        "draws": 100,
        "thin": 4,
        "seeds": 16,
        "points": 60,
    },
    panels=[
        *(Freehand(partial(_draw_errors, law=law), law) for law in _LAWS),
        *(
            Panel(
                ("$n/d^2$", _per_square),
                (f"mean overlap,\n{which} half of $|v|$", partial(_mean_overlap, part=part)),
                facet="readouts",
                by="input_dim",
                ylim=(-0.1, 1.02),
            )
            for which, part in (("larger", 0), ("smaller", 1))
        ),
    ],
    caption=r"""
        Teacher of $d/2$ hidden units on $d$ = {input_dims} Gaussian inputs with the activation
        $\sigma = He_2/\sqrt{{2}} + He_3/6$ (Hermite polynomials), Gaussian weights $w^0_i$ and
        known read-outs $v$: all 1 (homogeneous), 1 and -1 in equal numbers (Rademacher), or the
        quantiles of a Gaussian variable. Label noise of variance $\Delta$ = {noise}, $n$ examples;
        {seeds} data sets. Error: half the mean squared difference of a draw and the teacher.
        Overlap: $w_i\cdot w^0_i/d$ of a draw, averaged over one half of the units; where all $|v|$
        are equal the halves are two samples of one quantity. Chains start at the teacher (informed)
        or from the prior (uninformed, at the largest $n$; shifted to the right by 7 %; for Gaussian
        read-outs, where most do not converge, with the fewest inputs alone). The lines of all $d$
        coincide but for Gaussian read-outs. Dashed: the universal state, in which no feature is
        learned by itself.
    """,
    explained=(
        "The theory is that of large dimensions. With n = 6 d^2 chains from both starts agree: "
        "with 32 inputs mean overlaps are 0.64(3) and 0.64(3) for homogeneous and 0.82(2) and "
        "0.82(2) for Rademacher read-outs, so that they are those of the posterior. From 16 "
        "inputs they rise from 0.50(5), in theory 0.88, and from 0.73(4), in theory 0.89. For "
        "the stronger half of Gaussian read-outs they are 0.885(15) and 0.904(9), in theory 0.92 "
        "and 0.91, for the weaker half 0.17(3) and 0.16(2), in theory 0.27 and 0.17. Errors with "
        "32 inputs lie 6.1(10), 4.4(8) and 2.2(12) % above the theory for homogeneous, "
        "Rademacher and Gaussian read-outs, with 16 inputs 7(4), 11(3) and 7(2) %. With n = 2 "
        "d^2 overlaps fall: they are 0.12(2) and 0.08(1) for homogeneous, in theory 0.44, "
        "0.22(4) and 0.13(2) for Rademacher, in theory 0.55, and 0.67(3) and 0.58(2) for the "
        "stronger half of Gaussian read-outs, in theory 0.73 and 0.68. The error with 32 inputs "
        "lies there 6.5(15) % below the theory for homogeneous, 2.3(15) % above it for "
        "Rademacher and 12.8(17) % above it for Gaussian read-outs. The cause of the "
        "disagreement at 2 d^2 is open: whether larger systems agree was not measured; the "
        "source has 150 inputs. Quadratic overlaps lie within 1.5 % of the theory at 6 d^2 with "
        "chains from the teacher, and within 5.4 % at 2 d^2. Of the 15 runs that did not "
        "converge 12 are those of Gaussian read-outs from the prior, where 4 are left."
    ),
)
def quadratic_specialisation(
    input_dims: tuple = (16,),
    noise: float = 1.25,
    ratios: tuple = (2.0, 6.0),
    draws: int = 80,
    thin: int = 1,
    seeds: int = 4,
    points: int = 16,
) -> Iterator[Curve]:
    """input_dims: numbers of inputs d; there are d/2 hidden units, one fewer where that is odd.
    With Gaussian read-outs, where chains from the prior do not converge, they are run for the first
    of them alone. ratios: n / d^2."""
    mixed = Polynomial((-(0.5**0.5), -0.5, 0.5**0.5, 1 / 6))  # He_2 / sqrt(2) + He_3 / 6
    hmc = partial(quadratic_posterior_hmc, draws=draws, thin=thin, leapfrog_steps=20)
    for law, dim in itertools.product(_LAWS, input_dims):
        width = dim // 4 * 2
        readout = gaussian_readouts(width) if law == _LAWS[2] else _READOUTS[law]
        system = QuadraticTeacher(dim, width, noise, 1000.0, mixed, readout)
        facets = {"readouts": law, "input_dim": dim}
        grid = {"n_train": samples(0.3 * dim**2, 9.0 * dim**2, points)}
        measured = {"n_train": per_ratio(ratios, dim)}
        yield Curve("Bayes-optimal", quadratic_bayes_optimal, system, grid, facets=facets)
        yield Curve(
            "HMC, informed", partial(hmc, start="informed"), system, measured, seeds, facets=facets
        )
        if dim == input_dims[0] or law in _READOUTS:
            last = {"n_train": measured["n_train"][-1:]}
            prior = partial(hmc, start="uninformed")
            yield Curve("HMC, uninformed", prior, system, last, seeds, facets=facets)
