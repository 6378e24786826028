"""The ridge that data leave to a kernel: T/n when the noise dominates, and more when unlearned modes act as noise.

The average over data to first order (equivalent kernel) has the ridge lambda = T/n. It is valid when T is large compared with the
typical (f - y)^2 and with the kernel mass that is not learned. Otherwise lambda is replaced by kappa,

    n = T/kappa + sum lambda_i/(lambda_i + kappa)           (`orderparam.kernels.effective_ridge`).

"effective": over the modes that carry no target, as they are at the prior: d - 1 linear ones with lambda = s c_1^2 / d,
d (d+1)/2 - 1 quadratic ones with lambda = 2 s c_2^2 / d^2, and the rest of the trace s E phi^2 as a tail; s is the read-out
variance and c_k are the Hermite coefficients of phi at the prior variance of the pre-activation.
"self-consistent": the kept modes too, with the eigenvalues of their kernel M, and linear modes and rest of the trace as the
adapted weights have them; kappa and the weights are solved together.

A network on patches has every one of these modes once for each patch.
"""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.kernels import Spectrum, effective_ridge
from orderparam.systems.kernel_adaptation.two_layers.model import TwoLayerNetwork

FixedRidge = Literal["bare", "effective"]
Ridge = Literal["bare", "effective", "self-consistent"]
FIXED_RIDGES = ("bare", "effective")
RIDGES = (*FIXED_RIDGES, "self-consistent")


def unlearned(system: TwoLayerNetwork, copies: Array | float = 1.0) -> Spectrum:
    """The modes of the prior kernel without the constant and those along w_*, with no target on them."""
    d = jnp.asarray(system.input_dim, float)
    variance, readout = jnp.asarray(system.weight_variance, float), jnp.asarray(system.readout_variance, float)
    power = system.phi.hermite_coefficients(3, variance) ** 2
    eigenvalues = readout * jnp.stack([power[1] / d, 2 * power[2] / d**2])
    counts = jnp.stack([d - 1, d * (d + 1) / 2 - 1])
    quadratic = readout * power[2]
    rest = readout * (system.phi.moment(2, variance) - jnp.sum(power)) + quadratic - eigenvalues[1] * counts[1]
    return Spectrum(eigenvalues, jnp.zeros(2), copies * counts, copies * jnp.maximum(rest, 0.0))


def ridge(system: TwoLayerNetwork, kind: str, copies: Array | float = 1.0) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The ridge of this kind, and kappa n / T with the effective one, by which the bare one is too small."""
    if kind not in FIXED_RIDGES:
        raise ValueError(f"ridge = {kind!r}: must be one of {', '.join(FIXED_RIDGES)}")
    kappa = effective_ridge(unlearned(system, copies), system.n_train, system.temperature).threshold
    bare = system.ridge
    return (kappa if kind == "effective" else bare), kappa / bare


def self_consistent_ridge(
    system: TwoLayerNetwork,
    copies: Array | float,
    kernel: Float[Array, "mode mode"],
    perpendicular: Float[Array, ""],
    rest: Float[Array, ""],
) -> Float[Array, ""]:
    """kappa at given kernel on the modes, eigenvalue of the d - 1 linear modes across, and trace of all the others.

    Of that trace, quadratic modes are split off as they are at the prior."""
    prior = unlearned(system, copies)
    quadratic, count = prior.eigenvalues[1], prior.multiplicities[1]
    learned = jnp.maximum(jnp.linalg.eigvalsh(kernel), 0.0)
    spectrum = Spectrum(
        jnp.concatenate([learned, perpendicular[None], quadratic[None]]),
        jnp.zeros(learned.shape[0] + 2),
        jnp.concatenate([copies * jnp.ones_like(learned), (copies * (jnp.asarray(system.input_dim) - 1.0))[None], count[None]]),
        jnp.maximum(copies * rest - quadratic * count, 0.0),
    )
    return effective_ridge(spectrum, system.n_train, system.temperature).threshold
