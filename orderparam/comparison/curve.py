"""A curve: one sweep of a study, and the facets that identify it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from orderparam.core.facets import key
from orderparam.core.system import System


@dataclass(frozen=True)
class Curve:
    """One sweep of a study: a theory (`seeds` None) or an experiment. `fn` to `paired` are the
    arguments of `sweep`.

    label: the method ("self-consistent", "sampled network"). facets: the case, as name -> number or
    text (`{"width": 50, "loss": "logistic"}`). Figures choose, place and colour curves by facets,
    and an experiment is compared with every theory whose facets agree with its own on all names
    that both carry. No two curves of a study have the same label and facets.

    baseline: drawn for orientation only (a fixed kernel beside the theory of a learned one); its
    difference from the measurement is listed separately and never counts as a disagreement.

    bound: "lower" or "upper" for a theory that the measurement may not fall below or exceed (the
    smallest possible error, which no training can beat): only what lies on the other side of it
    disagrees.

    same_data: a theory that is evaluated on the training set of every run, by a function of a key
    that draws the same training set as the experiment does with this key. It is drawn with the
    experiments, but it is no measurement: the experiments are compared with it run by run, so that
    the scatter of training sets cancels.
    """

    label: str
    fn: Callable[..., Any]
    system: System
    over: Mapping[str, Any]
    seeds: int | None = None
    batch_seeds: bool = False
    paired: tuple[str, ...] = ()
    facets: Mapping[str, Any] = field(default_factory=dict)
    baseline: bool = False
    bound: Literal["lower", "upper"] | None = None
    same_data: bool = False

    def __post_init__(self) -> None:
        if self.same_data and self.seeds is None:
            raise ValueError(f"curve {self.label!r}: same_data needs seeds, those of the runs")
        if self.bound not in (None, "lower", "upper"):
            raise ValueError(
                f"curve {self.label!r}: bound = {self.bound!r}: must be 'lower' or 'upper'"
            )

    @property
    def is_experiment(self) -> bool:
        return self.seeds is not None

    @property
    def key(self) -> str:
        """The curve's name in a comparison: "theory, width 50, logistic"."""
        return key(self.label, self.facets)


def between(values: Sequence[float], points: int = 60) -> list[float]:
    """The grid of a theory's line: a range that contains the given values, equidistant in the
    logarithm, and the values themselves, to 12 decimals."""
    spread = np.geomspace(min(values), max(values), points)
    return np.unique(np.append(spread, values).round(12)).tolist()


def slug(text: str) -> str:
    """A text in a form that can be the name of a folder."""
    return "".join(c if c.isalnum() else "-" for c in text.lower()).strip("-")
