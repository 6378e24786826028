"""Convolutional and locally connected networks with several outputs: one order parameter for two patches and two outputs.

KR_(a mu)(b nu) = (r / N_p) sum_ij Q_(i a)(j b) K_ij(x_mu, x_nu), with Q symmetric positive definite over (patch, output); without
weight sharing Q vanishes between different patches. The action is that of `matrix_scale` (derived for this package from those of
patches and of outputs, not in the cited papers; exact for linear units). The kernel of all examples and outputs is factorised
as one matrix: O((P D)^3) for each step. Under average pooling the kernel is Q (x) K, as in a fully connected network.

The means m_i of an activation that is not odd have a second matrix kappa, with m_i m_j^T in the place of K_ij (`mean_direction`).
"""

import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jaxtyping import Array, Bool, Float

from orderparam.systems.proportional.model import LocallyConnected, PatchNetwork
from orderparam.systems.proportional.theory import matrix_scale, mean_direction, several_outputs
from orderparam.systems.proportional.theory.fully_connected import log_evidence, scaled
from orderparam.systems.proportional.theory.local import infinite_width_basis, pooled_kernel
from orderparam.systems.proportional.theory.local_kernels import patch_means, test_kernels, unpacked_kernels
from orderparam.systems.proportional.theory.losses import PredictionOfSeveral, losses, reached
from orderparam.systems.proportional.theory.matrix_scale import Response

Matrix = Float[Array, "index other"]  # over (patch, output)


class RenormalisedPatchOutputs(PredictionOfSeveral):
    """A convolutional or locally connected network of finite width with several outputs.

    order_parameters: Q, the posterior average of (1 / (N_c r)) sum_c v_(a)ci v_(b)cj; with average pooling Q_ab / N_p at every
    pair of patches. mean_scales: kappa, of the means of a non-odd activation; Q where they are not apart.
    action: N_c S(Q). log_evidence, residual, converged: as for one output.
    """

    order_parameters: Float[Array, "patch output other_patch other_output"]
    mean_scales: Float[Array, "patch output other_patch other_output"]
    action: Float[Array, ""]
    log_evidence: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def finite_width_patch_outputs(system: PatchNetwork) -> RenormalisedPatchOutputs:
    """A convolutional (any read-out) or locally connected network with several outputs."""
    return _pooled(system) if system.pooled else _dense_readout(system)


def _pooled(system: PatchNetwork) -> RenormalisedPatchOutputs:
    odd = system.phi.parity == "odd"
    kernel = scaled(infinite_width_basis(system), system.readout_variance) if odd else pooled_kernel(system)
    numbers = jnp.asarray(system.temperature, float), jnp.asarray(system.channels, float)[None]
    found = several_outputs.renormalised(kernel, *numbers, system.test_targets)
    count, outputs = system.patch_count, system.targets.shape[1]

    def everywhere(scale: Float[Array, "output other"]) -> Float[Array, "patch output other_patch other_output"]:
        return jnp.broadcast_to(scale[:, None] / count, (count, outputs, count, outputs))

    shared = {name: getattr(found, name) for name in RenormalisedPatchOutputs.dims()}
    scales = {name: everywhere(shared[name]) for name in ("order_parameters", "mean_scales")}
    return RenormalisedPatchOutputs(**shared | scales)


