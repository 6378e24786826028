"""Averages over the weights of one neuron, as integrals over rho = w . w_* and q_perp = |w|^2 - rho^2.

Under the prior rho ~ N(0, v/d) and q_perp ~ (v/d) chi^2_(d-1), v the weight variance. Interacting weights have the density

    prior(rho, q_perp) exp{ (s/(2N)) (tau . m(rho, q_perp))^2 },      s the read-out variance.

Rule: rho = R sinh(4u) / sinh 4 on a uniform grid in u; at every rho, log q_perp on a grid around the maximum of the density
there, in units of its width: uniform in t, log q_perp = centre + width (t - exp(-t - 4.5) + exp(t - 5)), which leaves the peak as
it is and reaches down the long tail that chi^2 of few degrees of freedom has, and up to a second peak. The centre moves with tau,
because specialised neurons shrink by many prior standard deviations: rules that are exact for the prior fail there in the second
digit. Trapezoidal sums of analytic, decaying functions converge exponentially: a peak whose logarithm bends by b from one node to
the next is summed up to exp(-2 pi^2 / b). The nodes here leave relative errors below 1e-9 for d from 6 to 2000 and 1e-7 at d = 3;
`resolves` says where they are not enough.
"""

import math
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Bool, Float

from orderparam.gaussian.numerical import Numerical
from orderparam.systems.kernel_adaptation.modes.overlaps import Overlaps, interpolated, overlaps
from orderparam.systems.kernel_adaptation.two_layers.model import TwoLayerNetwork

Norm = Literal["exact", "concentrated", "prior"]
NORMS = ("exact", "concentrated", "prior")

RHO_NODES = 641  # on a half line
_STEP = 0.5
_GRID = np.arange(-8.0, 7.6, _STEP)
_NOTHING = -18.0  # log of a share of the weight that may lie beyond the nodes
_CENTRING = 6  # Newton steps towards the maximum in log q_perp
STANDARD_NODES = _GRID - np.exp(-_GRID - 4.5) + np.exp(_GRID - 5)  # of log q_perp, in standard deviations
LOG_STEPS = np.log(_STEP * (1 + np.exp(-_GRID - 4.5) + np.exp(_GRID - 5)))  # log of their spacing


class Fluctuations(eqx.Module):
    """What fluctuations of the output add to the action of a weight: (s/2N) [m^T kernel m + perpendicular p + rest r].

    p = |w_perp|^2 (m_1/rho)^2 is the power of one hidden unit on linear functions across w_*, r that on all other functions.
    """

    kernel: Float[Array, "mode mode"]
    perpendicular: Float[Array, ""]
    rest: Float[Array, ""]


class Others(eqx.Module):
    """The kernel outside the kept modes: perpendicular = s <p> / (d - 1), the eigenvalue of d - 1 linear modes; rest = s <r>."""

    perpendicular: Float[Array, ""]
    rest: Float[Array, ""]


class Averages(eqx.Module):
    """Averages <.> over interacting weights at given tau.

    log_partition: N log E_prior exp{(s/2N) (tau . m)^2}. output: s <m (m . tau)>, its gradient. kernel: s <m m^T>.
    curvature: its Hessian.
    """

    log_partition: Float[Array, ""]
    output: Float[Array, "mode"]
    kernel: Float[Array, "mode mode"]
    curvature: Float[Array, "mode mode"]


def log_mean(log_weight: Array, exponent: Array) -> Float[Array, ""]:
    """log of the mean of exp(exponent) under weights known up to a factor, exact to rounding also where it is tiny."""
    weight = jax.nn.softmax(log_weight.ravel()).reshape(log_weight.shape)
    small = jnp.max(jnp.abs(exponent)) < 1
    little = jnp.log1p(jnp.sum(weight * jnp.expm1(jnp.where(small, exponent, 0.0))))
    much = jax.scipy.special.logsumexp(log_weight + exponent) - jax.scipy.special.logsumexp(log_weight)
    return jnp.where(small, little, much)


def resolves(log_weight: Float[Array, "node *inner"], axis: int = 0, error: float = 4e-8) -> Bool[Array, ""]:
    """Whether no peak along an axis is too sharp for its nodes: exp(-2 pi^2 / b) times its share of the weight is below `error`,
    with b the bend of the logarithm from one node to the next."""
    x = jnp.moveaxis(log_weight, axis, 0)
    left, here, right = x[:-2], x[1:-1], x[2:]
    bend = jnp.where(jnp.isfinite(left) & jnp.isfinite(right), 2 * here - left - right, 0.0)
    return jnp.all(here - jnp.max(x) - 2 * math.pi**2 / jnp.maximum(bend, 1e-3) < math.log(error))


