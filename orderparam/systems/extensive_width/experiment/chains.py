"""Hamiltonian Monte Carlo on the posterior of a network with known read-outs.

    ln p(W | data) = -sum_mu (y_mu - sum_i v_i (sigma(z_i) - c_0 - c_1 z_i))^2 / (2 Delta) - |W|^2 / 2

with z_i = w_i . x_mu / sqrt(d). The rows are rescaled by their expected posterior widths, 1/sqrt(1 + n v_i^2 E (sigma' - c_1)^2
/ (d Delta)): the step size is then the same at every size and hierarchy, about 0.35. An unlearned row still has the width of
the prior, many such units, so that a trajectory needs a few tens of leapfrog steps to carry it about (derived for this package).
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.optimize import linear_sum_assignment

from orderparam.gaussian import Activation, expectation
from orderparam.sampling import sample
from orderparam.sampling.samples import Samples
from orderparam.systems.extensive_width.experiment.data import Affine, TeacherData, output

# A learned feature appears with an overlap of 0.64 (h_3) or more, an unlearned one fluctuates by 1/sqrt(d).
LEARNED = 0.5
PREDICTED = 2000  # test points at which predictions are kept, for the posterior mean
_BLOCK = 256
_SMALLEST = 4096


class KnownNetwork(NamedTuple):
    """What the learner knows: the architecture, the read-outs, and the variance of its noise."""

    activation: Activation
    affine: Affine
    readout: Float[Array, "feature"]
    noise: Float[Array, ""] | float


def run(
    network: KnownNetwork,
    data: TeacherData,
    truth: Float[Array, "feature input"],
    positions: Float[Array, "chain feature input"],
    key: PRNGKeyArray,
    **lengths: int,
) -> Samples:
    """Chains from given positions; observables: `overlaps` with the rows of `truth`, `gibbs_error`, `quadratic`, `prediction`.

    `lengths`: warmup, samples, thin and leapfrog_steps of `orderparam.sampling.sample`.
    """
    activation, affine, readout, noise = network
    samples, dim = data.inputs.shape
    slope = expectation(lambda z: (activation.derivative(z) - affine[1]) ** 2, 1.0, activation.kinks)
    stiffness = samples / dim * readout**2 * slope / noise
    shared = (affine, readout)
    return sample(
        Partial(_log_posterior, activation, shared, noise, _padded(data)),
        positions,
        key,
        method="hmc",
        scale=jnp.broadcast_to(1 / jnp.sqrt(1 + stiffness)[:, None], truth.shape),
        observe=Partial(_observe, activation, shared, truth, data.test_inputs, data.test_labels),
        **lengths,
    )


Known = tuple[Affine, Float[Array, "feature"]]


class _Blocks(NamedTuple):
    """Samples in blocks of fixed number and size, so that few sizes are compiled; only the first `samples` count."""

    inputs: Float[Array, "block sample input"]
    labels: Float[Array, "block sample"]
    samples: Array


def _padded(data: TeacherData) -> _Blocks:
    samples, dim = data.inputs.shape
    room = _SMALLEST
    while room < samples:
        room *= 4
    inputs = jnp.zeros((room, dim)).at[:samples].set(data.inputs)
    labels = jnp.zeros(room).at[:samples].set(data.labels)
    return _Blocks(inputs.reshape(-1, _BLOCK, dim), labels.reshape(-1, _BLOCK), jnp.asarray(samples))


def _log_posterior(activation: Activation, shared: Known, noise: Array, data: _Blocks, weights: Array) -> Float[Array, ""]:
    return -_misfit(activation, shared, data, weights) / noise - jnp.sum(weights**2) / 2


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _misfit(activation: Activation, shared: Known, data: _Blocks, weights: Array) -> Float[Array, ""]:
    """Half the sum of squared residuals, block by block as far as there are samples."""
    return _misfit_and_slope(activation, shared, data, weights)[0]


def _misfit_and_slope(activation: Activation, shared: Known, data: _Blocks, weights: Array) -> tuple[Array, Array]:
    def of_block(weights: Array, number: Array) -> Array:
        residual = data.labels[number] - output(activation, *shared, weights, data.inputs[number])
        counts = number * _BLOCK + jnp.arange(_BLOCK) < data.samples
        return jnp.sum(jnp.where(counts, residual, 0.0) ** 2) / 2

    def add(number: Array, total: tuple[Array, Array]) -> tuple[Array, Array]:
        value, slope = jax.value_and_grad(of_block)(weights, number)
        return total[0] + value, total[1] + slope

    blocks = (data.samples + _BLOCK - 1) // _BLOCK
    return jax.lax.fori_loop(0, blocks, add, (jnp.zeros(()), jnp.zeros_like(weights)))


def _backward(activation: Activation, slope: Array, cotangent: Array) -> tuple[Any, Any, Array]:
    return None, None, cotangent * slope


_misfit.defvjp(_misfit_and_slope, _backward)


def _observe(
    activation: Activation, shared: Known, truth: Array, inputs: Array, labels: Array, weights: Float[Array, "feature input"]
) -> dict[str, Array]:
    prediction = output(activation, *shared, weights, inputs)
    readout, dim = shared[1], truth.shape[1]
    overlaps = weights @ truth.T / dim
    return {
        "overlaps": overlaps / jnp.mean(truth**2, axis=1),
        "gibbs_error": jnp.mean((prediction - labels) ** 2),
        "quadratic": readout @ overlaps**2 @ readout - jnp.sum(readout) ** 2 / dim,  # tr (S - E S)(S^0 - E S) / d
        "prediction": prediction[:PREDICTED],
    }


def mean_prediction_error(samples: Samples, data: TeacherData) -> Float[Array, ""]:
    """(<f_W> - f^0)^2 with the average over all draws of all chains."""
    mean = jnp.mean(samples.observables["prediction"], axis=(0, 1))
    return jnp.mean((mean - data.test_labels[:PREDICTED]) ** 2)


def matched(overlaps: np.ndarray, even: bool) -> np.ndarray:
    """Of each chain the mean overlap of each teacher feature with the row that stands for it, (chain, feature).

    overlaps: (chain, draw, row, feature).

    A row whose mean overlap with another feature exceeds 1/2 is counted there; rows that stand for no feature keep their own.
    For an even activation the sign of an overlap carries no meaning and is dropped.
    """
    found = []
    for one in overlaps.mean(axis=1):
        size = np.abs(one) if even else one
        identity = 1e-3 * np.eye(len(one))
        row, feature = linear_sum_assignment(np.where(size > LEARNED, size, 0.0) + identity, maximize=True)
        one_by_feature = np.empty(len(one))
        one_by_feature[feature] = size[row, feature]
        found.append(one_by_feature)
    return np.array(found)
