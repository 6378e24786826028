"""Approximate message passing for a committee machine, with K fields for every example and K
weights for every input.

    omega = X a - V g',  g = grad ln Z_y(omega, V),  A = (1/d) sum g g^T,
    b = a A + X^T g,  (a, v) = posterior(b, A),  V = (1/d) sum v

(Aubin et al. 2018). The entries of X have variance 1/d; a and v are mean and covariance of the
weights; omega and V are mean and covariance of the fields; g' is the g of the step before. V and A
are replaced by the nearest matrices that are symmetric under exchange of the units.
"""

import itertools
import math
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.needs import iteration
from orderparam.core.verb import experiment
from orderparam.solve.passing import growing_damping, pass_messages
from orderparam.systems.committee.channel import evidence, label_counts, label_values
from orderparam.systems.committee.model import Committee
from orderparam.systems.committee.theory import TeacherCommittee

_LEAST = 1e-6  # variance below which the weights count as recovered
_TEST = 4000  # new examples on which the error is measured


class CommitteePassing(TeacherCommittee):
    """Result of message passing on one random problem.

    Fields:
        steps: number of iterations.
        residual: root mean square change of the estimates in the last iteration, before damping.
    """

    steps: Float[Array, ""]
    residual: Float[Array, ""]


@experiment(needs=iteration("damping", "max_steps", "tolerance"))
def message_passing(
    system: Committee,
    key: PRNGKeyArray,
    *,
    damping: float = 0.2,
    max_steps: int = 500,
    tolerance: float = 1e-4,
    start: Literal["uninformed", "informed"] = "uninformed",
) -> CommitteePassing:
    r"""Overlaps and classification error that approximate message passing reaches on one random
    problem.

    X holds the inputs in its rows, a and v are the posterior mean and covariance of the weights,
    $\omega$ and V are the mean and covariance of the fields, and $Z_y(\omega, V)$ is the
    probability of the label. "posterior" gives a and v for weights that are observed as b with
    precision A. One iteration is

    $$ \omega = X a - V g', \quad g = \nabla \ln Z_y(\omega, V), \quad A = \frac1d \sum g g^T,
          \qquad
       b = a A + X^T g, \quad (a, v) = \mathrm{posterior}(b, A), \quad V = \frac1d \sum v $$

    with g' the g of the iteration before and d = `input_dim`. `overlap` and `cross_overlap` are
    those of the best assignment of estimates to units, because labels do not determine the order of
    the units; for a parity, whose labels do not determine the signs of the weights either, moduli
    of overlaps are taken. `classification_error` is measured on 4000 new examples.

    Args:
        damping: share of the previous state that is kept in the first quarter of `max_steps`; in
            the k-th quarter it is damping^(1/k).
        max_steps: largest number of iterations.
        tolerance: root mean square change of the estimate at which the iteration ends.
        start: "uninformed" starts at random estimates of standard deviation 0.1, "informed" at the
            true weights plus such estimates.

    Raises:
        ValueError: for a number of examples that rounds to zero.

    Accuracy: `converged` is true if the iteration converged; close to specialisation some runs
    do not.

    Source: Aubin, Maillard, Barbier, Krzakala, Macris, Zdeborová (2018).

    >>> import jax
    >>> found = message_passing(Committee(1.0, input_dim=100), jax.random.key(0))
    >>> bool(0 < found.overlap < 1), bool(found.converged)
    (True, True)
    """
    d, n = system.size("input_dim"), round(float(system.sample_ratio * system.input_dim))
    if n < 1:
        raise ValueError(
            f"Committee.sample_ratio = {float(system.sample_ratio):g}: leaves no sample at "
            f"input_dim = {d}"
        )
    weight_key, matrix_key, start_key, test_key = jax.random.split(key, 4)
    shape = (d, system.hidden)
    draw = jax.random.normal if system.weights == "gaussian" else jax.random.rademacher
    weights = draw(weight_key, shape).astype(float)
    matrix = jax.random.normal(matrix_key, (n, d)) / np.sqrt(d)
    labels = _place(system, matrix @ weights)
    # The examples are padded to a power of two with rows that are ignored, so that a few compiled
    # programs serve every number of examples.
    empty = 2 ** math.ceil(math.log2(n)) - n
    matrix, labels, seen = (
        jnp.pad(matrix, ((0, empty), (0, 0))),
        jnp.pad(labels, (0, empty)),
        jnp.arange(n + empty) < n,
    )
    noise = 0.1 * jax.random.normal(start_key, shape)
    first = noise if start == "uninformed" else weights + noise
    kind, numbers = (system.hidden, system.rule), (jnp.asarray(damping), jnp.asarray(tolerance))
    found = _passing(*kind, system.weights, matrix, labels, seen, first, *numbers, max_steps)
    estimate, variance, steps, residual, converged = found
    own, cross = _overlaps(system, np.asarray(weights.T @ estimate) / d)
    test = jax.random.normal(test_key, (_TEST, d)) / np.sqrt(d)
    wrong = _wrong(*kind, test @ estimate, variance, _place(system, test @ weights))
    return CommitteePassing(
        overlap=jnp.asarray(own),
        cross_overlap=jnp.asarray(cross),
        error=jnp.mean(weights**2) - 2 * own + jnp.mean(estimate**2),
        classification_error=wrong,
        converged=converged,
        steps=steps,
        residual=residual,
    )


