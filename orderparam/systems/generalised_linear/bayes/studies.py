"""Studies of Bayes-optimal estimation: signs, magnitudes, sparse weights, invariant matrices."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from orderparam.analysis.phases.study import diagram_curve, phases_panel
from orderparam.channels import RealLabels, SignLabels
from orderparam.channels.outlier import LEAST_MEASURED
from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand, Panel, vertical
from orderparam.plotting.style import COLOURS, DASHES, ink
from orderparam.priors import GaussianPrior, Rademacher, SparsePrior
from orderparam.systems.generalised_linear.bayes.amp_fixed_point import amp_fixed_point
from orderparam.systems.generalised_linear.bayes.eigenvectors import spectral
from orderparam.systems.generalised_linear.bayes.experiment import (
    leading_eigenvector,
    message_passing,
    vector_message_passing,
)
from orderparam.systems.generalised_linear.bayes.model import GeneralisedLinear, InvariantDesign
from orderparam.systems.generalised_linear.bayes.sparse import sparse_thresholds
from orderparam.systems.generalised_linear.bayes.theory import solutions, state_evolution
from orderparam.systems.generalised_linear.bayes.vamp import vector_state_evolution

# ------------------------------------------------------------------------------------------------
# The named figures of Bayes-optimal estimation: labels that are signs, magnitudes, and compressed
# sensing.

PRIORS = {"gaussian": GaussianPrior(), "binary": Rademacher(), "sparse": SparsePrior(0.2, 5.0)}
WAYS = ("determined", "message passing", "l1 norm")
# sample ratios at which the labels |w.x| allow weak recovery, determine the weights, and let AMP
# find them
MAGNITUDES = (0.5, 1.0, 1.1284714)
# sample ratios at which signs determine binary weights, and at which AMP finds them (Györgyi 1990)
BINARY = (1.2446840, 1.4926318)


@study(
    "one-bit-estimation",
    title=(
        "Message passing that estimates weights from the signs of their projections agrees "
        "with state evolution for three priors"
    ),
    source="Györgyi 1990; Barbier, Krzakala, Macris, Miolane, Zdeborová 2019",
    seconds=(50, 900),
    observables=("overlap", "error"),
    full={"input_dim": 4000, "seeds": 16},
    columns=2,
    panels=[
        Panel("sample_ratio", "cosine", by="prior", reference=[vertical(x, "") for x in BINARY]),
        Panel("sample_ratio", "error", by="prior", log="y", ylim=(1e-3, 1.2)),
    ],
    caption=r"""
        $y = \mathrm{{sign}}(w\cdot x)$, $d$ = {input_dim}, weights of variance 1: gaussian, binary
        ($\pm 1$), or sparse (a share 0.2 is Gaussian, the others are zero). Error $\varepsilon$:
        mean squared error of a weight; values below 0.001 are not drawn, and a bar that reaches
        zero ends there. In theory binary weights are determined for $\alpha > 1.245$, and message
        passing finds them for $\alpha > 1.493$ (grey lines).
    """,
)
def one_bit_estimation(
    sample_ratios: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0, 1.25, 1.75, 2.0),
    input_dim: int = 1000,
    seeds: int = 4,
) -> Iterator[Curve]:
    fine = {"sample_ratio": tuple(np.linspace(0.05, max(sample_ratios), 60).tolist())}
    for name, prior in PRIORS.items():
        system, facets = GeneralisedLinear(1.0, SignLabels(), prior, input_dim), {"prior": name}
        yield Curve("state evolution", state_evolution, system, fine, facets=facets)
        yield Curve(
            "message passing",
            message_passing,
            system,
            {"sample_ratio": sample_ratios},
            seeds,
            facets=facets,
        )


@study(
    "phase-retrieval",
    title=(
        "In theory magnitudes of projections reveal the weights in part beyond 0.5 samples "
        "per input, fully beyond 1.13; overlaps of message passing that converged agree"
    ),
    source="Barbier, Krzakala, Macris, Miolane, Zdeborová 2019; Mondelli, Montanari 2018",
    seconds=(60, 1800),
    observables=("overlap", "cosine"),
    gallery={"seeds": 28},
    full={
        "input_dim": 4000,
        "seeds": 16,
        "sample_ratios": (0.3, 0.45, 0.55, 0.7, 0.9, 1.05, 1.2, 1.4),
        "fine": tuple(np.linspace(0.05, 1.5, 117).tolist()),
        "max_steps": 3000,
    },
    panels=[
        Panel(
            "sample_ratio",
            "overlap",
            by="start",
            xlim=(0, 1.5),
            reference=[vertical(x, text) for x, text in zip(MAGNITUDES, ("weak", "", "found"))],
            where={"estimator": "optimal"},
            text={
                "spectral": "spectral start",
                "informed": "informed start",
                "state evolution": "theory",
                "message passing": "measured",
            },
            title="message passing",
        ),
        Panel(
            "sample_ratio",
            "cosine",
            where={"estimator": "eigenvector"},
            xlim=(0, 1.5),
            reference=[vertical(0.5, "weak")],
            text={"spectral theory": "theory", "leading eigenvector": "measured"},
            title="leading eigenvector",
        ),
    ],
    columns=2,
    caption=r"""
        $y = |w\cdot x|$ without noise, Gaussian weights, $d$ = {input_dim}. Left: overlap, the mean
        product of a weight and its estimate, which can exceed 1 in a drawn problem. Message passing
        ends at the same point from the spectral start as from zero overlap; where marks coincide,
        the informed start covers the spectral one. Grey: all solutions of state evolution. Weak
        recovery begins at $\alpha$ = 0.5; the weights are determined for $\alpha$ > 1 and found for
        $\alpha$ > 1.128. Runs that did not converge are left out, which raises means. Right: the
        leading eigenvector of the covariance of the inputs weighted by $1 - 1/y^2$; dashed: theory.
    """,
    explained=(
        "Below weak recovery the theory is zero, but an estimate of finite d keeps a cosine with "
        "the weights. All points beyond three standard errors lie there. Control at 0.3 samples "
        "per input with 64 problems: the eigenvector's mean cosine is 0.198(12) at d = 250 and "
        "0.115(9) at d = 1000, that of message passing 0.168(12) and 0.118(10)."
    ),
)
def phase_retrieval(
    sample_ratios: tuple[float, ...] = (0.3, 0.7, 0.9, 1.05, 1.25),
    fine: tuple[float, ...] = (
        0.3,
        0.48,
        0.52,
        0.56,
        0.62,
        0.7,
        0.8,
        0.9,
        1.0,
        1.001,
        1.06,
        1.1,
        1.125,
        1.13,
        1.25,
        1.45,
    ),
    input_dim: int = 1000,
    max_steps: int = 1600,
    seeds: int = 4,
) -> Iterator[Curve]:
    system, over = (
        GeneralisedLinear(1.0, RealLabels("abs"), GaussianPrior(), input_dim),
        {"sample_ratio": sample_ratios},
    )
    optimal, eigenvector = {"estimator": "optimal"}, {"estimator": "eigenvector"}
    spectral_start, informed = ({**optimal, "start": start} for start in ("spectral", "informed"))
    passing = partial(message_passing, damping=0.3, max_steps=max_steps)
    yield Curve("all solutions", solutions, system, {}, facets=optimal, baseline=True)
    yield Curve(
        "state evolution", amp_fixed_point, system, {"sample_ratio": fine}, facets=spectral_start
    )
    yield Curve(
        "state evolution",
        partial(amp_fixed_point, start="informed"),
        system,
        {"sample_ratio": fine},
        facets=informed,
    )
    yield Curve(
        "message passing",
        partial(passing, start="spectral"),
        system,
        over,
        seeds,
        facets=spectral_start,
    )
    yield Curve(
        "message passing", partial(passing, start="informed"), system, over, seeds, facets=informed
    )
    as_measured = partial(spectral, least_weight=LEAST_MEASURED)
    yield Curve(
        "spectral theory",
        as_measured,
        system,
        {"sample_ratio": np.linspace(0.05, 1.5, 59).tolist()},
        facets=eigenvector,
    )
    yield Curve("leading eigenvector", leading_eigenvector, system, over, seeds, facets=eigenvector)


_FLOOR = 1e-8  # errors below it are drawn there
_FOUND = 1e-6  # error below which weights count as found


def draw_thresholds(axes: Any, comparison: Comparison) -> None:
    """Draw the thresholds against density, and whether drawn problems were solved."""
    for number, (way, data) in enumerate(
        zip(WAYS, comparison.theories(part="thresholds").values())
    ):
        x, y = data["prior.density"], data["sample_ratio_needed"]
        axes.plot(x, y, color=COLOURS[number + 1], linestyle=DASHES[number], label=way)
    for data in comparison.experiments(part="plane").values():
        found = (data["error"] < _FOUND).mean("seed")
        for density in data["prior.density"].values:
            for ratio in data["sample_ratio"].values:
                share = float(found.sel({"prior.density": density, "sample_ratio": ratio}))
                face = str(1 - share)  # a shade of grey
                axes.plot(density, ratio, "o", color=ink(), markerfacecolor=face, zorder=3)
    axes.set(xlabel="density", ylabel=r"sample ratio $\alpha$", xlim=(0, 1), ylim=(0, 1))


@study(
    "compressed-sensing",
    title=(
        "Message passing finds sparse weights in most runs with fewer projections than the l1 norm "
        "needs in theory"
    ),
    source="Donoho, Maleki, Montanari 2009; Krzakala, Mézard, Sausset, Sun, Zdeborová 2012",
    seconds=(40, 900),
    observables=("error",),
    full={
        "input_dim": 4000,
        "max_steps": 3000,
        "seeds": 16,
        "densities": tuple(np.linspace(0.05, 0.95, 19).tolist()),
    },
    columns=2,
    panels=[
        Freehand(draw_thresholds),
        Panel(
            "sample_ratio",
            ("error", lambda data: np.maximum(data["error"], _FLOOR)),
            where={"part": "error"},
            log="y",
            ylim=(_FLOOR / 3, 1),
        ),
    ],
    caption=r"""
        $y = w\cdot x$ without noise; density: share of the weights that are not zero (they are
        Gaussian). Lines: sample ratios above which the weights are determined, found by message
        passing, or found by the smallest l1 norm. Circles: message passing on drawn problems, $d$ =
        {plane_dim}; the darker a circle, the more runs found the weights (black: all, white: none);
        the l1 norm is not measured. Right: density {density}, $d$ = {input_dim}; the error is the
        mean square of a weight's, and errors below $10^{{-8}}$ are drawn there. Message passing has
        at most {max_steps} iterations.
    """,
    explained=(
        "State evolution is the limit of many weights, with a threshold of 0.36 at density 0.2. "
        "With 1000 weights 7 of 15 runs at n/d = 0.37 and one of 12 at 0.38 end without the "
        "weights, and the means of 0.020(6) and 0.004(4) are those of these runs; at 0.34 the "
        "error of 15 runs is 21(19) % too large. Of all 672 runs 20 did not converge within the "
        "iterations; all are near the threshold, where estimates change slowly. The left panel "
        "has 500 weights; other dimensions were not measured."
    ),
    gallery={
        "sample_ratios": (0.1, 0.2, 0.28, 0.32, 0.34, 0.37, 0.38, 0.4, 0.5),
        "max_steps": 3000,
        "seeds": 16,
    },
)
def compressed_sensing(
    densities: tuple[float, ...] = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    density: float = 0.2,
    sample_ratios: tuple[float, ...] = (0.1, 0.2, 0.25, 0.3, 0.33, 0.4, 0.5),
    plane: tuple[float, ...] = (0.1, 0.2, 0.4),
    plane_ratios: tuple[float, ...] = (0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65),
    plane_dim: int = 500,
    input_dim: int = 1000,
    max_steps: int = 300,
    seeds: int = 4,
) -> Iterator[Curve]:
    """max_steps: largest number of iterations of message passing."""
    system = GeneralisedLinear(0.5, RealLabels("linear"), SparsePrior(density), input_dim)
    passing = partial(message_passing, damping=0.3, max_steps=max_steps)
    fine, over = (
        {"sample_ratio": tuple(np.linspace(0.05, max(sample_ratios), 46).tolist())},
        {"prior.density": densities},
    )
    lines = [
        Curve(
            "theory",
            partial(sparse_thresholds, way=way),
            system,
            over,
            facets={"part": "thresholds", "way": way},
        )
        for way in WAYS
    ]
    facets = {"part": "error"}
    yield from lines
    yield Curve("state evolution", state_evolution, system, fine, facets=facets)
    yield Curve(
        "drawn problem",
        passing,
        system,
        {"sample_ratio": sample_ratios},
        seeds,
        facets=facets,
    )
    yield Curve(
        "drawn problem",
        passing,
        system.with_(input_dim=plane_dim),
        {"prior.density": plane, "sample_ratio": plane_ratios},
        seeds,
        facets={"part": "plane"},
    )


# ------------------------------------------------------------------------------------------------
# The phases of compressed sensing without noise.


_PHASES = phases_panel(
    "prior.density",
    "sample_ratio",
    order="error",
    branches=("found by message passing", "determined"),
)


def draw_errors_on_phases(axes: Any, comparison: Comparison) -> None:
    """Draws the phases, and the measured errors as circles in the colours of the theory."""
    _PHASES.function(axes, comparison)
    colours = axes.collections[0]
    for runs in comparison.experiments().values():
        error = runs["error"].where(runs["status"] == 1).mean("seed")
        density, ratio = np.meshgrid(error["prior.density"], error["sample_ratio"], indexing="ij")
        values = error.transpose("prior.density", "sample_ratio").values.ravel()
        # the plane is translucent: circles of the same error have the colour that is seen there
        share, behind = colours.get_alpha(), np.asarray(axes.get_facecolor())
        seen = share * colours.get_cmap()(colours.norm(values)) + (1 - share) * behind
        look = {"color": seen, "edgecolors": ink(), "zorder": 4}
        axes.scatter(density, ratio, label=runs.attrs["label"], **look)


@study(
    "compressed-sensing-plane",
    title="Compressed sensing: message passing finds sparse weights with fewer samples than "
    "dimensions",
    source="Krzakala, Mézard, Sausset, Sun, Zdeborová 2012",
    seconds=(90, 900),
    observables=("error",),
    gallery={"resolution": 32, "seeds": 16, "densities": (0.1, 0.2, 0.3, 0.4, 0.5)},
    full={"resolution": 64, "seeds": 16, "input_dim": 4000},
    explained=(
        "Of 640 runs 2 did not converge, both next to the black line: one of 16 at each of two "
        "points. All 20 errors that theory does not put to zero agree with it; where it does, "
        "all runs that converged have errors below 1e-9."
    ),
    panels=[Freehand(draw_errors_on_phases)],
    caption=r"""
        Weights of which a share $\rho$ is Gaussian and the others are zero, $n$ projections $w\cdot
        x$ without noise. Colour: error $\varepsilon$, the mean squared error of a weight (at most
        $\rho$), of message passing after any number of steps in theory; circles: mean error of the
        runs that converged, of {seeds} with $d$ = {input_dim}. Above the black line message passing
        finds the weights. Above the orange line, $\alpha = \rho$, the weights are determined in
        theory, and message passing that starts at the weights stays there; this is not measured.
    """,
)
def compressed_sensing_plane(
    resolution: int = 16,
    densities: tuple[float, ...] = (0.1, 0.3, 0.5),
    sample_ratios: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.55, 0.65, 0.75, 0.85),
    input_dim: int = 1000,
    seeds: int = 4,
) -> Iterator[Curve]:
    over = {"prior.density": (0.02, 0.6), "sample_ratio": (0.05, 0.9)}
    system = GeneralisedLinear(0.5, RealLabels("linear"), SparsePrior(0.2), input_dim)
    options: dict[str, Any] = {"resolution": resolution, "accuracy": 1e-3}
    yield diagram_curve(amp_fixed_point, system, over, order="error", **options)
    measured = {"prior.density": densities, "sample_ratio": sample_ratios}
    yield Curve("state evolution", state_evolution, system, measured)
    passing = partial(message_passing, damping=0.3, max_steps=2000)
    yield Curve("drawn problem", passing, system, measured, seeds)


# ------------------------------------------------------------------------------------------------
# The named figure of rotationally invariant measurements.


@study(
    "measurement-conditioning",
    title="VAMP follows its state evolution when ill-conditioned matrices measure sparse weights",
    source="Rangan, Schniter, Fletcher 2019",
    seconds=(30, 600),
    observables=("error",),
    gallery={"conditions": (1.0, 2.0, 4.0, 8.0, 15.0, 30.0), "seeds": 48},
    full={"input_dim": 4000, "seeds": 16, "conditions": tuple(np.geomspace(1, 300, 9).tolist())},
    panels=[Panel("condition", "error", by="sample_ratio", log="xy")],
    caption=r"""
        $y = Xw + $ noise of variance {noise}, weights of density {density}, $d$ = {input_dim},
        $\alpha = n/d$ for $n$ measurements. The singular values of $X$ are evenly spaced in their
        logarithm. $\varepsilon$: mean squared error of a weight. Open marks: the one run at either
        $\alpha$ that did not converge, at the condition number 30.
    """,
)
def measurement_conditioning(
    conditions: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0),
    sample_ratios: tuple[float, ...] = (0.6, 1.5),
    noise: float = 0.01,
    density: float = 0.2,
    input_dim: int = 600,
    seeds: int = 8,
) -> Iterator[Curve]:
    fine = {"condition": tuple(np.geomspace(1.0, max(conditions), 40).tolist())}
    for ratio in sample_ratios:
        system, facets = (
            InvariantDesign(ratio, 1.0, noise, SparsePrior(density), input_dim),
            {"sample_ratio": ratio},
        )
        yield Curve("state evolution", vector_state_evolution, system, fine, facets=facets)
        yield Curve(
            "VAMP", vector_message_passing, system, {"condition": conditions}, seeds, facets=facets
        )
