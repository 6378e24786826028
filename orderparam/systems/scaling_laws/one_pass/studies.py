"""Studies of one-pass SGD with power-law random features."""

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand, Panel, horizontal
from orderparam.plotting.measured import dots
from orderparam.plotting.style import COLOURS, GREY, ink
from orderparam.systems.scaling_laws.one_pass.compute_optimal import (
    ComputeBudget,
    ComputeFrontier,
    compute_exponents,
    compute_optimal,
    frontier_exponents,
    measured_optimum,
)
from orderparam.systems.scaling_laws.one_pass.experiment import (
    Schedule,
    ScheduledSGD,
    drawn_features,
    one_pass_sgd,
    scheduled_mean,
    scheduled_sgd,
)
from orderparam.systems.scaling_laws.one_pass.frontier_figure import draw_risks, draw_takeovers
from orderparam.systems.scaling_laws.one_pass.model import PowerLawFeatures
from orderparam.systems.scaling_laws.one_pass.theory import deterministic_risk

SOURCE = "Paquette, Paquette, Xiao, Pennington 2024 (arXiv:2405.15074)"

_PHASES = ("Ia", "II", "III", "Ib", "IVa", "IVb", "Ic")

# vertical positions of the names of narrow phases
_HEIGHTS = {"IVb": 0.7, "IVa": 1.15}

# phase -> (alpha, beta) in it
PLACES = {
    "Ia": (1.0, 0.3),
    "II": (0.8, 0.65),
    "III": (0.8, 1.2),
    "Ib": (0.4, 0.3),
    "IVa": (0.4, 1.0),
}


def _features(
    place: tuple[float, float], width: int, share: float, horizon: float
) -> PowerLawFeatures:
    """Features of v = 4 d inputs with the learning rate `share` / sum of the eigenvalues, at every
    width.
    """
    alpha, beta = place
    power = float(np.sum(np.arange(1.0, 4 * width + 1) ** (-2 * alpha)))
    numbers: dict[str, Any] = {
        "width": width,
        "learning_rate": share / power,
        "horizon": horizon,
        "records": 19,
    }
    return PowerLawFeatures(alpha, beta, 4 * width, **numbers)


_AXES = {name: rf"phase {name}: $\alpha={a:g}$, $\beta={b:g}$" for name, (a, b) in PLACES.items()}


def _draw_boundaries(axes: Any) -> list[tuple[str, float, float]]:
    """Draw the boundaries of the phases in the plane (alpha, beta); return the names of the phases
    and the places of the names."""
    alpha, beta = np.meshgrid(np.linspace(0.02, 1.2, 119), np.linspace(0.01, 1.4, 140))
    phase = np.full(alpha.shape, -1)
    exists = 2 * (alpha + beta) > 1
    phase[exists] = [
        _PHASES.index(compute_exponents(a, b).phase)
        for a, b in zip(alpha[exists], beta[exists], strict=True)
    ]
    names = []
    for index, name in enumerate(_PHASES):
        inside = phase == index
        axes.contour(alpha, beta, inside.astype(float), [0.5], colors=[ink()], linewidths=0.6)
        names.append((name, alpha[inside].mean(), _HEIGHTS.get(name, beta[inside].mean())))
    axes.set(xlabel=r"$\alpha$", ylabel=r"$\beta$", xlim=(0, 1.2), ylim=(0, 1.4))
    return names


def _draw_distance(name: str, axes: Any, comparison: Comparison) -> None:
    """Draw, over the plane, the relative difference of the exponent at the given compute from its
    limit."""
    field = name.removesuffix("_exponent")
    data = list(comparison.theories().values())
    alphas = np.unique(np.concatenate([one["spectral_exponent"].values for one in data]))
    betas = np.unique(np.concatenate([one["target_exponent"].values for one in data]))
    distance = np.full((len(betas), len(alphas)), np.nan)
    for one in data:
        for (i, b), a in itertools.product(enumerate(betas), one["spectral_exponent"].values):
            if b in one["target_exponent"].values:
                found = float(one[name].sel(spectral_exponent=a, target_exponent=b))
                distance[i, np.searchsorted(alphas, a)] = (
                    found / getattr(compute_exponents(a, b), field) - 1
                )
    largest = np.nanmax(np.abs(distance))
    edges = _edges(alphas, (0.25, 1 - np.sqrt(0.5), 0.5)), _edges(betas, (0.5,))
    tiles = axes.pcolormesh(*edges, distance, cmap="RdBu_r", vmin=-largest, vmax=largest)
    for phase, alpha, beta in _draw_boundaries(axes):
        turned = 90 if phase == "IVb" else 0
        axes.text(alpha, beta, phase, ha="center", va="center", color=ink(), rotation=turned)
    axes.figure.colorbar(tiles, ax=axes, label="exponent / its limit, minus 1")


