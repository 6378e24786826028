"""Deep networks on a given training set, in the approximation of Gaussian pre-activations with a
covariance for each layer.

The input weights have the law N(0, Sigma). The pre-activations of layer l = 2..L at the training
points have the law N(0, H_l), independently for each of its N_l neurons; given the layer below,
their prior has the covariance Q_l = (hidden variance) E phi phi^T. With K = (read-out variance) E
phi phi^T over the last layer and KL the divergence between centred Gaussians,

    F = N_1 KL(Sigma | prior) + sum_l N_l KL(H_l | Q_l)
        + [ y^T (K + T)^{-1} y + log det(K + T) ] / 2

(Seroussi, Naveh, Ringel 2023). At stationarity every layer is coupled to the next one through

    H_l^{-1} = Q_l^{-1} + (N_(l+1)/N_l) sum A_mu nu dQ_(l+1),mu nu / dH_l,
    A = Q^{-1} - Q^{-1} H Q^{-1} of layer l+1,

and the last layer is coupled to the read-out, with N_(L+1) = 1, through A = (K + T)^{-1} - (K +
T)^{-1} y y^T (K + T)^{-1} and K for Q.

The unknowns are Sigma = (v/d) L L^T and H_l = C_l M_l M_l^T C_l^T with C_l C_l^T = Q_l, so that
KL(H | Q) = |M|^2/2 - sum log M_ii - n/2 and the infinitely wide network is L = M_l = 1. Outside the
training set the pre-activations follow their prior conditioned on those at the training points.
"""

import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.verb import theory
from orderparam.solve.minimum import lbfgs_minimum
from orderparam.systems.kernel_adaptation.deep.model import DeepNetworkOnData
from orderparam.systems.kernel_adaptation.on_data.model import OnTestSet, on_test_set
from orderparam.systems.kernel_adaptation.on_data.theory import Covariances, first_layer, next_layer

_JITTER = (
    1e-10  # added to the diagonal of Q, as a fraction of its mean: linear units give singular Q
)


class DeepPrediction(OnTestSet):
    """The posterior mean of a deep network, and the pre-activations of its layers.

    Fields:
        train_mean: posterior mean of f at the training points.
        train_learnability: train_mean . y / y . y.
        preactivations: covariances H_l of the layers l = 2..L at the training points.
        on_target: y^T H_l y / y . y of these layers.
        action: F/N without the constants of the divergences; for the infinitely wide network it is
            (d + (L-1) n)/2 plus the term of the fit.
        residual: largest entry of the gradient of F/N, below 1e-8 where converged.
        converged: whether the minimum was found.
    """

    train_mean: Float[Array, "train"]
    train_learnability: Float[Array, ""]
    preactivations: Float[Array, "layer train second"]
    on_target: Float[Array, "layer"]
    action: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def deep_gaussian_process(system: DeepNetworkOnData) -> DeepPrediction:
    """Posterior mean of an infinitely wide deep network (NNGP), on a given training set.

    $$ E f(x) = k(x)^T (K + T)^{-1} y $$

    with T the `temperature` and K the kernel of `depth` hidden layers at the prior.

    Accuracy: to rounding.

    Source: Neal (1996); Lee et al. (2018).

    >>> from orderparam.systems.kernel_adaptation import DeepNetworkOnData
    >>> x = np.random.default_rng(0).normal(size=(8, 3))
    >>> data = DeepNetworkOnData(x[:5], x[:5, 0], x[5:], x[5:, 0], 8, 0.1)
    >>> round(float(deep_gaussian_process(data).train_learnability), 6)
    0.848666
    """
    unknowns = _Unknowns(system)
    return _described(system, unknowns, unknowns.prior, jnp.zeros(()))


@theory
def deep_gaussian_layers(system: DeepNetworkOnData) -> DeepPrediction:
    r"""Posterior mean of a deep network with Gaussian pre-activations whose covariances adapt in
    every layer.

    $$ F = N_1\, \mathrm{KL}(\Sigma \mid \mathrm{prior})
       + \sum_{l \ge 2} N_l\, \mathrm{KL}(H_l \mid Q_l)
       + \tfrac12 \big[ y^T (K + T)^{-1} y + \log\det(K + T) \big] $$

    with $\Sigma$ the covariance of the input weights, $H_l$ that of the pre-activations of layer l
    at the training points (`preactivations`), $Q_l$ the covariance that layer l - 1 gives them at
    the prior, $N_l$ the `widths` and T the `temperature`. The minimum of F next to the infinitely
    wide network is found by L-BFGS.

    Accuracy: 1e-6.

    Cost: O(L n^3) for each step.

    Source: Seroussi, Naveh, Ringel (2023).

    >>> from orderparam.systems.kernel_adaptation import DeepNetworkOnData
    >>> x = np.random.default_rng(0).normal(size=(8, 3))
    >>> data = DeepNetworkOnData(x[:5], x[:5, 0], x[5:], x[5:, 0], 8, 0.1)
    >>> round(float(deep_gaussian_layers(data).train_learnability), 5)
    0.8723
    """
    unknowns = _Unknowns(system)
    found = lbfgs_minimum(unknowns.action, unknowns.prior)
    return _described(system, unknowns, found.value, found.residual)


