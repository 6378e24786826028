"""The number of noiseless measurements that sparse weights need."""

from typing import Literal

import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from orderparam.channels import RealLabels
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.polynomials import Linear
from orderparam.priors import SparsePrior
from orderparam.systems.generalised_linear.bayes.model import GeneralisedLinear

# The number of noiseless linear measurements that sparse weights need.

_PLACES = 4001


class Needed(Result):
    """Number of measurements that sparse weights need.

    Fields:
        sample_ratio_needed: n/d above which all weights are found.
    """

    sample_ratio_needed: Float[Array, ""]


def _noiseless(system: GeneralisedLinear, **options: object) -> None:
    linear = isinstance(system.labels, RealLabels) and isinstance(system.labels.link, Linear)
    if not linear or float(system.labels.noise) > 0:  # type: ignore[attr-defined]
        raise ValueError(
            "GeneralisedLinear.labels: these thresholds are those of linear labels without noise"
        )
    if not isinstance(system.prior, SparsePrior):
        raise ValueError("GeneralisedLinear.prior: these thresholds are those of a SparsePrior")


@theory(check=_noiseless)
def sparse_thresholds(
    system: GeneralisedLinear,
    *,
    way: Literal["determined", "message passing", "l1 norm"] = "message passing",
) -> Needed:
    r"""Number of noiseless linear measurements that sparse weights need, by three methods.

    The weights are determined by the measurements if $\alpha > \rho_0$, where $\rho_0$ is the
    density of the weights. Message passing finds them above the first of the following two ratios,
    and the minimum of the $l_1$ norm above the second:

    $$ \alpha = \max_{\hat q}\, \hat q V(\hat q) , \qquad
       \alpha = \min_a \big\{ \rho_0 (1 + a^2)
       + 2 (1 - \rho_0) [(1 + a^2) \Phi(-a) - a \varphi(a)] \big\} . $$

    The second ratio holds for any law of the non-zero weights.

    Args:
        way: "determined", "message passing" (the default) or "l1 norm".

    Raises:
        ValueError: for labels that are not linear without noise, and for priors that are not
            sparse.

    Accuracy: 1e-8 (a fine grid and a parabola).

    Source: Krzakala, Mézard, Sausset, Sun, Zdeborová (2012) for message passing; Donoho, Tanner
    (2005) and Donoho, Maleki, Montanari (2009) for the l1 norm.

    >>> from orderparam.priors import SparsePrior
    >>> sparse = GeneralisedLinear(1.0, RealLabels("linear", 0.0), SparsePrior(0.1))
    >>> needed = sparse_thresholds(sparse, way="l1 norm")
    >>> round(float(needed.sample_ratio_needed), 4)
    0.3288
    """
    density = system.prior.components.shares[1]
    if way == "determined":
        return Needed(sample_ratio_needed=density)
    if way == "l1 norm":
        a = jnp.linspace(0.0, 8.0, _PLACES)
        missing = (1 + a**2) * norm.cdf(-a) - a * norm.pdf(a)
        return Needed(
            sample_ratio_needed=-_top(-(density * (1 + a**2) + 2 * (1 - density) * missing))
        )
    precision = jnp.geomspace(1e-3, 1e9, _PLACES) / system.prior.power
    return Needed(sample_ratio_needed=_top(precision * system.prior.averages(precision).error))


def _top(values: Float[Array, "place"]) -> Float[Array, ""]:
    """Maximum of the parabola through the largest of equally spaced values and its two
    neighbours."""
    i = jnp.clip(jnp.argmax(values), 1, len(values) - 2)
    left, middle, right = values[i - 1], values[i], values[i + 1]
    bend = left - 2 * middle + right
    return middle - jnp.where(
        bend == 0, 0.0, (right - left) ** 2 / (8 * jnp.where(bend == 0, 1.0, bend))
    )
