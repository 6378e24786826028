"""Random patterns and a perceptron with real or with binary couplings."""

from orderparam.core.system import System, parameter

# ------------------------------------------------------------------------------------------------
# Random patterns and a perceptron with real couplings.


class SphericalPatterns(System):
    """p = load * N patterns x of N inputs with outputs y = +-1, and couplings J: stored when y J.x
    / |J| >= margin.

    Outputs are +-1 with mean `bias` (b); inputs are Gaussian with mean b and variance 1 - b^2, and
    +-1 of mean b give the same for large N.
    """

    load: float = parameter("patterns per input alpha = p/N", above=0, default=1.0)
    margin: float = parameter("least stability kappa of a stored pattern", default=0.0)
    bias: float = parameter("mean b of inputs and outputs", minimum=0, below=1, default=0.0)
    input_dim: float = parameter("number N of inputs", minimum=2, integer=True, default=50)


# ------------------------------------------------------------------------------------------------
# Random patterns and a perceptron with binary couplings.


class BinaryPatterns(System):
    """p = load * N patterns of N inputs +-1 and couplings J = +-1: stored when y J.x / sqrt(N) >=
    margin.

    Outputs y are fair coins, which are absorbed into the patterns.
    """

    load: float = parameter("patterns per input alpha = p/N", above=0, default=0.5)
    margin: float = parameter("least stability kappa of a stored pattern", default=0.0)
    input_dim: float = parameter("number N of inputs", minimum=2, integer=True, default=19)
