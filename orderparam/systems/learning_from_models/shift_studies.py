"""The named figure of a shift of the law of real inputs."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from orderparam.comparison import Comparison, Curve, between, study
from orderparam.data import load
from orderparam.networks.fully_connected import fully_connected
from orderparam.plotting import Freehand, Panel
from orderparam.plotting.style import ink
from orderparam.systems.learning_from_models.experiment import drawn_shift
from orderparam.systems.learning_from_models.model import ShiftedPool
from orderparam.systems.learning_from_models.theory import shifted_errors

LAWS = ("as in training", "with noise", "low contrast", "ones and eights")
IMAGES = "drawn images"


def shifted_digits(
    images: int, noise: float, contrast: float, n_train: int, ridge: float
) -> ShiftedPool:
    """The kernel of a network with one hidden layer of erf units on a pool of digits, tested on the
    other images under the four laws LAWS and on each of the ten digits; the target tells even from
    odd digits.

    noise: standard deviation, in units of that of a pixel in the mean over pixels and images.
    contrast: factor on all pixels.
    """
    digits = load("digits")
    random = np.random.default_rng(0)
    order = random.permutation(len(digits.labels))
    pixels, labels = digits.inputs[order], digits.labels[order]
    pool, new = pixels[:images], pixels[images:]
    middle = pool.mean(axis=0)
    scale = np.sqrt(np.mean((pool - middle) ** 2))
    noisy = new + noise * scale * random.standard_normal(new.shape)
    inputs = (np.concatenate([pool, new, noisy, contrast * new]) - middle) / scale
    kernel = fully_connected(1, None, "erf").kernel(jnp.asarray(inputs)).nngp
    classes, rows = labels[images:], len(new)
    each = np.array([classes == digit for digit in range(10)], float)
    laws = np.zeros((4 + 10, 3 * rows))
    for law in range(3):
        laws[law, law * rows : (law + 1) * rows] = 1
    laws[3, :rows] = each[1] + each[8]
    laws[4:, :rows] = each
    target = 1.0 - 2.0 * (labels % 2)
    return ShiftedPool.from_kernels(
        kernel[:images, :images],
        kernel[images:, :images],
        target[:images],
        np.tile(target[images:], 3),
        laws / laws.sum(axis=1, keepdims=True),
        n_train=n_train,
        ridge=ridge,
    )


def draw_digits(axes: Any, comparison: Comparison) -> None:
    """Draws the error on each digit: marks for the measurement, dashes for the theory."""
    for data in comparison.datasets.values():
        if data.attrs["facets"]["panel"] != "digits" or data.attrs["label"] not in (
            "theory",
            IMAGES,
        ):
            continue
        values = data["test_error"].isel(law=slice(4, None))
        if "seed" not in values.dims:
            axes.plot(range(10), values, "_", color=ink(), markersize=14)
            continue
        error = values.std("seed", ddof=1) / np.sqrt(values.sizes["seed"])
        axes.errorbar(range(10), values.mean("seed"), error, fmt="o", color=ink())
    axes.set(xlabel="digit", ylabel="test error", ylim=(0, None), xticks=range(10))


SHOWN = {"law": slice(0, 4), "label": ("theory", IMAGES)}
NAMES = dict(enumerate(LAWS))


@study(
    "covariate-shift-digits",
    title=(
        "Under four laws of test images errors on digits at ridge 0.1 are within 4 % of the "
        "theory, but for one point; noise moves the best ridge to between 0.1 and 3"
    ),
    source="derived here; Canatar, Bordelon, Pehlevan 2021 for other laws of tests",
    panels=[
        Panel(
            "n_train",
            "test_error",
            by="law",
            where={"panel": "examples", **SHOWN},
            log="xy",
            text=NAMES,
        ),
        Panel(
            "ridge",
            "test_error",
            by="law",
            where={"panel": "ridge", **SHOWN},
            log="xy",
            text=NAMES,
        ),
        Panel(
            "n_train",
            "test_error",
            by="law",
            where={"panel": "examples", **SHOWN},
            log="x",
            ratio_to="theory",
            text=NAMES,
        ),
        Freehand(draw_digits),
    ],
    columns=2,
    caption=r"""
        Regression with the kernel of a network of erf units on $n$ digits drawn with replacement
        from {images} images, even against odd. The other images are the test: unchanged, with pixel
        noise of a standard deviation {noise} times that of the pixels, with all pixels multiplied
        by {contrast} (low contrast), and only the ones and eights. Left: ridge $T$ = {ridge}.
        Right: {examples} examples; below also $T$ = {ridge}, on images of one digit (dashes:
        theory). Theory: Gaussian features. Digits are not Gaussian: errors under the four laws lie
        above it, most at the smallest ridges, and those on single digits 13 % below to 11 % above
        it; drawn Gaussian features (not shown) agree with it.
    """,
    seconds=(60, 300),
    gallery={"seeds": 64},
    full={"seeds": 256},
    explained=(
        "The features of digits are not Gaussian. At ridges from 0.1 on, errors under the four "
        "laws exceed the theory by at most 4 % (once by 8(3) %), at smaller ridges by up to 17 %; "
        "of single digits, zeros and sixes at ridge 0.1 lie 13 % below, zeros with 50 examples 26 "
        "%. Gaussian features of the same covariance and truth, the control, differ from the "
        "theory by no more than chance."
    ),
)
def covariate_shift_digits(
    n_train: tuple[int, ...] = (25, 50, 100, 200, 400),
    ridge: float = 0.1,
    ridges: tuple[float, ...] = (0.001, 0.01, 0.1, 0.3, 1.0, 3.0, 10.0),
    examples: int = 200,
    noise: float = 1.0,
    contrast: float = 0.6,
    images: int = 900,
    seeds: int = 16,
) -> Iterator[Curve]:
    system = shifted_digits(images, noise, contrast, examples, ridge)
    for panel, over, line in (
        ("examples", {"n_train": n_train}, {"n_train": between(n_train, 40)}),
        ("ridge", {"ridge": ridges}, {"ridge": between(ridges, 40)}),
        ("digits", {}, {}),
    ):
        facets = {"panel": panel}
        yield Curve("theory", shifted_errors, system, line, facets=facets)
        yield Curve(IMAGES, drawn_shift, system, over, seeds, batch_seeds=True, facets=facets)
        yield Curve(
            "Gaussian features",
            partial(drawn_shift, gaussian=True),
            system,
            over,
            seeds,
            batch_seeds=True,
            facets=facets,
        )
