"""The posterior of the network itself: hidden weights by Hamiltonian Monte Carlo, the read-out integrated exactly."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.sampling import estimate, sample
from orderparam.systems.kernel_adaptation.experiment.data import draw_data
from orderparam.systems.kernel_adaptation.experiment.posterior import Posterior, log_density, starts
from orderparam.systems.kernel_adaptation.model import TwoLayerNetwork
from orderparam.systems.kernel_adaptation.theory.overlaps import overlaps

Start = Literal["both", "prior", "informed"]
STARTS = ("both", "prior", "informed")
BINS = 81  # of rho, over (-REACH, REACH)
REACH = 2.5


class Recorded(eqx.Module):
    """What each draw contributes, averaged over the read-out."""

    output: Float[Array, "mode"]  # E_x f h_k
    spread: Float[Array, ""]
    norm: Float[Array, ""]
    histogram: Float[Array, "bin"]
    outside: Float[Array, ""]


class SampledNetwork(Result):
    """Averages over the posterior of one data set; fields as in the theories, for one draw of the data each.

    output:     E_x f h_k of the posterior mean f, over the whole input distribution (not over test points).
    spread:     d <(w . w_*)^2> / weight_variance. norm: <|w|^2>.
    density:    of w . w_* in bins of equal width over (-2.5, 2.5), centres `bin_centre`. outside: probability of |w . w_*| > 1/2.
    r_hat, effective_samples: the worst over output and spread, all chains together, half of which start with
                    every neuron along w_*. converged: R-hat < 1.05 and at least 100 effective samples.
    start_gap:  the largest difference of an average between the chains from the prior and those from w_*, in standard errors.
    """

    degree: Float[Array, "mode"]
    output: Float[Array, "mode"]
    learnability: Float[Array, "mode"]
    total_learnability: Float[Array, ""]
    spread: Float[Array, ""]
    norm: Float[Array, ""]
    bin_centre: Float[Array, "bin"]
    density: Float[Array, "bin"]
    outside: Float[Array, ""]
    start_gap: Float[Array, ""]
    acceptance: Float[Array, ""]
    r_hat: Float[Array, ""]
    effective_samples: Float[Array, ""]
    converged: Bool[Array, ""]


def sampled_network(
    system: TwoLayerNetwork,
    key: PRNGKeyArray,
    chains: int = 2,
    warmup: int = 120,
    samples: int = 120,
    leapfrog_steps: int = 8,
    start: Start = "both",
) -> SampledNetwork:
    """The posterior of the network on one random training set, by HMC in whitened weights.

    chains: with start "both" the first half starts from the prior and the other half with every neuron at w = +-w_* plus a prior
    draw across; "prior" and "informed" start all chains alike. samples: draws of every chain.
    leapfrog_steps: the tuned step is about 0.2, so that 8 steps are about pi/2, a quarter of a period of the prior.
    Raises `ValueError` for an unknown start, or fewer than two chains for "both".
    """
    if start not in STARTS:
        raise ValueError(f"start = {start!r}: must be one of {', '.join(STARTS)}")
    if start == "both" and chains < 2:
        raise ValueError(f"chains = {chains}: must be at least 2 for start = 'both'")
    data_key, start_key, run_key = jax.random.split(key, 3)
    posterior = Posterior.of(system, *draw_data(system, data_key, int(system.n_train)))
    informed = chains // 2 if start == "both" else chains * (start == "informed")
    run = sample(
        jax.tree_util.Partial(log_density, posterior),
        starts(posterior, chains, informed, start_key),
        run_key,
        warmup=warmup,
        samples=samples,
        leapfrog_steps=leapfrog_steps,
        observe=jax.tree_util.Partial(_record, posterior),
    )
    return _summary(system, run.observables, run.acceptance_rate, informed)


def _record(posterior: Posterior, u: Array) -> Recorded:
    system = posterior.system
    assert isinstance(system, TwoLayerNetwork)
    w = posterior.scale * u
    rho, q = w[:, 0], jnp.sum(w**2, axis=1)
    m = overlaps(system.phi, system.kept, jnp.min(q), jnp.max(q))(rho, q)
    edges = jnp.linspace(-REACH, REACH, BINS + 1)
    counts = jnp.histogram(rho, edges)[0] / rho.shape[0] / (edges[1] - edges[0])
    a = posterior.readout(u)
    return Recorded(
        output=jnp.stack([a @ one for one in m]),
        spread=jnp.mean(rho**2) / posterior.scale**2,
        norm=jnp.mean(q),
        histogram=counts,
        outside=jnp.mean(jnp.abs(rho) > 0.5),
    )


def _summary(system: TwoLayerNetwork, recorded: Recorded, acceptance: Array, informed: int) -> SampledNetwork:
    scalars = jnp.concatenate([recorded.output, recorded.spread[..., None], recorded.outside[..., None].astype(float)], axis=-1)
    health = estimate(scalars)
    means = jax.tree.map(lambda values: jnp.mean(values, axis=(0, 1)), recorded)
    y = system.coefficients(system.kept)
    chains = scalars.shape[0]
    if 0 < informed < chains:
        parts = [estimate(scalars[: chains - informed]), estimate(scalars[chains - informed :])]
        error = jnp.sqrt(parts[0].standard_error ** 2 + parts[1].standard_error ** 2)
        gap = jnp.max(jnp.abs(parts[0].mean - parts[1].mean) / jnp.maximum(error, 1e-300) * ~health.constant)
    else:
        gap = jnp.asarray(jnp.nan)
    edges = np.linspace(-REACH, REACH, BINS + 1)
    return SampledNetwork(
        degree=jnp.asarray(system.kept, float),
        output=means.output,
        learnability=jnp.where(y == 0, jnp.nan, means.output / jnp.where(y == 0, 1.0, y)),
        total_learnability=means.output @ y / system.power,
        spread=means.spread,
        norm=means.norm,
        bin_centre=jnp.asarray((edges[1:] + edges[:-1]) / 2),
        density=means.histogram,
        outside=means.outside,
        start_gap=gap,
        acceptance=jnp.mean(acceptance),
        r_hat=jnp.max(jnp.where(health.constant, 1.0, health.r_hat)),
        effective_samples=jnp.min(jnp.where(health.constant, jnp.inf, health.ess)),
        converged=jnp.all(health.reliable | health.constant),
    )
