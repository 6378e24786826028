"""Gaussian weights: the variational theory (VGA, Gaussian feature learning), averaged over data, with all its minima.

The covariance of w is s_perp (1 - w_* w_*^T) + s_* w_* w_*^T. With a = d s_*/v, b = d s_perp/v, v the weight variance,

    F/N = [a - log a - 1 + (d-1)(b - log b - 1)] / 2 + y^T (M(a, b) + lambda)^{-1} y / (2N),     M = s E m m^T

(Kullback-Leibler divergence from the prior per neuron, and the fit; F = y^T (M + lambda)^{-1} y / 2 at the prior). F is not
convex: there can be two minima, and a true first-order transition with hysteresis inside this ansatz.

Seroussi, Naveh, Ringel 2023, "Separation of scales and a thermodynamic description of feature learning in some CNNs"; Rubin,
Fischer, Lindner, Dahmen, Seroussi, Ringel, Krämer, Helias 2025.
"""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.solve.minimum import minimise
from orderparam.systems.kernel_adaptation.modes.plane import LOG_STEPS, STANDARD_NODES, Others, Plane
from orderparam.systems.kernel_adaptation.modes.ridge import FixedRidge, ridge
from orderparam.systems.kernel_adaptation.two_layers.theory.prediction import (
    AveragedNetwork,
    Prediction,
    compiled,
    eigenvalue_ratio,
    regression,
    shares,
)

Branch = Literal["lowest", "uninformed", "informed"]
BRANCHES = ("lowest", "uninformed", "informed")
_STARTS = 6
_ACCURACY = 1e-8
# |z|, z ~ N(0, 1): nodes that crowd at 0, where units of large weights change from one side to the other
_U = np.linspace(0, 1, 81)
_Z = 11 * np.sinh(5 * _U) / np.sinh(5)
_W = np.where(_U > 0, 1.0, 0.5) * np.cosh(5 * _U) * np.exp(-(_Z**2) / 2)
_W /= _W.sum()


class GaussianWeights(Prediction):
    """A minimum of F. spread is a, perpendicular is b; action is F/N; branches: the number of different minima found."""

    perpendicular: Float[Array, ""]
    action: Float[Array, ""]
    branches: Float[Array, ""]


def gaussian_kernel(plane: Plane, degrees: tuple[int, ...], a: Array, b: Array) -> tuple[Float[Array, "mode mode"], Others]:
    """M, and the kernel outside the modes, for Gaussian weights of variances a v/d along w_* and b v/d across."""
    scale = plane.variance / plane.dim
    deviation = jnp.sqrt(2 / (plane.dim - 1))
    log_q = jnp.log(plane.dim - 1) + deviation * STANDARD_NODES
    log_weight = (plane.dim - 1) / 2 * log_q - jnp.exp(log_q) / 2 + LOG_STEPS
    inner = jax.nn.softmax(log_weight)
    signs = 1.0 if plane.even else np.array([1.0, -1.0])[:, None, None]
    rho = jnp.asarray(signs * jnp.sqrt(a * scale) * _Z[:, None])
    q_perp = b * scale * jnp.exp(log_q)
    m = jnp.stack(plane.overlaps(degrees)(rho, rho**2 + q_perp))
    weight = jnp.broadcast_to(_W[:, None] * inner, m.shape[1:]) / (1.0 if plane.even else 2.0)
    flat = m.reshape(len(degrees), -1)
    linear, rest = plane.others(m, rho, q_perp)
    outside = Others(jnp.sum(weight * linear) * plane.readout / (plane.dim - 1), jnp.sum(weight * rest) * plane.readout)
    return plane.readout * (flat * weight.ravel()) @ flat.T, outside


@compiled
def gaussian_weights(
    system: AveragedNetwork, branch: Branch = "lowest", ridge_kind: FixedRidge = "bare", fluctuations: bool = False
) -> GaussianWeights:
    """The minimum of F of lowest action, or with the smallest ("uninformed") or the largest ("informed") variance along w_*.

    fluctuations: adds log det(1 + kernel/lambda)/(2N) to F/N, over all functions: the kept modes, d - 1 linear ones across, and
        the trace of all others over lambda; for a `PatchNetwork` times the number of patches.

    Newton's method from six starts between the prior and weights of length sqrt 2 along w_*. Accurate to 1e-8. Raises
    `ValueError` for an unknown branch or ridge.
    """
    if branch not in BRANCHES:
        raise ValueError(f"branch = {branch!r}: must be one of {', '.join(BRANCHES)}")
    copies, system = system.copies, system.one_patch
    degrees = system.kept
    y = system.coefficients(degrees)
    lam, ratio = ridge(system, ridge_kind, copies)
    plane = Plane.of(system)

    def value(x: Array) -> Array:
        a, b = jnp.exp(x)
        kernel, outside = gaussian_kernel(plane, degrees, a, b)
        tau, _ = regression(kernel, y, lam)
        fit = y @ tau
        if fluctuations:
            fit += copies * (jnp.linalg.slogdet(jnp.eye(len(degrees)) + kernel / lam)[1] + outside.rest / lam)
            fit += copies * (plane.dim - 1) * jnp.log1p(outside.perpendicular / lam)
        return (a - x[0] - 1 + (plane.dim - 1) * (b - x[1] - 1)) / 2 + fit / (2 * plane.width)

    def gradient(x: Array) -> Array:
        return jax.grad(value)(x) / plane.dim

    farthest = jnp.log(2 * plane.dim / plane.variance)
    starts = jnp.stack([jnp.linspace(0.0, 1.0, _STARTS) * farthest, jnp.zeros(_STARTS)], axis=1)
    found = jax.vmap(lambda start: minimise(value, gradient, start))(starts)
    actions = jax.vmap(value)(found)
    errors = jnp.max(jnp.abs(jax.vmap(gradient)(found)), axis=1)
    good = errors < _ACCURACY
    reached = jnp.sort(jnp.where(good, found[:, 0], jnp.inf))
    different = good.any() + jnp.sum(jnp.isfinite(reached[1:]) & (jnp.diff(reached) > 1e-6))
    key = {"lowest": actions, "uninformed": found[:, 0], "informed": -found[:, 0]}[branch]
    best = jnp.argmin(jnp.where(good, key, jnp.inf))
    a, b = jnp.exp(found[best])
    kernel, outside = gaussian_kernel(plane, degrees, a, b)
    _, output = regression(kernel, y, lam)
    return GaussianWeights(
        **shares(system, output),
        spread=a,
        eigenvalue_ratio=eigenvalue_ratio(degrees, kernel, outside.perpendicular),
        ridge_ratio=ratio,
        residual=errors[best],
        converged=good[best],
        perpendicular=b,
        action=actions[best],
        branches=different.astype(float),
    )
