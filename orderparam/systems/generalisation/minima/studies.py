"""The named figure of bad global minima: they exist, SGD reaches them, and regularisation leads away from them."""

from collections.abc import Iterator

from orderparam.core.study import Curve, study
from orderparam.plotting import Freehand
from orderparam.systems.generalisation.minima.experiment import bad_minima
from orderparam.systems.generalisation.minima.figures import draw_arms
from orderparam.systems.generalisation.minima.model import ImageClassifier


@study(
    "bad-global-minima",
    title="Bad global minima exist and SGD reaches them",
    source="Liu, Papailiopoulos, Achlioptas 2019",
    seconds=(60, 3600),
    observables=("error", "weight_norm"),
    full={"data": "mnist", "examples": 12_000, "n_train": 2000, "width": 512, "seeds": 5},
    columns=3,
    panels=[
        Freehand(draw_arms("error", "test error")),
        Freehand(draw_arms("weight_norm", "norm of the weights")),
        Freehand(draw_arms("distance", "distance from the random start")),
    ],
    caption=r"""
        {data}, {n_train} training examples, two hidden layers of {width}; every way ends without a training error. Adversarial
        start: SGD first reproduced random labels of damaged copies. Regularised: momentum and weight decay.
    """,
)
def bad_global_minima(
    data: str = "digits", examples: int = 1797, n_train: int = 500, width: int = 64, seeds: int = 5
) -> Iterator[Curve]:
    system = ImageClassifier.of(data, examples, n_train=n_train, width=width)
    yield Curve("SGD", bad_minima, system, {}, seeds)
