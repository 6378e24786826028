"""The figures of committee machines: specialisation of the hidden units, and weak recovery of a
parity of two units by two algorithms.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand, Panel, slope, vertical
from orderparam.plotting.style import COLOURS, GREY
from orderparam.systems.committee.experiment import message_passing
from orderparam.systems.committee.model import Committee
from orderparam.systems.committee.parity import leading_eigenvectors, spectral
from orderparam.systems.committee.theory import state_evolution

APART = (2.0523828, 1.5893227)  # specialisation of two units with Gaussian and binary weights
# Two units with binary weights: sample ratio at which the specialised state ends; beyond it message
# passing recovers the weights exactly.
BINARY_END = 1.9770624
WEAK = 2.4674011  # pi^2/4, weak recovery from labels sign(z1 z2)
ACCURACY = 1e-6  # accuracy of the drawn curves


def draw_runs(axes: Any, comparison: Comparison) -> None:
    """Draw the difference of the two overlaps of every run; runs that did not converge are open."""
    for number, weights in enumerate(("gaussian", "binary")):
        colour: Any = {"color": COLOURS[number]}
        (theory,) = comparison.theories(weights=weights).values()
        difference = theory["overlap"] - theory["cross_overlap"]
        axes.plot(theory["sample_ratio"], difference, **colour)
        (data,) = comparison.experiments(weights=weights).values()
        runs = (data["overlap"] - data["cross_overlap"]).transpose("sample_ratio", "seed").values
        converged = data["converged"].transpose("sample_ratio", "seed").values.astype(bool)
        aside = np.linspace(0.01, 0.06, runs.shape[1]) * (1 if number else -1)
        at = data["sample_ratio"].values[:, None] + aside
        dot: Any = {"marker": "os"[number], "markersize": 2.5, "linestyle": ""}
        axes.plot(at[converged], runs[converged], **colour, **dot)
        axes.plot(at[~converged], runs[~converged], color=GREY, mfc="none", **dot)
    for place in APART:
        axes.axvline(place, color=GREY, linewidth=0.8, linestyle=":")
    axes.set(xlabel=r"examples per dimension $\alpha = n/d$", ylabel="$Q_{11} - Q_{12}$")


@study(
    "committee-specialisation",
    title=(
        "A committee of two units specialises near where the theory predicts; between 7 and 22 % "
        "above, message passing reaches no fixed point in 1500 iterations in up to half of its "
        "runs"
    ),
    source="Aubin, Maillard, Barbier, Krzakala, Macris, Zdeborová 2018",
    seconds=(20, 1800),
    observables=("overlap", "cross_overlap", "classification_error"),
    explained=(
        "The dimension is finite. Units of student and teacher are paired such that overlaps are "
        "largest, which raises the overlap, and near the transition chance decides whether a run "
        "specialises: some runs at 1.7 and 1.9 with Gaussian weights are specialised below the "
        "transition of large dimensions. Runs that did not converge have specialised less, so that "
        "leaving them out raises the specialisation: at n/d = 2.5 their cross overlap is 0.37, "
        "that of the others 0.30. Control: with binary weights at n/d = 1.45 the overlap is "
        "5.6(17), 3.0(10) and 1.2(9) % above the theory at d = 250, 500 and 1000; with Gaussian "
        "weights at n/d = 3 it is 8.5(22) % below the theory at d = 500 and 0.4(12) % below it at "
        "d = 2000."
    ),
    gallery={
        "runs": (1.0, 1.45, 1.7, 1.9, 2.2, 2.5, 3.0),
        "input_dim": 1000,
        "damping": 0.5,
        "max_steps": 1500,
        "seeds": 16,
    },
    full={
        "input_dim": 2000,
        "damping": 0.5,
        "max_steps": 1500,
        "seeds": 16,
        "sample_ratios": tuple(np.linspace(0.5, 4.0, 141).tolist()),
        "runs": (1.0, 1.45, 1.7, 1.9, 2.2, 2.5, 3.0, 3.5),
    },
    columns=2,
    panels=[
        *(
            Panel(
                "sample_ratio",
                y,
                by="weights",
                reference=[vertical(x, "") for x in APART],
                xlabel=r"examples per dimension $\alpha = n/d$",
                text={"gaussian": "Gaussian weights", "binary": "binary weights"},
            )
            for y in ("overlap", "cross_overlap", "classification_error")
        ),
        Freehand(draw_runs, "runs one by one", one_by_one=True),
    ],
    caption=r"""
        Two hidden units with the fields $z_1$, $z_2$; labels $y =
        \mathrm{{sign}}(\mathrm{{sign}}\,z_1 + \mathrm{{sign}}\,z_2)$ with the values $-1, 0, 1$;
        $d$ = {input_dim}. Overlaps of the weights of a unit with their own estimate ($Q_{{11}}$)
        and with that of the other unit ($Q_{{12}}$). Dotted: specialisation at $\alpha$ = 2.0524
        (Gaussian weights) and 1.5893 (binary weights). In theory binary weights are recovered
        exactly from $\alpha$ = 1.9771 on. Message passing has at most {max_steps} iterations, of
        which the first quarter keeps {damping} of the state before. $f$: the label that the
        estimate gives. Bottom right: the difference of the two overlaps in every run; those that
        did not converge are grey and open, and are in no mean. They have specialised less, so that
        filled means near the transitions show too much specialisation.
    """,
    metastable=(
        "Close above the transition a run of message passing wanders near the state without "
        "specialisation and reaches no fixed point: 6 and 8 of 16 runs at n/d = 2.2 and 2.5 with "
        "Gaussian weights, 4 and 2 at 1.7 and 1.9 with binary weights. One of them was run for "
        "6000 iterations, with and without damping, and did not converge. The share does not fall "
        "from 500 to 1000 inputs (21 and 20 of 176). The figure shows all runs."
    ),
)
def committee_specialisation(
    sample_ratios: tuple[float, ...] = tuple(np.linspace(0.5, 3.5, 61).tolist()),
    runs: tuple[float, ...] = (1.0, 1.7, 3.0),
    input_dim: int = 300,
    damping: float = 0.0,
    max_steps: int = 500,
    seeds: int = 4,
) -> Iterator[Curve]:
    """damping, max_steps: of the iterations of message passing."""
    passing = partial(message_passing, damping=damping, max_steps=max_steps)
    for weights, last in (("gaussian", np.inf), ("binary", BINARY_END)):
        system, facets = Committee(1.0, 2, "majority", weights, input_dim), {"weights": weights}
        fine, few = (
            {"sample_ratio": tuple(x for x in ratios if x < last)}
            for ratios in (sample_ratios, runs)
        )
        yield Curve(
            "state evolution",
            partial(state_evolution, tolerance=ACCURACY),
            system,
            fine,
            facets=facets,
        )
        yield Curve("message passing", passing, system, few, seeds, facets=facets)


@study(
    "parity-weak-recovery",
    title=(
        r"Message passing and a spectral method recover a parity from more than $\pi^2/4$ samples "
        r"per dimension; with fewer, overlaps fall with the dimension"
    ),
    source="Troiani, Dandi, Defilippis, Zdeborová, Loureiro, Krzakala 2024; Mondelli, Montanari "
    "2018",
    seconds=(60, 1200),
    observables=("overlap",),
    explained=(
        "The theory is that of infinite dimension. Control: below the threshold, at alpha = 2, the "
        "overlap falls with the dimension, for eigenvectors from 0.10(2) in d = 200 to 0.029(6) in "
        "d = 1600, for message passing from 0.033(7) to 0.007(2). Close above the threshold, at "
        "alpha = 2.7, most runs of message passing do not converge within 2000 iterations, and "
        "these have smaller overlaps than the others."
    ),
    gallery={
        "sample_ratios": tuple(np.linspace(1.5, 5.0, 36).tolist()),
        "runs": (1.5, 2.0, 2.25, 2.7, 3.0, 3.5, 4.0, 5.0),
        "input_dim": 700,
        "dims": (200, 400, 800, 1600),
        "max_steps": 2000,
        "seeds": 16,
    },
    full={
        "input_dim": 3000,
        "dims": (400, 800, 1600, 3200),
        "max_steps": 4000,
        "seeds": 16,
        "sample_ratios": tuple(np.linspace(1.0, 6.0, 41).tolist()),
        "runs": (1.5, 2.0, 2.4, 2.8, 3.2, 4.0, 5.0, 6.0),
    },
    panels=[
        Panel(
            "sample_ratio",
            "overlap",
            by="method",
            where={"part": "samples"},
            reference=[vertical(WEAK, r"$\pi^2/4$")],
            ylabel="overlap $Q_{11}$",
        ),
        Panel(
            "input_dim",
            "overlap",
            by="method",
            where={"part": "dimension"},
            log="xy",
            ylabel="overlap $Q_{11}$",
            title=r"$\alpha$ = 2",
            reference=[slope(-0.5, "$d^{-1/2}$")],
        ),
    ],
    caption=r"""
        Labels $y = \mathrm{{sign}}(z_1 z_2)$ of two hidden units with the fields $z_1$, $z_2$;
        Gaussian weights, $d$ = {input_dim} in the first panel. $Q_{{11}}$: overlap of the estimates
        with the true weights, up to signs and order; for the spectral method the overlap of the
        best estimate that the leading eigenvectors allow. Below $\alpha = n/d = \pi^2/4$ = 2.467
        both overlaps vanish for large $d$; dotted on the right: $d^{{-1/2}}$, for orientation.
    """,
)
def parity_weak_recovery(
    sample_ratios: tuple[float, ...] = (2.0, 2.4, 2.55, 2.7, 3.0, 3.5, 4.0, 5.0),
    runs: tuple[float, ...] = (2.0, 3.0, 4.0, 5.0),
    input_dim: int = 500,
    dims: tuple[int, ...] = (100, 200, 400),
    max_steps: int = 500,
    seeds: int = 4,
) -> Iterator[Curve]:
    system = Committee(3.0, 2, "parity", "gaussian", input_dim)
    fine, few = {"sample_ratio": sample_ratios}, {"sample_ratio": runs}
    finest = {"sample_ratio": np.linspace(1.5, max(sample_ratios), 61).tolist()}
    theories: dict[str, tuple[Callable[..., Any], Mapping[str, Any]]] = {
        "message passing": (partial(state_evolution, tolerance=ACCURACY), fine),
        "eigenvectors": (spectral, finest),
    }
    methods: dict[str, Callable[..., Any]] = {
        "message passing": partial(message_passing, max_steps=max_steps),
        "eigenvectors": leading_eigenvectors,
    }
    below = system.with_(sample_ratio=2.0)
    for name, method in methods.items():
        theory, ratios = theories[name]
        samples = {"method": name, "part": "samples"}
        yield Curve("theory", theory, system, ratios, facets=samples)
        yield Curve("drawn problem", method, system, few, seeds, facets=samples)
        yield Curve(
            "drawn problem",
            method,
            below,
            {"input_dim": dims},
            seeds,
            facets={"method": name, "part": "dimension"},
        )
