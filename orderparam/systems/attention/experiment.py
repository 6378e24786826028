"""Experiments of attention: message passing on drawn sequences, and a layer trained from two
starts."""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.channels.passing import Messages, passing
from orderparam.core.needs import iteration
from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.gaussian.points import normal_points
from orderparam.solve.minimum import lbfgs_minimum
from orderparam.systems.attention.model import (
    Branch,
    SeenSequence,
    TiedAttention,
    attention_cost,
    own_attention,
    target_attention,
)

Scalar = Float[Array, ""]


class PassedVector(Result):
    """The result of message passing for a vector that is observed through attention.

    Fields:
        overlap: |w.a|/d, the overlap of the estimate a, whose sign is arbitrary, with the vector.
        residual: root mean square change of the estimate in the last step.
        converged: whether the residual is small and the length of a agrees with its variance.
    """

    overlap: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


class TrainedState(Result):
    """Order parameters and errors of one trained layer of tied attention.

    Fields:
        self_overlap: q = s^2 |w|^2/d.
        teacher_overlap: theta = s^2 w.w*/d.
        positional_overlap: m = 1.w/d.
        free_energy: the training objective over d at its minimum.
        test_error: s^2 E|Y - S|^2 on new sequences, to three digits. At finite d, |y - y^|^2/d is
            larger by the contribution E sum (2 S_ll - 1)^2/d of the means of the tokens.
        residual: largest entry of the gradient of the objective divided by `ridge`.
        converged: whether the residual is below 1e-5.
    """

    self_overlap: Scalar
    teacher_overlap: Scalar
    positional_overlap: Scalar
    free_energy: Scalar
    test_error: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


@experiment(needs=iteration("damping", "max_steps", "tolerance"))
def sequence_passing(
    system: SeenSequence,
    key: PRNGKeyArray,
    *,
    first_overlap: float = 0.1,
    damping: float = 0.5,
    max_steps: int = 500,
    tolerance: float = 1e-4,
) -> PassedVector:
    r"""Overlap that message passing reaches on drawn sequences from a small first overlap.

    The tokens of all sequences are the rows of one matrix X with entries of variance 1/d. The
    fields of one sequence have a common unknown sign. With $\omega = X a - v g'$

    $$ g = \frac1v \left[ h \tanh\frac{h \cdot \omega}{v} - \omega \right] , \qquad
       a \leftarrow \frac{A a + X^T g}{1 + A} , \qquad v = \frac{1}{1 + A} . $$

    Here a and v are the estimate of the vector and its variance, g' is the g of the step before,
    and A is the precision $-\frac1d \sum \partial g/\partial \omega$, bounded from below. g depends
    on h only through the product $h h^T$, which the attention determines. The tokens have no
    preferred direction, so that the hidden vector can be placed along an axis. From a random
    estimate the overlap grows from $d^{-1/2}$ in a number of steps of order $\ln d$; a small first
    overlap avoids these steps. The overlap then grows above the threshold, and decays below it.
    From random estimates some runs at d = 1000 end in fixed points in which the signs of some
    sequences are wrong.

    Args:
        first_overlap: overlap of the first estimate with the vector, from 0 to below 1.
        damping: share of the state that is kept in each step, from 0 to below 1.
        max_steps: largest number of iterations.
        tolerance: root mean square change at which the iteration ends.

    Raises:
        ValueError: if the number of sequences rounds to 0, and for options outside of their ranges.

    Source: the algorithm of Troiani et al. (2025) for one layer.

    >>> import jax
    >>> found = sequence_passing(SeenSequence(0.4, 2, input_dim=300), jax.random.key(0))
    >>> bool(found.overlap > 0.3)
    True
    """
    if not 0 <= first_overlap < 1:
        raise ValueError(f"first_overlap = {first_overlap:g}: must be from 0 to below 1")
    d, tokens = system.size("input_dim"), system.size("tokens")
    count = _sequences(float(system.sample_ratio), d)
    data_key, start_key = jax.random.split(key)
    matrix = jax.random.normal(data_key, (count * tokens, d)) / math.sqrt(d)
    fields = math.sqrt(d) * matrix[:, 0].reshape(count, tokens)
    estimate = math.sqrt(first_overlap * (1 - first_overlap)) * jax.random.normal(start_key, (d, 1))
    estimate = estimate.at[0, 0].add(first_overlap * math.sqrt(d))
    start = Messages.first(estimate, len(matrix))._replace(variance=jnp.full(1, 1 - first_overlap))
    numbers = (jnp.asarray(damping), jnp.asarray(tolerance))
    found = passing(_signs, fields, matrix, start, *numbers, max_steps)
    overlap = jnp.abs(found.messages.estimate[0, 0]) / math.sqrt(d)
    return PassedVector(overlap=overlap, residual=found.residual, converged=found.converged)


