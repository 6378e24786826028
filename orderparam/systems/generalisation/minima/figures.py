"""What the study of bad minima draws by hand: the four ways beside one another."""

from collections.abc import Callable
from typing import Any

import numpy as np

from orderparam.core.study import Comparison
from orderparam.plotting.measured import dots
from orderparam.plotting.style import COLOURS
from orderparam.systems.generalisation.minima.experiment import ARMS


def draw_arms(observable: str, label: str) -> Callable[[Any, Comparison], None]:
    """A function that draws an observable of each way: runs as small points, their mean with its error. The legend names them."""

    def draw(axes: Any, comparison: Comparison) -> None:
        (data,) = comparison.experiments().values()
        for arm, name in enumerate(ARMS):
            runs = data[observable].isel(arm=arm)
            axes.plot(np.full(runs.size, arm + 0.2), runs.values.ravel(), ".", color=COLOURS[arm], alpha=0.5)
            dots(axes, [arm], runs, arm, name, filled=True)
        axes.set(ylabel=label, xlim=(-0.5, len(ARMS) - 0.5), ylim=(0, None), xticks=[])

    return draw
