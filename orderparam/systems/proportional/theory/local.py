"""Convolutional and locally connected networks: every pair of patches has its own order parameter (local kernel renormalisation).

With x_i the i-th patch and K_ij the kernel between the patches of two images (`local_kernels`),

    KR = (r / N_p) sum_ij Q_ij K_ij,     Q symmetric positive definite (patch, patch)

(Aiudi, Pacelli, Baglioni, Vezzani, Burioni, Rotondo 2025). Q = 1 at infinite width, where only equal patches are compared.
Without weight sharing the hidden units at different patches are independent, and Q is diagonal: one number for every patch
(derived for this package, not in the cited papers; the action is exact for linear units). Under global average pooling one number
Q multiplies (r / N_p^2) sum_ij K_ij.

An activation with means m_i(x) = E phi(h_i) has a second matrix, as in `mean_direction`,

    KR = (r / N_p) sum_ij [ Q_ij (K_ij - m_i m_j^T) + kappa_ij m_i m_j^T ],
    S(Q, kappa) = -tr Q (kappa^{-1} - 1) - log det kappa + (1/N_c) [ log det(T + KR) + y^T (T + KR)^{-1} y ],

stationary in both (derived for this package, not in the cited papers). Under average pooling the mean is (1/N_p) sum_i m_i, and
Q and kappa are numbers.
"""

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jaxtyping import Array, Bool, Float, Int

from orderparam.core.result import Result
from orderparam.kernels import common_scale
from orderparam.kernels.common_scale import Eigenbasis
from orderparam.systems.proportional.model import LocallyConnected, PatchNetwork
from orderparam.systems.proportional.theory import matrix_scale, mean_direction
from orderparam.systems.proportional.theory.fully_connected import log_evidence, predict, scaled
from orderparam.systems.proportional.theory.local_kernels import LocalKernels, patch_means, test_kernels, training_kernels
from orderparam.systems.proportional.theory.losses import Prediction, reached, regression
from orderparam.systems.proportional.theory.matrix_scale import Response, Scale
from orderparam.systems.proportional.theory.mean_direction import Centred


class RenormalisedPatches(Prediction):
    """A convolutional or locally connected network of finite width.

    order_parameters: Q, the posterior average of (1 / (N_c r)) sum_c v_ci v_cj over the read-out weights, r their prior variance;
    with average pooling Q / N_p at every pair, so that KR = (r / N_p) sum_ij Q_ij K_ij in all cases.
    mean_scales: kappa, of the means of a non-odd activation; Q where they are not apart.
    action: N_c S, p(Q) ~ exp(-action/2). residual: max |Q (dS/dQ) Q| (with means: the last change of Q and kappa).
    converged: residual < 1e-9. steps: evaluations it took.
    """

    order_parameters: Float[Array, "patch other"]
    mean_scales: Float[Array, "patch other"]
    action: Float[Array, ""]
    log_evidence: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]
    steps: Int[Array, ""]


class RenormalisedKernel(Result):
    """KR on the training set, of the test points against it, and of every test point with itself."""

    train: Float[Array, "train other"]
    rows: Float[Array, "test train"]
    diagonal: Float[Array, "test"]


def _numbers(system: PatchNetwork) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """T, N_c and r / N_p."""
    variance = jnp.asarray(system.readout_variance, float) / system.patch_count
    return jnp.asarray(system.temperature, float), jnp.asarray(system.channels, float), variance


def _conditioned(
    matrix: Float[Array, "train train"], y: Float[Array, "train"], temperature: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, "train train"], Float[Array, "train"]]:
    """log det A + y^T A^{-1} y, A^{-1} and a = A^{-1} y, A = T + K."""
    one = jnp.eye(y.shape[0])
    cholesky = jnp.linalg.cholesky(matrix + temperature * one)
    inverse = jsl.cho_solve((cholesky, True), one)
    dual = inverse @ y
    return 2 * jnp.sum(jnp.log(jnp.diag(cholesky))) + y @ dual, inverse, dual


