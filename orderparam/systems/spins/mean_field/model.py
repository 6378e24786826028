"""The magnet in which every spin is coupled to every other."""

from orderparam.core.system import System, parameter, structure


class MeanFieldMagnet(System):
    """N spins s_i = +-1 with the energy H = -(1/2N) (sum s)^2 - field sum s (Curie-Weiss).

    Energies, the field and the temperature are in units of the coupling. A positive field favours s
    = +1: where +h sum s is written instead, the field has the other sign.
    """

    temperature: float = parameter("temperature T in units of the coupling", above=0)
    field: float = parameter("magnetic field h in units of the coupling", default=0.0)
    spins: int = structure("number N of spins", minimum=2, maximum=10_000_000, default=1000)
