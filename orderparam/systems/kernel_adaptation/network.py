"""The posterior that all networks of this topic share, and the hidden layer of the networks that
are averaged over Gaussian data.

A network is sampled at temperature T from

    p(w, a) ~ exp{ -d |w|^2 / (2 weight_variance) - N |a|^2 / (2 readout_variance)
                   - (1/(2T)) sum_mu (f(x_mu) - y_mu)^2 }

so that T is the variance of the observation noise that the network assumes (the targets contain no
noise), and the prior does not depend on T. With weight decays gamma |theta|^2 / 2 in the energy at
temperature T, weight_variance = T d / gamma_w and readout_variance = T N / gamma_a. h_k = He_k /
sqrt(k!) is orthonormal under N(0, 1). Seroussi, Naveh, Ringel 2023; Rubin, Seroussi, Ringel 2024.
"""

import itertools
import math
from collections.abc import Mapping
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.fields import is_number, structure
from orderparam.core.result import Result
from orderparam.core.system import System
from orderparam.gaussian import Activation, activation, activation_names, hermite
from orderparam.gaussian.arccosine import Abs, LeakyRelu, Relu
from orderparam.gaussian.polynomials import Linear

HOMOGENEOUS = (Relu, LeakyRelu, Abs, Linear)  # phi(cz) = c phi(z) for c > 0

Degrees = tuple[int, ...]
Number = Any  # a float64 array inside a theory, where the fields of a System are called float


class AdaptiveNetwork(System):
    """The activation of a network, and the scaling of its read-out variance and temperature.

    The activation "erf" is erf(z), and "erf_scaled" is erf(z / sqrt 2).
    """

    activation: Activation = structure(
        "nonlinearity", convert=activation, choices=activation_names, default="erf", kw_only=True
    )

    def scaling(self, chi: float, rescale_noise: bool = True) -> Self:
        """The network with its read-out variance and temperature divided by chi: from standard
        scaling (chi = 1) to mean-field scaling (chi ~ N).

        The infinitely wide network depends only on the ratio of read-out variance and temperature
        and does not change; the force on the weights grows as chi.

        Args:
            chi: the divisor, > 0.
            rescale_noise: whether the temperature is divided too. Default True; otherwise the
                Gaussian process changes as well.

        Raises:
            ValueError: unless chi > 0.
        """
        if not chi > 0:
            raise ValueError(f"chi = {chi}: must be > 0")
        given: Any = self  # the variances are fields of the subclasses
        temperature = given.temperature / chi if rescale_noise else given.temperature
        return self.with_(readout_variance=given.readout_variance / chi, temperature=temperature)


def hermite_target(
    coefficients: Mapping[int, float], normalised: bool = False
) -> Float[Array, "degree"]:
    """The array `target` of a system from the coefficients of Hermite polynomials.

    Args:
        coefficients: {degree: coefficient}.
        normalised: whether the coefficients belong to h_k. Default False: they belong to He_k =
            sqrt(k!) h_k, so that {1: 1, 3: -0.3} is y = z - 0.3 (z^3 - 3z).

    Raises:
        ValueError: for a degree that is not an integer >= 0.

    >>> np.asarray(hermite_target({1: 1.0, 3: -0.3})).round(6).tolist()
    [0.0, 1.0, 0.0, -0.734847]
    """
    for degree in coefficients:
        if isinstance(degree, bool) or not isinstance(degree, int) or degree < 0:
            raise ValueError(f"coefficients: degree {degree!r} must be an integer >= 0")
    found = np.zeros(max(coefficients, default=0) + 1)
    for degree, value in coefficients.items():
        found[degree] = value * (1.0 if normalised else math.sqrt(math.factorial(degree)))
    return jnp.asarray(found)


