"""Experiments on one-pass SGD with drawn random features: the exact mean over samples, and single
runs of the algorithm."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.system import System, parameter, part, structure
from orderparam.core.verb import experiment
from orderparam.systems.scaling_laws.one_pass.model import OnePassFeatures

_LARGEST = 5 * 10**7  # largest number of entries of W


class DrawnRisk(Result):
    """Risk of one-pass SGD for one draw of the features.

    Fields:
        step: number t of the step.
        risk: R(t) = E (f - y)^2 over the population (no factor 1/2).
        compute: d B t, number of multiplications by features.
        irreducible_risk: risk of the best predictor with these features.
    """

    step: Float[Array, "time"]
    risk: Float[Array, "time"]
    compute: Float[Array, "time"]
    irreducible_risk: Float[Array, ""]


class Features:
    """The eigenbasis of K = W^T D W for one draw of the features, with the best weights in this
    basis and their risk.
    """

    def __init__(self, system: OnePassFeatures, key: PRNGKeyArray) -> None:
        eigenvalues, power = system.modes()
        width = system.size("width")
        if eigenvalues.size * width > _LARGEST:
            raise ValueError(
                f"width = {width} with {eigenvalues.size} inputs: at most {_LARGEST} weights are "
                "drawn"
            )
        self.eigenvalues, self.best, self.irreducible = _diagonalised(
            eigenvalues, power, jax.random.normal(key, (eigenvalues.size, width))
        )


@jax.jit
def _diagonalised(eigenvalues: Array, power: Array, normal: Array) -> tuple[Array, Array, Array]:
    """Eigenvalues s of K, best weights theta*, and irreducible risk R_0. The target is projected on
    the features, and R_0 is the power of the remainder.
    """
    scaled = jnp.sqrt(eigenvalues)[:, None] * normal / jnp.sqrt(normal.shape[1])
    s, vectors = jnp.linalg.eigh(scaled.T @ scaled)
    found = s > 1e-13 * s[-1]
    s = jnp.where(found, s, 0.0)
    along = vectors.T @ (scaled.T @ jnp.sqrt(power))
    best = jnp.where(found, along / jnp.where(found, s, 1.0), 0.0)
    return s, best, jnp.maximum(jnp.sum(power) - s @ best**2, 0.0)


@experiment
def drawn_features(system: OnePassFeatures, key: PRNGKeyArray) -> DrawnRisk:
    r"""Mean risk of one-pass SGD over all streams of samples, for one draw of the features.

    In the eigenbasis of $K = W^T D W$, with eigenvalues $s$, the mean squares $c$ of $\theta -
    \theta^*$ obey

    $$ c(t + 1) = (1 - N)\, c(t) + \gamma^2 B R_0\, s , \qquad
       N = \mathrm{diag}(2 \gamma B s - \gamma^2 B (B + 1) s^2) - \gamma^2 B\, s s^T , $$

    which is solved exactly at every $t$ by diagonalising the symmetric $N$. A learning rate that is
    unstable for this draw gives a risk that grows without bound.

    Raises:
        ValueError: for a spectrum that is not resolved mode by mode, and for too many weights.

    Cost: two eigendecompositions of d x d matrices.

    Source: Paquette, Paquette, Xiao, Pennington (2024).

    >>> from orderparam.systems.scaling_laws import PowerLawFeatures
    >>> system = PowerLawFeatures(1.0, 0.3, 40, width=10, learning_rate=0.3, horizon=100, records=3)
    >>> drawn_features(system, jax.random.key(0)).risk.shape
    (3,)
    """
    features = Features(system, key)
    risk = _mean_risk(
        features.eigenvalues,
        features.best,
        features.irreducible,
        system.learning_rate,
        system.batch_size,
        system.steps,
    )
    return DrawnRisk(
        step=system.steps,
        risk=risk,
        compute=system.width * system.batch_size * system.steps,
        irreducible_risk=features.irreducible,
    )


@jax.jit
def _mean_risk(
    s: Array, best: Array, irreducible: Array, rate: Any, batch: Any, steps: Array
) -> Float[Array, "time"]:
    drift = 2 * rate * batch * s - rate**2 * batch * (batch + 1) * s**2
    values, vectors = jnp.linalg.eigh(jnp.diag(drift) - rate**2 * batch * jnp.outer(s, s))
    start = vectors.T @ best**2
    source = rate**2 * batch * irreducible * (vectors.T @ s)
    # c_i(t) = (1 - nu)^t c_i(0) + source_i (1 - (1 - nu)^t) / nu
    decay = steps[:, None] * jnp.log1p(-jnp.minimum(values, 1.0))
    kept = jnp.where(values < 1, jnp.exp(decay), 0.0)
    grown = jnp.where(jnp.abs(values) > 1e-300, -jnp.expm1(decay) / values, steps[:, None])
    return irreducible + (kept * start + grown * source) @ (vectors.T @ s)


@experiment
def one_pass_sgd(system: OnePassFeatures, key: PRNGKeyArray) -> DrawnRisk:
    r"""Risk of SGD on one stream of fresh samples, for one draw of the features.

    $$ \theta \leftarrow \theta - \gamma \sum_{i \le B} \phi_i\, (\phi_i \cdot \theta - y_i) $$

    The risk is the exact population risk of the weights at each recorded step. In the eigenbasis of
    $K$ the features of a sample are $\sqrt s\, \xi$ and its label is $\theta^* \cdot \phi +
    \sqrt{R_0}\, \epsilon$ with independent normal $\xi$ and $\epsilon$. Drawn in this way, features
    and labels have their original law, at the cost of $d$ random numbers for each sample.

    Raises:
        ValueError: for a spectrum that is not resolved mode by mode, and for too many weights.

    Cost: O(d B) for each step.

    Source: Paquette, Paquette, Xiao, Pennington (2024).

    >>> from orderparam.systems.scaling_laws import PowerLawFeatures
    >>> system = PowerLawFeatures(1.0, 0.3, 40, width=10, learning_rate=0.3, horizon=100, records=3)
    >>> one_pass_sgd(system, jax.random.key(0)).risk.shape
    (3,)
    """
    draw, stream = jax.random.split(key)
    features = Features(system, draw)
    batch = system.size("batch_size")
    risk = _stream(
        features.eigenvalues,
        features.best,
        features.irreducible,
        system.learning_rate,
        system.steps.astype(int),
        stream,
        batch,
    )
    return DrawnRisk(
        step=system.steps,
        risk=risk,
        compute=system.width * system.batch_size * system.steps,
        irreducible_risk=features.irreducible,
    )


@partial(jax.jit, static_argnames="batch")
def _stream(
    s: Array,
    best: Array,
    irreducible: Array,
    rate: Any,
    steps: Array,
    key: PRNGKeyArray,
    batch: int,
) -> Array:
    def step(number: Array, off: Array) -> Array:
        """One step of theta - theta*."""
        return off - rate * batch_slope(s, irreducible, off, jax.random.fold_in(key, number), batch)

    return recorded(step, -best, steps, lambda off: irreducible + s @ off**2)


def batch_slope(
    s: Array, irreducible: Array, off: Array, key: PRNGKeyArray, batch: int
) -> Float[Array, "mode"]:
    """Gradient sum_(i <= B) phi_i (phi_i.theta - y_i) on fresh samples, for off = theta -
    theta*."""
    normal = jax.random.normal(key, (batch, s.size + 1))
    phi = jnp.sqrt(s) * normal[:, :-1]
    return (phi @ off - jnp.sqrt(irreducible) * normal[:, -1]) @ phi


def recorded(
    step: Callable, start: Any, steps: Array, risk: Callable[[Any], Array]
) -> Float[Array, "time"]:
    """Risk at the recorded steps of the iteration state <- step(step number, state)."""

    def record(state: tuple[Array, Any], until: Array) -> tuple[tuple[Array, Any], Array]:
        begin, moving = state
        moving = lax.fori_loop(begin, until, step, moving)
        return (until, moving), risk(moving)

    return lax.scan(record, (jnp.zeros((), steps.dtype), start), steps)[1]


# ------------------------------------------------------------------------------------------------
# One-pass SGD with momentum and a learning rate that changes in time: the exact mean over samples,
# and single runs.
#
#     v <- momentum v - gamma_t sum_(i <= B) phi_i (phi_i.theta - y_i),    theta <- theta + v
#
# For Gaussian inputs and any gamma_t the second moments of x = theta - theta* and v obey closed
# equations for each mode in the eigenbasis of K:
#
#     E v'^2 = mu^2 V - 2 mu gamma B s Y + gamma^2 [B s R + B (B + 1) s^2 X],
#     E x v' = mu Y - gamma B s X,
#     X' = X + 2 E x v' + E v'^2,   Y' = E x v' + E v'^2,   V' = E v'^2,   R = R_0 + sum s X
#
# with X = E x^2, Y = E x v, V = E v^2 (derived here; without momentum it is the recursion of
# Paquette et al. 2024). There is no closed form in t: a curve costs as many steps of the recursion
# as SGD makes, with d numbers in each. The features are drawn. At small learning rates momentum
# acts as the constant learning rate gamma/(1 - mu), for which `deterministic_risk` gives the risk
# without drawn features.

Schedule = Literal["constant", "power", "linear", "cosine"]


class ScheduledSGD(System):
    r"""One-pass SGD of `features` with momentum and a learning rate that changes with the step t.

    The learning rate is that of `features` times a factor, which is, with $T$ the horizon, for
    "constant": 1; "power": $(1 + t/\text{period})^{-\text{decay}}$; "linear": $1 - t/T$; "cosine":
    $(1 + \cos(\pi t/T))/2$. Every factor is multiplied by $\min(1, (t + 1)/\text{warmup})$.
    """

    features: OnePassFeatures = part("the features, the target, and SGD without what stands below")
    momentum: float = parameter("momentum mu", minimum=0, below=1, default=0.0)
    schedule: Schedule = structure("how the learning rate changes", default="constant")
    decay: float = parameter("exponent of the schedule power", minimum=0, default=0.5)
    period: float = parameter("steps before the schedule power sets in", above=0, default=100.0)
    warmup: float = parameter("steps over which the rate rises", minimum=1, default=1.0)

    def rate(self, step: Float[Array, "*time"]) -> Float[Array, "*time"]:
        """The learning rate gamma_t at each step."""
        share = step / jnp.floor(self.features.horizon)
        factor = {
            "constant": jnp.ones_like(share),
            "power": (1 + step / self.period) ** -self.decay,
            "linear": 1 - share,
            "cosine": (1 + jnp.cos(jnp.pi * share)) / 2,
        }[self.schedule]
        return self.features.learning_rate * factor * jnp.minimum(1.0, (step + 1) / self.warmup)


@experiment
def scheduled_mean(system: ScheduledSGD, key: PRNGKeyArray) -> DrawnRisk:
    r"""Mean risk over all streams of samples of SGD with momentum and a schedule, for one draw of
    the features.

    The second moments $X = E x^2$, $Y = E x v$, $V = E v^2$ of $x = \theta - \theta^*$ and the
    velocity $v$ obey closed equations for each mode. With $\mu$ = `momentum`, $\gamma$ the learning
    rate of the step and $R = R_0 + \sum s X$,

    $$ X' = X + 2 (\mu Y - \gamma B s X) + V' , \qquad Y' = \mu Y - \gamma B s X + V' , $$

    $$ V' = \mu^2 V - 2 \mu \gamma B s Y + \gamma^2 B s\, [R + (B + 1) s X] . $$

    Raises:
        ValueError: for a spectrum that is not resolved mode by mode, and for too many weights.

    Cost: O(d) for each of the `horizon` steps.

    Source: derived here; without momentum it is the recursion of Paquette, Paquette, Xiao,
    Pennington (2024).

    >>> from orderparam.systems.scaling_laws import PowerLawFeatures
    >>> plain = PowerLawFeatures(1.0, 0.3, 40, width=10, learning_rate=0.03, horizon=100, records=3)
    >>> scheduled_mean(ScheduledSGD(plain, momentum=0.9), jax.random.key(0)).risk.shape
    (3,)
    """
    features, drawn = system.features, Features(system.features, key)
    steps = features.steps
    risk = _mean(system, drawn.eigenvalues, drawn.best, drawn.irreducible, steps.astype(int))
    return DrawnRisk(
        step=steps,
        risk=risk,
        compute=features.width * features.batch_size * steps,
        irreducible_risk=drawn.irreducible,
    )


@experiment
def scheduled_sgd(system: ScheduledSGD, key: PRNGKeyArray) -> DrawnRisk:
    r"""Risk of SGD with momentum and a schedule on one stream of fresh samples, for one draw of the
    features.

    $$ v \leftarrow \mu v - \gamma_t \sum_{i \le B} \phi_i\, (\phi_i \cdot \theta - y_i) , \qquad
       \theta \leftarrow \theta + v $$

    with $\mu$ = `momentum` and the learning rate $\gamma_t$ of the schedule. Samples are drawn as
    in `one_pass_sgd`.

    Raises:
        ValueError: for a spectrum that is not resolved mode by mode, and for too many weights.

    Cost: O(d B) for each step.

    Source: derived here, as the process whose mean is `scheduled_mean`; Paquette, Paquette, Xiao,
    Pennington (2024) for the features.

    >>> from orderparam.systems.scaling_laws import PowerLawFeatures
    >>> plain = PowerLawFeatures(1.0, 0.3, 40, width=10, learning_rate=0.03, horizon=100, records=3)
    >>> scheduled_sgd(ScheduledSGD(plain, momentum=0.9), jax.random.key(0)).risk.shape
    (3,)
    """
    draw, stream = jax.random.split(key)
    features, drawn = system.features, Features(system.features, draw)
    steps = features.steps
    batch = features.size("batch_size")
    risk = _with_momentum(
        system, drawn.eigenvalues, drawn.best, drawn.irreducible, steps.astype(int), stream, batch
    )
    return DrawnRisk(
        step=steps,
        risk=risk,
        compute=features.width * features.batch_size * steps,
        irreducible_risk=drawn.irreducible,
    )


@jax.jit
def _mean(
    system: ScheduledSGD, s: Array, best: Array, irreducible: Array, steps: Array
) -> Float[Array, "time"]:
    mu, batch = system.momentum, system.features.batch_size

    def step(number: Array, moments: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, y, v = moments
        rate = system.rate(number.astype(float))
        risk = irreducible + s @ x
        turned = mu * y - rate * batch * s * x
        moved = (
            mu**2 * v
            - 2 * mu * rate * batch * s * y
            + rate**2 * batch * s * (risk + (batch + 1) * s * x)
        )
        return x + 2 * turned + moved, turned + moved, moved

    start = best**2, jnp.zeros_like(best), jnp.zeros_like(best)
    return recorded(step, start, steps, lambda moments: irreducible + s @ moments[0])


@partial(jax.jit, static_argnames="batch")
def _with_momentum(
    system: ScheduledSGD,
    s: Array,
    best: Array,
    irreducible: Array,
    steps: Array,
    key: PRNGKeyArray,
    batch: int,
) -> Float[Array, "time"]:
    def step(number: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        off, velocity = state
        slope = batch_slope(s, irreducible, off, jax.random.fold_in(key, number), batch)
        velocity = system.momentum * velocity - system.rate(number.astype(float)) * slope
        return off + velocity, velocity

    return recorded(
        step, (-best, jnp.zeros_like(best)), steps, lambda state: irreducible + s @ state[0] ** 2
    )
