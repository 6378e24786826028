"""The losses by name."""

from typing import Any

from orderparam.core.system import nearest
from orderparam.losses.base import Loss
from orderparam.losses.hinge import Hinge
from orderparam.losses.logistic import Logistic
from orderparam.losses.square import Square

_LOSSES: dict[str, Loss] = {kind.name: kind() for kind in (Square, Logistic, Hinge)}


def loss_names() -> list[str]:
    """The names that `loss` accepts."""
    return sorted(_LOSSES)


def loss(which: Any) -> Loss:
    """The loss of that name ("square", "logistic", "hinge"), or the `Loss` itself. Raises
    `ValueError` for anything else."""
    if isinstance(which, Loss):
        return which
    if which not in _LOSSES:
        raise ValueError(f"there is no loss {which!r}{nearest(str(which), loss_names())}")
    return _LOSSES[which]
