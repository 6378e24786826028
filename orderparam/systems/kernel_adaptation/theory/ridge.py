"""The ridge that data leave to a kernel: T/n when the noise dominates, and more when unlearned modes act as noise.

The average over data to first order (equivalent kernel) has the ridge lambda = T/n. It is valid when T is large compared with the
typical (f - y)^2 and with the kernel mass that is not learned. Otherwise lambda is replaced by kappa,

    n = T/kappa + sum lambda_i/(lambda_i + kappa)           (`orderparam.kernels.effective_ridge`)

over the modes that carry no target: d - 1 linear ones with lambda = s c_1^2 / d, d (d+1)/2 - 1 quadratic ones with
lambda = 2 s c_2^2 / d^2, and the rest of the trace s E phi^2 as a tail; s is the read-out variance and c_k are the Hermite
coefficients of phi at the prior variance of the pre-activation. These modes are taken at the prior: they hardly adapt.
"""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.kernels import Spectrum, effective_ridge
from orderparam.systems.kernel_adaptation.model import TwoLayerNetwork

Ridge = Literal["bare", "effective"]
RIDGES = ("bare", "effective")


def unlearned(system: TwoLayerNetwork) -> Spectrum:
    """The modes of the prior kernel without the constant and those along w_*, with no target on them."""
    d = jnp.asarray(system.input_dim, float)
    variance, readout = jnp.asarray(system.weight_variance, float), jnp.asarray(system.readout_variance, float)
    power = system.phi.hermite_coefficients(3, variance) ** 2
    eigenvalues = readout * jnp.stack([power[1] / d, 2 * power[2] / d**2])
    counts = jnp.stack([d - 1, d * (d + 1) / 2 - 1])
    quadratic = readout * power[2]
    rest = readout * (system.phi.moment(2, variance) - jnp.sum(power)) + quadratic - eigenvalues[1] * counts[1]
    return Spectrum(eigenvalues, jnp.zeros(2), counts, jnp.maximum(rest, 0.0))


def ridge(system: TwoLayerNetwork, kind: Ridge) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The ridge of this kind, and kappa n / T, by which the bare one is too small."""
    if kind not in RIDGES:
        raise ValueError(f"ridge = {kind!r}: must be one of {', '.join(RIDGES)}")
    kappa = effective_ridge(unlearned(system), system.n_train, system.temperature).threshold
    bare = system.ridge
    return (kappa if kind == "effective" else bare), kappa / bare
