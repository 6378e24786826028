"""Theories of two-layer networks averaged over Gaussian data: from a fixed kernel to weights with
their full distribution.
"""

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from orderparam.core.fields import is_number
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.kernels.common_scale import minima
from orderparam.solve.fixed_point import fixed_point
from orderparam.solve.minimum import differentiated, newton_minimum
from orderparam.systems.kernel_adaptation.network import HiddenLayer, OnModes, on_modes
from orderparam.systems.kernel_adaptation.patches.model import PatchNetwork
from orderparam.systems.kernel_adaptation.ridge import (
    FixedRidge,
    Ridge,
    effective,
    self_consistent,
    settled,
)
from orderparam.systems.kernel_adaptation.two_layers.model import ScaledNetwork, TwoLayerNetwork
from orderparam.systems.kernel_adaptation.weights import (
    LOG_STEPS,
    STANDARD_NODES,
    Fluctuations,
    Kernel,
    Norm,
    Plane,
    PlaneDensity,
    Sphere,
    Tau,
)

# ------------------------------------------------------------------------------------------------
# The systems that every theory averaged over data accepts, and the observables that it returns.

AveragedNetwork = TwoLayerNetwork | ScaledNetwork | PatchNetwork

ACCURACY = 1e-8


class ModePrediction(OnModes):
    """The output on the modes, and the kernel from which it follows.

    Fields:
        eigenvalue_ratio: eigenvalue of the kernel on h_1, divided by that on linear functions
            orthogonal to w_*: 1 without adaptation; NaN if h_1 is not kept.
        ridge_ratio: effective ridge divided by T/n; above 1.1 the bare ridge is not reliable (see
            `ridge`).
        residual: residual of the equations of the theory.
        converged: whether they were solved to 1e-8.
    """

    eigenvalue_ratio: Float[Array, ""]
    ridge_ratio: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def eigenvalue_ratio(layer: HiddenLayer, kernel: Kernel) -> Float[Array, ""]:
    """The eigenvalue of the kernel on h_1 divided by that on linear functions orthogonal to w_*."""
    if 1 not in layer.degrees:
        return jnp.asarray(jnp.nan)
    first = layer.degrees.index(1)
    return kernel.modes[first, first] / kernel.perpendicular


def regression(
    kernel: Float[Array, "mode mode"], y: Float[Array, "mode"], ridge: Float[Array, ""]
) -> tuple[Float[Array, "mode"], Float[Array, "mode"]]:
    """The vector tau = (M + lambda)^{-1} y and the output f = M tau = y - lambda tau."""
    tau = jnp.linalg.solve(kernel + ridge * jnp.eye(y.shape[0]), y)
    return tau, kernel @ tau


# ------------------------------------------------------------------------------------------------
# Kernels that keep their shape: the infinitely wide network, and the same kernel times one number.


class ScaledKernel(ModePrediction):
    """The output on the modes for a kernel that keeps its shape.

    Fields:
        kernel_scale: Q, the factor of the kernel; 1 for the infinitely wide network.
    """

    kernel_scale: Float[Array, ""]


def prior_kernel(layer: HiddenLayer) -> Kernel:
    """The kernel of the infinitely wide network: M = s E_prior m m^T on the modes, and its part
    outside of them.
    """
    return Plane.of(layer).density(jnp.zeros(len(layer.degrees))).kernel


@theory
def gaussian_process(system: AveragedNetwork, *, ridge_kind: Ridge = "bare") -> ScaledKernel:
    r"""Output of the infinitely wide network (NNGP) on the modes, averaged over data.

    $$ f = M (M + \lambda)^{-1} y, \qquad M = s\, E_{\mathrm{prior}}\, m m^T, \qquad
       m_k(w) = E_x\, \phi(w \cdot x)\, h_k(w_* \cdot x) $$

    with s the `readout_variance` and $\lambda$ the ridge. The output depends on s and the
    temperature through their ratio only, and not on the width. `output` is f and `learnability` is
    $f_k / y_k$.

    Args:
        ridge_kind: "bare" (default) is T/n. "effective" and "self-consistent" are the same for a
            fixed kernel: the effective ridge of all its modes, those of the target included.

    Accuracy: 1e-8. The average over data is to first order (equivalent kernel).

    Source: Rubin, Seroussi, Ringel (2024); Rubin et al. (2025).

    >>> from orderparam.systems.kernel_adaptation import hermite_target
    >>> network = TwoLayerNetwork(20, 100, 400, temperature=0.2, target=hermite_target({1: 1, 3: -0.3}))
    >>> np.asarray(gaussian_process(network).learnability[:2]).round(6).tolist()
    [1.000754, 0.078146]
    """
    layer = system.hidden
    kernel = prior_kernel(layer)
    kappa = self_consistent(layer, kernel)
    lam = layer.ridge if ridge_kind == "bare" else kappa
    return _scaled(layer, kernel, lam, kappa / layer.ridge, jnp.ones(()), jnp.zeros(()))


