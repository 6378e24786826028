"""Kernel adaptation of a convolutional network with Gaussian pre-activations in both layers.

The filters have the law N(0, Sigma). The pre-activations of the second layer at all training points
and groups have the law N(0, H). Both laws hold independently for each of the C channels. Let <.> be
the mean over the patches of a group, or over groups, at equal positions in both inputs. Then

    Q = hidden_variance <E phi(w . x) phi(w . x')>,    K = readout_variance <E phi(h) phi(h')>,
    F = C KL(Sigma | prior) + C KL(H | Q) + [ y^T (K + T)^-1 y + log det(K + T) ] / 2

(Seroussi, Naveh, Ringel 2023, with weights that patches and groups share). The unknowns are Sigma =
(v/S) L L^T and H = R M M^T R^T with R R^T = Q, as in `deep.theory`.
"""

import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.minimum import lbfgs_minimum
from orderparam.systems.kernel_adaptation.convolutional.model import ConvolutionalOnData
from orderparam.systems.kernel_adaptation.on_data.theory import Covariances, next_layer

_JITTER = 1e-10  # added to the diagonal of Q, as a fraction of its mean


class ConvolutionalPrediction(Result):
    """The posterior mean of a convolutional network, and the laws of its filters and
    pre-activations along directions.

    Fields:
        total_learnability: mean . y / y . y of the posterior mean at the test points.
        train_learnability: this ratio at the training points.
        variance: variances along four directions: of the filters (times sqrt(S/v)) along the
            teacher's filter and a random one; of the pre-activations of the second layer along the
            unit vector of the teacher's pre-activations (over training points and groups) and along
            a random one, divided by the trace of their covariance at infinite width per dimension.
        residual: largest entry of the gradient of F/C, below 1e-8 where converged.
        converged: whether the minimum was found.
    """

    total_learnability: Float[Array, ""]
    train_learnability: Float[Array, ""]
    variance: Float[Array, "direction"]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def convolutional_gaussian_process(system: ConvolutionalOnData) -> ConvolutionalPrediction:
    """Posterior mean and variances of a convolutional network of three layers with infinitely many
    channels.

    $$ E f(x) = k(x)^T (K + T)^{-1} y $$

    with T the `temperature` and K the kernel of two convolutions at the prior.

    Accuracy: to rounding.

    Source: Novak et al. (2019).

    >>> from orderparam.systems.kernel_adaptation import teacher_data
    >>> data = ConvolutionalOnData(*teacher_data(5, 3, groups=2, group=2, patch_dim=3), 8, 0.1)
    >>> np.asarray(convolutional_gaussian_process(data).variance)[:2].round(6).tolist()
    [1.0, 1.0]
    """
    unknowns = _Unknowns(system)
    return _described(system, unknowns, unknowns.prior, jnp.zeros(()))


@theory
def convolutional_gaussian_layers(system: ConvolutionalOnData) -> ConvolutionalPrediction:
    r"""Posterior mean and variances of a convolutional network whose filters and pre-activations
    are Gaussian and adapt.

    $$ F = C\, \mathrm{KL}(\Sigma \mid \mathrm{prior}) + C\, \mathrm{KL}(H \mid Q)
       + \tfrac12 \big[ y^T (K + T)^{-1} y + \log\det(K + T) \big] $$

    with $\Sigma$ the covariance of the filters, H that of the pre-activations of the second layer
    at all training points and groups, Q the covariance that the first layer gives them at the
    prior, C the `channels` and T the `temperature`. The minimum of F next to the network of
    infinitely many channels is found by L-BFGS.

    Accuracy: 1e-6.

    Cost: O((G n)^3) for each step, with G groups and n examples.

    Source: Seroussi, Naveh, Ringel (2023).

    >>> from orderparam.systems.kernel_adaptation import teacher_data
    >>> data = ConvolutionalOnData(*teacher_data(5, 3, groups=2, group=2, patch_dim=3), 8, 0.1)
    >>> bool(convolutional_gaussian_layers(data).variance[0] > 1)
    True
    """
    unknowns = _Unknowns(system)
    found = lbfgs_minimum(unknowns.action, unknowns.prior)
    return _described(system, unknowns, found.value, found.residual)


