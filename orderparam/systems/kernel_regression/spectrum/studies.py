"""The figures of learning curves from a spectrum: overfitting, power laws, degrees on the sphere,
and a ridge that is not uniform."""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray

from orderparam.comparison import Curve, study
from orderparam.kernels import Spectrum, finite_rank, power_law
from orderparam.networks.fully_connected import fully_connected
from orderparam.plotting import Panel, curve, horizontal, vertical
from orderparam.systems.kernel_regression.learning_curve import LearningCurve, MeasuredLearningCurve
from orderparam.systems.kernel_regression.spectrum.experiment import (
    gaussian_design,
    heteroscedastic_design,
    sphere_regression,
)
from orderparam.systems.kernel_regression.spectrum.local_ridge import heteroscedastic
from orderparam.systems.kernel_regression.spectrum.model import (
    HeteroscedasticRegression,
    KernelRegression,
    SphereRegression,
)
from orderparam.systems.kernel_regression.spectrum.power_laws import ScalingRegime, scaling_law
from orderparam.systems.kernel_regression.spectrum.theory import (
    optimal_temperature,
    self_consistent,
    self_consistent_by_degree,
)

# ------------------------------------------------------------------------------------------------
# Figures of overfitting, of the tails of a spectrum that make it harmless, and of the exponents of
# learning curves.


@study(
    "double-descent-finite-rank",
    title=(
        "At ridge 0.01 the test error peaks where examples equal the rank of the kernel; ridges "
        "from 0.1 on remove the peak"
    ),
    source="Canatar, Bordelon, Pehlevan 2021",
    panels=lambda p: [
        Panel(
            "n_train",
            "test_error",
            facet="temperature",
            log="xy",
            reference=[vertical(p["rank"], "rank")],
        ),
    ],
    caption="""
        A kernel with {rank} modes of eigenvalue 1/{rank}, total target power 1, label noise
        {noise}, ridge $T$; measured on Gaussian features. Self-consistent: the theory, in which the
        part that is not learned adds to the ridge. In theory $T$ = {noise} is the best ridge at
        every number $n$ of examples.
    """,
    seconds=(25, 300),
    observables=("test_error", "train_error"),
    gallery={"seeds": 100},
    full={"seeds": 1000},
)
def double_descent_finite_rank(
    rank: int = 50,
    noise: float = 0.25,
    temperatures: tuple[float, ...] = (0.01, 0.1, 0.25),
    n_train: tuple[int, ...] = (10, 20, 30, 40, 50, 60, 80, 120, 200),
    seeds: int = 60,
) -> Iterator[Curve]:
    for temperature in temperatures:
        system = KernelRegression(finite_rank(rank, 1 / rank), 10, temperature, noise)
        grid, facets = {"n_train": np.geomspace(5, max(n_train), 80)}, {"temperature": temperature}
        yield Curve("self-consistent", self_consistent, system, grid, facets=facets)
        yield Curve(
            "measured",
            gaussian_design,
            system,
            {"n_train": n_train},
            seeds,
            batch_seeds=True,
            facets=facets,
        )


def _tail_panels(p: Mapping[str, Any]) -> list[Panel]:
    words = {
        weight: f"tail of weight $c$ = {weight:g}" if weight else "no tail"
        for weight in p["weights"]
    }
    words |= {
        "tail": "many tiny modes of total weight $c$",
        "ridge": "a ridge $T = c$ in their place",
    }
    examples = ("training examples $n$", _aside)
    common: dict[str, Any] = {"facet": "weight", "by": "with", "log": "xy", "text": words}
    return [
        Panel(
            examples,
            "test_error",
            reference=[vertical(p["rank"], "rank")],
            ylim=(0.06, 40),
            **common,
        ),
        Panel(examples, "train_error", reference=[vertical(p["rank"])], **common),
    ]


