"""The named figures of learning from models."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr

from orderparam.comparison import Comparison, Curve, study
from orderparam.data import apply_task, centre, load, normalise
from orderparam.kernels.spectrum import Spectrum
from orderparam.networks.fully_connected import fully_connected
from orderparam.plotting import Freehand, Panel
from orderparam.plotting.measured import dots
from orderparam.plotting.style import COLOURS, ink
from orderparam.systems.learning_from_models.experiment import drawn_generations, drawn_labels
from orderparam.systems.learning_from_models.model import ModelChain, PoolChain
from orderparam.systems.learning_from_models.theory import best_labels, generation_errors


def power_law_modes(modes: int, decay: float, power: float) -> Spectrum:
    """The spectrum with eigenvalues i^-decay and target power i^-power."""
    i = np.arange(1, modes + 1)
    return Spectrum(i**-decay, i**-power)


def digit_chain(images: int, **numbers: Any) -> PoolChain:
    """The chain of the kernel of a network with one hidden layer of erf units on digits; the target
    tells even from odd digits."""
    pool, targets = apply_task(load("digits"), "even-odd")
    pool = normalise(centre(pool))
    order = np.random.default_rng(0).permutation(len(targets.values))[:images]
    x = np.asarray(pool.inputs).reshape(len(pool.inputs), -1)[order]
    y = np.asarray(targets.values, float).reshape(-1)[order]
    kernel = fully_connected(1, None, "erf").kernel(jnp.asarray(x)).nngp
    return PoolChain.from_kernel(kernel, y, **numbers)


GENERATION = (
    "generation",
    lambda data: xr.DataArray(1 + np.arange(data.sizes["generation"]), dims=["generation"]),
)


@study(
    "model-generations",
    title=(
        "Test errors keep growing when each generation of models learns from the labels of "
        "the last; with half true labels they level off"
    ),
    source="derived here; Dohmatob, Feng, Kempe 2024 (arXiv:2402.07712)",
    panels=[
        Panel(
            GENERATION,
            "test_error",
            facet="features",
            by="truth_share",
            ylabel="error against the truth",
            share_y=False,
        ),
        Panel(
            GENERATION,
            "test_error",
            facet="features",
            by="truth_share",
            ratio_to="theory",
            ylabel="error / theory",
            share_y=False,
        ),
    ],
    columns=2,
    caption=r"""
        Ridge regression on the labels of the previous generation, mixed with a share
        $\omega$ of true labels (colours); every generation sees new inputs. Power law:
        {modes} Gaussian features with $\lambda_i = i^{{-2}}$, $\lambda_i \beta_i^2 =
        i^{{-1.5}}$, $n$ = {n_train}, ridge {ridge}, label noise {noise}. Digits: the kernel
        of a network of erf units on {images} images, even against odd, $n$ =
        {digits_n_train} drawn with replacement, ridge {digits_ridge}, label noise {noise};
        beside them, Gaussian features of the same spectrum and truth. The theory is that of
        Gaussian features.
    """,
    seconds=(60, 600),
    gallery={"images": 1600, "seeds": 64},
    full={"images": 1600, "seeds": 256},
)
def model_generations(
    modes: int = 500,
    n_train: int = 200,
    truth_shares: tuple[float, ...] = (0.0, 0.1, 0.5),
    ridge: float = 0.1,
    noise: float = 0.05,
    generations: int = 8,
    images: int = 600,
    digits_n_train: int = 60,
    digits_ridge: float = 0.3,
    seeds: int = 32,
) -> Iterator[Curve]:
    spectrum = power_law_modes(modes, 2.0, 1.5)
    numbers = {"noise": noise, "generations": generations}
    own = {"n_train": digits_n_train, "ridge": digits_ridge, **numbers}
    digits = digit_chain(images, **own)
    chains = {
        "power law": ModelChain(spectrum, n_train=n_train, ridge=ridge, **numbers),
        "digits": digits,
    }
    over = {"truth_share": truth_shares}
    for name, chain in chains.items():
        facets = {"features": name}
        yield Curve("theory", generation_errors, chain, over, facets=facets)
        yield Curve(
            "drawn data", drawn_generations, chain, over, seeds, batch_seeds=True, facets=facets
        )
    clone = ModelChain(digits.spectrum, **own)
    facets = {"features": "digits"}
    yield Curve(
        "Gaussian features", drawn_generations, clone, over, seeds, batch_seeds=True, facets=facets
    )


SHOWN = (
    "modes that the labels show",
    lambda data: xr.DataArray(np.arange(data.sizes["shown"]), dims=["shown"]),
)


def _marked(data: xr.Dataset, values: xr.DataArray) -> xr.DataArray:
    """Values at all numbers of modes for a theory (a line), and at a dozen of them for a
    measurement."""
    if "seed" not in data.dims:
        return values
    last = data.sizes["shown"] - 1
    return values.isel(shown=np.unique(np.geomspace(8, last, 14).round().astype(int)))


@study(
    "masked-teacher",
    title="A student learns better from labels that omit what it cannot learn than from the truth",
    source="Ildiz, Gozeten, Taga, Mondelli, Oymak 2025 (arXiv:2410.18837); the form by "
    "learnabilities derived here",
    panels=[
        Panel(
            (SHOWN[0], lambda data: _marked(data, SHOWN[1](data))),
            ("error against the truth", lambda data: _marked(data, data["error_by_kept"])),
            by="noise",
            log="xy",
            xlim=(6, None),
            ylim=(None, 1),
        )
    ],
    caption=r"""
        Ridgeless regression on {modes} Gaussian features, $\lambda_i = i^{{-2}}$, $\lambda_i
        \beta_i^2 = i^{{-1.5}}$, $n$ = {n_train} examples. The labels contain the truth on the first
        modes only; colours: label noise $s$. The points at the far right contain the whole truth.
        The best number of modes depends on $n$ alone, not on the noise. All marks of one colour
        share their training sets; the marks of the whole truth and of the best number of modes are
        compared with the theory.
    """,
    seconds=(20, 120),
    observables=("truth_error", "mask_error"),
    gallery={"seeds": 256},
    full={"modes": 1000, "n_train": 400, "seeds": 256},
)
def masked_teacher(
    modes: int = 500,
    n_train: int = 200,
    noises: tuple[float, ...] = (0.0, 0.01, 0.1),
    seeds: int = 32,
) -> Iterator[Curve]:
    spectrum = power_law_modes(modes, 2.0, 1.5)
    system = ModelChain(spectrum, n_train=n_train, ridge=0.0)
    yield Curve("theory", best_labels, system, {"noise": noises})
    yield Curve("drawn data", drawn_labels, system, {"noise": noises}, seeds, batch_seeds=True)


@study(
    "label-mixing",
    title="The error of a student is smallest for a mixture of its teacher's labels and noisy true "
    "labels",
    source="derived here; Jain, Montanari, Sasoglu 2024 (arXiv:2402.04376)",
    panels=[
        Panel(
            "truth_share",
            "test_error",
            by="teacher_n_train",
            where={"generation": 1},
            log="y",
            xlabel=r"weight $\omega$ of true labels",
            ylabel="error of the student",
        )
    ],
    caption=r"""
        Ridge regression, {modes} Gaussian features with $\lambda_i = i^{{-2}}$, $\lambda_i
        \beta_i^2 = i^{{-1.5}}$. The teacher (ridge {teacher_ridge}; colours: its number of
        examples) and the student ($n$ = {n_train}, ridge {ridge}) see true labels with noise
        {noise}; the teacher's labels have none.
    """,
    seconds=(40, 300),
    gallery={"seeds": 64},
    full={"seeds": 256},
)
def label_mixing(
    modes: int = 400,
    n_train: int = 100,
    ridge: float = 0.05,
    noise: float = 0.5,
    teacher_ridge: float = 0.5,
    teacher_n_train: tuple[int, ...] = (50, 100, 200),
    truth_shares: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0),
    seeds: int = 32,
) -> Iterator[Curve]:
    system = ModelChain(
        power_law_modes(modes, 2.0, 1.5),
        n_train=n_train,
        ridge=ridge,
        teacher_n_train=teacher_n_train[0],
        teacher_ridge=teacher_ridge,
        teacher_noise=noise,
    )
    line = {"truth_share": np.linspace(0, 1, 41), "teacher_n_train": teacher_n_train}
    yield Curve("theory", generation_errors, system, line)
    measured = {"truth_share": truth_shares, "teacher_n_train": teacher_n_train}
    yield Curve("drawn data", drawn_generations, system, measured, seeds, batch_seeds=True)


LAST = ("error against the truth", lambda data: data["test_error"].isel(generation=-1))


def _along(
    system: ModelChain, name: str, marks: Sequence[float], seeds: int, facets: Mapping[str, Any]
) -> Iterator[Curve]:
    """Curves over one field of the system: the theory as a line, and experiments at the values
    `marks`."""
    line, few = {name: np.unique(np.geomspace(marks[0], marks[-1], 41))}, {name: marks}
    yield Curve("theory", generation_errors, system, line, facets=facets)
    yield Curve(
        "drawn data", drawn_generations, system, few, seeds, batch_seeds=True, facets=facets
    )


@study(
    "weak-to-strong",
    title=(
        "Students whose ridge is 0.02 per example are better than a teacher of ridge 0.1 or less, "
        "which overfits, and worse than one of ridge 1 or 10"
    ),
    source="derived here; Burns et al. 2024 (arXiv:2312.09390), the question",
    observables=("final_error",),
    panels=[
        Panel(
            "teacher_ridge",
            LAST,
            by="model",
            where={"panel": "teachers"},
            log="xy",
            xlabel="ridge of the teacher $T_1$",
        ),
        Panel(
            "ridge",
            LAST,
            by="model",
            where={"panel": "students"},
            log="xy",
            xlabel="ridge of the student $T$",
        ),
    ],
    columns=2,
    caption=r"""
        Ridge regression on {modes} Gaussian features, $\lambda_i = i^{{-2}}$, $\lambda_i \beta_i^2
        = i^{{-2.5}}$ ($\beta_i$: coefficients of the target). The teacher has {teacher_n_train}
        true labels with noise {noise}; students (colours: $n$ inputs) see only its labels. Left:
        all students have the ridge $T = {ridge_share}\, n$; a teacher of a smaller ridge than the
        best one, at which its line has its minimum, overfits. Right: the teacher overfits, with the
        ridge {teacher_ridge}; students of any number of inputs have a best ridge, at which they are
        better.
    """,
    seconds=(30, 300),
    gallery={"seeds": 128},
    full={"modes": 1000, "seeds": 256},
)
def weak_to_strong(
    modes: int = 400,
    teacher_n_train: int = 50,
    noise: float = 0.3,
    n_train: tuple[int, ...] = (50, 200, 800),
    ridge_share: float = 0.02,
    teacher_ridge: float = 0.01,
    teacher_ridges: tuple[float, ...] = (0.001, 0.01, 0.1, 0.3, 1.0, 10.0),
    ridges: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0, 100.0),
    seeds: int = 32,
) -> Iterator[Curve]:
    chain = ModelChain(
        power_law_modes(modes, 2.0, 2.5),
        n_train=n_train[0],
        ridge=1.0,
        teacher_n_train=teacher_n_train,
        teacher_noise=noise,
        teacher_ridge=teacher_ridge,
    )
    models = {"teacher": chain.with_(generations=1)}
    for count in n_train:
        models[f"student, $n$ = {count}"] = chain.with_(n_train=count, ridge=ridge_share * count)
    for panel, name, marks in (
        ("teachers", "teacher_ridge", teacher_ridges),
        ("students", "ridge", ridges),
    ):
        for model, system in models.items():
            facets = {"panel": panel, "model": model}
            yield from _along(system, name, marks, seeds, facets)


def draw_best_ridges(axes: Any, comparison: Comparison) -> None:
    """Draw the error after the last model against the ridge, and mark the smallest one of each
    theory, if it is not at an end of the line."""
    label, last = LAST
    (*measured,) = comparison.experiments(panel="ridge").values()
    for number, theory in enumerate(comparison.theories(panel="ridge").values()):
        ridge, error = theory["ridge"].values, np.ravel(last(theory))
        axes.plot(ridge, error, color=COLOURS[number])
        lowest = int(np.argmin(error))
        if 0 < lowest < len(error) - 1:
            near = slice(lowest - 1, lowest + 2)
            best = np.exp(_lowest(np.log(ridge[near]), np.log(error[near])))
            axes.plot(*best, "|", color=ink(), markersize=14, zorder=2.5)
            look: Any = {"textcoords": "offset points", "ha": "center", "fontsize": 8}
            axes.annotate(f"$T$ = {best[0]:.2f}", best, (0, -18), **look)
        runs = measured[number]
        dots(axes, runs["ridge"], last(runs), 0, colour=COLOURS[number], filled=True)
    axes.set(xscale="log", yscale="log", xlabel="ridge $T$", ylabel=label)
    axes.set_ylim(0.6 * axes.get_ylim()[0], None)


def _lowest(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The lowest point of the parabola through three points."""
    c, b, a = np.polynomial.polynomial.polyfit(x, y, 2)
    return np.array([-b / (2 * a), c - b**2 / (4 * a)])


