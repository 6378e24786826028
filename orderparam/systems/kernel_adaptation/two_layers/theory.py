"""Theories of two-layer networks averaged over Gaussian data: from a fixed kernel to weights with
their full distribution.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.fields import is_number
from orderparam.core.verb import theory
from orderparam.solve.fixed_point import fixed_point
from orderparam.solve.minimum import newton_minimum
from orderparam.systems.kernel_adaptation.network import HiddenLayer, on_modes
from orderparam.systems.kernel_adaptation.ridge import (
    Ridge,
    effective,
    self_consistent,
)
from orderparam.systems.kernel_adaptation.sphere import Sphere
from orderparam.systems.kernel_adaptation.two_layers.fixed_shape import (
    ACCURACY,
    AveragedNetwork,
    ModePrediction,
    eigenvalue_ratio,
)
from orderparam.systems.kernel_adaptation.two_layers.phase_map import Wells, wells
from orderparam.systems.kernel_adaptation.weights import (
    Fluctuations,
    Kernel,
    Norm,
    Plane,
    PlaneDensity,
    Tau,
)

# ------------------------------------------------------------------------------------------------
# The weights of one neuron with their full distribution: Gaussian (GFL) or with specialised side
# wells (GMFL).
#
# When the kernel of the hidden layer is self-averaging, the neurons are independent draws of one
# density,
#
#     p(w) ~ prior(w) exp{ (s/2N) (tau . m(w))^2 },
#     M = s <m m^T>,   (M + lambda) tau = y,   f = y - lambda tau                              (1)
#
# with m_k(w) = E phi(w . x) h_k(z), s the read-out variance, lambda = T/n. The attraction of the
# weights to the target is proportional to the square of tau = (y - f)/lambda, the part of the
# target that is not yet learned. In the mean-field scaling it is the only term of order one (the
# fluctuations of the output are smaller by 1/chi). Equations (1) say that a strictly convex
# function is stationary,
#
#     G(tau) = -tau . y + (lambda/2) |tau|^2 + N log E_prior exp{ (s/2N) (tau . m)^2 }
#
# (log-sum-exp of convex functions; derived for this package), so that the equilibrium is unique.
# The transition to specialised neurons is seen in the density p(rho), which gets new wells in which
# neurons coexist, and not in several solutions.
#
# The fluctuations of the output add (1/2) log det(1 + kernel/lambda) over all functions to the free
# energy, which is concave in the kernel: (tau . m)^2 in (1) becomes
#
#     (tau . m)^2 - m^T (M + lambda)^{-1} m - p/(lambda_perp + lambda) - r/lambda              (2)
#
# with p the power of phi(w . x) on the d - 1 linear functions orthogonal to w_*, lambda_perp = s
# <p>/(d - 1) their eigenvalue, and r the power on all other functions, whose eigenvalues are taken
# to be small. The log det lies below its tangent at any kernel, and if it is replaced by this
# tangent G is convex again. Each round takes the tangent at the kernel of the round before, which
# lowers the free energy (at given lambda), until the minimum next to the prior is reached.
#
# Rubin, Seroussi, Ringel 2024, "Grokking as a first order phase transition in two layer networks";
# Rubin, Fischer, Lindner, Dahmen, Seroussi, Ringel, Krämer, Helias 2025, "From kernels to
# features".

_MAX_STEPS = 300  # far from the prior the start is poor, and many steps are damped
_MAX_ROUNDS = 200  # rounds of alternating updates of the weights and of ridge and fluctuations
FEW_NEURONS = 5.0
TRUNCATED = 0.05
RIDGE_RATIO = 1.1


class AdaptedWeights(ModePrediction, Wells):
    """The output on the modes for weights with their full distribution, and that distribution along
    w_*.

    Fields:
        tau: (y - f)/lambda on the modes.
        action: G at its minimum, which is minus the free energy.
        norm: <|w|^2>.
        omitted: contribution of the weights to the first omitted mode (`next_degree`), divided by
            |y|. It does not depend on the target's coefficient y_k of this mode.
        specialised: N side_weight, the number of specialised neurons.
        overlap: nodes rho >= 0.
        log_density: logarithm of the (even) density with respect to rho at these nodes.
        reliable: whether the assumptions hold: omitted < 0.05; ridge_ratio < 1.1 or the effective
            ridge in use; in GMFL-I at least 5 specialised neurons. Where it is False the equations
            may be solved, but their assumptions do not hold.
        residual: residual of the equations divided by |y|; infinite where the integrals have too
            few nodes for the density, as for specialised neurons at d above some 10^4.
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
    r"""Output on the modes for weights with their full distribution (specialisation), averaged over
    data.

    Every neuron is an independent draw from one density, whose attraction to the target depends on
    the average over all neurons:

    $$ p(w) \propto \mathrm{prior}(w)\, \exp\Big\{ \frac{s}{2N} (\tau \cdot m(w))^2 \Big\}, \qquad
       M = s \langle m m^T \rangle, \qquad (M + \lambda) \tau = y, \qquad f = y - \lambda \tau $$

    with $m_k(w) = E_x\, \phi(w \cdot x) h_k(w_* \cdot x)$, s the `readout_variance`, N the `width`
    and $\lambda$ the ridge. These equations say that the convex function

    $$ G(\tau) = -\tau \cdot y + \frac{\lambda}{2} |\tau|^2
       + N \log E_{\mathrm{prior}} \exp\Big\{ \frac{s}{2N} (\tau \cdot m)^2 \Big\} $$

    is stationary, so that the solution is unique. The transition to specialised neurons is seen in
    the density of rho = w . w_* (`overlap`, `log_density`, `phase`).

    Args:
        ridge_kind: "bare" (default) is T/n, "effective" the effective ridge of the modes without
            target at the prior, "self-consistent" that of all modes as the weights have them (see
            `ridge`).
        norm: "exact" (default) integrates over |w_perp|^2; the other choices fix it: "concentrated"
            at its prior mean, "prior" at `weight_variance` (the sextic Landau action of the
            literature). Fixed norms are visibly wrong where neurons specialise.
        within: bound > 0 that restricts the weights to |rho| < within. With the `barrier_position`
            of the equilibrium this gives the metastable state without specialised neurons. Default
            None, no bound.
        fluctuations: whether the fluctuations of the output are included, which replace (tau . m)^2
            by (tau . m)^2 - m^T (M + lambda)^{-1} m - p/(lambda_perp + lambda) - r/lambda, with p
            and r the power of a unit on linear functions orthogonal to w_* and on all other
            functions. Default False.

    Raises:
        ValueError: for a bound that is not positive.

    Accuracy: 1e-8; `side_weight` 1e-3.

    Cost: about 0.01 s for each point after compilation. Integrals run over one angle for
    homogeneous activations, and over the plane (rho, |w_perp|^2) for others.

    Source: Rubin, Seroussi, Ringel (2024); Rubin et al. (2025); G and its convexity are derived
    here.

    >>> from orderparam.systems.kernel_adaptation import TwoLayerNetwork
    >>> from orderparam.systems.kernel_adaptation import hermite_target
    >>> network = TwoLayerNetwork(
    ...     20, 100, 400, 0.2, hermite_target({1: 1, 3: -0.3}), readout_variance=0.015,
    ...     weight_variance=0.5,
    ... )
    >>> found = adapted_weights(network)
    >>> np.asarray(found.learnability[:2]).round(5).tolist(), int(found.phase)
    ([0.74653, 0.12374], 0)
    """
    layer = system.hidden
    plane = Plane.of(layer, norm, within)
    rule = Sphere.of(layer) if layer.homogeneous and norm == "exact" and within is None else plane
    kappa = effective(layer)
    lam, loops = kappa if ridge_kind == "effective" else layer.ridge, None
    at_prior = jnp.zeros(len(layer.degrees))
    settled: Array | bool = True
    if ridge_kind != "self-consistent" and not fluctuations:
        tau = minimal_tau(rule, lam, None, at_prior)
    else:

        def around(kernel: Kernel) -> tuple[Array, Fluctuations | None]:
            ridge = self_consistent(layer, kernel) if ridge_kind == "self-consistent" else lam
            return ridge, _fluctuations(layer, kernel, ridge) if fluctuations else None

        def again(reached: tuple[Tau, Kernel], _: None) -> tuple[Tau, Kernel]:
            ridge, loops = around(reached[1])
            tau = minimal_tau(rule, ridge, loops, reached[0])
            return tau, rule.density(tau, loops).kernel

        start = (at_prior, rule.density(at_prior).kernel)
        found = fixed_point(again, start, None, tolerance=1e-10, max_steps=_MAX_ROUNDS)
        (tau, kernel), settled = found.value, found.converged
        lam, loops = around(kernel)
    density = rule.density(tau, loops)
    kernel, (partition, output, _) = density.kernel, density.derivatives
    squared, squared_norm = density.second_moments
    ratio = (lam if ridge_kind == "self-consistent" else kappa) / layer.ridge

    # The density of rho is computed with the plane rule (rho, |w_perp|^2) even if the solution was
    # found with the rule in the angle.
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
        action=partition
        - tau @ layer.y
        + lam / 2 * (tau @ tau)
        - _log_determinant(layer, kernel, lam, loops),
        norm=squared_norm,
        omitted=omitted,
        specialised=specialised,
        overlap=overlap,
        log_density=log_density,
        reliable=reliable,
    )


