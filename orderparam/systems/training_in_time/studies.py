"""The named figures of learning in time."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from orderparam.comparison import Curve, study
from orderparam.data import apply_task, centre, load, normalise
from orderparam.kernels.spectrum import Spectrum
from orderparam.networks.fully_connected import fully_connected
from orderparam.plotting import Panel, horizontal
from orderparam.systems.training_in_time.descent import spectral_descent_error
from orderparam.systems.training_in_time.experiment import (
    drawn_descent,
    drawn_flow,
    drawn_spectral_descent,
    trained_network,
)
from orderparam.systems.training_in_time.model import (
    FeatureTraining,
    IsotropicTraining,
    NetworkDescent,
    SpectralDescent,
)
from orderparam.systems.training_in_time.theory import (
    descent_error,
    frozen_kernel,
    gradient_flow_error,
    gradient_flow_train_error,
    stopping_time,
)


def _isotropic(modes: int) -> Spectrum:
    return Spectrum([1.0], [1.0], [modes])


def _power_law(modes: int) -> Spectrum:
    """Eigenvalues k^-1.2 and target power k^-1.8; every mode is a level of its own."""
    k = np.arange(1, modes + 1)
    power = k**-1.8
    return Spectrum(k**-1.2, power / power.sum())


_SPECTRA = {"isotropic": _isotropic, "power law": _power_law}
_STEP = ("step", lambda data: xr.DataArray(np.arange(data.sizes["step"]), dims=["step"]))


def _marked(data: xr.Dataset, values: xr.DataArray) -> xr.DataArray:
    """Values along the steps: all steps of a theory, for a line; about twelve of a measurement, for
    marks."""
    if "seed" not in data.dims:
        return values
    last = data.sizes["step"] - 1
    return values.isel(step=np.unique(np.geomspace(1, last, 13).round().astype(int)))


def _marked_of(data: xr.Dataset, name: str) -> xr.DataArray:
    return _marked(data, data[name])


_MARKED_STEP = ("step", lambda data: _marked(data, _STEP[1](data)))


@study(
    "early-stopping",
    title=(
        "In theory the error at the best stopping time is within 5 % "
        "of that of the best ridge, and smaller on a power law"
    ),
    source="Ali, Kolter, Tibshirani 2019 (arXiv:1810.10082); theory at all times derived here",
    panels=[
        Panel(
            "time",
            "test_error",
            facet="spectrum",
            by="noise",
            where={"quantity": "flow"},
            log="xy",
            xlabel="training time $t$",
            ylabel="test error",
        ),
        Panel(
            "noise",
            ("error at the best time / of the best ridge", lambda data: data["cost_of_stopping"]),
            facet="spectrum",
            where={"quantity": "best"},
            log="x",
            xlabel=r"label noise $\Delta$",
            reference=[horizontal(1, "")],
        ),
    ],
    caption=r"""
        Linear regression on {modes} Gaussian features, {n_train} examples, gradient flow from zero;
        target power 1. Features are isotropic, or have eigenvalues $k^{{-1.2}}$ and target power
        $\propto k^{{-1.8}}$. Above: theory for large $n$, and means over drawn training sets.
        Below: the smallest error in time divided by that of the best ridge (theory). For isotropic
        features the best ridge is Bayes-optimal, so that the ratio exceeds 1; with the power law
        stopping has the lower error.
    """,
    seconds=(40, 300),
    gallery={"modes": 600, "n_train": 450, "seeds": 48},
    full={"modes": 2000, "n_train": 1500, "seeds": 64},
)
def early_stopping(
    modes: int = 300,
    n_train: int = 225,
    noises: tuple[float, ...] = (0.02, 0.2, 1.0),
    times: tuple[float, ...] = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0),
    seeds: int = 16,
) -> Iterator[Curve]:
    for name, spectrum in _SPECTRA.items():
        system = FeatureTraining(spectrum(modes), n_train, times[0], noises[0])
        flow = {"spectrum": name, "quantity": "flow"}
        grid = {"time": np.geomspace(min(times) / 2, 2 * max(times), 60), "noise": noises}
        yield Curve("theory", gradient_flow_error, system, grid, facets=flow)
        measured = {"time": times, "noise": noises}
        yield Curve(
            "drawn data", drawn_flow, system, measured, seeds, batch_seeds=True, facets=flow
        )
        best = {"spectrum": name, "quantity": "best"}
        levels = {"noise": np.geomspace(min(noises) / 2, 2 * max(noises), 20)}
        yield Curve("theory", stopping_time, system, levels, facets=best)


@study(
    "train-error-in-time",
    title=(
        "The training error of gradient flow follows the theory within 2.5 % up to t = 10, and up "
        "to t = 100 for a power law"
    ),
    source="derived here; Ali, Kolter, Tibshirani 2019 (arXiv:1810.10082)",
    panels=[
        Panel(
            "time",
            "train_error",
            facet="spectrum",
            by="noise",
            log="xy",
            xlabel="training time $t$",
            ylabel="training error",
            share_y=False,
        ),
        Panel(
            "time",
            "train_error",
            facet="spectrum",
            by="noise",
            log="x",
            ratio_to="theory",
            xlabel="training time $t$",
            ylabel="training error / theory",
            share_y=False,
        ),
    ],
    caption=r"""
        Linear regression on {modes} Gaussian features and {n_train} examples with labels of noise
        variance $\Delta$ (colours), gradient flow from zero; all eigenvalues are equal (isotropic),
        or eigenvalues fall as $k^{{-1.2}}$ and the target power as $k^{{-1.8}}$ (power law). Mean
        squared error against the noisy labels; it tends to zero because there are more features
        than examples. At the latest times the smallest eigenvalue of a finite sample dominates the
        error of isotropic features, and few draws dominate the mean.
    """,
    seconds=(30, 200),
    observables=("train_error",),
    gallery={"modes": 600, "n_train": 450, "seeds": 48},
    full={"modes": 2000, "n_train": 1500, "seeds": 64},
)
def train_error_in_time(
    modes: int = 300,
    n_train: int = 225,
    noises: tuple[float, ...] = (0.02, 0.2, 1.0),
    times: tuple[float, ...] = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0),
    seeds: int = 16,
) -> Iterator[Curve]:
    for name, spectrum in _SPECTRA.items():
        system = FeatureTraining(spectrum(modes), n_train, times[0], noises[0])
        grid = {"time": np.geomspace(min(times) / 2, max(times), 60), "noise": noises}
        facets = {"spectrum": name}
        yield Curve("theory", gradient_flow_train_error, system, grid, facets=facets)
        measured = {"time": times, "noise": noises}
        yield Curve(
            "drawn data", drawn_flow, system, measured, seeds, batch_seeds=True, facets=facets
        )


@study(
    "grokking-in-time",
    title=(
        "Grokking in linear regression: the data are fitted first; the "
        "weaker the weight decay, the later the large start is forgotten"
    ),
    source="Levi, Beck, Bar-Sinai 2024 (arXiv:2310.16441); the theory with weight decay is derived "
    "here",
    panels=[
        Panel(
            "time",
            name,
            by="weight_decay",
            log="xy",
            xlabel="training time $t$",
            ylabel=label,
        )
        for name, label in (("train_error", "training error"), ("test_error", "test error"))
    ],
    columns=2,
    caption=r"""
        Linear regression on {modes} isotropic Gaussian features and {n_train} examples without
        label noise, gradient flow with weight decay $\lambda$ (colours) from large random weights,
        $|w_0|^2$ = {start}, and a target of power 1. Lines: theory for large $n$. Marks: drawn
        training sets. In directions orthogonal to all examples the weights of the start decay
        slowly; their share of the test error falls as $e^{{-2\lambda t}}$.
    """,
    seconds=(30, 200),
    observables=("train_error", "test_error"),
    gallery={"modes": 400, "n_train": 320, "seeds": 24},
    full={"modes": 1000, "n_train": 800, "seeds": 32},
)
def grokking_in_time(
    modes: int = 250,
    n_train: int = 200,
    start: float = 25.0,
    weight_decays: tuple[float, ...] = (1e-3, 1e-2, 1e-1),
    times: tuple[float, ...] = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0),
    seeds: int = 16,
) -> Iterator[Curve]:
    system = FeatureTraining(_isotropic(modes), n_train, times[0], start=start / modes)
    line = {"time": np.geomspace(min(times), max(times), 60), "weight_decay": weight_decays}
    for theory in (gradient_flow_error, gradient_flow_train_error):
        name = theory.fn.__name__.replace("_", " ")
        yield Curve(name, theory, system, line)
    measured = {"time": times, "weight_decay": weight_decays}
    yield Curve("drawn data", drawn_flow, system, measured, seeds, batch_seeds=True)


@study(
    "momentum-in-time",
    title=(
        "At the same learning rate momentum 1/2 reaches nearly the same lowest test "
        "error in half the steps; momentum 0.9 overshoots"
    ),
    source="derived here; Paquette, Lee, Pedregosa, Paquette 2021 (arXiv:2102.04396)",
    panels=[
        Panel(
            _MARKED_STEP,
            (label, partial(_marked_of, name=name)),
            facet="spectrum",
            by="momentum",
            log="xy",
            xlim=(1, None),
        )
        for name, label in (("test_error", "test error"), ("train_error", "training error"))
    ],
    columns=2,
    caption=r"""
        Linear regression on $d$ = {input_dim} Gaussian features, $n$ = {sample_ratio} $d$, label
        noise $\Delta$ = {noise}, heavy ball with momentum $\beta$ (colours). Isotropic features
        with learning rate {learning_rate}: integrals over the Marchenko-Pastur law. Eigenvalues
        $k^{{-1.2}}$ and target power $\propto k^{{-1.8}}$ with learning rate {power_law_rate}:
        contour integrals around the spectrum. Marks: drawn training sets, every step taken.
    """,
    seconds=(15, 120),
    observables=("test_error", "train_error"),
    gallery={"input_dim": 600, "seeds": 64},
    full={"input_dim": 2000, "seeds": 64},
)
def momentum_in_time(
    sample_ratio: float = 1.25,
    noise: float = 0.2,
    learning_rate: float = 0.2,
    power_law_rate: float = 1.0,
    momenta: tuple[float, ...] = (0.0, 0.5, 0.9),
    steps: int = 200,
    input_dim: int = 200,
    seeds: int = 16,
) -> Iterator[Curve]:
    system = IsotropicTraining(
        sample_ratio, learning_rate, noise=noise, input_dim=input_dim, steps=steps
    )
    falling = SpectralDescent(
        _power_law(input_dim),
        round(sample_ratio * input_dim),
        power_law_rate,
        noise=noise,
        steps=steps,
    )
    over = {"momentum": momenta}
    for name, theory, experiment, one in (
        ("isotropic", descent_error, drawn_descent, system),
        ("power law", spectral_descent_error, drawn_spectral_descent, falling),
    ):
        facets = {"spectrum": name}
        yield Curve("theory", theory, one, over, facets=facets)
        yield Curve("drawn data", experiment, one, over, seeds, batch_seeds=True, facets=facets)


def _digits(dataset: str, task: str, n_train: int, n_test: int) -> tuple[Any, ...]:
    """Normalised training and test images with their targets. They are the first images after a
    shuffle that is the same in every run.
    """
    pool, targets = apply_task(load(dataset), task)
    pool = normalise(centre(pool))
    order = np.random.default_rng(0).permutation(len(targets.values))[: n_train + n_test]
    x = np.asarray(pool.inputs).reshape(len(pool.inputs), -1)[order]
    y = np.asarray(targets.values, float).reshape(-1)[order]
    return x[:n_train], y[:n_train], x[n_train:], y[n_train:]


@study(
    "training-time",
    title=(
        "Networks of 2048 units follow the frozen kernel within 3 % for 60 steps; narrower "
        "ones deviate more"
    ),
    source="Jacot, Gabriel, Hongler 2018; Lee et al. 2019 (arXiv:1902.06720)",
    panels=[
        Panel(_STEP, "test_error", by="width", xlabel="step", ylabel="test error"),
        *(
            Panel(
                _STEP,
                y,
                by="width",
                ratio_to="frozen kernel",
                xlabel="step",
                ylabel=f"{name} error / frozen kernel",
            )
            for y, name in (("test_error", "test"), ("train_error", "training"))
        ),
    ],
    columns=3,
    caption=r"""
        {dataset}, {task}: {n_train} training and {n_test} test images; {activation} networks, depth
        {depth}, $N$ units in a layer (colours), antisymmetric start, learning rate {learning_rate}
        on the summed loss. Thin lines: mean of the networks; bands: standard errors. Thick yellow
        line at the left: frozen kernel, training with the tangent kernel of infinite width.
    """,
    seconds=(60, 900),
    observables=("test_error", "train_error"),
    explained=(
        "The wider a network is, the less it differs from the frozen kernel: the test errors "
        "after 60 steps differ by 14, 7, 2 and 0.4 % with 32, 128, 512 and 2,048 units, the "
        "training errors by 20, 16, 6 and 3 %."
    ),
    gallery={"widths": (32, 128, 512, 2048), "seeds": 16, "n_train": 100, "n_test": 500},
    full={
        "dataset": "mnist",
        "widths": (32, 128, 512, 2048, 8192),
        "seeds": 32,
        "n_train": 300,
        "n_test": 2000,
    },
)
def training_time(
    dataset: str = "digits",
    task: str = "even-odd",
    activation: str = "relu",
    depth: int = 1,
    n_train: int = 60,
    n_test: int = 300,
    learning_rate: float = 0.04,
    widths: tuple[int, ...] = (32, 128, 512),
    steps: int = 60,
    seeds: int = 16,
) -> Iterator[Curve]:
    system = NetworkDescent(
        *_digits(dataset, task, n_train, n_test),
        fully_connected(depth, None, activation),
        learning_rate=learning_rate,
        steps=steps,
    )
    yield Curve("frozen kernel", frozen_kernel, system, {})
    yield Curve("network", trained_network, system, {"width": widths}, seeds, batch_seeds=True)


@study(
    "kernel-drift",
    title=(
        "From 128 units on the tangent kernel of erf networks changes in proportion to 1/N; that "
        "of relu networks on digits falls more slowly from 256 units on"
    ),
    source="Jacot, Gabriel, Hongler 2018; Lee et al. 2019 (arXiv:1902.06720)",
    panels=[
        Panel(
            "width",
            (
                r"$N\, |\Theta_T - \Theta_0| / |\Theta_0|$",
                lambda data: data["kernel_drift"] * data["width"],
            ),
            facet="dataset",
            by="activation",
            log="x",
            xlabel="width $N$",
            ylim=(0, None),
        )
    ],
    caption="""
        Images, {task}: {n_train} in training, one hidden layer, antisymmetric start, {steps} steps
        of gradient descent with learning rate {learning_rate} on the summed loss. Shown is $N$
        times the change (Frobenius norm) of the tangent kernel on the training set over all steps;
        it is constant where the change is of order $1/N$. Training switches a share of about
        $N^{{-1/2}}$ of the relu units on or off on a given image. Their contributions have random
        signs, which is estimated to add a term $N^{{-3/4}}$ to the term $1/N$. Erf networks of 32
        units on MNIST lie some 12 %, three standard errors, below the level of wider ones.
    """,
    seconds=(45, 600),
    observables=("kernel_drift",),
    gallery={
        "widths": (32, 64, 128, 256, 512, 1024, 2048),
        "mnist_widths": (32, 128, 512),
        "seeds": 24,
        "n_train": 60,
    },
    full={
        "widths": (32, 64, 128, 256, 512, 1024, 2048, 4096),
        "mnist_widths": (32, 64, 128, 256, 512, 1024, 2048),
        "seeds": 32,
    },
)
def kernel_drift(
    task: str = "even-odd",
    activations: tuple[str, ...] = ("erf", "relu"),
    n_train: int = 30,
    learning_rate: float = 0.04,
    widths: tuple[int, ...] = (32, 64, 128, 256, 512),
    mnist_widths: tuple[int, ...] = (),
    steps: int = 60,
    seeds: int = 16,
) -> Iterator[Curve]:
    for dataset, sizes in (("digits", widths), ("mnist", mnist_widths)):
        if not sizes:
            continue
        data = _digits(dataset, task, n_train, 10)
        for activation in activations:
            system = NetworkDescent(
                *data,
                fully_connected(1, None, activation),
                learning_rate=learning_rate,
                steps=steps,
            )
            yield Curve(
                "network",
                trained_network,
                system,
                {"width": sizes},
                seeds,
                # all runs of one point at once take 5 GB on larger images
                batch_seeds=dataset == "digits",
                facets={"activation": activation, "dataset": dataset},
            )