@experiment
def trained_state(
    system: TiedAttention, key: PRNGKeyArray, *, branch: Branch = "semantic"
) -> TrainedState:
    r"""Order parameters and errors of a layer of tied attention trained on drawn sequences, from
    one of two starts.

    The minimum next to $w = 1_d$ (positional) or to $w = w_*$ (semantic) is found by L-BFGS on all
    sequences. With the same key the sequences are the same for both starts. The order parameters
    are those of the trained $w$. The test error is computed from them as an average over four
    Gaussian variables.

    Args:
        branch: "positional" or "semantic", the start.

    Raises:
        ValueError: if the number of sequences rounds to 0.

    Cost: some hundred passes over 2 n d numbers: one second at d = 400 and n = 800.

    Source: the experiment of Cui, Behrens, Krzakala, Zdeborova (2024).

    >>> import jax
    >>> found = trained_state(TiedAttention(sample_ratio=2.0, input_dim=60), jax.random.key(0))
    >>> bool(found.converged)
    True
    """
    d = system.size("input_dim")
    tokens, targets, teacher = drawn_sequences(system, key)
    start = jnp.ones(d) if branch == "positional" else teacher
    weights, residual, converged = _trained(system, tokens, targets, start)
    # the sign of the weights is arbitrary; it is chosen so that the overlap with the start is
    # positive
    weights = weights * jnp.sign(weights @ start)
    size = system.token_spread**2 * jnp.sum(weights**2) / d
    content = system.token_spread**2 * (weights @ teacher) / d
    position = jnp.mean(weights)
    energy = objective(system, weights, tokens, targets) / d
    error = _test_error(system, size, content, position)
    return TrainedState(
        self_overlap=size,
        teacher_overlap=content,
        positional_overlap=position,
        free_energy=energy,
        test_error=error,
        residual=residual,
        converged=converged,
    )


def _sequences(ratio: float, dimension: int) -> int:
    count = round(ratio * dimension)
    if count < 1:
        raise ValueError(f"sample_ratio = {ratio:g}: leaves no sequence at input_dim = {dimension}")
    return count


def _signs(omega: Array, v: Array, fields: Array) -> tuple[Array, Array]:
    """g and its derivatives, for rows grouped in sequences with one unknown sign each."""
    mean = omega.reshape(fields.shape)
    bias = jnp.tanh(jnp.sum(fields * mean, axis=1, keepdims=True) / v)
    gradient = (fields * bias - mean) / v
    slope = (fields**2 * (1 - bias**2) / v - 1) / v
    return gradient.reshape(omega.shape), slope.reshape(omega.shape)


class Sequences(NamedTuple):
    """Drawn data of a layer of tied attention.

    Fields:
        tokens: tokens x of every sequence.
        targets: targets y.
        teacher: teacher w*.
    """

    tokens: Float[Array, "sequence 2 input"]
    targets: Float[Array, "sequence 2 input"]
    teacher: Float[Array, "input"]


def drawn_sequences(system: TiedAttention, key: PRNGKeyArray) -> Sequences:
    """Training data of one run; the teacher lies on the sphere |w*|^2 = d."""
    d = system.size("input_dim")
    count = _sequences(float(system.sample_ratio), d)
    noise_key, teacher_key = jax.random.split(key)
    noise = system.token_spread * jax.random.normal(noise_key, (count, 2, d))
    teacher = jax.random.normal(teacher_key, (d,))
    teacher *= math.sqrt(d) / jnp.linalg.norm(teacher)
    wanted = target_attention(system, noise @ teacher / math.sqrt(d))
    means = jnp.array([1.0, -1.0])[:, None] / math.sqrt(d)
    return Sequences(noise + means, _mixed(wanted, noise), teacher)


def _mixed(own: Float[Array, "sequence 2"], tokens: Array) -> Array:
    """The tokens mixed by the attention matrix whose diagonal is `own`."""
    own = own[..., None]
    return own * tokens + (1 - own) * tokens[:, ::-1]


def objective(system: TiedAttention, weights: Array, tokens: Array, targets: Array) -> Scalar:
    """The training objective sum |y - y^|^2/(2 d) + (lambda/2) |w|^2."""
    d = len(weights)
    given = own_attention(tokens @ weights / math.sqrt(d))
    loss = jnp.sum((targets - _mixed(given, tokens)) ** 2) / (2 * d)
    return loss + system.ridge / 2 * jnp.sum(weights**2)


@eqx.filter_jit
def _trained(
    system: TiedAttention, tokens: Array, targets: Array, start: Array
) -> tuple[Array, Scalar, Bool[Array, ""]]:
    """The weights at the minimum next to a start, with the residual and whether the search
    converged. The objective is divided by the ridge, so that its curvature is of order one."""
    d = len(start)
    # y - y^ = (Y - S) s z - S mean: the loss of a sequence depends on three scalar products instead
    # of 2 d numbers
    first, second = tokens[:, 0], tokens[:, 1]
    step = first - second
    rest = targets - tokens[:, ::-1]  # y - y^ = rest - S_ll (x_l - x_other)
    along = jnp.stack([jnp.sum(rest[:, 0] * step, 1), -jnp.sum(rest[:, 1] * step, 1)], axis=1)
    square = jnp.sum(step**2, axis=1, keepdims=True)
    constant = jnp.sum(rest**2)

    def scaled(weights: Array) -> Scalar:
        given = own_attention(tokens @ weights / math.sqrt(d))
        loss = constant + jnp.sum(given**2 * square - 2 * given * along)
        return loss / (2 * d * system.ridge) + jnp.sum(weights**2) / 2

    found = lbfgs_minimum(scaled, start, tolerance=1e-5, max_steps=3000)
    return found.value, found.residual, found.converged


@eqx.filter_jit
def _test_error(system: TiedAttention, size: Scalar, content: Scalar, position: Scalar) -> Scalar:
    """The test error s^2 E|Y - S|^2 for fields with these order parameters."""
    points = jnp.asarray(normal_points(4, 13))
    noise, other = points[:, :2], points[:, 2:]
    fields = jnp.sqrt(size) * noise + position * jnp.array([1.0, -1.0])
    rest = jnp.sqrt(system.token_spread**2 - content**2 / size)
    wanted = target_attention(system, content / jnp.sqrt(size) * noise + rest * other)
    return 2 * jnp.mean(attention_cost(system, wanted, own_attention(fields)))
