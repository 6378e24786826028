"""Experiments on random subsets of a pool: Gaussian-process regression, and a finite network that
is sampled from its posterior.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.kernels.effective_ridge import ratio
from orderparam.kernels.gp import condition
from orderparam.kernels.readout import Readout, condition_readout
from orderparam.networks.architecture import Architecture, of_width
from orderparam.sampling import sample
from orderparam.systems.kernel_regression.learning_curve import (
    MeasuredLearningCurve,
    on_training_set,
    solved,
)
from orderparam.systems.kernel_regression.pool.model import NetworkRegression, PoolRegression

PADDING = 32  # training sets of a network are compiled in multiples of this size


@experiment
def gp_regression(system: PoolRegression, key: PRNGKeyArray) -> MeasuredLearningCurve:
    """Gaussian-process regression on n_train points of the pool, drawn without replacement.

    $$ f(x) = k_x^T (K + T)^{-1} y $$

    by Cholesky factorisation, evaluated at every point of the pool. Labels get Gaussian noise of
    variance `noise`; for several outputs the variance is shared equally among them.

    Raises:
        ValueError: where n_train is not an integer, or where K + T is not positive definite (equal
            inputs at T = 0).

    Cost: O(n_train^2 pool) operations.

    Source: Canatar, Bordelon, Pehlevan (2021).

    >>> import jax
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(12, 3))
    >>> pool = PoolRegression.from_kernel(np.exp(x @ x.T / 3), x[:, 0], n_train=6, temperature=0.5)
    >>> bool(gp_regression(pool, jax.random.key(0)).test_error > 0)
    True
    """
    order, noise = _draw(system, key)
    chosen = order[: noise.shape[0]]
    return solved(
        _regress(system.kernel, system.columns, chosen, noise, system.temperature),
        system.temperature,
    )


def _draw(
    system: PoolRegression, key: PRNGKeyArray
) -> tuple[Int[Array, "pool"], Float[Array, "train output"]]:
    """Numbers of all points of the pool in random order, and the label noise of the training set.

    The training set consists of the first n_train of these points.
    """
    subset_key, noise_key = jax.random.split(key)
    outputs = system.columns.shape[1]
    # Noise is drawn for the whole pool, so that one compiled program serves all sizes of the
    # training set.
    noise = jnp.sqrt(system.noise / outputs) * jax.random.normal(
        noise_key, (system.pool_size, outputs)
    )
    return jax.random.permutation(subset_key, system.pool_size), noise[: system.size("n_train")]


@jax.jit
def _regress(
    kernel: Float[Array, "pool pool"],
    targets: Float[Array, "pool output"],
    chosen: Int[Array, "train"],
    noise: Float[Array, "train output"],
    temperature: Float[Array, ""],
) -> MeasuredLearningCurve:
    pool, count = kernel.shape[0], chosen.size
    labels = targets[chosen] + noise
    cross = kernel[:, chosen]
    conditioned = condition(cross[chosen], labels[:, 0], temperature)
    discrepancy = jsl.cho_solve((conditioned.cholesky, True), labels)
    mean = cross @ discrepancy
    squared = jnp.sum((mean - targets) ** 2, axis=1)
    outside = jnp.ones(pool).at[chosen].set(0.0)
    return MeasuredLearningCurve(
        test_error=outside @ squared / (pool - count),
        population_error=jnp.mean(squared),
        posterior_variance=jnp.mean(conditioned.variance(cross, jnp.diagonal(kernel))),
        target_learnability=ratio(jnp.sum(mean * targets), jnp.sum(targets**2)),
        **on_training_set(discrepancy, conditioned.inverse_diagonal, temperature),
    )


class NetworkCurve(Result):
    """Errors of the posterior mean of a finite network that learns one training set.

    Fields:
        test_error: mean square error over test points outside the training set, with the sampling
            error of the mean (its variance over the draws) subtracted.
        train_error: mean of (f - y_noisy)^2 over the training set, with the sampling error
            subtracted.
        held_out_variance: posterior variance of the network's output at the test points: the
            variance given the hidden weights plus the variance over the hidden weights.
            (`posterior_variance` of the other curves is over the whole population.)
        r_hat: largest potential scale reduction over the outputs at the test points.
        effective_samples: smallest effective sample size over these outputs.
        acceptance_rate: mean acceptance rate of Hamiltonian Monte Carlo.
        converged: as in `orderparam.sampling.Samples`.
    """

    test_error: Float[Array, ""]
    train_error: Float[Array, ""]
    held_out_variance: Float[Array, ""]
    r_hat: Float[Array, ""]
    effective_samples: Float[Array, ""]
    acceptance_rate: Float[Array, ""]
    converged: Bool[Array, ""]


@experiment
def network_posterior(
    system: NetworkRegression,
    key: PRNGKeyArray,
    *,
    chains: int = 4,
    warmup: int = 150,
    draws: int = 200,
    leapfrog_steps: int = 8,
    test_points: int = 200,
) -> NetworkCurve:
    r"""Test error of a network of finite width, sampled from its posterior by Hamiltonian Monte
    Carlo.

    The read-out weights are Gaussian given the hidden weights W and are integrated exactly, which
    leaves

    $$ p(W \mid \mathrm{data}) \propto p(W)\, \det(K_W + T)^{-1/2}
       \exp\big( -\tfrac12 y^T (K_W + T)^{-1} y \big), \qquad K_W = \Phi_W \Phi_W^T $$

    with $\Phi_W$ the features of the last hidden layer, y the labels and T the `temperature`. The
    posterior over functions is the same as if all weights were sampled at temperature T with weight
    decay T / (prior variance). The read-out weights, over which the integral is taken, are the
    stiffest directions of this posterior. At infinite width $K_W$ is the kernel of `gp_regression`
    and f is its posterior mean; with the same key both experiments draw the same training set.
    Chains start from independent draws of the prior.

    Args:
        chains: number of independent chains, at least 2 for `r_hat`. Default 4.
        warmup: steps of a chain that tune the step size and are discarded. Default 150.
        draws: recorded draws of each chain. Default 200.
        leapfrog_steps: leapfrog steps of a trajectory, which should be about pi/2 long (2 pi would
            lead back to its start). Weights have unit scale; the tuned step is about 0.2 for 64 x
            64 of them. Default 8.
        test_points: largest number of points outside the training set at which the output is
            recorded. Default 200.

    Raises:
        ValueError: where n_train is not an integer.

    Cost: chains * (warmup + draws) * leapfrog_steps gradients, each O(n_train^2 width).

    Source: Neal (1996); Naveh et al. (2021).

    >>> import jax
    >>> import numpy as np
    >>> from orderparam.networks import fully_connected
    >>> network = NetworkRegression.from_architecture(
    ...     fully_connected(1, None, "relu"), np.eye(3), [1.0, 0.0, -1.0], 2, 0.5, width=2
    ... )
    >>> curve = network_posterior(network, jax.random.key(0), chains=2, warmup=20, draws=10)
    >>> bool(curve.held_out_variance > 0)
    True
    """
    order, noise = _draw(system, key)  # the training set of `gp_regression`
    count, targets = noise.shape[0], system.columns
    test = order[count : count + test_points]
    # Blank rows fill the training set up to a multiple of PADDING, so that sets of similar size
    # share one compiled program: each adds the constant log(T)/2 to the energy.
    size = -(-count // PADDING) * PADDING
    train, present = (
        order[jnp.minimum(jnp.arange(size), count - 1)],
        jnp.where(jnp.arange(size) < count, 1.0, 0.0),
    )
    labels = present[:, None] * (targets[train] + jnp.pad(noise, ((0, size - count), (0, 0))))
    architecture = of_width(system.architecture, system.size("width"))
    shape = system.inputs.shape[1:]
    problem = _Collapsed(
        architecture,
        jax.tree.map(jnp.zeros_like, architecture.draw(key, shape)[-1]),
        system.inputs[train],
        labels,
        present,
        system.inputs[test],
        architecture.posterior_temperature(system.temperature),
    )
    drawn = sample(
        jax.tree_util.Partial(_Collapsed.log_density, problem),
        lambda chain_key: architecture.draw(chain_key, shape)[:-1],
        jax.random.fold_in(key, 1),
        method="hmc",
        chains=chains,
        warmup=warmup,
        samples=draws,
        leapfrog_steps=leapfrog_steps,
        observe=jax.tree_util.Partial(_Collapsed.predict, problem),
    )
    mean, error = drawn.mean, drawn.standard_error
    # The square of a mean over finitely many draws is too large by its sampling variance.
    squared = jnp.sum((mean["test"] - targets[test]) ** 2 - error["test"] ** 2, axis=1)
    residual = jnp.sum((mean["train"] - labels) ** 2 - jnp.nan_to_num(error["train"]) ** 2)
    # The variance over the hidden weights of the output's mean given these weights. The variance of
    # the output given the hidden weights is added below.
    scatter = jnp.sum(jnp.var(drawn.observables["test"], axis=(0, 1)), axis=1)
    return NetworkCurve(
        test_error=jnp.mean(squared),
        train_error=residual / count,
        held_out_variance=jnp.mean(mean["variance"]) + jnp.mean(scatter) / targets.shape[1],
        r_hat=jnp.max(drawn.r_hat["test"]),
        effective_samples=jnp.min(drawn.effective_samples["test"]),
        acceptance_rate=jnp.mean(drawn.acceptance_rate),
        converged=drawn.converged,
    )


class _Collapsed(eqx.Module):
    """The posterior of the hidden weights for one training set, with the read-out integrated
    out."""

    architecture: Architecture
    blank: Any  # zeros in the shape of the read-out: the features do not depend on it
    inputs: Float[Array, "train *input"]
    labels: Float[Array, "train output"]
    present: Float[Array, "train"]
    test_inputs: Float[Array, "test *input"]
    temperature: Float[Array, ""] | float

    def _features(
        self, hidden: Any, inputs: Float[Array, "example *input"]
    ) -> Float[Array, "example feature"]:
        return self.architecture.features((*hidden, self.blank), inputs)

    def _readout(self, hidden: Any) -> Readout:
        features = self.present[:, None] * self._features(hidden, self.inputs)
        return condition_readout(features, self.labels, self.temperature)

    def log_density(self, hidden: Any) -> Float[Array, ""]:
        prior = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(hidden))
        return self._readout(hidden).log_evidence - prior / 2

    def predict(self, hidden: Any) -> dict[str, Array]:
        readout, test = self._readout(hidden), self._features(hidden, self.test_inputs)
        return {
            "test": test @ readout.mean,
            "train": self.labels - self.temperature * readout.discrepancy,
            "variance": jnp.mean(readout.variance(test)),
        }
