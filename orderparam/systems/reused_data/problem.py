"""The part of a task that enters the dynamics: its labels, the slope of its loss, and its
errors."""

from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Array


class LearningTask(NamedTuple):
    """A task on fields whose first axis is the component and whose other axes are examples.

    Fields:
        teachers: number r of components of the teacher's field.
        label: of the teacher's fields (r, ...) and of standard normal noise (...), y (...).
        slope: of the student's fields (p, ...) and y, the derivative l'(h, y) by h, (p, ...).
        loss: of the student's fields and y, l(h, y) (...).
        test_error: of the overlaps M (p, r) and Q (p, p), the error on new inputs.
    """

    teachers: int
    label: Callable[[Array, Array], Array]
    slope: Callable[[Array, Array], Array]
    loss: Callable[[Array, Array], Array]
    test_error: Callable[[Array, Array], Array]
