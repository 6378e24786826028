"""Random patterns and a perceptron with binary couplings."""

from orderparam.core.system import System, parameter


class BinaryPatterns(System):
    """p = load * N patterns of N inputs +-1 and couplings J = +-1: stored when y J.x / sqrt(N) >= margin.

    Outputs y are fair coins, which are absorbed into the patterns.
    """

    load: float = parameter("patterns per input alpha = p/N", above=0, default=0.5)
    margin: float = parameter("least stability kappa of a stored pattern", default=0.0)
    input_dim: float = parameter("number N of inputs", minimum=2, integer=True, default=19)