def _aside(data: xr.Dataset) -> xr.DataArray:
    """The numbers of examples; those of measurements with a ridge are shifted, so that they hide no
    others."""
    shifted = data.attrs["kind"] == "experiment" and data.attrs["facets"]["with"] == "ridge"
    return data["n_train"] * (1.12 if shifted else 1.0)


@study(
    "benign-tail",
    title="Many tiny modes act as a ridge: noise is interpolated without an interpolation peak",
    source="Canatar, Bordelon, Pehlevan 2021; Howard et al. 2024; Bartlett, Long, Lugosi, Tsigler "
    "2020",
    panels=_tail_panels,
    caption="""
        {rank} modes of eigenvalue 1/{rank} with total target power 1, label noise {noise}. Blue:
        {tail_modes} further modes without target power (tail), whose eigenvalues sum to $c$, at the
        ridge $T$ = {temperature}. Orange: the ridge $T = c$ without a tail; its marks are shifted
        to the right by 12 %. Measured on Gaussian features. Without a tail there is no measurement
        at $n$ = {rank}, where the mean error does not exist. With the tail the noisy labels are
        fitted exactly, and the test error equals that with the ridge $T = c$ up to terms of order
        $n$/(tail modes), which are seen at the largest $n$.
    """,
    seconds=(60, 1200),
    observables=("test_error", "train_error"),
    gallery={"seeds": 100},
    full={"tail_modes": 20_000, "seeds": 400},
)
def benign_tail(
    rank: int = 50,
    noise: float = 0.25,
    weights: tuple[float, ...] = (0.0, 0.05, 0.5),
    tail_modes: int = 4000,
    temperature: float = 1e-8,
    n_train: tuple[int, ...] = (10, 20, 35, 50, 70, 100, 200),
    seeds: int = 40,
) -> Iterator[Curve]:
    grid = {"n_train": np.geomspace(min(n_train), max(n_train), 80)}
    for weight in weights:
        counts = np.array([rank, tail_modes if weight else 0])
        tail = Spectrum(np.array([1 / rank, weight / tail_modes]), np.array([1.0, 0.0]), counts)
        systems = {"tail": KernelRegression(tail, 10, temperature, noise)}
        if weight:
            systems["ridge"] = KernelRegression(finite_rank(rank, 1 / rank), 10, weight, noise)
        sizes = {"n_train": n_train if weight else tuple(size for size in n_train if size != rank)}
        for name, system in systems.items():
            facets = {"weight": weight, "with": name}
            yield Curve("self-consistent", self_consistent, system, grid, facets=facets)
            yield Curve("measured", gaussian_design, system, sizes, seeds, facets=facets)


BEST = "best ridge"


def predicted(system: KernelRegression, *, exponent: float | None) -> LearningCurve:
    return self_consistent(_at_ridge(system, exponent))


def measured(
    system: KernelRegression, key: PRNGKeyArray, *, exponent: float | None
) -> MeasuredLearningCurve:
    return gaussian_design(_at_ridge(system, exponent), key)


def _at_ridge(system: KernelRegression, exponent: float | None) -> KernelRegression:
    """The system with the ridge T = n n^-exponent, which is 0 for an infinite exponent.

    If `exponent` is None, T is the ridge of smallest test error in the self-consistent theory.
    """
    if exponent is None:
        return system.with_(temperature=optimal_temperature(system).temperature)
    return system.with_(
        temperature=0.0 * system.n_train
        if math.isinf(exponent)
        else system.n_train ** (1 - exponent)
    )


