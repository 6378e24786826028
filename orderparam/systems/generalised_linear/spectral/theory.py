"""The leading eigenvector of D = (1/n) sum_mu T(y_mu) x_mu x_mu^T, x ~ N(0, 1), with the best T = 1 - 1 / E[z^2 | y].

With delta = n/d, tau = max T and averages over z ~ N(0, 1) and its label,

    phi(l) = l E[z^2 T / (l - T)],    psi(l) = l (1/delta + E[T / (l - T)]),    l_edge = argmin over l > tau of psi:

the bulk ends at psi(l_edge). If phi and zeta(l) = psi(max(l, l_edge)) cross at l* > l_edge, an eigenvalue psi(l*) stands out, and
its vector has the squared cosine psi'(l*) / (psi'(l*) - phi'(l*)) with the weights. It first does at the weak recovery threshold
of the optimal estimator: Mondelli, Montanari 2018 (arXiv:1708.05932); Lu, Li 2020; Luo, Alghamdi, Lu 2019.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.root import decreasing_root
from orderparam.systems.generalised_linear.bayes.model import GeneralisedLinear

Scalar = Float[Array, ""]

_NONE = 1e-9
_NEAR = -12.0  # ln(l / tau - 1) at the least: nearer, single nodes of the quadrature would count
_LEAST = -30.0  # T is cut below: labels that rule out almost all fields would otherwise pull without bound


class SpectralEstimate(Result):
    """cosine: of the angle between the eigenvector and the weights, up to its sign; 0 where nothing stands out.

    eigenvalue: the largest. edge: of the bulk, NaN in a measurement.
    """

    cosine: Scalar
    eigenvalue: Scalar
    edge: Scalar
    converged: Bool[Array, ""]


def label_weight(
    system: GeneralisedLinear, label: Float[Array, "*batch"]
) -> tuple[Float[Array, "*batch"], Float[Array, "*batch"]]:
    """T(y) = 1 - 1 / E[z^2 | y] from -30 on, and E[z^2 | y], of fields z in units of their deviation."""
    rho = system.prior.power
    mean = jnp.zeros_like(label)
    pull, slope = (part(label, mean, rho) for part in (system.labels.denoiser, system.labels.denoiser_slope))
    power = jnp.maximum(1 + rho * (slope + pull**2), 1e-300)
    return jnp.maximum(1 - 1 / power, _LEAST), power


def sizes_seen(system: GeneralisedLinear, **options: object) -> None:
    """Raises `ValueError` for labels of which no one makes a large field likelier: the matrix is zero, or negative."""
    label, share = system.labels.label_rule(jnp.zeros(()), system.prior.power)
    if not float(jnp.max(jnp.where(share > 0, label_weight(system, label)[0], 0.0))) > _NONE:
        raise ValueError(f"GeneralisedLinear.labels: {type(system.labels).__name__} do not tell the size of a field")


@theory(differentiable=False, check=sizes_seen)
def spectral(system: GeneralisedLinear) -> SpectralEstimate:
    """From the law of the labels at weights that are not known; the prior enters by its variance alone.

    Raises `ValueError` for labels that do not tell the size of a field, as signs.
    """
    label, share = system.labels.label_rule(jnp.zeros(()), system.prior.power)
    weight, power = label_weight(system, label)
    kept = share > 0
    weight, share = jnp.where(kept, weight, 0.0), jnp.where(kept, share, 0.0) / jnp.sum(jnp.where(kept, share, 0.0))
    top = jnp.max(weight)

    def phi(level: Scalar) -> Scalar:
        return level * jnp.sum(share * power * weight / (level - weight))

    def psi(level: Scalar) -> Scalar:
        return level * (1 / system.sample_ratio + jnp.sum(share * weight / (level - weight)))

    def at(u: Scalar) -> Scalar:
        return top * (1 + jnp.exp(u))

    low, high = jnp.asarray(_NEAR), jnp.asarray(28.0)
    edge = decreasing_root(lambda u, _: -jax.grad(psi)(at(u)), low, high)
    at_top = jax.grad(psi)(at(low)) > 0  # no minimum: with few samples psi grows from tau on
    level = decreasing_root(lambda u, _: phi(at(u)) - psi(at(u)), edge.value, high)
    start = at(edge.value)
    out = phi(start) > psi(start)
    rise, fall = (jax.grad(part)(at(level.value)) for part in (psi, phi))
    square = jnp.where(out, rise / jnp.where(out, rise - fall, 1.0), 0.0)
    return SpectralEstimate(
        cosine=jnp.sqrt(jnp.clip(square, 0.0, 1.0)),
        eigenvalue=jnp.where(out, psi(at(level.value)), psi(start)),
        edge=psi(start),
        converged=(edge.converged | at_top) & (level.converged | ~out),
    )
