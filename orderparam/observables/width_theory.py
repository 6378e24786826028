r"""The first step of gradient descent, exactly at every width: deep linear networks, and two-layer
networks with any activation.

$\mathcal L = \frac{1}{2n} \sum_\mu (f_\mu - y_\mu)^2$, weights $V_l$ with entries of variance
$v_l$ and effective rates $\eta e_l$ (`width_parametrisation`). With
$k_{\mu\nu} = x_\mu \cdot x_\nu$ and $|J|^2 = |V_L \cdots V_2|^2$, a product of $L - 1$ chi-squared
variables of N degrees of freedom, a deep linear network has

$$ \mathrm{E}\, \overline{\Delta z_1(x_\nu)^2} = \frac{(\eta e_1)^2}{n^2 N} \left[ M_1 (k y)_\nu^2
   + v_1 M_2 (k^3)_{\nu\nu} \right] , \qquad
   M_j = \prod_{l > 1} v_l^j \left[ N (N + 2) \cdots (N + 2j - 2) \right]^{L - 1} , $$

$$ \mathrm{E}\, \Delta f = \frac{\eta}{n} \bar\Theta y, \qquad
    \bar\Theta = k \sum_l e_l \prod_{m \ne l} v_m\, N^{L-1}  ,
   \qquad \eta_{\max} = \frac{2 n}{\lambda_{\max}(\bar\Theta)} . $$

To first order in the rate the mean change of the output is that of the mean tangent kernel, also in
a two-layer network with activation phi, where $\bar\Theta = N (e_2 F + e_1 v_2 F' k)$ with F, F'
the averages of $\phi\phi$ and $\phi'\phi'$. Derived here.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from orderparam.observables.width_parametrisation import Parametrisation


class FirstStep(NamedTuple):
    """The first step: root mean square of the first layer's change over units, examples and
    initialisations (NaN where there is no formula), mean change of the output at each example, and
    the largest stable rate of the linearised network."""

    first_layer: float
    output: Float[np.ndarray, "example"]
    largest_rate: float


def linear_first_step(
    inputs: Float[np.ndarray, "example input"],
    targets: Float[np.ndarray, "example"],
    parametrisation: Parametrisation,
    width: float,
    layers: int = 2,
    rate: float = 1.0,
) -> FirstStep:
    """The first step of a deep linear network, exact at any width.

    Entries of the first layer's weights have the variance N^(-2 b) / d.

    Source: derived here.

    >>> from orderparam.observables.width_parametrisation import NAMES
    >>> x, y = np.eye(2), np.ones(2)
    >>> linear_first_step(x, y, NAMES["muP", "sgd"], 100).output
    array([0.75, 0.75])
    """
    x, y = np.asarray(inputs, float), np.asarray(targets, float)
    n, d = x.shape
    v, e = _layers(parametrisation, width, layers, d)
    k = x @ x.T
    above, chi = np.prod(v[1:]), width ** (layers - 1)
    moments = above * chi, above**2 * (width * (width + 2)) ** (layers - 1)
    square = moments[0] * (k @ y) ** 2 + v[0] * moments[1] * np.diagonal(k @ k @ k)
    kernel = k * chi * sum(e[l] * np.prod(np.delete(v, l)) for l in range(layers))
    first = rate * e[0] / n * np.sqrt(np.mean(square) / width)
    return FirstStep(float(first), rate / n * kernel @ y, _largest(kernel))


def two_layer_first_step(
    inputs: Float[np.ndarray, "example input"],
    targets: Float[np.ndarray, "example"],
    parametrisation: Parametrisation,
    width: float,
    activation: str,
    rate: float = 1.0,
) -> FirstStep:
    """The first step of a two-layer network with this activation. Output and largest rate are exact
    at any width; first_layer is NaN.

    Source: derived here; averages over weights from `networks.fully_connected`.
    """
    from orderparam.networks import fully_connected

    x, y = np.asarray(inputs, float), np.asarray(targets, float)
    v, e = _layers(parametrisation, width, 2, x.shape[1])
    wide = fully_connected(
        1, None, activation, weight_variance=v[0] * x.shape[1], readout_variance=1.0
    )
    found = wide.kernel(jnp.asarray(x))  # nngp = F; ntk - nngp = v_1 F' k
    of_inputs = (np.asarray(found.ntk) - np.asarray(found.nngp)) / v[0]
    kernel = width * (e[1] * np.asarray(found.nngp) + e[0] * v[1] * of_inputs)
    return FirstStep(np.nan, rate / len(y) * kernel @ y, _largest(kernel))


def _layers(
    parametrisation: Parametrisation, width: float, layers: int, inputs: int
) -> tuple[np.ndarray, np.ndarray]:
    """The variances v of the entries of the effective weights, and the effective rates e."""
    a, b, c = (np.array([x[0], *[x[1]] * (layers - 2), x[2]], float) for x in parametrisation)
    v = width ** (-2 * (a + b))
    v[0] /= inputs
    return v, width ** (-2 * a - c)


def _largest(kernel: np.ndarray) -> float:
    return float(2 * len(kernel) / np.linalg.eigvalsh(kernel)[-1])
