"""Message passing, leading eigenvectors and VAMP on randomly drawn problems."""

import math
from functools import partial
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.channels import Likelihood, RealLabels, SignLabels
from orderparam.channels.outlier import LEAST_MEASURED, SpectralEstimate, leading_vector
from orderparam.core.needs import iteration
from orderparam.core.verb import experiment
from orderparam.priors import Prior
from orderparam.solve.passing import growing_damping, pass_messages
from orderparam.systems.generalised_linear.bayes.eigenvectors import (
    label_weight,
    sizes_seen,
    spectral,
)
from orderparam.systems.generalised_linear.bayes.model import GeneralisedLinear, InvariantDesign
from orderparam.systems.generalised_linear.bayes.theory import TeacherEstimate
from orderparam.systems.generalised_linear.bayes.vamp import MeasuredWeights, singular_power

# ------------------------------------------------------------------------------------------------
# Generalised approximate message passing on a drawn problem.
#
#     omega = X a - V g',  g = g(y, omega, V),  A = -(1/d) sum dg,
#     b = A a + X^T g,  (a, v) = posterior(b, A),  V = (1/d) sum v
#
# with rows of X of variance 1/d and g' the previous g (Rangan 2011; Donoho, Maleki, Montanari
# 2009).

_LEAST = 1e-12  # variance below which weights count as recovered
_ROWS = 128  # number of rows of the matrix that are drawn together
_SMALL, _NEAR = 1e-2, 1e-3  # deviations of estimates from zero, and from the weights, at the start
_ROUGHLY = 1e-2  # relative accuracy of the eigenvalue whose vector is a start
_ALIGNED = 0.1  # least cosine that the start along an eigenvector gets


class MessagePassing(TeacherEstimate):
    """Accuracy of message passing on a drawn problem.

    Fields:
        steps: number of iterations.
        residual: root mean square change of the estimate in the last iteration, before damping.
    """

    steps: Float[Array, ""]
    residual: Float[Array, ""]


class Found(eqx.Module):
    """Result of message passing: the estimates and their mean variance, the number of steps, the
    last change, and whether the last change is below the tolerance.
    """

    weights: Float[Array, "input"]
    variance: Float[Array, ""]
    steps: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@experiment(needs=iteration("damping", "max_steps", "tolerance"))