def _edges(centres: np.ndarray, boundaries: tuple[float, ...]) -> np.ndarray:
    """The edges of the tiles around the centres. An edge is half way between two centres, or at a
    boundary of phases if one lies between them."""
    inner = (centres[1:] + centres[:-1]) / 2
    for boundary in boundaries:
        between = (centres[:-1] < boundary) & (boundary < centres[1:])
        inner[between] = boundary
    ends = (1.5 * centres[:1] - 0.5 * centres[1:2], 1.5 * centres[-1:] - 0.5 * centres[-2:-1])
    return np.concatenate([ends[0], inner, ends[1]])


@study(
    "sgd-compute-frontier",
    title=(
        "Random features and one pass of SGD: each of four widths is the best one at some compute, "
        "and theory predicts roughly at which"
    ),
    source=SOURCE,
    panels=[
        *(Freehand(partial(draw_risks, phase), _AXES[phase]) for phase in PLACES),
        Freehand(draw_takeovers, "takeovers"),
    ],
    caption=(
        r"$N$ random features of $v = 4N$ inputs; eigenvalues $\lambda_j = j^{{-2\alpha}}$, target "
        r"coefficients $b_j = j^{{-\beta}}$; $t$ steps of SGD with batches of $B = 1$ sample and "
        r"learning rate {share} / $\sum\lambda$. Lines: theory of large width, without "
        r"random numbers; grey: its lowest risk over {between} widths. Circles: drawn features, "
        r"exact mean over samples. Squares: SGD, one stream for each draw, $N$ = {sgd_width}. "
        r"Marks are means over {seeds} draws with their standard errors. "
        r"Last: the compute at which one width takes over from the next, of drawn features over "
        r"that in theory; the colour is that of the larger width. Phases have the names of the "
        r"source."
    ),
    observables=("risk",),
    seconds=(60, 1800),
    gallery={"seeds": 32},
    full={"widths": (10, 32, 100, 320, 1000), "horizon": 1e6, "seeds": 40},
    columns=3,
)
def sgd_compute_frontier(
    widths: tuple[int, ...] = (10, 32, 100, 320),
    between: int = 13,
    sgd_width: int = 32,
    share: float = 0.5,
    horizon: float = 3e4,
    seeds: int = 12,
) -> Iterator[Curve]:
    fine = {round(width) for width in np.geomspace(min(widths), max(widths), between)}
    for phase, place in PLACES.items():
        for width in sorted(fine | set(widths)):
            system, facets, over = (
                _features(place, width, share, horizon),
                {"phase": phase, "width": width},
                {"width": (width,)},
            )
            yield Curve("large width", deterministic_risk, system, over, facets=facets)
            if width in widths:
                yield Curve("drawn features", drawn_features, system, over, seeds, facets=facets)
            if width == sgd_width:
                yield Curve("SGD", one_pass_sgd, system, over, seeds, facets=facets)


