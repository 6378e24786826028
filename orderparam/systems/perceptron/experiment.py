"""Simulated students: all students enumerated or a sample of them at a temperature, and students
that are trained by a rule on a set or on a stream of examples.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.channels import SignLabels
from orderparam.core.needs import at_most, equal
from orderparam.core.verb import experiment
from orderparam.losses.margin import shortest_vector
from orderparam.systems.perceptron.model import BatchPerceptron, OnlinePerceptron, ThermalPerceptron
from orderparam.systems.perceptron.rules import OnlineError, RuleError
from orderparam.systems.perceptron.theory import Learner

# ------------------------------------------------------------------------------------------------
# Students of a binary teacher: all of them enumerated, or sampled by parallel tempering.

_MOST = 19  # weights whose 2^N states are enumerated


class Counted(Learner):
    """Exact averages over all students on one training set.

    Fields:
        free_entropy: (1/N) ln Z of the training set.
        entropy: entropy of the students per weight.
    """

    free_entropy: Float[Array, ""]
    entropy: Float[Array, ""]


class Tempered(Learner):
    """Averages over sampled students on one training set.

    Fields:
        exchanges: acceptance rate of exchanges between two neighbouring temperatures, for the pair
            with the smallest rate.
    """

    exchanges: Float[Array, ""]


_BINARY = {"weights": equal("binary")}


def _counts(system: ThermalPerceptron) -> tuple[int, int]:
    """Numbers of weights and of examples. Raises `ValueError` if there is no example."""
    n, p = system.size("input_dim"), round(float(system.sample_ratio * system.input_dim))
    if p < 1:
        raise ValueError(
            f"ThermalPerceptron.sample_ratio = {float(system.sample_ratio):g}: leaves no example "
            f"at input_dim = {n}"
        )
    return n, p


@experiment(needs=_BINARY | {"input_dim": at_most(_MOST, why="every student is counted")})
def enumerated_students(system: ThermalPerceptron, key: PRNGKeyArray) -> Counted:
    r"""Exact averages over all $2^N$ binary students on one random training set.

    The training set is that of `parallel_tempering` with the same key. At T = 0 the average is over
    the students without errors.

    Raises:
        ValueError: for spherical weights, more than 19 weights, or no example.

    Cost: $2^N \alpha N^2$ operations.

    Source: derived here, by enumeration; the limit of large N is that of Györgyi (1990).

    >>> import jax
    >>> found = enumerated_students(ThermalPerceptron(0.5, 1.0, input_dim=9), jax.random.key(0))
    >>> bool(0 < found.teacher_overlap < 1)
    True
    """
    n, p = _counts(system)
    inputs = jax.random.normal(key, (p, n))
    return _count(inputs, system.temperature)


@jax.jit
def _count(inputs: Float[Array, "train input"], temperature: Float[Array, ""]) -> Counted:
    """Averages over all students of a teacher whose weights are all +1.

    Changing the sign of an input component leaves the law of the inputs unchanged, so that all
    binary teachers are equivalent.
    """
    p, n = inputs.shape
    labels = jnp.sign(jnp.sum(inputs, axis=1))
    states = 1.0 - 2.0 * ((jnp.arange(2**n)[:, None] >> jnp.arange(n)) & 1)
    errors = jnp.sum((states @ inputs.T) * labels <= 0, axis=1)
    overlap = jnp.mean(states, axis=1)
    warm = jnp.where(temperature > 0, temperature, 1.0)
    energy = jnp.where(temperature > 0, errors / warm, jnp.where(errors > 0, jnp.inf, 0.0))
    log_sum = jax.nn.logsumexp(-energy)
    share = jnp.exp(-energy - log_sum)
    mean = share @ states
    train = share @ errors
    entropy = log_sum + jnp.where(temperature > 0, train / warm, 0.0)
    return Counted(
        teacher_overlap=share @ overlap,
        self_overlap=jnp.mean(mean**2),
        classification_error=share @ jnp.arccos(jnp.clip(overlap, -1, 1)) / np.pi,
        mistakes=train / p,
        converged=jnp.asarray(True),
        free_entropy=log_sum / n,
        entropy=entropy / n,
    )


@experiment(needs=_BINARY)
def parallel_tempering(
    system: ThermalPerceptron,
    key: PRNGKeyArray,
    *,
    levels: int = 12,
    hottest: float = 4.0,
    warmup: int = 500,
    sweeps: int = 1000,
) -> Tempered:
    """Averages over binary students at a temperature, sampled by parallel tempering on one random
    training set.

    Two independent ladders are simulated. A ladder is a set of students, one at each of several
    temperatures that form a geometric sequence. Metropolis' rule flips single weights, and after
    each sweep students at neighbouring temperatures are exchanged. `self_overlap` is the overlap of
    the mean weights of the two coldest students.

    Args:
        levels: number of temperatures of a ladder.
        hottest: highest temperature; it is raised to twice the lowest temperature if it is smaller.
            The lowest temperature is that of the system, or 0.05 if the system is colder.
        warmup: sweeps that are discarded before the measurement.
        sweeps: measured sweeps.

    Raises:
        ValueError: for spherical weights, or no example.

    Accuracy: `converged` is true if the two ladders agree in R within their scatter and every
    pair of temperatures accepts more than 2 % of its exchanges. Beyond the transition both ladders
    may stay in the metastable state.

    Source: Seung, Sompolinsky, Tishby (1992), for the theory that it tests; the simulation is
    derived here.

    >>> import jax
    >>> system = ThermalPerceptron(0.5, 1.0, input_dim=15)
    >>> found = parallel_tempering(system, jax.random.key(0), levels=4, warmup=50, sweeps=100)
    >>> bool(0 < found.teacher_overlap < 1), found.exchanges.shape
    (True, ())
    """
    n, p = _counts(system)
    first_key, run_key = jax.random.split(jax.random.fold_in(key, 1))
    inputs = jax.random.normal(key, (p, n))
    signed = inputs * jnp.sign(jnp.sum(inputs, axis=1))[:, None]  # the teacher is all ones
    coldest = jnp.maximum(system.temperature, 0.05)
    ladder = jnp.geomspace(coldest, jnp.maximum(hottest, 2 * coldest), levels)
    starts = jax.random.rademacher(first_key, (2, levels, n), float)
    cold, errors, accepted = _ladders(
        signed, ladder, starts, jax.random.split(run_key, 2), warmup + sweeps
    )
    return _tempered(cold[:, warmup:], errors[:, warmup:] / p, accepted)


@partial(jax.jit, static_argnames=("sweeps",))
def _ladders(
    signed: Array, ladder: Array, starts: Array, keys: Array, sweeps: int
) -> tuple[Array, Array, Array]:
    """Run both ladders. Returned are, after each sweep, the weights of each ladder's coldest
    student and its number of errors, and for each pair of neighbouring temperatures the fraction of
    exchanges that were accepted.
    """
    levels = len(ladder)
    inverse = 1 / ladder

    def one(spins: Array, key: Array) -> tuple[Array, Array, Array]:
        def flip(state: tuple, drawn: tuple) -> tuple[tuple, None]:
            spins, fields, errors = state
            site, uniform = drawn
            # fields are y w.x of all examples; those at most 0 are errors
            moved = fields - 2 * spins[:, site, None] * signed[:, site]
            after = jnp.sum(moved <= 0, axis=1)
            taken = uniform < jnp.exp((errors - after) * inverse)
            spins = spins.at[:, site].multiply(jnp.where(taken, -1.0, 1.0))
            return (
                spins,
                jnp.where(taken[:, None], moved, fields),
                jnp.where(taken, after, errors),
            ), None

        def sweep(state: tuple, drawn: tuple) -> tuple[tuple, tuple]:
            key, parity = drawn
            flip_key, exchange_key = jax.random.split(key)
            sites = jnp.arange(spins.shape[1])
            (weights, fields, errors), _ = jax.lax.scan(
                flip, state, (sites, jax.random.uniform(flip_key, (len(sites), levels)))
            )
            # Levels i and i + 1 are exchanged in even sweeps for even i, and in odd sweeps for odd
            # i.
            lower = jnp.arange(levels - 1)
            rise = (inverse[lower] - inverse[lower + 1]) * (errors[lower] - errors[lower + 1])
            paired = lower % 2 == parity
            taken = paired & (jax.random.uniform(exchange_key, (levels - 1,)) < jnp.exp(rise))
            order = jnp.arange(levels)
            order = order + jnp.append(taken, False) - jnp.append(False, taken)
            state = weights[order], fields[order], errors[order]
            return state, (state[0][0], state[2][0], taken.astype(float))

        fields = spins @ signed.T
        begin = (spins, fields, jnp.sum(fields <= 0, axis=1))
        keys = jax.random.split(key, sweeps)
        _, (cold, errors, taken) = jax.lax.scan(sweep, begin, (keys, jnp.arange(sweeps) % 2))
        return cold, errors, 2 * jnp.mean(taken, axis=0)

    return jax.vmap(one)(starts, keys)


@jax.jit
def _tempered(
    cold: Float[Array, "ladder sweep input"],
    mistakes: Float[Array, "ladder sweep"],
    accepted: Float[Array, "ladder pair"],
) -> Tempered:
    overlap, means = jnp.mean(cold, axis=-1), jnp.mean(cold, axis=1)
    distance = jnp.abs(jnp.diff(jnp.mean(overlap, axis=1)))[0]
    return Tempered(
        teacher_overlap=jnp.mean(overlap),
        self_overlap=jnp.mean(means[0] * means[1]),
        classification_error=jnp.mean(jnp.arccos(jnp.clip(overlap, -1, 1))) / np.pi,
        mistakes=jnp.mean(mistakes),
        converged=(distance <= jnp.max(jnp.std(overlap, axis=1)) + 1e-12)
        & (jnp.min(accepted) > 0.02),
        exchanges=jnp.min(accepted),
    )


# ------------------------------------------------------------------------------------------------
# Students trained on a random set of examples, or on a stream of examples.

_BLOCK = 64  # examples of a stream that are drawn together


@experiment
def batch_student(system: BatchPerceptron, key: PRNGKeyArray) -> RuleError:
    """Overlap with the teacher of one student that a rule trains on one random training set.

    The weights of "maximal stability" are found exactly, by an active-set method.

    Raises:
        ValueError: for a number of examples that rounds to zero.

    Source: Opper, Kinzel, Kleinz, Nehl (1990).

    >>> import jax
    >>> found = batch_student(BatchPerceptron(2.0, "hebb", input_dim=200), jax.random.key(0))
    >>> bool(abs(found.teacher_overlap - 0.75) < 0.1)
    True
    """
    d, n = system.size("input_dim"), round(float(system.sample_ratio * system.input_dim))
    if n < 1:
        raise ValueError(
            f"BatchPerceptron.sample_ratio = {float(system.sample_ratio):g}: leaves no example at "
            f"input_dim = {d}"
        )
    return _batch(np.asarray(jax.random.normal(key, (n, d))) / np.sqrt(d), system.rule)


def _batch(inputs: Float[np.ndarray, "train input"], rule: str) -> RuleError:
    """Train a student whose teacher has all weights +1; all teachers are equivalent, because the
    law of the inputs is isotropic."""
    labels = np.sign(inputs.sum(axis=1))
    converged, stability = np.asarray(True), np.nan
    if rule == "hebb":
        weights = labels @ inputs
    elif rule == "pseudo-inverse":
        weights = np.linalg.lstsq(inputs, labels)[0]
    else:
        weights, converged = shortest_vector(inputs * labels[:, None], np.ones(len(labels)))
        stability = np.sqrt(inputs.shape[1]) / np.linalg.norm(weights)
    overlap = jnp.asarray(weights.sum() / (np.sqrt(inputs.shape[1]) * np.linalg.norm(weights)))
    return RuleError(
        teacher_overlap=overlap,
        classification_error=jnp.arccos(overlap) / np.pi,
        stability=jnp.asarray(stability),
        residual=jnp.zeros(()),
        converged=jnp.asarray(converged),
    )


@experiment
def online_student(system: OnlinePerceptron, key: PRNGKeyArray) -> OnlineError:
    r"""Overlap with the teacher of one student that uses each of alpha N examples once.

    Examples are drawn in blocks and are not stored. The optimal rule changes its variance V at each
    example by the step $V \leftarrow V + V^2 g'/N$, with $g'$ the derivative of g in the margin;
    the mean of $g'$ is $-E g^2$, as in `OnlinePerceptron`.

    Raises:
        ValueError: for a number of examples that rounds to zero.

    Source: Kinzel, Rujan (1990); Biehl, Schwarze (1992); Opper (1996) for the optimal rule.

    >>> import jax
    >>> found = online_student(OnlinePerceptron(2.0, "hebb", input_dim=200), jax.random.key(0))
    >>> bool(abs(found.teacher_overlap - 0.75) < 0.1)
    True
    """
    d, n = system.size("input_dim"), round(float(system.sample_ratio * system.input_dim))
    if n < 1:
        raise ValueError(
            f"OnlinePerceptron.sample_ratio = {float(system.sample_ratio):g}: leaves no example at "
            f"input_dim = {d}"
        )
    weights = _stream(key, jnp.asarray(n), system.rate, d, system.rule)
    length = jnp.linalg.norm(weights) / jnp.sqrt(d)
    cosine = jnp.mean(weights) / jnp.where(length == 0, 1.0, length)
    return OnlineError(
        teacher_overlap=cosine,
        length=length,
        classification_error=jnp.arccos(cosine) / jnp.pi,
        converged=jnp.isfinite(cosine) & (length > 0),
    )


@eqx.filter_jit
def _stream(
    key: PRNGKeyArray, count: Array, rate: Float[Array, ""] | float, d: int, rule: str
) -> Float[Array, "input"]:
    """Weights of the student after `count` examples; its teacher has all weights +1."""

    def learn(state: tuple, example: tuple) -> tuple[tuple, None]:
        weights, rest = state
        x, index = example
        label = jnp.sign(jnp.sum(x))  # the teacher is all ones
        margin = label * (x @ weights)
        if rule == "optimal":
            pull = rest * SignLabels().denoiser(1.0, margin, rest)
            information = -SignLabels().denoiser_slope(1.0, margin, rest)
        else:
            pull = (
                rate
                * {
                    "hebb": 1.0,
                    "rosenblatt": jnp.where(margin <= 0, 1.0, 0.0),
                    "adaline": 1 - margin,
                }[rule]
            )
            information = jnp.zeros(())
        seen = index < count
        weights = jnp.where(seen, weights + pull * label * x, weights)
        return (weights, jnp.where(seen, rest - rest**2 * information / d, rest)), None

    def block(number: Array, state: tuple) -> tuple:
        x = jax.random.normal(jax.random.fold_in(key, number), (_BLOCK, d)) / jnp.sqrt(d)
        return jax.lax.scan(learn, state, (x, number * _BLOCK + jnp.arange(_BLOCK)))[0]

    blocks = -(-count // _BLOCK)
    return jax.lax.fori_loop(0, blocks, block, (jnp.zeros(d), jnp.ones(())))[0]
