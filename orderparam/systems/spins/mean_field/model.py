"""The magnet in which every spin is coupled to every other spin."""

from orderparam.core.system import System, parameter, structure


class MeanFieldMagnet(System):
    r"""The mean-field magnet of Curie and Weiss: N spins that are all coupled to each other.

    $$ H = -\frac{1}{2N} \Big( \sum_i s_i \Big)^2 - h \sum_i s_i, \qquad s_i = \pm 1 $$

    with N = `spins` and h = `field`. Energies, the field and the temperature are in units of the
    coupling. A positive field favours s = +1; where a source writes $+h \sum s$, its field has the
    other sign.

    Source: Weiss (1907).
    """

    temperature: float = parameter("temperature T in units of the coupling", above=0)
    field: float = parameter("magnetic field h in units of the coupling", default=0.0)
    spins: int = structure("number N of spins", minimum=2, maximum=10_000_000, default=1000)