def on_equal_positions(kernel: Float[Array, "row column"], block: int) -> Float[Array, "_ _"]:
    """The mean over equal positions of blocks of `block` rows and columns."""
    rows, columns = (size // block for size in kernel.shape)
    return jnp.einsum("apbp->ab", kernel.reshape(rows, block, columns, block)) / block


class _Unknowns:
    """The lower triangles of L and M in one vector."""

    def __init__(self, system: ConvolutionalOnData) -> None:
        self.system = system
        train, _, dim = system.inputs.shape
        self.sizes = (dim, train * system.groups)
        self.prior = jnp.concatenate([jnp.eye(size)[jnp.tril_indices(size)] for size in self.sizes])

    def factors(self, unknowns: Array) -> list[Array]:
        first = self.sizes[0] * (self.sizes[0] + 1) // 2
        return [
            jnp.zeros((size, size)).at[jnp.tril_indices(size)].set(part)
            for size, part in zip(self.sizes, (unknowns[:first], unknowns[first:]))
        ]

    def action(self, unknowns: Array) -> Array:
        """F/C, without the constants of the divergences."""
        system, factors, y = self.system, self.factors(unknowns), self.system.targets
        divergence = sum(
            jnp.sum(factor**2) / 2 - jnp.sum(jnp.log(jnp.abs(jnp.diagonal(factor))))
            for factor in factors
        )
        kernel = _propagate(system, factors)[1].train
        cholesky = jnp.linalg.cholesky(kernel + system.temperature * jnp.eye(y.shape[0]))
        fit = jnp.sum(jsl.solve_triangular(cholesky, y, lower=True) ** 2) + 2 * jnp.sum(
            jnp.log(jnp.diagonal(cholesky))
        )
        return divergence + fit / (2 * system.channels)


def _over_blocks(covariances: Covariances, block: int) -> Covariances:
    return Covariances(
        on_equal_positions(covariances.train, block),
        on_equal_positions(covariances.cross, block),
        jnp.mean(covariances.variance.reshape(-1, block), axis=1),
    )


def _propagate(
    system: ConvolutionalOnData, factors: list[Array], test: bool = False
) -> tuple[Array, Covariances]:
    """Covariance H at the training points, and kernel of the output. The kernel includes the test
    points only if `test` is true."""
    _, patches, dim = system.inputs.shape
    scale = jnp.sqrt(system.weight_variance / dim)
    x, other = (
        scale * points.reshape(-1, dim) @ factors[0]
        for points in (system.inputs, system.test_inputs[: None if test else 0])
    )
    first = Covariances(x @ x.T, other @ x.T, jnp.sum(other**2, axis=1))
    prior = _over_blocks(
        next_layer(system.activation, system.hidden_variance, first), patches // system.groups
    )
    size = prior.train.shape[0]
    jitter = _JITTER * jnp.mean(jnp.diagonal(prior.train)) * jnp.eye(size)
    root = jnp.linalg.cholesky(prior.train + jitter)
    # Outside the training set the prior is conditioned on the pre-activations at the training
    # points, whose covariance has changed from Q to H.
    half = jsl.solve_triangular(root, prior.cross.T, lower=True).T
    moved, turned = root @ factors[1], half @ factors[1]
    variance = jnp.maximum(prior.variance - jnp.sum(half**2, axis=1), 0.0) + jnp.sum(
        turned**2, axis=1
    )
    second = Covariances(moved @ moved.T, turned @ moved.T, variance)
    output = next_layer(system.activation, system.readout_variance, second)
    return second.train, _over_blocks(output, system.groups)


def directions(
    system: ConvolutionalOnData,
) -> tuple[Float[Array, "input two"], Float[Array, "point two"]]:
    """Unit vectors along which filters and pre-activations of the second layer are observed: the
    teacher's and a random one, the same in every run.
    """
    size, points = system.inputs.shape[2], system.teacher.size
    draws = np.random.default_rng(1)
    of_filters = [jnp.eye(size)[0], draws.standard_normal(size)]
    of_points = [jnp.ravel(system.teacher), draws.standard_normal(points)]
    filters, layer = (
        jnp.stack([jnp.asarray(v) / jnp.linalg.norm(jnp.asarray(v)) for v in pair], axis=1)
        for pair in (of_filters, of_points)
    )
    return filters, layer


def wide_scale(system: ConvolutionalOnData) -> Float[Array, ""]:
    """The mean variance of a pre-activation of the second layer at infinite width."""
    unknowns = _Unknowns(system)
    prior, _ = _propagate(system, unknowns.factors(unknowns.prior))
    return jnp.mean(jnp.diagonal(prior))


def _described(
    system: ConvolutionalOnData, unknowns: _Unknowns, found: Array, residual: Array
) -> ConvolutionalPrediction:
    y, factors = system.targets, unknowns.factors(found)
    layer, kernel = _propagate(system, factors, test=True)
    dual = jsl.solve(kernel.train + system.temperature * jnp.eye(y.shape[0]), y, assume_a="pos")
    train_mean, mean = kernel.train @ dual, kernel.cross @ dual
    filters, points = directions(system)
    return ConvolutionalPrediction(
        total_learnability=mean @ system.test_targets / (system.test_targets @ system.test_targets),
        train_learnability=train_mean @ y / (y @ y),
        variance=jnp.concatenate(
            [
                jnp.sum((factors[0].T @ filters) ** 2, axis=0),
                jnp.einsum("ij,ia,ja->a", layer, points, points) / wide_scale(system),
            ]
        ),
        residual=residual,
        converged=(residual < 1e-8) & jnp.all(jnp.isfinite(mean)),
    )
