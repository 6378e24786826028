"""Experiments of in-context learning: regression on quadratic features, a layer of linear attention
with all its weights trained, and the Bayes estimate that knows the training tasks."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.solve.minimum import lbfgs_minimum
from orderparam.systems.in_context.model import LinearAttention
from orderparam.systems.in_context.theory import (
    TaskMoments,
    fresh_moments,
    mean_error,
    moments_of,
)

Scalar = Float[Array, ""]


class TrainedErrors(Result):
    """Errors of one layer of linear attention, trained once.

    Fields:
        icl_error: mean squared error on fresh tasks.
        idg_error: mean squared error on the training tasks, in new contexts.
        train_error: mean squared error on the training sequences.
        task_gap: icl_error - idg_error.
    """

    icl_error: Scalar
    idg_error: Scalar
    train_error: Scalar
    task_gap: Scalar


class TrainedAttention(Result):
    """Errors of one layer of linear attention whose value vector is trained too.

    Fields:
        icl_error: mean squared error on fresh tasks.
        idg_error: mean squared error on the training tasks, in new contexts.
        train_error: mean squared error on the training sequences.
        task_gap: icl_error - idg_error.
        label_share: |v_y|/|v|, the share of the value vector v on the label; 1 in the theory.
        residual: largest entry, at the end of training, of the gradient of the loss divided by n.
        converged: whether the residual is below 1e-5.
    """

    icl_error: Scalar
    idg_error: Scalar
    train_error: Scalar
    task_gap: Scalar
    label_share: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


class PosteriorErrors(Result):
    """Errors of the Bayes estimate whose prior is the set of training tasks.

    Fields:
        icl_error: mean squared error on fresh tasks.
        idg_error: mean squared error on the training tasks, in new contexts.
        task_gap: icl_error - idg_error.
    """

    icl_error: Scalar
    idg_error: Scalar
    task_gap: Scalar


@experiment
def quadratic_regression(system: LinearAttention, key: PRNGKeyArray) -> TrainedErrors:
    r"""Errors of linear attention with a fixed value vector, trained to the minimum of its loss.

    Tasks and sequences are drawn, and $\Gamma$ is found by ridge regression on the features $x
    \otimes \tilde h$. Given the task, $h$ and $s$ are drawn from their exact joint law. This needs
    d + 2 random numbers for each sequence, and no context has to be drawn. Test errors are exact
    averages over contexts and queries, and over the law of fresh tasks or the k drawn tasks.

    Returns:
        Errors at dimension `input_dim`, with `context_ratio`, `task_ratio` and `sample_ratio`
        rounded to whole numbers of examples, tasks and sequences.

    Raises:
        ValueError: for an infinite `sample_ratio`, and for task variances whose number does not
        divide d.

    Cost: n d^4 + d^6/3 operations with n = tau d^2: one second at d = 40 and tau = 3.

    Source: the experiment of Lu, Letey, Zavatone-Veth, Maiti, Pehlevan (2025), at any ridge.

    >>> import jax
    >>> found = quadratic_regression(LinearAttention(1.0, 1.0, 2.0, input_dim=8), jax.random.key(0))
    >>> bool(found.idg_error > 0.1)
    True
    """
    return _regression(system, key)


@experiment
def extrapolated_regression(system: LinearAttention, key: PRNGKeyArray) -> TrainedErrors:
    r"""Errors of `quadratic_regression`, extrapolated to infinite dimension.

    The layer is trained once at d = `input_dim`, twice at 3 d/4 and four times at d/2. The mean
    errors are fitted by $a + b/d$ with the numbers of trainings as weights, and a is returned.
    Because a is a fitted parameter it scatters from key to key, and single values may lie below the
    noise variance, the smallest possible error.

    Returns:
        The fitted errors for infinite d. The remaining finite-size correction is of order 1/d^2.

    Raises:
        ValueError: for the systems that `quadratic_regression` refuses.

    Source: derived here.

    >>> import jax
    >>> found = extrapolated_regression(LinearAttention(1.0, 1.0, 2.0, 0.1, 0.1), jax.random.key(0))
    >>> found.icl_error.shape
    ()
    """
    largest = system.size("input_dim")
    sizes, counts = (largest, 3 * largest // 4, largest // 2), (1, 2, 4)
    inverse, values = [], []
    for size, count in zip(sizes, counts):
        at = system.with_(input_dim=size)
        for draw in range(count):
            inverse.append(1 / size)
            values.append(_regression(at, jax.random.fold_in(key, 100 * size + draw)))
    design = jnp.stack([jnp.ones(len(inverse)), jnp.asarray(inverse)], axis=1)
    intercept = jnp.linalg.pinv(design)[0]
    return jax.tree.map(lambda *each: intercept @ jnp.stack(each), *values)


@experiment
def trained_attention(system: LinearAttention, key: PRNGKeyArray) -> TrainedAttention:
    r"""Errors of a whole layer of linear attention, trained by L-BFGS from small weights.

    The tokens are $Z_i = (\sqrt d x_i, y_i)$, and the layer predicts $v^T (Z^T Z/l) M x$. Both the
    value vector $v$ (d+1 numbers) and the product of keys and queries $M$ ((d+1) x d numbers) are
    trained. The loss is

    $$ \sum_\mu (y - \hat y)^2 + \frac nd \frac\lambda d |v|^2 |M|^2 $$

    which does not change under $v \to c v$, $M \to M/c$. If $v$ has only its label component, this
    is the loss of `quadratic_regression`. The loss is not convex: small layers have minima in which
    the label component of $v$ is small. The layer is therefore trained twice, from small random
    weights and from a value vector along the label, and the lower of the two minima is kept. Test
    errors are averages over 4,000 new contexts and exact averages over queries.

    Raises:
        ValueError: for the systems that `quadratic_regression` refuses.

    Cost: some hundred passes over n (d+1)^2 numbers: a few seconds at d = 24 and tau = 3.

    Source: the layer of Lu, Letey, Zavatone-Veth, Maiti, Pehlevan (2025) before their reduction.

    >>> import jax
    >>> found = trained_attention(
    ...     LinearAttention(1.0, 1.0, 2.0, 0.1, 0.1, input_dim=6), jax.random.key(0)
    ... )
    >>> bool(found.converged)
    True
    """
    dimension, context, _, _ = system.sizes()
    task_key, data_key, start_key, test_key = jax.random.split(key, 4)
    tasks, assigned = _draw_tasks(system, task_key)
    test_context, test_noise = _test_context(system, dimension)
    picked, fresh = jax.random.split(test_key)
    again = tasks[jax.random.randint(picked, (_TESTS,), 0, len(tasks))]
    variances = _per_direction(system)[1]
    unseen = _sphere(fresh, _TESTS, variances)
    layer, train, residual = _train_layer(
        data_key, start_key, assigned, system.noise, system.ridge, context
    )
    icl, idg = (
        _layer_error(jax.random.fold_in(test_key, place), layer, each, test_noise, test_context)
        for place, each in enumerate((unseen, again))
    )
    values = layer[0]
    share = jnp.abs(values[-1]) / jnp.linalg.norm(values)
    return TrainedAttention(
        icl_error=icl,
        idg_error=idg,
        train_error=train,
        task_gap=icl - idg,
        label_share=share,
        residual=residual,
        converged=residual < 1e-5,
    )


@experiment
def task_posterior(
    system: LinearAttention, key: PRNGKeyArray, *, sequences: int = 400
) -> PosteriorErrors:
    r"""Errors of the Bayes estimate whose prior is the k training tasks, with equal weights.

    $$ \hat w = \sum_j w_j\, \mathrm{softmax}_j\!\left( -\frac{|Y - X w_j|^2}{2 \rho'} \right) $$

    with the noise variance `test_noise` $\rho'$ and k = `task_ratio` * d. Its errors are averaged
    over random contexts of fresh tasks and of training tasks. On the training tasks no estimate is
    better; on a fresh task the estimate is close to the nearest of the k training tasks.

    Args:
        sequences: number of contexts over which each of the two errors is averaged.

    Returns:
        Errors at dimension `input_dim`; averages over queries are exact.

    Raises:
        ValueError: for infinitely many training tasks, and for labels without noise.

    Source: the discrete estimator of Raventos, Paul, Chen, Ganguli (2023), in Lu et al. (2025).

    >>> import jax
    >>> found = task_posterior(LinearAttention(2.0, 1.0, 2.0, 0.1), jax.random.key(0))
    >>> bool(found.idg_error < found.icl_error)
    True
    """
    dimension, _, _, count = system.sizes()
    if count is None:
        raise ValueError("task_ratio = inf: must be finite, for a prior of k tasks")
    context, noise = _test_context(system, dimension)
    if float(noise) <= 0:
        raise ValueError(f"test_noise = {float(noise):g}: must be above 0, for a posterior")
    task_key, pick_key, fresh_key, known_key, new_key = jax.random.split(key, 5)
    tasks, _ = _draw_tasks(system, task_key)
    again = tasks[jax.random.randint(pick_key, (sequences,), 0, count)]
    unseen = _sphere(fresh_key, sequences, _per_direction(system)[1])
    idg = _posterior_error(known_key, tasks, again, noise, context)
    icl = _posterior_error(new_key, tasks, unseen, noise, context)
    return PosteriorErrors(icl_error=icl, idg_error=idg, task_gap=icl - idg)


_TESTS = 4000


def _per_direction(system: LinearAttention) -> tuple[Array, Array]:
    """Variances of the training tasks and of fresh tasks along each of the d directions."""
    dimension = system.size("input_dim")
    given, fresh = system.task_law
    if dimension % len(given):
        raise ValueError(
            f"input_dim = {dimension}: must be a multiple of the {len(given)} entries of "
            "task_variances"
        )
    copies = dimension // len(given)
    return jnp.tile(given, copies), jnp.tile(fresh, copies)


def _test_context(system: LinearAttention, dimension: int) -> tuple[int, Any]:
    """Length of a test context, in examples, and variance of its label noise."""
    ratio, noise = system.test_law
    return max(1, round(float(ratio) * dimension)), noise


def _sphere(key: PRNGKeyArray, count: int, variances: Array) -> Float[Array, "task input"]:
    """Tasks C^(1/2) u with u uniform on the sphere |u|^2 = d."""
    u = jax.random.normal(key, (count, len(variances)))
    return u * jnp.sqrt(variances * len(variances)) / jnp.linalg.norm(u, axis=1, keepdims=True)


def _draw_tasks(system: LinearAttention, key: PRNGKeyArray) -> tuple[Array, Array]:
    """The training tasks and the task of every sequence."""
    _, _, sequences, count = system.sizes()
    return _assigned_tasks(key, _per_direction(system)[0], sequences, count)


@eqx.filter_jit
def _assigned_tasks(
    key: PRNGKeyArray, variances: Array, sequences: int, count: int | None
) -> tuple[Array, Array]:
    draw_key, pick_key = jax.random.split(key)
    if count is None:
        tasks = _sphere(draw_key, sequences, variances)
        return tasks, tasks
    tasks = _sphere(draw_key, count, variances)
    return tasks, tasks[jax.random.randint(pick_key, (sequences,), 0, count)]


def _regression(system: LinearAttention, key: PRNGKeyArray) -> TrainedErrors:
    dimension, context, _, count = system.sizes()
    variances, fresh = _per_direction(system)
    task_key, data_key = jax.random.split(key)
    tasks, assigned = _draw_tasks(system, task_key)
    test_context, test_noise = _test_context(system, dimension)
    # With infinitely many training tasks the errors are averaged over the known law of tasks; with
    # k training tasks they are averaged over these tasks.
    seen = (
        fresh_moments(variances, test_noise, test_context)
        if count is None
        else moments_of(tasks, test_noise, test_context)
    )
    unseen = fresh_moments(fresh, test_noise, test_context)
    length = jnp.asarray(float(context))
    return _solve(data_key, assigned, system.noise, system.ridge, length, seen, unseen)


@eqx.filter_jit
def _solve(
    key: PRNGKeyArray,
    tasks: Float[Array, "sequence input"],
    noise: Any,
    ridge: Any,
    context: Any,
    seen: TaskMoments,
    unseen: TaskMoments,
) -> TrainedErrors:
    sequences, dimension = tasks.shape
    query_key, label_key, context_key = jax.random.split(key, 3)
    x = jax.random.normal(query_key, tasks.shape) / jnp.sqrt(dimension)
    y = jnp.sum(x * tasks, axis=1) + jnp.sqrt(noise) * jax.random.normal(label_key, (sequences,))
    summary = drawn_summaries(context_key, tasks, noise, context)
    features = (x[:, :, None] * summary[:, None, :]).reshape(sequences, -1)
    penalty = ridge * sequences / dimension
    # The system is solved with the smaller of the two Gram matrices. A ridge of 0 means the limit
    # of small ridges: a ridge of the size of rounding errors takes its place.
    dual = sequences < features.shape[1]
    gram = features @ features.T if dual else features.T @ features
    tiny = 1e-13 * jnp.trace(gram) / len(gram)
    factor = cho_factor(gram + (penalty + tiny) * jnp.eye(len(gram)))
    weights = features.T @ cho_solve(factor, y) if dual else cho_solve(factor, features.T @ y)
    train = jnp.mean((features @ weights - y) ** 2)
    gamma = weights.reshape(dimension, dimension + 1)
    icl, idg = mean_error(gamma, unseen), mean_error(gamma, seen)
    return TrainedErrors(icl_error=icl, idg_error=idg, train_error=train, task_gap=icl - idg)


def drawn_summaries(
    key: PRNGKeyArray, tasks: Float[Array, "sequence input"], noise: Any, context: Any
) -> Float[Array, "sequence feature"]:
    r"""(h, s) of one context of every task, from its exact law.

    Labels are N(0, v) with v = |w|^2/d + rho, so that l s is v times a chi^2 variable with l
    degrees of freedom. Given the labels, the component of h along w is Gaussian, with the mean of a
    linear regression on the labels; the components orthogonal to w are Gaussian, because the inputs
    orthogonal to w are independent of the labels.
    """
    sequences, dimension = tasks.shape
    label_key, along_key, across_key = jax.random.split(key, 3)
    signal = jnp.sum(tasks**2, axis=1) / dimension
    variance = signal + noise
    squares = variance * jax.random.chisquare(label_key, context, shape=(sequences,))
    along = signal * squares / variance
    along += jnp.sqrt(squares * signal * noise / variance) * jax.random.normal(
        along_key, (sequences,)
    )
    across = jax.random.normal(across_key, tasks.shape) * jnp.sqrt(squares / dimension)[:, None]
    direction = tasks / (signal * dimension)[:, None]
    across -= jnp.sum(across * tasks, axis=1)[:, None] * direction
    h = dimension / context * (along[:, None] * direction + across)
    return jnp.concatenate([h, (squares / context)[:, None]], axis=1)


def _contexts(
    key: PRNGKeyArray, tasks: Float[Array, "sequence input"], noise: Any, context: int
) -> Float[Array, "sequence token token"]:
    """Matrix Z^T Z/l of one random context of every task, where Z are the tokens (sqrt(d) x, y)."""
    sequences, dimension = tasks.shape

    def one(key: PRNGKeyArray, task: Array) -> Array:
        input_key, noise_key = jax.random.split(key)
        x = jax.random.normal(input_key, (context, dimension))
        y = x @ task / jnp.sqrt(dimension)
        y += jnp.sqrt(noise) * jax.random.normal(noise_key, (context,))
        tokens = jnp.concatenate([x, y[:, None]], axis=1)
        return tokens.T @ tokens / context

    keys = jax.random.split(key, sequences)
    return jax.lax.map(lambda each: one(*each), (keys, tasks), batch_size=64)


@eqx.filter_jit
def _train_layer(
    data_key: PRNGKeyArray,
    start_key: PRNGKeyArray,
    tasks: Float[Array, "sequence input"],
    noise: Any,
    ridge: Any,
    context: int,
) -> tuple[tuple[Array, Array], Scalar, Scalar]:
    """Value vector and key-query product of a trained layer, its training error and its
    residual."""
    sequences, dimension = tasks.shape
    query_key, label_key, context_key = jax.random.split(data_key, 3)
    x = jax.random.normal(query_key, tasks.shape) / jnp.sqrt(dimension)
    y = jnp.sum(x * tasks, axis=1) + jnp.sqrt(noise) * jax.random.normal(label_key, (sequences,))
    seen = _contexts(context_key, tasks, noise, context)

    def unpack(flat: Array) -> tuple[Array, Array]:
        return flat[: dimension + 1], flat[dimension + 1 :].reshape(dimension + 1, dimension)

    def errors(flat: Array) -> Array:
        values, product = unpack(flat)
        return jnp.sum((seen @ values) @ product * x, axis=1) - y

    def loss(flat: Array) -> Scalar:
        values, product = unpack(flat)
        penalty = ridge / dimension**2 * jnp.sum(values**2) * jnp.sum(product**2)
        return jnp.mean(errors(flat) ** 2) + penalty

    small = 0.1 / jnp.sqrt(dimension) * jax.random.normal(start_key, ((dimension + 1) ** 2,))
    starts = jnp.stack([small, small.at[: dimension + 1].set(0.0).at[dimension].set(1.0)])
    found = jax.lax.map(lambda start: lbfgs_minimum(loss, start, tolerance=1e-6), starts)
    best = jnp.argmin(jax.lax.map(loss, found.value))
    layer = found.value[best]
    return unpack(layer), jnp.mean(errors(layer) ** 2), found.residual[best]


@eqx.filter_jit
def _layer_error(
    key: PRNGKeyArray,
    layer: tuple[Array, Array],
    tasks: Float[Array, "sequence input"],
    noise: Any,
    context: int,
) -> Scalar:
    """Mean squared error of a layer in new contexts, averaged exactly over queries and their
    labels."""
    values, product = layer
    guesses = (_contexts(key, tasks, noise, context) @ values) @ product
    return noise + jnp.mean(jnp.sum((guesses - tasks) ** 2, axis=1)) / tasks.shape[1]


@eqx.filter_jit
def _posterior_error(
    key: PRNGKeyArray,
    prior: Float[Array, "task input"],
    tasks: Float[Array, "sequence input"],
    noise: Any,
    context: int,
) -> Scalar:
    """Mean squared error of the posterior mean, averaged exactly over queries; the prior is uniform
    on the tasks of `prior`."""
    dimension = tasks.shape[1]

    def one(key: PRNGKeyArray, task: Array) -> Array:
        input_key, noise_key = jax.random.split(key)
        x = jax.random.normal(input_key, (context, dimension)) / jnp.sqrt(dimension)
        y = x @ task + jnp.sqrt(noise) * jax.random.normal(noise_key, (context,))
        misfit = jnp.sum((y[:, None] - x @ prior.T) ** 2, axis=0)
        guess = jax.nn.softmax(-misfit / (2 * noise)) @ prior
        return jnp.sum((guess - task) ** 2) / dimension

    keys = jax.random.split(key, len(tasks))
    return noise + jnp.mean(jax.lax.map(lambda each: one(*each), (keys, tasks), batch_size=32))
