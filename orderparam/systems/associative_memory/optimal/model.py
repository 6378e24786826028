"""Networks whose couplings store patterns with the largest stability."""

from orderparam.core.system import System, parameter


class OptimalStability(System):
    """N neurons, each with the couplings J that maximise min_mu xi_i^mu (J . xi^mu)/|J| over P = load N random patterns.

    No neuron is coupled to itself. start: the overlap (1/N) sum xi s of the first state with a stored pattern.
    """

    load: float = parameter("patterns per input alpha = P/N", above=0, below=2)
    start: float = parameter("overlap of the first state with a pattern", minimum=0, maximum=1, default=0.5)
    inputs: float = parameter("number N of neurons, of experiments", minimum=3, integer=True, default=200)
