"""Study of classifiers of images: networks of finite width, and the kernels of infinite width."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from orderparam.comparison import Curve, study
from orderparam.data.images import image_task
from orderparam.plotting import Panel
from orderparam.systems.trained_networks.classifiers.experiment import trained_classifier
from orderparam.systems.trained_networks.classifiers.model import Family, ImageArchitecture
from orderparam.systems.trained_networks.classifiers.theory import wide_classifier

FAMILIES: tuple[Family, ...] = (
    "fully connected",
    "locally connected",
    "convolutional",
)


def classified_images(data: str, n_train: int, n_test: int) -> tuple[np.ndarray, ...]:
    """Training and test images of 8 x 8 pixels, centred and normalised, with one-hot targets of
    mean zero. They are the same in every run."""
    x, y = image_task(data, "one-hot-zero-mean", n_train + n_test)
    if data == "cifar10":
        images = x.reshape(-1, 8, 4, 8, 4, 3).mean(axis=(2, 4))
        images /= np.sqrt(np.mean(images**2, axis=(1, 2, 3), keepdims=True))
    else:
        images = x.reshape(-1, 8, 8, 1)
    return images[:n_train], y[:n_train], images[n_train:], y[n_train:]


@study(
    "image-architectures",
    title=(
        "Trained networks have larger squared test errors than in the "
        "limit of infinite width, the less so the more channels they have"
    ),
    source="Novak et al. 2019; Lee et al. 2019 (arXiv:1902.06720)",
    panels=[
        Panel("channels", y, facet="family", log="x", xlabel="channels $N$", ylabel=label)
        for y, label in (("accuracy", "test accuracy"), ("test_error", "test error"))
    ],
    columns=3,
    caption=r"""
        Ten classes of {data} on 8 x 8 pixels, with {n_train} training and {n_test} test images. The
        networks have two hidden layers of $N$ relu units or channels: dense layers, or filters of 3
        x 3 pixels, at every second pixel in the first layer and at every pixel in the second, with
        a read-out of every pixel. Filters have the same weights at all pixels (convolutional) or
        not (locally connected). Marks: {seeds} networks at each point, trained on all weights by
        gradient descent until the training error is {level} of that at the start, with the outputs
        at the start subtracted. Lines: infinite width, by gradient flow of the tangent kernel
        (NTK), and by the posterior mean of the Gaussian process (NNGP) at the temperature of the
        same training error. They are the same for locally connected and convolutional networks.
    """,
    seconds=(90, 7200),
    observables=("test_error", "accuracy"),
    explained=(
        "The lines are those of infinite width. Test errors of networks lie above the tangent "
        "kernel's, less the more channels they have. Most dense networks of 12 units do not reach "
        "the training error, as they have hardly more weights than targets: their point is the "
        "mean of the 6 of 16 that do."
    ),
    gallery={"n_train": 60, "n_test": 1000, "channels": (12, 24, 48), "seeds": 16},
    full={"n_train": 400, "n_test": 1000, "channels": (16, 64, 256), "seeds": 32},
)
def image_architectures(
    data: str = "digits",
    n_train: int = 60,
    n_test: int = 500,
    channels: tuple[int, ...] = (16, 32),
    level: float = 0.1,
    seeds: int = 4,
) -> Iterator[Curve]:
    images = classified_images(data, n_train, n_test)
    # Infinite width does not depend on the channels.
    ends = {"channels": (min(channels), max(channels))}
    for family in FAMILIES:
        system = ImageArchitecture(*images, family=family, level=level)
        facets = {"family": family}
        for label, kernel in (("infinite width, NTK", "ntk"), ("infinite width, NNGP", "nngp")):
            fn = partial(wide_classifier, kernel=kernel)
            yield Curve(label, fn, system, ends, facets=facets)
        yield Curve(
            "trained networks",
            trained_classifier,
            system,
            {"channels": channels},
            seeds,
            facets=facets,
        )
