"""Kernels between the patches of two images, (r / N_p) k(C_ii, C_ij, C_jj) with C_ij = v_0 x_i .
x_j' / d: how they are stored, and their sums."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.systems.proportional.model import BayesianPatchNetwork, LocallyConnected

# Kernels of the training set are kept in memory up to this many bytes.
MEMORY_LIMIT = 8 * 2**30


class PatchKernels(eqx.Module):
    """The kernels K_ij - m_i m_j^T on the training set for the pairs i <= j (for independent units
    i = j), one row for each pair.

    With one output only the part of a kernel that is symmetric in the two images enters, so that
    only its upper triangle is stored. With weight sharing these are N_p (N_p + 1) P (P + 1) / 4
    numbers, about a quarter of all pairs of patches and images.
    """

    packed: Float[Array, "pair entry"]
    patches: int = eqx.field(static=True)
    examples: int = eqx.field(static=True)
    outputs: int = eqx.field(static=True)
    shared: bool = eqx.field(static=True)

    @classmethod
    def of(cls, system: BayesianPatchNetwork, means: Float[Array, "patch train"]) -> "PatchKernels":
        """`PatchKernels` of a system's training set, from the `means` m_i. The kernels contain the
        variance of the read-out.

        Raises `ValueError` when they do not fit into `MEMORY_LIMIT`.
        """
        (x, y), shared = system.train, not isinstance(system, LocallyConnected)
        seen = by_patch(system, x)
        layout = cls(jnp.zeros((0, 0)), seen.shape[0], seen.shape[1], y.shape[1], shared)
        (i, j), (row, column) = layout._pairs, layout._entries
        size = 8 * len(i) * len(row)
        if size > MEMORY_LIMIT:
            raise ValueError(
                f"{seen.shape[0]} patches of {seen.shape[1]} images: their kernels take "
                f"{size / 2**30:.1f} GiB; must be at most {MEMORY_LIMIT / 2**30:.0f} GiB (a larger "
                "mask or stride, or fewer training images)"
            )

        def one(pair: tuple[Array, Array]) -> Float[Array, "entry"]:
            first, second = pair
            kernel = kernels_between(system, seen[first], seen[second]) - jnp.outer(
                means[first], means[second]
            )
            return ((kernel + kernel.T) / 2 if y.shape[1] == 1 else kernel)[row, column]

        return eqx.tree_at(
            lambda k: k.packed, layout, jax.lax.map(one, (jnp.asarray(i), jnp.asarray(j)))
        )

    @property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The patches i and j of every row of `packed`."""
        every = np.arange(self.patches)
        return np.triu_indices(self.patches) if self.shared else (every, every)

    @property
    def _entries(self) -> tuple[np.ndarray, np.ndarray]:
        """The images of every column of `packed`."""
        row, column = np.indices((self.examples, self.examples)).reshape(2, -1)
        kept = row <= column if self.outputs == 1 else np.full(row.size, True)
        return row[kept], column[kept]

    @property
    def _halves(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the rows and columns of `packed` in a sum to which its transpose is added."""
        (i, j), (row, column) = self._pairs, self._entries
        if self.outputs == 1:
            return np.where(i == j, 1.0, 2.0), np.where(row == column, 0.5, 1.0)
        return np.where(i == j, 0.5, 1.0), np.ones(row.size)

    def combine(
        self, scale: Float[Array, "patch output other_patch other_output"]
    ) -> Float[Array, "entry other"]:
        """The sum sum_ij Q_(ia)(jb) K_ij, a matrix between (example, output) and (example,
        output)."""
        (i, j), (row, column), (pair, entry) = self._pairs, self._entries, self._halves
        weights = pair[:, None, None] * scale[i, :, j, :]
        values = jnp.einsum("pab,pe->eab", weights, self.packed) * entry[:, None, None]
        shape = self.examples, self.outputs
        half = (
            jnp.zeros((*shape, *shape))
            .at[row, :, column, :]
            .set(values)
            .reshape(self.examples * self.outputs, -1)
        )
        return half + half.T

    def contract(
        self, *matrices: Float[Array, "train output other_train other_output"]
    ) -> list[Float[Array, "patch output other_patch other_output"]]:
        """The traces tr(W K_ij), a matrix over the outputs, for symmetric W and all pairs of
        patches, in one pass over K_ij for all W."""
        (i, j), (row, column), (_, entry) = self._pairs, self._entries, self._halves
        weights = (2 * entry if self.outputs == 1 else entry)[:, None, None]
        columns = jnp.stack([weights * matrix[row, :, column, :] for matrix in matrices], axis=1)
        values = jnp.tensordot(self.packed, columns, 1)  # (pair, matrix, output, output)
        shape = self.patches, self.outputs
        empty = jnp.zeros((*shape, *shape))
        return [
            empty.at[j, :, i, :].set(jnp.swapaxes(one, 1, 2)).at[i, :, j, :].set(one)
            for one in jnp.moveaxis(values, 1, 0)
        ]


def patch_variances(
    system: BayesianPatchNetwork, seen: Float[Array, "*batch pixel"]
) -> Float[Array, "*batch"]:
    """Variances C_ii of the pre-activations at each patch."""
    return system.weight_variance / seen.shape[-1] * jnp.sum(seen**2, axis=-1)


def kernels_between(
    system: BayesianPatchNetwork,
    first: Float[Array, "first pixel"],
    second: Float[Array, "second pixel"],
) -> Float[Array, "first second"]:
    """The kernel (r / N_p) k between one patch of the first images and one patch of the second."""
    a, b = patch_variances(system, first), patch_variances(system, second)
    cross = system.weight_variance / first.shape[-1] * first @ second.T
    return (
        system.readout_variance
        / system.patch_count
        * system.activation.two_point(a[:, None], cross, b[None, :])
    )


def by_patch(
    system: BayesianPatchNetwork, inputs: Float[Array, "example *input"]
) -> Float[Array, "patch example pixel"]:
    """The patches of all examples, with the number of the patch as the first axis."""
    return jnp.moveaxis(system.patches(inputs), 1, 0)


def patch_means(
    system: BayesianPatchNetwork, inputs: Float[Array, "example *input"]
) -> Float[Array, "patch example"]:
    """Means m_i = E phi(h_i) of the features at each patch of each example."""
    return system.activation.mean(patch_variances(system, by_patch(system, inputs)))
