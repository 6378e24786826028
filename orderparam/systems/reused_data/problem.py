"""The part of a task that enters the dynamics: its labels, the slope of its loss, and its
errors."""

from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Array


class LearningTask(NamedTuple):
    """A task on fields whose first axis is the component and whose other axes are examples.

    Fields:
        teachers: number r of components of the teacher's field.
        label: function of the teacher's fields (r, ...) and of standard normal noise (...) that
            returns the label y (...).
        slope: function of the student's fields (p, ...) and y that returns the derivative l'(h, y)
            of the loss by h, (p, ...).
        loss: function of the student's fields (p, ...) and y that returns the loss l(h, y), (...).
        test_error: function of the overlaps M (p, r) and Q (p, p) that returns the error on new
            inputs.
    """

    teachers: int
    label: Callable[[Array, Array], Array]
    slope: Callable[[Array, Array], Array]
    loss: Callable[[Array, Array], Array]
    test_error: Callable[[Array, Array], Array]
