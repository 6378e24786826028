"""The assumptions of a theory, measured on a network, and the predictions of the theory."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Float

from orderparam.observables.observable import Observed

Verdict = Literal["applies", "approximate", "refused"]
UNTESTED = "not tested: "  # begins the reason of an assumption for which an input is missing
UNLIKE = 0.002  # p-value below which training and held-out examples are not of one kind
# what a verdict says of one assumption
HOLDS: dict[Verdict, str] = {"applies": "holds", "approximate": "holds roughly", "refused": "fails"}
_WORSE: dict[Verdict, int] = {"applies": 0, "approximate": 1, "refused": 2}


@dataclass(frozen=True)
class Assumption:
    """says: the assumption in words. measured: the number that decides it, NaN where it could not
    be measured. verdict: the verdict on the theory by this assumption alone. bound: the bound in
    words, or why there is no number."""

    says: str
    measured: float
    verdict: Verdict
    bound: str

    def __str__(self) -> str:
        number = f": measured {self.measured:.3g}" if math.isfinite(self.measured) else ""
        return f"{self.says}{number} ({self.bound})"


def below(says: str, measured: float, good: float, bad: float) -> Assumption:
    """An assumption that holds for small numbers."""
    verdict: Verdict = (
        "applies" if measured < good else "approximate" if measured <= bad else "refused"
    )
    return Assumption(says, measured, verdict, f"below {good:g}; refused above {bad:g}")


def above(says: str, measured: float, good: float, bad: float) -> Assumption:
    """An assumption that holds for large numbers."""
    verdict: Verdict = (
        "applies" if measured > good else "approximate" if measured >= bad else "refused"
    )
    return Assumption(says, measured, verdict, f"above {good:g}; refused below {bad:g}")


def unmet(says: str, reason: str) -> Assumption:
    """An assumption that fails, or cannot be tested, for a reason in words."""
    return Assumption(says, math.nan, "refused", reason)


@dataclass(frozen=True)
class Predicted:
    """A number that a theory predicts, and its measured value. at: the network that it belongs to,
    such as {"n_train": 100}."""

    name: str
    value: float
    measured: Observed | None = None
    at: Mapping[str, float] = field(default_factory=dict)

    @property
    def z(self) -> float:
        """(measured - predicted) in standard errors of the measured value; NaN without a measured
        value."""
        if self.measured is None or not self.measured.error > 0:
            return math.nan
        return (self.measured.value - self.value) / self.measured.error

    @property
    def deviation(self) -> float:
        """(measured - predicted) / predicted."""
        if self.measured is None or not self.value:
            return math.nan
        return (self.measured.value - self.value) / abs(self.value)


@dataclass(frozen=True)
class TheoryVerdict:
    """The verdict on one theory. assumptions: its assumptions, tested. predictions: empty where the
    theory is refused. by_examples, by_width: its predicted test error at other numbers of training
    examples and other widths; infinity is the infinitely wide network. notes: remarks in words.
    source: the source of the theory."""

    theory: str
    assumptions: tuple[Assumption, ...]
    predictions: tuple[Predicted, ...] = ()
    by_examples: Mapping[int, float] = field(default_factory=dict)
    by_width: Mapping[float, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    source: str = ""

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all assumptions."""
        found = (one.verdict for one in self.assumptions)
        return max(found, key=lambda one: _WORSE[one], default="refused")

    @property
    def test_error(self) -> Predicted | None:
        """The prediction of the test error, if the test error was measured too."""
        for one in self.predictions:
            if one.name == "test error" and np.isfinite(one.deviation):
                return one
        return None


def exchangeable(kernel: Float[np.ndarray, "pool pool"], size: int, draws: int = 999) -> float:
    r"""The p-value of the hypothesis that the first examples, as many as `size`, and the others are
    of one distribution.

    The distance of the two groups in the kernel, $a^\top K a$ with $a = 1/n$ in the first group
    and $-1/m$ in the second, is compared with that of permuted groups.

    Source: Gretton et al. 2012 (the kernel two-sample test).

    >>> x = np.random.default_rng(0).normal(size=(80, 3))
    >>> drift = 5 * np.outer(*[np.arange(80)] * 2)
    >>> exchangeable(x @ x.T, 30) > 0.05, exchangeable(x @ x.T + drift, 30)
    (True, 0.001)
    """
    contrast = np.where(np.arange(len(kernel)) < size, 1 / size, -1 / (len(kernel) - size))
    rng = np.random.default_rng(0)
    drawn = np.stack([contrast, *(rng.permutation(contrast) for _ in range(draws))])
    distances = np.einsum("di,di->d", drawn @ kernel, drawn)
    return float(np.mean(distances >= distances[0] * (1 - 1e-12)))


def unlike(p_value: float) -> str:
    """A warning for data whose `exchangeable` is below UNLIKE."""
    return (
        f"training and held-out examples are of different distributions (p = {p_value:.3g} by "
        "their distance in the kernel); divide the examples at random"
    )