def _minimum(system: PatchNetwork, kernels: LocalKernels) -> matrix_scale.Minimum:
    """Q where the means, if any, are part of the kernels."""
    temperature, channels, variance = _numbers(system)
    y, count = system.train[1], system.patch_count

    def respond(scale: Scale) -> Response:
        data, inverse, dual = _conditioned(variance * kernels.combine(scale), y, temperature)
        spread, pull = kernels.contract(variance * inverse, variance * jnp.outer(dual, dual))
        return Response(data, spread, pull)

    return matrix_scale.minimise(respond, jnp.ones(count) if kernels.diagonal else jnp.eye(count), channels)


def finite_width_patches(system: PatchNetwork) -> RenormalisedPatches:
    """A convolutional (any read-out) or locally connected network with one output."""
    if system.pooled:
        return _pooled(system)
    if system.phi.parity != "odd":
        return _with_means(system)
    diagonal = isinstance(system, LocallyConnected)
    kernels = training_kernels(system, diagonal)
    minimum = _minimum(system, kernels)
    full = jnp.diag(minimum.scale) if diagonal else minimum.scale
    variance = _numbers(system)[2]
    found = RenormalisedKernel(variance * kernels.combine(minimum.scale), *_test_kernel(system, full, full))
    constants = system.channels * jnp.asarray(system.patch_count, float)
    return _result(system, found, full, full, minimum.action, constants, minimum.residual, minimum.steps)


def _with_means(system: PatchNetwork) -> RenormalisedPatches:
    """From the solution without means."""
    temperature, channels, variance = _numbers(system)
    diagonal, y = isinstance(system, LocallyConnected), system.train[1]
    means = patch_means(system, system.train[0])
    kernels = training_kernels(system, diagonal, means)

    def full(scale: Scale) -> Float[Array, "patch patch"]:
        return jnp.diag(scale) if diagonal else scale

    def matrix(scale: Scale, kappa: Scale) -> Float[Array, "train train"]:
        return variance * (kernels.combine(scale) + means.T @ full(kappa) @ means)

    def respond(scale: Scale, kappa: Scale) -> tuple[Response, Scale]:
        data, inverse, dual = _conditioned(matrix(scale, kappa), y, temperature)
        spread, pull = kernels.contract(variance * inverse, variance * jnp.outer(dual, dual))
        along = means @ dual
        weight = variance * (means @ inverse @ means.T - jnp.outer(along, along))
        return Response(data, spread, pull), jnp.diag(weight) if diagonal else weight

    start = _minimum(system, training_kernels(system, diagonal)).scale
    solved = mean_direction.stationary_matrices(respond, start, channels)
    scale, kappa = solved.value
    found = RenormalisedKernel(matrix(scale, kappa), *_test_kernel(system, full(scale), full(kappa)))
    data, _, _ = _conditioned(found.train, y, temperature)
    action = mean_direction.prior_action(scale, kappa) + data / channels
    return _result(system, found, full(scale), full(kappa), action, jnp.zeros(()), solved.residual, solved.steps)


def _test_kernel(
    system: PatchNetwork, scale: Float[Array, "patch patch"], kappa: Float[Array, "patch patch"]
) -> tuple[Float[Array, "test train"], Float[Array, "test"]]:
    """(r / N_p) sum_ij [ Q_ij K_ij + (kappa - Q)_ij m_i m_j ] of the test points."""
    variance = _numbers(system)[2]
    rows, own = test_kernels(system, scale, isinstance(system, LocallyConnected))
    if system.phi.parity != "odd":
        means, test = patch_means(system, system.train[0]), patch_means(system, jnp.asarray(system.test_inputs, float))
        excess = kappa - scale
        rows, own = rows + test.T @ excess @ means, own + jnp.einsum("im,ij,jm->m", test, excess, test)
    return variance * rows, variance * own


def local_kernel(
    system: PatchNetwork, scale: Float[Array, "patch patch"], kappa: Float[Array, "patch patch"]
) -> RenormalisedKernel:
    """KR at given order parameters."""
    diagonal = isinstance(system, LocallyConnected)
    kernels = training_kernels(system, diagonal)
    train = kernels.combine(jnp.diag(scale) if diagonal else scale)
    if system.phi.parity != "odd":
        means = patch_means(system, system.train[0])
        train = train + means.T @ (kappa - scale) @ means
    return RenormalisedKernel(_numbers(system)[2] * train, *_test_kernel(system, scale, kappa))


