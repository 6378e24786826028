"""The real network: a two-layer student trained by one-pass SGD on fresh Gaussian inputs, drawn where they are used.

SGD one sample at a time is limited by memory: every step reads and writes all weights. Here the samples of a block are
drawn together, and what the weights would have told each of them is followed instead: with x_1 .. x_T the block and K
their Gram matrix,

    lambda(x_t) = w_0.x_t / sqrt(d) + rate sum_{s < t} E_s K_st,     K_st = x_s.x_t / d,

so that the weights are read once and written once a block, by matrix products. The result is that of the plain loop, up
to rounding.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from orderparam.sampling.recording import record
from orderparam.systems.online_sgd.averages import moments
from orderparam.systems.online_sgd.committee.equations import dynamics
from orderparam.systems.online_sgd.committee.model import CommitteeSGD, OverlapDynamics

_BLOCK = 32  # samples a block: the Gram matrix costs as much as this many passes over the inputs
_UNROLL = 8
_FLOAT = jnp.float32  # of inputs and weights; overlaps are summed in float64


@eqx.filter_jit
def trained(system: CommitteeSGD, steps: Int[Array, "record"], key: Array, dim: int, batch: int) -> OverlapDynamics:
    """One run of `dim` weights a unit and `batch` samples a step, recorded after `steps`."""
    units = system.width
    learning_rate, readout_rate, noise = (
        jnp.asarray(x, _FLOAT) for x in (system.learning_rate, system.readout_rate, system.noise)
    )
    # x ~ N(0, 1), w.x / sqrt(d), or x ~ N(0, 1/d), w.x: the same numbers in another order of multiplication.
    input_scale, field_scale = (dim**-0.5, 1.0) if system.inputs == "scaled" else (1.0, dim**-0.5)
    rate = learning_rate / batch
    frame_key, data_key = jax.random.split(key)
    root = moments.symmetric_root(moments.covariance(*system.overlaps()))
    frame, _ = jnp.linalg.qr(jax.random.normal(frame_key, (dim, root.shape[0])))
    both = (dim**0.5 * root @ frame.T).astype(_FLOAT)
    weights, star = both[:units], both[units:]
    readout, teacher = (part.astype(_FLOAT) for part in system.readouts())
    block = max(_BLOCK // batch, 1)

    def phi(values: Array) -> Array:
        return system.activation(values).astype(_FLOAT)

    def slope(values: Array) -> Array:
        return system.activation.derivative(values).astype(_FLOAT)

    def advance(state: tuple, key: Array, count: Array) -> tuple:
        weights, readout = state
        input_key, noise_key = jax.random.split(key)
        inputs = input_scale * _normals(input_key, (block * batch, dim))
        gram = field_scale**2 * inputs @ inputs.T
        label = phi(field_scale * inputs @ star.T) @ teacher
        label = label + jnp.sqrt(noise) * jax.random.normal(noise_key, label.shape, _FLOAT)

        def step(carry: tuple, now: tuple) -> tuple:
            fields, readout = carry
            number, gram_rows, labels = now  # (batch, block * batch) and (batch,) of this step's samples
            own = jax.lax.dynamic_slice_in_dim(fields, number * batch, batch)
            among = jax.lax.dynamic_slice_in_dim(gram_rows, number * batch, batch, axis=1)
            first = second = jnp.zeros_like(own)
            for repeat in range(system.repeats):
                values = phi(own)
                error = (labels - jnp.sum(values * readout, axis=-1))[:, None]
                pull = readout * slope(own) * error
                first, second = first + pull, second + values * error
                if repeat + 1 < system.repeats:
                    own = own + rate * jnp.sum(among[:, :, None] * pull, axis=1)
            first = jnp.where(number < count, first, 0)
            readout = readout + jnp.where(number < count, readout_rate / (batch * dim), 0) * jnp.sum(second, axis=0)
            # Sums, not matrix products: sizes are so small that calling a library would take longer than the work.
            shift = jnp.sum(gram_rows[:, :, None] * first[:, None, :], axis=0)
            return (fields + rate * shift, readout), first

        rows = (jnp.arange(block), gram.reshape(block, batch, -1), label.reshape(block, batch))
        pulls: Array
        (_, readout), pulls = jax.lax.scan(step, (field_scale * inputs @ weights.T, readout), rows, unroll=_UNROLL)
        return weights + rate * field_scale * pulls.reshape(-1, units).T @ inputs, readout

    def observe(state: tuple) -> tuple:
        own, other = state[0].astype(jnp.float64), star.astype(jnp.float64)
        return own @ own.T / dim, own @ other.T / dim, state[1].astype(jnp.float64)

    return dynamics(system, *record(advance, observe, (weights, readout), data_key, steps, block))


def _normals(key: Array, shape: tuple[int, int]) -> Array:
    """Standard normals by inversion, two from each 64 random bits: `jax.random.normal` throws half of its bits away,
    and drawing the inputs is most of the work."""
    rows, columns = shape
    words = jax.random.bits(key, (rows, (columns + 1) // 2), jnp.uint64)
    halves = jnp.concatenate([(words >> 32).astype(jnp.uint32), words.astype(jnp.uint32)], axis=1)[:, :columns]
    # The middles of 2^23 equal intervals of (-1, 1), all of them exact in float32.
    uniform = (halves >> 9).astype(_FLOAT) * _FLOAT(2.0**-22) + _FLOAT(2.0**-23 - 1)
    return _FLOAT(2**0.5) * jax.lax.erf_inv(uniform)
