"""The weights of one neuron with their full distribution: Gaussian (GFL) or with specialised side wells (GMFL).

When the kernel of the hidden layer is self-averaging, the neurons are independent draws of one density,

    p(w) ~ prior(w) exp{ (s/2N) (tau . m(w))^2 },   M = s <m m^T>,   (M + lambda) tau = y,   f = y - lambda tau        (1)

with m_k(w) = E phi(w . x) h_k(z), s the read-out variance, lambda = T/n. The attraction is proportional to the square of what is
not yet learned, tau = (y - f)/lambda, and it is the only term of order one in the mean-field scaling (the fluctuations of the
output are smaller by 1/chi). Equations (1) are the stationarity of a strictly convex function,

    G(tau) = -tau . y + (lambda/2) |tau|^2 + N log E_prior exp{ (s/2N) (tau . m)^2 }

(log-sum-exp of convex functions; derived for this package), so that the equilibrium is unique: the first-order transition to
specialised neurons shows in p(rho), as new wells and coexistence, and not in several solutions.

The fluctuations of the output add (1/2) log det(1 + kernel/lambda) over all functions to the free energy, which is concave in
the kernel: (tau . m)^2 in (1) becomes

    (tau . m)^2 - m^T (M + lambda)^{-1} m - p/(lambda_perp + lambda) - r/lambda                                          (2)

with p the power of phi(w . x) on the d - 1 linear functions across w_*, lambda_perp = s <p>/(d - 1) their eigenvalue, and r the
power on all other functions, whose eigenvalues are taken to be small. Around any kernel the log det lies below its tangent, with
which G is convex again; repeated, this lowers the free energy at every round (at given lambda), to the minimum next to the prior.

Rubin, Seroussi, Ringel 2024, "Grokking as a first order phase transition in two layer networks"; Rubin, Fischer, Lindner, Dahmen,
Seroussi, Ringel, Krämer, Helias 2025, "From kernels to features".
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.system import is_number
from orderparam.solve.fixed_point import fixed_point
from orderparam.solve.minimum import minimise
from orderparam.systems.kernel_adaptation.modes.plane import Averages, Fluctuations, Norm, Others, Plane
from orderparam.systems.kernel_adaptation.modes.ridge import RIDGES, Ridge, ridge, self_consistent_ridge
from orderparam.systems.kernel_adaptation.modes.sphere import Sphere
from orderparam.systems.kernel_adaptation.two_layers.model import TwoLayerNetwork
from orderparam.systems.kernel_adaptation.two_layers.theory.prediction import (
    AveragedNetwork,
    Prediction,
    compiled,
    eigenvalue_ratio,
    regression,
    shares,
)
from orderparam.systems.kernel_adaptation.two_layers.theory.wells import Wells, wells

_ACCURACY = 1e-8
_MAX_STEPS = 300  # far from the prior the start is poor, and many steps are shortened
_MAX_ROUNDS = 200  # of weights and what surrounds them
FEW_NEURONS = 5.0
TRUNCATED = 0.05
RIDGE_RATIO = 1.1


class AdaptedWeights(Prediction, Wells):
    """Solution of (1).

    tau: (y - f)/lambda on the modes. action: G at its minimum, minus the free energy. norm: <|w|^2>.
    omitted: what the weights contribute to the first mode that was left out (`next_degree`), over |y|, whatever y_k is there.
    specialised: N side_weight, the number of specialised neurons.
    overlap, log_density: nodes rho >= 0 and log of the (even) density with respect to rho there.
    reliable: omitted < 0.05, ridge_ratio < 1.1 or the effective ridge in use, and in GMFL-I at least 5 specialised neurons; where
    it is False equations (1) are solved, but their assumptions do not hold. residual: of (1) over |y|; infinite where the nodes
    of the integrals are too few for the density, as they are for specialised neurons from d of some 10^4 on.
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
    system: AveragedNetwork,
    ridge_kind: Ridge = "bare",
    norm: Norm = "exact",
    within: float | None = None,
    fluctuations: bool = False,
) -> AdaptedWeights:
    """Non-Gaussian weights (GMFL), averaged over data. Accurate to 1e-8; `side_weight` to 1e-3.

    ridge_kind: "bare", T/n, "effective" or "self-consistent" (`theory.ridge`).
    norm: "exact", or |w_perp|^2 frozen: "concentrated" at its prior mean, "prior" at weight_variance (the sextic Landau action
        of the literature). Frozen norms are visibly wrong where neurons specialise.
    within: weights restricted to |rho| < within, such as the `barrier_position` of the equilibrium: the metastable state without
        specialised neurons.
    fluctuations: whether those of the output are there, (2) of this module.

    Homogeneous activations are solved on one angle, exactly; others in the plane (rho, |w_perp|^2). Raises `ValueError` for an
    unknown ridge or norm, and a bound that is not positive. Works under vmap, jit and grad.
    """
    if ridge_kind not in RIDGES:
        raise ValueError(f"ridge = {ridge_kind!r}: must be one of {', '.join(RIDGES)}")
    copies, system = system.copies, system.one_patch
    if within is not None and is_number(within) and not within > 0:
        raise ValueError(f"within = {within}: must be > 0")
    plane = Plane.of(system, norm, within)
    use_sphere = system.homogeneous and norm == "exact" and within is None
    weights = _Weights(system, jnp.asarray(copies, float), plane, Sphere.of(system, system.kept) if use_sphere else None)
    fixed, ratio = ridge(system, "bare" if ridge_kind == "self-consistent" else ridge_kind, copies)
    at_prior = jnp.zeros(len(system.kept))
    if ridge_kind != "self-consistent" and not fluctuations:
        return _described(weights, weights.equilibrium(fixed, None, at_prior), fixed, None, ratio, ridge_kind)

    def around(surroundings: tuple) -> tuple[Array, Fluctuations | None]:
        kernel, outside = surroundings
        lam = fixed
        if ridge_kind == "self-consistent":
            lam = self_consistent_ridge(system, weights.copies, kernel, outside.perpendicular, outside.rest)
        return lam, weights.fluctuations(kernel, outside, lam) if fluctuations else None

    def again(reached: tuple, _: None) -> tuple:
        tau, surroundings = reached
        lam, loops = around(surroundings)
        tau = weights.equilibrium(lam, loops, tau)
        return tau, weights.surroundings(tau, loops)

    found = fixed_point(again, (at_prior, weights.surroundings(at_prior, None)), None, tolerance=1e-10, max_steps=_MAX_ROUNDS)
    tau, surroundings = found.value
    lam, loops = around(surroundings)
    return _described(
        weights,
        weights.equilibrium(lam, loops, tau),
        lam,
        loops,
        lam / system.ridge if ridge_kind == "self-consistent" else ratio,
        ridge_kind,
        jnp.where(found.converged, 0.0, jnp.inf),
    )


