"""What the theories describe, really done: regression on random subsets of a pool, on Gaussian features, with finite networks."""

import dataclasses
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.system import parameter
from orderparam.kernels.gp import condition
from orderparam.kernels.readout import Readout, condition_readout
from orderparam.networks.architecture import Architecture
from orderparam.networks.dense import Dense
from orderparam.sampling import sample
from orderparam.systems.kernel_regression.model import KernelRegression, PoolRegression

LARGEST_DESIGN = 4 * 10**8  # entries of a Gaussian design matrix: 3.2 GB
PADDING = 16  # training sets of a network are compiled in multiples of this size


class MeasuredCurve(Result):
    """One training set's share of a learning curve; every observable means what it means in `theory.LearningCurve`."""

    test_error: Float[Array, ""]
    population_error: Float[Array, ""]
    train_error: Float[Array, ""]
    posterior_variance: Float[Array, ""]
    effective_dimension: Float[Array, ""]
    target_learnability: Float[Array, ""]
    squared_discrepancy: Float[Array, ""]


def gp_regression(system: PoolRegression, key: PRNGKeyArray) -> MeasuredCurve:
    """Gaussian-process regression on n_train points of the pool, drawn without replacement; labels get N(0, noise) noise.

    f(x) = k_x^T (K + T)^-1 y by Cholesky factorisation in float64, evaluated at every point of the pool. For several outputs the
    noise variance is shared equally among them.
    Raises `ValueError` when n_train is not an integer or when K + T is not positive definite (equal inputs at T = 0).
    """
    if not isinstance(system, PoolRegression):
        raise ValueError(f"gp_regression needs a PoolRegression, a pool of real inputs, not a {type(system).__name__}")
    count = whole_number(system.n_train)
    subset_key, noise_key = jax.random.split(key)
    chosen = jax.random.permutation(subset_key, system.pool_size)[:count]
    targets = jnp.reshape(jnp.asarray(system.targets), (system.pool_size, -1))
    noise = jnp.sqrt(system.noise / targets.shape[1]) * jax.random.normal(noise_key, (count, targets.shape[1]))
    measured = _regress(jnp.asarray(system.kernel), targets, chosen, noise, float(system.temperature))
    if not bool(jnp.isfinite(measured.test_error)):
        raise ValueError(
            f"the training kernel plus temperature {float(system.temperature):g} is not positive definite: "
            "equal inputs in the pool, or a temperature below rounding; raise the temperature"
        )
    return measured


@jax.jit
def _regress(
    kernel: Float[Array, "pool pool"],
    targets: Float[Array, "pool output"],
    chosen: Int[Array, "train"],
    noise: Float[Array, "train output"],
    temperature: float,
) -> MeasuredCurve:
    pool, count = kernel.shape[0], chosen.size
    labels = targets[chosen] + noise
    cross = kernel[:, chosen]
    conditioned = condition(cross[chosen], labels[:, 0], temperature)
    discrepancy = jsl.cho_solve((conditioned.cholesky, True), labels)
    mean = cross @ discrepancy
    squared = jnp.sum((mean - targets) ** 2, axis=1)
    outside = jnp.ones(pool).at[chosen].set(0.0)
    inverse = jsl.solve_triangular(conditioned.cholesky, jnp.eye(count), lower=True)
    return MeasuredCurve(
        test_error=outside @ squared / (pool - count),
        population_error=jnp.mean(squared),
        train_error=jnp.mean(jnp.sum((temperature * discrepancy) ** 2, axis=1)),
        posterior_variance=jnp.mean(conditioned.variance(cross, jnp.diagonal(kernel))),
        effective_dimension=count - temperature * jnp.sum(inverse**2),
        target_learnability=jnp.sum(mean * targets) / jnp.sum(targets**2),
        squared_discrepancy=jnp.mean(jnp.sum(discrepancy**2, axis=1)),
    )


