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

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.fields import is_number
from orderparam.core.verb import theory
from orderparam.solve.fixed_point import fixed_point
from orderparam.solve.minimum import newton_minimum
from orderparam.systems.kernel_adaptation.modes.network import HiddenLayer
from orderparam.systems.kernel_adaptation.modes.observables import on_modes
from orderparam.systems.kernel_adaptation.modes.plane import Fluctuations, Kernel, Norm, Plane, PlaneDensity, Tau
from orderparam.systems.kernel_adaptation.modes.ridge import Ridge, effective, self_consistent
from orderparam.systems.kernel_adaptation.modes.sphere import Sphere
from orderparam.systems.kernel_adaptation.two_layers.theory.prediction import (
    ACCURACY,
    AveragedNetwork,
    ModePrediction,
    eigenvalue_ratio,
)
from orderparam.systems.kernel_adaptation.two_layers.theory.wells import Wells, wells

_MAX_STEPS = 300  # far from the prior the start is poor, and many steps are shortened
_MAX_ROUNDS = 200  # of weights and what surrounds them
FEW_NEURONS = 5.0
TRUNCATED = 0.05
RIDGE_RATIO = 1.1


class AdaptedWeights(ModePrediction, Wells):
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


def _check(system: AveragedNetwork, within: float | None = None, **_: Any) -> None:
    if within is not None and is_number(within) and not within > 0:
        raise ValueError(f"within = {within}: must be > 0")


@theory(check=_check)
def adapted_weights(
    system: AveragedNetwork,
    *,
    ridge_kind: Ridge = "bare",
    norm: Norm = "exact",
    within: float | None = None,
    fluctuations: bool = False,
) -> AdaptedWeights:
    """Non-Gaussian weights (GMFL), averaged over data. Accurate to 1e-8; `side_weight` to 1e-3.

    ridge_kind: "bare", T/n, "effective" or "self-consistent" (`modes.ridge`).
    norm: "exact", or |w_perp|^2 frozen: "concentrated" at its prior mean, "prior" at weight_variance (the sextic Landau action
        of the literature). Frozen norms are visibly wrong where neurons specialise.
    within: weights restricted to |rho| < within, such as the `barrier_position` of the equilibrium: the metastable state without
        specialised neurons.
    fluctuations: whether those of the output are there, (2) of this module.

    Homogeneous activations are solved on one angle, exactly; others in the plane (rho, |w_perp|^2). Raises `ValueError` for a
    bound that is not positive.
    """
    layer = system.hidden
    plane = Plane.of(layer, norm, within)
    rule = Sphere.of(layer) if layer.homogeneous and norm == "exact" and within is None else plane
    kappa = effective(layer)
    lam, loops = kappa if ridge_kind == "effective" else layer.ridge, None
    at_prior = jnp.zeros(len(layer.degrees))
    settled: Array | bool = True
    if ridge_kind != "self-consistent" and not fluctuations:
        tau = _equilibrium(rule, lam, None, at_prior)
    else:

        def around(kernel: Kernel) -> tuple[Array, Fluctuations | None]:
            ridge = self_consistent(layer, kernel) if ridge_kind == "self-consistent" else lam
            return ridge, _fluctuations(layer, kernel, ridge) if fluctuations else None

        def again(reached: tuple[Tau, Kernel], _: None) -> tuple[Tau, Kernel]:
            ridge, loops = around(reached[1])
            tau = _equilibrium(rule, ridge, loops, reached[0])
            return tau, rule.density(tau, loops).kernel

        start = (at_prior, rule.density(at_prior).kernel)
        found = fixed_point(again, start, None, tolerance=1e-10, max_steps=_MAX_ROUNDS)
        (tau, kernel), settled = found.value, found.converged
        lam, loops = around(kernel)
    density = rule.density(tau, loops)
    kernel, (partition, output, _) = density.kernel, density.derivatives
    squared, squared_norm = density.second_moments
    ratio = (lam if ridge_kind == "self-consistent" else kappa) / layer.ridge

    in_plane = density if isinstance(density, PlaneDensity) else plane.density(tau, loops)
    overlap, log_density, folded = in_plane.along
    shape = wells(overlap, log_density, folded)
    specialised = layer.width * jnp.where(shape.phase == 1, shape.side_weight, shape.phase / 2)
    omitted = _omitted(in_plane)
    reliable = (omitted < TRUNCATED) & ((shape.phase != 1) | (specialised >= FEW_NEURONS))
    if ridge_kind == "bare":
        reliable &= ratio < RIDGE_RATIO
    missed = jax.lax.stop_gradient(jnp.max(jnp.abs(output + lam * tau - layer.y)) / layer.size)
    residual = jnp.where(settled & density.resolved, missed, jnp.inf)
    return AdaptedWeights(
        **on_modes(layer, layer.y - lam * tau, layer.dim / layer.weight_variance * squared),
        **{name: getattr(shape, name) for name in Wells.dims()},
        eigenvalue_ratio=eigenvalue_ratio(layer, kernel),
        ridge_ratio=ratio,
        residual=residual,
        converged=residual < ACCURACY,
        tau=tau,
        action=partition - tau @ layer.y + lam / 2 * (tau @ tau) - _log_determinant(layer, kernel, lam, loops),
        norm=squared_norm,
        omitted=omitted,
        specialised=specialised,
        overlap=overlap,
        log_density=log_density,
        reliable=reliable,
    )