class _Weights(eqx.Module):
    """The rule by which averages over weights are taken: on one angle, or in the plane."""

    system: TwoLayerNetwork
    copies: Array
    plane: Plane
    sphere: Sphere | None

    def averages(self, tau: Array, loops: Fluctuations | None) -> Averages:
        if self.sphere is None:
            return self.plane.averages(tau, self.system.kept, loops)
        return self.sphere.averages(tau, loops)

    def surroundings(self, tau: Array, loops: Fluctuations | None) -> tuple[Array, Others]:
        """The kernel on the modes, and outside."""
        kernel = self.averages(tau, loops).kernel
        if self.sphere is None:
            return kernel, self.plane.outside(tau, self.system.kept, loops)
        return kernel, self.sphere.outside(tau, loops)

    def fluctuations(self, kernel: Array, outside: Others, lam: Array) -> Fluctuations:
        inverse = jnp.linalg.inv(kernel + lam * jnp.eye(kernel.shape[0]))
        return Fluctuations(self.copies * inverse, self.copies / (outside.perpendicular + lam), self.copies / lam)

    def equilibrium(self, lam: Array, loops: Fluctuations | None, near: Array) -> Array:
        """tau at the minimum of G, from the kernel of the weights at the tau `near`."""
        y, _, unit = self._scales(lam)

        def value(v: Array) -> Array:
            return self.averages(unit * v, loops).log_partition - unit * (v @ y) + lam / 2 * unit**2 * (v @ v)

        def curvature(v: Array) -> Array:
            return self.averages(unit * v, loops).curvature / lam + jnp.eye(y.shape[0])

        start, _ = regression(self.averages(near, loops).kernel, y, lam)
        start = start if self.sphere is None else self.sphere.inside(start)
        return unit * minimise(value, lambda v: self.slope(unit * v, lam, loops), start / unit, curvature, _MAX_STEPS)

    def slope(self, tau: Array, lam: Array, loops: Fluctuations | None) -> Array:
        """(dG/dtau) / |y|."""
        y, size, unit = self._scales(lam)
        return (self.averages(tau, loops).output - y) / size + tau / unit

    def action(self, tau: Array, lam: Array, loops: Fluctuations | None) -> Array:
        """Minus the free energy, relative to that of the prior without target."""
        y, *_ = self._scales(lam)
        averages = self.averages(tau, loops)
        found = averages.log_partition - tau @ y + lam / 2 * (tau @ tau)
        if loops is None:
            return found
        _, outside = self.surroundings(tau, loops)
        fit = jnp.linalg.slogdet(jnp.eye(y.shape[0]) + averages.kernel / lam)[1] * self.copies
        fit += self.copies * (self.plane.dim - 1) * jnp.log1p(outside.perpendicular / lam) + loops.rest * outside.rest
        linear = jnp.sum(loops.kernel * averages.kernel) + (self.plane.dim - 1) * loops.perpendicular * outside.perpendicular
        return found - (fit - linear - loops.rest * outside.rest) / 2

    def _scales(self, lam: Array) -> tuple[Array, Array, Array]:
        """y, |y|, and |y|/lambda: tau = unit * (y - f)/|y|."""
        y = self.system.coefficients(self.system.kept)
        size = jnp.sqrt(y @ y)
        size = jnp.where(size == 0, 1.0, size)
        return y, size, size / lam


