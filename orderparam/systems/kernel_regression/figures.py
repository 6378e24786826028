"""What several figures of kernel regression share."""

import numpy as np


def sample_sizes(largest: float, smallest: float = 5, points: int = 40) -> list[float]:
    """A smooth grid of training-set sizes for theory lines."""
    return np.geomspace(smallest, largest, points).tolist()