def message_passing(
    system: GeneralisedLinear,
    key: PRNGKeyArray,
    *,
    damping: float = 0.0,
    max_steps: int = 300,
    tolerance: float = 1e-6,
    start: Literal["uninformed", "spectral", "informed"] = "uninformed",
    design: Literal["dense", "sparse"] = "dense",
    density: float = 0.05,
    precision: Literal["double", "single"] = "double",
) -> MessagePassing:
    r"""Estimates of generalised approximate message passing (GAMP) on one drawn problem.

    The entries of $X$ have variance $1/d$, the estimates $a$ have mean variance $V$, and $g'$ is
    the $g$ of the previous step. One iteration is

    $$ \omega = X a - V g' , \quad g = g(y, \omega, V) , \quad A = -\frac1d \sum_\mu \partial_\omega
       g_\mu , \quad b = A a + X^T g , \quad (a, V) = \text{posterior}(b, A) . $$

    Where labels do not determine the sign of the weights (an even law), the overlap is measured
    with the better of the two signs.

    Args:
        damping: fraction of the previous state that is kept, from 0 (the default) to below 1, in
            the first quarter of `max_steps`; in the k-th quarter it is damping^(1/k). Undamped
            estimates of a drawn problem can grow without bound, as in 9 of 640 problems of
            compressed sensing with 1000 weights; 0.1 and 0.3 found the weights of all nine.
        max_steps: largest number of iterations; 300 by default.
        tolerance: root mean square change, in units of sqrt(rho), at which the iteration ends; 1e-6
            by default.
        start: "uninformed" (the default) starts at estimates near zero; "spectral" along the vector
            of `leading_eigenvector`, with the cosine that `spectral` predicts; "informed" near the
            true weights.
        design: "dense" (the default), Gaussian entries of variance 1/d; "sparse", entries
            +-1/sqrt(density d) with probability `density` and zero otherwise.
        density: fraction of non-zero entries of a sparse design; 0.05 by default.
        precision: "double" (the default) or "single" precision of the iteration.

    Raises:
        ValueError: where the number of samples rounds to zero, and for a spectral start where
            labels do not depend on the size of a field.

    Cost: two products with the n x d matrix in each step.

    Source: Rangan (2011); Donoho, Maleki, Montanari (2009); Mondelli, Venkataramanan (2021) for the
    spectral start.

    >>> system = GeneralisedLinear(2.0, "sign", input_dim=200)
    >>> run = message_passing(system, jax.random.key(0))
    >>> bool(run.converged), bool(run.cosine > 0.6)
    (True, True)
    """
    d, n = system.size("input_dim"), round(float(system.sample_ratio * system.input_dim))
    if n < 1:
        raise ValueError(
            f"GeneralisedLinear.sample_ratio = {float(system.sample_ratio):g}: leaves no sample at "
            f"input_dim = {d}"
        )
    aligned = jnp.maximum(spectral(system).cosine, _ALIGNED) if start == "spectral" else None
    weight_key, matrix_key, label_key, start_key = jax.random.split(key, 4)
    kind = jnp.float64 if precision == "double" else jnp.float32
    weights = system.prior.draw(weight_key, (d,))
    rows = _padded(n)
    matrix = _design(matrix_key, rows, d, design, density, kind)
    fields = jnp.matmul(matrix, weights.astype(kind)).astype(jnp.float64)
    labels = system.labels.draw(fields, label_key).astype(kind)
    scale = jnp.sqrt(system.prior.power)
    noise = scale * jax.random.normal(start_key, (d,))
    seen = (jnp.arange(rows) < n).astype(kind)
    spread = system.prior.power
    if aligned is not None:
        vector = leading_vector(matrix, seen * label_weight(system, labels), _ROUGHLY)[1]
        first, spread = (
            jnp.asarray(vector) * scale * aligned * math.sqrt(d),
            spread * (1 - aligned**2),
        )
    elif start == "informed":
        first, spread = weights + _NEAR * noise, _NEAR**2 * spread
    else:
        first = _SMALL * noise
    least = jnp.asarray(_LEAST if precision == "double" else 1e-7, kind)
    mixing, close = jnp.asarray(damping, kind), jnp.asarray(tolerance, kind)
    begin = first.astype(kind), spread.astype(kind)
    found = gamp(
        matrix, labels, seen, system.labels, system.prior, *begin, mixing, close, least, max_steps
    )
    return _measured(system, weights, found)


