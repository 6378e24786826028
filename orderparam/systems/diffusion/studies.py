"""The named figures of diffusion models."""

from collections.abc import Iterator
from functools import partial

import jax.numpy as jnp
import numpy as np

from orderparam.comparison import Curve, between, study
from orderparam.data import load
from orderparam.plotting import Panel, horizontal
from orderparam.systems.diffusion.experiment import (
    cloned_classes,
    drawn_weights,
    half_weight_time,
    returned_trajectories,
)
from orderparam.systems.diffusion.model import StoredData, StoredGaussians, TwoClasses
from orderparam.systems.diffusion.theory import data_times, own_weight, speciation

SOURCE = "Biroli, Bonnaire, de Bortoli, Mezard 2024 (arXiv:2402.18491)"

AFTER_SPECIATION = (
    r"time after the speciation time $t - t_S$",
    lambda data: data["time"] - data["speciation_time"],
)


@study(
    "diffusion-speciation",
    title="A backward trajectory chooses its class around the speciation time, in every dimension",
    source=SOURCE,
    panels=[
        Panel("time", "same_class", by="dimension"),
        Panel(AFTER_SPECIATION, "same_class", by="dimension"),
    ],
    columns=2,
    caption=r"""
        Two Gaussian classes of variance 1 in every direction with means $\pm\mu$, $|\mu|^2 = d$.
        Two backward trajectories with the exact score and independent noises start from each noisy
        example at the time $t$. The figure shows the share of pairs that end in the same class. The
        speciation time is half the logarithm of the largest eigenvalue of the covariance. Marks:
        {pairs} pairs for each of the runs, 100 steps.
    """,
    seconds=(60, 300),
    observables=("same_class",),
    gallery={"seeds": 16},
    full={"pairs": 20000, "seeds": 32},
)
def diffusion_speciation(
    dims: tuple[int, ...] = (16, 64, 256),
    delays: tuple[float, ...] = (-1.4, -0.7, -0.2, 0.2, 0.7, 1.4),
    pairs: int = 1000,
    seeds: int = 16,
) -> Iterator[Curve]:
    for dimension in dims:
        expected = np.log(1 + dimension) / 2
        times = [float(expected + delay) for delay in delays]
        system = TwoClasses.isotropic(dimension, times[0])
        facets = {"dimension": f"$d$ = {dimension}"}
        yield Curve("theory", speciation, system, {"time": between(times)}, facets=facets)
        yield Curve(
            "cloned trajectories",
            partial(cloned_classes, pairs=pairs),
            system,
            {"time": times},
            seeds,
            facets=facets,
        )


@study(
    "diffusion-collapse",
    title=(
        "At the collapse time a bit more than half of the backward trajectories end at their "
        "example, and ever fewer beyond it; more examples make this time smaller"
    ),
    source=f"{SOURCE}; the weight at finite size derived here",
    panels=[
        Panel("time", "own_weight", by="examples", log="x"),
        Panel(
            "time",
            "excess_entropy",
            by="examples",
            log="x",
            reference=[horizontal(0)],
            ylabel=r"(information $-\,\ln n$) / $d$",
        ),
    ],
    columns=2,
    caption=r"""
        The score of $n$ stored Gaussian examples in $d$ = {input_dim} dimensions. Left: mean weight
        of the original example in the score at a noisy example ("weights drawn"), and the share of
        backward trajectories that start there and end at it ("trajectories going back", {starts}
        noisy examples in each run); squares cover the circles. Right, theory alone: the mean
        information, in nats, that a noisy example contains about its original, less $\ln n$, over
        $d$. It is zero at the collapse time (criterion of the random energy model), where the score
        begins to depend on single examples.
    """,
    seconds=(90, 400),
    observables=("own_weight",),
    gallery={"seeds": 16},
    full={"stored": (50, 500, 5000, 20000), "starts": 1024, "seeds": 32},
)
def diffusion_collapse(
    input_dim: int = 20,
    stored: tuple[int, ...] = (50, 500, 5000),
    fractions: tuple[float, ...] = (0.5, 0.8, 1.0, 1.3, 1.8),
    starts: int = 256,
    seeds: int = 16,
) -> Iterator[Curve]:
    for count in stored:
        expected = np.log1p(1 / np.expm1(2 * np.log(count) / input_dim)) / 2
        times = [float(expected * fraction) for fraction in fractions]
        system = StoredGaussians(input_dim, count, times[0], starts=starts)
        facets = {"examples": f"$n$ = {count}"}
        line = {"time": between(times, 24)}
        yield Curve("theory", own_weight, system, line, facets=facets)
        over = {"time": times}
        yield Curve("weights drawn", drawn_weights, system, over, seeds, facets=facets)
        yield Curve(
            "trajectories going back",
            returned_trajectories,
            system,
            over,
            seeds,
            facets=facets,
        )