class Plane(eqx.Module):
    """The quadrature rule of one system.

    rho: nodes; log_measure: log of prior density times node weight. Where (tau . m)^2 is even in rho only rho >= 0 is covered,
    and log_measure has the factor 2. norm: "exact", or q_perp fixed: "concentrated" at its prior mean v (d-1)/d, "prior" at v.
    """

    rho: Float[Array, "node"]
    spacing: Float[Array, "node"]
    log_measure: Float[Array, "node"]
    dim: Float[Array, ""]
    variance: Float[Array, ""]
    width: Float[Array, ""]
    readout: Float[Array, ""]
    even: bool = eqx.field(static=True)
    norm: Norm = eqx.field(static=True)
    system: TwoLayerNetwork

    @classmethod
    def of(cls, system: TwoLayerNetwork, norm: Norm = "exact", within: float | Array | None = None) -> "Plane":
        """within: only weights with |rho| < within (a restricted ensemble)."""
        if norm not in NORMS:
            raise ValueError(f"norm = {norm!r}: must be one of {', '.join(NORMS)}")
        d, v = jnp.asarray(system.input_dim, float), jnp.asarray(system.weight_variance, float)
        even = system.phi.parity in ("odd", "even")
        u = jnp.linspace(0.0 if even else -1.0, 1.0, RHO_NODES if even else 2 * RHO_NODES - 1)
        reach = jnp.maximum(3 * jnp.sqrt(v) + 5, 12 * jnp.sqrt(v / d)) * (3 if system.homogeneous else 1)  # those do not saturate
        rho = reach * jnp.sinh(4 * u) / math.sinh(4)
        spacing = reach * 4 * jnp.cosh(4 * u) / math.sinh(4) * (u[1] - u[0])
        ends = jnp.ones_like(u).at[0].set(0.5).at[-1].set(0.5) * (2.0 if even else 1.0)
        log_measure = jnp.log(spacing * ends) - d * rho**2 / (2 * v) + jnp.log(d / (2 * np.pi * v)) / 2
        if within is not None:
            log_measure = jnp.where(jnp.abs(rho) < within, log_measure, -jnp.inf)
            log_measure -= jax.scipy.special.logsumexp(log_measure)
        width, readout = jnp.asarray(system.width, float), jnp.asarray(system.readout_variance, float)
        return cls(rho, spacing * ends, log_measure, d, v, width, readout, even, norm, system)

    def overlaps(self, degrees: tuple[int, ...]) -> Overlaps:
        """m_k of the system's activation over the range of this rule."""
        return overlaps(self.system.phi, degrees, *self._range)

    @property
    def _range(self) -> tuple[Array, Array]:
        """Of |w|^2, for activations that are tabulated."""
        deviation = jnp.sqrt(2 / (self.dim - 1))
        highest = self.rho[-1] ** 2 + self.variance * jnp.exp(8 * deviation + 1)
        return self.variance * jnp.exp(-12 * deviation - 4), highest

    def nodes(self, tau: Float[Array, "mode"], degrees: tuple[int, ...]) -> tuple[Array, Array]:
        """q_perp and log(prior density times weight), both (node, inner): those of rho included."""
        if self.norm != "exact":
            q = self.variance * jnp.where(self.norm == "prior", 1.0, (self.dim - 1) / self.dim)
            return jnp.full((self.rho.shape[0], 1), q), self.log_measure[:, None]
        m = self.overlaps(degrees)
        shape, rate = (self.dim - 1) / 2, self.dim / (2 * self.variance)
        tau = jax.lax.stop_gradient(tau)

        def tilt(log_q: Array) -> Array:
            q = jnp.exp(log_q)
            field = sum(t * value for t, value in zip(tau, m(self.rho, self.rho**2 + q)))
            return shape * log_q - rate * q + self.readout / (2 * self.width) * field**2

        def slope(log_q: Array) -> Array:
            return jax.jvp(tilt, (log_q,), (jnp.ones_like(log_q),))[1]

        prior = jnp.log(shape / rate)

        def step(_: int, reached: tuple[Array, Array]) -> tuple[Array, Array]:
            centre = reached[0]
            change, bend = jax.jvp(slope, (centre,), (jnp.ones_like(centre),))
            bend = jnp.maximum(-bend, 0.15 * shape)
            return jnp.maximum(centre + jnp.clip(change / bend, -1.0, 1.0), prior - 6.0), 1 / jnp.sqrt(bend)

        start = (jnp.ones_like(self.rho) * prior, jnp.zeros_like(self.rho) * prior)
        centre, width = jax.lax.fori_loop(0, _CENTRING, step, start)
        centre, width = jax.lax.stop_gradient((centre, width))
        log_q = centre[:, None] + width[:, None] * STANDARD_NODES
        q = jnp.exp(log_q)
        normalisation = shape * jnp.log(rate) - gammaln(shape)
        inner = shape * log_q - rate * q + normalisation + jnp.log(width)[:, None] + LOG_STEPS
        return q, self.log_measure[:, None] + inner

    def others(self, m: Array, rho: Array, q_perp: Array) -> tuple[Array, Array]:
        """p and r of `Fluctuations` at given weights, m their contributions to the modes."""
        q = rho**2 + q_perp
        (slope,) = self.overlaps((1,))(jnp.ones_like(q), q)  # m_1 is rho times a function of q
        linear = q_perp * slope**2
        phi = self.system.phi
        if isinstance(phi, Numerical):
            (power,) = interpolated(lambda q: phi.moment(2, q)[:, None], *self._range)(q)
        else:
            power = phi.two_point(q, q, q)
        return linear, power - jnp.sum(m**2, axis=0) - linear

    def interacting(
        self, tau: Array, degrees: tuple[int, ...], fluctuations: Fluctuations | None = None
    ) -> tuple[Array, Array, Array]:
        """m (mode, node, inner), q_perp and log weights (node, inner) of the interacting density."""
        m, q, log_prior, exponent = self._terms(tau, degrees, fluctuations)
        return m, q, log_prior + exponent

    def _terms(
        self, tau: Array, degrees: tuple[int, ...], fluctuations: Fluctuations | None
    ) -> tuple[Array, Array, Array, Array]:
        """m, q_perp, log prior weights, and the exponent of the interaction."""
        q, log_prior = self.nodes(tau, degrees)
        m = jnp.stack(self.overlaps(degrees)(self.rho[:, None], self.rho[:, None] ** 2 + q))
        squared = jnp.tensordot(tau, m, 1) ** 2
        if fluctuations is not None:
            linear, rest = self.others(m, self.rho[:, None], q)
            squared -= jnp.einsum("jk,jab,kab->ab", fluctuations.kernel, m, m)
            squared -= fluctuations.perpendicular * linear + fluctuations.rest * rest
        return m, q, log_prior, self.readout / (2 * self.width) * squared

    def resolves(self, log_weight: Float[Array, "node inner"]) -> Bool[Array, ""]:
        """Whether the nodes are dense enough for these weights and reach far enough."""
        along = jax.scipy.special.logsumexp(log_weight, axis=1)
        ends = along[-1] if self.even else jnp.maximum(along[0], along[-1])
        found = resolves(along[1:-1]) & (ends < jnp.max(along) + _NOTHING)
        if self.norm != "exact":
            return found
        ends = jnp.max(log_weight[:, jnp.array([0, -1])])
        return found & resolves(log_weight, axis=1, error=5e-6) & (ends < jnp.max(log_weight) + _NOTHING)

    def outside(self, tau: Array, degrees: tuple[int, ...], fluctuations: Fluctuations | None = None) -> Others:
        """The kernel outside the modes."""
        m, q, log_weight = self.interacting(tau, degrees, fluctuations)
        weight = jax.nn.softmax(log_weight, axis=(0, 1))
        linear, rest = self.others(m, self.rho[:, None], q)
        return Others(self.readout * jnp.sum(weight * linear) / (self.dim - 1), self.readout * jnp.sum(weight * rest))

    def averages(
        self, tau: Float[Array, "mode"], degrees: tuple[int, ...], fluctuations: Fluctuations | None = None
    ) -> Averages:
        """All averages from one pass over the nodes."""
        m, _, log_prior, exponent = self._terms(tau, degrees, fluctuations)
        weight, flat = jax.nn.softmax((log_prior + exponent).ravel()), m.reshape(len(degrees), -1)
        field = tau @ flat
        kernel = (flat * weight) @ flat.T * self.readout
        # second moment of g = s m (m . tau)
        second = (flat * (weight * field**2)) @ flat.T * self.readout**2
        output = kernel @ tau
        curvature = kernel + (second - jnp.outer(output, output)) / self.width
        return Averages(self.width * log_mean(log_prior, exponent), output, kernel, curvature)

    def prior_kernel(self, degrees: tuple[int, ...]) -> Float[Array, "mode mode"]:
        """M = s E_prior m m^T: the kernel of the infinitely wide network on the modes."""
        return self.averages(jnp.zeros(len(degrees)), degrees).kernel
