"""The Curie-Weiss magnet: a system, its theory, its experiment and a study, complete in one file.

orderparam run curie_weiss.py
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

import orderparam as op


class CurieWeiss(op.System):
    """n spins s = ±1 with energy -(1/2n) (sum s)^2, at a temperature in units of the coupling."""

    temperature: float = op.parameter("temperature T in units of the coupling", above=0)
    spins: int = op.parameter(
        "number n of spins, of the experiment", minimum=2, integer=True, default=500
    )


class Magnetisation(op.Result):
    """Magnetisation of the magnet, by theory or by experiment.

    Fields:
        magnetisation: modulus of (1/n) sum s.
        residual: error of the solved equation; 0 for an experiment.
        converged: True if the equation was solved.
    """

    magnetisation: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@op.theory
def mean_field(system: CurieWeiss) -> Magnetisation:
    """Magnetisation of an infinite magnet, the largest solution of m = tanh(m / T).

    Source: Weiss (1907).
    """

    def halve(_: int, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = (low + high) / 2
        above = middle >= jnp.tanh(middle / system.temperature)  # the solution is below
        return jnp.where(above, low, middle), jnp.where(above, middle, high)

    # 60 bisections give the solution to 1e-18, at the critical temperature T = 1 too, where
    # repeating m -> tanh(m / T) would converge too slowly
    _, m = jax.lax.fori_loop(0, 60, halve, (jnp.zeros(()), jnp.ones(())))
    residual = jnp.abs(m - jnp.tanh(m / system.temperature))
    return Magnetisation(magnetisation=m, residual=residual, converged=residual < 1e-8)


@op.experiment
def glauber(system: CurieWeiss, key: PRNGKeyArray, *, sweeps: int = 200) -> Magnetisation:
    """Magnetisation of n spins under heat-bath dynamics from all spins up.

    Args:
        sweeps: updates per spin; the second half is averaged.
    """
    n = system.size("spins")

    def update(total: Array, step_key: PRNGKeyArray) -> tuple[Array, Array]:
        site_key, flip_key = jax.random.split(step_key)
        # a random spin is up with probability (1 + m)/2
        spin = jnp.where(jax.random.uniform(site_key) < (1 + total / n) / 2, 1.0, -1.0)
        up = jax.nn.sigmoid(2 * (total - spin) / n / system.temperature)
        turned = jnp.where(jax.random.uniform(flip_key) < up, 1.0, -1.0)
        return total + turned - spin, jnp.abs(total) / n

    _, m = jax.lax.scan(update, jnp.asarray(float(n)), jax.random.split(key, sweeps * n))
    return Magnetisation(
        magnetisation=m[sweeps * n // 2 :].mean(),
        residual=jnp.zeros(()),
        converged=jnp.asarray(True),
    )


@op.study(
    "curie-weiss",
    title="Spontaneous magnetisation of a mean-field magnet",
    source="Weiss 1907",
    seconds=(5, 60),
    observables=("magnetisation",),
    full={"spins": 5000, "seeds": 20},
    panels=[op.Panel("temperature", "magnetisation")],
    caption="$n$ = {spins} spins, {sweeps} sweeps, of which the second half is averaged.",
)
def curie_weiss(
    spins: int = 500,
    sweeps: int = 200,
    seeds: int = 4,
    temperatures: tuple[float, ...] = (0.5, 0.7, 0.8),
) -> list[op.Curve]:
    system = CurieWeiss(1.0, spins)
    grid = [0.3 + 0.02 * i for i in range(40)]
    return [
        op.Curve("mean field", mean_field, system, {"temperature": grid}),
        op.Curve(
            "Glauber dynamics",
            partial(glauber, sweeps=sweeps),
            system,
            {"temperature": temperatures},
            seeds,
            batch_seeds=True,
        ),
    ]
