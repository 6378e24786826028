"""The kernel of the features that the read-out sees, and regression with this kernel after its
renormalisation by the training set.

Every feature belongs to a place i. The places are the patches of a convolutional or locally
connected network; a fully connected network and average pooling have one place. The features have
the kernels K_ij between two places and the means m_i = E phi(h_i); both contain the variance of the
read-out. With outputs a and b,

    KR_(mu a)(nu b) = sum_ij [ Q_(ia)(jb) (K_ij - m_i m_j^T) + kappa_(ia)(jb) m_i m_j^T ](x_mu,
    x_nu)

where Q and kappa are symmetric positive definite matrices over pairs (place, output), ordered by
place first. The sources are Pacelli et al. 2023 if Q is one number, Baglioni, Giambagli, Vezzani,
Burioni, Rotondo, Pacelli 2024 for several outputs, and Aiudi, Pacelli, Baglioni, Vezzani, Burioni,
Rotondo 2025 for patches. Several outputs of patches, and kappa as a matrix, were derived for this
package. Without weight sharing the units at different places are independent, so that Q and kappa
vanish between different places (derived for this package too; exact for linear units).

`OnePlace` works in the eigenbasis of its kernel, where nothing larger than output x output is ever
factorised; `Places` factorises the kernel of all examples and outputs.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.kernels.common_scale import Eigenbasis
from orderparam.kernels.readout import inverse, log_det_and_form
from orderparam.systems.proportional.model import BayesianPatchNetwork, LocallyConnected
from orderparam.systems.proportional.patch_kernels import (
    PatchKernels,
    by_patch,
    kernels_between,
    patch_means,
    patch_variances,
)
from orderparam.systems.proportional.results import losses, regression


def data_term(
    noisy: Float[Array, "train train"], targets: Float[Array, "train *output"]
) -> Float[Array, ""]:
    """The part of an effective action that depends on the data: the sum D log det A + tr y^T A^{-1}
    y, with A = `noisy` symmetric positive definite and D the number of outputs."""
    columns = targets.reshape(targets.shape[0], -1)
    log_det, form = log_det_and_form(noisy, columns)
    return columns.shape[1] * log_det + form


def weighted_kernels(
    system: BayesianPatchNetwork,
    inputs: Float[Array, "example *input"],
    scale: Float[Array, "patch patch *weights"],
    same: bool,
) -> tuple[Float[Array, "*weights example train"], Float[Array, "*weights example"]]:
    """Kernels sum_ij Q_ij K_ij between the images and the training images, and of every image with
    itself. The sums are accumulated one pair of patches at a time.

    Q_ij is a number, or an array with one sum for each entry. same: whether only i = j is summed.
    """
    seen, train = (by_patch(system, points) for points in (inputs, system.train[0]))
    count = seen.shape[0]
    i, j = (np.arange(count),) * 2 if same else np.indices((count, count)).reshape(2, -1)
    norms, factor = patch_variances(system, seen), system.readout_variance / system.patch_count

    def add(
        total: tuple[Array, Array], pair: tuple[Array, Array]
    ) -> tuple[tuple[Array, Array], None]:
        first, second = pair
        inner = (
            system.weight_variance / seen.shape[-1] * jnp.sum(seen[first] * seen[second], axis=-1)
        )
        own = factor * system.activation.two_point(norms[first], inner, norms[second])
        rows, weight = kernels_between(system, seen[first], train[second]), scale[first, second]
        return (total[0] + weight[..., None, None] * rows, total[1] + weight[..., None] * own), None

    weights, examples = scale.shape[2:], seen.shape[1]
    start = jnp.zeros((*weights, examples, train.shape[1])), jnp.zeros((*weights, examples))
    return jax.lax.scan(add, start, (jnp.asarray(i), jnp.asarray(j)))[0]


Matrix = Float[Array, "index other"]  # over (place, output)


class Response(eqx.Module):
    """The data-dependent part of the action and its derivatives at Q and kappa, with A = T + KR and
    a = A^{-1} y.

    data: log det A + y^T a. spread and pull: derivatives of log det A and of -y^T a with respect to
        Q, that is G_IJ = tr A^{-1} (K - m m^T)_IJ and B_IJ = a^T (K - m m^T)_IJ a. mean_spread and
        mean_pull: the same derivatives with respect to kappa, with m m^T in place of K - m m^T.
    """

    data: Float[Array, ""]
    spread: Matrix
    pull: Matrix
    mean_spread: Matrix
    mean_pull: Matrix


@jax.custom_jvp
def resolvents(
    temperature: Float[Array, ""],
    eigenvalues: Float[Array, "train"],
    scale: Float[Array, "output output"],
) -> Float[Array, "train output output"]:
    """Resolvents (T + k_i Q)^{-1} for every eigenvalue k_i, from one decomposition of Q. The
    resolvents can be differentiated also where eigenvalues of Q coincide."""
    strengths, axes = jnp.linalg.eigh(scale)
    return jnp.einsum(
        "ak,ik,bk->iab", axes, 1 / (temperature + eigenvalues[:, None] * strengths), axes
    )


@resolvents.defjvp
def _(primals, tangents):
    _, eigenvalues, scale = primals
    inverse = resolvents(*primals)
    change = tangents[0] * jnp.eye(scale.shape[0]) + tangents[1][:, None, None] * scale
    return inverse, -inverse @ (change + eigenvalues[:, None, None] * tangents[2]) @ inverse


class _Blocks(eqx.Module):
    """The inverse of A = T + Q (x) diag(k) + kappa (x) m m^T by Woodbury's formula, in the
    eigenbasis of K - m m^T; no array is larger than P D^2.

    inverse: (T + k_i Q)^{-1}. weighted: m_i (T + k_i Q)^{-1}. total: sum_i m_i^2 (T + k_i Q)^{-1}.
    core: (kappa^{-1} + total)^{-1}. dual: A^{-1} y.
    """

    inverse: Float[Array, "train output output"]
    weighted: Float[Array, "train output output"]
    total: Float[Array, "output output"]
    core: Float[Array, "output output"]
    dual: Float[Array, "train output"]

    @property
    def diagonal(self) -> Float[Array, "train output output"]:
        """The diagonal blocks of A^{-1}."""
        return self.inverse - self.weighted @ self.core @ self.weighted


class OnePlace(eqx.Module):
    """The kernel of features at one place.

    `basis` is the eigenbasis of K - m m^T, `mean` is U^T m of the training set, and `test_mean` is
    m of the test points.
    """

    basis: Eigenbasis
    mean: Float[Array, "train"]
    test_mean: Float[Array, "test"]

    @classmethod
    def of(
        cls,
        kernel: Float[Array, "train train"],
        rows: Float[Array, "test train"],
        diagonal: Float[Array, "test"],
        mean: Float[Array, "train"],
        test_mean: Float[Array, "test"],
        targets: Float[Array, "train output"],
    ) -> "OnePlace":
        """The kernel at one place, from K on the training set, between test and training points,
        and of every test point with itself, and from the means."""
        centred = (
            kernel - jnp.outer(mean, mean),
            rows - jnp.outer(test_mean, mean),
            diagonal - test_mean**2,
        )
        basis = Eigenbasis.of(*centred, targets)
        return cls(basis, basis.vectors.T @ mean, test_mean)

    @property
    def size(self) -> int:
        """Number of rows of Q."""
        return self.basis.targets.shape[1]

    def _blocks(self, scale: Matrix, kappa: Matrix, temperature: Float[Array, ""]) -> _Blocks:
        inverse = resolvents(temperature, self.basis.eigenvalues, scale)
        weighted = self.mean[:, None, None] * inverse
        total = jnp.einsum("i,iab->ab", self.mean, weighted)
        core = jnp.linalg.solve(jnp.eye(self.size) + kappa @ total, kappa)
        plain = jnp.einsum("iab,ib->ia", inverse, self.basis.targets)
        dual = plain - jnp.einsum("iab,b->ia", weighted, core @ (self.mean @ plain))
        return _Blocks(inverse, weighted, total, core, dual)

    def respond(self, scale: Matrix, kappa: Matrix, temperature: Float[Array, ""]) -> Response:
        """`Response` at the order parameters Q = `scale` and kappa, at a cost of O(P D^3)."""
        eigenvalues, blocks = self.basis.eigenvalues, self._blocks(scale, kappa, temperature)
        along = self.mean @ blocks.dual
        log_det = jnp.linalg.slogdet(jnp.eye(self.size) + kappa @ blocks.total)[1]
        log_det += jnp.sum(jnp.log(temperature + eigenvalues[:, None] * jnp.linalg.eigvalsh(scale)))
        return Response(
            log_det + jnp.sum(blocks.dual * self.basis.targets),
            jnp.einsum("i,iab->ab", eigenvalues, blocks.diagonal),
            jnp.einsum("i,ia,ib->ab", eigenvalues, blocks.dual, blocks.dual),
            blocks.total - blocks.total @ blocks.core @ blocks.total,
            jnp.outer(along, along),
        )

    def predict(
        self,
        scale: Matrix,
        kappa: Matrix,
        temperature: Float[Array, ""],
        test_targets: Float[Array, "test output"],
    ) -> dict[str, Array]:
        """The fields of `Prediction`."""
        basis, mean = self.basis, self.mean
        blocks = self._blocks(scale, kappa, temperature)
        count = mean.size
        found = basis.rows @ blocks.dual @ scale + jnp.outer(
            self.test_mean, kappa @ (mean @ blocks.dual)
        )
        # The kernel of a test point with the training set is c_i = Q r_i + kappa m m_i; the
        # explained variance is c A^{-1} c^T.
        own = self.test_mean[:, None, None]
        square = jnp.tensordot(basis.rows**2, blocks.inverse, 1)
        inner = jnp.tensordot(basis.rows, blocks.weighted, 1)
        cross = own * (scale @ inner @ kappa)
        along = scale @ inner + own * (kappa @ blocks.total)
        explained = (
            scale @ square @ scale
            + cross
            + jnp.swapaxes(cross, 1, 2)
            + own**2 * (kappa @ blocks.total @ kappa)
        )
        explained -= along @ blocks.core @ jnp.swapaxes(along, 1, 2)
        covariance = basis.diagonal[:, None, None] * scale + own**2 * kappa - explained
        shared = jnp.einsum("i,ab,iba->", basis.eigenvalues, scale, blocks.diagonal)
        # trace of KR A^{-1}
        shared += jnp.sum(kappa * (blocks.total - blocks.total @ blocks.core @ blocks.total))
        return losses(
            temperature**2 * jnp.sum(blocks.dual**2) / count,
            temperature * shared / count,
            found,
            jnp.maximum(jnp.diagonal(covariance, axis1=1, axis2=2), 0.0),
            jnp.mean(covariance, axis=0),
            test_targets,
        )


class Places(eqx.Module):
    """The kernels of features at several places. kernels: K_ij - m_i m_j^T on the training set.
    means, test_means: m_i on the training set and at the test points."""

    system: BayesianPatchNetwork
    kernels: PatchKernels
    means: Float[Array, "place train"]
    test_means: Float[Array, "place test"]
    targets: Float[Array, "train output"]

    @classmethod
    def of(cls, system: BayesianPatchNetwork, separate_means: bool) -> "Places":
        """The kernels of a system. separate_means: True if the activation has means. Raises
        `ValueError` if the kernels do not fit into memory."""
        x, y = system.train
        root = jnp.sqrt(system.readout_variance / system.patch_count) if separate_means else 0.0
        means, test_means = (
            root * patch_means(system, points) for points in (x, system.test_inputs)
        )
        return cls(system, PatchKernels.of(system, means), means, test_means, y)

    @property
    def size(self) -> int:
        """Number of rows of Q."""
        return self.means.shape[0] * self.targets.shape[1]

    def _split(self, matrix: Matrix) -> Float[Array, "place output other_place other_output"]:
        shape = self.means.shape[0], self.targets.shape[1]
        return matrix.reshape(*shape, *shape)

    def matrix(self, scale: Matrix, kappa: Matrix) -> Float[Array, "entry other"]:
        """The renormalised kernel KR on the training set, between entries (example, output)."""
        along = jnp.einsum("iajb,im,jn->manb", self._split(kappa), self.means, self.means)
        return self.kernels.combine(self._split(scale)) + along.reshape(
            self.targets.size, self.targets.size
        )

    def rows(
        self, scale: Matrix, kappa: Matrix
    ) -> tuple[Float[Array, "test output entry"], Float[Array, "test output output"]]:
        """The renormalised kernel KR between test and training points, and of every test point with
        itself."""
        weights, excess = self._split(scale), self._split(kappa - scale)
        same = isinstance(self.system, LocallyConnected)
        rows, own = weighted_kernels(
            self.system, self.system.test_inputs, jnp.moveaxis(weights, 2, 1), same
        )
        rows += jnp.einsum("iajb,it,jm->abtm", excess, self.test_means, self.means)
        own += jnp.einsum("iajb,it,jt->abt", excess, self.test_means, self.test_means)
        return jnp.einsum("abtm->tamb", rows).reshape(*own.shape[:0:-1], -1), jnp.moveaxis(
            own, -1, 0
        )

    def respond(self, scale: Matrix, kappa: Matrix, temperature: Float[Array, ""]) -> Response:
        """`Response` at the order parameters Q = `scale` and kappa, at a cost of O((P D)^3)."""
        noisy, flat = (
            self.matrix(scale, kappa) + temperature * jnp.eye(self.targets.size),
            self.targets.reshape(-1),
        )
        inverted, shape = inverse(noisy), (*self.targets.shape, *self.targets.shape)
        dual = inverted @ flat
        spread, pull = self.kernels.contract(
            inverted.reshape(shape), jnp.outer(dual, dual).reshape(shape)
        )
        along = (self.means @ dual.reshape(self.targets.shape)).reshape(-1)
        around = jnp.einsum("im,manb,jn->iajb", self.means, inverted.reshape(shape), self.means)
        together = jnp.kron(self.together, jnp.ones((self.targets.shape[1],) * 2))
        return Response(
            data_term(noisy, flat),
            spread.reshape(self.size, -1),
            pull.reshape(self.size, -1),
            together * around.reshape(self.size, -1),
            together * jnp.outer(along, along),
        )

    @property
    def together(self) -> Float[Array, "place place"]:
        """A matrix of ones where the units at two places share weights, and zeros elsewhere."""
        count = self.means.shape[0]
        return (
            jnp.eye(count)
            if isinstance(self.system, LocallyConnected)
            else jnp.ones((count, count))
        )

    def predict(
        self,
        scale: Matrix,
        kappa: Matrix,
        temperature: Float[Array, ""],
        test_targets: Float[Array, "test output"],
    ) -> dict[str, Array]:
        """The fields of `Prediction`."""
        return regression(
            self.matrix(scale, kappa),
            *self.rows(scale, kappa),
            self.targets,
            test_targets,
            temperature,
        )
