"""Averages over the weights of one neuron: its overlaps with the modes, and integrals over its
density.
"""

import math
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp
from jaxtyping import Array, Bool, Float

from orderparam.gaussian.numerical import Numerical
from orderparam.systems.kernel_adaptation.hermite_overlaps import Overlaps, interpolated, overlaps
from orderparam.systems.kernel_adaptation.network import Degrees, HiddenLayer

# ------------------------------------------------------------------------------------------------
# Averages over the weights of one neuron, as integrals over rho = w . w_* and
# q_perp = |w|^2 - rho^2.
#
# Under the prior rho ~ N(0, v/d) and q_perp ~ (v/d) chi^2_(d-1), v the weight variance. Interacting
# weights have the density
#
#     prior(rho, q_perp) exp{ (s/(2N)) (tau . m(rho, q_perp))^2 },      s the read-out variance.
#
# The quadrature rule has the nodes rho = R sinh(4u) / sinh 4 on a uniform grid in u. At every rho
# the nodes of q_perp lie around the maximum of the density there, in units of its width: log q_perp
# = centre + width (t - exp(-t - 4.5) + exp(t - 5)) on a uniform grid in t. This grid is nearly
# uniform over the peak, and it extends down the long tail of chi^2 with few degrees of freedom and
# up to a second peak. The centre moves with tau, because the norm of specialised neurons is smaller
# than at the prior by many standard deviations; for these neurons rules that are exact for the
# prior are wrong in the second digit. Trapezoidal sums of analytic, decaying functions converge
# exponentially: for a peak whose logarithm has the second difference b between nodes the error is
# exp(-2 pi^2 / b). With the nodes used here relative errors are below 1e-9 for d from 6 to 2000 and
# 1e-7 at d = 3; `resolves` says where there are too few nodes.

Norm = Literal["exact", "concentrated", "prior"]
Tau = Float[Array, "mode"]

RHO_NODES = 641  # nodes on a half line
_STEP = 0.5
_GRID = np.arange(-8.0, 7.6, _STEP)
_NOTHING = -18.0  # logarithm of the largest share of probability outside the nodes
_CENTRING = 6  # Newton steps towards the maximum in log q_perp
# nodes of log q_perp, in standard deviations
STANDARD_NODES = _GRID - np.exp(-_GRID - 4.5) + np.exp(_GRID - 5)
LOG_STEPS = np.log(_STEP * (1 + np.exp(-_GRID - 4.5) + np.exp(_GRID - 5)))  # log of their spacing


class Fluctuations(eqx.Module):
    """The terms that fluctuations of the output add to the action of a weight, (s/2N) [m^T kernel m
    + perpendicular p + rest r].

    Here p = |w_perp|^2 (m_1/rho)^2 is the power of one hidden unit on linear functions orthogonal
    to w_*, and r its power on all other functions.
    """

    kernel: Float[Array, "mode mode"]
    perpendicular: Float[Array, ""]
    rest: Float[Array, ""]


class Kernel(eqx.Module):
    """The kernel of the hidden layer at some density of its weights.

    `modes` is s <m m^T>; `perpendicular` is s <p> / (d - 1), the eigenvalue of d - 1 linear
    functions orthogonal to w_*; `rest` is s <r>, the trace of all other functions.
    """

    modes: Float[Array, "mode mode"]
    perpendicular: Float[Array, ""]
    rest: Float[Array, ""]


def log_mean(log_weight: Array, exponent: Array) -> Float[Array, ""]:
    """Logarithm of the mean of exp(exponent) with the statistical weights exp(log_weight), which
    need not be normalised. The result is accurate to rounding also if it is very small.
    """
    weight = jax.nn.softmax(log_weight.ravel()).reshape(log_weight.shape)
    small = jnp.max(jnp.abs(exponent)) < 1
    little = jnp.log1p(jnp.sum(weight * jnp.expm1(jnp.where(small, exponent, 0.0))))
    much = logsumexp(log_weight + exponent) - logsumexp(log_weight)
    return jnp.where(small, little, much)


def resolves(
    log_weight: Float[Array, "node *inner"], axis: int = 0, error: float = 4e-8
) -> Bool[Array, ""]:
    """True if no peak along an axis is too sharp for its nodes.

    The criterion is that exp(-2 pi^2 / b) times the weight of the peak is below `error`, with b the
    second difference of the logarithm between nodes.
    """
    x = jnp.moveaxis(log_weight, axis, 0)
    left, here, right = x[:-2], x[1:-1], x[2:]
    bend = jnp.where(jnp.isfinite(left) & jnp.isfinite(right), 2 * here - left - right, 0.0)
    return jnp.all(here - jnp.max(x) - 2 * math.pi**2 / jnp.maximum(bend, 1e-3) < math.log(error))