def _regimes(p: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Ridge exponent and label noise of each regime, by its name."""
    levels = {"no noise": 0.0, "noise": p["noise"]}
    return {
        f"ridge $l$ = {l:g}, {name}": (l, noise)
        for l in p["ridge_exponents"]
        for name, noise in levels.items()
    }


def _local_slope(data: xr.Dataset) -> xr.DataArray:
    error = data["test_error"]
    along = error.get_axis_num("n_train")
    return error.copy(data=np.gradient(np.log(error), np.log(data["n_train"]), axis=along))


def _test_error(law: Callable[..., ScalingRegime], n: np.ndarray) -> Any:
    return law(n).test_error


def _regime_panels(p: Mapping[str, Any]) -> list[Panel]:
    panels = []
    for regime, (exponent, noise) in _regimes(p).items():
        law = partial(
            scaling_law,
            capacity=p["capacity"],
            source=p["source"],
            noise=noise,
            ridge_exponent=exponent,
        )
        end = law(np.array([p["largest"]]))
        level = float(end.test_error[0])
        power = f"$n^{{{-float(end.exponent):.3g}}}$" if end.exponent > 0 else f"{level:.3g}"
        panels.append(
            Panel(
                "n_train",
                "test_error",
                where={"regime": regime},
                log="xy",
                title=regime,
                ylabel="excess error",
                reference=[curve(partial(_test_error, law), power)],
                ylim=None if end.exponent > 0 else (level / 4, 4 * level),
            )
        )
    rate = 2 * p["capacity"] * min(p["source"], 1)
    return [
        *panels,
        Panel(
            "n_train",
            "test_error",
            where={"regime": BEST},
            log="xy",
            title=BEST,
            ylabel="excess error",
        ),
        Panel(
            "n_train",
            ("local slope", _local_slope),
            where={"regime": BEST},
            log="x",
            title=BEST,
            ylim=(-1.2 * rate, None),
            reference=[horizontal(-rate, "noiseless"), horizontal(-rate / (1 + rate), "noisy")],
        ),
    ]


@study(
    "kernel-scaling-regimes",
    title="With power-law spectrum and target the excess error follows the theory in four regimes; "
    "at the best ridge its power changes where the noise takes over",
    source="Caponnetto, De Vito 2007; Spigler, Geiger, Wyart 2020; Cui, Loureiro, Krzakala, "
    "Zdeborova 2021",
    panels=_regime_panels,
    columns=3,
    caption=(
        r"Eigenvalues $\lambda_k = k^{{-\alpha}}$, target power $y_k^2 = k^{{-1-2r\alpha}}$, "
        r"$\alpha$ = {capacity}, $r$ = {source}; ridge $T = n\,n^{{-l}}$. Excess error: squared "
        r"error against targets without noise. The variance of the label noise is {noise}, or "
        r"{small_noise} at the best ridge. Dotted: power laws for large $n$. Last panel: $d\ln$ "
        r"error$/d\ln n$, measured from neighbouring marks. Measured on {modes} Gaussian features;"
        r" the other modes are their tail. At the smallest sizes only a few modes are learned, "
        r"while the theory is exact for many. The training sets of one size are the same in all "
        r"panels."
    ),
    seconds=(70, 900),
    explained="Two points are beyond three errors, both of 16 examples with no noise or "
    "little, 19 % below the theory. The errors of such small training sets are skewed, and "
    "24 of them are too few for a mean and its error: in a control of 600 other training sets of "
    "16 examples (ridge l = 3, no noise) the mean is 4.7(1.9) % above the theory. From 32 examples "
    "on the points are within 10 % and 2.6 errors.",
    gallery={
        "n_train": (16, 32, 64, 128, 256, 512, 1024, 2048),
        "modes": 12_000,
        "largest": 1e5,
        "seeds": 24,
    },
    full={"n_train": (16, 32, 64, 128, 256, 512, 1024), "modes": 20_000, "seeds": 50},
)
def kernel_scaling_regimes(
    capacity: float = 1.5,
    source: float = 0.5,
    ridge_exponents: tuple[float, ...] = (1.0, 3.0),
    noise: float = 0.5,
    small_noise: float = 1e-3,
    n_train: tuple[int, ...] = (16, 32, 64, 128, 256),
    modes: int = 4000,
    largest: float = 1e6,
    seeds: int = 20,
) -> Iterator[Curve]:
    small, large = ridge_exponents
    if not 0 < small < capacity < large:
        raise ValueError(
            f"ridge_exponents = {ridge_exponents}: one must be below and one above the capacity, "
            f"{capacity}"
        )
    infinite = power_law(capacity, source)
    rest, k = power_law(capacity, source, modes), np.arange(1.0, modes + 1)
    resolved = Spectrum(
        k**-capacity, k ** (-1 - 2 * source * capacity), tail=rest.tail, tail_power=rest.tail_power
    )
    grid = {"n_train": np.geomspace(min(n_train), largest, 60)}

    regimes = _regimes({"ridge_exponents": ridge_exponents, "noise": noise})
    for regime, (exponent, level) in {BEST: (None, small_noise), **regimes}.items():
        smooth, design = (
            KernelRegression(infinite, 10, 0.0, level),
            KernelRegression(resolved, 10, 0.0, level),
        )
        theory, experiment = (partial(verb, exponent=exponent) for verb in (predicted, measured))
        yield Curve("self-consistent", theory, smooth, grid, facets={"regime": regime})
        yield Curve(
            "measured", experiment, design, {"n_train": n_train}, seeds, facets={"regime": regime}
        )


# ------------------------------------------------------------------------------------------------
# Figure of a kernel on the sphere, which learns one polynomial degree after the other.

DEGREES = {1: "linear harmonics", 3: "cubic harmonics"}


def _panels(p: Mapping[str, Any]) -> list[Panel]:
    sizes = [
        vertical(lambda dim: dim, "$d$"),
        vertical(lambda dim: dim * (dim - 1) * (dim + 4) / 6, "$N_3$"),
    ]
    return [
        Panel(
            "n_train",
            "test_error",
            facet="input_dim",
            log="xy",
            reference=[*sizes, horizontal(p["cubic_power"])],
        ),
        Panel(
            "n_train",
            "learnability",
            facet="input_dim",
            by="degree",
            where={"degree": tuple(DEGREES)},
            log="x",
            reference=sizes,
            text=dict(enumerate(DEGREES.values())),
        ),
    ]


@study(
    "staircase-gp",
    title=(
        "Regression on the sphere learns one polynomial degree after the other, each at about as "
        "many examples as it has harmonics"
    ),
    source="Bordelon, Canatar, Pehlevan 2020; Canatar, Bordelon, Pehlevan 2021; Ringel et al. 2025",
    panels=_panels,
    caption=(
        "Kernel of one hidden layer of {activation} units; inputs are uniform on the "
        "sphere in $d$ dimensions. The target is a linear harmonic plus a cubic harmonic of "
        "power {cubic_power} (horizontal line); ridge $T$ = {temperature}. Learnability: mean "
        "over all harmonics of a degree. Vertical lines: numbers of linear and of cubic "
        "harmonics, $d$ and $N_3 = d(d-1)(d+4)/6$. In few dimensions cubic harmonics are few, and "
        "the smallest errors lie above the theory."
    ),
    seconds=(60, 1800),
    explained=(
        "The theory assumes many harmonics of each degree. At d = 7 errors below 2 % of the "
        "target's power from 128 examples on are 22 to 59 % above it. Control in size: at d = 14, "
        "with 7 times as many cubic harmonics, errors are within 9 % and 1.5 standard errors, the "
        "one of 0.8 % within 1 %."
    ),
    gallery={"seeds": 64},
    full={
        "input_dims": (10, 20),
        "n_train": (5, 10, 20, 40, 100, 200, 500, 1000, 2000, 5000, 10_000),
        "max_degree": 15,
        "seeds": 10,
    },
)
def staircase_gp(
    input_dims: tuple[int, ...] = (7, 14),
    activation: str = "erf",
    cubic_power: float = 0.2,
    temperature: float = 1e-4,
    n_train: tuple[int, ...] = (4, 8, 16, 32, 64, 128, 256, 512, 1024),
    max_degree: int = 9,
    seeds: int = 8,
) -> Iterator[Curve]:
    architecture = fully_connected(1, None, activation)
    power = np.array([0, 1 - cubic_power, 0, cubic_power])
    grid = {"n_train": np.geomspace(min(n_train), 2 * max(n_train), 80)}
    for dim in input_dims:
        system = SphereRegression.from_architecture(
            architecture, dim, power, 10, temperature, max_degree=max_degree
        )
        facets = {"input_dim": dim}
        yield Curve("self-consistent", self_consistent_by_degree, system, grid, facets=facets)
        yield Curve(
            "measured", sphere_regression, system, {"n_train": n_train}, seeds, facets=facets
        )


# ------------------------------------------------------------------------------------------------
# Figure of a ridge that depends on the input: its uniform mean predicts another curve.

_LOCAL = "ridge $T(x)$"
_PER_COPY = "examples per copy $n/m$", lambda data: data["n_train"] / data.attrs["facets"]["copies"]


@study(
    "patchy-ridge",
    title="A ridge that depends on the input does not act like its mean",
    source="Howard et al. 2024; solved for this package",
    panels=[
        Panel(_PER_COPY, "test_error", by="copies", log="xy"),
        Panel(
            _PER_COPY,
            "test_error",
            by="copies",
            log="x",
            ratio_to=_LOCAL,
            ylabel="measured / theory",
            where={"label": (_LOCAL, "measured")},
        ),
    ],
    caption=(
        "{rank} eigenvalues $1/(mk)$, $k$ = 1, 2, ..., with $m$ modes (copies) each; all modes "
        "together have the target power 1. The ridge $T(x)$ is {low} for half of the inputs and"
        " {high} for the others. In theory the curves for all $m$ coincide; finite-size effects"
        " decrease with $m$. Measured on Gaussian features."
    ),
    seconds=(20, 600),
    observables=("test_error", "train_error"),
    explained=(
        "The numbers of modes and examples are finite: where the error falls steeply, the "
        "measured error is up to 25 % above the theory with one copy of each mode, and up to 8 "
        "% above it with four copies."
    ),
    full={"copies": (1, 2, 4, 8), "seeds": 4000},
)
def patchy_ridge(
    rank: int = 20,
    low: float = 0.051,
    high: float = 1.951,
    copies: tuple[int, ...] = (1, 4),
    n_train: tuple[int, ...] = (10, 20, 40, 80, 160),
    seeds: int = 1000,
) -> Iterator[Curve]:
    """Curves of theory and experiment; `n_train` is the number of examples per copy. `seeds` is the
    number of runs of the smallest system. A system with m copies fluctuates less and has fewer runs
    in proportion."""
    halves, extra = jnp.array([0.5, 0.5]), jnp.array([0.0, high - low])
    line = sorted({*np.geomspace(min(n_train), max(n_train), 60), *map(float, n_train)})

    def spectrum(m: int) -> Spectrum:
        return Spectrum(
            1 / (m * np.arange(1.0, rank + 1)), np.full(rank, 1 / rank), np.full(rank, float(m))
        )

    for m in copies:
        patchy = HeteroscedasticRegression(
            spectrum(m),
            10.0,
            low,
            weights=halves,
            extra_temperature=extra,
            extra_noise=jnp.zeros(2),
        )
        grid, measured = {"n_train": [m * n for n in line]}, {"n_train": [m * n for n in n_train]}
        facets = {"copies": m}
        yield Curve(_LOCAL, heteroscedastic, patchy, grid, facets=facets)
        yield Curve(
            "measured",
            heteroscedastic_design,
            patchy,
            measured,
            max(4, seeds // m),
            batch_seeds=True,
            facets=facets,
        )
    uniform = KernelRegression(spectrum(copies[0]), 10.0, (low + high) / 2)
    mean = {"n_train": [copies[0] * n for n in line]}
    facets = {"copies": copies[0]}
    yield Curve(
        "its mean as a uniform ridge", self_consistent, uniform, mean, facets=facets, baseline=True
    )
