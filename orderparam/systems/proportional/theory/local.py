"""Convolutional and locally connected networks: every pair of patches has its own order parameter (local kernel renormalisation).

With x_i the i-th patch, C_ij = v_0 x_i . x_j'/d and K_ij = k(C_ii, C_ij, C_jj) between the patches of two images,

    KR = (r / N_p) sum_ij Q_ij K_ij,     Q symmetric positive definite (patch, patch)

(Aiudi, Pacelli, Baglioni, Vezzani, Burioni, Rotondo 2025). Q = 1 at infinite width, where only equal patches are compared.
Without weight sharing the hidden units at different patches are independent, and Q is diagonal: one number for every patch
(derived for this package, not in the cited papers; the action is exact for linear units). Under global average pooling one number
Q multiplies (r / N_p^2) sum_ij K_ij.

For an activation with a mean the terms of E phi are not treated apart (see `mean_direction`): Q_ij then multiplies the mean too.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from orderparam.gaussian import Activation
from orderparam.systems.proportional.model import Convolutional, LocallyConnected, PatchNetwork
from orderparam.systems.proportional.theory import common_scale, matrix_scale
from orderparam.systems.proportional.theory.common_scale import Eigenbasis
from orderparam.systems.proportional.theory.fully_connected import log_evidence, predict, scaled
from orderparam.systems.proportional.theory.losses import Prediction, reached, regression
from orderparam.systems.proportional.theory.matrix_scale import Response

# Local kernels of the training set are kept in memory up to this many bytes.
MEMORY_LIMIT = 8 * 2**30


class RenormalisedPatches(Prediction):
    """A convolutional or locally connected network of finite width.

    order_parameters: Q, the posterior average of (1 / (N_c r)) sum_c v_ci v_cj over the read-out weights, r their prior variance;
    with average pooling Q / N_p at every pair, so that KR = (r / N_p) sum_ij Q_ij K_ij in all cases.
    action: N_c S(Q), p(Q) ~ exp(-action/2). residual: max |Q (dS/dQ) Q|. converged: residual < 1e-9. steps: evaluations it took.
    """

    order_parameters: Float[Array, "patch other"]
    action: Float[Array, ""]
    log_evidence: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]
    steps: Int[Array, ""]


class LocalKernels(eqx.Module):
    """K_ij on the training set for the pairs i <= j (or i = j only), made symmetric in the images and packed: the upper triangle.

    Only symmetric combinations of K_ij ever enter, which takes a quarter of the memory of all pairs of patches and images:
    N_p (N_p + 1) P (P + 1) / 4 numbers.
    """

    packed: Float[Array, "pair entry"]
    patches: int = eqx.field(static=True)
    examples: int = eqx.field(static=True)
    diagonal: bool = eqx.field(static=True)

    @property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """i and j of every pair."""
        return patch_pairs(self.patches, self.diagonal)

    def combine(self, scale: Float[Array, "*index"]) -> Float[Array, "train train"]:
        """sum_ij Q_ij K_ij."""
        i, j = self.pairs
        weights = scale if self.diagonal else scale[i, j] * jnp.where(i == j, 1.0, 2.0)
        entries = weights @ self.packed
        upper = jnp.zeros((self.examples, self.examples)).at[np.triu_indices(self.examples)].set(entries)
        return upper + jnp.triu(upper, 1).T

    def contract(self, *matrices: Float[Array, "train train"]) -> list[Float[Array, "*index"]]:
        """tr(W K_ij) for symmetric W, all pairs of patches; one pass over the kernels for all W."""
        row, column = np.triu_indices(self.examples)
        weights = jnp.where(row == column, 1.0, 2.0)
        columns = jnp.stack([weights * matrix[row, column] for matrix in matrices], axis=1)
        values = self.packed @ columns
        if self.diagonal:
            return list(values.T)
        i, j = self.pairs
        full = jnp.zeros((self.patches, self.patches, len(matrices))).at[i, j].set(values).at[j, i].set(values)
        return list(jnp.moveaxis(full, -1, 0))


def patch_pairs(patches: int, diagonal: bool) -> tuple[np.ndarray, np.ndarray]:
    """i <= j, or i = j."""
    return (np.arange(patches), np.arange(patches)) if diagonal else np.triu_indices(patches)


def _local(phi: Activation, variance: Float[Array, ""], first: Array, second: Array) -> Float[Array, "first second"]:
    """k(C_ii, C_ij, C_jj) between the i-th patches of some images and the j-th of others."""
    scale = variance / first.shape[-1]
    a, b = scale * jnp.sum(first**2, axis=1), scale * jnp.sum(second**2, axis=1)
    return phi.two_point(a[:, None], scale * first @ second.T, b[None, :])


def training_kernels(system: PatchNetwork, diagonal: bool) -> LocalKernels:
    """K_ij of the training set. Raises `ValueError` when it does not fit into `MEMORY_LIMIT`."""
    inputs, _ = system.train
    x = jnp.moveaxis(system.patches(inputs), 1, 0)
    patches, examples = x.shape[:2]
    i, j = patch_pairs(patches, diagonal)
    size = 8 * len(i) * examples * (examples + 1) // 2
    if size > MEMORY_LIMIT:
        raise ValueError(
            f"{patches} patches of {examples} images: their local kernels take {size / 2**30:.1f} GiB; must be at most "
            f"{MEMORY_LIMIT / 2**30:.0f} GiB (a larger mask or stride, or fewer training images)"
        )
    row, column = np.triu_indices(examples)
    variance = jnp.asarray(system.weight_variance, float)

    def one(pair: tuple[Array, Array]) -> Float[Array, "entry"]:
        kernel = _local(system.phi, variance, x[pair[0]], x[pair[1]])
        return ((kernel + kernel.T) / 2)[row, column]

    return LocalKernels(jax.lax.map(one, (jnp.asarray(i), jnp.asarray(j))), patches, examples, diagonal)


def test_kernels(
    system: PatchNetwork, scale: Float[Array, "patch patch"], diagonal: bool
) -> tuple[Float[Array, "test train"], Float[Array, "test"]]:
    """sum_ij Q_ij K_ij between test and training images, and of every test image with itself; one pair at a time."""
    inputs, _ = system.train
    train, test = (jnp.moveaxis(system.patches(x), 1, 0) for x in (inputs, jnp.asarray(system.test_inputs, float)))
    patches = train.shape[0]
    grid = np.arange(patches) if diagonal else np.arange(patches**2)
    i, j = (grid, grid) if diagonal else (grid // patches, grid % patches)
    variance = jnp.asarray(system.weight_variance, float)
    norms = variance / train.shape[-1] * jnp.sum(test**2, axis=-1)

    def add(total: tuple[Array, Array], pair: tuple[Array, Array]) -> tuple[tuple[Array, Array], None]:
        first, second = pair
        rows = _local(system.phi, variance, test[first], train[second])
        inner = variance / train.shape[-1] * jnp.sum(test[first] * test[second], axis=-1)
        own = system.phi.two_point(norms[first], inner, norms[second])
        weight = scale[first, second]
        return (total[0] + weight * rows, total[1] + weight * own), None

    start = (jnp.zeros((test.shape[1], train.shape[1])), jnp.zeros(test.shape[1]))
    return jax.lax.scan(add, start, (jnp.asarray(i), jnp.asarray(j)))[0]


def finite_width_patches(system: PatchNetwork) -> RenormalisedPatches:
    """A convolutional (any read-out) or locally connected network."""
    if isinstance(system, Convolutional) and system.readout == "average":
        return _pooled(system)
    diagonal = isinstance(system, LocallyConnected)
    _, y = system.train
    temperature, channels = jnp.asarray(system.temperature, float), jnp.asarray(system.channels, float)
    variance = jnp.asarray(system.readout_variance, float) / system.patch_count
    kernels = training_kernels(system, diagonal)
    noise = temperature * jnp.eye(kernels.examples)

    def respond(scale: Float[Array, "*index"]) -> Response:
        cholesky = jnp.linalg.cholesky(variance * kernels.combine(scale) + noise)
        inverse = jax.scipy.linalg.cho_solve((cholesky, True), jnp.eye(kernels.examples))
        dual = inverse @ y
        spread, pull = kernels.contract(variance * inverse, variance * jnp.outer(dual, dual))
        return Response(2 * jnp.sum(jnp.log(jnp.diag(cholesky))) + y @ dual, spread, pull)

    count = system.patch_count
    minimum = matrix_scale.minimise(respond, jnp.ones(count) if diagonal else jnp.eye(count), channels)
    full = jnp.diag(minimum.scale) if diagonal else minimum.scale
    rows, own = test_kernels(system, full, diagonal)
    action = channels * minimum.action
    return RenormalisedPatches(
        **regression(
            variance * kernels.combine(minimum.scale), variance * rows, variance * own, y,
            jnp.asarray(system.test_targets, float), temperature,
        ),
        order_parameters=full,
        action=action,
        log_evidence=log_evidence(action, channels * count, kernels.examples),
        residual=minimum.residual,
        converged=reached(minimum.residual),
        steps=minimum.steps,
    )  # fmt: skip


def infinite_width_basis(system: PatchNetwork) -> Eigenbasis:
    """The kernel of infinitely many channels without the variance of the read-out, in its eigenbasis: (1/N_p) sum_i K_ii, or
    (1/N_p^2) sum_ij K_ij under average pooling."""
    pooled = isinstance(system, Convolutional) and system.readout == "average"
    count = system.patch_count
    scale = jnp.ones((count, count)) / count if pooled else jnp.eye(count)
    diagonal = not pooled
    kernels = training_kernels(system, diagonal)
    train = kernels.combine(jnp.diag(scale) if diagonal else scale)
    rows, own = test_kernels(system, scale, diagonal)
    return Eigenbasis.of(train / count, rows / count, own / count, system.train[1])


def _pooled(system: Convolutional) -> RenormalisedPatches:
    """Average pooling: the action of a fully connected network with the pooled kernel."""
    temperature, channels = jnp.asarray(system.temperature, float), jnp.asarray(system.channels, float)
    basis = scaled(infinite_width_basis(system), jnp.asarray(system.readout_variance, float))
    lowest = jax.tree.map(lambda x: x[0], common_scale.minima(basis.eigenvalues, basis.power, temperature, channels[None]))
    scale = lowest.order_parameters[0]
    count = system.patch_count
    return RenormalisedPatches(
        **predict(scaled(basis, scale), temperature, jnp.asarray(system.test_targets, float)),
        order_parameters=scale * jnp.ones((count, count)) / count,
        action=lowest.action,
        log_evidence=log_evidence(lowest.action, channels, basis.eigenvalues.shape[0]),
        residual=lowest.residual,
        converged=lowest.found & reached(lowest.residual),
        steps=jnp.asarray(1),
    )
