"""How many noiseless linear measurements sparse weights need."""

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

_PLACES = 4001


class Needed(Result):
    """sample_ratio_needed: n/d above which all weights are found."""

    sample_ratio_needed: Float[Array, ""]


def _noiseless(system: GeneralisedLinear, **options: object) -> None:
    linear = isinstance(system.labels, RealLabels) and isinstance(system.labels.link, Linear)
    if not linear or float(system.labels.noise) > 0:  # type: ignore[attr-defined]
        raise ValueError("GeneralisedLinear.labels: these thresholds are those of linear labels without noise")
    if not isinstance(system.prior, SparsePrior):
        raise ValueError("GeneralisedLinear.prior: these thresholds are those of a SparsePrior")


@theory(check=_noiseless)
def sparse_thresholds(
    system: GeneralisedLinear, *, way: Literal["determined", "message passing", "l1 norm"] = "message passing"
) -> Needed:
    """The number of measurements from which weights are determined, found by message passing, or minimise the l1 norm.

    determined: alpha = density. message passing: max over qh of qh V(qh) (Krzakala et al. 2012).
    l1 norm: min over a of density (1 + a^2) + 2 (1 - density) [(1 + a^2) Phi(-a) - a phi(a)], for weights of any law that are not
    zero (Donoho, Tanner 2005; Donoho, Maleki, Montanari 2009). Maximum and minimum by a fine grid and a parabola: 1e-8.
    """
    density = system.prior.components.shares[1]
    if way == "determined":
        return Needed(density)
    if way == "l1 norm":
        a = jnp.linspace(0.0, 8.0, _PLACES)
        missing = (1 + a**2) * norm.cdf(-a) - a * norm.pdf(a)
        return Needed(-_top(-(density * (1 + a**2) + 2 * (1 - density) * missing)))
    precision = jnp.geomspace(1e-3, 1e9, _PLACES) / system.prior.power
    return Needed(_top(precision * system.prior.averages(precision).error))


def _top(values: Float[Array, "place"]) -> Float[Array, ""]:
    """The height of the parabola through the largest of equally spaced values and its neighbours."""
    i = jnp.clip(jnp.argmax(values), 1, len(values) - 2)
    left, middle, right = values[i - 1], values[i], values[i + 1]
    bend = left - 2 * middle + right
    return middle - jnp.where(bend == 0, 0.0, (right - left) ** 2 / (8 * jnp.where(bend == 0, 1.0, bend)))
