"""The named figures of one-pass SGD with power-law random features."""

from functools import partial
from typing import Any

import numpy as np

from orderparam.core.study import Curve, study
from orderparam.plotting import Freehand, Panel, horizontal, slope
from orderparam.plotting.style import ink
from orderparam.systems.scaling_laws.one_pass.compute_optimal import (
    ComputeBudget,
    compute_exponents,
    compute_optimal,
    measured_optimum,
)
from orderparam.systems.scaling_laws.one_pass.experiment import drawn_features, one_pass_sgd
from orderparam.systems.scaling_laws.one_pass.model import PowerLawFeatures
from orderparam.systems.scaling_laws.one_pass.theory import deterministic_risk

SOURCE = "Paquette, Paquette, Xiao, Pennington 2024 (arXiv:2405.15074)"

_PHASES = ("Ia", "II", "III", "Ib", "IVa", "IVb", "Ic")

# phase -> (alpha, beta) in it
PLACES = {"Ia": (1.0, 0.3), "II": (0.8, 0.65), "III": (0.8, 1.2), "Ib": (0.4, 0.3), "IVa": (0.4, 1.0)}


def _features(place: tuple[float, float], width: int, share: float, horizon: float) -> PowerLawFeatures:
    """v = 4 d inputs, and a learning rate that is `share` of the reciprocal power of the inputs, whatever the width."""
    alpha, beta = place
    power = float(np.sum(np.arange(1.0, 4 * width + 1) ** (-2 * alpha)))
    numbers: dict[str, Any] = {"width": width, "learning_rate": share / power, "horizon": horizon, "records": 19}
    return PowerLawFeatures(alpha, beta, 4 * width, **numbers)


_AXES = {name: rf"phase {name}: $\alpha={a:g}$, $\beta={b:g}$" for name, (a, b) in PLACES.items()}


def _draw_phases(axes: Any, _: Any) -> None:
    """Boundaries of the phases in (alpha, beta), and the places of the other panels."""
    alpha, beta = np.meshgrid(np.linspace(0.02, 1.2, 119), np.linspace(0.01, 1.4, 140))
    phase = np.full(alpha.shape, -1)
    exists = 2 * (alpha + beta) > 1
    phase[exists] = [_PHASES.index(compute_exponents(a, b).phase) for a, b in zip(alpha[exists], beta[exists], strict=True)]
    for index, name in enumerate(_PHASES):
        inside = phase == index
        axes.contour(alpha, beta, inside.astype(float), [0.5], colors=[ink()], linewidths=0.6)
        axes.text(alpha[inside].mean(), beta[inside].mean(), name, ha="center", va="center", color=ink())
    for place in PLACES.values():
        axes.plot(*place, "o", color=ink(), markersize=3)
    axes.set(xlabel=r"$\alpha$", ylabel=r"$\beta$", xlim=(0, 1.2), ylim=(0, 1.4))


@study(
    "sgd-compute-frontier",
    title="Random features and one pass of SGD: the risk at a given compute, and the width that is best for it",
    source=SOURCE,
    panels=lambda p: [
        Panel(
            ("compute $f = dBt$", lambda data: data["compute"]),
            ("risk $R$", lambda data: data["risk"]),
            facet="phase",
            by="width",
            log="xy",
            reference=[slope(lambda phase: -compute_exponents(*PLACES[phase]).risk, "optimum")],
            text=_AXES,
        ),
        Freehand(_draw_phases, "the phases"),
    ],
    caption=r"""
        $v = 4d$ inputs, $\lambda_j = j^{{-2\alpha}}$, $b_j = j^{{-\beta}}$, batches of one sample, learning rate
        {share} / $\sum\lambda$. Lines: large width, nothing drawn. Drawn features: mean over the samples exact; SGD: one
        stream for each draw, $d$ = {sgd_width}. Dotted: slope of the lower envelope at large compute.
    """,
    observables=("risk",),
    seconds=(60, 1800),
    full={"widths": (10, 32, 100, 320, 1000), "horizon": 1e6, "seeds": 40},
    columns=3,
)
def sgd_compute_frontier(
    widths: tuple[int, ...] = (10, 32, 100, 320),
    sgd_width: int = 32,
    share: float = 0.5,
    horizon: float = 3e4,
    seeds: int = 12,
) -> list[Curve]:
    curves = []
    for phase, place in PLACES.items():
        for width in widths:
            system, facets, over = _features(place, width, share, horizon), {"phase": phase, "width": width}, {"width": (width,)}
            curves += [
                Curve("large width", deterministic_risk, system, over, facets=facets),
                Curve("drawn features", drawn_features, system, over, seeds, facets=facets),
            ]
            if width == sgd_width:
                curves.append(Curve("SGD", one_pass_sgd, system, over, seeds, facets=facets))
    return curves


@study(
    "sgd-compute-exponents",
    title="The best width for a given compute, and how slowly its exponents are reached",
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
            reference=[horizontal(lambda phase: compute_exponents(*PLACES[phase]).risk, "balance of terms")],
        ),
    ],
    caption=r"""
        Learning rate {learning_rate}, batches of one sample. Lines: infinitely many inputs, large width. Marks: minimum of a
        cubic through five widths, each the mean of {draws} draws of features of $8d$ inputs. Below: $-d\ln R/d\ln f$ of the
        lowest risk.
    """,
    observables=("width", "risk"),
    seconds=(60, 900),
    full={"computes": (1e4, 1e5, 1e6), "draws": 20, "seeds": 8},
)
def sgd_compute_exponents(
    computes: tuple[float, ...] = (1e4, 4e4), learning_rate: float = 0.3, draws: int = 4, seeds: int = 4
) -> list[Curve]:
    curves = []
    for phase, (alpha, beta) in PLACES.items():
        if alpha > 0.5:
            system, facets = ComputeBudget(1e4, alpha, beta, learning_rate), {"phase": phase, "part": "optimum"}
            over = {"compute": tuple(np.geomspace(1e4, 1e7, 7).tolist())}
            far = {"compute": tuple(np.geomspace(1e4, 1e10, 13).tolist())}
            curves += [
                Curve("large width", compute_optimal, system, over, facets=facets),
                Curve(
                    "drawn features", partial(measured_optimum, draws=draws), system, {"compute": computes}, seeds, facets=facets
                ),
                Curve("large width", compute_optimal, system, far, facets=facets | {"part": "slope"}),
            ]
    return curves