def _described(
    weights: _Weights,
    tau: Array,
    lam: Array,
    loops: Fluctuations | None,
    ratio: Array,
    kind: Ridge,
    unsettled: Array | float = 0.0,
) -> AdaptedWeights:
    system, plane = weights.system, weights.plane
    degrees = system.kept
    kernel, outside = weights.surroundings(tau, loops)
    m, q_perp, log_weight = plane.interacting(tau, degrees, loops)
    resolved = plane.resolves(log_weight) if weights.sphere is None else weights.sphere.resolves(tau, loops)
    error = jnp.max(jnp.abs(jax.lax.stop_gradient(weights.slope(tau, lam, loops)))) + unsettled
    error += jnp.where(resolved, 0.0, jnp.inf)
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
    if weights.sphere is None:
        squared, norm = jnp.sum(at_rho * plane.rho**2), jnp.sum(weight * (q_perp + plane.rho[:, None] ** 2))
    else:
        squared, norm = weights.sphere.second_moments(tau, loops)
    return AdaptedWeights(
        **shares(system, system.coefficients(degrees) - lam * tau),
        **{name: getattr(shape, name) for name in Wells.dims()},
        spread=plane.dim / plane.variance * squared,
        eigenvalue_ratio=eigenvalue_ratio(degrees, kernel, outside.perpendicular),
        ridge_ratio=ratio,
        residual=error,
        converged=error < _ACCURACY,
        tau=tau,
        action=weights.action(tau, lam, loops),
        norm=norm,
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
    """The first degree that is not kept and on which phi has a component (for linear units, might have one)."""
    phi, kept = system.phi, system.kept

    def absent(k: int) -> bool:
        wrong = {"odd": k % 2 == 0, "even": k % 2 == 1}.get(phi.parity or "", False)
        return wrong or (system.homogeneous and k % 2 == 1 and k > 1 and phi.parity != "odd")

    return next(k for k in range(kept[-1] + 3) if k not in kept and not absent(k))
