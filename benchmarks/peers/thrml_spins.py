"""The square lattice in thrml, a public JAX library of block Gibbs sampling, for `spins.py`; needs
`pip install thrml`."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from thrml import Block, SamplingSchedule, SpinNode, sample_states
from thrml.models import IsingEBM, IsingSamplingProgram, hinton_init


def heat_bath(
    length: int, replicas: int, sweeps: int, every: int, temperature: float
) -> Callable[[], object]:
    """Sweeps of both sublattices of periodic lattices, all replicas in one program, with the mean
    energy after every few."""
    nodes = [[SpinNode() for _ in range(length)] for _ in range(length)]
    places = [(i, j) for i in range(length) for j in range(length)]
    down = [(nodes[i][j], nodes[(i + 1) % length][j]) for i, j in places]
    right = [(nodes[i][j], nodes[i][(j + 1) % length]) for i, j in places]
    flat = [nodes[i][j] for i, j in places]
    model = IsingEBM(
        flat,
        down + right,
        jnp.zeros(length**2),
        jnp.ones(2 * length**2),
        jnp.asarray(1 / temperature),
    )
    blocks = [Block([nodes[i][j] for i, j in places if (i + j) % 2 == colour]) for colour in (0, 1)]
    program = IsingSamplingProgram(model, blocks, [])
    schedule, seen = SamplingSchedule(0, sweeps // every, every), Block(flat)

    def energy(key: jax.Array, start: list[jax.Array]) -> jax.Array:
        (states,) = sample_states(key, program, schedule, start, [], [seen])
        spins = 2.0 * states.reshape(-1, length, length) - 1
        return -jnp.mean(spins * (jnp.roll(spins, 1, 1) + jnp.roll(spins, 1, 2)))

    start = hinton_init(jax.random.key(1), model, blocks, (replicas,))
    keys = jax.random.split(jax.random.key(0), replicas)
    run = jax.jit(jax.vmap(energy))
    return lambda: run(keys, start)