def minimal_tau(rule: Plane | Sphere, lam: Array, loops: Fluctuations | None, near: Tau) -> Tau:
    """The vector tau at the minimum of G, found from the start `near`. The first step from tau = 0
    leads to kernel regression with the prior kernel.
    """
    layer = rule.layer
    y, size = layer.y, layer.size
    unit = size / lam  # tau = unit * (y - f) / |y|

    def local(v: Array) -> tuple[Array, Array, Array]:
        """G / (unit |y|) and its derivatives."""
        # The gradient of G is the equation (M + lambda) tau = y, its Hessian a matrix >= lambda.
        partition, output, curvature = rule.density(unit * v, loops).derivatives
        value = partition / (unit * size) - v @ y / size + v @ v / 2
        return value, (output - y) / size + v, curvature / lam + jnp.eye(y.size)

    return unit * newton_minimum(local, near / unit, _MAX_STEPS).value


def _fluctuations(layer: HiddenLayer, kernel: Kernel, lam: Array) -> Fluctuations:
    inverse = jnp.linalg.inv(kernel.modes + lam * jnp.eye(kernel.modes.shape[0]))
    return Fluctuations(
        layer.copies * inverse, layer.copies / (kernel.perpendicular + lam), layer.copies / lam
    )


def _log_determinant(
    layer: HiddenLayer, kernel: Kernel, lam: Array, loops: Fluctuations | None
) -> Array | float:
    """The term (1/2) log det(1 + kernel/lambda) over all functions minus its tangent, which is part
    of the action of the weights.
    """
    if loops is None:
        return 0.0
    fit = jnp.linalg.slogdet(jnp.eye(kernel.modes.shape[0]) + kernel.modes / lam)[1] * layer.copies
    fit += layer.copies * (layer.dim - 1) * jnp.log1p(kernel.perpendicular / lam)
    linear = (
        jnp.sum(loops.kernel * kernel.modes)
        + (layer.dim - 1) * loops.perpendicular * kernel.perpendicular
    )
    return (fit - linear) / 2


def _omitted(density: PlaneDensity) -> Float[Array, ""]:
    """The contribution of the weights to the first omitted mode, divided by |y|."""
    plane, layer = density.plane, density.plane.layer
    rho = plane.rho[:, None]
    (following,) = plane.overlaps((next_degree(layer),))(rho, rho**2 + density.q_perp)
    left_out = jnp.sum(density.weight * following * jnp.tensordot(density.tau, density.m, 1))
    return jnp.abs(layer.readout_variance * left_out) / jnp.sqrt(layer.target.power)


def next_degree(layer: HiddenLayer) -> int:
    """The first degree that is not kept and on which phi has a component (for linear units: could
    have one).
    """
    phi, kept = layer.phi, layer.degrees

    def absent(k: int) -> bool:
        wrong = {"odd": k % 2 == 0, "even": k % 2 == 1}.get(phi.parity or "", False)
        return wrong or (layer.homogeneous and k % 2 == 1 and k > 1 and phi.parity != "odd")

    return next(k for k in range(kept[-1] + 3) if k not in kept and not absent(k))