class _Unknowns:
    """The lower triangles of L and of all M_l in one vector."""

    def __init__(self, system: DeepNetworkOnData) -> None:
        self.system = system
        train, dim = system.inputs.shape
        self.sizes = (dim, *(train for _ in range(system.depth - 1)))
        self.prior = jnp.concatenate([jnp.eye(size)[jnp.tril_indices(size)] for size in self.sizes])

    def factors(self, unknowns: Array) -> list[Array]:
        ends = np.cumsum([size * (size + 1) // 2 for size in self.sizes])[:-1]
        return [
            jnp.zeros((size, size)).at[jnp.tril_indices(size)].set(part)
            for size, part in zip(self.sizes, jnp.split(unknowns, ends))
        ]

    def action(self, unknowns: Array) -> Array:
        """Action F/N at the unknowns."""
        system, factors, y = self.system, self.factors(unknowns), self.system.targets
        divergence = sum(
            ratio * (jnp.sum(factor**2) / 2 - jnp.sum(jnp.log(jnp.abs(jnp.diagonal(factor)))))
            for ratio, factor in zip(system.relative_widths, factors)
        )
        cholesky = jnp.linalg.cholesky(
            _propagate(system, factors)[1].train + system.temperature * jnp.eye(y.shape[0])
        )
        fit = jnp.sum(jsl.solve_triangular(cholesky, y, lower=True) ** 2) + 2 * jnp.sum(
            jnp.log(jnp.diagonal(cholesky))
        )
        return divergence + fit / (2 * system.width)


def _propagate(
    system: DeepNetworkOnData, factors: list[Array], test: bool = False
) -> tuple[list[Array], Covariances]:
    """Covariances H_l of the layers l = 2..L at the training points, and kernel of the output.

    Args:
        test: whether the test points are included.
    """
    reached, found = first_layer(system, factors[0], test), []
    for factor in factors[1:]:
        prior = next_layer(system.activation, system.hidden_variance, reached)
        size = prior.train.shape[0]
        root = jnp.linalg.cholesky(
            prior.train + _JITTER * jnp.mean(jnp.diagonal(prior.train)) * jnp.eye(size)
        )
        # Outside the training set the prior is conditioned on the pre-activations at the training
        # points, whose covariance has changed from Q to H.
        half = jsl.solve_triangular(root, prior.cross.T, lower=True).T  # Q_* C^-T
        moved, turned = root @ factor, half @ factor
        variance = jnp.maximum(prior.variance - jnp.sum(half**2, axis=1), 0.0) + jnp.sum(
            turned**2, axis=1
        )
        reached = Covariances(moved @ moved.T, turned @ moved.T, variance)
        found.append(reached.train)
    return found, next_layer(system.activation, system.readout_variance, reached)


def _described(
    system: DeepNetworkOnData, unknowns: _Unknowns, found: Array, residual: Array
) -> DeepPrediction:
    y, factors = system.targets, unknowns.factors(found)
    layers, kernel = _propagate(system, factors, test=True)
    dual = jsl.solve(kernel.train + system.temperature * jnp.eye(y.shape[0]), y, assume_a="pos")
    train_mean, mean = kernel.train @ dual, kernel.cross @ dual
    preactivations = jnp.stack(layers) if layers else jnp.zeros((0, y.shape[0], y.shape[0]))
    return DeepPrediction(
        **on_test_set(system, mean, factors[0] @ factors[0].T),
        train_mean=train_mean,
        train_learnability=train_mean @ y / (y @ y),
        preactivations=preactivations,
        on_target=jnp.einsum("lij,i,j->l", preactivations, y, y) / (y @ y),
        action=unknowns.action(found),
        residual=residual,
        converged=(residual < 1e-8) & jnp.all(jnp.isfinite(mean)),
    )
