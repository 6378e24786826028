"""Every theory of associative memory."""

from checks import checks

from orderparam.systems.associative_memory import (
    DenseMemory,
    ExponentialMemory,
    Hopfield,
    OptimalStability,
)

SYSTEMS = [
    Hopfield(0.05, 0.3),
    Hopfield(0.05, 0.0),
    OptimalStability(0.7),
    DenseMemory(0.03),
    ExponentialMemory(0.3),
]
FEWER = {"generating_functional": 8}
globals().update(checks("associative_memory", SYSTEMS, fewer=FEWER, infinite=("replicon",)))