def gaussian_design(system: KernelRegression, key: PRNGKeyArray) -> MeasuredCurve:
    """Ridge regression on n_train inputs whose features phi_k are independent standard Gaussians: the theories' own assumption.

    A level of multiplicity m is m modes that share its target power equally; the unresolved tail acts as ridge on the training
    points and its target power as label noise. Population averages are exact sums over modes.
    Raises `ValueError` when n_train or a multiplicity is not an integer, or the design matrix would be too large.
    """
    count = whole_number(system.n_train)
    multiplicities = np.asarray(system.spectrum.multiplicities)
    if np.any(multiplicities != np.round(multiplicities)):
        raise ValueError("gaussian_design needs integer multiplicities: build the spectrum from single modes")
    modes = int(multiplicities.sum())
    if count * modes > LARGEST_DESIGN:
        raise ValueError(f"a design of {count} x {modes} Gaussian features is too large; use fewer modes and a tail")
    repeats = multiplicities.astype(int)
    eigenvalues = jnp.asarray(np.repeat(np.asarray(system.spectrum.eigenvalues), repeats))
    target = jnp.asarray(np.sqrt(np.repeat(np.asarray(system.spectrum.target_power) / np.maximum(repeats, 1), repeats)))
    tail_power = float(system.spectrum.tail_power)
    return _design(
        eigenvalues, target, float(system.spectrum.tail), tail_power, float(system.temperature), float(system.noise), key, count
    )


@partial(jax.jit, static_argnames="count")
def _design(
    eigenvalues: Float[Array, "mode"],
    target: Float[Array, "mode"],
    tail: float,
    tail_power: float,
    temperature: float,
    noise: float,
    key: PRNGKeyArray,
    count: int,
) -> MeasuredCurve:
    feature_key, noise_key = jax.random.split(key)
    features = jax.random.normal(feature_key, (count, eigenvalues.size))
    labels = features @ target + jnp.sqrt(noise + tail_power) * jax.random.normal(noise_key, (count,))
    kernel = (features * eigenvalues) @ features.T + tail * jnp.eye(count)
    conditioned = condition(kernel, labels, temperature)
    coefficients = eigenvalues * (features.T @ conditioned.discrepancy)
    half = jsl.solve_triangular(conditioned.cholesky, features * eigenvalues, lower=True)
    inverse = jsl.solve_triangular(conditioned.cholesky, jnp.eye(count), lower=True)
    error = jnp.sum((coefficients - target) ** 2) + tail_power
    return MeasuredCurve(
        test_error=error,
        population_error=error,
        train_error=temperature**2 * jnp.mean(conditioned.discrepancy**2),
        posterior_variance=jnp.sum(eigenvalues) + tail - jnp.sum(half**2),
        effective_dimension=count - temperature * jnp.sum(inverse**2),
        target_learnability=coefficients @ target / (target @ target + tail_power),
        squared_discrepancy=jnp.mean(conditioned.discrepancy**2),
    )


class NetworkRegression(PoolRegression):
    """A pool together with a finite network that learns it; the kernel is that of the network at infinite width.

    inputs:       (pool, *input) of the pool.
    architecture: of the network; where it leaves widths open, `width` fills them.
    """

    inputs: Float[Array, "pool *input"] = dataclasses.field(kw_only=True)
    architecture: Architecture = dataclasses.field(kw_only=True)
    width: int = parameter("width of all hidden layers that the architecture leaves open", minimum=1, integer=True, default=512)

    @classmethod
    def from_architecture(
        cls,
        architecture: Architecture,
        inputs: Float[Array, "pool *input"],
        targets: Float[Array, "pool *output"],
        n_train: Any,
        temperature: Any,
        noise: Any = 0.0,
        width: int = 512,
    ) -> "NetworkRegression":
        """The pool with the kernel of the infinitely wide network; one kernel matrix and one eigendecomposition."""
        kernel = architecture.kernel(jnp.asarray(inputs)).nngp
        pool = PoolRegression.from_kernel(kernel, targets, n_train, temperature, noise)
        fields = {field.name: getattr(pool, field.name) for field in dataclasses.fields(pool)}
        return cls(**fields, inputs=jnp.asarray(inputs), architecture=architecture, width=width)


