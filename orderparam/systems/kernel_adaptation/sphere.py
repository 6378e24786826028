"""Averages over the weights of neurons whose activation is homogeneous."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float

from orderparam.systems.kernel_adaptation.network import HiddenLayer
from orderparam.systems.kernel_adaptation.weights import (
    Fluctuations,
    Kernel,
    Tau,
    log_mean,
    resolves,
)

# For activations with phi(cz) = c phi(z), c > 0, the norm of the weights is integrated out, and the
# average over the weights is an integral over one angle.
#
# m_k(w) = |w| g_k(u), u = rho/|w| = cos(theta), g_k(u) = c_k u^k with phi = sum_k c_k h_k. With h =
# tau . g(u) and
#
#     r(u) = 1 - v s h^2 / (N d)        (v weight variance, s read-out variance)
#
# (fluctuations of the output subtract the terms of `Fluctuations` at |w| = 1 from h^2),
#
# N log E exp{(s/2N) (tau . m)^2} is N times the logarithm of the average of r^(-d/2) over the
# sphere, and <|w|^2 | u> = v / r(u). The average diverges where r reaches zero, so that the
# solution always has r > 0.

_NODES_SPHERE = 4001


class Sphere(eqx.Module):
    """The quadrature rule of one hidden layer in the angle theta, for homogeneous activations.

    The trapezoidal rule in theta is exact to rounding for d up to 10^5; `features` are g_k at the
    nodes.
    """

    layer: HiddenLayer
    cosine: Float[Array, "node"]
    log_measure: Float[Array, "node"]
    features: Float[Array, "mode node"]

    @classmethod
    def of(cls, layer: HiddenLayer) -> "Sphere":
        """The rule of a hidden layer."""
        theta = np.linspace(0, np.pi, _NODES_SPHERE)[1:-1]
        log_measure = (layer.dim - 2) * jnp.log(jnp.sin(theta))
        log_measure -= logsumexp(log_measure)
        cosine = jnp.cos(theta)
        coefficients = layer.phi.hermite_coefficients(max(layer.degrees) + 1)
        return cls(
            layer,
            cosine,
            log_measure,
            jnp.stack([coefficients[k] * cosine**k for k in layer.degrees]),
        )

    def others(self) -> tuple[Array, Array]:
        """The powers p and r of `Fluctuations` at |w| = 1."""
        phi, one = self.layer.phi, jnp.ones(())
        linear = (1 - self.cosine**2) * phi.hermite_coefficients(2)[1] ** 2
        return linear, phi.two_point(one, one, one) - jnp.sum(self.features**2, axis=0) - linear

    @property
    def _pull(self) -> Float[Array, ""]:
        """The strength of the interaction, v s / (N d)."""
        layer = self.layer
        return layer.weight_variance * layer.readout_variance / (layer.width * layer.dim)

    def density(self, tau: Tau, loops: Fluctuations | None = None) -> "SphereDensity":
        """The density of interacting weights; NaN outside the domain r > 0."""
        squared = (tau @ self.features) ** 2
        if loops is not None:
            linear, rest = self.others()
            squared -= jnp.einsum("jk,ja,ka->a", loops.kernel, self.features, self.features)
            squared -= loops.perpendicular * linear + loops.rest * rest
        pull = self._pull * squared
        return SphereDensity(
            self,
            tau,
            1 - pull,
            -self.layer.dim / 2 * jnp.log1p(jnp.where(pull < 1, -pull, jnp.nan)),
        )


class SphereDensity(eqx.Module):
    """The density of interacting weights on the angles of the rule, with the averages of
    `PlaneDensity`.

    `r` is r(u) as defined in the comment at the top of the module. `exponent` is the logarithm of
    the factor by which the interaction changes the density of u, with the norm of the weights
    integrated out.
    """

    sphere: Sphere
    tau: Tau
    r: Float[Array, "node"]
    exponent: Float[Array, "node"]

    @property
    def _squared(self) -> Float[Array, "node"]:
        """The conditional mean <|w|^2 | u> times the probability of u."""
        return (
            jax.nn.softmax(self.sphere.log_measure + self.exponent)
            * self.sphere.layer.weight_variance
            / self.r
        )

    @property
    def kernel(self) -> Kernel:
        """The kernel at these weights."""
        sphere, layer, squared = self.sphere, self.sphere.layer, self._squared
        linear, rest = (
            layer.readout_variance * jnp.sum(squared * power) for power in sphere.others()
        )
        return Kernel(
            layer.readout_variance * (sphere.features * squared) @ sphere.features.T,
            linear / (layer.dim - 1),
            rest,
        )

    @property
    def derivatives(
        self,
    ) -> tuple[Float[Array, ""], Float[Array, "mode"], Float[Array, "mode mode"]]:
        """The function N log E_prior exp{(s/2N) (tau . m)^2} of tau, its gradient and its
        Hessian."""
        layer, features = self.sphere.layer, self.sphere.features
        n, squared = layer.width, self._squared
        kernel = layer.readout_variance * (features * squared) @ features.T
        output = kernel @ self.tau
        # derivative of <s v h g / r>: the first term is the derivative of h / r, the second the
        # derivative of the density
        bent = (
            squared
            * (self.tau @ features) ** 2
            / self.r
            * layer.weight_variance
            * layer.readout_variance**2
        )
        second = (1 + 2 / layer.dim) * (features * bent) @ features.T
        curvature = kernel + (second - jnp.outer(output, output)) / n
        return n * log_mean(self.sphere.log_measure, self.exponent), output, curvature

    @property
    def second_moments(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """<rho^2> and <|w|^2>."""
        return jnp.sum(self._squared * self.sphere.cosine**2), jnp.sum(self._squared)

    @property
    def resolved(self) -> Bool[Array, ""]:
        """True if the nodes are dense enough."""
        return resolves(self.sphere.log_measure + self.exponent)
