"""Neurons with phi(cz) = c phi(z), c > 0: their norm integrates out, and one angle is left.

m_k(w) = |w| g_k(u), u = rho/|w| = cos(theta), g_k(u) = c_k u^k with phi = sum_k c_k h_k. With h = tau . g(u) and

    r(u) = 1 - v s h^2 / (N d)        (v weight variance, s read-out variance)

(fluctuations of the output subtract from h^2 what `plane.Fluctuations` says, at |w| = 1),

N log E exp{(s/2N) (tau . m)^2} = N log of the average of r^(-d/2) over the sphere, and <|w|^2 | u> = v / r(u). Where r reaches
zero the average diverges: a barrier that the solution cannot touch.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.systems.kernel_adaptation.modes.plane import Averages, Fluctuations, Others, log_mean, resolves
from orderparam.systems.kernel_adaptation.two_layers.model import TwoLayerNetwork

_NODES = 4001


class Sphere(eqx.Module):
    """The trapezoidal rule in theta, exact to rounding for d up to 10^5. features: g_k at the nodes."""

    cosine: Float[Array, "node"]
    log_measure: Float[Array, "node"]
    features: Float[Array, "mode node"]
    system: TwoLayerNetwork

    @classmethod
    def of(cls, system: TwoLayerNetwork, degrees: tuple[int, ...]) -> "Sphere":
        theta = np.linspace(0, np.pi, _NODES)[1:-1]
        log_measure = (system.input_dim - 2) * jnp.log(jnp.sin(theta))
        log_measure -= jax.scipy.special.logsumexp(log_measure)
        cosine = jnp.cos(theta)
        coefficients = system.phi.hermite_coefficients(max(degrees) + 1)
        return cls(cosine, log_measure, jnp.stack([coefficients[k] * cosine**k for k in degrees]), system)

    @property
    def _numbers(self) -> tuple[Array, Array, Array, Array]:
        """d, v, s, N."""
        given = self.system
        dim, variance = jnp.asarray(given.input_dim, float), jnp.asarray(given.weight_variance, float)
        return dim, variance, jnp.asarray(given.readout_variance, float), jnp.asarray(given.width, float)

    def others(self) -> tuple[Array, Array]:
        """p and r of `plane.Fluctuations` at |w| = 1."""
        linear = (1 - self.cosine**2) * self.system.phi.hermite_coefficients(2)[1] ** 2
        one = jnp.ones(())
        return linear, self.system.phi.two_point(one, one, one) - jnp.sum(self.features**2, axis=0) - linear

    def _density(self, tau: Array, fluctuations: Fluctuations | None) -> tuple[Array, Array]:
        """r, and the exponent of the interaction. NaN outside the domain r > 0."""
        d, v, s, n = self._numbers
        squared = (tau @ self.features) ** 2
        if fluctuations is not None:
            linear, rest = self.others()
            squared -= jnp.einsum("jk,ja,ka->a", fluctuations.kernel, self.features, self.features)
            squared -= fluctuations.perpendicular * linear + fluctuations.rest * rest
        pull = v * s * squared / (n * d)
        return 1 - pull, -d / 2 * jnp.log1p(jnp.where(pull < 1, -pull, jnp.nan))

    def averages(self, tau: Float[Array, "mode"], fluctuations: Fluctuations | None = None) -> Averages:
        """NaN outside the domain r > 0."""
        d, v, s, n = self._numbers
        field = tau @ self.features
        r, exponent = self._density(tau, fluctuations)
        weight = jax.nn.softmax(self.log_measure + exponent)
        kernel = s * (self.features * (weight * v / r)) @ self.features.T
        output = kernel @ tau
        # derivative of <s v h g / r>: that of h / r, and that of the density
        within = 2 * v**2 * s**2 / (n * d) * (self.features * (weight * field**2 / r**2)) @ self.features.T
        second = v**2 * s**2 * (self.features * (weight * field**2 / r**2)) @ self.features.T
        curvature = kernel + within + (second - jnp.outer(output, output)) / n
        return Averages(n * log_mean(self.log_measure, exponent), output, kernel, curvature)

    def outside(self, tau: Float[Array, "mode"], fluctuations: Fluctuations | None = None) -> Others:
        """The kernel outside the modes."""
        d, _, s, _ = self._numbers
        squared, (linear, rest) = self._squared_norm(tau, fluctuations), self.others()
        return Others(s * jnp.sum(squared * linear) / (d - 1), s * jnp.sum(squared * rest))

    def second_moments(
        self, tau: Float[Array, "mode"], fluctuations: Fluctuations | None = None
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """<rho^2> and <|w|^2>."""
        squared = self._squared_norm(tau, fluctuations)
        return jnp.sum(squared * self.cosine**2), jnp.sum(squared)

    def _squared_norm(self, tau: Array, fluctuations: Fluctuations | None) -> Float[Array, "node"]:
        """<|w|^2 | u> times the probability of u."""
        r, exponent = self._density(tau, fluctuations)
        return jax.nn.softmax(self.log_measure + exponent) * self._numbers[1] / r

    def resolves(self, tau: Float[Array, "mode"], fluctuations: Fluctuations | None = None) -> Bool[Array, ""]:
        """Whether the nodes are dense enough for the density at tau."""
        return resolves(self.log_measure + self._density(tau, fluctuations)[1])

    def inside(self, tau: Float[Array, "mode"]) -> Float[Array, "mode"]:
        """tau, shortened until it is well inside the domain."""
        field = jnp.max(jnp.abs(tau @ self.features))
        d, v, s, n = self._numbers
        return tau * jnp.minimum(1.0, 0.8 * jnp.sqrt(n * d / (v * s)) / jnp.maximum(field, 1e-300))
