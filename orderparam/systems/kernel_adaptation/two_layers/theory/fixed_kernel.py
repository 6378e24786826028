"""Kernels that keep their shape: the infinitely wide network, and the same kernel times one number."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.verb import theory
from orderparam.kernels.common_scale import minima
from orderparam.systems.kernel_adaptation.modes.network import HiddenLayer
from orderparam.systems.kernel_adaptation.modes.observables import on_modes
from orderparam.systems.kernel_adaptation.modes.plane import Kernel, Plane
from orderparam.systems.kernel_adaptation.modes.ridge import FixedRidge, Ridge, effective, self_consistent
from orderparam.systems.kernel_adaptation.two_layers.theory.prediction import (
    ACCURACY,
    AveragedNetwork,
    ModePrediction,
    regression,
)


class ScaledKernel(ModePrediction):
    """kernel_scale: Q, by which the kernel is multiplied (1 for the infinitely wide network)."""

    kernel_scale: Float[Array, ""]


def prior_kernel(layer: HiddenLayer) -> Kernel:
    """M = s E_prior m m^T, and the kernel outside the modes: those of the infinitely wide network."""
    return Plane.of(layer).density(jnp.zeros(len(layer.degrees))).kernel


@theory
def gaussian_process(system: AveragedNetwork, *, ridge_kind: Ridge = "bare") -> ScaledKernel:
    """The infinitely wide network (NNGP): f = M (M + lambda)^{-1} y with the kernel M = s E_prior m m^T on the modes.

    Its output depends on the read-out variance and the temperature through their ratio only, and not on the width.
    ridge_kind: "bare", T/n; "effective" and "self-consistent" are the same for a kernel that is fixed, kappa of all its modes,
    those of the target included.
    """
    layer = system.hidden
    kernel = prior_kernel(layer)
    kappa = self_consistent(layer, kernel)
    lam = layer.ridge if ridge_kind == "bare" else kappa
    return _scaled(layer, kernel, lam, kappa / layer.ridge, jnp.ones(()), jnp.zeros(()))


@theory
def kernel_scaling(system: AveragedNetwork, *, ridge_kind: FixedRidge = "bare") -> ScaledKernel:
    """The kernel renormalised by one number Q, the minimum of N (Q - log Q) + y^T (lambda + Q M)^{-1} y.

    What is left of adaptation when the weights may grow but not turn (Li and Sompolinsky 2021; Pacelli et al. 2023); without the
    fluctuations of the output. The lowest minimum.
    """
    layer = system.hidden
    kernel, kappa = prior_kernel(layer), effective(layer)
    lam = layer.ridge if ridge_kind == "bare" else kappa
    eigenvalues, vectors = jnp.linalg.eigh(kernel.modes)
    found = minima(jnp.maximum(eigenvalues, 0.0), (vectors.T @ layer.y) ** 2, lam, jnp.asarray([layer.width]), fluctuations=False)
    lowest = jax.tree.map(lambda branch: branch[0], found)
    unsettled = jnp.where(lowest.found, lowest.residual, jnp.inf)
    return _scaled(layer, kernel, lam, kappa / layer.ridge, jnp.exp(lowest.log_scale), unsettled)


def _scaled(layer: HiddenLayer, kernel: Kernel, lam: Array, ratio: Array, scale: Array, unsettled: Array) -> ScaledKernel:
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
