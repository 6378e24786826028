r"""Differential equations: a function is learned from values of L u = f at points.

A kernel, such as the tangent kernel of a wide network, is the covariance of a prior of the solution
u. The operator, applied to both arguments of this kernel, gives the kernel of the residual L u. On
a circle, and on an interval at whose ends u vanishes, operators with constant coefficients are
diagonal in waves, so that all spectra are known exactly.
"""

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float, Num

from orderparam.core.system import Record, System, parameter, part, structure
from orderparam.networks.architecture import Architecture

FREQUENCIES = 96  # number of Fourier coefficients of the tangent kernel that are kept


class Operator(Record):
    r"""The linear operator $L u = c\, u + v\, u' - D\, u''$ with constant coefficients.

    A wave of wave number q is multiplied by $c + i v q + D q^2$.
    """

    reaction: float = parameter("coefficient c of the function", minimum=0, default=1.0)
    advection: float = parameter("coefficient v of the first derivative", default=0.0)
    diffusion: float = parameter(
        "coefficient D of the second derivative, with a minus sign", minimum=0, default=1.0
    )

    def multiplier(self, wave_numbers: Num[Array, "frequency"]) -> Complex[Array, "frequency"]:
        """The factor c + i v q + D q^2 by which the operator multiplies each wave."""
        even = self.reaction + self.diffusion * wave_numbers**2
        return even + 1j * self.advection * wave_numbers

    def gain(self, wave_numbers: Num[Array, "frequency"]) -> Float[Array, "frequency"]:
        """The squared modulus of the multiplier of each wave."""
        even = self.reaction + self.diffusion * wave_numbers**2
        return even**2 + (self.advection * wave_numbers) ** 2


class EquationRegression(System):
    r"""Regression on values of a differential equation, with a kernel whose modes are waves.

    The solution u of $L u = f$ has a Gaussian prior with covariance $K(x, x') = \sum_k \lambda_k
    \phi_k(x) \phi_k(x')$. At n points the right-hand side is observed with noise, $y_\mu = f(x_\mu)
    + \sqrt{\Delta}\, \xi_\mu$, and the estimate minimises $\sum_\mu (L u(x_\mu) - y_\mu)^2 + T
    |u|_K^2$.

    On the `circle`, $0 \le x < 2\pi$, the modes are 1, $\sqrt2 \cos kx$ and $\sqrt2 \sin kx$:
    arrays begin with frequency 0, and a frequency k > 0 has two modes. On the `interval`,
    $0 \le x \le 1$ with u = u'' = 0 at both ends, they are $\sqrt2 \sin k \pi x$, and arrays begin
    with k = 1. Errors are averages over x. Modes of u that the operator maps to 0 are estimated as
    0.

    `ValueError` is raised for advection on the interval, which mixes sines and cosines.
    """

    prior: Float[Array, "frequency"] = parameter(
        "eigenvalue lambda_k of the kernel of u, for each mode of a frequency", minimum=0
    )
    solution_power: Float[Array, "frequency"] = parameter(
        "mean square of the true solution at every frequency", minimum=0
    )
    n_points: int = parameter("points n at which the equation is known", minimum=1, integer=True)
    operator: Operator = part("the operator L", default=Operator())
    ridge: float = parameter("ridge T, added to the kernel matrix of L u", minimum=0, default=0.0)
    noise: float = parameter("variance Delta of the noise on f", minimum=0, default=0.0)
    domain: Literal["circle", "interval"] = structure("where the equation holds", default="circle")

    def __check_init__(self) -> None:
        speed: Any = self.operator.advection
        moving = not isinstance(speed, jax.core.Tracer) and bool(np.any(np.asarray(speed) != 0))
        if self.domain == "interval" and moving:
            raise ValueError(
                "EquationRegression.operator has advection: must be 0 on the interval, whose modes "
                "are sines"
            )

    @property
    def wave_numbers(self) -> Float[Array, "frequency"]:
        """Wave number q of every frequency."""
        count = len(self.prior)
        return jnp.arange(count) if self.domain == "circle" else jnp.pi * jnp.arange(1, count + 1)

    @property
    def multiplicities(self) -> Float[Array, "frequency"]:
        """Number of modes of every frequency."""
        many = np.ones(len(self.prior))
        if self.domain == "circle":
            many[1:] = 2
        return jnp.asarray(many)


class EquationNetwork(System):
    r"""A network that is trained on the residual of a differential equation on the circle.

    Its inputs are $\sqrt2 (\cos x, \sin x)$, so that its output is periodic in x; derivatives by x
    are computed exactly. At the points $x_\mu = 2 \pi \mu/n$ the right-hand side f = L u of the
    true solution $u(x) = \sum_k (a_k \cos kx + b_k \sin kx)$ is known, and all parameters of the
    network minimise

    $$ \frac12 \sum_\mu \big(L \hat u(x_\mu) - f(x_\mu)\big)^2 + \frac T2 |\theta - \theta_0|^2 $$

    from an antisymmetric start. The network consists of two copies that have the same weights at
    the start, and its output $\hat u = (u_1 - u_2)/\sqrt2$ is zero there.

    `ValueError` is raised for an architecture that is not in ntk scaling.
    """

    cosines: Float[Array, "frequency"] = parameter(
        "coefficients a of the true solution, from frequency 0 on"
    )
    sines: Float[Array, "frequency"] = parameter(
        "coefficients b of the true solution; that of frequency 0 is not used"
    )
    n_points: int = parameter("number n of equidistant points", minimum=1, integer=True)
    architecture: Architecture = part(
        "one output, ntk scaling, smooth activation; where it leaves widths open, `width` fills "
        "them"
    )
    operator: Operator = part("the operator L", default=Operator())
    ridge: float = parameter("ridge T on the change of the weights", above=0, default=1e-2)
    width: int = parameter(
        "width of the hidden layers that the architecture leaves open",
        minimum=1,
        integer=True,
        default=256,
    )

    def __check_init__(self) -> None:
        if self.architecture.scaling != "ntk":
            raise ValueError(
                f"EquationNetwork.architecture has scaling {self.architecture.scaling!r}: must be "
                "'ntk'"
            )
        if len(self.cosines) > FREQUENCIES:
            raise ValueError(
                f"EquationNetwork.cosines has {len(self.cosines)} entries: must have at most "
                f"{FREQUENCIES}, the frequencies that are kept of the kernel"
            )


def circle(angles: Float[Array, "point"]) -> Float[Array, "point 2"]:
    """The points of the circle at these angles as inputs of a network, with squared length 2."""
    return jnp.sqrt(2.0) * jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
