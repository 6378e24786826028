"""Experiments on training on re-used data: students of finite dimension that are trained on drawn
examples."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from orderparam.core.result import along_time
from orderparam.core.verb import experiment
from orderparam.systems.reused_data.causal import start_rows
from orderparam.systems.reused_data.model import ReusedCommittee, ReusedData
from orderparam.systems.reused_data.theory import ReusedCommitteePath, ReusedPath


@experiment
def trained_student(system: ReusedData, key: PRNGKeyArray) -> ReusedPath:
    r"""Overlaps and errors of one student along training on one drawn set of examples.

    There are n = `sample_ratio` * `input_dim` examples, rounded. The teacher and the weights at the
    start lie in the plane of the first two axes and have exactly the overlaps of the system. This
    is no restriction, because inputs are isotropic. The test error is the exact average over
    Gaussian inputs at the measured overlaps.

    Raises:
        ValueError: if `input_dim` is not a whole number.

    Source: the experiment of Mignacco, Krzakala, Urbani, Zdeborová (2020).

    >>> import jax
    >>> found = trained_student(ReusedData(2.0, input_dim=20, steps=3), jax.random.key(0))
    >>> found.overlap.shape
    (4,)
    """
    path = _train(system, key, system.size("input_dim"), _examples(system))
    return ReusedPath(
        overlap=path.overlap[:, 0, 0],
        self_overlap=path.self_overlap[:, 0, 0],
        test_error=path.test_error,
        train_loss=path.train_loss,
    )


@experiment
def trained_committee(system: ReusedCommittee, key: PRNGKeyArray) -> ReusedCommitteePath:
    r"""Overlaps and errors of one committee along training on one drawn set of examples.

    Training is the same as in `trained_student`. The weights of the teachers, and of the students
    at the start, lie in the space of the first p + r axes.

    Raises:
        ValueError: if `input_dim` is not a whole number, or below the number of teachers plus that
            of students.

    Source: the experiment of Mignacco, Krzakala, Urbani, Zdeborová (2020), for a committee.

    >>> import jax
    >>> import numpy as np
    >>> system = ReusedCommittee(
    ...     2.0, np.diag([0.2, 0.15]), 0.5 * np.eye(2), input_dim=20, steps=3
    ... )
    >>> trained_committee(system, jax.random.key(0)).overlap.shape
    (4, 2, 2)
    """
    dimension, needed = system.size("input_dim"), sum(system.teacher_overlap.shape)
    if dimension < needed:
        raise ValueError(
            f"ReusedCommittee.input_dim = {dimension}: must be >= {needed}, one for each teacher "
            "and student"
        )
    return _train(system, key, dimension, _examples(system))


def _examples(system: ReusedData | ReusedCommittee) -> int:
    return max(1, round(float(system.sample_ratio) * int(system.input_dim)))


@eqx.filter_jit
def _train(
    system: ReusedData | ReusedCommittee, key: PRNGKeyArray, dimension: int, examples: int
) -> ReusedCommitteePath:
    input_key, noise_key, step_key = jax.random.split(key, 3)
    m0, q0 = system.start
    students, teachers = m0.shape
    problem, rate = system.problem, system.learning_rate
    scale = jnp.sqrt(dimension)
    # teachers are sqrt(d) times the first axes
    x = jax.random.normal(input_key, (examples, dimension)) / scale
    label = problem.label(scale * x[:, :teachers].T, jax.random.normal(noise_key, (examples,)))
    start = jnp.zeros((students, dimension))
    start = scale * start.at[:, : teachers + students].set(start_rows(m0, q0))

    def observed(w: Array, field: Array) -> ReusedCommitteePath:
        overlap, own = w[:, :teachers] / scale, w @ w.T / dimension
        return ReusedCommitteePath(
            overlap=overlap,
            self_overlap=own,
            test_error=problem.test_error(overlap, own),
            train_loss=jnp.mean(problem.loss(field, label)),
        )

    def step(
        state: tuple[Array, Array, Array], key: PRNGKeyArray
    ) -> tuple[tuple[Array, Array, Array], ReusedCommitteePath]:
        w, before, field = state
        batch_key, hot_key = jax.random.split(key)
        batch = jax.random.bernoulli(batch_key, system.batch_fraction, (examples,))
        slope = problem.slope(field, label) * batch / system.batch_fraction
        gradient = system.weight_decay * w + slope @ x
        hot = jnp.sqrt(2 * rate * system.temperature) * jax.random.normal(hot_key, w.shape)
        following = w - rate * gradient + system.momentum * (w - before) + hot
        field = following @ x.T
        return (following, w, field), observed(following, field)

    field = start @ x.T
    keys = jax.random.split(step_key, system.steps)
    _, along = jax.lax.scan(step, (start, start, field), keys)
    return along_time(observed(start, field), along)
