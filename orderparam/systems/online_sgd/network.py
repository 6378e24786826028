"""The real network: a two-layer student trained by one-pass SGD on fresh Gaussian inputs, drawn where they are used.

SGD one sample at a time is limited by memory: every step reads and writes all weights. Here the samples of a block are
drawn together, and what the weights would have told each of them is followed instead: with x_1 .. x_T the block and K
their Gram matrix,

    lambda(x_t) = w_0.x_t / sqrt(d) + rate sum_{s < t} E_s K_st,     K_st = x_s.x_t / d,

so that the weights are read once and written once a block, by matrix products. The result is that of the plain loop, up
to rounding.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from orderparam.gaussian import activation
from orderparam.systems.online_sgd import averages
from orderparam.systems.online_sgd.model import CommitteeSGD, OverlapDynamics
from orderparam.systems.online_sgd.recording import observed, record, whole_steps

_BLOCK = 32  # samples a block: the Gram matrix costs as much as this many passes over the inputs
_UNROLL = 8
_FLOAT = jnp.float32  # of inputs and weights; overlaps are summed in float64


def network_sgd(system: CommitteeSGD, key: Array) -> OverlapDynamics:
    """One training run of a student with weights of shape (width, input_dim); its overlaps at the records, no
    trajectory.

    The first weights have exactly the overlaps of `system.start`, in a random orthonormal frame. Weights are float32.
    Traceable in the key: `batch_seeds=True` trains all seeds at once. Raises `ValueError` if d < width + teacher_width.
    """
    width, batch, dim = int(system.width), int(system.batch_size), int(system.input_dim)
    if dim < width + system.teacher_width:
        raise ValueError(
            f"CommitteeSGD.input_dim = {dim}: must be >= width + teacher_width = {width + system.teacher_width}"
        )
    self_overlap, teacher_overlap = system.overlaps()
    root = averages.symmetric_root(averages.covariance(self_overlap[:width, :width], teacher_overlap[:width]))
    readout, teacher = system.readouts()
    path = _run(
        root,
        readout[:width],
        teacher,
        tuple(jnp.asarray(x, _FLOAT) for x in (system.learning_rate, system.readout_rate, system.noise)),
        whole_steps(system),
        key,
        dim=dim,
        sigma=system.sigma.name,
        batch=batch,
        repeats=system.repeats,
        scaled_inputs=system.inputs == "scaled",
    )
    return observed(system, path)


@partial(jax.jit, static_argnames=("dim", "sigma", "batch", "repeats", "scaled_inputs"))
def _run(root: Array, readout: Array, teacher: Array, numbers: tuple, steps: Array, key: Array, **static: Any) -> tuple:
    dim, batch = static["dim"], static["batch"]
    learning_rate, readout_rate, noise = numbers
    units = readout.size
    # x ~ N(0, 1), w.x / sqrt(d), or x ~ N(0, 1/d), w.x: the same numbers in another order of multiplication.
    input_scale, field_scale = (dim**-0.5, 1.0) if static["scaled_inputs"] else (1.0, dim**-0.5)
    rate = learning_rate / batch
    frame_key, data_key = jax.random.split(key)
    frame, _ = jnp.linalg.qr(jax.random.normal(frame_key, (dim, root.shape[0])))
    both = dim**0.5 * root @ frame.T
    weights, star = both[:units].astype(_FLOAT), both[units:].astype(_FLOAT)
    teacher32 = teacher.astype(_FLOAT)
    block = max(_BLOCK // batch, 1)

    def phi(values: Array) -> Array:
        return _low_precision(static["sigma"], values, slope=False)

    def slope(values: Array) -> Array:
        return _low_precision(static["sigma"], values, slope=True)

    def advance(state: tuple, key: Array, count: Array) -> tuple:
        weights, readout = state
        input_key, noise_key = jax.random.split(key)
        inputs = input_scale * _normals(input_key, (block * batch, dim))
        gram = field_scale**2 * inputs @ inputs.T
        label = phi(field_scale * inputs @ star.T) @ teacher32
        label = label + jnp.sqrt(noise) * jax.random.normal(noise_key, label.shape, _FLOAT)

        def step(carry: tuple, now: tuple) -> tuple:
            fields, readout = carry
            number, gram_rows, labels = now  # (batch, block * batch) and (batch,) of this step's samples
            own = jax.lax.dynamic_slice_in_dim(fields, number * batch, batch)
            among = jax.lax.dynamic_slice_in_dim(gram_rows, number * batch, batch, axis=1)
            first = second = jnp.zeros_like(own)
            for repeat in range(static["repeats"]):
                values = phi(own)
                error = (labels - jnp.sum(values * readout, axis=-1))[:, None]
                pull = readout * slope(own) * error
                first, second = first + pull, second + values * error
                if repeat + 1 < static["repeats"]:
                    own = own + rate * jnp.sum(among[:, :, None] * pull, axis=1)
            first = jnp.where(number < count, first, 0)
            readout = readout + jnp.where(number < count, readout_rate / (batch * dim), 0) * jnp.sum(second, axis=0)
            # Sums, not matrix products: sizes are so small that calling a library would take longer than the work.
            told = jnp.sum(gram_rows[:, :, None] * first[:, None, :], axis=0)
            return (fields + rate * told, readout), first

        rows = (jnp.arange(block), gram.reshape(block, batch, -1), label.reshape(block, batch))
        pulls: Array
        (_, readout), pulls = jax.lax.scan(step, (field_scale * inputs @ weights.T, readout), rows, unroll=_UNROLL)
        return weights + rate * field_scale * pulls.reshape(-1, units).T @ inputs, readout

    def observe(state: tuple) -> tuple:
        own, other = state[0].astype(jnp.float64), star.astype(jnp.float64)
        return own @ own.T / dim, own @ other.T / dim, state[1].astype(jnp.float64)

    return record(advance, observe, (weights, readout.astype(_FLOAT)), data_key, steps, block)


def _normals(key: Array, shape: tuple[int, int]) -> Array:
    """Standard normals by inversion, two from each 64 random bits: `jax.random.normal` throws half of its bits away,
    and drawing the inputs is most of the work."""
    rows, columns = shape
    words = jax.random.bits(key, (rows, (columns + 1) // 2), jnp.uint64)
    halves = jnp.concatenate([(words >> 32).astype(jnp.uint32), words.astype(jnp.uint32)], axis=1)[:, :columns]
    # The middles of 2^23 equal intervals of (-1, 1), all of them exact in float32.
    uniform = (halves >> 9).astype(_FLOAT) * _FLOAT(2.0**-22) + _FLOAT(2.0**-23 - 1)
    return _FLOAT(2**0.5) * jax.lax.erf_inv(uniform)


def _low_precision(sigma: str, values: Array, slope: bool) -> Array:
    """phi or phi' in the precision of the weights."""
    phi = activation(sigma)
    return (phi.derivative(values) if slope else phi(values)).astype(_FLOAT)
