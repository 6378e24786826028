"""Theory of two-layer networks with Gaussian weights."""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.verb import theory
from orderparam.solve.minimum import differentiated, newton_minimum
from orderparam.systems.kernel_adaptation.network import on_modes
from orderparam.systems.kernel_adaptation.ridge import (
    Ridge,
    effective,
    settled,
)
from orderparam.systems.kernel_adaptation.two_layers.fixed_shape import (
    AveragedNetwork,
    ModePrediction,
    eigenvalue_ratio,
    regression,
)
from orderparam.systems.kernel_adaptation.weights import (
    LOG_STEPS,
    STANDARD_NODES,
    Kernel,
    Plane,
)

# Gaussian weights: the variational theory (VGA, Gaussian feature learning), averaged over data,
# with all its minima.
#
# The covariance of w is s_perp (1 - w_* w_*^T) + s_* w_* w_*^T. With a = d s_*/v, b = d s_perp/v, v
# the weight variance,
#
#     F/N = [a - log a - 1 + (d-1)(b - log b - 1)] / 2 + y^T (M(a, b) + lambda)^{-1} y / (2N),
#     M = s E m m^T
#
# The first term is the Kullback-Leibler divergence from the prior for each neuron, the second the
# fit; at the prior F = y^T (M + lambda)^{-1} y / 2. F is not convex. It can have two minima, so
# that this ansatz has a first-order transition with hysteresis.
#
# Seroussi, Naveh, Ringel 2023, "Separation of scales and a thermodynamic description of feature
# learning in some CNNs"; Rubin, Fischer, Lindner, Dahmen, Seroussi, Ringel, Krämer, Helias 2025.

Branch = Literal["lowest", "uninformed", "informed"]
_STARTS = 6
# Nodes of |z|, z ~ N(0, 1). They are dense at 0, where units with large weights change sign.
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

    >>> from orderparam.systems.kernel_adaptation import TwoLayerNetwork
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

        lam, has_settled = settled(
            layer, ridge_kind, lambda lam: gaussian_kernel(plane, *jnp.exp(at(lam)[0]))
        )
        x, residual, converged = at(lam)
        return x, lam, jnp.where(has_settled, residual, jnp.inf), converged & has_settled

    # From the prior, a = 1, to weights of length sqrt 2 along w_*.
    farthest = jnp.log(2 * layer.dim / layer.weight_variance)
    starts = jnp.stack([jnp.linspace(0.0, 1.0, _STARTS) * farthest, jnp.zeros(_STARTS)], axis=1)
    found, ridges, residuals, good = jax.vmap(minimum)(starts)
    actions = jax.vmap(action)(found, ridges)
    reached = jnp.sort(jnp.where(good, found[:, 0], jnp.inf))
    # Two starts that end at the same variance along w_* have found the same minimum.
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