@study(
    "sgd-compute-exponents",
    title=(
        "Best widths at small compute are near the theory of large width; in theory exponents "
        "reach their limits slowly"
    ),
    source=SOURCE,
    panels=lambda p: [
        Panel("compute", "width", facet="phase", log="xy", where={"part": "optimum"}, text=_AXES),
        Panel(
            "compute",
            "risk_exponent",
            facet="phase",
            log="x",
            where={"part": "slope"},
            text=_AXES,
            reference=[horizontal(lambda phase: compute_exponents(*PLACES[phase]).risk)],
        ),
    ],
    caption=r"""
        One pass of SGD on $N$ random features; eigenvalues $j^{{-2\alpha}}$, target $j^{{-\beta}}$.
        Compute $f$: width times samples; $R$: lowest risk. Learning rate {learning_rate}, batches
        of one sample. Lines: infinitely many inputs, large width. Marks: minimum of a cubic fitted
        to five widths, each the mean of {draws} draws of features of $8N$ inputs. Below, theory
        alone: $-d\ln R/d\ln f$; dotted: its limit, from the balance of terms, which differ between
        phases.
    """,
    observables=("width", "risk"),
    explained=(
        "Drawn features have 8 inputs for each feature, the theory has infinitely many. "
        "Control in phase III: the same cubic fitted to the theory with 8 inputs "
        "for each feature gives best widths 10 and 8 % and risks 5 and 4 % below those of "
        "infinitely many inputs; with 128 inputs for each feature best widths are 4 and 3 %, risks "
        "0.5 and 0.3 % below (with infinitely many inputs the cubic alone puts widths 3 and 1.5 % "
        "too low). Measured best widths are 9(3) and 9(3) %, measured risks 3(1) and 4(1) % "
        "below."
    ),
    seconds=(60, 900),
    full={"computes": (1e4, 1e5, 1e6), "draws": 20, "seeds": 8},
)
def sgd_compute_exponents(
    computes: tuple[float, ...] = (3e3, 1.2e4),
    learning_rate: float = 0.3,
    draws: int = 6,
    seeds: int = 4,
) -> Iterator[Curve]:
    for phase, (alpha, beta) in PLACES.items():
        if alpha > 0.5:
            system, facets = (
                ComputeBudget(1e4, alpha, beta, learning_rate),
                {"phase": phase, "part": "optimum"},
            )
            over = {"compute": tuple(np.geomspace(3e3, 1e7, 6).tolist())}
            far = {"compute": tuple(np.geomspace(1e4, 1e10, 9).tolist())}
            yield Curve("large width", compute_optimal, system, over, facets=facets)
            yield Curve(
                "drawn features",
                partial(measured_optimum, draws=draws),
                system,
                {"compute": computes},
                seeds,
                facets=facets,
            )
            yield Curve(
                "large width", compute_optimal, system, far, facets=facets | {"part": "slope"}
            )


@study(
    "sgd-compute-plane",
    title=(
        "In theory the compute-optimal exponents at a compute of 1e8 are near their limits if "
        "alpha > 1/2, and up to 60 % away from them if it is smaller"
    ),
    source=SOURCE,
    panels=[
        Freehand(partial(_draw_distance, "risk_exponent"), "lowest risk"),
        Freehand(partial(_draw_distance, "width_exponent"), "best width"),
    ],
    caption=r"""
        One pass of SGD on $N$ random features of $v = 4N$ inputs with eigenvalues $j^{{-2\alpha}}$,
        target $j^{{-\beta}}$, batches of one sample, learning rate {share} / $\sum\lambda$. $f$:
        compute, $N$ times the number of samples; $R^*$: lowest risk at this compute, $N^*$: its
        width. Theory of large width alone, without random numbers, which the study
        sgd-compute-frontier compares with SGD in five of the phases. Exponents: $-d\ln R^*/d\ln f$
        and $d\ln N^*/d\ln f$ over the decade around $f$ = {compute:g}; limits: from the balance of
        terms of the risk, which differ between the phases Ia to IVb. The two panels have different
        scales. White: no power law.
    """,
    observables=(),
    seconds=(60, 300),
    gallery={
        "alphas": (0.1, 0.15, 0.2, 0.27, 0.32, 0.37, 0.42, 0.47, 0.55, 0.65, 0.8, 0.95, 1.1),
        "betas": (0.1, 0.2, 0.3, 0.4, 0.46, 0.55, 0.65, 0.8, 0.95, 1.1, 1.3),
    },
    full={
        "alphas": tuple(np.arange(0.05, 1.2, 0.05).round(2).tolist()),
        "betas": tuple(np.arange(0.05, 1.4, 0.1).round(2).tolist()),
    },
    columns=2,
)
def sgd_compute_plane(
    alphas: tuple[float, ...] = (0.1, 0.2, 0.28, 0.35, 0.45, 0.6, 0.75, 0.9, 1.1),
    betas: tuple[float, ...] = (0.1, 0.3, 0.45, 0.6, 0.8, 1.0, 1.3),
    compute: float = 1e8,
    share: float = 0.5,
) -> Iterator[Curve]:
    for beta in betas:
        over = {
            "spectral_exponent": tuple(a for a in alphas if 2 * (a + beta) > 1.2),
            "target_exponent": (beta,),
        }
        system = ComputeFrontier(compute, over["spectral_exponent"][-1], beta, share=share)
        yield Curve(
            "large width", frontier_exponents, system, over, facets={"target_exponent": beta}
        )