class Plane(eqx.Module):
    """The quadrature rule of one hidden layer in the plane (rho, q_perp).

    `rho` are nodes and `log_measure` the logarithm of prior density times node weight. Where (tau .
    m)^2 is even in rho only rho >= 0 is covered, and `log_measure` contains the factor 2. `norm` is
    "exact" if q_perp is integrated over. Otherwise q_perp is fixed, at its prior mean v (d-1)/d for
    "concentrated" and at v for "prior".
    """

    layer: HiddenLayer
    rho: Float[Array, "node"]
    spacing: Float[Array, "node"]
    log_measure: Float[Array, "node"]
    even: bool = eqx.field(static=True)
    norm: Norm = eqx.field(static=True)

    @classmethod
    def of(
        cls, layer: HiddenLayer, norm: Norm = "exact", within: float | Array | None = None
    ) -> "Plane":
        """The rule of a hidden layer.

        Args:
            within: if given, only weights with |rho| < within are included (a restricted ensemble).
        """
        d, v = layer.dim, layer.weight_variance
        even = layer.phi.parity in ("odd", "even")
        u = jnp.linspace(0.0 if even else -1.0, 1.0, RHO_NODES if even else 2 * RHO_NODES - 1)
        # homogeneous activations do not saturate, so that weights may become larger
        reach = jnp.maximum(3 * jnp.sqrt(v) + 5, 12 * jnp.sqrt(v / d)) * (
            3 if layer.homogeneous else 1
        )
        rho = reach * jnp.sinh(4 * u) / math.sinh(4)
        spacing = reach * 4 * jnp.cosh(4 * u) / math.sinh(4) * (u[1] - u[0])
        spacing *= jnp.ones_like(u).at[0].set(0.5).at[-1].set(0.5) * (2.0 if even else 1.0)
        log_measure = jnp.log(spacing) - d * rho**2 / (2 * v) + jnp.log(d / (2 * np.pi * v)) / 2
        if within is not None:
            log_measure = jnp.where(jnp.abs(rho) < within, log_measure, -jnp.inf)
            log_measure -= logsumexp(log_measure)
        return cls(layer, rho, spacing, log_measure, even, norm)

    def overlaps(self, degrees: Degrees) -> Overlaps:
        """The overlaps m_k of the activation over the range of this rule."""
        return overlaps(self.layer.phi, degrees, *self._range)

    @property
    def _range(self) -> tuple[Array, Array]:
        """Range of |w|^2 for which the averages of activations without a closed form are
        tabulated."""
        deviation, v = jnp.sqrt(2 / (self.layer.dim - 1)), self.layer.weight_variance
        return v * jnp.exp(-12 * deviation - 4), self.rho[-1] ** 2 + v * jnp.exp(8 * deviation + 1)

    def nodes(self, tau: Tau) -> tuple[Array, Array]:
        """Nodes of q_perp and log(prior density times node weight), both of shape (node, inner);
        the weights of the nodes of rho are included.
        """
        layer = self.layer
        if self.norm != "exact":
            q = layer.weight_variance * (
                1.0 if self.norm == "prior" else (layer.dim - 1) / layer.dim
            )
            return jnp.full((self.rho.shape[0], 1), q), self.log_measure[:, None]
        m = self.overlaps(layer.degrees)
        shape, rate = (layer.dim - 1) / 2, layer.dim / (2 * layer.weight_variance)
        tau = jax.lax.stop_gradient(tau)

        def tilt(log_q: Array) -> Array:
            q = jnp.exp(log_q)
            field = sum(t * value for t, value in zip(tau, m(self.rho, self.rho**2 + q)))
            return shape * log_q - rate * q + layer.readout_variance / (2 * layer.width) * field**2

        def slope(log_q: Array) -> Array:
            return jax.jvp(tilt, (log_q,), (jnp.ones_like(log_q),))[1]

        prior = jnp.log(shape / rate)

        def step(_: int, reached: tuple[Array, Array]) -> tuple[Array, Array]:
            centre = reached[0]
            change, bend = jax.jvp(slope, (centre,), (jnp.ones_like(centre),))
            bend = jnp.maximum(-bend, 0.15 * shape)
            return jnp.maximum(
                centre + jnp.clip(change / bend, -1.0, 1.0), prior - 6.0
            ), 1 / jnp.sqrt(bend)

        start = (jnp.ones_like(self.rho) * prior, jnp.zeros_like(self.rho) * prior)
        centre, width = jax.lax.stop_gradient(jax.lax.fori_loop(0, _CENTRING, step, start))
        log_q = centre[:, None] + width[:, None] * STANDARD_NODES
        q = jnp.exp(log_q)
        normalisation = shape * jnp.log(rate) - gammaln(shape)
        inner = shape * log_q - rate * q + normalisation + jnp.log(width)[:, None] + LOG_STEPS
        return q, self.log_measure[:, None] + inner

    def others(self, m: Array, rho: Array, q_perp: Array) -> tuple[Array, Array]:
        """The powers p and r of `Fluctuations` at given weights, with m their overlaps with the
        modes.
        """
        q, phi = rho**2 + q_perp, self.layer.phi
        (slope,) = self.overlaps((1,))(jnp.ones_like(q), q)  # m_1 is rho times a function of q
        linear = q_perp * slope**2
        if isinstance(phi, Numerical):
            (power,) = interpolated(lambda q: phi.moment(2, q)[:, None], *self._range)(q)
        else:
            power = phi.two_point(q, q, q)
        return linear, power - jnp.sum(m**2, axis=0) - linear

    def kernel(self, m: Array, rho: Array, q_perp: Array, weight: Array) -> Kernel:
        """The kernel at weights of the given probabilities."""
        layer, flat = self.layer, m.reshape(m.shape[0], -1)
        linear, rest = (
            jnp.sum(weight * power) * layer.readout_variance
            for power in self.others(m, rho, q_perp)
        )
        return Kernel(
            (flat * weight.ravel()) @ flat.T * layer.readout_variance,
            linear / (layer.dim - 1),
            rest,
        )

    def density(self, tau: Tau, loops: Fluctuations | None = None) -> "PlaneDensity":
        """The density of interacting weights."""
        layer = self.layer
        q, log_prior = self.nodes(tau)
        rho = self.rho[:, None]
        m = jnp.stack(self.overlaps(layer.degrees)(rho, rho**2 + q))
        squared = jnp.tensordot(tau, m, 1) ** 2
        if loops is not None:
            linear, rest = self.others(m, rho, q)
            squared -= (
                jnp.einsum("jk,jab,kab->ab", loops.kernel, m, m)
                + loops.perpendicular * linear
                + loops.rest * rest
            )
        return PlaneDensity(
            self, tau, m, q, log_prior, layer.readout_variance / (2 * layer.width) * squared
        )


