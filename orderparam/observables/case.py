"""The quantities of a trained network that the tests of all theories need."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from orderparam.observables.assumptions import UNTESTED
from orderparam.observables.inspection import Seen
from orderparam.observables.observable import Observed, jackknifed

NO_START = f"{UNTESTED}give the network before training"


@dataclass(frozen=True)
class Case:
    """A network with the quantities that all theories need. outputs: those of the trained network,
    on training and on held-out examples; before: those of the network at the start. sizes: further
    numbers of training examples. temperature: of the posterior of which the network is a sample, or
    None."""

    seen: Seen
    train: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]
    outputs: tuple[np.ndarray, np.ndarray]
    before: tuple[np.ndarray, np.ndarray] | None
    sizes: tuple[int, ...]
    temperature: float | None
    rate: float | None

    @property
    def examples(self) -> int:
        return len(self.train[0])

    @property
    def train_error(self) -> float:
        return float(np.mean(np.sum((self.outputs[0] - self.train[1]) ** 2, axis=1)))

    @property
    def test_error(self) -> Observed:
        return mean_of("test error", np.sum((self.outputs[1] - self.test[1]) ** 2, axis=1))


def mean_of(name: str, each: Float[np.ndarray, "example"]) -> Observed:
    """A mean over examples, with its jackknife interval."""
    left = (each.sum() - each) / (len(each) - 1)
    return jackknifed(name, float(each.mean()), {"examples": left}, unbiased=False)
