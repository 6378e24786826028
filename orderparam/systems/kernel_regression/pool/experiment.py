"""Regression on random subsets of a pool, really done: as a Gaussian process, and with a finite
network.
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
from orderparam.networks.architecture import Architecture
from orderparam.sampling import sample
from orderparam.systems.kernel_regression.learning_curve import (
    MeasuredLearningCurve,
    on_training_set,
    solved,
)
from orderparam.systems.kernel_regression.pool.model import NetworkRegression, PoolRegression
from orderparam.systems.kernel_regression.training.model import of_width

PADDING = 32  # training sets of a network are compiled in multiples of this size


@experiment
def gp_regression(system: PoolRegression, key: PRNGKeyArray) -> MeasuredLearningCurve:
    """Gaussian-process regression on n_train points of the pool, drawn without replacement; labels
    get N(0, noise) noise.

    f(x) = k_x^T (K + T)^-1 y by Cholesky factorisation in float64, evaluated at every point of the
    pool. For several outputs the noise variance is shared equally among them. Raises `ValueError`
    when n_train is not an integer or when K + T is not positive definite (equal inputs at T = 0).
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
    """The pool in random order, its first n_train points being the training set, and the label
    noise of these.
    """
    subset_key, noise_key = jax.random.split(key)
    outputs = system.columns.shape[1]
    # for the whole pool: one program for training sets of all sizes
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
    """One training set learned by a finite network. The error is that of the posterior mean (see
    `theory.LearningCurve`).

    test_error:         over test points outside the training set, with the sampling error of the mean (its variance over the
                        draws) subtracted.
    held_out_variance:  posterior variance of the network's output at the test points: of the
    read-out given the hidden weights,
                        and over them. (`posterior_variance` of the other curves is over the whole
                        population.)
    r_hat, effective_samples: worst over the outputs at the test points; `converged` as in
    `orderparam.sampling.Samples`.
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
    """The posterior of a network of finite width, sampled at equilibrium by Hamiltonian Monte Carlo
    from independent prior draws.

    The read-out weights are Gaussian given the hidden weights W and are integrated exactly, which
    leaves
        p(W | data) ∝ p(W) det(K_W + T)^(-1/2) exp(-y^T (K_W + T)^-1 y / 2),   K_W = Phi_W Phi_W^T,
    with Phi_W the features of the last hidden layer: the same posterior over functions as sampling
    all weights at temperature T (weight decay T / prior variance), without its stiffest directions.
    At infinite width K_W is the kernel and f the posterior mean of `gp_regression`, on the same
    subsets for the same key. The hidden weights have unit scale: the tuned step is about 0.2 for 64
    x 64 of them, and a trajectory of `leapfrog_steps` should be about pi/2 long (2 pi would lead
    back to its start).
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
    squared = jnp.sum((mean["test"] - targets[test]) ** 2 - error["test"] ** 2, axis=1)
    residual = jnp.sum((mean["train"] - labels) ** 2 - jnp.nan_to_num(error["train"]) ** 2)
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
    """The posterior of the hidden weights, the read-out integrated out, for one training set."""

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
