"""One-pass SGD with momentum and a learning rate that changes: exact in the mean over samples, and simulated.

    v <- momentum v - gamma_t sum_(i <= B) phi_i (phi_i.theta - y_i),      theta <- theta + v

In the eigenbasis of K the second moments of x = theta - theta* and v close, mode by mode, for Gaussian inputs and any gamma_t:

    E v'^2 = mu^2 V - 2 mu gamma B s Y + gamma^2 [B s R + B (B + 1) s^2 X],   E x v' = mu Y - gamma B s X,
    X' = X + 2 E x v' + E v'^2,   Y' = E x v' + E v'^2,   V' = E v'^2,   R = R_0 + sum s X

with X = E x^2, Y = E x v, V = E v^2 (derived for this package; momentum 0 is the recursion of Paquette et al. 2024). Nothing is
closed in t: a curve costs as many steps as SGD makes, of d numbers each. Features are drawn; there is no theory without a draw
here, but `deterministic_risk` for a constant rate, which is also the limit of momentum for small ones, at gamma/(1 - mu).
"""

from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.system import System, parameter, part, structure
from orderparam.core.verb import experiment
from orderparam.systems.scaling_laws.one_pass.experiment import DrawnRisk, Features, batch_slope, recorded
from orderparam.systems.scaling_laws.one_pass.model import OnePassFeatures

Schedule = Literal["constant", "power", "linear", "cosine"]


class ScheduledSGD(System):
    """The learning rate of `features` times a factor of t = 0, 1, ..., T, T their horizon:

    constant: 1. power: (1 + t/period)^-decay. linear: 1 - t/T. cosine: (1 + cos(pi t/T))/2. Each times min(1, (t + 1)/warmup).
    """

    features: OnePassFeatures = part("the features, the target, and SGD without what stands below")
    momentum: float = parameter("momentum mu", minimum=0, below=1, default=0.0)
    schedule: Schedule = structure("how the learning rate changes", default="constant")
    decay: float = parameter("exponent of the schedule power", minimum=0, default=0.5)
    period: float = parameter("steps before the schedule power sets in", above=0, default=100.0)
    warmup: float = parameter("steps over which the rate rises", minimum=1, default=1.0)

    def rate(self, step: Float[Array, "*time"]) -> Float[Array, "*time"]:
        """gamma_t."""
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
    """The mean of R(t) over all streams of samples for one draw of the features, by the recursion."""
    features, drawn = system.features, Features(system.features, key)
    steps = features.steps
    risk = _mean(system, drawn.eigenvalues, drawn.best, drawn.irreducible, steps.astype(int))
    return DrawnRisk(steps, risk, features.width * features.batch_size * steps, drawn.irreducible)


@experiment
def scheduled_sgd(system: ScheduledSGD, key: PRNGKeyArray) -> DrawnRisk:
    """SGD on one stream of fresh samples with one draw of the features, as `one_pass_sgd`."""
    draw, stream = jax.random.split(key)
    features, drawn = system.features, Features(system.features, draw)
    steps = features.steps
    batch = features.size("batch_size")
    risk = _stream(system, drawn.eigenvalues, drawn.best, drawn.irreducible, steps.astype(int), stream, batch)
    return DrawnRisk(steps, risk, features.width * features.batch_size * steps, drawn.irreducible)


@jax.jit
def _mean(system: ScheduledSGD, s: Array, best: Array, irreducible: Array, steps: Array) -> Float[Array, "time"]:
    mu, batch = system.momentum, system.features.batch_size

    def step(number: Array, moments: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, y, v = moments
        rate = system.rate(number.astype(float))
        risk = irreducible + s @ x
        turned = mu * y - rate * batch * s * x
        moved = mu**2 * v - 2 * mu * rate * batch * s * y + rate**2 * batch * s * (risk + (batch + 1) * s * x)
        return x + 2 * turned + moved, turned + moved, moved

    start = best**2, jnp.zeros_like(best), jnp.zeros_like(best)
    return recorded(step, start, steps, lambda moments: irreducible + s @ moments[0])


@partial(jax.jit, static_argnames="batch")
def _stream(
    system: ScheduledSGD, s: Array, best: Array, irreducible: Array, steps: Array, key: PRNGKeyArray, batch: int
) -> Float[Array, "time"]:
    def step(number: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        off, velocity = state
        slope = batch_slope(s, irreducible, off, jax.random.fold_in(key, number), batch)
        velocity = system.momentum * velocity - system.rate(number.astype(float)) * slope
        return off + velocity, velocity

    return recorded(step, (-best, jnp.zeros_like(best)), steps, lambda state: irreducible + s @ state[0] ** 2)
