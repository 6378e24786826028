"""Convolutional and locally connected networks with several outputs: one order parameter for two patches and two outputs.

KR_(a mu)(b nu) = (r / N_p) sum_ij Q_(i a)(j b) K_ij(x_mu, x_nu), with Q symmetric positive definite over (patch, output); without
weight sharing Q vanishes between different patches. The action is that of `matrix_scale` (derived for this package from those of
patches and of outputs, not in the cited papers; exact for linear units). The kernel of all examples and outputs is factorised
as one matrix: O((P D)^3) for each step. Under average pooling the kernel is Q (x) K, as in a fully connected network.
"""

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jaxtyping import Array, Bool, Float

from orderparam.systems.proportional.model import LocallyConnected, PatchNetwork
from orderparam.systems.proportional.theory import matrix_scale, several_outputs
from orderparam.systems.proportional.theory.fully_connected import log_evidence, scaled
from orderparam.systems.proportional.theory.local import infinite_width_basis
from orderparam.systems.proportional.theory.local_kernels import test_kernels, unpacked_kernels
from orderparam.systems.proportional.theory.losses import PredictionOfSeveral, losses, reached
from orderparam.systems.proportional.theory.matrix_scale import Response


class RenormalisedPatchOutputs(PredictionOfSeveral):
    """A convolutional or locally connected network of finite width with several outputs.

    order_parameters: Q, the posterior average of (1 / (N_c r)) sum_c v_(a)ci v_(b)cj; with average pooling Q_ab / N_p at every
    pair of patches. action: N_c S(Q). log_evidence, residual, converged: as for one output.
    """

    order_parameters: Float[Array, "patch output other_patch other_output"]
    action: Float[Array, ""]
    log_evidence: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def finite_width_patch_outputs(system: PatchNetwork) -> RenormalisedPatchOutputs:
    """The minimum of the action, from Q = 1."""
    temperature, channels = jnp.asarray(system.temperature, float), jnp.asarray(system.channels, float)
    y, test_targets = system.train[1], jnp.asarray(system.test_targets, float)
    (examples, outputs), patches = y.shape, system.patch_count
    if system.pooled:
        basis = scaled(infinite_width_basis(system), system.readout_variance)
        minimum = several_outputs.solve(basis, temperature, channels[None])
        fields, _ = several_outputs.predict(basis, minimum.scale, temperature, test_targets)
        scale = jnp.kron(jnp.ones((patches, patches)) / patches, minimum.scale)
        return _result(fields, scale, patches, channels, channels * outputs, examples, minimum)

    variance = jnp.asarray(system.readout_variance, float) / patches
    kernels = variance * unpacked_kernels(system)
    diagonal = isinstance(system, LocallyConnected)
    allowed = jnp.kron(jnp.eye(patches), jnp.ones((outputs, outputs))) if diagonal else jnp.ones((patches * outputs,) * 2)
    size = examples * outputs
    noise, targets = temperature * jnp.eye(size), y.reshape(size)

    def split(matrix: Float[Array, "index other"]) -> Float[Array, "patch output other_patch other_output"]:
        return matrix.reshape(patches, outputs, patches, outputs)

    def combine(scale: Float[Array, "index other"]) -> Float[Array, "entry other"]:
        return jnp.einsum("iajb,ijmn->manb", split(scale), kernels).reshape(size, size)

    def respond(scale: Float[Array, "index other"]) -> Response:
        cholesky = jnp.linalg.cholesky(combine(scale) + noise)
        inverse = jsl.cho_solve((cholesky, True), jnp.eye(size))
        dual = (inverse @ targets).reshape(examples, outputs)
        blocks = inverse.reshape(examples, outputs, examples, outputs)
        spread = jnp.einsum("manb,ijmn->iajb", blocks, kernels).reshape(allowed.shape)
        pull = jnp.einsum("ma,ijmn,nb->iajb", dual, kernels, dual).reshape(allowed.shape)
        data = 2 * jnp.sum(jnp.log(jnp.diag(cholesky))) + targets @ dual.reshape(size)
        return Response(data, allowed * spread, allowed * pull)

    minimum = matrix_scale.minimise(respond, jnp.eye(patches * outputs), channels)
    weights = jnp.moveaxis(split(minimum.scale), 2, 1)  # (patch, patch, output, output)
    rows, own = test_kernels(system, weights, diagonal)
    cholesky = jnp.linalg.cholesky(combine(minimum.scale) + noise)
    dual = jsl.cho_solve((cholesky, True), targets)
    flat = jnp.einsum("abtm->tamb", variance * rows).reshape(-1, size)
    half = jsl.solve_triangular(cholesky, flat.T, lower=True)
    inverse_half = jsl.solve_triangular(cholesky, jnp.eye(size), lower=True)
    prior = variance * jnp.einsum("aat->ta", own).reshape(-1)
    fields = losses(
        temperature**2 * dual @ dual / examples,
        temperature * (size - temperature * jnp.sum(inverse_half**2)) / examples,
        (flat @ dual).reshape(test_targets.shape),
        jnp.maximum(prior - jnp.sum(half**2, axis=0), 0.0).reshape(test_targets.shape),
        test_targets,
    )
    return _result(fields, minimum.scale, patches, channels, channels * patches * outputs, examples, minimum)


def _result(
    fields: dict[str, Float[Array, "..."]],
    scale: Float[Array, "index other"],
    patches: int,
    channels: Float[Array, ""],
    constants: Float[Array, ""],
    examples: int,
    minimum: matrix_scale.Minimum,
) -> RenormalisedPatchOutputs:
    outputs = scale.shape[0] // patches
    action = channels * minimum.action
    return RenormalisedPatchOutputs(
        **fields,
        order_parameters=scale.reshape(patches, outputs, patches, outputs),
        action=action,
        log_evidence=log_evidence(action, constants, examples * outputs),
        residual=jax.lax.stop_gradient(minimum.residual),
        converged=reached(minimum.residual),
    )