def _result(
    system: PatchNetwork,
    found: RenormalisedKernel,
    scale: Float[Array, "patch patch"],
    kappa: Float[Array, "patch patch"],
    action: Float[Array, ""],
    constants: Float[Array, ""],
    residual: Float[Array, ""],
    steps: Int[Array, ""],
) -> RenormalisedPatches:
    y, action = system.train[1], jnp.asarray(system.channels, float) * action
    test_targets = jnp.asarray(system.test_targets, float)
    return RenormalisedPatches(
        **regression(found.train, found.rows, found.diagonal, y, test_targets, jnp.asarray(system.temperature, float)),
        order_parameters=scale,
        mean_scales=kappa,
        action=action,
        log_evidence=log_evidence(action, constants, y.shape[0]),
        residual=residual,
        converged=reached(residual),
        steps=steps,
    )


def infinite_width_kernel(
    system: PatchNetwork,
) -> tuple[Float[Array, "train train"], Float[Array, "test train"], Float[Array, "test"]]:
    """The kernel of infinitely many channels without the variance of the read-out: (1/N_p) sum_i K_ii, or (1/N_p^2) sum_ij K_ij
    under average pooling. On the training set, of the test points against it, and of every test point with itself."""
    count = system.patch_count
    scale = jnp.ones((count, count)) / count if system.pooled else jnp.eye(count)
    diagonal = not system.pooled
    kernels = training_kernels(system, diagonal)
    train = kernels.combine(jnp.diag(scale) if diagonal else scale)
    rows, own = test_kernels(system, scale, diagonal)
    return train / count, rows / count, own / count


def infinite_width_basis(system: PatchNetwork) -> Eigenbasis:
    """The same in its eigenbasis."""
    return Eigenbasis.of(*infinite_width_kernel(system), system.train[1])


def pooled_kernel(system: PatchNetwork) -> Centred:
    """The kernel under average pooling, read-out included, with the mean of the activation apart."""
    variance = jnp.asarray(system.readout_variance, float)
    kernel, rows, diagonal = (variance * part for part in infinite_width_kernel(system))
    points = system.train[0], jnp.asarray(system.test_inputs, float)
    mean, test_mean = (jnp.sqrt(variance) * jnp.mean(patch_means(system, x), axis=0) for x in points)
    return Centred.of(kernel, rows, diagonal, mean, test_mean, system.train[1])


def _pooled(system: PatchNetwork) -> RenormalisedPatches:
    """Average pooling: the action of a fully connected network with the pooled kernel."""
    temperature, channels, _ = _numbers(system)
    test_targets = jnp.asarray(system.test_targets, float)
    if system.phi.parity == "odd":
        basis = scaled(infinite_width_basis(system), jnp.asarray(system.readout_variance, float))
        widths = channels[None]
        lowest = jax.tree.map(lambda x: x[0], common_scale.minima(basis.eigenvalues, basis.power, temperature, widths))
        scale = kappa = lowest.order_parameters[0]
        action, constants, residual = lowest.action, channels, jnp.where(lowest.found, lowest.residual, jnp.inf)
        fields = predict(scaled(basis, scale), temperature, test_targets)
    else:
        centred = pooled_kernel(system)
        scale, kappa, residual = mean_direction.stationary(centred, temperature, channels)
        action, constants = mean_direction.action(centred, temperature, channels, scale, kappa), jnp.zeros(())
        fields = mean_direction.predict(centred, temperature, scale, kappa, test_targets)
    count = system.patch_count
    every_pair = jnp.ones((count, count)) / count
    return RenormalisedPatches(
        **fields,
        order_parameters=scale * every_pair,
        mean_scales=kappa * every_pair,
        action=action,
        log_evidence=log_evidence(action, constants, system.train[1].shape[0]),
        residual=residual,
        converged=reached(residual),
        steps=jnp.asarray(1),
    )
