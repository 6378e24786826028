"""The average over the common scale p of the kernel, in the place of its saddle point: exact for linear networks at any width.

The read-out and the linear hidden layers multiply a Gaussian process with kernel K by sqrt(p), p = q_1 q_2 .. q_L, where the
q_l are independent with q_l ~ Gamma(N_l / 2), mean one: N_l q_l is the square of the length of N_l standard normals. Then

    p(p | y) ~ p(p) N(y; 0, T + p K)

is a density in one dimension, whatever the depth: the density of log p is the convolution of those of log q_l  (Li and
Sompolinsky 2021 at the saddle point; Hanin and Zlokapa 2023 for the exact evidence).
For other activations this is the closure `common` with the fluctuations of the order parameter.
"""

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln, logsumexp
from jaxtyping import Array, Float

from orderparam.core.verb import theory
from orderparam.kernels.common_scale import minima
from orderparam.systems.proportional.model import FullyConnected
from orderparam.systems.proportional.theory.deep import check_one_output, prior_basis
from orderparam.systems.proportional.theory.results import IntegratedNetwork, log_evidence, losses

_NODES = 1025
# Half width of the grid in standard deviations of log p; the left tail, exp(N t / 2), is longer than a normal one.
_REACH = 16.0


@theory(check=check_one_output)
def integrated_width(system: FullyConnected) -> IntegratedNetwork:
    """A fully connected network with one output, averaged over the scale of its kernel: exact for linear units at any width.

    For other units the closure `common` with fluctuations. By the trapezoidal rule in log p, centred at the saddle point.
    Raises `ValueError` for several outputs.
    """
    basis, temperature, widths = prior_basis(system), jnp.asarray(system.temperature), system.widths
    centre = jax.tree.map(lambda x: x[0], minima(basis.eigenvalues, basis.power, temperature, widths))
    at = jax.lax.stop_gradient(centre.order_parameters)
    shift = jnp.min(widths) * (jax.lax.stop_gradient(jnp.exp(centre.log_scale[None])[0]) - 1) / 2
    deviation = jnp.sqrt(jnp.sum(2 / (widths * at)))
    x = _REACH * deviation * jnp.linspace(-1.0, 1.0, _NODES)
    step = x[1] - x[0]

    def tilted(width: Float[Array, ""], parameter: Float[Array, ""]) -> Float[Array, "node"]:
        """log of the density of log q times exp(-shift log q): it peaks at the saddle point, the middle of the grid."""
        t = jnp.log(parameter) + x
        return width / 2 * (t - jnp.exp(t)) - shift * t + width / 2 * jnp.log(width / 2) - gammaln(width / 2)

    logs = jax.vmap(tilted)(widths, at)
    peaks = jnp.max(logs, axis=1)
    density = jnp.exp(logs[0] - peaks[0])
    for one, peak in zip(logs[1:], peaks[1:]):
        density = jnp.convolve(density, jnp.exp(one - peak), mode="same") * step
    log_scale = jnp.sum(jnp.log(at)) + x
    log_prior = jnp.log(jnp.maximum(density, 1e-300)) + jnp.sum(peaks) + shift * log_scale

    scales, targets = jnp.exp(log_scale), basis.targets[:, 0]
    spectrum = temperature + scales[:, None] * basis.eigenvalues
    log_likelihood = -jnp.sum(jnp.log(spectrum) + basis.power / spectrum, axis=1) / 2
    log_posterior = log_prior + log_likelihood
    total = logsumexp(log_posterior)
    weights = jnp.exp(log_posterior - total)

    count = targets.size
    means = (scales[:, None] * targets / spectrum) @ basis.rows.T
    mean = weights @ means
    variances = jnp.maximum(scales[:, None] * basis.diagonal - (scales[:, None] ** 2 / spectrum) @ (basis.rows**2).T, 0.0)
    variance = weights @ (variances + (means - mean) ** 2)
    fitted_residuals = temperature * targets / spectrum
    average_residual = weights @ fitted_residuals
    train_bias = jnp.sum(average_residual**2) / count
    own = jnp.sum(temperature * scales[:, None] * basis.eigenvalues / spectrum, axis=1)
    train_variance = weights @ (own + jnp.sum((fitted_residuals - average_residual) ** 2, axis=1)) / count
    covariance, evidence = jnp.mean(variance)[None, None], log_evidence(-2 * (total + jnp.log(step)), 0.0, count)
    fields = losses(train_bias, train_variance, mean[:, None], variance[:, None], covariance, system.test[1])
    return IntegratedNetwork(
        **fields | {"converged": fields["converged"] & jnp.isfinite(evidence)}, scale=weights @ scales, log_evidence=evidence
    )
