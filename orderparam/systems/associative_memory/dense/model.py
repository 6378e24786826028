"""Dense associative memories, whose energy is a high power, or the exponential, of the overlaps
with the patterns.
"""

from orderparam.core.system import System, parameter, structure


class DenseMemory(System):
    r"""A dense associative memory with a polynomial energy.

    $$ E = -\sum_{\mu=1}^P (\xi^\mu \cdot s)^n, \qquad P = \alpha N^{n - 1} $$

    with P random patterns $\xi^\mu_i = \pm 1$ of N = `spins` spins, n = `degree` and $\alpha$ =
    `load`. Degree 2 is not allowed here; its energy would be that of the Hopfield model including
    the terms i = j (see `Hopfield`). `start` is the overlap $\frac1N \sum_i \xi_i s_i$ of the first
    configuration with a pattern.

    Source: Krotov, Hopfield (2016).
    """

    load: float = parameter("patterns per N^(degree - 1)", above=0)
    degree: int = structure("degree n of the energy", minimum=3, maximum=10, default=3)
    spins: float = parameter("number N of spins", minimum=4, integer=True, default=100)
    start: float = parameter(
        "overlap of the first configuration with a pattern", minimum=0, maximum=1, default=1.0
    )


class ExponentialMemory(System):
    r"""A dense associative memory with an exponential energy.

    $$ E = -\sum_{\mu=1}^P e^{\xi^\mu \cdot s}, \qquad P = e^{\alpha N} $$

    with P random patterns $\xi^\mu_i = \pm 1$ of N = `spins` spins and $\alpha$ = `load`. The sign
    of $-\partial E/\partial s_i = \sum_\mu \xi_i^\mu e^{\xi^\mu \cdot s}$ is the sign of the output
    of an attention head (Ramsauer et al. 2020). Instead, `dense_recall` compares the energies of
    the two values of a spin, so that the exponents do not contain $s_i$ itself. `start` is as in
    `DenseMemory`.

    Source: Demircigil et al. (2017).
    """

    load: float = parameter("(ln P)/N", above=0)
    spins: float = parameter(
        "number N of spins, of experiments", minimum=4, integer=True, default=20
    )
    start: float = parameter(
        "overlap of the first configuration with a pattern", minimum=0, maximum=1, default=1.0
    )