@theory
def kernel_scaling(system: AveragedNetwork, *, ridge_kind: FixedRidge = "bare") -> ScaledKernel:
    r"""Output on the modes when adaptation multiplies the kernel by one number Q, averaged over
    data.

    $$ Q = \mathrm{argmin}\; N (Q - \log Q) + y^T (\lambda + Q M)^{-1} y, \qquad
       f = Q M (\lambda + Q M)^{-1} y $$

    with N the `width`, M the kernel of `gaussian_process` and $\lambda$ the ridge; `kernel_scale`
    is Q. The weights may grow but not turn. The lowest minimum is returned.

    Args:
        ridge_kind: "bare" (default) is T/n; "effective" is the effective ridge of the modes without
            target, at the prior (see `ridge`).

    Accuracy: 1e-8; the fluctuations of the output are neglected.

    Source: Li, Sompolinsky (2021); Pacelli et al. (2023).

    >>> from orderparam.systems.kernel_adaptation import hermite_target
    >>> network = TwoLayerNetwork(
    ...     20, 100, 400, 0.2, hermite_target({1: 1, 3: -0.3}), readout_variance=0.015
    ... )
    >>> round(float(kernel_scaling(network).kernel_scale), 6)
    4.925784
    """
    layer = system.hidden
    kernel, kappa = prior_kernel(layer), effective(layer)
    lam = layer.ridge if ridge_kind == "bare" else kappa
    # In the eigenbasis of M the action of Q is a sum over modes.
    eigenvalues, vectors = jnp.linalg.eigh(kernel.modes)
    found = minima(
        jnp.maximum(eigenvalues, 0.0),
        (vectors.T @ layer.y) ** 2,
        lam,
        jnp.asarray([layer.width]),
        fluctuations=False,
    )
    lowest = jax.tree.map(lambda branch: branch[0], found)
    unsettled = jnp.where(lowest.found, lowest.residual, jnp.inf)
    return _scaled(layer, kernel, lam, kappa / layer.ridge, jnp.exp(lowest.log_scale), unsettled)


def _scaled(
    layer: HiddenLayer, kernel: Kernel, lam: Array, ratio: Array, scale: Array, unsettled: Array
) -> ScaledKernel:
    tau, output = regression(scale * kernel.modes, layer.y, lam)
    missed = jnp.max(jnp.abs(output + lam * tau - layer.y)) / layer.size
    residual = missed + unsettled
    return ScaledKernel(
        **on_modes(layer, output, jnp.ones(())),
        eigenvalue_ratio=jnp.ones(()) if 1 in layer.degrees else jnp.asarray(jnp.nan),
        ridge_ratio=ratio,
        residual=residual,
        converged=residual < ACCURACY,
        kernel_scale=scale,
    )


# ------------------------------------------------------------------------------------------------
# Gaussian weights: the variational theory (VGA, Gaussian feature learning), averaged over data, with all its minima.
#
# The covariance of w is s_perp (1 - w_* w_*^T) + s_* w_* w_*^T. With a = d s_*/v, b = d s_perp/v, v
# the weight variance,
#
#     F/N = [a - log a - 1 + (d-1)(b - log b - 1)] / 2 + y^T (M(a, b) + lambda)^{-1} y / (2N),     M = s E m m^T
#
# (Kullback-Leibler divergence from the prior per neuron, and the fit; F = y^T (M + lambda)^{-1} y /
# 2 at the prior). F is not convex: there can be two minima, and a true first-order transition with
# hysteresis inside this ansatz.
#
# Seroussi, Naveh, Ringel 2023, "Separation of scales and a thermodynamic description of feature
# learning in some CNNs"; Rubin, Fischer, Lindner, Dahmen, Seroussi, Ringel, Krämer, Helias 2025.

Branch = Literal["lowest", "uninformed", "informed"]
_STARTS = 6
# Nodes of |z|, z ~ N(0, 1): dense at 0, where units of large weights change sign
_U = np.linspace(0, 1, 81)
_Z = 11 * np.sinh(5 * _U) / np.sinh(5)
_W = np.where(_U > 0, 1.0, 0.5) * np.cosh(5 * _U) * np.exp(-(_Z**2) / 2)
_W /= _W.sum()


