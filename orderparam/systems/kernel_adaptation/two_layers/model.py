"""Bayesian two-layer networks on targets of one direction: the width, the data and the scaling that let the weights adapt.

    f(x) = sum_c a_c phi(w_c . x),  c = 1..N,    x ~ N(0, 1_d),    y(x) = sum_k y_k h_k(z),  z = w_* . x,  |w_*| = 1,

sampled at temperature T from

    p(w, a) ~ exp{ -d |w|^2 / (2 weight_variance) - N |a|^2 / (2 readout_variance) - (1/(2T)) sum_mu (f(x_mu) - y_mu)^2 }

so that T is the variance of the observation noise (the targets have none) and the prior does not depend on it. With weight
decays gamma |theta|^2 / 2 in the energy, at temperature T, weight_variance = T d / gamma_w and readout_variance = T N / gamma_a.
h_k = He_k / sqrt(k!) is orthonormal under N(0, 1).  Seroussi, Naveh, Ringel 2023; Rubin, Seroussi, Ringel 2024.
"""

import itertools
import math
from collections.abc import Mapping
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from orderparam.core.system import System, is_number, parameter, structure
from orderparam.gaussian import Activation, activation, hermite
from orderparam.gaussian.arccosine import Abs, LeakyRelu, Relu
from orderparam.gaussian.polynomials import Linear

Number = Num[Array, ""] | float
HOMOGENEOUS = (Relu, LeakyRelu, Abs, Linear)


def hermite_target(coefficients: Mapping[int, float], normalised: bool = False) -> Float[Array, "degree"]:
    """The array `target` of a system from {degree: coefficient}.

    normalised: whether the coefficients belong to h_k; otherwise to He_k = sqrt(k!) h_k, so that {1: 1, 3: -0.3} is
    y = z - 0.3 (z^3 - 3z) and becomes (0, 1, 0, -0.3 sqrt 6). Raises `ValueError` for a degree that is not an integer >= 0.
    """
    for degree in coefficients:
        if isinstance(degree, bool) or not isinstance(degree, int) or degree < 0:
            raise ValueError(f"coefficients: degree {degree!r} must be an integer >= 0")
    found = np.zeros(max(coefficients, default=0) + 1)
    for degree, value in coefficients.items():
        found[degree] = value * (1.0 if normalised else math.sqrt(math.factorial(degree)))
    return jnp.asarray(found)


