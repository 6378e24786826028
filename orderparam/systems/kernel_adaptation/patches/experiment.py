"""The posterior of the convolutional network on patches: shared weights by HMC, read-outs
integrated exactly.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.kernels.readout import condition_readout, log_evidence
from orderparam.sampling import Samples, estimate, sample
from orderparam.sampling.result import FromChains, of_chains
from orderparam.systems.kernel_adaptation.network import (
    HiddenLayer,
    OnModes,
    check_chains,
    on_modes,
)
from orderparam.systems.kernel_adaptation.patches.model import PatchNetwork
from orderparam.systems.kernel_adaptation.weights import overlaps


class _Recorded(eqx.Module):
    output: Float[Array, "mode"]
    spread: Float[Array, ""]
    linear: Float[Array, ""]
    perpendicular: Float[Array, ""]


class PatchPosterior(eqx.Module):
    """Log density of whitened weights u, w = sqrt(v/S) u:  -|u|^2/2 + log p(y | Phi), Phi_ic =
    sqrt(s/(N C)) phi(w_c . x_i).
    """

    layer: HiddenLayer
    x: Float[Array, "train patch input"]
    y: Float[Array, "train"]

    def features(self, u: Float[Array, "channel input"]) -> Float[Array, "train feature"]:
        """Phi, patch by patch."""
        return self.layer.amplitude * self.layer.phi(self.x @ (self.layer.scale * u).T).reshape(
            self.x.shape[0], -1
        )

    def __call__(self, u: Float[Array, "channel input"]) -> Float[Array, ""]:
        return (
            log_evidence(self.features(u), self.y[:, None], self.layer.temperature)
            - jnp.sum(u**2) / 2
        )

    def record(self, u: Float[Array, "channel input"]) -> _Recorded:
        """One draw. Averages over the input of one patch are exact: w_* is its first axis."""
        layer, patches = self.layer, self.x.shape[1]
        w = self.layer.scale * u
        rho, q = w[:, 0], jnp.sum(w**2, axis=1)
        *m, first = overlaps(layer.phi, (*layer.degrees, 1), jnp.min(q), jnp.max(q))(rho, q)
        (slope,) = overlaps(layer.phi, (1,), jnp.min(q), jnp.max(q))(jnp.ones_like(q), q)
        mean = condition_readout(self.features(u), self.y[:, None], layer.temperature).mean[:, 0]
        readout = (
            self.layer.amplitude * jnp.sum(mean.reshape(patches, -1), axis=0) / jnp.sqrt(patches)
        )
        return _Recorded(
            output=jnp.stack([readout @ one for one in m]),
            spread=jnp.mean(u[:, 0] ** 2),
            linear=jnp.mean(first**2),
            perpendicular=jnp.mean((q - rho**2) * slope**2) / (u.shape[1] - 1),
        )


class SampledPatches(OnModes, FromChains):
    """Averages over the posterior of one data set; fields as in the theories.

    output: N^(-1/2) sum_i E f h_k(w_* . x_i) of the posterior mean f. spread: S <(w . w_*)^2> /
    weight_variance. eigenvalue_ratio: of the network's own kernel, on h_1 of a patch over on the S
    - 1 linear functions across w_*. r_hat, effective_samples: over output and spread of all chains,
    half of which start with every channel along w_*.
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
    """The network on one random training set, by HMC. Half of the chains start from the prior, half
    along w_*.

    Patches, channels and examples are rounded to integers. Raises `ValueError` for an odd number of
    chains.
    """
    data_key, start_key, run_key = jax.random.split(key, 3)
    sizes = {
        name: round(float(getattr(system, name)))
        for name in ("patch_dim", "patches", "channels", "n_train")
    }
    layer = system.with_(**sizes).hidden
    x = jax.random.normal(data_key, (sizes["n_train"], sizes["patches"], sizes["patch_dim"]))
    posterior = PatchPosterior(
        layer, x, jnp.sum(layer.target(x[:, :, 0]), axis=1) / jnp.sqrt(sizes["patches"])
    )
    draws = jax.random.normal(start_key, (chains, sizes["channels"], sizes["patch_dim"]))
    along = jnp.where(jnp.arange(sizes["channels"]) % 2 == 0, 1.0, -1.0) / posterior.layer.scale
    run = sample(
        posterior,
        draws.at[chains // 2 :, :, 0].set(along),
        run_key,
        warmup=warmup,
        samples=samples,
        leapfrog_steps=leapfrog_steps,
        observe=posterior.record,
    )
    return _summary(layer, run)


def _summary(layer: HiddenLayer, run: Samples) -> SampledPatches:
    recorded = run.observables
    health = estimate(jnp.concatenate([recorded.output, recorded.spread[..., None]], axis=-1))
    means = jax.tree.map(lambda values: jnp.mean(values, axis=(0, 1)), recorded)
    return SampledPatches(
        **on_modes(layer, means.output, means.spread),
        **of_chains(run, health),
        eigenvalue_ratio=means.linear / means.perpendicular,
    )
