"""The spin glass of Sherrington and Kirkpatrick."""

from orderparam.core.system import System, parameter, structure


class SpinGlass(System):
    r"""The Sherrington-Kirkpatrick spin glass: N spins with random couplings between all pairs.

    $$ H = -\frac{1}{\sqrt N} \sum_{i<j} J_{ij} s_i s_j - h \sum_i s_i, \qquad s_i = \pm 1, \quad
       J_{ij} \sim N(0, 1) $$

    with N = `spins`, h = `field` and Boltzmann weights $e^{-H/T}$, T = `temperature`. In these
    units of energy, field and temperature the spin-glass transition without a field is at T = 1.

    Source: Sherrington, Kirkpatrick (1975).
    """

    temperature: float = parameter("temperature T", above=0, default=0.5)
    field: float = parameter("magnetic field h", minimum=0, default=0.0)
    spins: int = structure("number N of spins of an experiment", minimum=2, default=64)
