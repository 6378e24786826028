"""Kernels between the patches of two images, K_ij = k(C_ii, C_ij, C_jj) with C_ij = v_0 x_i . x_j' / d, packed and summed."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.gaussian import Activation
from orderparam.systems.proportional.model import PatchNetwork

# Local kernels of the training set are kept in memory up to this many bytes.
MEMORY_LIMIT = 8 * 2**30


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


def _by_patch(system: PatchNetwork, inputs: Float[Array, "example *input"]) -> Float[Array, "patch example pixel"]:
    return jnp.moveaxis(system.patches(inputs), 1, 0)


def check_memory(patches: int, examples: int, numbers: int) -> None:
    """Raises `ValueError` when so many numbers do not fit into `MEMORY_LIMIT`."""
    size = 8 * numbers
    if size > MEMORY_LIMIT:
        raise ValueError(
            f"{patches} patches of {examples} images: their local kernels take {size / 2**30:.1f} GiB; must be at most "
            f"{MEMORY_LIMIT / 2**30:.0f} GiB (a larger mask or stride, or fewer training images)"
        )


def patch_means(system: PatchNetwork, inputs: Float[Array, "example *input"]) -> Float[Array, "patch example"]:
    """m_i = E phi(h_i)."""
    x = _by_patch(system, inputs)
    return system.phi.mean(jnp.asarray(system.weight_variance, float) / x.shape[-1] * jnp.sum(x**2, axis=-1))


def training_kernels(
    system: PatchNetwork, diagonal: bool, means: Float[Array, "patch train"] | None = None
) -> LocalKernels:
    """K_ij of the training set, or K_ij - m_i m_j^T. Raises `ValueError` when it does not fit into `MEMORY_LIMIT`."""
    x = _by_patch(system, system.train[0])
    patches, examples = x.shape[:2]
    i, j = patch_pairs(patches, diagonal)
    check_memory(patches, examples, len(i) * examples * (examples + 1) // 2)
    row, column = np.triu_indices(examples)
    variance = jnp.asarray(system.weight_variance, float)

    def one(pair: tuple[Array, Array]) -> Float[Array, "entry"]:
        kernel = _local(system.phi, variance, x[pair[0]], x[pair[1]])
        if means is not None:
            kernel = kernel - jnp.outer(means[pair[0]], means[pair[1]])
        return ((kernel + kernel.T) / 2)[row, column]

    return LocalKernels(jax.lax.map(one, (jnp.asarray(i), jnp.asarray(j))), patches, examples, diagonal)


def unpacked_kernels(system: PatchNetwork) -> Float[Array, "patch other train train"]:
    """All K_ij of the training set. Raises `ValueError` when they do not fit into `MEMORY_LIMIT`."""
    x = _by_patch(system, system.train[0])
    patches, examples = x.shape[:2]
    check_memory(patches, examples, patches**2 * examples**2)
    variance = jnp.asarray(system.weight_variance, float)
    return jax.lax.map(lambda a: jax.lax.map(lambda b: _local(system.phi, variance, a, b), x), x)


def test_kernels(
    system: PatchNetwork, scale: Float[Array, "patch patch *weights"], diagonal: bool
) -> tuple[Float[Array, "*weights test train"], Float[Array, "*weights test"]]:
    """sum_ij Q_ij K_ij between test and training images, and of every test image with itself; one pair at a time.

    Q_ij is a number, or an array with one sum for each entry.
    """
    train, test = _by_patch(system, system.train[0]), _by_patch(system, jnp.asarray(system.test_inputs, float))
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
        return (total[0] + weight[..., None, None] * rows, total[1] + weight[..., None] * own), None

    start = (jnp.zeros((*scale.shape[2:], test.shape[1], train.shape[1])), jnp.zeros((*scale.shape[2:], test.shape[1])))
    return jax.lax.scan(add, start, (jnp.asarray(i), jnp.asarray(j)))[0]
