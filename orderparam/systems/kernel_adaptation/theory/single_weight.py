"""The weights of one neuron with their full distribution: Gaussian (GFL) or with specialised side wells (GMFL).

When the kernel of the hidden layer is self-averaging, the neurons are independent draws of one density,

    p(w) ~ prior(w) exp{ (s/2N) (tau . m(w))^2 },   M = s <m m^T>,   (M + lambda) tau = y,   f = y - lambda tau        (1)

with m_k(w) = E phi(w . x) h_k(z), s the read-out variance, lambda = T/n. The attraction is proportional to the square of what is
not yet learned, tau = (y - f)/lambda, and it is the only term of order one in the mean-field scaling (the fluctuations of the
output are smaller by 1/chi and left out). Equations (1) are the stationarity of a strictly convex function,

    G(tau) = -tau . y + (lambda/2) |tau|^2 + N log E_prior exp{ (s/2N) (tau . m)^2 }

(log-sum-exp of convex functions; derived for this package), so that the equilibrium is unique: the first-order transition to
specialised neurons shows in p(rho), as new wells and coexistence, and not in several solutions.

Rubin, Seroussi, Ringel 2024, "Grokking as a first order phase transition in two layer networks"; Rubin, Fischer, Lindner, Dahmen,
Seroussi, Ringel, Krämer, Helias 2025, "From kernels to features".
"""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.solve.minimum import minimise
from orderparam.systems.kernel_adaptation.model import TwoLayerNetwork
from orderparam.systems.kernel_adaptation.theory.phases import Wells, wells
from orderparam.systems.kernel_adaptation.theory.plane import Averages, Norm, Plane
from orderparam.systems.kernel_adaptation.theory.predictions import Prediction, compiled, regression, shares
from orderparam.systems.kernel_adaptation.theory.ridge import Ridge, ridge
from orderparam.systems.kernel_adaptation.theory.sphere import Sphere

_ACCURACY = 1e-8
_MAX_STEPS = 300  # far from the prior the start is poor, and many steps are shortened
FEW_NEURONS = 5.0
TRUNCATED = 0.05
RIDGE_RATIO = 1.1


class AdaptedWeights(Prediction, Wells):
    """Solution of (1).

    tau: (y - f)/lambda on the modes. action: G at its minimum, minus the free energy. norm: <|w|^2>.
    omitted: what the weights contribute to the first mode that was left out (`next_degree`), over |y|.
    specialised: N side_weight, the number of specialised neurons.
    overlap, log_density: nodes rho >= 0 and log of the (even) density with respect to rho there.
    reliable: omitted < 0.05, ridge_ratio < 1.1 or the effective ridge in use, and in GMFL-I at least 5 specialised neurons; where
    it is False equations (1) are solved, but their assumptions do not hold.
    """

    tau: Float[Array, "mode"]
    action: Float[Array, ""]
    norm: Float[Array, ""]
    omitted: Float[Array, ""]
    specialised: Float[Array, ""]
    overlap: Float[Array, "node"]
    log_density: Float[Array, "node"]
    reliable: Bool[Array, ""]