class GaussianWeights(ModePrediction):
    """The output on the modes for Gaussian weights at a minimum of the action F.

    `spread` is the factor a of the variance along w_*.

    Fields:
        perpendicular: the factor b of the variance orthogonal to w_*.
        action: F/N at the minimum.
        branches: number of different minima found.
    """

    perpendicular: Float[Array, ""]
    action: Float[Array, ""]
    branches: Float[Array, ""]


def gaussian_kernel(plane: Plane, a: Array, b: Array) -> Kernel:
    """The kernel of Gaussian weights with variances a v/d along w_* and b v/d orthogonal to it."""
    layer = plane.layer
    scale = layer.weight_variance / layer.dim
    log_q = jnp.log(layer.dim - 1) + jnp.sqrt(2 / (layer.dim - 1)) * STANDARD_NODES
    # The norm orthogonal to w_* is that of d - 1 normal components, b v/d times a chi^2 variable.
    inner = jax.nn.softmax((layer.dim - 1) / 2 * log_q - jnp.exp(log_q) / 2 + LOG_STEPS)
    signs = 1.0 if plane.even else np.array([1.0, -1.0])[:, None, None]
    rho = jnp.asarray(signs * jnp.sqrt(a * scale) * _Z[:, None])
    q_perp = b * scale * jnp.exp(log_q)
    m = jnp.stack(plane.overlaps(layer.degrees)(rho, rho**2 + q_perp))
    weight = jnp.broadcast_to(_W[:, None] * inner, m.shape[1:]) / (1.0 if plane.even else 2.0)
    return plane.kernel(m, rho, q_perp, weight)


@theory
def gaussian_weights(
    system: AveragedNetwork,
    *,
    branch: Branch = "lowest",
    ridge_kind: Ridge = "bare",
    fluctuations: bool = False,
) -> GaussianWeights:
    r"""Output on the modes for Gaussian weights whose variances along and orthogonal to the
    target's direction adapt, averaged over data.

    With variances a v/d along $w_*$ and b v/d orthogonal to it, v the `weight_variance`,

    $$ \frac{F}{N} = \frac12 \big[ a - \log a - 1 + (d - 1)(b - \log b - 1) \big]
       + \frac{1}{2N}\, y^T (M(a, b) + \lambda)^{-1} y, \qquad M = s\, E\, m m^T $$

    is the Kullback-Leibler divergence from the prior for each neuron plus the fit. `spread` is a,
    `perpendicular` is b and `action` is F/N. F is not convex: it can have two minima, with a
    first-order transition and hysteresis inside this ansatz.

    Args:
        branch: "lowest" (default) is the minimum of lowest action, "uninformed" the one with the
            smallest and "informed" the one with the largest variance along w_*.
        ridge_kind: "bare" (default) is T/n, "effective" the effective ridge of the modes without
            target, "self-consistent" that of all modes; the latter is solved for together with the
            weights, at each minimum (see `ridge`).
        fluctuations: whether F/N contains log det(1 + kernel/lambda)/(2N) over all functions: the
            kept modes, d - 1 linear functions orthogonal to w_*, and the trace of all others
            divided by lambda; for a `PatchNetwork` it is multiplied by the number of patches.
            Default False.

    Accuracy: 1e-8, by Newton's method from six starts between the prior and weights of length sqrt
    2 along w_*.

    Source: Seroussi, Naveh, Ringel (2023); Rubin et al. (2025).

    >>> from orderparam.systems.kernel_adaptation import hermite_target
    >>> network = TwoLayerNetwork(
    ...     20, 100, 400, 0.2, hermite_target({1: 1, 3: -0.3}), readout_variance=0.015
    ... )
    >>> round(float(gaussian_weights(network).spread), 6)
    5.533137
    """
    layer = system.hidden
    plane, y = Plane.of(layer), layer.y

    def action(x: Array, lam: Array) -> Array:
        a, b = jnp.exp(x)
        kernel = gaussian_kernel(plane, a, b)
        fit = y @ regression(kernel.modes, y, lam)[0]
        if fluctuations:
            fit += layer.copies * (
                jnp.linalg.slogdet(jnp.eye(y.size) + kernel.modes / lam)[1] + kernel.rest / lam
            )
            fit += layer.copies * (layer.dim - 1) * jnp.log1p(kernel.perpendicular / lam)
        return (a - x[0] - 1 + (layer.dim - 1) * (b - x[1] - 1)) / 2 + fit / (2 * layer.width)

    def minimum(start: Array) -> tuple[Array, Array, Array, Array]:
        def at(lam: Array) -> tuple[Array, Array, Array]:
            found = newton_minimum(differentiated(lambda x: action(x, lam) / layer.dim), start)
            return found.value, found.residual, found.converged

        lam, known = settled(
            layer, ridge_kind, lambda lam: gaussian_kernel(plane, *jnp.exp(at(lam)[0]))
        )
        x, residual, converged = at(lam)
        return x, lam, jnp.where(known, residual, jnp.inf), converged & known

    # From the prior, a = 1, to weights of length sqrt 2 along w_*.
    farthest = jnp.log(2 * layer.dim / layer.weight_variance)
    starts = jnp.stack([jnp.linspace(0.0, 1.0, _STARTS) * farthest, jnp.zeros(_STARTS)], axis=1)
    found, ridges, residuals, good = jax.vmap(minimum)(starts)
    actions = jax.vmap(action)(found, ridges)
    reached = jnp.sort(jnp.where(good, found[:, 0], jnp.inf))
    # Starts that reach the same variance along w_* have found the same minimum.
    different = good.any() + jnp.sum(jnp.isfinite(reached[1:]) & (jnp.diff(reached) > 1e-6))
    key = {"lowest": actions, "uninformed": found[:, 0], "informed": -found[:, 0]}[branch]
    best = jnp.argmin(jnp.where(good, key, jnp.inf))
    (a, b), lam = jnp.exp(found[best]), ridges[best]
    kernel = gaussian_kernel(plane, a, b)
    return GaussianWeights(
        **on_modes(layer, regression(kernel.modes, y, lam)[1], a),
        eigenvalue_ratio=eigenvalue_ratio(layer, kernel),
        ridge_ratio=(lam if ridge_kind == "self-consistent" else effective(layer)) / layer.ridge,
        residual=residuals[best],
        converged=good[best],
        perpendicular=b,
        action=actions[best],
        branches=different.astype(float),
    )