# arm -> momentum, schedule; momentum multiplies the total effect of a gradient by 1/(1 - mu)
ARMS: dict[str, tuple[float, Schedule]] = {
    "constant rate": (0.0, "constant"),
    "momentum 0.9": (0.9, "constant"),
    "1/sqrt(t)": (0.0, "power"),
    "cosine": (0.0, "cosine"),
}
_ARMS = {"1/sqrt(t)": r"$\propto t^{-1/2}$", "cosine": "cosine to 0"}


def _draw_ratio(phase: str, axes: Any, comparison: Comparison) -> None:
    """Draw the risk, averaged exactly over samples, divided by the risk of a constant learning rate
    with the same features."""
    runs = {
        data.attrs["facets"]["arm"]: data
        for data in comparison.experiments(phase=phase).values()
        if data.attrs["label"] == "exact for drawn features"
    }
    constant = runs["constant rate"]["risk"].squeeze(drop=True)
    steps = runs["constant rate"]["step"].isel(seed=0).squeeze(drop=True)
    for number, (arm, data) in enumerate(runs.items()):
        if arm != "constant rate":
            ratio = data["risk"].squeeze(drop=True) / constant
            dots(axes, steps, ratio, number, linestyle="-", linewidth=0.6)
            place = (0.97, 1.0 - 0.09 * number)
            look = {"color": COLOURS[number], "ha": "right", "va": "top"}
            axes.annotate(_ARMS.get(arm, arm), place, xycoords="axes fraction", **look)
    axes.axhline(1.0, color=GREY, linewidth=0.8, linestyle=":")
    axes.set(xscale="log", xlabel="steps $t$", ylabel="$R$ over that of a constant rate")
    axes.set_title(_AXES[phase])


@study(
    "sgd-schedules",
    title=(
        "From 250 steps on momentum 0.9 equals a tenfold learning rate within 8 %; decaying rates "
        "end with 23 to 34 % less risk"
    ),
    source=SOURCE,
    panels=[
        Panel(
            ("steps $t$", lambda data: data["step"]),
            ("risk $R$", lambda data: data["risk"]),
            by="arm",
            facet="phase",
            where={"arm": ("constant rate", "momentum 0.9")},
            log="xy",
            text=_AXES,
        ),
        *(Freehand(partial(_draw_ratio, phase)) for phase in ("Ia", "III")),
    ],
    columns=2,
    caption=r"""
        $j$-th eigenvalue $\lambda_j = j^{{-2\alpha}}$ and coefficient of the target $j^{{-\beta}}$;
        Ia and III are phases of the study sgd-compute-plane. {width} features of {inputs} inputs,
        learning rate {share}/$\sum\lambda$ (with momentum: a tenth of it). Line: constant learning
        rate, large width. Exact: mean over the samples for each draw; SGD: one stream for each
        draw. Below: the mean over samples divided by that of a constant rate with the same
        features.
    """,
    observables=("risk",),
    seconds=(40, 900),
    gallery={"seeds": 40},
    full={"width": 200, "inputs": 800, "horizon": 1e6, "seeds": 40},
)
def sgd_schedules(
    width: int = 50, inputs: int = 400, share: float = 0.5, horizon: float = 2e4, seeds: int = 8
) -> Iterator[Curve]:
    for phase in ("Ia", "III"):
        alpha, beta = PLACES[phase]
        rate = share / float(np.sum(np.arange(1.0, inputs + 1) ** (-2 * alpha)))
        numbers: dict[str, Any] = {"width": width, "horizon": horizon, "records": 19}
        features = PowerLawFeatures(alpha, beta, inputs, learning_rate=rate, **numbers)
        one = {"features.width": (width,)}
        for arm, (momentum, schedule) in ARMS.items():
            slower = features.with_(learning_rate=rate * (1 - momentum))
            system = ScheduledSGD(slower, momentum=momentum, schedule=schedule)
            facets = {"phase": phase, "arm": arm}
            if arm == "constant rate":
                yield Curve(
                    "large width", deterministic_risk, features, {"width": (width,)}, facets=facets
                )
            yield Curve(
                "exact for drawn features", scheduled_mean, system, one, seeds, facets=facets
            )
            yield Curve("SGD", scheduled_sgd, system, one, seeds, facets=facets)