@study(
    "covariate-shift",
    title=(
        "On power laws a shift of the inputs changes the exponent of the learning curve, but "
        "in theory leaves the best ridge at 0.10"
    ),
    source="derived here; Patil, Du, Tibshirani 2024 (arXiv:2404.01233)",
    panels=[
        Panel(
            "n_train",
            LAST,
            by="inputs",
            where={"panel": "examples"},
            log="xy",
            fit="n",
            ylim=(2e-5, None),
        ),
        Freehand(draw_best_ridges),
    ],
    columns=2,
    caption=r"""
        Ridge regression on {modes} Gaussian features of variances $\lambda_i = i^{{-2}}$ with
        target coefficients $\beta_i$, $\lambda_i \beta_i^2 = i^{{-2}}$, $n$ examples. Test inputs
        have the variances $\lambda'_i$ (colours; $i^{{-2}}$ is no shift). Left: ridge {ridge}, no
        noise; exponents of fits to the marks with 95 % intervals, in brackets those of the theory
        over the same $n$. Right: {examples} examples with label noise of variance {noise}; measured
        at one ridge in a decade; strokes: smallest errors of the theory, with their ridges.
    """,
    seconds=(30, 300),
    gallery={"seeds": 64},
    full={"modes": 4000, "seeds": 256, "n_train": (25, 50, 100, 200, 400, 800)},
)
def covariate_shift(
    modes: int = 2000,
    decays: tuple[float, ...] = (2.5, 2.0, 1.5),
    n_train: tuple[int, ...] = (25, 50, 100, 200, 400),
    ridge: float = 1e-4,
    noise: float = 0.1,
    examples: int = 100,
    ridges: tuple[float, ...] = (0.001, 0.01, 0.1, 1.0, 10.0),
    seeds: int = 16,
) -> Iterator[Curve]:
    i = np.arange(1, modes + 1)
    chain = ModelChain(
        power_law_modes(modes, 2.0, 2.0), n_train=examples, ridge=ridge, generations=1
    )
    for panel, name, marks, amount in (
        ("examples", "n_train", n_train, 0.0),
        ("ridge", "ridge", ridges, noise),
    ):
        for decay in decays:
            system = chain.with_(noise=amount, test_eigenvalues=i**-decay)
            facets = {"panel": panel, "inputs": rf"$\lambda'_i = i^{{-{decay:g}}}$"}
            yield from _along(system, name, marks, seeds, facets)


