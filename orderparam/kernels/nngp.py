"""The steps of the infinite-width recursion: random weights, a nonlinearity, and a normalisation
acting on covariances.

For z = W phi(z_prev) + b with Var W = weight_variance / fan_in and Var b = bias_variance (Lee et
al. 2018, eq. 5; Jacot et al. 2018, theorem 1; Novak et al. 2019 for pixels), with <.> the mean over
the patch that a pixel sees:

    F_ab(x, x') = E phi(u) phi(v),
        (u, v) ~ N(0, [[K_aa(x, x), K_ab(x, x')], [K_ab(x, x'), K_bb(x', x')]])
    K      <- bias_variance + weight_variance <F>
    Theta  <- K + weight_variance <F' Theta>,
        F' = E phi'(u) phi'(v) = dF / dK_ab    (Price's theorem)
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from orderparam.gaussian.activations import Activation
from orderparam.kernels.covariance import Covariance, Moments

Linear = Callable[[Float[Array, "..."]], Float[Array, "..."]]


def affine(
    covariance: Covariance,
    weight_variance: Num[Array, ""] | float,
    bias_variance: Num[Array, ""] | float | None,
    channels: Num[Array, ""] | int | None,
    average: Linear = lambda values: values,
    patch: int = 1,
    grid: tuple[int, ...] | None = None,
) -> Covariance:
    """A layer of random weights: K <- bias_variance + weight_variance <K>, and its contribution to
    Theta.

    average: the mean <.> over the `patch` pixels that one output pixel sees; `grid`: shape of the
    output pixels.

    Theta gains the squared derivatives with respect to this layer's weights and biases. With
    weights of unit variance and a multiplier sqrt(weight_variance / fan_in) ("ntk") that is K
    itself. With weights of variance weight_variance / fan_in ("standard") the weights give fan_in
    <K_prev> and a bias gives 1, which diverges with the width: gradient descent there needs a
    learning rate of order 1 / width (Sohl-Dickstein et al. 2020).
    """
    fan_in = patch * (jnp.inf if covariance.channels is None else covariance.channels)

    def rule(moments: Moments) -> Moments:
        mean = average(moments.nngp)
        nngp = weight_variance * mean + (0.0 if bias_variance is None else bias_variance)
        standard = fan_in * mean + (0.0 if bias_variance is None else 1.0)
        own = nngp if covariance.parametrization == "ntk" else standard
        return Moments(nngp, own + weight_variance * average(moments.ntk))

    return covariance.map(
        rule, channels=channels, gaussian=True, grid=covariance.grid if grid is None else grid
    )


def nonlinear(covariance: Covariance, activation: Activation) -> Covariance:
    """z -> phi(z): K <- F(K_aa(x, x), K_ab(x, x'), K_bb(x', x')) and Theta <- F' Theta, entry by
    entry.

    Raises `ValueError` when the channels are not Gaussian, that is when no layer of random weights
    came just before.
    """
    if not covariance.gaussian:
        raise ValueError(
            f"nonlinearity {activation.name!r} acts on channels that are not Gaussian: "
            "put a layer with weights (Dense, Convolution, ...) before it"
        )

    def rule(a: Array, moments: Moments, b: Array) -> Moments:
        return Moments(
            activation.two_point(a, moments.nngp, b),
            activation.two_point_derivative(a, moments.nngp, b) * moments.ntk,
        )

    return covariance.pairwise(rule, gaussian=False)


def normalised(covariance: Covariance, epsilon: Num[Array, ""] | float) -> Covariance:
    """Channels divided by their standard deviation: K_ab <- K_ab / sqrt((K_aa + epsilon) (K_bb +
    epsilon)), and Theta likewise.

    Raises `ValueError` when the channels are not Gaussian (their mean over channels need not vanish
    then).
    """
    if not covariance.gaussian:
        raise ValueError(
            "LayerNorm acts on channels that are not Gaussian: put a layer with weights before it"
        )

    def rule(a: Array, moments: Moments, b: Array) -> Moments:
        scale = jax.lax.rsqrt((a + epsilon) * (b + epsilon))
        return Moments(moments.nngp * scale, moments.ntk * scale)

    return covariance.pairwise(rule)
