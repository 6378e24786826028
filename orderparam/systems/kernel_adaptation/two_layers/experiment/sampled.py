"""The posterior of the network itself by Hamiltonian Monte Carlo, and what its hidden weights look like."""

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.sampling import Samples, estimate, sample
from orderparam.sampling.result import FromChains, of_chains
from orderparam.systems.kernel_adaptation.gaussianity import along_directions
from orderparam.systems.kernel_adaptation.modes.network import HiddenLayer
from orderparam.systems.kernel_adaptation.modes.observables import OnModes, on_modes
from orderparam.systems.kernel_adaptation.two_layers.experiment.data import training_set
from orderparam.systems.kernel_adaptation.two_layers.experiment.posterior import TwoLayerPosterior
from orderparam.systems.kernel_adaptation.two_layers.model import TwoLayerNetwork

Start = Literal["both", "prior", "informed"]
EDGES = np.linspace(-2.5, 2.5, 82)  # of the bins of w . w_*
FAR = 0.5  # |w . w_*| of a neuron that counts as `outside`


class SampledTwoLayerNetwork(OnModes, FromChains):
    """Averages over the posterior of one data set; fields as in the theories, for one draw of the data each.

    output:     E_x f h_k of the posterior mean f, over the whole input distribution (not over test points).
    spread:     d <(w . w_*)^2> / weight_variance. norm: <|w|^2>.
    eigenvalues: of d <w w^T> / weight_variance, falling: 1 without adaptation; one, along w_*, stands out with it.
    outside:    probability of |w . w_*| > 1/2.
    Along w_*, and along a fixed direction across it:
        density: of the weights in bins of equal width over (-2.5, 2.5), centres `bin_centre`. excess_kurtosis, kurtosis_error:
        with its standard error. p_value: of their being Gaussian (see `gaussianity`).
    r_hat, effective_samples: over output, spread and outside, all chains together, half of which start with every neuron along
                    w_*. The norm has about a third as many: the energy, with which it goes, is exchanged only when the momenta
                    are drawn.
    start_gap:  the largest difference of an average between the chains from the prior and those from w_*, in standard errors.
    """

    norm: Float[Array, ""]
    eigenvalues: Float[Array, "eigenvalue"]
    outside: Float[Array, ""]
    bin_centre: Float[Array, "bin"]
    density: Float[Array, "direction bin"]
    excess_kurtosis: Float[Array, "direction"]
    kurtosis_error: Float[Array, "direction"]
    p_value: Float[Array, "direction"]
    start_gap: Float[Array, ""]


def _check(system: TwoLayerNetwork, chains: int = 2, start: Start = "both", **_: Any) -> None:
    if start == "both" and chains < 2:
        raise ValueError(f"chains = {chains}: must be at least 2 for start = 'both'")


@experiment(check=_check)
def sampled_network(
    system: TwoLayerNetwork,
    key: PRNGKeyArray,
    *,
    chains: int = 2,
    warmup: int = 150,
    samples: int = 200,
    trajectory: float = 2.0,
    start: Start = "both",
) -> SampledTwoLayerNetwork:
    """The posterior of the network on one random training set, by HMC on both layers in units of their prior.

    chains: with start "both" the first half starts from the prior and the other half with every neuron at w = +-w_* plus a prior
    draw across; "prior" and "informed" start all chains alike. samples: draws of every chain.
    trajectory: length of a trajectory in units of the prior widths. Along w_* the posterior is wider than the prior by
    sqrt(spread), 2 to 3 where features are learned. Shorter trajectories diffuse there, and the output is the slow observable:
    relu at n = 5d needs 17 times as many draws for f_2 with trajectories of 0.9 as with those of 2. The step is held down by the
    stiffest direction, the output on the training set: 0.2 for the erf networks of the studies, 0.1 for the relu ones.
    Raises `ValueError` for fewer than two chains for "both".
    """
    _, start_key, run_key = jax.random.split(key, 3)
    posterior = TwoLayerPosterior(system.hidden, *training_set(system, key))
    informed = chains // 2 if start == "both" else chains * (start == "informed")
    run = sample(
        posterior,
        posterior.starts(chains, informed, start_key),
        run_key,
        warmup=warmup,
        samples=samples,
        trajectory=trajectory,
        observe=posterior.record,
    )
    return _summary(system.hidden, run, informed)


def _summary(layer: HiddenLayer, run: Samples, informed: int) -> SampledTwoLayerNetwork:
    """Averages, health and tests of recorded draws, the last `informed` chains of which started along w_*."""
    recorded = run.observables
    rho, moment = recorded.directions[..., 0, :], np.asarray(recorded.moment).mean(axis=(0, 1))
    unit = layer.dim / layer.weight_variance
    far = jnp.mean(jnp.abs(rho) > FAR, axis=-1)
    scalars = jnp.concatenate([recorded.output, unit * jnp.mean(rho**2, axis=-1)[..., None], far[..., None]], axis=-1)
    health = estimate(scalars)
    directions = [np.asarray(recorded.directions[..., i, :]) for i in range(2)]
    shape = along_directions(directions)
    return SampledTwoLayerNetwork(
        **on_modes(layer, health.mean[:-2], health.mean[-2]),
        **of_chains(run, health),
        norm=jnp.asarray(np.trace(moment)),
        eigenvalues=unit * np.linalg.eigvalsh(moment)[::-1],
        outside=health.mean[-1],
        bin_centre=jnp.asarray((EDGES[1:] + EDGES[:-1]) / 2),
        # those beyond the bins are counted in the norm alone
        density=jnp.stack([np.histogram(values, EDGES)[0] / values.size / np.diff(EDGES) for values in directions]),
        excess_kurtosis=shape.excess_kurtosis,
        kurtosis_error=shape.kurtosis_error,
        p_value=shape.p_value,
        start_gap=_start_gap(scalars, ~health.constant, informed),
    )


def _start_gap(values: Float[Array, "chain draw observable"], moves: Array, informed: int) -> Float[Array, ""]:
    chains = values.shape[0]
    if not 0 < informed < chains:
        return jnp.asarray(jnp.nan)
    prior, other = estimate(values[: chains - informed]), estimate(values[chains - informed :])
    error = jnp.sqrt(prior.standard_error**2 + other.standard_error**2)
    return jnp.max(jnp.abs(prior.mean - other.mean) / jnp.maximum(error, 1e-300) * moves)
