"""Neurons with phi(cz) = c phi(z), c > 0: their norm integrates out, and one angle is left.

m_k(w) = |w| g_k(u), u = rho/|w| = cos(theta), g_k(u) = c_k u^k with phi = sum_k c_k h_k. With h = tau . g(u) and

    r(u) = 1 - v s h^2 / (N d)        (v weight variance, s read-out variance)

N log E exp{(s/2N) (tau . m)^2} = N log of the average of r^(-d/2) over the sphere, and <|w|^2 | u> = v / r(u). Where r reaches
zero the average diverges: a barrier that the solution cannot touch.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.systems.kernel_adaptation.model import TwoLayerNetwork
from orderparam.systems.kernel_adaptation.theory.plane import Averages

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

    def averages(self, tau: Float[Array, "mode"]) -> Averages:
        """NaN outside the domain r > 0."""
        d, v, s, n = (
            jnp.asarray(x, float)
            for x in (
                self.system.input_dim, self.system.weight_variance, self.system.readout_variance, self.system.width,
            )
        )  # fmt: skip
        field = tau @ self.features
        r = 1 - v * s * field**2 / (n * d)
        log_weight = self.log_measure - d / 2 * jnp.log(jnp.where(r > 0, r, jnp.nan))
        log_partition = jax.scipy.special.logsumexp(log_weight)
        weight = jnp.exp(log_weight - log_partition)
        kernel = s * (self.features * (weight * v / r)) @ self.features.T
        output = kernel @ tau
        # derivative of <s v h g / r>: that of h / r, and that of the density
        within = 2 * v**2 * s**2 / (n * d) * (self.features * (weight * field**2 / r**2)) @ self.features.T
        second = v**2 * s**2 * (self.features * (weight * field**2 / r**2)) @ self.features.T
        curvature = kernel + within + (second - jnp.outer(output, output)) / n
        return Averages(n * log_partition, output, kernel, curvature)

    def second_moments(self, tau: Float[Array, "mode"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """<rho^2> and <|w|^2>."""
        field = tau @ self.features
        given = self.system
        r = 1 - given.weight_variance * jnp.asarray(given.readout_variance) * field**2 / (given.width * given.input_dim)
        weight = jax.nn.softmax(self.log_measure - given.input_dim / 2 * jnp.log(r))
        norm = given.weight_variance / r
        return jnp.sum(weight * norm * self.cosine**2), jnp.sum(weight * norm)

    def inside(self, tau: Float[Array, "mode"]) -> Float[Array, "mode"]:
        """tau, shortened until it is well inside the domain."""
        field = jnp.max(jnp.abs(tau @ self.features))
        given = self.system
        limit = 0.8 * jnp.sqrt(given.width * given.input_dim / (given.weight_variance * jnp.asarray(given.readout_variance)))
        return tau * jnp.minimum(1.0, limit / jnp.maximum(field, 1e-300))
