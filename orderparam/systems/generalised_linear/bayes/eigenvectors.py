"""Theory of spectral estimation of the weights."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.channels.outlier import (
    LEAST,
    LEAST_MEASURED,
    SpectralEstimate,
    best_weight,
    outlier,
)
from orderparam.core.system import as_arrays
from orderparam.core.verb import theory
from orderparam.systems.generalised_linear.bayes.model import GeneralisedLinear

# Spectral estimation of the weights: theory of the leading eigenvector (see
# `orderparam.channels.outlier`).
#
# The eigenvalue of this eigenvector leaves the bulk at the weak recovery threshold of the optimal
# estimator (Mondelli, Montanari 2018).

_NONE = 1e-9
# If the labels in the upper half of the range of E[z^2 | y] have a probability below this value,
# the end of this range is due to the quadrature and not to the law of the labels.
_TAIL = 1e-8


def label_power(system: GeneralisedLinear, label: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Conditional second moment E[z^2 | y] of the field z in units of its standard deviation."""
    rho = system.prior.power
    mean = jnp.zeros_like(label)
    pull, slope = (
        part(label, mean, rho) for part in (system.labels.denoiser, system.labels.denoiser_slope)
    )
    return 1 + rho * (slope + pull**2)


def label_weight(
    system: GeneralisedLinear, label: Float[Array, "*batch"], least_weight: float = LEAST_MEASURED
) -> Float[Array, "*batch"]:
    """Weight T(y) of a label in the matrix of the spectral estimate."""
    return best_weight(label_power(system, label), least_weight)


def sizes_seen(system: GeneralisedLinear, **options: object) -> None:
    """Raise `ValueError` if no label makes a large field more likely, because the weights T(y) of
    the matrix would then all be zero or negative.
    """
    if not float(_largest_weight(as_arrays(system))) > _NONE:
        raise ValueError(
            f"GeneralisedLinear.labels: {type(system.labels).__name__} do not depend on the size "
            "of a field"
        )


@eqx.filter_jit  # outside a theory every operation would be compiled as a separate program
def _largest_weight(system: GeneralisedLinear) -> Float[Array, ""]:
    """Largest weight T(y) of a label that can occur."""
    label, share = system.labels.label_rule(jnp.zeros(()), system.prior.power)
    return jnp.max(jnp.where(share > 0, label_weight(system, label), 0.0))


@theory(differentiable=False, check=sizes_seen)
def spectral(system: GeneralisedLinear, *, least_weight: float = LEAST) -> SpectralEstimate:
    r"""Overlap of the leading eigenvector of the label-weighted covariance with the weights.

    For the matrix $\frac1n \sum_\mu T(y_\mu) x_\mu x_\mu^T$ with $x \sim N(0, I)$ and $T = 1 -
    1/E[z^2 | y]$, let

    $$ \phi(l) = l\, E\Big[ \frac{z^2 T}{l - T} \Big] , \qquad
       \psi(l) = l\, \Big( \frac1\alpha + E\Big[ \frac{T}{l - T} \Big] \Big) . $$

    The bulk of eigenvalues ends at the minimum of $\psi$ above the supremum of $T$, at $\bar l$
    (`edge`). With few samples $\psi$ has no minimum if some labels imply arbitrarily large fields;
    then $\bar l = 1$ and the bulk ends at $1 / \alpha$. If $\phi = \psi$ at some $l^* > \bar l$,
    the eigenvalue $\psi(l^*)$ (`eigenvalue`) stands out, and its eigenvector has the squared cosine
    $\psi' / (\psi' - \phi')$ with the weights. The prior enters by its variance alone.

    Args:
        least_weight: value below which the weights T(y) are cut; by default there is no cut, while
            `leading_eigenvector` measures with -30.

    Raises:
        ValueError: for labels that do not depend on the size of a field, such as signs.

    Accuracy: exact as d grows. Where labels whose $E[z^2 | y]$ exceeds half of the largest one in
    the quadrature have a probability below 1e-8, the supremum of $T$ is taken to be 1.

    Source: Lu, Li (2020); Mondelli, Montanari (2018).

    >>> round(float(spectral(GeneralisedLinear(2.0, "abs")).cosine), 4)
    0.7993
    """
    label, share = system.labels.label_rule(jnp.zeros(()), system.prior.power)
    kept = share > 0
    power = jnp.where(kept, label_power(system, label), 1.0)
    share = jnp.where(kept, share, 0.0) / jnp.sum(jnp.where(kept, share, 0.0))
    far = jnp.sum(jnp.where(power - 1 > (jnp.max(power) - 1) / 2, share, 0.0))
    # Labels that imply ever larger fields with the tail of a Gaussian: T tends to 1.
    bound = jnp.where(far < _TAIL, 1.0, jnp.nan)
    return outlier(power, share, system.sample_ratio, least_weight, system.prior.power, bound=bound)
