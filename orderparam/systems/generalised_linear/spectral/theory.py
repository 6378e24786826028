"""Spectral estimation of the weights: theory of the leading eigenvector, see `orderparam.channels.outlier`.

It first stands out at the weak recovery threshold of the optimal estimator (Mondelli, Montanari 2018).
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.channels.outlier import SpectralEstimate, best_weight, outlier
from orderparam.core.verb import theory
from orderparam.systems.generalised_linear.bayes.model import GeneralisedLinear

_NONE = 1e-9


def label_power(system: GeneralisedLinear, label: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """E[z^2 | y] of fields z in units of their deviation."""
    rho = system.prior.power
    mean = jnp.zeros_like(label)
    pull, slope = (part(label, mean, rho) for part in (system.labels.denoiser, system.labels.denoiser_slope))
    return 1 + rho * (slope + pull**2)


def label_weight(system: GeneralisedLinear, label: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """T(y)."""
    return best_weight(label_power(system, label))


def sizes_seen(system: GeneralisedLinear, **options: object) -> None:
    """Raises `ValueError` for labels of which no one makes a large field likelier: the matrix is zero, or negative."""
    label, share = system.labels.label_rule(jnp.zeros(()), system.prior.power)
    if not float(jnp.max(jnp.where(share > 0, label_weight(system, label), 0.0))) > _NONE:
        raise ValueError(f"GeneralisedLinear.labels: {type(system.labels).__name__} do not tell the size of a field")


@theory(differentiable=False, check=sizes_seen)
def spectral(system: GeneralisedLinear) -> SpectralEstimate:
    """From the law of the labels at weights that are not known; the prior enters by its variance alone.

    Raises `ValueError` for labels that do not tell the size of a field, as signs.
    """
    label, share = system.labels.label_rule(jnp.zeros(()), system.prior.power)
    kept = share > 0
    power = jnp.where(kept, label_power(system, label), 1.0)
    return outlier(power, jnp.where(kept, share, 0.0) / jnp.sum(jnp.where(kept, share, 0.0)), system.sample_ratio)
