"""What every theory averaged over data takes and returns."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.systems.kernel_adaptation.modes.network import HiddenLayer
from orderparam.systems.kernel_adaptation.modes.observables import OnModes
from orderparam.systems.kernel_adaptation.modes.plane import Kernel
from orderparam.systems.kernel_adaptation.patches.model import PatchNetwork
from orderparam.systems.kernel_adaptation.two_layers.model import ScaledNetwork, TwoLayerNetwork

AveragedNetwork = TwoLayerNetwork | ScaledNetwork | PatchNetwork

ACCURACY = 1e-8


class ModePrediction(OnModes):
    """The output on the modes, `OnModes`, and the kernel it comes from.

    eigenvalue_ratio: of the kernel, on h_1 over on linear functions across w_*: 1 without adaptation; NaN where h_1 is not kept.
    ridge_ratio:  effective ridge over T/n: above 1.1 the bare ridge is not reliable (see `modes.ridge`).
    """

    eigenvalue_ratio: Float[Array, ""]
    ridge_ratio: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def eigenvalue_ratio(layer: HiddenLayer, kernel: Kernel) -> Float[Array, ""]:
    """M_11 over the eigenvalue across w_*."""
    if 1 not in layer.degrees:
        return jnp.asarray(jnp.nan)
    first = layer.degrees.index(1)
    return kernel.modes[first, first] / kernel.perpendicular


def regression(
    kernel: Float[Array, "mode mode"], y: Float[Array, "mode"], ridge: Float[Array, ""]
) -> tuple[Float[Array, "mode"], Float[Array, "mode"]]:
    """tau = (M + lambda)^{-1} y and f = y - lambda tau."""
    tau = jnp.linalg.solve(kernel + ridge * jnp.eye(y.shape[0]), y)
    return tau, kernel @ tau