class PlaneDensity(eqx.Module):
    """The density of interacting weights on the nodes of the rule, and averages <.> over it.

    `m` has the shape (mode, node, inner); `log_prior` is the logarithm of prior density times node
    weight; `exponent` is (s/2N) [(tau . m)^2 - ..].
    """

    plane: Plane
    tau: Tau
    m: Float[Array, "mode node inner"]
    q_perp: Float[Array, "node inner"]
    log_prior: Float[Array, "node inner"]
    exponent: Float[Array, "node inner"]

    @property
    def weight(self) -> Float[Array, "node inner"]:
        """The probability of each node."""
        return jax.nn.softmax(self.log_prior + self.exponent, axis=(0, 1))

    @property
    def kernel(self) -> Kernel:
        """The kernel at these weights."""
        return self.plane.kernel(self.m, self.plane.rho[:, None], self.q_perp, self.weight)

    @property
    def derivatives(
        self,
    ) -> tuple[Float[Array, ""], Float[Array, "mode"], Float[Array, "mode mode"]]:
        """The function N log E_prior exp{(s/2N) (tau . m)^2} of tau, its gradient s <m (m . tau)>
        and its Hessian."""
        layer, weight, flat = (
            self.plane.layer,
            self.weight.ravel(),
            self.m.reshape(self.m.shape[0], -1),
        )
        kernel = (flat * weight) @ flat.T * layer.readout_variance
        output = kernel @ self.tau
        second = (flat * (weight * (self.tau @ flat) ** 2)) @ flat.T * layer.readout_variance**2
        curvature = kernel + (second - jnp.outer(output, output)) / layer.width
        return layer.width * log_mean(self.log_prior, self.exponent), output, curvature

    @property
    def second_moments(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Second moments <rho^2> and <|w|^2> of the weights."""
        squared = self.plane.rho[:, None] ** 2
        return jnp.sum(self.weight * squared), jnp.sum(self.weight * (squared + self.q_perp))

    @property
    def resolved(self) -> Bool[Array, ""]:
        """True if the nodes are dense enough for these weights and reach far enough."""
        log_weight = self.log_prior + self.exponent
        along = logsumexp(log_weight, axis=1)
        ends = along[-1] if self.plane.even else jnp.maximum(along[0], along[-1])
        found = resolves(along[1:-1]) & (ends < jnp.max(along) + _NOTHING)
        if self.plane.norm != "exact":
            return found
        ends = jnp.max(log_weight[:, jnp.array([0, -1])])
        return (
            found
            & resolves(log_weight, axis=1, error=5e-6)
            & (ends < jnp.max(log_weight) + _NOTHING)
        )

    @property
    def along(self) -> tuple[Float[Array, "half"], Float[Array, "half"], Float[Array, "half"]]:
        """Nodes rho >= 0, the logarithm of the even part of the density with respect to rho, and
        the probability of +-rho together."""
        log_weight, plane = self.log_prior + self.exponent, self.plane
        log_density = logsumexp(log_weight, axis=1) - logsumexp(log_weight) - jnp.log(plane.spacing)
        mass = jnp.sum(self.weight, axis=1)
        if plane.even:
            return plane.rho, log_density, mass
        half = plane.rho.shape[0] // 2
        pairs = jnp.stack([log_density[half:], log_density[half::-1]])
        mass = (mass[half:] + mass[half::-1]).at[0].divide(2)
        return plane.rho[half:], logsumexp(pairs, axis=0) - jnp.log(2.0), mass