@study(
    "students-of-digits",
    title=(
        "On digits a student is better than a teacher of ridge 0.01 or less, which overfits; in "
        "theory one with as many images as its teacher learns best from mixed labels"
    ),
    source="derived here; Burns et al. 2024 (arXiv:2312.09390), the question",
    panels=[
        Panel(
            "teacher_ridge",
            LAST,
            by="model",
            where={"panel": "teachers"},
            log="xy",
            xlabel="ridge of the teacher $T_1$",
        ),
        Panel(
            "truth_share",
            LAST,
            by="model",
            where={"panel": "mixtures"},
            log="y",
            xlabel=r"weight $\omega$ of true labels",
        ),
    ],
    columns=2,
    caption=r"""
        Regression with the kernel of a network of erf units on digits, even against odd, drawn with
        replacement from {images} images. The teacher learns {teacher_n_train} true labels of noise
        variance {noise}; students (colours: their number $n$ of images) have the ridge $T =
        {ridge_share}\, n$. Left: they learn from the teacher's labels alone. Right: teacher of
        ridge {teacher_ridge}, whose labels are mixed with true ones of the same noise, of weight
        $\omega$; the differences between the measured errors at $n$ = 100 and $\omega \geq 0.5$ are
        of the size of their standard errors. The theory is that of Gaussian features.
    """,
    seconds=(40, 300),
    gallery={"images": 1600, "seeds": 64},
    full={"images": 1600, "seeds": 256},
)
def students_of_digits(
    images: int = 600,
    teacher_n_train: int = 100,
    noise: float = 0.5,
    n_train: tuple[int, ...] = (100, 400),
    ridge_share: float = 0.01,
    teacher_ridge: float = 0.3,
    teacher_ridges: tuple[float, ...] = (0.001, 0.01, 0.1, 0.3, 1.0, 3.0, 10.0),
    truth_shares: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0),
    seeds: int = 16,
) -> Iterator[Curve]:
    chain = digit_chain(
        images,
        n_train=n_train[0],
        ridge=1.0,
        teacher_n_train=teacher_n_train,
        teacher_noise=noise,
        teacher_ridge=teacher_ridge,
    )
    models = {"teacher": chain.with_(generations=1)}
    for count in n_train:
        models[f"student, $n$ = {count}"] = chain.with_(n_train=count, ridge=ridge_share * count)
    for model, system in models.items():
        facets = {"panel": "teachers", "model": model}
        yield from _along(system, "teacher_ridge", teacher_ridges, seeds, facets)
        if model != "teacher":
            facets = {"panel": "mixtures", "model": model}
            line, few = {"truth_share": np.linspace(0, 1, 41)}, {"truth_share": truth_shares}
            yield Curve("theory", generation_errors, system, line, facets=facets)
            yield Curve(
                "drawn data", drawn_generations, system, few, seeds, batch_seeds=True, facets=facets
            )