def _padded(n: int) -> int:
    """Number of rows of the padded matrix. It exceeds the number of samples by at most a quarter
    and takes few values, so that a few compiled programs serve every number of samples.
    """
    step = 2 ** max(0, math.ceil(math.log2(n)) - 3)
    return -(-n // step) * step


@partial(jax.jit, static_argnames=("n", "d", "design", "kind"))
def _design(
    key: PRNGKeyArray, n: int, d: int, design: str, density: Array, kind: type
) -> Float[Array, "sample input"]:
    """Random design matrix. It is drawn a few rows at a time, so that no second array of its size
    is needed."""
    size = math.gcd(n, _ROWS)

    def block(number: Array, matrix: Array) -> Array:
        place_key, sign_key = jax.random.split(jax.random.fold_in(key, number))
        if design == "dense":
            rows = jax.random.normal(sign_key, (size, d), kind) * kind(d**-0.5)
        else:
            signs = (
                jax.random.rademacher(sign_key, (size, d), kind)
                * (density * d).astype(kind) ** -0.5
            )
            rows = jnp.where(
                jax.random.uniform(place_key, (size, d), kind) < density.astype(kind),
                signs,
                kind(0),
            )
        return jax.lax.dynamic_update_slice(matrix, rows, (number * size, 0))

    return jax.lax.fori_loop(0, n // size, block, jnp.zeros((n, d), kind))


@eqx.filter_jit
def gamp(
    matrix: Float[Array, "sample input"],
    labels: Float[Array, "sample"],
    seen: Float[Array, "sample"],
    law: Likelihood,
    prior: Prior,
    start: Float[Array, "input"],
    start_variance: Float[Array, ""],
    damping: Float[Array, ""],
    tolerance: Float[Array, ""],
    least: Float[Array, ""],
    max_steps: int,
) -> Found:
    """Estimates of message passing, iterated until an undamped step is shorter than `tolerance`
    sqrt(rho). The function can be used under `vmap`.

    Args:
        matrix: rows of inputs, of variance 1/d for each entry; their precision is used throughout.
        labels: label of each row.
        seen: 1 for samples, 0 for rows of padding.
        law: law of the labels.
        prior: law of the weights.
        start: first estimates.
        start_variance: V of the start.
        damping: share of the state that is kept; in the k-th quarter of the steps damping^(1/k).
        tolerance: change at which the iteration ends, in units of sqrt(rho).
        least: variance, in units of rho, below which weights count as exactly known.
        max_steps: largest number of iterations.
    """
    n, d = matrix.shape
    rho = prior.power.astype(matrix.dtype)

    def step(state: tuple) -> tuple:
        a, v, g = state
        variance = jnp.maximum(v, least * rho)
        omega = matrix @ a - variance * g
        fresh = seen * law.denoiser(labels, omega, variance).astype(matrix.dtype)
        slope = seen * law.denoiser_slope(labels, omega, variance).astype(matrix.dtype)
        fresh = jnp.where(jnp.isfinite(fresh), fresh, 0.0)
        precision = jnp.maximum(
            -jnp.sum(jnp.where(jnp.isfinite(slope), slope, 0.0)) / d, least / rho
        )
        posterior = prior.posterior(precision * a + fresh @ matrix, precision)
        estimate = posterior.mean.astype(matrix.dtype)
        spread = jnp.mean(posterior.variance).astype(matrix.dtype)
        # When the weights are known exactly every label is certain and gives no further
        # information, so that the update would reset the estimates; the estimates are therefore
        # kept.
        forgotten = (v < 1e-3 * rho) & (spread > 0.1 * rho)
        estimate, spread = jnp.where(forgotten, a, estimate), jnp.where(forgotten, v, spread)
        return estimate, spread, fresh

    last, count, change = pass_messages(
        step,
        (start, start_variance, jnp.zeros(n, matrix.dtype)),
        tolerance=tolerance * jnp.sqrt(rho),
        max_steps=max_steps,
        damping=growing_damping(damping, max_steps),
        is_uncertain=lambda state: state[1] > least * rho,
    )
    a, v, _ = last
    converged = jnp.all(jnp.isfinite(a)) & (
        (change <= tolerance * jnp.sqrt(rho)) | (v <= least * rho)
    )
    return Found(a, v, count.astype(float), change.astype(float), converged)


@eqx.filter_jit
def _measured(
    system: GeneralisedLinear, weights: Float[Array, "input"], found: Found
) -> MessagePassing:
    estimate = jnp.where(jnp.isfinite(found.weights), found.weights, 0.0).astype(jnp.float64)
    even = jnp.isclose(system.labels.moments(0.0, system.prior.power).slope, 0.0, atol=1e-12)
    overlap = jnp.mean(weights * estimate)
    turned = even & (overlap < 0)
    estimate, overlap = jnp.where(turned, -estimate, estimate), jnp.where(turned, -overlap, overlap)
    power = jnp.sqrt(jnp.mean(weights**2) * jnp.mean(estimate**2))
    cosine = overlap / jnp.where(power == 0, 1.0, power)
    wrong = jnp.asarray(jnp.nan)
    if isinstance(system.labels, SignLabels):
        wrong = system.labels.disagreement(cosine, system.prior.power)
    return MessagePassing(
        overlap=overlap,
        error=jnp.mean((weights - estimate) ** 2),
        cosine=cosine,
        classification_error=wrong,
        converged=found.converged,
        steps=found.steps,
        residual=found.residual,
    )


# ------------------------------------------------------------------------------------------------
# The leading eigenvector of a drawn problem, by Lanczos iteration.


@experiment
def leading_eigenvector(
    system: GeneralisedLinear, key: PRNGKeyArray, *, least_weight: float = LEAST_MEASURED
) -> SpectralEstimate:
    r"""Leading eigenvector of the label-weighted covariance of a drawn problem, by Lanczos
    iteration.

    The matrix is $\frac1n \sum_\mu T(y_\mu)\, x_\mu x_\mu^T$ of `spectral`.

    Args:
        least_weight: value below which the weights T(y) are cut; -30 by default. The smaller it is,
            the more Lanczos steps are needed.

    Raises:
        ValueError: where the number of samples rounds to zero, and for labels that do not depend on
            the size of a field.

    Source: Mondelli, Montanari (2018); Lu, Li (2020).

    >>> run = leading_eigenvector(GeneralisedLinear(4.0, "abs", input_dim=100), jax.random.key(0))
    >>> bool(run.cosine > 0.5)
    True
    """
    sizes_seen(system)
    d, n = system.size("input_dim"), round(float(system.sample_ratio * system.input_dim))
    if n < 1:
        raise ValueError(
            f"GeneralisedLinear.sample_ratio = {float(system.sample_ratio):g}: leaves no sample at "
            f"input_dim = {d}"
        )
    weight_key, matrix_key, label_key = jax.random.split(key, 3)
    true = system.prior.draw(weight_key, (d,))
    matrix = jax.random.normal(matrix_key, (n, d))
    label = system.labels.draw(matrix @ true / np.sqrt(d), label_key)
    value, vector = leading_vector(matrix / np.sqrt(d), label_weight(system, label, least_weight))
    w0 = np.asarray(true)
    cosine = abs(float(w0 @ vector)) / np.linalg.norm(w0)
    return SpectralEstimate(
        overlap=jnp.asarray(float(system.prior.power) * cosine**2),
        cosine=jnp.asarray(cosine),
        eigenvalue=jnp.asarray(value),
        edge=jnp.asarray(jnp.nan),
        converged=jnp.asarray(bool(np.isfinite(value))),
    )


# ------------------------------------------------------------------------------------------------
# VAMP and GAMP on a drawn problem with a rotationally invariant matrix.

_LEAST_PRECISION, _MOST_PRECISION = 1e-11, 1e11  # range of the precision of messages
_FAR = 1e3  # estimates this many standard deviations of a weight away have diverged


@experiment
def vector_message_passing(
    system: InvariantDesign,
    key: PRNGKeyArray,
    *,
    algorithm: Literal["vamp", "gamp"] = "vamp",
    max_steps: int = 500,
    tolerance: float = 1e-5,
) -> MeasuredWeights:
    """Estimates of VAMP, or of GAMP, on one drawn problem with a rotationally invariant matrix.

    VAMP alternates the posterior mean of each weight given a Gaussian message of precision $a_1$
    with the least-squares estimate given a message of precision $a_2$ (`vector_state_evolution`).

    Args:
        algorithm: "vamp" (the default), or "gamp", which assumes independent entries of the matrix
            and may diverge where they are not.
        max_steps: largest number of iterations; 500 by default.
        tolerance: root mean square change, in units of sqrt(rho), at which the iteration ends; 1e-5
            by default.

    Raises:
        ValueError: where the number of samples rounds to zero.

    Source: Rangan, Schniter, Fletcher (2019); Rangan (2011) for GAMP.

    >>> run = vector_message_passing(InvariantDesign(0.8, input_dim=100), jax.random.key(0))
    >>> bool(run.converged), bool(run.error < 0.2)
    (True, True)
    """
    d, n = system.size("input_dim"), round(float(system.sample_ratio * system.input_dim))
    if n < 1:
        raise ValueError(
            f"InvariantDesign.sample_ratio = {float(system.sample_ratio):g}: leaves no sample at "
            f"input_dim = {d}"
        )
    weight_key, left_key, right_key, noise_key, start_key = jax.random.split(key, 5)
    weights = system.prior.draw(weight_key, (d,))
    rank = min(n, d)
    power = singular_power(system.condition, (jnp.arange(rank) + 0.5) / rank)
    singular = jnp.sqrt(power / jnp.mean(power) * n / rank)
    left = jnp.linalg.qr(jax.random.normal(left_key, (n, rank)))[0]
    right = jnp.linalg.qr(jax.random.normal(right_key, (d, rank)))[0]
    noise = jnp.sqrt(system.noise) * jax.random.normal(noise_key, (n,))
    if algorithm == "vamp":
        seen = singular * (right.T @ weights) + left.T @ noise  # U^T y; the rest of y is noise
        estimate, steps, change, converged = _vamp(
            system.prior,
            right,
            singular,
            seen,
            jnp.asarray(system.noise),
            jnp.asarray(tolerance),
            max_steps,
        )
    else:
        matrix = (left * singular) @ right.T
        first = 1e-2 * jnp.sqrt(system.prior.power) * jax.random.normal(start_key, (d,))
        law, (zero, close, least) = (
            RealLabels("linear", system.noise),
            map(jnp.asarray, (0.0, tolerance, 1e-12)),
        )
        labels, power = matrix @ weights + noise, jnp.asarray(system.prior.power)
        found = gamp(
            matrix,
            labels,
            jnp.ones(n),
            law,
            system.prior,
            first,
            power,
            zero,
            close,
            least,
            max_steps,
        )
        estimate, steps, change, converged = (
            found.weights,
            found.steps,
            found.residual,
            found.converged,
        )
    scale = jnp.sqrt(system.prior.power)
    estimate = jnp.clip(jnp.nan_to_num(estimate), -_FAR * scale, _FAR * scale)
    error = jnp.mean((weights - estimate) ** 2)
    converged &= jnp.max(jnp.abs(estimate)) < _FAR * scale
    return MeasuredWeights(
        error=error,
        overlap=jnp.mean(weights * estimate),
        steps=steps,
        residual=change,
        converged=converged,
    )


@eqx.filter_jit
def _vamp(
    prior: Prior,
    right: Float[Array, "input value"],
    singular: Float[Array, "value"],
    seen: Float[Array, "value"],
    noise: Float[Array, ""],
    tolerance: Float[Array, ""],
    max_steps: int,
) -> tuple[Array, Array, Array, Array]:
    """Estimate of VAMP, number of steps, last change, and whether this change is below the
    tolerance."""
    d, rho = right.shape[0], prior.power

    def bounded(precision: Array) -> Array:
        return jnp.clip(precision, _LEAST_PRECISION / rho, _MOST_PRECISION / rho)

    def step(state: tuple) -> tuple:
        _, message, precision = state
        posterior = prior.posterior(precision * message, precision)
        variance = jnp.maximum(jnp.mean(posterior.variance), 1e-300)
        other = bounded(1 / variance - precision)
        back = (posterior.mean / variance - precision * message) / other
        # gain of the least-squares estimate along each singular direction
        gain = singular / (singular**2 + noise * other)
        estimate = back + right @ (gain * (seen - singular * (right.T @ back)))
        filtered = jnp.sum(singular * gain) / d
        fresh = bounded(filtered * other / (1 - filtered))
        total = fresh + other
        message = (total * estimate - other * back) / fresh
        return posterior.mean, message, fresh

    (estimate, _, _), count, change = pass_messages(
        step,
        (jnp.zeros(d), jnp.zeros(d), _LEAST_PRECISION / rho),
        tolerance=tolerance * jnp.sqrt(rho),
        max_steps=max_steps,
        # The first messages contain no information, so that the first changes may be small.
        least_steps=3,
    )
    done = (change <= tolerance * jnp.sqrt(rho)) & jnp.all(jnp.isfinite(estimate))
    return estimate, count.astype(float), change, done
