"""Dense associative memories: energies that count patterns by a high power, or the exponential, of
their overlap.
"""

from orderparam.core.system import System, parameter, structure


class DenseMemory(System):
    """P = load N^(degree - 1) random patterns xi = +-1 in N spins, E = -sum_mu (xi^mu . s)^degree
    (Krotov, Hopfield 2016).

    Degree 2 is the Hopfield model with its diagonal, see `Hopfield`. start: overlap (1/N) sum xi s
    of the first configuration.
    """

    load: float = parameter("patterns per N^(degree - 1)", above=0)
    degree: int = structure("degree n of the energy", minimum=3, maximum=10, default=3)
    spins: float = parameter("number N of spins", minimum=4, integer=True, default=100)
    start: float = parameter(
        "overlap of the first configuration with a pattern", minimum=0, maximum=1, default=1.0
    )


class ExponentialMemory(System):
    """P = exp(load N) random patterns xi = +-1 in N spins, E = -sum_mu exp(xi^mu . s) (Demircigil
    et al. 2017).

    One step of it is the sign of an attention head's output (Ramsauer et al. 2020). start: as in
    `DenseMemory`.
    """

    load: float = parameter("(ln P)/N", above=0)
    spins: float = parameter(
        "number N of spins, of experiments", minimum=4, integer=True, default=20
    )
    start: float = parameter(
        "overlap of the first configuration with a pattern", minimum=0, maximum=1, default=1.0
    )
