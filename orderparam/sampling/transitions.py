"""One transition of a Markov chain whose equilibrium is p(u): Langevin, MALA, HMC or NUTS.

With U = -log p (which includes the temperature), the step size is

    langevin, mala   dt  of  u' = u - dt grad U(u) + sqrt(2 dt) xi
    hmc, nuts        eps of the leapfrog steps of  du/ds = v, dv/ds = -grad U(u), unit mass

`langevin` takes every step, at the price of a bias of order dt; the others accept or reject, and
have none.
"""

from collections.abc import Callable
from typing import Any

import blackjax
import blackjax.mcmc.diffusions
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

METHODS = ("hmc", "mala", "nuts", "langevin")

# Acceptance with the least cost per independent draw in high dimension: 0.574 for MALA (Roberts &
# Rosenthal 1998), at least 0.651 for HMC (Beskos et al. 2013), 0.8 in practice for HMC and NUTS
# (Hoffman & Gelman 2014).
TARGET_ACCEPTANCE = {"hmc": 0.8, "mala": 0.574, "nuts": 0.8}

LEAPFROG_JITTER = 0.2
# largest number of steps where the length of a trajectory is given and the step size is small
MOST_LEAPFROG_STEPS = 100

# a number of steps (int), or the length of a trajectory, their number times eps (float)
Leapfrog = int | float

LogDensity = Callable[[PyTree], Float[Array, ""]]


def begin(method: str, log_density: LogDensity, position: PyTree) -> Any:
    """State of a chain at `position`; in every method it has `.position`, `.logdensity` and
    `.logdensity_grad`."""
    kind = {
        "hmc": blackjax.hmc,
        "mala": blackjax.mala,
        "nuts": blackjax.nuts,
        "langevin": blackjax.mala,
    }[method]
    return kind.init(position, log_density)


def move(
    method: str,
    leapfrog: Leapfrog,
    log_density: LogDensity,
    key: PRNGKeyArray,
    state: Any,
    step_size: Float[Array, ""],
) -> tuple[Any, Float[Array, ""]]:
    """One transition: the new state, and the acceptance probability (1 for `langevin`)."""
    if method == "langevin":
        euler = blackjax.mcmc.diffusions.overdamped_langevin(jax.value_and_grad(log_density))
        return type(state)(*euler(key, state, step_size)), jnp.ones(())
    if method == "mala":
        state, info = blackjax.mala.build_kernel()(key, state, log_density, step_size)
        return state, info.acceptance_rate
    unit_mass = jnp.ones(sum(leaf.size for leaf in jax.tree.leaves(state.position)))
    if method == "nuts":
        state, info = blackjax.nuts.build_kernel()(key, state, log_density, step_size, unit_mass)
        return state, info.acceptance_rate
    if isinstance(leapfrog, int):
        steps: int | Array = leapfrog
    else:
        steps = jnp.clip(jnp.ceil(leapfrog / step_size), 1, MOST_LEAPFROG_STEPS).astype(int)
    # Trajectories of a fixed length return a harmonic mode of that period to its start, so the
    # length is random.
    jitter_key, key = jax.random.split(key)
    step_size = step_size * jax.random.uniform(
        jitter_key, minval=1 - LEAPFROG_JITTER, maxval=1 + LEAPFROG_JITTER
    )
    state, info = blackjax.hmc.build_kernel()(key, state, log_density, step_size, unit_mass, steps)
    return state, info.acceptance_rate