# ------------------------------------------------------------------------------------------------
# Phases of feature learning, read off the density of rho = w . w_*.
#
#     0  GFL:      one maximum, at rho = 0: all neurons adapt a little
#     1  GMFL-I:   maxima at 0 and at +-rho*: most neurons stay near 0, a few have specialised (coexistence inside one network);
#                  the central maximum may itself have split in two
#     2  GMFL-II:  maxima at +-rho* alone: all neurons have specialised (also just after a continuous split, at small rho*)
#
# (names of Rubin, Seroussi, Ringel 2024).

GFL, COEXISTENCE, SPECIALISED = 0, 1, 2


class Wells(Result):
    """Shape of an even density p(rho), and the phase of feature learning that it implies.

    Fields:
        phase: 0 (GFL), one maximum, at rho = 0; 1 (GMFL-I), maxima at 0 and at +-rho*; 2 (GMFL-II),
            maxima at +-rho* alone.
        well: rho*, the position of the highest maximum beyond the innermost one; in phase 2 that of
            the innermost one, in phase 0 it is 0.
        barrier_position: position of the minimum between the innermost maximum and rho*; 0 if there
            is none.
        side_weight: probability of |rho| beyond the barrier; 1 in phase 2, 0 in phase 0.
        free_energy_gap: log p(0) - log p(rho*), which is positive where the centre is higher.
        barrier: log p(rho*) - log p(barrier_position), the barrier that a specialised neuron has to
            cross to return to the centre.
    """

    phase: Int[Array, ""]
    well: Float[Array, ""]
    barrier_position: Float[Array, ""]
    side_weight: Float[Array, ""]
    free_energy_gap: Float[Array, ""]
    barrier: Float[Array, ""]


