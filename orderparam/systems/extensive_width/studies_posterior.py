"""The figures of the sampled posterior on top of the theory."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand, Panel, horizontal
from orderparam.plotting.extrapolation import draw_ratios
from orderparam.plotting.style import COLOURS, ink
from orderparam.running.estimate import estimate
from orderparam.systems.extensive_width.learned_readouts import ablated_posterior
from orderparam.systems.extensive_width.model import (
    HierarchicalTeacher,
    WidthLimitedStudent,
)
from orderparam.systems.extensive_width.posterior import posterior_hmc
from orderparam.systems.extensive_width.studies import (
    FINITE_DIMENSION,
    draw_every_run,
    from_learned,
    learned,
    per_ratio,
    samples,
)
from orderparam.systems.extensive_width.theory import bayes_optimal, compressed, informed_state

# the branch of the informed start is left out: it differs only where chains do not converge
_DRAWN = ("Bayes-optimal", "HMC, learned features informed", "HMC, uninformed")
_INVERSE = ("$1/d$", lambda data: 1 / data.attrs["facets"]["input_dim"])


def _draw_chains(axes: Any, comparison: Comparison) -> None:
    """Draw the error of every chain that starts with the learned features at the teacher against
    the number of features that it has learned, beside the theory."""
    measured, _ = comparison.experiments().values()
    optimal, _ = comparison.theories().values()
    for number, n in enumerate(measured["n_train"].values):
        width, error = (
            measured[name].sel(n_train=n).transpose("seed", "chain").values
            for name in ("chain_width", "chain_error")
        )
        # chains of the same number side by side
        shift = np.linspace(-0.2, 0.2, width.size).reshape(width.shape)
        axes.plot(width + shift, error, "o", color=COLOURS[number], markersize=2.5)
        best = optimal.sel(n_train=n, method="nearest")
        place = float(best["effective_width"]), float(best["error"])
        axes.plot(*place, "D", color=COLOURS[number], mec=ink())
        few = width.mean() < measured.sizes["feature"] / 2
        beside = width.max() + 0.5 if few else width.min() - 0.5
        label = {"ha": "left" if few else "right", "va": "center", "color": COLOURS[number]}
        axes.text(beside, float(np.median(error)), f"$n$ = {n:g}", **label)
    axes.set(yscale="log", xlabel="features learned", ylabel=r"error $\varepsilon$ of a chain")
    axes.set_xticks(range(0, comparison.parameters["width"] + 1, 2))


@study(
    "posterior-sampling",
    title=(
        "Where all features are learned, chains that start near the teacher have the error of the "
        "theory; most other chains do not converge"
    ),
    source="Nguyen and Barbier 2026, figure with decay 0.3",
    seconds=(95, 8000),
    observables=("error", "effective_width"),
    full={
        "input_dim": 48,
        "width": 24,
        "warmup": 300,
        "draws": 400,
        "seeds": 8,
        "ratios": (0.5, 1.0, 1.5, 2.0, 2.5, 3.0),
    },
    panels=lambda p: [
        Panel("n_train", "error", log="y", where={"label": _DRAWN}),
        Freehand(_draw_chains, "chains one by one", one_by_one=True),
    ],
    caption=r"""
        Teacher of $k$ = {width} hidden units with $\tanh(2z)$, the features, on $d$ = {input_dim}
        Gaussian inputs; read-outs $\propto i^{{-\beta}}$, $\beta$ = {decay}; label noise of
        variance $\Delta$ = {noise}, without the linear part of $\tanh(2z)$; {seeds} data sets.
        Left: a mark without a bar is a single run. Right: the four chains of every data set; a
        feature is learned where its overlap with the teacher's exceeds 1/2; diamonds: theory.
        Informed chains start with those features at the teacher that are learned in theory.
    """,
    explained=(
        f"{FINITE_DIMENSION} 50 of 80 runs did not converge; at n = d^2 only one informed run "
        "did. The theory is therefore tested only where all features are learned. At n = d^2 "
        "the errors of all informed chains lie below the theory, and nearly all of these chains "
        "have learned more features than the theory predicts. At n = 2.5 d^2 uninformed chains "
        "have twice the error of the theory and have learned 8 to 12 features, many of them by "
        "a unit that has the read-out of another feature."
    ),
    metastable=(
        "Chains gain and lose features too rarely; the figure shows this for all chains that start "
        "near the teacher. Control: with the same teacher and less noise (`collective-transition`) "
        "chains of 2,600 trajectories, ten times as many, did not converge in 40 of 48 runs at "
        "n/d^2 = 0.4 to 0.8."
    ),
)
def posterior_sampling(
    input_dim: int = 24,
    width: int = 12,
    decay: float = 0.3,
    noise: float = 0.04,
    ratios: tuple = (0.5, 1.0, 1.7, 2.5),
    warmup: int = 100,
    draws: int = 150,
    seeds: int = 4,
) -> Iterator[Curve]:
    system = HierarchicalTeacher(input_dim, width, decay, noise)
    grid = {"n_train": samples(0.02 * input_dim**2, 3.0 * input_dim**2, 240)}
    measured = per_ratio(ratios, input_dim)
    hmc = partial(posterior_hmc, warmup=warmup, draws=draws)
    yield Curve("Bayes-optimal", bayes_optimal, system, grid)
    yield Curve("informed branch", informed_state, system, grid)
    yield Curve(
        "HMC, learned features informed",
        partial(hmc, start="partially_informed"),
        system,
        {"n_train": measured},
        seeds,
    )
    yield Curve(
        "HMC, uninformed",
        partial(hmc, start="uninformed"),
        system,
        {"n_train": measured[-1:]},
        seeds,
    )


@study(
    "effective-model",
    title="At 32 inputs, on the same data, the two stronger learned features keep their overlaps "
    "to 0.01 if unlearned ones are replaced by noise; the third is lost more often",
    source="Nguyen and Barbier 2026, effective model",
    seconds=(35, 9000),
    observables=("overlap",),
    gallery={
        "input_dims": (16, 24, 32),
        "warmup": 600,
        "draws": 400,
        "thin": 5,
        "doublings": 2,
        "seeds": 16,
    },
    full={
        "input_dims": (24, 32, 48),
        "warmup": 600,
        "draws": 400,
        "thin": 5,
        "doublings": 3,
        "seeds": 16,
    },
    panels=lambda p: [
        Panel("feature", "overlap", facet="input_dim", by="model", jump=learned),
        Freehand(
            partial(draw_every_run, "model", input_dim=p["input_dims"][-1]),
            f"every run, $d$ = {p['input_dims'][-1]}",
            one_by_one=True,
        ),
    ],
    caption=r"""
        Teacher of $k = d/2$ hidden units with $\tanh(2z)$, the features, on $d$ = {input_dims}
        Gaussian inputs; read-outs $\propto i^{{-\beta}}$, $\beta$ = {decay}; label noise of
        variance $\Delta$ = {noise}, $n$ = {ratio} $d^2$ examples, which lies between the
        numbers at which theory learns one feature more or less. Whole model: a student with all
        features; effective model: the same labels, but the student has only the features that are
        learned in theory and treats the rest of the target as noise of the same variance. Overlap:
        $w_i\cdot w^0_i/d$ of the weights $w_i$ of a draw and $w^0_i$ of the teacher. The lines of
        the two models coincide: the blue one is hidden. {seeds} data sets, the same for both;
        Hamiltonian Monte Carlo (HMC), four chains that start with the learned features at the
        teacher. Last panel: sum over features, in every run and in theory (line); data sets stand
        in the same order.
    """,
    explained=(
        "The theory is that of large dimensions. In all 16 runs, on the same data sets, the "
        "overlap of the whole model exceeds that of the effective model by 0.004(5) for feature 1 "
        "with 16 inputs, by -0.001(2) with 24, and by -0.001(2) and 0.010(3) for features 1 and 2 "
        "with 32; the last is a small difference whose cause is open. For the last learned "
        "feature with 24 and 32 inputs it does so by 0.07(5), which may be chance, and 0.21(7), "
        "because chains of the effective model lose this feature (means of all runs 0.88(2) and "
        "0.81(6), 0.81(3) and 0.60(8)), and by 0.08(8) and 0.013(10) in the runs where both "
        "converged. Learned features of converged runs lie within 0.03 of the theory, but for "
        "feature 2 of the effective model with 24 inputs, at 0.82(6) instead of 0.90. Converged "
        "runs of the whole model have overlaps of 0.33(10), 0.08(4) and 0.19(6), and all runs "
        "0.32(7), 0.19(6) and 0.18(4), with the first feature that theory does not learn, with "
        "16, 24 and 32 inputs; the effective model does not have this feature. The three points "
        "beyond three standard errors are overlaps of 0.01 to 0.05 with other features that "
        "theory does not learn, in the whole model. Control next to a threshold, at n = d^2 with "
        "32 inputs, data sets that differ between the models and nine features learned in theory: "
        "the first seven agree in both models within 0.04; over the runs that converged, 5 and 11 "
        "of 16, the eighth has 0.92(1) in the whole and 0.54(12) in the effective model, in "
        "theory 0.85, the ninth 0.49(15) and 0.43(11), in theory 0.78. That these differences "
        "vanish in large dimensions was not shown. All chains start at the teacher: they test "
        "that the state of the theory is stable, not that it is selected."
    ),
    metastable=(
        "Chains of 2,600 to 10,400 trajectories gain and lose features next to the last learned "
        "one rarely: 26 of 96 runs did not converge, eight of them of the effective model with 32 "
        "inputs, where a part of the chains has lost the third feature. The means of converged "
        "runs are conditional on that; the text gives those of all runs. The last panel shows all "
        "runs."
    ),
)
def effective_model(
    input_dims: tuple = (32,),
    decay: float = 0.8,
    noise: float = 0.01,
    ratio: float = 0.4,
    warmup: int = 100,
    draws: int = 200,
    thin: int = 1,
    doublings: int = 0,
    seeds: int = 4,
) -> Iterator[Curve]:
    """input_dims: numbers of inputs d; there are d/2 features. ratio: n / d^2. warmup, draws, thin,
    doublings: lengths of the chains."""
    hmc = from_learned(warmup, draws, thin, doublings)
    for dim in input_dims:
        teacher = HierarchicalTeacher(dim, dim // 2, decay, noise, round(ratio * dim**2))
        resolved = max(1.0, float(bayes_optimal(teacher).effective_width))
        for model, kept in (("whole model", float(dim // 2)), ("effective model", resolved)):
            student, over = WidthLimitedStudent(teacher, kept), {"width": [kept]}
            facets = {"model": model, "input_dim": dim}
            yield Curve("theory", compressed, student, over, facets=facets)
            yield Curve("HMC", hmc, student, over, seeds, paired=("width",), facets=facets)


def _draw_ratio(axes: Any, comparison: Comparison) -> None:
    """Draw the ratio of the sampled error to the theory of the same size against 1/d, and the line
    to infinite d."""
    sizes, mean, error = [], [], []
    for data in comparison.experiments().values():
        dim = data.attrs["facets"]["input_dim"]
        (theory,) = comparison.theories(input_dim=dim).values()
        found, its_error = estimate(data, "error")
        sizes.append(dim)
        mean.append(found.item() / theory["error"].item())
        error.append(its_error.item() / theory["error"].item())
    draw_ratios(axes, {"HMC": (np.array(sizes), np.array(mean), np.array(error))}, "error / theory")
    axes.set(xlabel="$1/d$")


@study(
    "posterior-finite-size",
    title=(
        "With enough examples to learn all features, sampled errors at 16 to 32 inputs agree with "
        "the theory of large systems within 3 %"
    ),
    source="measured for this package on the model of Nguyen and Barbier 2026",
    seconds=(60, 7000),
    observables=("error", "posterior_mean_error"),
    gallery={"input_dims": (16, 24, 32)},
    full={"input_dims": (16, 24, 32, 40, 48, 64), "draws": 400, "seeds": 16},
    panels=[
        Freehand(_draw_ratio),
        Panel(
            _INVERSE,
            (
                "twice the error of the mean\nover the Gibbs error",
                lambda data: 2 * data["posterior_mean_error"] / data["gibbs_error"],
            ),
            where={"label": "HMC"},
            xlim=(0, None),
            ylim=(0.9, 1.1),
            reference=[horizontal(1.0)],
        ),
    ],
    caption=r"""
        Teacher of $k$ hidden units with $\tanh(2z)$, Gaussian inputs; read-outs $\propto
        i^{{-\beta}}$, $\beta$ = {decay}; label noise of variance $\Delta$ = {noise}; $k/d$ =
        {width_ratio} for $d$ inputs, $n/d^2$ = {ratio}, where all features are learned in theory;
        {seeds} data sets. This is the only ratio that was measured. The chains start at the
        teacher: agreement shows that the predicted state is stable, not that a random start finds
        it. At each size the theory sums over the finite number of features. Left: the line is a
        fit, the diamond its value at infinite $d$. Right, dotted: the value 1 of the Nishimori
        identity, which a chain in equilibrium has.
    """,
)
def posterior_finite_size(
    input_dims: tuple = (16, 24),
    width_ratio: float = 0.5,
    decay: float = 0.3,
    noise: float = 0.04,
    ratio: float = 2.5,
    warmup: int = 120,
    draws: int = 150,
    seeds: int = 4,
) -> Iterator[Curve]:
    """ratio: n / d^2. Between the jumps of the theory, as at 1, chains of this length have not
    converged."""
    hmc = partial(posterior_hmc, start="partially_informed", warmup=warmup, draws=draws)
    for dim in input_dims:
        system = HierarchicalTeacher(dim, round(width_ratio * dim), decay, noise)
        over = {"n_train": per_ratio([ratio], dim)}
        yield Curve("theory", bayes_optimal, system, over, facets={"input_dim": dim})
        yield Curve("HMC", hmc, system, over, seeds, facets={"input_dim": dim})


_ABLATIONS = {
    "fixed read-outs, free rows": ("fixed", False, 0),
    "fixed read-outs, known lengths": ("fixed", True, -1),
    "learned read-outs, free rows": ("learned", False, 1),
    "learned read-outs, known lengths": ("learned", True, 0),
}  # label -> options, and how many parameters more for each unit


def _excess(count: float, n: float) -> float:
    """The error of the least-squares estimate of some parameters from n samples, over the noise."""
    return count / (n - count)


def _draw_paired(axes: Any, comparison: Comparison) -> None:
    """Draw the error of each posterior, divided by that with fixed read-outs and free rows on the
    same data, beside the ratio predicted from the numbers of parameters."""
    p = comparison.parameters
    base, *others = _ABLATIONS
    inverse = 1 / np.linspace(min(p["input_dims"]), 40 * max(p["input_dims"]), 2000)
    for number, label in enumerate(others, start=1):
        more, points = _ABLATIONS[label][2], []
        for dim in p["input_dims"]:
            found = comparison.experiments(input_dim=dim).values()
            pair = {
                data.attrs["label"]: data["error"].where(data["status"] == 1).values.ravel()
                for data in found
            }
            ratio = pair[label] / pair[base]
            ratio = ratio[np.isfinite(ratio)]
            if len(ratio) > 1:  # one data set has no scatter
                points.append((1 / dim, ratio.mean(), ratio.std(ddof=1) / len(ratio) ** 0.5))
        shown = {"fmt": "o", "color": COLOURS[number], "markersize": 4, "label": label}
        axes.errorbar(*np.array(points).reshape(-1, 3).T, **shown)
        # in units of d^2 samples and parameters
        size, n = p["width_ratio"], p["ratio"]
        law = _excess(size * (1 + more * inverse), n) / _excess(size, n)
        axes.plot(inverse, law, color=COLOURS[number], linewidth=0.9)
    axes.set(xlabel="$1/d$", ylabel="error / error on the same data", xlim=(0, None))


def _draw_over_theory(axes: Any, comparison: Comparison) -> None:
    """Draw the ratios of the four errors to the theory against 1/d, and the lines to infinite d."""
    dims, found = np.array(comparison.parameters["input_dims"]), {}
    for label in _ABLATIONS:
        points = []
        for dim in dims:
            (theory,) = comparison.theories(input_dim=int(dim)).values()
            of_size = comparison.experiments(input_dim=int(dim)).values()
            (data,) = (one for one in of_size if one.attrs["label"] == label)
            points.append(
                [part.item() / theory["error"].item() for part in estimate(data, "error")]
            )
        found[label] = (dims, *np.array(points).T)
    draw_ratios(axes, found, "error / theory")
    axes.set(xlabel="$1/d$", ylim=(0.75, 1.6))  # room for the four values


@study(
    "posterior-ablations",
    title="Learning the read-outs raises the posterior's error, and knowing the lengths of rows "
    "lowers it, by about 1/d",
    source="measured for this package on the model of Nguyen and Barbier 2026",
    seconds=(90, 7000),
    observables=("error",),
    gallery={"input_dims": (8, 12, 16), "seeds": 16},
    full={"input_dims": (8, 12, 16, 24), "draws": 400, "seeds": 16},
    panels=[Freehand(_draw_paired), Freehand(_draw_over_theory)],
    caption=r"""
        Teacher of $k$ hidden units with $\tanh(2z)$, Gaussian inputs; read-outs $\propto
        i^{{-\beta}}$, $\beta$ = {decay}, label noise of variance $\Delta$ = {noise}; $d$ inputs,
        $k/d$ = {width_ratio}, $n/d^2$ = {ratio}, without the linear part of $\tanh(2z)$; {seeds}
        data sets. Learned read-outs have the prior $N(0, 1/k)$, free rows $N(0, 1)$; rows of known
        length have $|w_i|^2 = d$, as the teacher's have. Left: the error divided by the error that
        the posterior with fixed read-outs and free rows has on the same data; lines: $P/(n - P)$
        for $P$ parameters, relative to fixed read-outs and free rows, $k$ more for learned
        read-outs, $k$ fewer for known lengths. Right: lines are fits; their values at infinite
        $d$, drawn side by side at 0, are too uncertain for a conclusion. Runs that did not converge
        are left out of all means.
    """,
    explained=(
        "The theory is that of large dimensions, which is the same for all four. With learned "
        "read-outs the error is 1.138(15), 1.078(10) and 1.070(8) times that with fixed "
        "read-outs and free rows on the same data, for 8, 12 and 16 inputs; the numbers of "
        "parameters predict 1.145, 1.096 and 1.072. With known lengths it is 0.829(19), "
        "0.915(10) and 0.929(6) times as large, predicted 0.860, 0.906 and 0.929; with both "
        "0.968(24), 0.996(12) and 1.001(9), predicted 1. One of 192 runs, with learned read-outs "
        "and free rows, did not converge and is left out: its mean is over 15 data sets. The "
        "extrapolated limits of the right panel have errors of 6 to 7 %, and nothing is concluded "
        "from them."
    ),
)
def posterior_ablations(
    input_dims: tuple = (8, 12),
    width_ratio: float = 0.5,
    decay: float = 0.3,
    noise: float = 0.04,
    ratio: float = 4.0,
    warmup: int = 120,
    draws: int = 150,
    leapfrog_steps: int = 8,
    seeds: int = 4,
) -> Iterator[Curve]:
    """ratio: n / d^2, at which all features are learned."""
    lengths: Any = {"warmup": warmup, "draws": draws, "leapfrog_steps": leapfrog_steps}
    for dim in input_dims:
        system = HierarchicalTeacher(dim, round(width_ratio * dim), decay, noise)
        over, facets = {"n_train": per_ratio([ratio], dim)}, {"input_dim": dim}
        yield Curve("theory", bayes_optimal, system, over, facets=facets)
        for label, (readouts, normalised, _) in _ABLATIONS.items():
            method = partial(ablated_posterior, readouts=readouts, normalised=normalised, **lengths)
            yield Curve(label, method, system, over, seeds, facets=facets)
