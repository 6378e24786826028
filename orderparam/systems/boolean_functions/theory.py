"""Theory of Boolean functions: three laws that training might follow."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.needs import at_least, power_of_two
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.orthants import orthant_probabilities, patterns
from orderparam.systems.boolean_functions.model import BooleanTraining

Scalar = Float[Array, ""]


class FunctionLaw(Result):
    """Probabilities of all functions on the test inputs.

    Fields:
        probability: probability of each pattern of signs. In the order of patterns the last input
            changes fastest, and -1 comes before 1.
        likely: probability of each function of the likelier half, in the order of patterns, and of
            all other functions together. Which half is likelier is taken from the law of the
            tangent kernel.
        uncertainty: standard error of every probability, from the integration.
        likely_uncertainty: standard error of `likely`, from the integration.
    """

    probability: Float[Array, "pattern"]
    likely: Float[Array, "group"]
    uncertainty: Float[Array, "pattern"]
    likely_uncertainty: Float[Array, "group"]


class LawDistances(Result):
    """Distances of the law of trained networks from three laws, in the order tangent kernel,
    regression posterior, label posterior.

    Fields:
        squared_distance: sum over the functions of the squared difference of the probabilities.
    """

    squared_distance: Float[Array, "law"]


_POINTS = {
    "samples": power_of_two(why="for Sobol's points"),
    "runs": at_least(2, why="for standard errors"),
    "seed": at_least(0),
}


@theory(needs=_POINTS)
def tangent_kernel_law(
    system: BooleanTraining, *, samples: int = 4096, runs: int = 4, seed: int = 0
) -> FunctionLaw:
    r"""Probabilities of the functions that infinitely wide networks compute after training to zero
    loss.

    With the tangent kernel $\Theta$ and the kernel K of the prior on training (S) and test inputs,
    and $V = \Theta_{*S} \Theta_{SS}^{-1}$, the outputs are Gaussian,

    $$ f_* \sim N\big(V y,\; K_{**} + V K_{SS} V^T - V K_{S*} - K_{*S} V^T\big) $$

    and the probability of a function is that of an orthant. With `trained` = "readout" $\Theta$ is
    K, and the law is that of `regression_posterior`.

    Args:
        samples: number of points of the integration in a run, a power of 2.
        runs: number of independent scramblings of the points.
        seed: seed of the scramblings.

    Raises:
        ValueError: if `samples` is not a power of 2, or for a single run.

    Accuracy: statistical, with the standard errors `uncertainty`; 1e-4 or better for the defaults
    and ten inputs.

    Source: Lee et al. (2019).

    >>> import jax.numpy as jnp
    >>> from orderparam.networks.fully_connected import fully_connected
    >>> x = jnp.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    >>> system = BooleanTraining(x[:2], jnp.ones(2), x[2:], fully_connected(1, None, "erf"))
    >>> tangent_kernel_law(system).probability.shape
    (2,)
    """
    found, error = _tangent_law(system, samples, runs, seed)
    return _function_law(found, error, found)


@theory(needs=_POINTS)
def regression_posterior(
    system: BooleanTraining, *, samples: int = 4096, runs: int = 4, seed: int = 0
) -> FunctionLaw:
    r"""Probabilities of functions under Gaussian process regression on the labels, without noise.

    The outputs have the law $f_* \sim N(K_{*S} K_{SS}^{-1} y,\; K_{**} - K_{*S} K_{SS}^{-1}
    K_{S*})$. This is the posterior for the square loss, and the exact law of wide networks of which
    only the read-out is trained.

    Args:
        samples: number of points of the integration in a run, a power of 2.
        runs: number of independent scramblings of the points.
        seed: seed of the scramblings.

    Raises:
        ValueError: if `samples` is not a power of 2, or for a single run.

    Accuracy: statistical, with the standard errors `uncertainty`.

    Source: Lee et al. (2019); Mingard et al. (2021).

    >>> import jax.numpy as jnp
    >>> from orderparam.networks.fully_connected import fully_connected
    >>> x = jnp.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    >>> system = BooleanTraining(x[:2], jnp.ones(2), x[2:], fully_connected(1, None, "erf"))
    >>> regression_posterior(system).probability.shape
    (2,)
    """
    k, _, train = _kernels(system)
    found, error = _law(system, k, k, train, samples, runs, seed)
    return _function_law(found, error, _tangent_law(system, samples, runs, seed)[0])


@theory(needs=_POINTS)
def label_posterior(
    system: BooleanTraining, *, samples: int = 4096, runs: int = 4, seed: int = 0
) -> FunctionLaw:
    r"""Probabilities of functions among random networks that have the signs of the labels by
    chance.

    The probability of a function is $P(\mathrm{sign} f_* \mid \mathrm{sign} f_S = y)$ with $f \sim
    N(0, K)$: the posterior over functions for a likelihood that is 1 if all labels are right and 0
    otherwise.

    Args:
        samples: number of points of the integration in a run, a power of 2.
        runs: number of independent scramblings of the points.
        seed: seed of the scramblings.

    Raises:
        ValueError: if `samples` is not a power of 2, or for a single run.

    Accuracy: statistical, with the standard errors `uncertainty`.

    Source: Mingard et al. (2021).

    >>> import jax.numpy as jnp
    >>> from orderparam.networks.fully_connected import fully_connected
    >>> x = jnp.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    >>> system = BooleanTraining(x[:2], jnp.ones(2), x[2:], fully_connected(1, None, "erf"))
    >>> round(float(label_posterior(system).probability.sum()), 12)
    1.0
    """
    k, _, train = _kernels(system)
    tests = patterns(len(system.test_inputs))
    fixed = jnp.broadcast_to(jnp.where(system.labels > 0, 1.0, -1.0), (len(tests), train))
    signs = jnp.concatenate([fixed, tests], axis=1)
    found, error = orthant_probabilities(jnp.zeros(len(k)), k, signs, samples, runs, seed)
    found, error = found / jnp.sum(found), error / jnp.sum(found)
    return _function_law(found, error, _tangent_law(system, samples, runs, seed)[0])


@theory(needs=_POINTS, differentiable=False)
def frozen_kernel_law(
    system: BooleanTraining, *, samples: int = 4096, runs: int = 4, seed: int = 0
) -> FunctionLaw:
    r"""Probabilities of the functions that infinitely wide networks compute after `steps` steps of
    training, for either loss and any batch.

    The outputs at the start are drawn from the prior, $f \sim N(0, K)$, and follow the steps of the
    networks with the tangent kernel at infinite width,

    $$ f \leftarrow f - \eta\, \Theta_{\cdot S}\, g(f_S), \qquad g = \partial L/\partial f_S $$

    where g is the derivative on the batch of the step. On the square loss every choice of batches
    leads to the law of `tangent_kernel_law` once the labels are fitted, since all steps lie in the
    span of the training inputs. On the logistic loss the law depends on the number of steps.

    Args:
        samples: number of starts that are drawn in a run, a power of 2.
        runs: number of independent scramblings of the points, each with its own batches.
        seed: seed of the scramblings and of the batches.

    Raises:
        ValueError: if `samples` is not a power of 2, or for a single run.

    Accuracy: statistical, with the standard errors `uncertainty` of the counts; 1e-3 for the
    defaults.

    Source: derived here from Lee et al. (2019).

    >>> import jax.numpy as jnp
    >>> from orderparam.networks.fully_connected import fully_connected
    >>> x = jnp.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    >>> network = fully_connected(1, None, "erf")
    >>> system = BooleanTraining(x[:2], jnp.ones(2), x[2:], network, loss="logistic", steps=5)
    >>> frozen_kernel_law(system, samples=64).probability.shape
    (2,)
    """
    from scipy.stats import qmc  # slow to import, and used only here

    k, theta, train = _kernels(system)
    kernel = (k if system.trained == "readout" else theta)[:, :train]
    rate = system.learning_rate / jnp.linalg.norm(trained_kernel(system, system.inputs), 2)
    # the kernel of a prior on few directions is singular, and rounding may leave negative
    # eigenvalues
    modes = jnp.linalg.eigh(k)
    root = modes[1] * jnp.sqrt(jnp.maximum(modes[0], 0.0))
    weight = 2 ** jnp.arange(len(system.test_inputs))[::-1]
    points = np.stack(
        [
            qmc.Sobol(len(k), scramble=True, seed=np.random.default_rng([seed, run])).random_base2(
                samples.bit_length() - 1
            )
            for run in range(runs)
        ]
    )
    starts = jax.scipy.special.ndtri(jnp.clip(points, 1e-16, 1 - 1e-16)) @ root.T
    keys = jax.random.split(jax.random.key(seed), runs * samples).reshape(runs, samples)

    def one(start: Array, key: PRNGKeyArray) -> Array:
        def step(f: Array, key: PRNGKeyArray) -> tuple[Array, None]:
            return f - rate * kernel @ system.slope(f[:train], key), None

        end, _ = jax.lax.scan(step, start, jax.random.split(key, system.steps))
        return (end[train:] > 0) @ weight

    def counted(starts: Array, keys: Array) -> Array:
        found = jax.vmap(one)(starts, keys)
        return jnp.bincount(found, length=2 ** len(weight)) / samples

    share = jax.vmap(counted)(starts, keys)
    found, error = jnp.mean(share, axis=0), jnp.std(share, axis=0, ddof=1) / runs**0.5
    return _function_law(found, error, _tangent_law(system, samples, runs, seed)[0])


@theory(needs=_POINTS)
def wide_distances(
    system: BooleanTraining, *, samples: int = 4096, runs: int = 4, seed: int = 0
) -> LawDistances:
    r"""Squared distances of the law of infinitely wide trained networks from three laws.

    The squared distance is $\sum_p (P_p - Q_p)^2$, where P is the law of `tangent_kernel_law` and Q
    is the same law (distance 0), `regression_posterior` or `label_posterior`.

    Args:
        samples: number of points of the integration in a run, a power of 2.
        runs: number of independent scramblings of the points.
        seed: seed of the scramblings.

    Raises:
        ValueError: if `samples` is not a power of 2, or for a single run.

    Accuracy: 1e-5 absolute for the defaults and a few inputs.

    Source: derived here.

    >>> import jax.numpy as jnp
    >>> from orderparam.networks.fully_connected import fully_connected
    >>> x = jnp.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    >>> system = BooleanTraining(x[:2], jnp.ones(2), x[2:], fully_connected(1, None, "erf"))
    >>> float(wide_distances(system).squared_distance[0])
    0.0
    """
    laws = three_laws(system, samples, runs, seed)
    return LawDistances(squared_distance=jnp.sum((laws - laws[0]) ** 2, axis=1))


def three_laws(
    system: BooleanTraining, samples: int = 4096, runs: int = 4, seed: int = 0
) -> Float[Array, "law pattern"]:
    """Probabilities of functions under the three laws: tangent kernel, regression posterior, label
    posterior."""
    options = {"samples": samples, "runs": runs, "seed": seed}
    verbs = (tangent_kernel_law, regression_posterior, label_posterior)
    return jnp.stack([verb.fn(system, **options).probability for verb in verbs])


def likely(
    probability: Float[Array, "pattern"], law: Float[Array, "pattern"]
) -> Float[Array, "group"]:
    """Probabilities of the half of the functions that is likelier under `law`, in the order of
    patterns, and of all other functions together."""
    shown = jnp.sort(jnp.argsort(-law)[: len(law) // 2])
    chosen = probability[shown]
    return jnp.append(chosen, jnp.sum(probability) - jnp.sum(chosen))


def _function_law(found: Array, error: Array, law: Array) -> FunctionLaw:
    return FunctionLaw(
        probability=found,
        likely=likely(found, law),
        uncertainty=error,
        likely_uncertainty=jnp.sqrt(likely(error**2, law)),
    )


def trained_kernel(
    system: BooleanTraining, inputs: Float[Array, "example input"]
) -> Float[Array, "example example"]:
    """The kernel of the layers that are trained."""
    kernel = system.architecture.kernel(inputs)
    return kernel.nngp if system.trained == "readout" else kernel.ntk


def _tangent_law(
    system: BooleanTraining, samples: int, runs: int, seed: int
) -> tuple[Array, Array]:
    """The probabilities of `tangent_kernel_law`, and their standard errors."""
    k, theta, train = _kernels(system)
    return _law(system, k, k if system.trained == "readout" else theta, train, samples, runs, seed)


def _kernels(system: BooleanTraining) -> tuple[Array, Array, int]:
    """K and Theta on training and test inputs, and the number of training inputs."""
    both = system.architecture.kernel(jnp.concatenate([system.inputs, system.test_inputs]))
    return both.nngp, both.ntk, len(system.labels)


def _law(
    system: BooleanTraining,
    k: Array,
    theta: Array,
    train: int,
    samples: int,
    runs: int,
    seed: int,
) -> tuple[Array, Array]:
    """Orthant probabilities of the outputs after training with the tangent kernel theta from the
    prior with kernel k, and their standard errors."""
    v = jnp.linalg.solve(theta[:train, :train], theta[:train, train:]).T
    mixed = v @ k[:train, train:]
    covariance = k[train:, train:] + v @ k[:train, :train] @ v.T - mixed - mixed.T
    # An output that the training set determines has variance 0, up to rounding of either sign.
    least = 1e-12 * jnp.trace(k) / len(k)
    covariance = covariance + least * jnp.eye(len(covariance))
    signs = patterns(len(system.test_inputs))
    return orthant_probabilities(v @ system.labels, covariance, signs, samples, runs, seed)