class HermiteTarget(eqx.Module):
    """The target y(z) = sum_k coefficients_k h_k(z) + absolute (|z| - E|z|)."""

    polynomial: Float[Array, "degree"]
    absolute: Number = 0.0

    def __call__(self, z: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        polynomial = sum(
            (self.polynomial[k] * hermite(k, z) for k in range(self.polynomial.shape[0])),
            jnp.zeros_like(z),
        )
        return polynomial + self.absolute * (jnp.abs(z) - math.sqrt(2 / math.pi))

    def coefficients(self, degrees: Degrees) -> Float[Array, "mode"]:
        """Coefficients y_k of the target on the modes of the given degrees."""
        count = max(max(degrees) + 1, self.polynomial.shape[0])
        given = jnp.zeros(count).at[: self.polynomial.shape[0]].set(self.polynomial)
        return (given + self.absolute * _absolute(count))[np.asarray(degrees)]

    @property
    def power(self) -> Float[Array, ""]:
        """Second moment E y^2 of the target over z ~ N(0, 1)."""
        cross = 2 * self.absolute * (self.polynomial @ _absolute(self.polynomial.shape[0]))
        return self.polynomial @ self.polynomial + cross + self.absolute**2 * (1 - 2 / math.pi)


def refuse_zero(owner: str, target: Any, absolute: Any = 0.0) -> None:
    """Refuse a target that is zero.

    Raises:
        ValueError: for such a target.
    """
    if (
        not isinstance(target, jax.core.Tracer)
        and is_number(absolute)
        and absolute == 0
        and not np.any(np.asarray(target))
    ):
        raise ValueError(f"{owner}.target = {target}: must not be zero")


def _absolute(count: int) -> np.ndarray:
    """Coefficients E |z| h_k(z) for k < count without the mean: sqrt(2/pi) (-1)^(k/2 - 1) (k-3)!! /
    sqrt(k!) for even k >= 2, else 0."""
    found, factor = np.zeros(count), math.sqrt(2 / math.pi)
    for k in range(2, count, 2):
        found[k] = factor * (-1) ** (k // 2 - 1) / math.sqrt(math.factorial(k))
        factor *= k - 1
    return found


def kept_degrees(phi: Activation, modes: Degrees | None) -> Degrees:
    """The degrees k of the modes h_k that the theories keep.

    These are `modes` where given; otherwise (1, 3, 5, 7) for an odd activation, (0, 2, 4, 6) for an
    even one, (1,) for linear units, (0, 1, 2, 4) for relu and leaky relu, and (0, 1, 2, 3, 4) for
    all others.
    """
    if modes is not None:
        return modes
    if isinstance(phi, Linear):
        return (1,)
    if phi.parity is not None:
        return (1, 3, 5, 7) if phi.parity == "odd" else (0, 2, 4, 6)
    return (0, 1, 2, 4) if isinstance(phi, HOMOGENEOUS) else (0, 1, 2, 3, 4)


def increasing(modes: Any) -> Degrees | None:
    """The field `modes` as a tuple, or None.

    Raises:
        ValueError: for anything but a sequence of increasing integers.
    """
    if modes is None:
        return None
    if (
        not isinstance(modes, list | tuple)
        or not modes
        or not all(a < b for a, b in itertools.pairwise(modes))
    ):
        raise ValueError("must be increasing integers >= 0")
    return tuple(modes)


class HiddenLayer(eqx.Module):
    """The hidden layer as the theories use it: N independent neurons with weights w ~ N(0, v/d),
    and the target on the modes that are kept.

    `copies` is the number of copies of every mode: the number of patches, each of which has a
    read-out on the same neurons.
    """

    dim: Number
    width: Number
    n_train: Number
    temperature: Number
    readout_variance: Number
    weight_variance: Number
    target: HermiteTarget
    phi: Activation = eqx.field(static=True)
    degrees: Degrees = eqx.field(static=True)
    copies: Number = 1.0

    @property
    def homogeneous(self) -> bool:
        """True if phi(cz) = c phi(z) for c > 0."""
        return isinstance(self.phi, HOMOGENEOUS)

    @property
    def y(self) -> Float[Array, "mode"]:
        """The coefficients y_k of the target on the modes."""
        return self.target.coefficients(self.degrees)

    @property
    def size(self) -> Float[Array, ""]:
        """Norm |y| of the target on the modes, which is the unit of residuals; 1 if the target has
        no component on the modes."""
        squared = self.y @ self.y
        return jnp.sqrt(jnp.where(squared == 0, 1.0, squared))

    @property
    def ridge(self) -> Float[Array, ""]:
        """Ridge lambda = T/n of a kernel averaged over data."""
        return self.temperature / self.n_train

    @property
    def scale(self) -> Float[Array, ""]:
        """Prior standard deviation sqrt(v/d) of a hidden weight."""
        return jnp.sqrt(self.weight_variance / self.dim)

    @property
    def amplitude(self) -> Float[Array, ""]:
        """Prior standard deviation sqrt(readout_variance / N) of a read-out weight."""
        return jnp.sqrt(self.readout_variance / self.width)


# ------------------------------------------------------------------------------------------------
# Observables that theories and experiments averaged over the input distribution share.


class OnModes(Result):
    """The mean output of the network on the modes h_k of the target's direction, and the weights
    along that direction.

    Fields:
        degree: k of each mode.
        output: f_k = E f h_k, with f the posterior mean.
        learnability: f_k / y_k; NaN where the target has no such component.
        total_learnability: E f y / E y^2.
        spread: d <rho^2> / weight_variance with rho = w . w_*; 1 without adaptation.
    """

    degree: Float[Array, "mode"]
    output: Float[Array, "mode"]
    learnability: Float[Array, "mode"]
    total_learnability: Float[Array, ""]
    spread: Float[Array, ""]


def on_modes(
    layer: HiddenLayer, output: Float[Array, "mode"], spread: Float[Array, ""]
) -> dict[str, Array]:
    """The fields of `OnModes`."""
    y = layer.y
    return {
        "degree": jnp.asarray(layer.degrees, float),
        "output": output,
        "learnability": over(output, y),
        "total_learnability": output @ y / layer.target.power,
        "spread": spread,
    }


def over(
    output: Float[Array, "*batch mode"], y: Float[Array, "mode"]
) -> Float[Array, "*batch mode"]:
    """The ratio output / y; NaN where y is zero."""
    return jnp.where(y == 0, jnp.nan, output / jnp.where(y == 0, 1.0, y))


# ------------------------------------------------------------------------------------------------
# The number of Markov chains.


def check_chains(system: System, chains: int = 2, **_: object) -> None:
    """Refuse an odd number of chains, because half of them start in one way and half in another.

    Raises:
        ValueError: for an odd number, or fewer than two.
    """
    if chains < 2 or chains % 2:
        raise ValueError(f"chains = {chains}: must be even and at least 2")
