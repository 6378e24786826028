"""What the study of pictures draws by hand: the pictures."""

from typing import Any

import numpy as np

from orderparam.core.study import Comparison


def draw_pictures(axes: Any, comparison: Comparison) -> None:
    """A row for each rule: a stored picture, what was left of it, and what was retrieved from that. Black is +1."""
    rows, names = [], []
    for data in comparison.experiments(part="pictures").values():
        for name in ("stored", "damaged", "retrieved"):
            flat = data[name].isel(seed=0).values.ravel()
            side = int(np.sqrt(flat.size))
            rows.append(np.pad(flat[: side**2].reshape(side, side), 1, constant_values=-1))
        names.append(data.attrs["facets"]["rule"])
    side = len(rows[0])
    image = np.block([rows[3 * i : 3 * i + 3] for i in range(len(names))])
    axes.imshow(image, cmap="binary", vmin=-1, vmax=1, interpolation="nearest", aspect="auto")
    axes.set_xticks([side / 2 + side * i for i in range(3)], ["stored", "damaged", "retrieved"])
    axes.set_yticks([side / 2 + side * i for i in range(len(names))], names)
    axes.tick_params(length=0)
