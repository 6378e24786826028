"""The study of when to stop the training of networks on images with flipped labels."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from orderparam.comparison import Curve, study
from orderparam.data import apply_task, centre, load, normalise
from orderparam.networks.fully_connected import fully_connected
from orderparam.plotting import Panel
from orderparam.systems.training_in_time.descent import pool_error
from orderparam.systems.training_in_time.experiment import drawn_pool_kernel, drawn_pool_network
from orderparam.systems.training_in_time.model import PoolDescent

_OF_SHARE: Mapping[str, Any] = {
    "by": "network",
    "log": "y",
    "xlabel": "share $p$ of flipped labels",
}


@study(
    "stopping-flipped-labels",
    title=(
        "From a tenth of flipped labels on theory predicts when networks should stop on digits; "
        "training on costs finite networks more than predicted, narrow ones most"
    ),
    source="Jacot, Gabriel, Hongler 2018; Ali, Kolter, Tibshirani 2019 (arXiv:1810.10082); theory "
    "derived here",
    panels=[
        Panel(
            "step",
            "test_error",
            by="flipped",
            where={"network": "infinite width"},
            log="xy",
            xlabel="step",
            ylabel="test error",
        ),
        Panel("flipped", "best_step", ylabel="best number of steps", **_OF_SHARE),
        Panel(
            "flipped",
            "cost_of_training_on",
            ylabel="error after the last step / smallest error",
            **_OF_SHARE,
        ),
    ],
    columns=3,
    caption=r"""
        {n_train} images are drawn from {dataset} ({task}), and each label is flipped with
        probability $p$. {activation} networks with one hidden layer are trained by gradient descent
        from $f = 0$, with learning rate {learning_rate} on the summed loss. The test error is the
        mean of $[f - (1 - 2p) y]^2$ over all images. Left: infinite width, $p$ in colours. Lines:
        theory averaged over the drawn examples, in which the eigenvectors of the tangent kernel are
        assumed to be Gaussian. Centre and right: the best step of each run and the error after
        {steps} steps, for infinite width, wide networks ({width} units) and narrow networks
        ({narrow} units).
    """,
    seconds=(90, 600),
    observables=("test_error", "best_step", "cost_of_training_on"),
    gallery={"width": 512, "narrow": 32, "seeds": 24, "flips": (0.05, 0.1, 0.2, 0.3)},
    explained=(
        "With a twentieth of the labels flipped the minimum of the error is flat, so that the best "
        "steps of single runs scatter: at infinite width their mean is 71 % above the theory, "
        "within the scatter. Training on costs networks of finite width more than infinite width "
        "on the same examples: the ratio on the right is larger by 5 to 11 % with 512 units and by "
        "18 to 42 % with 32. The averaged theory takes the eigenvectors of the kernel as Gaussian; "
        "infinite width on the drawn examples is within 6 % of it there."
    ),
    full={"dataset": "mnist", "width": 2048, "narrow": 64, "seeds": 64, "n_train": 300},
)
def stopping_flipped_labels(
    dataset: str = "digits",
    task: str = "even-odd",
    activation: str = "relu",
    n_train: int = 100,
    flips: tuple[float, ...] = (0.1, 0.3),
    learning_rate: float = 0.02,
    width: int = 64,
    narrow: int = 16,
    steps: int = 1500,
    pool: int = 1797,
    seeds: int = 16,
) -> Iterator[Curve]:
    images, targets = apply_task(load(dataset, count=pool), task)
    images = normalise(centre(images))
    system = PoolDescent(
        np.asarray(images.inputs).reshape(len(images.inputs), -1),
        np.asarray(targets.values, float).reshape(-1),
        fully_connected(1, None, activation),
        n_train,
        learning_rate=learning_rate,
        steps=steps,
    )
    over = {"flipped": flips}
    yield Curve("theory", pool_error, system, over, facets={"network": "infinite width"})
    for network, experiment, one in (
        ("infinite width", drawn_pool_kernel, system),
        ("wide network", drawn_pool_network, system.with_(width=width)),
        ("narrow network", drawn_pool_network, system.with_(width=narrow)),
    ):
        yield Curve("drawn", experiment, one, over, seeds, facets={"network": network})