@study(
    "diffusion-digits",
    title=(
        "With many stored images the score of digits collapses on single "
        "images at smaller times than that of Gaussians of the same covariance"
    ),
    source=f"{SOURCE}, for real data",
    panels=[
        Panel("n_train", "collapse_time", by="data", log="x"),
        Panel("time", "same_class", by="data"),
    ],
    columns=2,
    caption=r"""
        Weights: mean weight of the original in the score at a noisy example. Trajectories:
        simulated from there back to time 0. Left: time at which the weight is 1/2 for $n$ stored
        images of scikit-learn's digits (mean variance 1), and for Gaussian data of the same
        covariance; line: the time at which the information of Gaussians about their original equals
        $\ln n$. Right: probability that two trajectories from one noisy example (clones) end in the
        same class, for the digits {first} and {second}. Dashed: exact score of Gaussian classes
        with their means and their common covariance. Marks: the score of {class_train} stored
        images, or of as many Gaussian examples; squares: from the weights of both classes,
        diamonds: from trajectories.
    """,
    seconds=(90, 400),
    observables=("collapse_time", "same_class"),
    gallery={"seeds": 16},
    full={"starts": 1024, "seeds": 32},
    explained=(
        "Left: the theory is that of a sharp collapse. With 61 pixels of unequal variance the "
        "collapse is not sharp: for Gaussians of the same covariance, the control, the weight is "
        "1/2 at times 5 to 8 % above it. Digits lie below these Gaussians by 1 % for 50 images "
        "and by 22 % for 1600, because they are not Gaussian. Right: the theory is that of an "
        "exact score. With the score of 300 Gaussian examples, the control, two clones end in "
        "the same class with a probability that is up to 6 % larger than with the exact score; "
        "with that of digits, up to 9 % larger."
    ),
)
def diffusion_digits(
    stored: tuple[int, ...] = (50, 100, 200, 400, 800, 1600),
    times: tuple[float, ...] = (0.5, 0.8, 1.1, 1.4, 1.8, 2.2),
    first: int = 3,
    second: int = 8,
    class_train: int = 300,
    starts: int = 256,
    seeds: int = 16,
) -> Iterator[Curve]:
    digits = load("digits")
    pool = StoredData.from_pool(digits.inputs, digits.labels, stored[0], times[0], starts=starts)
    line = {"n_train": [float(round(n)) for n in between(stored, 30)]}
    yield Curve("theory", data_times, pool, line)
    kept = np.isin(digits.labels, (first, second))
    two = StoredData.from_pool(
        digits.inputs[kept], digits.labels[kept], class_train, times[0], starts=starts
    )
    classes = two.two_classes(first, second)
    yield Curve("theory, two classes", speciation, classes, {"time": between(times)})

    covariance = np.cov(np.asarray(pool.examples).T, bias=True)
    variances = np.maximum(np.linalg.eigvalsh(covariance), 0)
    cases = {
        "digits": (pool, two),
        "Gaussians": (
            _gaussian(pool, np.zeros(len(variances)), variances),
            _gaussian(two, np.asarray(classes.mean), np.asarray(classes.variances)),
        ),
    }
    for name, (all_classes, two_classes) in cases.items():
        facets = {"data": name}
        counts = {"n_train": stored}
        yield Curve("weights drawn", half_weight_time, all_classes, counts, seeds, facets=facets)
        label = "weights drawn, two classes"
        yield Curve(label, drawn_weights, two_classes, {"time": times}, seeds, facets=facets)
    yield Curve(
        "trajectories, two classes",
        returned_trajectories,
        two,
        {"time": times},
        seeds,
        facets={"data": "digits"},
    )


def _gaussian(data: StoredData, mean: np.ndarray, variances: np.ndarray) -> StoredData:
    """A large pool of two Gaussian classes with the means +-mean, in all else like `data`."""
    rng = np.random.default_rng(0)
    labels = np.arange(10_000) % 2
    noise = rng.standard_normal((len(labels), len(mean))) * np.sqrt(variances)
    examples = np.where(labels == 0, 1, -1)[:, None] * mean + noise
    return data.with_(examples=jnp.asarray(examples), labels=jnp.asarray(labels, float))