@compiled
def adapted_weights(
    system: TwoLayerNetwork, ridge_kind: Ridge = "bare", norm: Norm = "exact", within: float | None = None
) -> AdaptedWeights:
    """Non-Gaussian weights (GMFL), averaged over data. Accurate to 1e-8; `side_weight` to 1e-3.

    ridge_kind: "bare", T/n, or "effective" (`theory.ridge`).
    norm: "exact", or |w_perp|^2 frozen: "concentrated" at its prior mean, "prior" at weight_variance (the sextic Landau action
        of the literature). Frozen norms are visibly wrong where neurons specialise.
    within: weights restricted to |rho| < within, below the barrier: the metastable state without specialised neurons.

    Homogeneous activations are solved on one angle, exactly; others in the plane (rho, |w_perp|^2). Raises `ValueError` for an
    unknown ridge or norm. Works under vmap, jit and grad.
    """
    degrees = system.kept
    y = system.coefficients(degrees)
    lam, ratio = ridge(system, ridge_kind)
    plane = Plane.of(system, norm, within)
    use_sphere = system.homogeneous and norm == "exact" and within is None
    sphere = Sphere.of(system, degrees) if use_sphere else None

    def averages(tau: Array) -> Averages:
        return plane.averages(tau, degrees) if sphere is None else sphere.averages(tau)

    size = jnp.sqrt(y @ y)
    size = jnp.where(size == 0, 1.0, size)
    unit = size / lam  # tau = unit * (y - f) / |y|

    def value(v: Array) -> Array:
        return averages(unit * v).log_partition - unit * (v @ y) + lam / 2 * unit**2 * (v @ v)

    def gradient(v: Array) -> Array:
        return (averages(unit * v).output - y) / size + v

    def curvature(v: Array) -> Array:
        return averages(unit * v).curvature / lam + jnp.eye(len(degrees))

    first, _ = regression(averages(jnp.zeros(len(degrees))).kernel, y, lam)
    start = first if sphere is None else sphere.inside(first)
    found = minimise(value, gradient, start / unit, curvature, _MAX_STEPS)
    tau = unit * found
    error = jnp.max(jnp.abs(jax.lax.stop_gradient(gradient(found))))
    described = _described(system, plane, tau, y - lam * tau, value(found), error, ratio, ridge_kind)
    if sphere is None:
        return described
    squared, norm_squared = sphere.second_moments(tau)
    return dataclasses.replace(described, spread=plane.dim / plane.variance * squared, norm=norm_squared)


def _described(
    system: TwoLayerNetwork, plane: Plane, tau: Array, output: Array, action: Array, error: Array, ratio: Array, kind: Ridge
) -> AdaptedWeights:
    degrees = system.kept
    m, q_perp, log_weight = plane.interacting(tau, degrees)
    top = jnp.max(log_weight)
    weight = jnp.exp(log_weight - top)
    total = jnp.sum(weight)
    weight = weight / total
    at_rho = jnp.sum(weight, axis=1)
    log_rho = jax.scipy.special.logsumexp(log_weight, axis=1) - top - jnp.log(total) - jnp.log(plane.spacing)
    following = plane.overlaps((next_degree(system),))(plane.rho[:, None], plane.rho[:, None] ** 2 + q_perp)[0]
    left_out = plane.readout * jnp.sum(weight * following * jnp.tensordot(tau, m, 1)) / jnp.sqrt(system.power)
    overlap, log_density, folded = _folded(plane, log_rho, at_rho)
    shape = wells(overlap, log_density, folded)
    specialised = plane.width * jnp.where(shape.phase == 1, shape.side_weight, shape.phase / 2)
    reliable = (jnp.abs(left_out) < TRUNCATED) & ((shape.phase != 1) | (specialised >= FEW_NEURONS))
    if kind == "bare":
        reliable &= ratio < RIDGE_RATIO
    return AdaptedWeights(
        **shares(system, output),
        **{name: getattr(shape, name) for name in Wells.dims()},
        spread=plane.dim / plane.variance * jnp.sum(at_rho * plane.rho**2),
        ridge_ratio=ratio,
        residual=error,
        converged=error < _ACCURACY,
        tau=tau,
        action=action,
        norm=jnp.sum(weight * (q_perp + plane.rho[:, None] ** 2)),
        omitted=jnp.abs(left_out),
        specialised=specialised,
        overlap=overlap,
        log_density=log_density,
        reliable=reliable,
    )


def _folded(plane: Plane, log_density: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Nodes rho >= 0, log of the even part of the density, and the probability of +-rho."""
    if plane.even:
        return plane.rho, log_density, weight
    half = plane.rho.shape[0] // 2
    pairs = jnp.stack([log_density[half:], log_density[half::-1]])
    mass = (weight[half:] + weight[half::-1]).at[0].divide(2)
    return plane.rho[half:], jax.scipy.special.logsumexp(pairs, axis=0) - jnp.log(2.0), mass


def next_degree(system: TwoLayerNetwork) -> int:
    """The first degree after the kept modes on which phi has a component."""
    last = system.kept[-1]
    if system.phi.parity is not None or (system.homogeneous and last % 2 == 0):
        return last + 2
    return last + 1
