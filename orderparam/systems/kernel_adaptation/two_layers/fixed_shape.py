"""Theories of two-layer networks whose kernel keeps its shape: the infinitely wide network, and its
kernel times one number."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.verb import theory
from orderparam.kernels.common_scale import minima
from orderparam.systems.kernel_adaptation.network import HiddenLayer, OnModes, on_modes
from orderparam.systems.kernel_adaptation.patches.model import PatchNetwork
from orderparam.systems.kernel_adaptation.ridge import (
    FixedRidge,
    Ridge,
    effective,
    self_consistent,
)
from orderparam.systems.kernel_adaptation.two_layers.model import ScaledNetwork, TwoLayerNetwork
from orderparam.systems.kernel_adaptation.weights import (
    Kernel,
    Plane,
)

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
    """Residual vector tau = (M + lambda)^{-1} y and output f = M tau = y - lambda tau on the
    modes."""
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
    >>> network = TwoLayerNetwork(
    ...     20, 100, 400, temperature=0.2, target=hermite_target({1: 1, 3: -0.3})
    ... )
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
    is Q. The weights may grow, but they do not turn towards the target. The lowest minimum is
    returned.

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
