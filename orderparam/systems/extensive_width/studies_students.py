"""The figures of trained students compared with the Bayes-optimal error, and the collapse of all
errors."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand, Panel, horizontal, slope
from orderparam.plotting.style import COLOURS
from orderparam.systems.extensive_width.experiment import adam_at_effective_width, adam_student
from orderparam.systems.extensive_width.limits import steep_hierarchy
from orderparam.systems.extensive_width.model import HierarchicalTeacher, WidthLimitedStudent
from orderparam.systems.extensive_width.studies import from_learned, per_ratio, samples
from orderparam.systems.extensive_width.theory import bayes_optimal, compressed

SOURCE = "Nguyen and Barbier 2026"


def _examples(data: xr.Dataset) -> xr.DataArray:
    return data["teacher.n_train" if "teacher.n_train" in data.dims else "n_train"]


FULL, AT_EFFECTIVE = "Adam, full width", "Adam, width $k_c$"
_RESAMPLED = 400  # times that runs are drawn again for an interval


def _aside(data: xr.Dataset) -> xr.DataArray:
    """The number of examples, shifted for students of limited width so that no mark hides
    another."""
    narrow = 1.07 if data.attrs["kind"] == "experiment" else 1.0
    return data["teacher.n_train"] * {FULL: 1.0, AT_EFFECTIVE: 0.93}.get(
        data.attrs["label"], narrow
    )


def _exponents(values: np.ndarray, n: np.ndarray) -> tuple[float, float]:
    """The exponent of errors ~ n^exponent at the width of the smallest mean error at each n, and
    half its 95 % bootstrap interval. `values` holds the errors (width, n, run)."""
    rng = np.random.default_rng(0)
    again = rng.integers(0, values.shape[2], (_RESAMPLED, *values.shape))
    drawn = np.take_along_axis(values[None], again, axis=3).mean(axis=3).min(axis=1)
    found = np.polyfit(np.log(n), np.log(drawn).T, 1)[0]
    best = values.mean(axis=2).min(axis=0)
    return float(np.polyfit(np.log(n), np.log(best), 1)[0]), float(1.96 * found.std())


def draw_exponents(axes: Any, comparison: Comparison) -> None:
    """Draw the exponents of the errors of the theory and of students of several widths, while
    features are being learned and once all are learned."""
    p, dim = comparison.parameters, "teacher.n_train"
    (optimal,) = comparison.theories().values()
    curves = {data.attrs["label"]: data["error"] for data in comparison.experiments().values()}
    ranges = (("features are learned", p["learning"]), ("all are learned", p["refining"]))
    for number, (words, ratios) in enumerate(ranges):
        n = np.array(per_ratio(ratios, p["input_dim"]))
        axes.plot([], [], "o", color=COLOURS[number], label=words)
        if len(n) < 2:
            continue  # one size has no exponent

        def at(labels: list[str], n: np.ndarray = n) -> np.ndarray:
            chosen = [curves[label] for label in labels if np.isin(n, curves[label][dim]).all()]
            return np.stack([one.sel({dim: n}).transpose(dim, "seed").values for one in chosen])

        full_width = at([FULL])
        theory = optimal["error"].sel({dim: n}).values[None, :, None]
        effective = at([AT_EFFECTIVE]) if number == 0 else full_width
        groups = (
            ("Bayes-optimal", theory), ("full width", full_width),
            ("width $k_c$", effective), ("best width", at(list(curves))),
        )  # fmt: skip
        for place, (_, values) in enumerate(groups):
            exponent, half = _exponents(values, n)
            shown = {"fmt": "o", "color": COLOURS[number], "markersize": 4}
            axes.errorbar(place + 0.12 * number, exponent, half, **shown)
            axes.set_xticks(range(len(groups)), [name for name, _ in groups], rotation=20)
        law = 1 / (2 * p["decay"]) - 1 if number == 0 else -1.0
        axes.axhline(law, color=COLOURS[number], linewidth=0.8, linestyle=":")
    axes.set(ylabel="exponent of the error")


def _collapsed(noise: float) -> Callable[[xr.Dataset], xr.DataArray]:
    """The ratio error n / (k_c d (noise + error)) where at least one feature is learned."""

    def ratio(data: xr.Dataset) -> xr.DataArray:
        resolved = data["effective_width"].where(data["effective_width"] > 0)
        return (
            data["error"]
            * _examples(data)
            / (resolved * data.attrs["facets"]["input_dim"] * (noise + data["error"]))
        )

    return ratio


def _constant(decay: float, noise: float) -> float:
    """The limit of `_collapsed` for k_c << k in large dimensions."""
    return float(steep_hierarchy(HierarchicalTeacher(200, 100, decay, noise)).collapse) / noise


def _resolved(data: xr.Dataset) -> xr.DataArray:
    """The fraction k_c / k of learned features."""
    return data["effective_width"].where(data["effective_width"] > 0) / data.sizes["feature"]


@study(
    "bayes-error-collapse",
    title=(
        "In theory error/(noise + error) = (d k_c/n) f(k_c/k, beta) once many features are "
        "learned; f falls to 1 where all are (k_c = k)"
    ),
    source=SOURCE,
    seconds=(70, 3000),
    observables=("error",),
    gallery={"warmup": 200, "draws": 300, "thin": 4, "doublings": 4},
    full={
        "input_dims": (200, 2000, 20000, 2000000),
        "points": 120,
        "measured_dim": 100,
        "epochs": 10000,
        "seeds": 4,
    },
    panels=lambda p: [
        Panel(
            ("$n/d^2$", lambda data: _examples(data) / data.attrs["facets"]["input_dim"] ** 2),
            "error",
            facet="decay",
            by="input_dim",
            log="xy",
            reference=[
                slope(lambda decay: 1 / (2 * decay) - 1, r"$n^{1/2\beta-1}$", (0.2, 3e-5)),
                slope(-1.0, "$n^{-1}$", (1000.0, 1e-4)),
            ],
        ),
        Panel(
            ("$k_c/k$", _resolved),
            (r"$\varepsilon n/(k_c d (\Delta + \varepsilon))$", _collapsed(p["noise"])),
            facet="decay",
            by="input_dim",
            log="xy",
            reference=[horizontal(lambda decay: _constant(decay, p["noise"]))],
        ),
    ],
    caption=r"""
        $k = d/2$ hidden units, the features, with $\tanh(2z)$ on $d$ inputs and read-outs $\propto
        i^{{-\beta}}$, label noise of variance $\Delta$ = {noise}; $k_c$: number of learned
        features, whose integer steps are the teeth of the lines (flat at the top left: $k_c = 0$).
        Bottom row, dotted: the constant for $k_c \ll k \to \infty$. The curves that collapse, for
        $k_c \gg 1$, are theories. Measured ($d$ = {measured_dim}, $\beta$ = {measured_decay}):
        {seeds} data sets; $k_c$ is the number of features that chains or students have found. Adam:
        {epochs} epochs; no theory predicts its error.
    """,
    explained=(
        "The points that differ most are those of Adam, whose error is 3.9, 3.0 and 2.5 times the "
        "smallest possible one at n/d^2 = 0.4, 1 and 3. Chains that converged (12, 16 and 16 of "
        "16) lie 3(4) % above, 1(3) % below and 9(3) % above the theory, which is that of large "
        "dimensions."
    ),
    coarse=(
        "The chains, whose error the theory predicts, resolve 3.3 %. The other points are those of "
        "Adam, whose errors differ by a quarter of the smallest possible one between data sets."
    ),
)
def bayes_error_collapse(
    input_dims: tuple = (200, 20000),
    decays: tuple = (0.7, 1.0, 1.5),
    noise: float = 0.01,
    points: int = 60,
    measured_dim: int = 20,
    measured_decay: float = 1.0,
    measured_ratios: tuple = (0.4, 1.0, 3.0),
    epochs: int = 2000,
    warmup: int = 100,
    draws: int = 100,
    thin: int = 1,
    doublings: int = 0,
    seeds: int = 4,
) -> Iterator[Curve]:
    """warmup, draws, thin, doublings: lengths of the chains."""
    for decay in decays:
        for dim in input_dims:
            over = {
                "n_train": list(
                    np.geomspace(0.02, 3e3 if decay < 1.2 else 3e4, points) * float(dim) ** 2
                )
            }
            system = HierarchicalTeacher(dim, int(dim) // 2, decay, noise)
            yield Curve(
                "theory", bayes_optimal, system, over, facets={"decay": decay, "input_dim": dim}
            )
    measured = WidthLimitedStudent(
        HierarchicalTeacher(measured_dim, measured_dim // 2, measured_decay, noise),
        float(measured_dim // 2),
    )
    ns = {"teacher.n_train": per_ratio(measured_ratios, measured_dim)}
    grid = {"teacher.n_train": list(np.geomspace(0.02, 3e3, points) * float(measured_dim) ** 2)}
    hmc = from_learned(warmup, draws, thin, doublings)
    adam = partial(adam_at_effective_width, epochs=epochs)
    facets = {"decay": measured_decay, "input_dim": measured_dim}
    yield Curve("theory", compressed, measured, grid, facets=facets)
    yield Curve("HMC", hmc, measured, ns, seeds, facets=facets)
    yield Curve("Adam, width $k_c$", adam, measured, ns, seeds, batch_seeds=True, facets=facets)


def _epochs(data: xr.Dataset, last: int) -> xr.DataArray:
    """The epochs of a measurement; those between which a line of the theory is drawn."""
    return data["epoch"] if "epoch" in data else xr.DataArray([1.0, last], dims=["epoch"])


def _errors_in_time(data: xr.Dataset) -> xr.DataArray:
    """The measured test error at each epoch; in the theory the smallest possible one."""
    return (
        data["test_curve"] if "test_curve" in data else data["error"].expand_dims(epoch=2, axis=-1)
    )


@study(
    "student-training",
    title=(
        "Students of 7 units, the number of features learned in theory, or of 5 end with a third "
        "of the test error of students of 16"
    ),
    source="Nguyen and Barbier 2026, figure of errors against epochs",
    seconds=(40, 6000),
    observables=("error",),
    explained=(
        "The theory is the smallest possible error at that width, which Adam does not reach. "
        "Students of 16 units have their smallest test error, 0.054, near 500 epochs and end at "
        "0.067; those of 7 and 5 units end at 0.023, so that early stopping of the wide student "
        "does not make up for its width."
    ),
    full={"input_dim": 200, "width": 100, "epochs": 10000, "seeds": 9},
    panels=lambda p: [
        Panel(
            ("epoch", partial(_epochs, last=p["epochs"])),
            (r"test error $\varepsilon$, labels without noise", _errors_in_time),
            by="width",
            log="xy",
        ),
        Panel(
            "epoch",
            "train_curve",
            by="width",
            where={"label": "Adam"},
            log="xy",
            ylabel="train error, noise included",
            reference=[horizontal(p["noise"], r"noise $\Delta$")],
        ),
    ],
    caption=r"""
        Teacher of $k$ = {width} hidden units with $\tanh(2z)$, the features, on $d$ = {input_dim}
        Gaussian inputs; read-outs $\propto i^{{-\beta}}$, $\beta$ = {decay}; label noise of
        variance $\Delta$ = {noise}, $n$ = {ratio} $d^2$ examples. Students of $N$ hidden units are
        trained by Adam, {seeds} seeds. The middle width is the number $k_c$ of features that are
        learned in theory, the smallest one is 0.7 $k_c$. Best possible: the smallest test
        error of students of that width, the same for the two larger widths (one line hides the
        other).
    """,
)
def student_training(
    input_dim: int = 32,
    width: int = 16,
    ratio: float = 1.0,
    decay: float = 1.0,
    noise: float = 0.01,
    epochs: int = 3000,
    seeds: int = 4,
) -> Iterator[Curve]:
    teacher = HierarchicalTeacher(input_dim, width, decay, noise, round(ratio * input_dim**2))
    resolved = max(1.0, float(bayes_optimal(teacher).effective_width))
    student, trained = WidthLimitedStudent(teacher, width), partial(adam_student, epochs=epochs)
    widths = sorted({float(width), resolved, max(1.0, float(round(0.7 * resolved)))}, reverse=True)
    yield Curve("best possible", compressed, student, {"width": widths}, bound="lower")
    yield Curve("Adam", trained, student, {"width": widths}, seeds, batch_seeds=True)


@study(
    "student-width",
    title=(
        "With 1 and 2 times d^2 examples the best measured width of a student lies near the number "
        "of features that its data resolve in theory, and not above it"
    ),
    source="Nguyen and Barbier 2026, experiments with Adam",
    seconds=(80, 7000),
    observables=("error",),
    explained=(
        "The theory is the smallest possible error at that width, which Adam does not reach: its "
        "error is 1.7 to 7 times as large. Among the measured widths Adam is best with 6 and 9 "
        "units at the ratios 1 and 2, where the lines bend at 7 and 12; at ratio 6 the line does "
        "not bend and the largest width is best."
    ),
    full={
        "input_dim": 64, "width": 32, "epochs": 4000, "seeds": 16,
        "widths": (4, 8, 12, 16, 20, 24, 28, 32),
    },
    panels=lambda p: [
        Panel("width", "error", by="ratio", log="xy", reference=[slope(1 - 2 * p["decay"])])
    ],
    caption=r"""
        Teacher of $k$ = {width} hidden units, the features, with the activation $\sigma =
        \tanh(2z)$ on $d$ = {input_dim} inputs, read-outs $\propto i^{{-\beta}}$, $\beta$ = {decay},
        label noise of variance $\Delta$ = {noise}; students of $N$ units, {epochs} epochs of Adam,
        {seeds} seeds; ratio: $n/d^2$. Dotted: $N^{{1-2\beta}}$. In theory the error no longer falls
        at widths beyond the bend of a line, which is at the number of features that the data
        resolve. The theory knows the linear part of $\sigma$, which Adam must learn too.
    """,
)  # fmt: skip
def student_width(
    input_dim: int = 32,
    width: int = 16,
    widths: tuple = (2, 4, 6, 9, 12, 16),
    ratios: tuple = (1.0, 2.0, 6.0),
    decay: float = 1.0,
    noise: float = 0.01,
    epochs: int = 2000,
    seeds: int = 4,
) -> Iterator[Curve]:
    for ratio in ratios:
        teacher = HierarchicalTeacher(input_dim, width, decay, noise, round(ratio * input_dim**2))
        student = WidthLimitedStudent(teacher, width)
        facets = {"ratio": ratio}
        every = {"width": [float(p) for p in range(1, width + 1)]}
        some = {"width": [float(p) for p in widths]}
        trained = partial(adam_student, epochs=epochs)
        yield Curve("best possible", compressed, student, every, facets=facets, bound="lower")
        yield Curve("Adam", trained, student, some, seeds, batch_seeds=True, facets=facets)


@study(
    "student-scaling",
    title=(
        "Students with about one unit for each learned feature err least; where all features are "
        "learned, the error of students of full width is three times the smallest possible one"
    ),
    source="Nguyen and Barbier 2026, figure with decay 1",
    seconds=(100, 10_000),
    observables=("error",),
    gallery={
        "input_dim": 100,
        "width": 50,
        "learning": (1.0, 2.0, 4.0, 8.0),
        "refining": (14.0, 20.0, 28.0),
        "fractions": (0.75, 0.5),
        "epochs": 300,
        "batches": 100,
        "seeds": 16,
    },
    full={
        "input_dim": 128,
        "width": 64,
        "learning": (1.0, 1.5, 2.2, 3.3, 5.0, 7.5),
        "refining": (16.0, 23.0, 32.0),
        "fractions": (0.75, 0.5),
        "epochs": 300,
        "batches": 100,
        "seeds": 16,
    },
    panels=lambda p: [
        Panel(
            ("training examples $n$", _aside),
            "error",
            log="xy",
            colours={"Bayes-optimal": "text"},
        ),
        Freehand(draw_exponents),
    ],
    caption=r"""
        Teacher of $k$ = {width} hidden units with $\tanh(2z)$, the features, on $d$ = {input_dim}
        Gaussian inputs; read-outs $\propto i^{{-\beta}}$, $\beta$ = {decay}; label noise of
        variance $\Delta$ = {noise}; Adam for {epochs} epochs of {batches} minibatches each, with a
        learning rate that falls linearly to zero, {seeds} seeds. $k_c$: number of learned features
        in theory; where $k_c = k$ its student is that of full width. Marks of width $k_c$ are
        shifted to the left, others of narrow students to the right. Right: exponents of the errors
        at $n/d^2$ = {learning} and at {refining}, bars here are 95 % intervals; best width: at each
        $n$ the width of the smallest mean error. Dotted: exponents in theory for many features,
        $1/2\beta - 1$ while $1 \ll k_c \ll k$ and $-1$.
    """,
    explained=(
        "The theory is the smallest possible error, which Adam does not reach. Students of width "
        "$k_c$ err 2.4 to 3.1 times as much, students of full width 6.3 to 3.1 times as much while "
        "features are being learned and 2.9 to 3.1 times once all are. Exponents, with 95 % "
        "intervals, while features are being learned: $-0.83(3)$ for width $k_c$, $-0.82(3)$ for "
        "the best width, $-1.28(2)$ for full width and $-0.95$ in theory at this size, where $k_c$ "
        "is not small beside $k$; after that $-1.01(9)$ for full width and $-1.06$ in theory. "
        "Control at $n/d^2$ = 2 and width $k_c$: 10,000 epochs of three minibatches at a constant "
        "rate end at 0.0066(4) in three runs, these settings at 0.0073(4) on the same data."
    ),
)
def student_scaling(
    input_dim: int = 32,
    width: int = 16,
    decay: float = 1.0,
    noise: float = 0.01,
    learning: tuple = (0.5, 1.0, 2.0),
    refining: tuple = (8.0, 16.0),
    fractions: tuple = (0.5,),
    epochs: int = 200,
    batches: int = 30,
    seeds: int = 4,
) -> Iterator[Curve]:
    """learning, refining: n / d^2 at which the theory has learned some and all features. fractions:
    widths over k_c. The student of width k_c is trained at the former only, because it is that of
    full width where all features are learned."""
    teacher = HierarchicalTeacher(input_dim, width, decay, noise)
    student = WidthLimitedStudent(teacher, width)
    ns, partly = (per_ratio(ratios, input_dim) for ratios in ((*learning, *refining), learning))
    fine = samples(min(ns) / 2, 2 * max(ns), 120)
    trained: Any = {"epochs": epochs, "batches": batches, "annealed": True, "precision": "single"}
    wide, every = partial(adam_student, **trained), {"teacher.n_train": ns}
    grid = {"teacher.n_train": sorted({*fine, *ns})}
    yield Curve("Bayes-optimal", compressed, student, grid, bound="lower")
    yield Curve(FULL, wide, student, every, seeds)
    for fraction in (1.0, *fractions):
        label = AT_EFFECTIVE if fraction == 1.0 else f"Adam, width ${fraction:g}\\, k_c$"
        narrow = partial(adam_at_effective_width, fraction=fraction, **trained)
        at = partly if fraction == 1.0 else ns
        yield Curve(label, narrow, student, {"teacher.n_train": at}, seeds)


@study(
    "student-ablations",
    title=(
        "With 2,048 and 3,072 examples, students that are given the teacher's read-outs err more "
        "after 2,000 epochs than students that train theirs; with free rows their error rises again"
    ),
    source="Nguyen and Barbier 2026, appendix on experiments",
    seconds=(60, 9000),
    observables=("error",),
    explained=(
        "The theory is the smallest possible error, which Adam does not reach. With unit rows and "
        "1024, 1536, 2048 and 3072 examples fixed read-outs have errors 0.043(3), 0.026(2), "
        "0.0209(12) and 0.0148(14), learned ones 0.069(4), 0.026(2), 0.0143(6) and 0.0067(3). "
        "Unfinished training is not the reason with free rows: from epoch 1000 to 2000 errors with "
        "fixed read-outs rise by 17.5(9) % and 15.4(11) % at 2048 and 3072 examples. With unit "
        "rows they fall by 14(3) % and 21(5) %, those with learned read-outs by 10(3) % and "
        "28(4) %; there longer training was not tried. With fixed read-outs and unit rows the "
        "training error ends at 0.0170(16), 0.0183(16), 0.0184(13) and 0.0168(12), above the 0.01 "
        "of the teacher, which is one of these students: training has not found its minimum. Rows "
        "of free length make errors 1 to 16 % smaller than unit rows where read-outs are trained."
    ),
    gallery={"ratios": (1.0, 1.5, 2.0, 3.0), "seeds": 16},
    full={"input_dim": 48, "width": 24, "epochs": 4000, "seeds": 16},
    columns=3,
    panels=lambda p: [
        Panel("teacher.n_train", "error", log="xy", xlabel="training examples $n$"),
        Panel(
            "teacher.n_train",
            "effective_width",
            log="x",
            xlabel="training examples $n$",
            ylabel="features found",
        ),
        Panel(
            ("epoch", partial(_epochs, last=p["epochs"])),
            (r"error $\varepsilon$", _errors_in_time),
            log="xy",
            where={"teacher.n_train": per_ratio(p["ratios"], p["input_dim"])[-1]},
            title=f"$n$ = {per_ratio(p['ratios'], p['input_dim'])[-1]:g}",
            xlim=(20, None),
        ),
    ],
    caption=r"""
        $d$ = {input_dim}, $k$ = {width} units of teacher and students, $\beta$ = {decay}, $\Delta$
        = {noise}, tanh$(2z)$; {epochs} epochs of Adam at a constant rate, {seeds} seeds. Fixed
        read-outs are the teacher's. Unit rows: the weights of each hidden unit are scaled to length
        1 after each epoch. A feature counts as found if its cosine with a row exceeds 0.7, and in
        theory if it is learned. Right: error during training.
    """,
)
def student_ablations(
    input_dim: int = 32,
    width: int = 16,
    decay: float = 1.0,
    noise: float = 0.01,
    ratios: tuple = (1.0, 4.0),
    epochs: int = 2000,
    seeds: int = 4,
) -> Iterator[Curve]:
    student = WidthLimitedStudent(HierarchicalTeacher(input_dim, width, decay, noise), width)
    measured = per_ratio(ratios, input_dim)
    fine = samples(min(measured) / 1.5, 1.5 * max(measured), 60)
    grid = {"teacher.n_train": sorted({*fine, *measured})}
    yield Curve("Bayes-optimal", compressed, student, grid, bound="lower")
    over = {"teacher.n_train": measured}
    for readouts in ("learned", "fixed"):
        for normalised in (True, False):
            rows = "unit rows" if normalised else "free rows"
            trained = partial(
                adam_student,
                epochs=epochs,
                readouts=readouts,
                normalised=normalised,
                precision="single",
            )
            label = f"{readouts} read-outs, {rows}"
            yield Curve(label, trained, student, over, seeds, batch_seeds=True)
