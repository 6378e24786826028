"""The Hopfield model: Hebb's rule stores patterns as attractors of N spins."""

from orderparam.core.system import System, parameter


class Hopfield(System):
    r"""The Hopfield model: random patterns stored by Hebb's rule.

    $$ H = -\frac12 \sum_{i \ne j} J_{ij} s_i s_j, \qquad
       J_{ij} = \frac1N \sum_{\mu=1}^P \xi_i^\mu \xi_j^\mu, \quad J_{ii} = 0, \quad P = \alpha N $$

    with N = `spins` spins $s_i = \pm 1$, patterns $\xi_i^\mu = \pm 1$ and $\alpha$ = `load`. The
    field `start` is the overlap $\frac1N \sum_i \xi_i s_i$ of the first configuration with the
    first pattern. Theories of the dynamics and experiments use `start`; theories of equilibrium do
    not.

    Source: Hopfield (1982).
    """

    load: float = parameter("patterns per spin alpha = P/N", above=0)
    temperature: float = parameter("temperature T", minimum=0, default=0.0)
    spins: float = parameter(
        "number N of spins, of experiments", minimum=2, integer=True, default=1000
    )
    start: float = parameter(
        "overlap of the first state with a pattern, of dynamics and experiments",
        minimum=-1,
        maximum=1,
        default=1.0,
    )
