"""Pictures as the patterns of an associative memory.

Pictures are correlated with one another. Theories of associative memories assume independent random
patterns instead.
"""

from typing import Any, Self

import jax
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.system import System, parameter
from orderparam.data import load


class StoredImages(System):
    """Pictures with pixels +1 (black) and -1 (white), the first `count` of which are stored.

    Before recall a fraction `damage` of the pixels is replaced by random signs, so that about half
    of these pixels are wrong; at `damage` 1 all pixels are random.

    Raises:
        ValueError: for a pixel other than +1 and -1, or a `count` above the number of pictures.
    """

    patterns: Float[Array, "image pixel"] = parameter("pictures, one in each row, +-1")
    count: float = parameter("number of stored pictures", minimum=1, integer=True, default=20)
    damage: float = parameter(
        "share of the pixels that are drawn anew", minimum=0, maximum=1, default=0.3
    )

    def __check_init__(self) -> None:
        if any(isinstance(x, jax.core.Tracer) for x in (self.patterns, self.count)):
            return
        wrong = np.asarray(self.patterns)[np.abs(np.asarray(self.patterns)) != 1]
        if wrong.size:
            raise ValueError(
                f"{type(self).__name__}.patterns = {wrong[0]:g}: must be +1 or -1 in every entry"
            )
        if np.max(self.count) > len(self.patterns):
            raise ValueError(
                f"{type(self).__name__}.count = {float(np.max(self.count)):g}: there are "
                f"{len(self.patterns)} pictures"
            )

    @classmethod
    def of(cls, data: str, pictures: int, **fields: Any) -> Self:
        """A system made of the first pictures of a data set of `orderparam.data.load`.

        Args:
            data: name of the data set.
            pictures: number of pictures that are read.
            fields: the other fields of the system.

        Returns:
            the system; a pixel is +1 (black) where its value is above the mean over all pictures
                and pixels.
        """
        inputs = load(data).inputs[:pictures]
        return cls(np.where(inputs > inputs.mean(), 1.0, -1.0), **fields)
