"""The named figures of the room: importing this registers them all."""

from orderparam.systems.online_sgd.committee import studies as committee
from orderparam.systems.online_sgd.phases import studies as phases

__all__ = ["committee", "phases"]
