"""Networks whose couplings store patterns with the largest stability."""

from typing import Any

import jax

from orderparam.core.system import System, parameter


class OptimalStability(System):
    r"""A network whose couplings store random patterns with the largest stability.

    Each of N = `neurons` neurons has K = `inputs` inputs, drawn at random among the other neurons.
    Its couplings J maximise the smallest stability

    $$ \kappa = \min_\mu \xi_i^\mu \frac{J \cdot \xi^\mu}{|J|} $$

    over P = `load` K random patterns $\xi^\mu_i = \pm 1$, where the vector $\xi^\mu$ in the scalar
    product holds the K inputs of neuron i. The network is fully connected if N = K + 1. It behaves
    as a strongly diluted network in the first t steps if $K^t$ is much smaller than $\sqrt N$,
    because the inputs of two neurons then have no common ancestors. `start` is the overlap $\frac1N
    \sum_i \xi_i s_i$ of the first state with a stored pattern.

    Raises:
        ValueError: unless `inputs` is below `neurons`.

    Source: Gardner (1988).
    """

    load: float = parameter("patterns per input alpha = P/K", above=0, below=2)
    start: float = parameter(
        "overlap of the first state with a pattern", minimum=0, maximum=1, default=0.5
    )
    inputs: float = parameter(
        "number K of inputs of a neuron, of experiments", minimum=2, integer=True, default=40
    )
    neurons: float = parameter(
        "number N of neurons, of experiments", minimum=3, integer=True, default=2000
    )

    def __check_init__(self) -> None:
        sizes: tuple[Any, ...] = self.inputs, self.neurons
        concrete = not any(isinstance(x, jax.core.Tracer) or getattr(x, "ndim", 0) for x in sizes)
        if concrete and self.inputs >= self.neurons:
            raise ValueError(
                f"{type(self).__name__}.inputs = {float(self.inputs):g}: must be below the number "
                f"of neurons, {float(self.neurons):g} (no neuron is its own input)"
            )
