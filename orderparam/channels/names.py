"""The laws of labels by name."""

from typing import Any

from orderparam.channels.base import Likelihood
from orderparam.channels.logistic import LogisticLabels
from orderparam.channels.real import RealLabels
from orderparam.channels.sign import ProbitLabels, SignLabels
from orderparam.core.names import near

_CHANNELS: dict[str, Likelihood] = {
    "sign": SignLabels(),
    "probit": ProbitLabels(),
    "logistic": LogisticLabels(),
    "linear": RealLabels("linear"),
    "abs": RealLabels("abs"),
    "relu": RealLabels("relu"),
}


def channel_names() -> list[str]:
    """The names that `channel` accepts."""
    return list(_CHANNELS)


def channel(which: Any) -> Likelihood:
    """The law of labels of that name ("sign", "probit", "logistic", "linear", "abs", "relu"; the
    latter three without noise), or the `Likelihood` itself. Raises `ValueError` for anything else.
    """
    if isinstance(which, Likelihood):
        return which
    if not isinstance(which, str) or which not in _CHANNELS:
        names = ", ".join(_CHANNELS)
        raise ValueError(
            f"there is no channel {which!r}: must be one of "
            f"{names}{near(str(which), channel_names())}"
        )
    return _CHANNELS[which]