def _place(system: Committee, fields: Float[Array, "sample hidden"]) -> Float[Array, "sample"]:
    """Label of each example, as its index in the order of `label_values`."""
    signs = jnp.sign(fields)
    label = (
        jnp.sign(jnp.sum(signs, axis=-1)) if system.rule == "majority" else jnp.prod(signs, axis=-1)
    )
    return jnp.searchsorted(jnp.asarray(label_values(system.hidden, system.rule)), label)


def _own_and_common(matrix: Float[Array, "hidden hidden"]) -> tuple[Array, Array]:
    """Numbers D and C of the matrix D 1 - C 11^T that is nearest to a given one.

    D is kept positive and C below D/K, so that this matrix is positive definite.
    """
    hidden = len(matrix)
    common = -(jnp.sum(matrix) - jnp.trace(matrix)) / max(hidden * (hidden - 1), 1)
    own = jnp.maximum(jnp.trace(matrix) / hidden + common, _LEAST)
    return own, jnp.minimum(common, own * (1 - 1e-4) / hidden)


@partial(jax.jit, static_argnames=("hidden", "rule", "law", "max_steps"))
def _passing(
    hidden: int,
    rule: str,
    law: str,
    matrix: Float[Array, "sample input"],
    labels: Float[Array, "sample"],
    seen: Bool[Array, "sample"],
    first: Float[Array, "input hidden"],
    damping: Float[Array, ""],
    tolerance: Float[Array, ""],
    max_steps: int,
) -> tuple[Array, Array, Array, Array, Array]:
    """Estimates of the weights, their mean covariance, the number of steps, the change in the last
    step, and whether the iteration converged.
    """
    d, identity = matrix.shape[1], jnp.eye(hidden)
    counts = label_counts(hidden, rule)
    states = jnp.asarray(list(itertools.product((-1.0, 1.0), repeat=hidden)))

    def posterior(b: Array, precision: Array) -> tuple[Array, Array]:
        if law == "gaussian":
            spread = jnp.linalg.inv(identity + precision)
            return b @ spread, spread
        height = b @ states.T - jnp.sum(states * (states @ precision), axis=-1) / 2
        share = jax.nn.softmax(height, axis=-1)
        mean = share @ states
        return mean, jnp.einsum("ds,sk,sl->kl", share, states, states) / d - mean.T @ mean / d

    def step(state: tuple) -> tuple:
        a, v, g = state
        own, common = _own_and_common(v)
        variance = own * identity - common
        # The Onsager term subtracts what the example itself contributed to the estimate a.
        omega = matrix @ a - g @ variance
        value, gradient = evidence(omega, own, common, counts)
        chosen = jnp.take_along_axis(value, labels[:, None], axis=-1)
        slope = jnp.take_along_axis(gradient, labels[:, None, None], axis=1)[:, 0]
        fresh = jnp.where(seen[:, None] & (chosen > 1e-13), slope / jnp.maximum(chosen, 1e-13), 0.0)
        own, common = _own_and_common(fresh.T @ fresh / d)
        precision = own * identity - common
        mean, spread = posterior(a @ precision + matrix.T @ fresh, precision)
        return mean, spread, fresh

    last, count, change = pass_messages(
        step,
        (first, identity, jnp.zeros((matrix.shape[0], hidden))),
        tolerance=tolerance,
        max_steps=max_steps,
        damping=growing_damping(damping, max_steps),
        is_uncertain=lambda state: jnp.trace(state[1]) > _LEAST * hidden,
    )
    a, v, _ = last
    done = jnp.all(jnp.isfinite(a)) & ((change <= tolerance) | (jnp.trace(v) <= _LEAST * hidden))
    return a, v, count.astype(float), change, done


@partial(jax.jit, static_argnames=("hidden", "rule"))
def _wrong(
    hidden: int,
    rule: str,
    fields: Float[Array, "sample hidden"],
    variance: Float[Array, "hidden hidden"],
    labels: Float[Array, "sample"],
) -> Float[Array, ""]:
    """Fraction of examples whose label is not the likeliest one, given mean and covariance of their
    fields."""
    chance, _ = evidence(fields, *_own_and_common(variance), label_counts(hidden, rule))
    return jnp.mean(jnp.argmax(chance, axis=-1) != labels, dtype=float)


def _overlaps(system: Committee, matrix: np.ndarray) -> tuple[float, float]:
    """Overlaps Q_11 and Q_12 for the best assignment of estimates to units.

    For a parity the signs of the weights of two units may change together, and moduli are taken.
    """
    size = np.abs(matrix) if system.rule == "parity" else matrix
    units = np.arange(system.hidden)
    best = max(itertools.permutations(units), key=lambda order: np.sum(size[units, list(order)]))
    own = np.mean(size[units, list(best)])
    pairs = max(system.hidden * (system.hidden - 1), 1)
    return float(own), float((np.sum(size) - system.hidden * own) / pairs)
