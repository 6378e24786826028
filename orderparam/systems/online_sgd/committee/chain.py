"""The overlaps as a Markov chain of their own: the law of finite-d SGD, exactly, at a cost that does not depend on d.

For Gaussian inputs the fields of one sample are Gaussian with the covariance given by the overlaps, and the rest of x
enters only through its length. With z* the teacher's fields, L L^T = D = Q - M M^T, fields lambda = M z* + L xi, and
everything else of the input in a chi-square of d - p - k degrees of freedom, one step is (E = v sigma'(lambda) e;
derived for this package from the update of Saad and Solla 1995)

    M <- M + rate / d E z*^T,
    D <- (L + rate / d E xi^T) (L + rate / d E xi^T)^T + (rate / d)^2 E E^T chi2_{d - p - k},

and for the mean gradient over a batch E xi^T -> sum_i E_i xi_i^T, E E^T chi2 -> Wishart_{d-p-k}(sum_i E_i E_i^T), rate
-> rate / b.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from orderparam.sampling.recording import record
from orderparam.systems.online_sgd.committee.equations import dynamics, signal
from orderparam.systems.online_sgd.committee.model import CommitteeSGD, OverlapDynamics

_BLOCK = 128  # steps whose random numbers are drawn together
_ROUNDING = 1e-14


@eqx.filter_jit
def followed(system: CommitteeSGD, steps: Int[Array, "record"], key: Array, batch: int) -> OverlapDynamics:
    """One run of `batch` samples a step, recorded after `steps`."""
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
        length = (jnp.sum(stars**2, -1) + jnp.sum(own**2, -1) + squares[0]) / dim  # |x|^2 / d; unused in a batch
        fields = stars @ overlap.T + own @ root.T
        label = phi(stars) @ teacher + jnp.sqrt(system.noise) * label_noise
        first, second = signal(phi, fields, label, readout, rate * length, system.repeats)
        pull = rate / dim * first
        moved = root + pull.T @ own
        if batch == 1:
            spread = pull.T @ pull * squares[0]
        else:  # Bartlett: Wishart = R A A^T R^T with R R^T the scale, A lower triangular, chi on its diagonal
            spread = lower_root(pull.T @ pull) @ (jnp.diag(jnp.sqrt(squares)) + _below(below, units))
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
            jnp.arange(_BLOCK) < count,
            jax.random.normal(keys[0], (_BLOCK, batch, system.teacher_width)),
            jax.random.normal(keys[1], (_BLOCK, batch, units)),
            jax.random.normal(keys[2], (_BLOCK, batch)),
            2 * jax.random.gamma(keys[3], freedom / 2, (_BLOCK, freedom.size)),
            jax.random.normal(keys[4], (_BLOCK, 0 if batch == 1 else units * (units - 1) // 2)),
        )
        return jax.lax.scan(step, state, drawn)[0]

    def observe(state: tuple) -> tuple:
        outside, overlap, readout = state
        return outside + overlap @ overlap.T, overlap, readout

    return dynamics(system, *record(advance, observe, start, key, steps, _BLOCK))


def lower_root(covariance: Float[Array, "unit unit"]) -> Float[Array, "unit unit"]:
    """L with L L^T = covariance, for singular ones too: a direction without variance gets a column of zeros."""
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
