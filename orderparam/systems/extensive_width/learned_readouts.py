"""The posterior for an extensive-width teacher if the read-outs are learned too, or if the length
of the rows is known."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.gaussian import Activation, expectation
from orderparam.sampling import sample
from orderparam.sampling.result import FromChains, of_chains
from orderparam.systems.extensive_width.channel import channel
from orderparam.systems.extensive_width.experiment import (
    Affine,
    Readouts,
    TeacherData,
    affine_part,
    draw,
    output,
)
from orderparam.systems.extensive_width.model import Teacher
from orderparam.systems.extensive_width.posterior import LEARNED, matched

# A position of the chains is (u, s) with the prior N(0, 1) for every entry. Read-outs that are
# learned are a_i = s_i |v| / sqrt(k); where they are known there is no s. Rows of fixed length are
# w_i = sqrt(d) u_i / |u_i|, which makes their prior uniform on the sphere.
#
# Where all features are learned the posterior is narrow, and the errors of the least-squares
# estimate of P parameters from n samples are Delta P / (n - P). The posterior has k d parameters, k
# more where read-outs are learned, and k fewer where the lengths of the rows are known, so that
#
#     error / error(fixed read-outs, free rows) = 1 + (delta / k d) n / (n - k d) + O(1/d^2),
#
# with delta = k, 0 or -k. In large dimensions all four posteriors have the same error (derived for
# this package).

_Position = tuple[Float[Array, "feature input"], Float[Array, "feature"] | None]


class AblatedPosterior(FromChains):
    """Averages over posterior samples of a network whose read-outs may be unknown and whose rows
    may have a known length.

    Fields:
        overlap: mean of w_i . w_i^0 / d after matching, as in `posterior_hmc`.
        error: half of the Gibbs error.
        gibbs_error: mean of (f_W - f^0)^2 at new inputs over posterior samples.
        effective_width: number of features with overlap above 1/2.
        readout_error: sum_i (a_i - v_i)^2 / sum_i v_i^2, averaged over draws; 0 if the read-outs
            are fixed. For an odd activation the data do not determine the sign of (a_i, w_i); the
            sign stays that of the start as long as no chain passes a_i = 0.
        r_hat: R-hat of the Gibbs error over the chains.
        effective_samples: effective sample size of the Gibbs error.
        converged: whether the Gibbs error has converged.
    """

    overlap: Float[Array, "feature"]
    error: Float[Array, ""]
    gibbs_error: Float[Array, ""]
    effective_width: Float[Array, ""]
    readout_error: Float[Array, ""]


class _Network(NamedTuple):
    """Knowledge of the learner about the network. spread: prior standard deviation of the
    read-outs; None if they are known. length: length of the rows; None if they are free."""

    affine: Affine
    readout: Float[Array, "feature"]
    spread: Float[Array, ""] | None
    length: Float[Array, ""] | None

    def at(self, position: _Position) -> tuple[Array, Array]:
        """The rows and the read-outs of a position."""
        rows, unit = position
        if self.length is not None:
            rows = self.length * rows / jnp.linalg.norm(rows, axis=1, keepdims=True)
        if unit is None or self.spread is None:
            return rows, self.readout
        return rows, self.spread * unit


def _log_posterior(
    activation: Activation,
    network: _Network,
    noise: Array,
    data: tuple[Array, Array],
    position: _Position,
) -> Float[Array, ""]:
    inputs, labels = data
    rows, readout = network.at(position)
    residual = labels - output(activation, network.affine, readout, rows, inputs)
    prior = sum(jnp.sum(part**2) for part in jax.tree.leaves(position))
    return -jnp.sum(residual**2) / (2 * noise) - prior / 2


def _observe(
    activation: Activation,
    network: _Network,
    truth: Array,
    test: tuple[Array, Array],
    position: _Position,
) -> dict[str, Array]:
    rows, readout = network.at(position)
    prediction = output(activation, network.affine, readout, rows, test[0])
    away = jnp.sum((readout - network.readout) ** 2) / jnp.sum(network.readout**2)
    return {
        "overlaps": rows @ truth.T / truth.shape[1],
        "gibbs_error": jnp.mean((prediction - test[1]) ** 2),
        "readout_error": away,
    }


@experiment
def ablated_posterior(
    teacher: Teacher,
    key: PRNGKeyArray,
    *,
    readouts: Readouts = "learned",
    normalised: bool = False,
    chains: int = 4,
    warmup: int = 120,
    draws: int = 150,
    thin: int = 1,
    leapfrog_steps: int = 30,
) -> AblatedPosterior:
    r"""Posterior averages for one random teacher and one data set where the read-outs are learned
    too, or where the length of the rows is known.

    $$ \ln p(a, W \mid \mathrm{data}) = -\frac{1}{2\Delta} \sum_\mu \Big( y_\mu
       - \sum_i a_i (\sigma(z_i) - c_0 - c_1 z_i) \Big)^2 - \tfrac12 |W|^2
       - \frac{k}{2 |v|^2} |a|^2 $$

    with k units, $z_i = w_i \cdot x_\mu / \sqrt d$, and the read-outs v of the teacher. The chains
    of Hamiltonian Monte Carlo start at the teacher, so that rows keep the assignment to its
    features. Calls with the same key have the same teacher and data as `posterior_hmc`.

    Args:
        readouts: "learned" (default): the prior is a_i ~ N(0, |v|^2/k); "fixed": a = v.
        normalised: whether the rows are uniform on the sphere |w_i|^2 = d, where those of the
            teacher lie; otherwise their prior is N(0, 1). Default False.
        chains: number of independent chains. Default 4.
        warmup: steps of a chain that tune the step size and are discarded. Default 120.
        draws: draws of every chain. Default 150.
        thin: trajectories between draws. Default 1.
        leapfrog_steps: leapfrog steps of a trajectory. Default 30.

    Raises:
        ValueError: for sizes that are not integers.

    Accuracy: statistical; see `r_hat` and `effective_samples`. Near a jump the chains stay in the
    state of their start.

    Source: derived here; the comparison is that of Nguyen, Barbier (2026), appendix on experiments.

    >>> import jax
    >>> from orderparam.systems.extensive_width import HierarchicalTeacher
    >>> teacher = HierarchicalTeacher(6, 2, 1.0, 0.1, n_train=40)
    >>> found = ablated_posterior(teacher, jax.random.key(0), chains=2, warmup=20, draws=8)
    >>> bool(found.readout_error > 0)
    True
    """
    activation, readout = teacher.activation, jnp.asarray(teacher.readout)
    affine = affine_part(activation)
    data_key, _, chain_key = jax.random.split(key, 3)
    data: TeacherData = draw(teacher, data_key, affine)
    (samples, dim), width = data.inputs.shape, len(readout)
    spread = jnp.linalg.norm(readout) / width**0.5 if readouts == "learned" else None
    network = _Network(affine, readout, spread, jnp.sqrt(1.0 * dim) if normalised else None)
    # expected posterior widths of rows and read-outs, in units of the prior's
    slope = expectation(
        lambda z: (activation.derivative(z) - affine[1]) ** 2, 1.0, activation.kinks
    )
    stiffness = samples / teacher.noise * jnp.stack([readout**2 * slope / dim, readout * 0])
    if spread is not None:
        stiffness = stiffness.at[1].set(
            samples / teacher.noise * spread**2 * channel(activation).total
        )
    widths = 1 / jnp.sqrt(1 + stiffness)
    start: Any = (data.weights, None if spread is None else readout / spread)
    scale: Any = (
        jnp.broadcast_to(widths[0][:, None], data.weights.shape),
        None if spread is None else widths[1],
    )
    run = sample(
        Partial(_log_posterior, activation, network, teacher.noise, (data.inputs, data.labels)),
        jax.tree.map(lambda part: jnp.broadcast_to(part, (chains, *part.shape)), start),
        chain_key,
        method="hmc",
        warmup=warmup,
        samples=draws,
        thin=thin,
        leapfrog_steps=leapfrog_steps,
        scale=scale,
        observe=Partial(
            _observe, activation, network, data.weights, (data.test_inputs, data.test_labels)
        ),
    )
    gibbs = run.estimates["gibbs_error"]
    overlap = np.mean(
        matched(np.asarray(run.observables["overlaps"]), activation.parity == "even"), axis=0
    )
    return AblatedPosterior(
        overlap=jnp.asarray(overlap),
        error=gibbs.mean / 2,
        gibbs_error=gibbs.mean,
        effective_width=jnp.asarray(float(np.sum(overlap > LEARNED))),
        readout_error=run.estimates["readout_error"].mean,
        **of_chains(run, gibbs),
    )