class NetworkCurve(Result):
    """One training set learned by a finite network. The error is that of the posterior mean (see `theory.LearningCurve`).

    test_error:         over test points outside the training set, with the sampling error of the mean (its variance over the
                        draws) subtracted.
    held_out_variance:  posterior variance of the network's output at the test points: of the read-out given the hidden weights,
                        and over them. (`posterior_variance` of the other curves is over the whole population.)
    r_hat, ess:         worst over the outputs at the test points; `converged` as told in `orderparam.sampling.Samples`.
    """

    test_error: Float[Array, ""]
    train_error: Float[Array, ""]
    held_out_variance: Float[Array, ""]
    r_hat: Float[Array, ""]
    ess: Float[Array, ""]
    acceptance_rate: Float[Array, ""]
    converged: Bool[Array, ""]


def network_posterior(
    system: NetworkRegression,
    key: PRNGKeyArray,
    *,
    chains: int = 4,
    warmup: int = 150,
    samples: int = 200,
    leapfrog_steps: int = 8,
    test_points: int = 200,
) -> NetworkCurve:
    """The posterior of a network of finite width, sampled at equilibrium by Hamiltonian Monte Carlo from independent prior draws.

    The read-out weights are Gaussian given the hidden weights W and are integrated exactly, which leaves
        p(W | data) ∝ p(W) det(K_W + T)^(-1/2) exp(-y^T (K_W + T)^-1 y / 2),   K_W = Phi_W Phi_W^T,
    with Phi_W the features of the last hidden layer: the same posterior over functions as sampling all weights at temperature T
    (weight decay T / prior variance), without its stiffest directions. At infinite width K_W is the kernel and f the posterior
    mean of `gp_regression`, on the same subsets for the same key. The hidden weights have unit scale: the tuned step is about 0.2
    for 64 x 64 of them, and a trajectory of `leapfrog_steps` should be about pi/2 long (2 pi would lead back to its start).
    """
    if not isinstance(system, NetworkRegression):
        raise ValueError(f"network_posterior needs a NetworkRegression, not a {type(system).__name__}")
    count = whole_number(system.n_train)
    subset_key, noise_key = jax.random.split(key)  # the training set of `gp_regression`
    sample_key = jax.random.fold_in(key, 1)
    order = jax.random.permutation(subset_key, system.pool_size)
    test = order[count : count + test_points]
    # Blank rows fill the training set up to a multiple of PADDING, so that sets of similar size share one compiled program: each
    # adds the constant log(T)/2 to the energy.
    size = -(-count // PADDING) * PADDING
    train, present = order[jnp.minimum(jnp.arange(size), count - 1)], jnp.where(jnp.arange(size) < count, 1.0, 0.0)
    targets = jnp.reshape(jnp.asarray(system.targets), (system.pool_size, -1))
    noise = jnp.sqrt(system.noise / targets.shape[1]) * jax.random.normal(noise_key, (count, targets.shape[1]))
    labels = present[:, None] * (targets[train] + jnp.pad(noise, ((0, size - count), (0, 0))))
    architecture = of_width(system.architecture, int(system.width))
    shape = system.inputs.shape[1:]
    problem = _Collapsed(
        architecture,
        jax.tree.map(jnp.zeros_like, architecture.draw(key, shape)[-1]),
        jnp.asarray(system.inputs)[train],
        labels,
        present,
        jnp.asarray(system.inputs)[test],
        jnp.asarray(architecture.posterior_temperature(float(system.temperature))),
    )
    drawn = sample(
        jax.tree_util.Partial(_Collapsed.log_density, problem),
        lambda chain_key: architecture.draw(chain_key, shape)[:-1],
        sample_key,
        method="hmc",
        chains=chains,
        warmup=warmup,
        samples=samples,
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
        ess=jnp.min(drawn.ess["test"]),
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
    temperature: Float[Array, ""]

    def _features(self, hidden: Any, inputs: Float[Array, "example *input"]) -> Float[Array, "example feature"]:
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


def of_width(architecture: Architecture, width: int) -> Architecture:
    """The architecture with its open widths filled in."""

    def fill(layer: Any) -> Any:
        return dataclasses.replace(layer, width=width) if isinstance(layer, Dense) and layer.width is None else layer

    return jax.tree.map(fill, architecture, is_leaf=lambda layer: isinstance(layer, Dense))


def whole_number(n_train: Any) -> int:
    """The number of training examples as an int; `ValueError` when it is none."""
    count = int(n_train)
    if count != n_train:
        raise ValueError(f"n_train = {n_train}: an experiment needs an integer")
    return count
