"""The ridge of a kernel averaged over data: T/n when the noise dominates, and more when unlearned
modes act as noise.

In the average over data to first order (equivalent kernel) the ridge is lambda = T/n. This value is
valid if T is large compared with the typical (f - y)^2 and with the part of the kernel's trace that
is not learned. Otherwise lambda is replaced by the effective ridge kappa, which solves

    n = T/kappa + sum lambda_i/(lambda_i + kappa)           (`orderparam.kernels.effective_ridge`).

Kind "effective": the sum runs over the modes that carry no target, with their eigenvalues at the
prior: d - 1 linear ones with lambda = s c_1^2 / d, d (d+1)/2 - 1 quadratic ones with lambda = 2 s
c_2^2 / d^2, and the rest of the trace s E phi^2 as a tail; s is the read-out variance and c_k are
the Hermite coefficients of phi at the prior variance of the pre-activation. Kind
"self-consistent": the sum includes the kept modes, with the eigenvalues of their kernel M, and the
linear modes and the rest of the trace are those of the adapted weights; kappa and the weights are
solved for together.

A network on patches has one copy of each of these modes for every patch.
"""

from collections.abc import Callable
from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.kernels import Spectrum, effective_ridge
from orderparam.solve.fixed_point import fixed_point
from orderparam.systems.kernel_adaptation.network import HiddenLayer
from orderparam.systems.kernel_adaptation.weights import Kernel

FixedRidge = Literal["bare", "effective"]
Ridge = Literal["bare", "effective", "self-consistent"]

_MAX_ROUNDS = 200


def unlearned(layer: HiddenLayer) -> Spectrum:
    """Spectrum of the modes of the prior kernel that carry no target: all but the constant and
    those along w_*."""
    d = layer.dim
    power = layer.phi.hermite_coefficients(3, layer.weight_variance) ** 2
    eigenvalues = layer.readout_variance * jnp.stack([power[1] / d, 2 * power[2] / d**2])
    counts = jnp.stack([d - 1, d * (d + 1) / 2 - 1])
    quadratic = layer.readout_variance * power[2]
    rest = layer.readout_variance * (layer.phi.moment(2, layer.weight_variance) - jnp.sum(power))
    rest += quadratic - eigenvalues[1] * counts[1]
    return Spectrum(
        eigenvalues, jnp.zeros(2), layer.copies * counts, layer.copies * jnp.maximum(rest, 0.0)
    )


def effective(layer: HiddenLayer) -> Float[Array, ""]:
    """The effective ridge kappa of the modes without target, with their eigenvalues at the
    prior."""
    return effective_ridge(unlearned(layer), layer.n_train, layer.temperature).threshold


def self_consistent(layer: HiddenLayer, kernel: Kernel) -> Float[Array, ""]:
    """The effective ridge kappa of all modes of the given kernel.

    Quadratic modes, with their eigenvalues at the prior, are separated from the trace of the
    remaining ones.
    """
    prior = unlearned(layer)
    quadratic, count = prior.eigenvalues[1], prior.multiplicities[1]
    learned = jnp.maximum(jnp.linalg.eigvalsh(kernel.modes), 0.0)
    spectrum = Spectrum(
        jnp.concatenate([learned, kernel.perpendicular[None], quadratic[None]]),
        jnp.zeros(learned.shape[0] + 2),
        jnp.concatenate(
            [
                layer.copies * jnp.ones_like(learned),
                (layer.copies * (layer.dim - 1))[None],
                count[None],
            ]
        ),
        jnp.maximum(layer.copies * kernel.rest - quadratic * count, 0.0),
    )
    return effective_ridge(spectrum, layer.n_train, layer.temperature).threshold


def settled(
    layer: HiddenLayer, kind: Ridge, kernel: Callable[[Float[Array, ""]], Kernel]
) -> tuple[Float[Array, ""], Bool[Array, ""]]:
    """The ridge of the given kind for weights whose kernel depends on it as kernel(ridge), and
    whether it was found.
    """
    if kind != "self-consistent":
        return (effective(layer) if kind == "effective" else layer.ridge), jnp.asarray(True)

    def again(log_ridge: Array, _: None) -> Array:
        return jnp.log(self_consistent(layer, kernel(jnp.exp(log_ridge))))

    found = fixed_point(again, jnp.log(layer.ridge), None, tolerance=1e-11, max_steps=_MAX_ROUNDS)
    return jnp.exp(found.value), found.converged
