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

stationary in both (derived for this package, not in the cited papers). Under average pooling and with several outputs the mean is
part of the kernel, kappa = Q.
"""

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jaxtyping import Array, Bool, Float, Int

from orderparam.core.result import Result
from orderparam.kernels import common_scale
from orderparam.kernels.common_scale import Eigenbasis
from orderparam.solve.fixed_point import fixed_point
from orderparam.systems.proportional.model import LocallyConnected, PatchNetwork
from orderparam.systems.proportional.theory import matrix_scale
from orderparam.systems.proportional.theory.fully_connected import log_evidence, predict, scaled
from orderparam.systems.proportional.theory.local_kernels import LocalKernels, patch_means, test_kernels, training_kernels
from orderparam.systems.proportional.theory.losses import Prediction, reached, regression
from orderparam.systems.proportional.theory.matrix_scale import Prior, Response, Scale

_SWEEPS = 3000


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
    """From the solution without means: kappa by the majorised step of `matrix_scale`, then Q = kappa - kappa W kappa with

    W_ij = (r / (N_p N_c)) [ m_i^T A^{-1} m_j - (m_i . a)(m_j . a) ], until both stand still.
    """
    temperature, channels, variance = _numbers(system)
    diagonal, y = isinstance(system, LocallyConnected), system.train[1]
    means = patch_means(system, system.train[0])
    kernels = training_kernels(system, diagonal, means)

    def full(scale: Scale) -> Float[Array, "patch patch"]:
        return jnp.diag(scale) if diagonal else scale

    def matrix(scale: Scale, kappa: Scale) -> Float[Array, "train train"]:
        return variance * (kernels.combine(scale) + means.T @ full(kappa) @ means)

    def step(state: tuple[Scale, Scale], _: None) -> tuple[Scale, Scale]:
        scale, kappa = state
        data, inverse, dual = _conditioned(matrix(scale, kappa), y, temperature)
        spread, pull = kernels.contract(variance * inverse, variance * jnp.outer(dual, dual))
        along = means @ dual
        along_means = variance / channels * (means @ inverse @ means.T - jnp.outer(along, along))
        weight = jnp.diag(along_means) if diagonal else along_means
        kappa = matrix_scale.majorised_step(kappa, Response(data, spread, pull), channels, Prior())
        return kappa - matrix_scale.times(kappa, weight, kappa), kappa

    start = jax.lax.stop_gradient(_minimum(system, training_kernels(system, diagonal)).scale)
    solved = fixed_point(step, (start, start), max_steps=_SWEEPS)
    scale, kappa = solved.value
    found = RenormalisedKernel(matrix(scale, kappa), *_test_kernel(system, full(scale), full(kappa)))
    inverse = jnp.linalg.inv(full(kappa))
    prior = jnp.trace(full(scale)) - jnp.sum(full(scale) * inverse) + jnp.linalg.slogdet(inverse)[1]
    data, _, _ = _conditioned(found.train, y, temperature)
    return _result(
        system, found, full(scale), full(kappa), prior + data / channels, jnp.zeros(()), solved.residual, solved.steps
    )  # fmt: skip


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


def infinite_width_basis(system: PatchNetwork) -> Eigenbasis:
    """The kernel of infinitely many channels without the variance of the read-out, in its eigenbasis: (1/N_p) sum_i K_ii, or
    (1/N_p^2) sum_ij K_ij under average pooling."""
    count = system.patch_count
    scale = jnp.ones((count, count)) / count if system.pooled else jnp.eye(count)
    diagonal = not system.pooled
    kernels = training_kernels(system, diagonal)
    train = kernels.combine(jnp.diag(scale) if diagonal else scale)
    rows, own = test_kernels(system, scale, diagonal)
    return Eigenbasis.of(train / count, rows / count, own / count, system.train[1])


def _pooled(system: PatchNetwork) -> RenormalisedPatches:
    """Average pooling: the action of a fully connected network with the pooled kernel."""
    temperature, channels, _ = _numbers(system)
    basis = scaled(infinite_width_basis(system), jnp.asarray(system.readout_variance, float))
    lowest = jax.tree.map(lambda x: x[0], common_scale.minima(basis.eigenvalues, basis.power, temperature, channels[None]))
    count = system.patch_count
    scale = lowest.order_parameters[0] * jnp.ones((count, count)) / count
    return RenormalisedPatches(
        **predict(scaled(basis, lowest.order_parameters[0]), temperature, jnp.asarray(system.test_targets, float)),
        order_parameters=scale,
        mean_scales=scale,
        action=lowest.action,
        log_evidence=log_evidence(lowest.action, channels, basis.eigenvalues.shape[0]),
        residual=lowest.residual,
        converged=lowest.found & reached(lowest.residual),
        steps=jnp.asarray(1),
    )
