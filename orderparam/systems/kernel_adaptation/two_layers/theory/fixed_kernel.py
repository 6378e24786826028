"""Kernels that keep their shape: the infinitely wide network, and the same kernel times one number."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.kernels.common_scale import minima
from orderparam.systems.kernel_adaptation.modes.plane import Plane
from orderparam.systems.kernel_adaptation.modes.ridge import FixedRidge, ridge
from orderparam.systems.kernel_adaptation.two_layers.model import Number, TwoLayerNetwork
from orderparam.systems.kernel_adaptation.two_layers.theory.prediction import (
    AveragedNetwork,
    Prediction,
    compiled,
    regression,
    shares,
)

_ACCURACY = 1e-8


class ScaledKernel(Prediction):
    """scale: Q, by which the kernel is multiplied (1 for the infinitely wide network)."""

    scale: Float[Array, ""]


@compiled
def gaussian_process(system: AveragedNetwork, ridge_kind: FixedRidge = "bare") -> ScaledKernel:
    """The infinitely wide network (NNGP): f = M (M + lambda)^{-1} y with the kernel M = s E_prior m m^T on the modes.

    Its output depends on the read-out variance and the temperature through their ratio only, and not on the width.
    """
    return _scaled(system.one_patch, system.copies, ridge_kind, jnp.ones(()), jnp.zeros(()))


@compiled
def kernel_scaling(system: AveragedNetwork, ridge_kind: FixedRidge = "bare") -> ScaledKernel:
    """The kernel renormalised by one number Q, the minimum of N (Q - log Q) + y^T (lambda + Q M)^{-1} y.

    What is left of adaptation when the weights may grow but not turn (Li and Sompolinsky 2021; Pacelli et al. 2023); without the
    fluctuations of the output. The lowest minimum.
    """
    copies, system = system.copies, system.one_patch
    degrees = system.kept
    lam, _ = ridge(system, ridge_kind, copies)
    eigenvalues, vectors = jnp.linalg.eigh(Plane.of(system).prior_kernel(degrees))
    power = (vectors.T @ system.coefficients(degrees)) ** 2
    width = jnp.asarray(system.width, float)[None]
    found = jax.tree.map(lambda x: x[0], minima(jnp.maximum(eigenvalues, 0.0), power, lam, width, fluctuations=False))
    return _scaled(system, copies, ridge_kind, jnp.exp(found.log_scale), jnp.where(found.found, found.residual, jnp.inf))


def _scaled(system: TwoLayerNetwork, copies: Number, kind: FixedRidge, scale: Array, residual: Array) -> ScaledKernel:
    degrees = system.kept
    lam, ratio = ridge(system, kind, copies)
    _, output = regression(scale * Plane.of(system).prior_kernel(degrees), system.coefficients(degrees), lam)
    return ScaledKernel(
        **shares(system, output),
        spread=jnp.ones(()),
        eigenvalue_ratio=jnp.ones(()) if 1 in degrees else jnp.asarray(jnp.nan),
        ridge_ratio=ratio,
        residual=residual,
        converged=residual < _ACCURACY,
        scale=scale,
    )