def _equilibrium(rule: Plane | Sphere, lam: Array, loops: Fluctuations | None, near: Tau) -> Tau:
    """tau at the minimum of G, from the tau `near`. The first step from tau = 0 leads to the kernel regression of the prior."""
    layer = rule.layer
    y, size = layer.y, layer.size
    unit = size / lam  # tau = unit * (y - f) / |y|

    def local(v: Array) -> tuple[Array, Array, Array]:
        """G / (unit |y|) and its derivatives."""
        partition, output, curvature = rule.density(unit * v, loops).derivatives
        value = partition / (unit * size) - v @ y / size + v @ v / 2
        return value, (output - y) / size + v, curvature / lam + jnp.eye(y.size)

    return unit * newton_minimum(local, near / unit, _MAX_STEPS).value


def _fluctuations(layer: HiddenLayer, kernel: Kernel, lam: Array) -> Fluctuations:
    inverse = jnp.linalg.inv(kernel.modes + lam * jnp.eye(kernel.modes.shape[0]))
    return Fluctuations(layer.copies * inverse, layer.copies / (kernel.perpendicular + lam), layer.copies / lam)


def _log_determinant(layer: HiddenLayer, kernel: Kernel, lam: Array, loops: Fluctuations | None) -> Array | float:
    """(1/2) log det(1 + kernel/lambda) over all functions less its tangent, which is part of the action of the weights."""
    if loops is None:
        return 0.0
    fit = jnp.linalg.slogdet(jnp.eye(kernel.modes.shape[0]) + kernel.modes / lam)[1] * layer.copies
    fit += layer.copies * (layer.dim - 1) * jnp.log1p(kernel.perpendicular / lam)
    linear = jnp.sum(loops.kernel * kernel.modes) + (layer.dim - 1) * loops.perpendicular * kernel.perpendicular
    return (fit - linear) / 2


def _omitted(density: PlaneDensity) -> Float[Array, ""]:
    """What the weights contribute to the first mode that was left out, over |y|."""
    plane, layer = density.plane, density.plane.layer
    rho = plane.rho[:, None]
    (following,) = plane.overlaps((next_degree(layer),))(rho, rho**2 + density.q_perp)
    left_out = jnp.sum(density.weight * following * jnp.tensordot(density.tau, density.m, 1))
    return jnp.abs(layer.readout_variance * left_out) / jnp.sqrt(layer.target.power)


def next_degree(layer: HiddenLayer) -> int:
    """The first degree that is not kept and on which phi has a component (for linear units, might have one)."""
    phi, kept = layer.phi, layer.degrees

    def absent(k: int) -> bool:
        wrong = {"odd": k % 2 == 0, "even": k % 2 == 1}.get(phi.parity or "", False)
        return wrong or (layer.homogeneous and k % 2 == 1 and k > 1 and phi.parity != "odd")

    return next(k for k in range(kept[-1] + 3) if k not in kept and not absent(k))
