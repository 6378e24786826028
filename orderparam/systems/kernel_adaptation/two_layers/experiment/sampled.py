"""The posterior of the network itself by Hamiltonian Monte Carlo, and what its hidden weights look like."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.sampling import estimate, sample
from orderparam.systems.kernel_adaptation.gaussianity import gaussianity
from orderparam.systems.kernel_adaptation.modes.overlaps import overlaps
from orderparam.systems.kernel_adaptation.two_layers.experiment.data import training_set
from orderparam.systems.kernel_adaptation.two_layers.experiment.posterior import Posterior, Weights, log_density, starts
from orderparam.systems.kernel_adaptation.two_layers.model import TwoLayerNetwork

Start = Literal["both", "prior", "informed"]
STARTS = ("both", "prior", "informed")
EDGES = np.linspace(-2.5, 2.5, 82)  # of the bins of w . w_*
_FAR = 0.5


class Recorded(eqx.Module):
    """What each draw contributes, averaged over the read-out. w_* is the first axis."""

    output: Float[Array, "mode"]  # E_x f h_k
    along: Float[Array, "unit"]  # w . w_*
    across: Float[Array, "unit"]  # w along the second axis
    moment: Float[Array, "input input"]  # sum_c w_c w_c^T / N


class SampledNetwork(Result):
    """Averages over the posterior of one data set; fields as in the theories, for one draw of the data each.

    output:     E_x f h_k of the posterior mean f, over the whole input distribution (not over test points).
    spread:     d <(w . w_*)^2> / weight_variance. norm: <|w|^2>.
    eigenvalues: of d <w w^T> / weight_variance, falling: 1 without adaptation; one, along w_*, stands out with it.
    density, across_density: of w . w_*, and of w along a fixed direction across it, in bins of equal width over (-2.5, 2.5),
                    centres `bin_centre`. outside: probability of |w . w_*| > 1/2.
    kurtosis, p_value: excess kurtosis of w . w_* with its standard error, and the p-value of its being Gaussian (see
                    `gaussianity`); across_kurtosis, across_p_value: of w across.
    r_hat, effective_samples: the worst over output, spread and outside, all chains together, half of which start with every
                    neuron along w_*. converged: R-hat < 1.05 and at least 100 effective samples. The norm has about a third as
                    many: the energy, with which it goes, is exchanged only when the momenta are drawn.
    start_gap:  the largest difference of an average between the chains from the prior and those from w_*, in standard errors.
    """

    degree: Float[Array, "mode"]
    output: Float[Array, "mode"]
    learnability: Float[Array, "mode"]
    total_learnability: Float[Array, ""]
    spread: Float[Array, ""]
    norm: Float[Array, ""]
    eigenvalues: Float[Array, "eigenvalue"]
    bin_centre: Float[Array, "bin"]
    density: Float[Array, "bin"]
    across_density: Float[Array, "bin"]
    outside: Float[Array, ""]
    kurtosis: Float[Array, ""]
    kurtosis_error: Float[Array, ""]
    p_value: Float[Array, ""]
    across_kurtosis: Float[Array, ""]
    across_kurtosis_error: Float[Array, ""]
    across_p_value: Float[Array, ""]
    start_gap: Float[Array, ""]
    acceptance: Float[Array, ""]
    r_hat: Float[Array, ""]
    effective_samples: Float[Array, ""]
    converged: Bool[Array, ""]


def sampled_network(
    system: TwoLayerNetwork,
    key: PRNGKeyArray,
    chains: int = 2,
    warmup: int = 150,
    samples: int = 200,
    trajectory: float = 2.0,
    start: Start = "both",
) -> SampledNetwork:
    """The posterior of the network on one random training set, by HMC on both layers in units of their prior.

    chains: with start "both" the first half starts from the prior and the other half with every neuron at w = +-w_* plus a prior
    draw across; "prior" and "informed" start all chains alike. samples: draws of every chain.
    trajectory: length of a trajectory in units of the prior widths. Along w_* the posterior is wider than the prior by
    sqrt(spread), 2 to 3 where features are learned. Shorter trajectories diffuse there, and the output is the slow observable:
    relu at n = 5d needs 17 times as many draws for f_2 with trajectories of 0.9 as with those of 2. The step is held down by the
    stiffest direction, the output on the training set: 0.2 for the erf networks of the studies, 0.1 for the relu ones.
    Not traceable. Raises `ValueError` for an unknown start, or fewer than two chains for "both".
    """
    if start not in STARTS:
        raise ValueError(f"start = {start!r}: must be one of {', '.join(STARTS)}")
    if start == "both" and chains < 2:
        raise ValueError(f"chains = {chains}: must be at least 2 for start = 'both'")
    _, start_key, run_key = jax.random.split(key, 3)
    posterior = Posterior.of(system, *training_set(system, key))
    informed = chains // 2 if start == "both" else chains * (start == "informed")
    run = sample(
        jax.tree_util.Partial(log_density, posterior),
        starts(posterior, chains, informed, start_key),
        run_key,
        warmup=warmup,
        samples=samples,
        trajectory=trajectory,
        observe=jax.tree_util.Partial(record, posterior),
    )
    return summary(system, run.observables, run.acceptance_rate, informed)


def record(posterior: Posterior, weights: Weights) -> Recorded:
    """One draw."""
    system = posterior.system
    assert isinstance(system, TwoLayerNetwork)
    w = posterior.scale * weights.hidden
    rho, q = w[:, 0], jnp.sum(w**2, axis=1)
    m = overlaps(system.phi, system.kept, jnp.min(q), jnp.max(q))(rho, q)
    a = posterior.readout(weights.hidden)
    return Recorded(jnp.stack([a @ one for one in m]), rho, w[:, 1], w.T @ w / w.shape[0])


def histogram(values: Float[Array, "*batch"]) -> Float[np.ndarray, "bin"]:
    """Density of all values together in the bins of `EDGES`; those beyond are counted in the norm alone."""
    return np.histogram(np.asarray(values), EDGES)[0] / np.size(values) / np.diff(EDGES)


def summary(system: TwoLayerNetwork, recorded: Recorded, acceptance: Array, informed: int) -> SampledNetwork:
    """Averages, health and tests of recorded draws (chain, draw, ..), the last `informed` chains of which started along w_*."""
    rho, moment = recorded.along, np.asarray(recorded.moment).mean(axis=(0, 1))
    unit = system.input_dim / system.weight_variance
    far = jnp.mean(jnp.abs(rho) > _FAR, axis=-1)
    scalars = jnp.concatenate([recorded.output, unit * jnp.mean(rho**2, axis=-1)[..., None], far[..., None]], axis=-1)
    health = estimate(scalars)
    chains = scalars.shape[0]
    if 0 < informed < chains:
        parts = [estimate(scalars[: chains - informed]), estimate(scalars[chains - informed :])]
        error = jnp.sqrt(parts[0].standard_error ** 2 + parts[1].standard_error ** 2)
        gap = jnp.max(jnp.abs(parts[0].mean - parts[1].mean) / jnp.maximum(error, 1e-300) * ~health.constant)
    else:
        gap = jnp.asarray(jnp.nan)
    output = health.mean[: len(system.kept)]
    y = system.coefficients(system.kept)
    along, across = gaussianity(rho), gaussianity(recorded.across)
    return SampledNetwork(
        degree=jnp.asarray(system.kept, float),
        output=output,
        learnability=jnp.where(y == 0, jnp.nan, output / jnp.where(y == 0, 1.0, y)),
        total_learnability=output @ y / system.power,
        spread=health.mean[-2],
        norm=jnp.asarray(np.trace(moment)),
        eigenvalues=jnp.asarray(unit * np.linalg.eigvalsh(moment)[::-1]),
        bin_centre=jnp.asarray((EDGES[1:] + EDGES[:-1]) / 2),
        density=jnp.asarray(histogram(rho)),
        across_density=jnp.asarray(histogram(recorded.across)),
        outside=health.mean[-1],
        kurtosis=along.excess_kurtosis,
        kurtosis_error=along.kurtosis_error,
        p_value=along.p_value,
        across_kurtosis=across.excess_kurtosis,
        across_kurtosis_error=across.kurtosis_error,
        across_p_value=across.p_value,
        start_gap=gap,
        acceptance=jnp.mean(acceptance),
        r_hat=jnp.max(jnp.where(health.constant, 1.0, health.r_hat)),
        effective_samples=jnp.min(jnp.where(health.constant, jnp.inf, health.ess)),
        converged=jnp.all(health.reliable | health.constant),
    )
