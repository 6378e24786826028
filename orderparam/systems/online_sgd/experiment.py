"""Training runs of SGD: a network with all its weights, and the Markov chain of its overlaps."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.sampling.recording import record
from orderparam.systems.online_sgd import averages
from orderparam.systems.online_sgd.model import (
    CommitteeSGD,
    MovingTime,
    OverlapDynamics,
    PhasePoint,
    ResidualRisk,
    RiskCurve,
)
from orderparam.systems.online_sgd.phases import first_move
from orderparam.systems.online_sgd.theory import dynamics, signal

# ------------------------------------------------------------------------------------------------
# The network: a two-layer student trained by one-pass SGD on fresh Gaussian inputs, which are drawn
# on the device where they are used.
#
# The speed of SGD with one sample in a step is limited by memory access, because every step reads
# and writes all weights. Here the samples x_1 .. x_T of a block are drawn together, and the steps
# update the fields of these samples instead of the weights. With w_0 the weights before the block,
# E_s = v sigma'(lambda) e at sample s, and K the Gram matrix of the samples,
#
#     lambda(x_t) = w_0.x_t / sqrt(d) + rate sum_{s < t} E_s K_st,     K_st = x_s.x_t / d,
#
# so that the weights are read once and written once for each block, by matrix products. Up to
# rounding, the result equals that of SGD step by step.

_BLOCK = 32  # samples in a block; the Gram matrix costs as much as this many passes over the inputs
_UNROLL = 8
_FLOAT = jnp.float32  # type of inputs and weights; overlaps are summed in float64


@eqx.filter_jit
def trained(
    system: CommitteeSGD, steps: Int[Array, "record"], key: Array, dim: int, batch: int
) -> OverlapDynamics:
    """Overlaps along one training run with `dim` weights for each unit and `batch` samples in a
    step, recorded after the numbers of steps in `steps`.
    """
    units = system.width
    learning_rate, readout_rate, noise = (
        jnp.asarray(x, _FLOAT) for x in (system.learning_rate, system.readout_rate, system.noise)
    )
    # "unit": x ~ N(0, 1) and lambda = w.x / sqrt(d); "scaled": x ~ N(0, 1/d) and lambda = w.x. Both
    # give the same fields.
    input_scale, field_scale = (dim**-0.5, 1.0) if system.inputs == "scaled" else (1.0, dim**-0.5)
    rate = learning_rate / batch
    frame_key, data_key = jax.random.split(key)
    root = averages.symmetric_root(averages.covariance(*system.overlaps()))
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
            # (batch, block * batch) and (batch,) of this step's samples
            number, gram_rows, labels = now
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
            readout = readout + jnp.where(
                number < count, readout_rate / (batch * dim), 0
            ) * jnp.sum(second, axis=0)
            # A sum and not a matrix product: the arrays are so small that calling a library takes
            # longer than adding.
            shift = jnp.sum(gram_rows[:, :, None] * first[:, None, :], axis=0)
            return (fields + rate * shift, readout), first

        rows = (jnp.arange(block), gram.reshape(block, batch, -1), label.reshape(block, batch))
        pulls: Array
        (_, readout), pulls = jax.lax.scan(
            step, (field_scale * inputs @ weights.T, readout), rows, unroll=_UNROLL
        )
        return weights + rate * field_scale * pulls.reshape(-1, units).T @ inputs, readout

    def observe(state: tuple) -> tuple:
        own, other = state[0].astype(jnp.float64), star.astype(jnp.float64)
        return own @ own.T / dim, own @ other.T / dim, state[1].astype(jnp.float64)

    return dynamics(system, *record(advance, observe, (weights, readout), data_key, steps, block))


def _normals(key: Array, shape: tuple[int, int]) -> Array:
    """Standard normals by inversion, two from each 64 random bits: `jax.random.normal` uses half of
    its bits, and drawing the inputs is most of the work.
    """
    rows, columns = shape
    words = jax.random.bits(key, (rows, (columns + 1) // 2), jnp.uint64)
    halves = jnp.concatenate([(words >> 32).astype(jnp.uint32), words.astype(jnp.uint32)], axis=1)[
        :, :columns
    ]
    # The uniform numbers are the midpoints of 2^23 equal intervals of (-1, 1), which float32
    # represents exactly.
    uniform = (halves >> 9).astype(_FLOAT) * _FLOAT(2.0**-22) + _FLOAT(2.0**-23 - 1)
    return _FLOAT(2**0.5) * jax.lax.erf_inv(uniform)


# ------------------------------------------------------------------------------------------------
# The overlaps as a Markov chain, which has exactly the law of SGD at finite d, at a cost
# independent of d.
#
# For Gaussian inputs the fields of one sample are Gaussian with the covariance given by the
# overlaps. The components of x that are orthogonal to all weights enter only through their squared
# length, a chi-square variable of d - p - k degrees of freedom (p = width, k = teacher_width). With
# the teacher's fields z*, D = Q - M M^T = L L^T, xi standard normal, the student's fields lambda =
# M z* + L xi, and E = v sigma'(lambda) e, one step is (derived for this package from the update of
# Saad and Solla 1995)
#
#     M <- M + rate / d E z*^T,
#     D <- (L + rate / d E xi^T) (L + rate / d E xi^T)^T + (rate / d)^2 E E^T chi2_{d - p - k},
#
# For the mean gradient over a batch of b samples, replace rate by rate / b, E z*^T and E xi^T by
# their sums over the batch, and E E^T chi2 by a Wishart matrix of d - p - k degrees of freedom with
# the scale sum_i E_i E_i^T.

_STEPS_TOGETHER = 128  # steps whose random numbers are drawn together
_ROUNDING = 1e-14  # relative variance below which a direction counts as one without variance


@eqx.filter_jit
def followed(
    system: CommitteeSGD, steps: Int[Array, "record"], key: Array, batch: int
) -> OverlapDynamics:
    """Overlaps along one run of the Markov chain with `batch` samples in a step, recorded after the
    numbers of steps in `steps`."""
    phi, units, dim = system.activation, system.width, system.input_dim
    rate = system.learning_rate / batch
    rest = dim - units - system.teacher_width
    self_overlap, teacher_overlap = system.overlaps()
    readout, teacher = system.readouts()
    start = (self_overlap - teacher_overlap @ teacher_overlap.T, teacher_overlap, readout)

    def step(state: tuple, drawn: tuple) -> tuple:
        outside, overlap, readout = state
        active, stars, own, label_noise, squares, below = drawn
        root = lower_root(outside)
        # |x|^2 / d; unused in a batch
        length = (jnp.sum(stars**2, -1) + jnp.sum(own**2, -1) + squares[0]) / dim
        fields = stars @ overlap.T + own @ root.T
        label = phi(stars) @ teacher + jnp.sqrt(system.noise) * label_noise
        first, second = signal(phi, fields, label, readout, rate * length, system.repeats)
        pull = rate / dim * first
        moved = root + pull.T @ own
        if batch == 1:
            spread = pull.T @ pull * squares[0]
        # Bartlett's decomposition: a Wishart matrix is R A A^T R^T, with R R^T its scale and A
        # lower triangular, with chi variables on the diagonal and normal variables below it.
        else:
            spread = lower_root(pull.T @ pull) @ (
                jnp.diag(jnp.sqrt(squares)) + _below(below, units)
            )
            spread = spread @ spread.T
        new = (
            moved @ moved.T + spread,
            overlap + pull.T @ stars,
            readout + system.readout_rate / (batch * dim) * jnp.sum(second, axis=0),
        )
        return jax.tree.map(lambda new, old: jnp.where(active, new, old), new, state), None

    def advance(state: tuple, key: Array, count: Array) -> tuple:
        keys = jax.random.split(key, 5)
        freedom = rest - jnp.arange(1 if batch == 1 else units)
        drawn = (
            jnp.arange(_STEPS_TOGETHER) < count,
            jax.random.normal(keys[0], (_STEPS_TOGETHER, batch, system.teacher_width)),
            jax.random.normal(keys[1], (_STEPS_TOGETHER, batch, units)),
            jax.random.normal(keys[2], (_STEPS_TOGETHER, batch)),
            2 * jax.random.gamma(keys[3], freedom / 2, (_STEPS_TOGETHER, freedom.size)),
            jax.random.normal(
                keys[4], (_STEPS_TOGETHER, 0 if batch == 1 else units * (units - 1) // 2)
            ),
        )
        return jax.lax.scan(step, state, drawn)[0]

    def observe(state: tuple) -> tuple:
        outside, overlap, readout = state
        return outside + overlap @ overlap.T, overlap, readout

    return dynamics(system, *record(advance, observe, start, key, steps, _STEPS_TOGETHER))


def lower_root(covariance: Float[Array, "unit unit"]) -> Float[Array, "unit unit"]:
    """Lower triangular L with L L^T = covariance, which may be singular.

    A direction without variance gets a column of zeros.
    """
    size = covariance.shape[0]
    floor = _ROUNDING * jnp.max(jnp.diagonal(covariance))
    columns = []
    for j in range(size):
        pivot = covariance[j, j]
        alive = pivot > floor
        column = jnp.where(alive, covariance[:, j] / jnp.sqrt(jnp.where(alive, pivot, 1.0)), 0.0)
        column = jnp.where(jnp.arange(size) >= j, column, 0.0)
        columns.append(column)
        covariance = covariance - column[:, None] * column
    return jnp.stack(columns, axis=1)


def _below(entries: Float[Array, "pair"], size: int) -> Float[Array, "{size} {size}"]:
    """The strictly lower triangle filled with `entries`."""
    return jnp.zeros((size, size)).at[jnp.tril_indices(size, -1)].set(entries)


# ------------------------------------------------------------------------------------------------
# The experiments: a network with all its weights, and its overlaps alone as a Markov chain.


def _whole_steps(system: CommitteeSGD) -> Int[Array, "record"]:
    """Numbers of steps at the records, as integers.

    Raises `ValueError` if there is no step before the horizon.
    """
    steps = np.asarray(system.steps()).astype(np.int64)
    if steps[-1] < 1:
        raise ValueError(
            f"CommitteeSGD.horizon = {system.horizon}: with input_dim = {system.input_dim} and "
            f"batch_size = {system.batch_size} it holds no step; must be at least batch_size / "
            "input_dim"
        )
    return jnp.asarray(steps)


def _room_for_all(system: CommitteeSGD) -> None:
    _large_enough(system, "width + teacher_width", system.width + system.teacher_width)


def _markov(system: CommitteeSGD) -> None:
    _large_enough(system, "2 width + teacher_width", 2 * system.width + system.teacher_width)
    if system.batch_size > 1 and system.repeats > 1:
        raise ValueError(
            f"CommitteeSGD.repeats = {system.repeats}: must be 1 with batch_size = "
            f"{system.batch_size} in the overlap chain"
        )


def _large_enough(system: CommitteeSGD, words: str, least: int) -> None:
    if system.input_dim < least:
        raise ValueError(
            f"CommitteeSGD.input_dim = {system.input_dim}: must be >= {words} = {least}"
        )


@experiment(check=_room_for_all)
def trained_network(system: CommitteeSGD, key: PRNGKeyArray) -> OverlapDynamics:
    r"""Overlaps along one training run of a student with weights of shape (width, input_dim).

    $$ w_j \leftarrow w_j + \frac{\gamma}{\sqrt d} v_j \sigma'(\lambda_j)\, e\, x , \qquad
       v_j \leftarrow v_j + \frac{\gamma_v}{d} \sigma(\lambda_j)\, e , \qquad e = y - f(x) $$

    on fresh Gaussian inputs, with the symbols of `CommitteeSGD`. The first weights have exactly the
    overlaps of `start`, in a random orthonormal frame. The run can be traced in the key: with
    `batch_seeds=True` a sweep trains all seeds at once.

    Raises:
        ValueError: if d < width + teacher_width, or if there is no step before the horizon.

    Accuracy: weights and inputs are float32; overlaps are summed in float64.

    Cost: proportional to d^2 `horizon` width.

    Source: Saad, Solla (1995); Goldt et al. (2019).

    >>> system = CommitteeSGD(input_dim=64, width=2, horizon=2.0, records=2)
    >>> trained_network(system, jax.random.key(0)).test_error.shape
    (2,)
    """
    return trained(
        system, _whole_steps(system), key, system.size("input_dim"), system.size("batch_size")
    )


@experiment(check=_markov)
def overlap_chain(system: CommitteeSGD, key: PRNGKeyArray) -> OverlapDynamics:
    r"""Overlaps along one run of SGD in d dimensions, as an exact Markov chain without the weights.

    For Gaussian inputs, with the teacher's fields $z^*$, $D = Q - M M^T = L L^T$, fields $\lambda =
    M z^* + L \xi$ and $E = v \sigma'(\lambda) e$, one step is

    $$ M \leftarrow M + \frac\gamma d E {z^*}^T , \qquad
       D \leftarrow \Big( L + \frac\gamma d E \xi^T \Big) \Big( L + \frac\gamma d E \xi^T \Big)^T
       + \frac{\gamma^2}{d^2} E E^T \chi^2_{d - p - k} $$

    with p = `width`, k = `teacher_width`, d = `input_dim`, $\gamma$ = `learning_rate`, $\xi$
    standard normal and $\chi^2$ a chi-square variable with its number of degrees of freedom. The
    run can be traced in the key.

    Raises:
        ValueError: if d < 2 width + teacher_width, if there is no step before the horizon, and for
            repeated samples in batches larger than 1. For repeated samples in larger batches the
            overlaps alone are no Markov chain; use `trained_network`.

    Accuracy: the overlaps have exactly the law of those of `trained_network`, also at d = 1e9.

    Cost: independent of d for each step.

    Source: derived here, from the update of Saad, Solla (1995).

    >>> system = CommitteeSGD(input_dim=64, horizon=2.0)
    >>> overlap_chain(system, jax.random.key(0)).test_error.shape
    (25,)
    """
    return followed(system, _whole_steps(system), key, system.size("batch_size"))


# ------------------------------------------------------------------------------------------------
# Runs at a point of the phase diagram, through the exact chain of the overlaps.


@experiment
def phase_chain(system: PhasePoint, key: PRNGKeyArray) -> RiskCurve:
    r"""Risk along one run of SGD at a point of the phase diagram, from `overlap_chain`.

    $$ R = \tfrac12 E (f^* - f)^2 $$

    is `test_error`, with f the student and f* the teacher without label noise.

    Source: Veiga, Stephan, Loureiro, Krzakala, Zdeborová (2022); the chain is derived here.

    >>> phase_chain(PhasePoint(input_dim=64, horizon=2.0), jax.random.key(0)).test_error.shape
    (25,)
    """
    return RiskCurve.of(overlap_chain(system.committee, key))


@experiment
def measured_moving_time(system: PhasePoint, key: PRNGKeyArray) -> MovingTime:
    """Number of samples after which the overlaps have changed in one run of SGD, from
    `overlap_chain`.

    The change of the overlaps is defined in `MovingTime`; `samples` is the number of samples at
    which it first exceeds 0.1.

    Accuracy: crossing on the grid of records, interpolated linearly in ln n.

    Source: Veiga, Stephan, Loureiro, Krzakala, Zdeborová (2022) for the exponents.

    >>> run = measured_moving_time(PhasePoint(input_dim=64, horizon=2.0), jax.random.key(0))
    >>> bool(run.samples > 0)
    True
    """
    return first_move(system, overlap_chain(system.committee, key))


@experiment
def measured_residual_risk(system: PhasePoint, key: PRNGKeyArray) -> ResidualRisk:
    r"""Risk averaged over the second half (in time) of one run of SGD at a point of the phase
    diagram.

    $$ R = \tfrac12 E (f^* - f)^2 $$

    averaged over the records after half of the horizon.

    Source: Veiga, Stephan, Loureiro, Krzakala, Zdeborová (2022).

    >>> point = PhasePoint(input_dim=64, horizon=2.0)
    >>> bool(measured_residual_risk(point, jax.random.key(0)).test_error > 0)
    True
    """
    path = phase_chain(system, key)
    late = path.sample_ratio > 0.5 * path.sample_ratio[-1]
    return ResidualRisk(test_error=jnp.mean(path.test_error, where=late))
