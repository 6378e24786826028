"""The system of a score that is learned on random features."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from orderparam.core.system import System, parameter, structure
from orderparam.gaussian import Activation, activation, activation_names
from orderparam.systems.diffusion.model import decay


class Powers(NamedTuple):
    """Powers of a feature at a time t, with unit variance of its argument.

    Fields:
        kept: a^2 = e^{-2t}, the remaining power of the data.
        noise: D = 1 - a^2.
        linear: mu^2, the linear power of the activation.
        example: s^2 = E m^2 - a^2 mu^2, the nonlinear power that depends on the example.
        rest: v^2, the nonlinear power that depends on the noise.
        sample_ratio: n/d.
        feature_ratio: p/d.
    """

    kept: Any
    noise: Any
    linear: Any
    example: Any
    rest: Any
    sample_ratio: Any
    feature_ratio: Any


class FeatureScore(System):
    r"""A score that is learned by gradient flow on random features, at one time t of the diffusion.

    Data are n examples $x_0 \sim N(0, 1_d)$, and $x_t = a x_0 + \sqrt D z$. The model is
    $s_A(x) = A \sigma(W x)$ with p features, rows of W uniform on the unit sphere and an odd
    $\sigma$. Its loss is that of denoising score matching, averaged over the noise, with a ridge r,

    $$ L = \frac1d \frac1n \sum_\nu E_z |\sqrt D s_A(x_t) + z|^2 + r \frac Dd |A|^2 , \qquad
       \frac{dA}{d\tau} = -\frac{d}{2D} \frac{\partial L}{\partial A}, \qquad A(0) = 0 , $$

    so that a vanishing score has the loss 1, and the exact score $-x$ has the loss $1 - D$.
    """

    sample_ratio: float = parameter("examples per dimension n/d", above=0)
    feature_ratio: float = parameter("features per dimension p/d", above=0)
    time: float = parameter("time t of the diffusion", above=0)
    training_time: float = parameter(
        "training time tau; infinite for a model that has learned to its end",
        above=0,
        infinite=True,
        default=float("inf"),
    )
    ridge: float = parameter("ridge r of the loss", minimum=0, default=0.0)
    smoothing: float = parameter(
        "width eta over which the density of the logarithms of eigenvalues is smoothed",
        above=0,
        maximum=1,
        default=0.1,
    )
    input_dim: int = parameter(
        "dimension d of the data in an experiment", minimum=4, integer=True, default=60
    )
    activation: Activation = structure(
        "odd nonlinearity sigma", convert=activation, choices=activation_names, default="tanh"
    )

    def __check_init__(self) -> None:
        if self.activation.parity != "odd":
            raise ValueError(
                f"FeatureScore.activation = {self.activation.name!r}: must be odd, like 'tanh' or "
                "'erf'"
            )

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The sizes d, n and p of an experiment; n and p are rounded to whole numbers of at least
        1."""
        dimension = self.size("input_dim")
        examples = max(1, round(float(self.sample_ratio) * dimension))
        return dimension, examples, max(1, round(float(self.feature_ratio) * dimension))

    @property
    def powers(self) -> Powers:
        """The powers of the activation at this time, on which the theory depends."""
        kept, noise = decay(self.time)
        kept = kept**2
        phi = self.activation
        linear = phi.hermite_coefficients(2)[1] ** 2
        shared, whole = phi.two_point(1.0, kept, 1.0), phi.two_point(1.0, 1.0, 1.0)
        # powers that vanish may come out negative by rounding
        example = jnp.maximum(shared - kept * linear, 0.0)
        rest = jnp.maximum(whole - shared - noise * linear, 0.0)
        return Powers(kept, noise, linear, example, rest, self.sample_ratio, self.feature_ratio)