def _dense_readout(system: PatchNetwork) -> RenormalisedPatchOutputs:
    """The minimum of the action from Q = 1; with means, the stationary point from there."""
    temperature, channels = jnp.asarray(system.temperature, float), jnp.asarray(system.channels, float)
    y, test_targets = system.train[1], jnp.asarray(system.test_targets, float)
    (examples, outputs), patches = y.shape, system.patch_count
    size, odd = examples * outputs, system.phi.parity == "odd"
    variance = jnp.asarray(system.readout_variance, float) / patches
    kernels = variance * unpacked_kernels(system)
    means, test_means = (jnp.sqrt(variance) * patch_means(system, x) for x in (system.train[0], system.test_inputs))
    centred = kernels - jnp.einsum("im,jn->ijmn", means, means)
    diagonal = isinstance(system, LocallyConnected)
    allowed = jnp.kron(jnp.eye(patches), jnp.ones((outputs, outputs))) if diagonal else jnp.ones((patches * outputs,) * 2)
    noise, targets = temperature * jnp.eye(size), y.reshape(size)

    def split(matrix: Matrix) -> Float[Array, "patch output other_patch other_output"]:
        return matrix.reshape(patches, outputs, patches, outputs)

    def combine(scale: Matrix, kernels: Float[Array, "patch other train train"]) -> Float[Array, "entry other"]:
        return jnp.einsum("iajb,ijmn->manb", split(scale), kernels).reshape(size, size)

    def with_means(scale: Matrix, kappa: Matrix) -> Float[Array, "entry other"]:
        along = jnp.einsum("iajb,im,jn->manb", split(kappa), means, means).reshape(size, size)
        return combine(scale, centred) + along

    def condition(
        matrix: Float[Array, "entry other"], kernels: Float[Array, "patch other train train"]
    ) -> tuple[Response, Float[Array, "train output train output"], Float[Array, "train output"]]:
        """The response, A^{-1} and A^{-1} y for A = T + matrix."""
        cholesky = jnp.linalg.cholesky(matrix + noise)
        inverse = jsl.cho_solve((cholesky, True), jnp.eye(size))
        dual = (inverse @ targets).reshape(examples, outputs)
        blocks = inverse.reshape(examples, outputs, examples, outputs)
        spread = jnp.einsum("manb,ijmn->iajb", blocks, kernels).reshape(allowed.shape)
        pull = jnp.einsum("ma,ijmn,nb->iajb", dual, kernels, dual).reshape(allowed.shape)
        data = 2 * jnp.sum(jnp.log(jnp.diag(cholesky))) + targets @ dual.reshape(size)
        return Response(data, allowed * spread, allowed * pull), blocks, dual

    def respond(scale: Matrix, kappa: Matrix) -> tuple[Response, Matrix]:
        response, blocks, dual = condition(with_means(scale, kappa), centred)
        along = (means @ dual).reshape(-1)
        spread = jnp.einsum("im,manb,jn->iajb", means, blocks, means).reshape(allowed.shape)
        return response, allowed * (spread - jnp.outer(along, along))

    minimum = matrix_scale.minimise(
        lambda scale: condition(combine(scale, kernels), kernels)[0], jnp.eye(patches * outputs), channels
    )
    scale = kappa = minimum.scale
    train, residual = combine(scale, kernels), minimum.residual
    action, constants = channels * minimum.action, channels * patches * outputs
    if not odd:
        solved = mean_direction.stationary_matrices(respond, minimum.scale, channels)
        (scale, kappa), residual = solved.value, solved.residual
        train, constants = with_means(scale, kappa), jnp.zeros(())
        action = channels * mean_direction.prior_action(scale, kappa) + condition(train, centred)[0].data

    weights = jnp.moveaxis(split(scale), 2, 1)  # (patch, patch, output, output)
    rows, own = test_kernels(system, weights, diagonal)
    excess = split(kappa - scale)
    rows = variance * rows + jnp.einsum("iajb,it,jm->abtm", excess, test_means, means)
    own = variance * own + jnp.einsum("iajb,it,jt->abt", excess, test_means, test_means)
    cholesky = jnp.linalg.cholesky(train + noise)
    dual = jsl.cho_solve((cholesky, True), targets)
    flat = jnp.einsum("abtm->tamb", rows).reshape(-1, size)
    half = jsl.solve_triangular(cholesky, flat.T, lower=True)
    inverse_half = jsl.solve_triangular(cholesky, jnp.eye(size), lower=True)
    fields = losses(
        temperature**2 * dual @ dual / examples,
        temperature * (size - temperature * jnp.sum(inverse_half**2)) / examples,
        (flat @ dual).reshape(test_targets.shape),
        jnp.maximum(jnp.einsum("aat->ta", own).reshape(-1) - jnp.sum(half**2, axis=0), 0.0).reshape(test_targets.shape),
        test_targets,
    )
    return RenormalisedPatchOutputs(
        **fields,
        order_parameters=split(scale),
        mean_scales=split(kappa),
        action=action,
        log_evidence=log_evidence(action, constants, size),
        residual=residual,
        converged=reached(residual),
    )