def absolute_coefficients(count: int) -> np.ndarray:
    """E |z| h_k(z) for k < count, without the mean: sqrt(2/pi) (-1)^(k/2 - 1) (k-3)!! / sqrt(k!) for even k >= 2."""
    found, factor = np.zeros(count), math.sqrt(2 / math.pi)
    for k in range(2, count, 2):
        found[k] = factor * (-1) ** (k // 2 - 1) / math.sqrt(math.factorial(k))
        factor *= k - 1
    return found


class Network(System):
    """What all networks here have in common: the activation, and the scaling of read-out variance and temperature."""

    def __check_init__(self) -> None:
        self.phi  # noqa: B018  refuses unknown activations

    @property
    def phi(self) -> Activation:
        """The nonlinearity."""
        return activation(getattr(self, "activation"))  # noqa: B009  a field of the subclasses

    def scaling(self, chi: float, rescale_noise: bool = True) -> Self:
        """From standard (chi = 1) to mean-field scaling (chi ~ N): read-out variance and temperature divided by chi.

        The infinitely wide network sees only their ratio and stays the same; the pull on the weights grows as chi.
        rescale_noise: whether the temperature is divided too; if not, the Gaussian process changes as well.
        Raises `ValueError` unless chi > 0.
        """
        if not chi > 0:
            raise ValueError(f"chi = {chi}: must be > 0")
        given: Any = self
        temperature = given.temperature / chi if rescale_noise else given.temperature
        return self.with_(readout_variance=given.readout_variance / chi, temperature=temperature)


class TwoLayerNetwork(Network):
    """A two-layer network, averaged over Gaussian data.

    target:     (degree,) the coefficients y_k of h_k, k = 0, 1, ..: see `hermite_target`.
    absolute:   adds absolute * (|z| - E|z|) to the target.
    activation: phi, a name or an `Activation`. NB "erf" is erf(w . x), "erf_scaled" erf(w . x / sqrt 2).
    modes:      the h_k that the theory keeps; None: (1, 3, 5, 7) for odd phi, (0, 2, 4, 6) for even phi, (1,) for linear,
                (0, 1, 2, 4) for relu and leaky relu, (0, 1, 2, 3, 4) otherwise. Components of the target on other modes count as
                not learned.

    Raises `ValueError` for a target that is not a vector of finite numbers, or zero; for modes that are not increasing integers.
    """

    input_dim: Number = parameter("input dimension d", minimum=3)
    width: Number = parameter("number of hidden units N", above=0)
    n_train: Number = parameter("number of training examples n", above=0)
    temperature: Number = parameter("Langevin temperature T: variance of the observation noise", above=0)
    target: Float[Array, "degree"] = parameter("coefficients of the normalised Hermite polynomials in the target")
    readout_variance: Number = parameter("prior variance of sqrt(N) a_c", above=0, default=1.0)
    weight_variance: Number = parameter("prior variance of |w_c|, E |w_c|^2", above=0, default=1.0)
    absolute: Number = parameter("coefficient of |z| - E|z| in the target", default=0.0)
    activation: str | Activation = structure("nonlinearity: a name or an Activation", default="erf")
    modes: tuple[int, ...] | None = structure("degrees of the Hermite polynomials kept; None: by activation", default=None)

    def __check_init__(self) -> None:
        target = self.target
        if isinstance(target, np.ndarray | jax.Array) and not isinstance(target, jax.core.Tracer) and target.ndim == 1:
            values, zero = np.asarray(target), is_number(self.absolute) and float(self.absolute) == 0
            if not np.all(np.isfinite(values)) or (zero and not np.any(values)):
                raise ValueError(f"TwoLayerNetwork.target = {target}: must be finite numbers, not all zero")
        elif not isinstance(target, jax.core.Tracer | jax.ShapeDtypeStruct) and np.ndim(target) != 2:  # 2: batched
            raise ValueError(f"TwoLayerNetwork.target = {target!r}: must be a vector (degree,); see hermite_target")
        modes = self.modes
        if modes is not None and not (
            isinstance(modes, tuple)
            and len(modes) > 0
            and all(isinstance(k, int) and not isinstance(k, bool) and k >= 0 for k in modes)
            and all(a < b for a, b in itertools.pairwise(modes))
        ):
            raise ValueError(f"TwoLayerNetwork.modes = {modes!r}: must be a tuple of increasing integers >= 0")

    @property
    def kept(self) -> tuple[int, ...]:
        """The degrees of the modes of the theory."""
        if self.modes is not None:
            return self.modes
        phi = self.phi
        if isinstance(phi, Linear):
            return (1,)
        if phi.parity == "odd":
            return (1, 3, 5, 7)
        if phi.parity == "even":
            return (0, 2, 4, 6)
        return (0, 1, 2, 4) if isinstance(phi, HOMOGENEOUS) else (0, 1, 2, 3, 4)

    @property
    def one_patch(self) -> "TwoLayerNetwork":
        """This network: see `PatchNetwork`."""
        return self

    @property
    def copies(self) -> Number:
        """How many times every mode exists: see `PatchNetwork`."""
        return 1.0

    @property
    def homogeneous(self) -> bool:
        """Whether phi(cz) = c phi(z) for c > 0."""
        return isinstance(self.phi, HOMOGENEOUS)

    def coefficients(self, degrees: tuple[int, ...]) -> Float[Array, "mode"]:
        """y_k of these degrees."""
        count = max(max(degrees) + 1, self.target.shape[0])
        known = jnp.zeros(count).at[: self.target.shape[0]].set(jnp.asarray(self.target, float))
        return (known + self.absolute * absolute_coefficients(count))[np.asarray(degrees)]

    @property
    def power(self) -> Float[Array, ""]:
        """E y^2."""
        target = jnp.asarray(self.target, float)
        cross = 2 * self.absolute * (target @ absolute_coefficients(target.shape[0]))
        return target @ target + cross + self.absolute**2 * (1 - 2 / math.pi)

    def label(self, z: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """y as a function of z = w_* . x."""
        target = jnp.asarray(self.target, float)
        polynomial = sum((target[k] * hermite(k, z) for k in range(target.shape[0])), jnp.zeros_like(z))
        return polynomial + self.absolute * (jnp.abs(z) - math.sqrt(2 / math.pi))

    @property
    def ridge(self) -> Float[Array, ""]:
        """lambda = T/n, the ridge of a kernel averaged over data."""
        return jnp.asarray(self.temperature, float) / self.n_train

    @property
    def signal(self) -> Float[Array, ""]:
        """A = readout_variance n / (T d): a linear mode against the ridge. Fixed along every `scaling`."""
        return jnp.asarray(self.readout_variance, float) * self.n_train / (self.temperature * self.input_dim)

    @property
    def adaptation(self) -> Float[Array, ""]:
        """U = n^2 readout_variance / (T^2 d N): the pull of the residual on the weights. Grows as chi along `scaling`."""
        pull = jnp.asarray(self.readout_variance, float) * (self.n_train / jnp.asarray(self.temperature, float)) ** 2
        return pull / (self.input_dim * jnp.asarray(self.width, float))


class NetworkOnData(Network):
    """The same network on a given training set, with test points.

    inputs, test_inputs: (train, input) and (test, input). targets, test_targets: (train,) and (test,).
    Raises `ValueError` for shapes that do not belong together and entries that are not finite.
    """

    inputs: Float[Array, "train input"]
    targets: Float[Array, "train"]
    test_inputs: Float[Array, "test input"]
    test_targets: Float[Array, "test"]
    width: Number = parameter("number of hidden units N", above=0)
    temperature: Number = parameter("Langevin temperature T: variance of the observation noise", above=0)
    readout_variance: Number = parameter("prior variance of sqrt(N) a_c", above=0, default=1.0)
    weight_variance: Number = parameter("prior variance of |w_c|, E |w_c|^2", above=0, default=1.0)
    activation: str | Activation = structure("nonlinearity: a name or an Activation", default="erf")

    def __check_init__(self) -> None:
        own = type(self).__name__
        for x, y in (("inputs", "targets"), ("test_inputs", "test_targets")):
            points, labels = getattr(self, x), getattr(self, y)
            if isinstance(points, jax.core.Tracer) or isinstance(labels, jax.core.Tracer) or not hasattr(points, "shape"):
                continue
            if points.ndim != 2 or labels.shape != points.shape[:1] or points.shape[0] == 0:
                raise ValueError(f"{own}.{x}, .{y} have shapes {points.shape}, {labels.shape}: must be (n, d) and (n,)")
            for name, array in ((x, points), (y, labels)):
                if eqx.is_array_like(array) and not np.all(np.isfinite(np.asarray(array))):
                    raise ValueError(f"{own}.{name} contains NaN or infinity")
        if getattr(self.inputs, "ndim", 0) == 2 and self.inputs.shape[1:] != self.test_inputs.shape[1:]:
            raise ValueError(
                f"{own}.test_inputs has {self.test_inputs.shape[1:]} features: must be {self.inputs.shape[1:]}, as inputs"
            )
