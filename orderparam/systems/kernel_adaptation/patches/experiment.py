"""Convolutional networks on patches, sampled from their posterior: the shared weights by
Hamiltonian Monte Carlo, with the read-outs integrated out exactly.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.kernels.readout import condition_readout, log_evidence
from orderparam.sampling import Samples, estimate, sample
from orderparam.sampling.result import FromChains, of_chains
from orderparam.systems.kernel_adaptation.hermite_overlaps import overlaps
from orderparam.systems.kernel_adaptation.network import (
    HiddenLayer,
    OnModes,
    check_chains,
    on_modes,
)
from orderparam.systems.kernel_adaptation.patches.model import PatchNetwork


class RecordedPatches(eqx.Module):
    """The observables of one draw, or of many: output and spread as in `SampledPatches`, and the
    eigenvalues of the kernel on the linear functions of a patch along w_* and across it."""

    output: Float[Array, "mode"]
    spread: Float[Array, ""]
    linear: Float[Array, ""]
    perpendicular: Float[Array, ""]


class PatchPosterior(eqx.Module):
    """Log density of whitened weights u, w = sqrt(v/S) u: -|u|^2/2 + log p(y | Phi), with the
    features Phi_ic = sqrt(s/(N C)) phi(w_c . x_i).
    """

    layer: HiddenLayer
    x: Float[Array, "train patch input"]
    y: Float[Array, "train"]

    def features(self, u: Float[Array, "channel input"]) -> Float[Array, "train feature"]:
        """The features Phi, patch by patch."""
        return self.layer.amplitude * self.layer.phi(self.x @ (self.layer.scale * u).T).reshape(
            self.x.shape[0], -1
        )

    def __call__(self, u: Float[Array, "channel input"]) -> Float[Array, ""]:
        return (
            log_evidence(self.features(u), self.y[:, None], self.layer.temperature)
            - jnp.sum(u**2) / 2
        )

    def record(self, u: Float[Array, "channel input"]) -> RecordedPatches:
        """The observables of one draw.

        Averages over the input of one patch are exact; its first axis is w_*.
        """
        layer, patches = self.layer, self.x.shape[1]
        w = self.layer.scale * u
        rho, q = w[:, 0], jnp.sum(w**2, axis=1)
        *m, first = overlaps(layer.phi, (*layer.degrees, 1), jnp.min(q), jnp.max(q))(rho, q)
        # The overlap with linear functions orthogonal to w_* is m_1 / rho times the orthogonal
        # weight.
        (slope,) = overlaps(layer.phi, (1,), jnp.min(q), jnp.max(q))(jnp.ones_like(q), q)
        mean = condition_readout(self.features(u), self.y[:, None], layer.temperature).mean[:, 0]
        readout = (
            self.layer.amplitude * jnp.sum(mean.reshape(patches, -1), axis=0) / jnp.sqrt(patches)
        )
        return RecordedPatches(
            output=jnp.stack([readout @ one for one in m]),
            spread=jnp.mean(u[:, 0] ** 2),
            linear=jnp.mean(first**2),
            perpendicular=jnp.mean((q - rho**2) * slope**2) / (u.shape[1] - 1),
        )


class SampledPatches(OnModes, FromChains):
    """Averages over the posterior of a convolutional network on one training set.

    `output` is N^(-1/2) sum_i E f h_k(w_* . x_i) of the posterior mean f, and `spread` is S <(w .
    w_*)^2> / weight_variance.

    Fields:
        eigenvalue_ratio: eigenvalue of the network's own kernel on h_1 of a patch, divided by that
            on the S - 1 linear functions orthogonal to w_*.
        r_hat: largest R-hat of output and spread over all chains, half of which start with every
            channel along w_*.
        effective_samples: smallest effective sample size of the same observables.
    """

    eigenvalue_ratio: Float[Array, ""]


@experiment(check=check_chains)
def sampled_patches(
    system: PatchNetwork,
    key: PRNGKeyArray,
    *,
    chains: int = 2,
    warmup: int = 150,
    samples: int = 150,
    leapfrog_steps: int = 8,
) -> SampledPatches:
    r"""Posterior averages of a convolutional network on one random training set, by Hamiltonian
    Monte Carlo.

    The read-outs are integrated out exactly: the density of the shared weights is their prior times
    the evidence $N(y; 0, \Phi \Phi^T + T)$ with $\Phi_{ic} = \sqrt{s/(NC)}\, \phi(w_c \cdot x_i)$.
    Half of the chains start from the prior, half with every channel along $w_*$. Patches, channels
    and examples are rounded to integers.

    Args:
        chains: even number of chains. Default 2.
        warmup: steps of a chain that tune the step size and are discarded. Default 150.
        samples: draws of every chain. Default 150.
        leapfrog_steps: leapfrog steps of a trajectory. Default 8.

    Raises:
        ValueError: for an odd number of chains.

    Accuracy: statistical; see `r_hat` and `effective_samples`.

    Source: Seroussi, Naveh, Ringel (2023).

    >>> import jax
    >>> from orderparam.systems.kernel_adaptation import hermite_target
    >>> network = PatchNetwork(3, 2, 4, 6, 1.0, hermite_target({1: 1.0}), activation="linear")
    >>> sampled_patches(network, jax.random.key(0), warmup=20, samples=8).output.shape
    (1,)
    """
    data_key, start_key, run_key = jax.random.split(key, 3)
    posterior = PatchPosterior(*drawn_patches(system, data_key))
    layer, (_, _, dim) = posterior.layer, posterior.x.shape
    channels = round(float(system.channels))
    draws = jax.random.normal(start_key, (chains, channels, dim))
    along = jnp.where(jnp.arange(channels) % 2 == 0, 1.0, -1.0) / layer.scale
    run = sample(
        posterior,
        draws.at[chains // 2 :, :, 0].set(along),
        run_key,
        warmup=warmup,
        samples=samples,
        leapfrog_steps=leapfrog_steps,
        observe=posterior.record,
    )
    return summary_of_patches(layer, run)


def drawn_patches(
    system: PatchNetwork, key: PRNGKeyArray
) -> tuple[HiddenLayer, Float[Array, "train patch input"], Float[Array, "train"]]:
    """The layer of the network with its sizes rounded to integers, and a random training set x, y
    whose first axis of a patch is w_*."""
    sizes = {
        name: round(float(getattr(system, name)))
        for name in ("patch_dim", "patches", "channels", "n_train")
    }
    layer = system.with_(**sizes).hidden
    x = jax.random.normal(key, (sizes["n_train"], sizes["patches"], sizes["patch_dim"]))
    return layer, x, jnp.sum(layer.target(x[:, :, 0]), axis=1) / jnp.sqrt(sizes["patches"])


def summary_of_patches(layer: HiddenLayer, run: Samples) -> SampledPatches:
    """Averages over the recorded draws of all chains."""
    recorded = run.observables
    health = estimate(jnp.concatenate([recorded.output, recorded.spread[..., None]], axis=-1))
    means = jax.tree.map(lambda values: jnp.mean(values, axis=(0, 1)), recorded)
    return SampledPatches(
        **on_modes(layer, means.output, means.spread),
        **of_chains(run, health),
        eigenvalue_ratio=means.linear / means.perpendicular,
    )
