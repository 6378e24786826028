"""The Hopfield model: patterns stored by Hebb's rule as attractors of N spins."""

from orderparam.core.system import System, parameter


class Hopfield(System):
    """P = load N random patterns xi = +-1 in N spins s = +-1, H = -(1/2) sum_{i != j} J_ij s_i s_j,
    J = xi xi^T / N, J_ii = 0.

    start matters to dynamics alone: the overlap (1/N) sum xi s of the first configuration with the
    first pattern.
    """

    load: float = parameter("patterns per spin alpha = P/N", above=0)
    temperature: float = parameter("temperature T", minimum=0, default=0.0)
    spins: float = parameter(
        "number N of spins, of experiments", minimum=2, integer=True, default=1000
    )
    start: float = parameter(
        "overlap of the first state with a pattern, of experiments",
        minimum=-1,
        maximum=1,
        default=1.0,
    )