def wells(
    rho: Float[Array, "node"], log_density: Float[Array, "node"], weight: Float[Array, "node"]
) -> Wells:
    """The shape of an even density.

    Args:
        rho: increasing nodes from 0.
        log_density: logarithm of the density with respect to rho at the nodes.
        weight: probability of each node, both sides together.
    """
    inner = jnp.arange(1, rho.shape[0] - 1)
    left, here, right = log_density[inner - 1], log_density[inner], log_density[inner + 1]
    # A maximum far out, where the density is zero up to rounding, does not count,
    tops = (here > left) & (here >= right) & (here > jnp.max(log_density) - 200.0)
    tops &= jnp.isfinite(right)  # nor does the edge of a restricted ensemble
    side = jnp.any(tops)
    innermost = jnp.where(log_density[0] >= log_density[1], 0, inner[jnp.argmax(tops)])
    outer = tops & (inner > innermost)
    mixed = jnp.any(outer)
    best = inner[jnp.argmax(jnp.where(jnp.where(mixed, outer, tops), here, -jnp.inf))]
    position = _vertex(rho, log_density, best)
    index = jnp.arange(rho.shape[0])
    lowest = jnp.argmin(jnp.where((index >= innermost) & (index <= best), log_density, jnp.inf))
    phase = jnp.where(mixed, COEXISTENCE, jnp.where(side, SPECIALISED, GFL))
    beyond = jnp.sum(jnp.where(index > lowest, weight, 0.0)) + weight[lowest] / 2
    return Wells(
        phase=phase,
        well=jnp.where(side, position, 0.0),
        barrier_position=jnp.where(mixed, rho[lowest], 0.0),
        side_weight=jnp.where(mixed, beyond / jnp.sum(weight), jnp.where(side, 1.0, 0.0)),
        free_energy_gap=jnp.where(side, log_density[0] - log_density[best], 0.0),
        barrier=jnp.where(mixed, log_density[best] - log_density[lowest], 0.0),
    )


def _vertex(x: Array, y: Array, i: Array) -> Array:
    """The position of the maximum of the parabola through three neighbouring nodes."""
    a, b, c = x[i - 1], x[i], x[i + 1]
    up, down = (y[i] - y[i - 1]) / (b - a), (y[i + 1] - y[i]) / (c - b)
    bend = up - down
    found = (a + b) / 2 + up / jnp.where(bend == 0, 1.0, bend) * (c - a) / 2
    return jax.lax.stop_gradient(jnp.clip(found, a, c))


# ------------------------------------------------------------------------------------------------
# The weights of one neuron with their full distribution: Gaussian (GFL) or with specialised side wells (GMFL).
#
# When the kernel of the hidden layer is self-averaging, the neurons are independent draws of one
# density,
#
#     p(w) ~ prior(w) exp{ (s/2N) (tau . m(w))^2 },   M = s <m m^T>,   (M + lambda) tau = y,   f = y - lambda tau        (1)
#
# with m_k(w) = E phi(w . x) h_k(z), s the read-out variance, lambda = T/n. The attraction is
# proportional to the square of the part that is not yet learned, tau = (y - f)/lambda, and it is
# the only term of order one in the mean-field scaling (the fluctuations of the output are smaller
# by 1/chi). Equations (1) are the stationarity of a strictly convex function,
#
#     G(tau) = -tau . y + (lambda/2) |tau|^2 + N log E_prior exp{ (s/2N) (tau . m)^2 }
#
# (log-sum-exp of convex functions; derived for this package), so that the equilibrium is unique:
# the first-order transition to specialised neurons shows in p(rho), as new wells and coexistence,
# and not in several solutions.
#
# The fluctuations of the output add (1/2) log det(1 + kernel/lambda) over all functions to the free
# energy, which is concave in the kernel: (tau . m)^2 in (1) becomes
#
#     (tau . m)^2 - m^T (M + lambda)^{-1} m - p/(lambda_perp + lambda) - r/lambda                                          (2)
#
# with p the power of phi(w . x) on the d - 1 linear functions orthogonal to w_*, lambda_perp = s
# <p>/(d - 1) their eigenvalue, and r the power on all other functions, whose eigenvalues are taken
# to be small. The log det lies below its tangent at any kernel, and with this tangent in its place
# G is convex again. Repeating this lowers the free energy in every round (at given lambda), until
# the minimum next to the prior is reached.
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
            |y|, for any value of the target's y_k there.
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
    and $\lambda$ the ridge. These are the stationarity of the convex function

    $$ G(\tau) = -\tau \cdot y + \frac{\lambda}{2} |\tau|^2
       + N \log E_{\mathrm{prior}} \exp\Big\{ \frac{s}{2N} (\tau \cdot m)^2 \Big\} $$

    so that the solution is unique; the transition to specialised neurons shows in the density of
    rho = w . w_* (`overlap`, `log_density`, `phase`).

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

    # The density of rho is computed in the plane even if the solution was found with the angle.
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


def _equilibrium(rule: Plane | Sphere, lam: Array, loops: Fluctuations | None, near: Tau) -> Tau:
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
