r"""How activations and first updates of a network grow with its width in each parametrisation.

A layer is $z_l = N^{-a_l} w_l x_{l-1}$ with entries $w_l \sim N(0, N^{-2 b_l})$ and learning rate
$\eta N^{-c_l}$ (Yang and Hu 2021), $x_l = \phi(z_l)$, and every width is N. The first layer has a
fixed fan-in, the last a fixed number of outputs. Exponents of N, at initialisation:

$$ z_1: -a_1 - b_1, \qquad z_l: z_{l-1} - a_l - b_l + \tfrac12 ; \qquad
   g_L = 0, \quad g_{L-1} = -a_L - b_L, \quad g_{l-1} = g_l - a_l - b_l + \tfrac12 , $$

where $g_l$ is the derivative of the output. One step of gradient descent changes $z_l$ by its own
weights and by the change of the layer before:

$$ \Delta z_l = \max\left( g_l - 2 a_l - c_l + [l > 1](1 + 2 x_{l-1}) ,\;
   \Delta z_{l-1} - a_l - b_l + \tfrac12 \;\text{or}\; 1 \right) , $$

with 1 in the last layer, whose weights and $\Delta x_{L-1} \propto w_L$ are aligned, and 1/2 in the
others. Adam changes every entry by $\eta N^{-c_l}$, so that the first term is $-a_l - c_l + [l > 1]
(1 + x_{l-1})$.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

Optimiser = Literal["sgd", "adam"]
OPTIMISERS: tuple[Optimiser, ...] = ("sgd", "adam")


class Parametrisation(NamedTuple):
    """Exponents of the input layer, of hidden layers, and of the read-out."""

    multiplier: tuple[float, float, float]  # a
    scale: tuple[float, float, float]  # b
    rate: tuple[float, float, float]  # c


_STANDARD = Parametrisation((0, 0, 0), (0, 0.5, 0.5), (0, 0, 0))
_NTK = Parametrisation((0, 0.5, 0.5), (0, 0, 0), (0, 0, 0))
# of one learning rate and multipliers, muP is N^(1/2), 1, N^(-1/2) with b = 1/2 (Yang and Hu 2021)
_MUP: dict[Optimiser, Parametrisation] = {
    "sgd": Parametrisation((0, 0, 0), (0, 0.5, 1), (-1, 0, 1)),
    "adam": Parametrisation((0, 0, 0), (0, 0.5, 1), (0, 1, 1)),
}
NAMES: Mapping[tuple[str, Optimiser], Parametrisation] = {
    (name, optimiser): {"standard": _STANDARD, "NTK": _NTK, "muP": _MUP[optimiser]}[name]
    for optimiser in OPTIMISERS
    for name in ("standard", "NTK", "muP")
}


class Growth(NamedTuple):
    """Exponents of N, one for each layer from the input to the output: of the activations at
    initialisation, and of the first update at a learning rate that does not depend on N. best_rate:
    the exponent of the largest learning rate at which no update grows with N."""

    activation: tuple[float, ...]
    update: tuple[float, ...]

    @property
    def best_rate(self) -> float:
        return -max(self.update)


def growth(parametrisation: Parametrisation, optimiser: Optimiser, layers: int) -> Growth:
    """The exponents of a network with the given number of layers of weights, at least 2.

    Source: Yang and Hu 2021 (gradient descent); Yang et al. 2022 (Adam).

    >>> growth(NAMES["standard", "sgd"], "sgd", 3).update
    (-0.5, 0.5, 1.0)
    """
    if layers < 2:
        raise ValueError(f"layers = {layers}: must be at least 2, the input layer and the read-out")
    a, b, c = ([x[0], *[x[1]] * (layers - 2), x[2]] for x in parametrisation)
    forward = [-a[0] - b[0]]
    for l in range(1, layers):
        forward.append(forward[-1] - a[l] - b[l] + 0.5)
    backward = [0.0]
    for l in range(layers - 1, 0, -1):
        gained = 0.0 if l == layers - 1 else 0.5
        backward.insert(0, backward[0] - a[l] - b[l] + gained)
    update: list[float] = []
    for l in range(layers):
        inputs = 0.0 if l == 0 else 1 + forward[l - 1]
        if optimiser == "sgd":
            inputs += forward[l - 1] if l else 0.0
            own = backward[l] - 2 * a[l] - c[l] + inputs
        else:
            own = -a[l] - c[l] + inputs
        gained = 1.0 if l == layers - 1 else 0.5
        carried = update[-1] - a[l] - b[l] + gained if l else own
        update.append(float(max(own, carried)))
    return Growth(tuple(map(float, forward)), tuple(update))
